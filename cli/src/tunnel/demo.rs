//! `demo tunnel`: two hosts on this machine, two shaped paths between them, the tunnel on both, and a path that is pulled
//! out while a transfer runs.

use crate::{Failure, output};
use daemon::control::Client;
use daemon::keys;
use daemon::status::State;
use lab::testbed::{self, LEFT, RIGHT, Testbed};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// What lies between the hosts.
const PATHS: [(&str, &str); 2] = [("fibre", "rate=100mbit delay=10ms"), ("lte", "rate=50mbit delay=30ms")];
/// Inner addresses of the left and the right host.
const INNER: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
const PORT: u16 = 5001;
/// How long each act lasts.
const ACT: Duration = Duration::from_secs(5);
/// How long both ends may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn demo(mode: &str) -> Result<(), Failure> {
    testbed::possible().map_err(|why| {
        Failure::Environment(format!(
            "the demonstration makes network namespaces and TUN devices: {why}\n  as root: sudo ropewalk demo tunnel\n  \
             without root, simulated: ropewalk run scenarios/two-paths-failover.toml"
        ))
    })?;
    let folder = std::env::temp_dir().join(format!("ropewalk-demo-{}", std::process::id()));
    let outcome = play(&folder, mode);
    let _ = std::fs::remove_dir_all(&folder);
    outcome.map_err(|error| Failure::Run(error.to_string()))
}

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn play(folder: &Path, mode: &str) -> Outcome<()> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the program's own path is no text")?;
    for (k, (name, shape)) in PATHS.iter().enumerate() {
        say(&format!("path {k}, {name}: {shape}"));
    }
    let mut testbed = Testbed::pair(&[program, "lab-agent"], &PATHS.map(|(_, shape)| shape))?;
    write(&testbed, folder, mode)?;
    let ends = [LEFT, RIGHT].map(|host| End::start(&testbed, host, program, folder));
    let [left, right] = ends;
    let (left, right) = (left?, right?);
    left.wait()?;
    right.wait()?;
    say("the tunnel is up on both ends, on both paths");
    transfer(&mut testbed, &left)?;
    drop((left, right));
    say("everything is removed again");
    Ok(())
}

/// Configurations of both ends.
fn write(testbed: &Testbed, folder: &Path, mode: &str) -> Outcome<()> {
    let private = [keys::genkey(), keys::genkey()];
    for host in [LEFT, RIGHT] {
        let (other, inner) = (1 - host, INNER[host]);
        let own = folder.join(host.to_string());
        std::fs::create_dir_all(&own)?;
        let mut text = format!("[interface]\naddress = \"{inner}/24\"\n");
        match mode {
            "mpt" => {
                let remote = INNER[other];
                text += "mode = \"mpt\"\nlisten-port = 4754\n\n[mpt]\nreorder-window = 1000\nkeepalive = \"1s\"\ndead = \"3s\"\n";
                write!(text, "\n[[peer]]\naddress = \"{remote}\"\nallowed-ips = \"{remote}/32\"\n")?;
            }
            _ => {
                let public = keys::pubkey(&private[other])?;
                writeln!(text, "private-key = \"{}\"", private[host])?;
                write!(text, "\n[[peer]]\npublic-key = \"{public}\"\nallowed-ips = \"{}/32\"\n", INNER[other])?;
            }
        }
        // In `ropewalk` mode the right host is a server: it learns from the left one where that is.
        let calls = mode == "mpt" || host == LEFT;
        for (k, (name, _)) in PATHS.iter().enumerate().filter(|_| calls) {
            let (device, source, remote) = (testbed.device(k), testbed.v4(k, host), testbed.v4(k, other));
            write!(text, "\n[[path]]\nname = \"{name}\"\ninterface = \"{device}\"\nsource = \"{source}\"\n")?;
            writeln!(text, "endpoint = \"{remote}\"")?;
        }
        let file = own.join("rw0.toml");
        std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(file)?.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The daemon of one host.
struct End {
    child: Child,
    client: Client,
}

impl End {
    fn start(testbed: &Testbed, host: usize, program: &str, folder: &Path) -> Outcome<Self> {
        let own: PathBuf = folder.join(host.to_string());
        let mut command: Command = testbed.command(host, program);
        command.arg("up").arg(own.join("rw0.toml")).env("ROPEWALK_RUN", &own).env("RUST_LOG", "warn");
        let child = command.stdin(Stdio::null()).spawn()?;
        Ok(Self { child, client: Client::new(&own, "rw0") })
    }

    /// Until every path works.
    fn wait(&self) -> Outcome<()> {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let up = |status: &daemon::status::Status| status.paths().all(|(_, path)| path.state == State::Up);
            if self.client.status().is_ok_and(|status| up(&status)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err("an end of the tunnel does not come up; its complaints are above".into())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // It is gone already, or it goes now.
        if self.client.request("POST", "/v1/down", "").is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// What the receiver saw so far.
#[derive(Default)]
struct Tally {
    bytes: AtomicU64,
    /// The longest time without a byte since it was last asked for, microseconds.
    gap_us: AtomicU64,
    ends: AtomicBool,
}

/// Three acts of one TCP connection through the tunnel.
fn transfer(testbed: &mut Testbed, left: &End) -> Outcome<()> {
    let address: SocketAddr = format!("{}:{PORT}", INNER[RIGHT]).parse()?;
    let listener = testbed.within(RIGHT, move || Ok(TcpListener::bind(address)?))?;
    let outgoing = testbed.within(LEFT, move || Ok(TcpStream::connect(address)?))?;
    let (incoming, _) = listener.accept()?;
    let tally = Tally::default();
    thread::scope(|scope| {
        scope.spawn(|| send(outgoing, &tally));
        scope.spawn(|| receive(incoming, &tally));
        let outcome = acts(testbed, left, &tally);
        tally.ends.store(true, Relaxed);
        outcome
    })
}

fn acts(testbed: &mut Testbed, left: &End, tally: &Tally) -> Outcome<()> {
    act("both paths", tally, left)?;
    testbed.change(0, "both down")?;
    act("the fibre is pulled out", tally, left)?;
    testbed.change(0, "both up")?;
    act("the fibre is back", tally, left)
}

/// Some seconds, and what they brought.
fn act(title: &str, tally: &Tally, left: &End) -> Outcome<()> {
    tally.gap_us.store(0, Relaxed);
    let before = tally.bytes.load(Relaxed);
    thread::sleep(ACT);
    let mbps = (tally.bytes.load(Relaxed) - before) as f64 * 8e-6 / ACT.as_secs_f64();
    let gap_ms = tally.gap_us.load(Relaxed) as f64 / 1e3;
    let status = left.client.status()?;
    let shares =
        status.paths().map(|(_, path)| format!("{} {} {:.0}%", path.name, path.state.word(), path.share * 100.0));
    let shares = shares.collect::<Vec<_>>().join(", ");
    say(&format!("{title}: {mbps:.1} Mbit/s, longest silence {gap_ms:.0} ms ({shares})"));
    Ok(())
}

/// Until the end, or until the connection breaks, which the receiver's numbers show.
fn send(mut stream: TcpStream, tally: &Tally) {
    let block = vec![0x55; 1 << 16];
    // A writer that is stuck must see the end.
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    while !tally.ends.load(Relaxed) {
        let _ = stream.write(&block);
    }
}

fn receive(mut stream: TcpStream, tally: &Tally) {
    let mut block = vec![0; 1 << 16];
    let mut latest = Instant::now();
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    while !tally.ends.load(Relaxed) {
        let Ok(bytes @ 1..) = stream.read(&mut block) else { continue };
        tally.bytes.fetch_add(bytes as u64, Relaxed);
        tally.gap_us.fetch_max(latest.elapsed().as_micros() as u64, Relaxed);
        latest = Instant::now();
    }
}

fn say(line: &str) {
    // A demonstration that nobody reads any more ends by itself.
    let _ = output::print(&format!("{line}\n"));
}
