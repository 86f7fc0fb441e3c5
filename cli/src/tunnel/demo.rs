//! `demo tunnel`: two hosts on this machine, two shaped paths between them, the tunnel on both, and a path that is
//! unplugged while a transfer runs.

use crate::{Failure, output};
use daemon::control_plane::Client;
use daemon::keys;
use daemon::status::PathState;
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

/// Name and shape of each path.
const PATHS: [(&str, &str); 2] = [("fibre", "rate=100mbit delay=10ms"), ("lte", "rate=50mbit delay=30ms")];
/// Inner addresses of the left and the right host.
const INNER_ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
const TCP_PORT: u16 = 5001;
/// The duration of each phase.
const PHASE_DURATION: Duration = Duration::from_secs(5);
/// Maximum time until both ends are up.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn demo(mode: &str) -> Result<(), Failure> {
    testbed::possible().map_err(|reason| {
        Failure::Environment(format!(
            "the demonstration makes network namespaces and TUN devices: {reason}\n  as root: sudo ropewalk demo tunnel\n  \
             without root, simulated: ropewalk run scenarios/two-paths-failover.toml"
        ))
    })?;
    let folder = std::env::temp_dir().join(format!("ropewalk-demo-{}", std::process::id()));
    let outcome = run_demo(&folder, mode);
    let _ = std::fs::remove_dir_all(&folder);
    outcome.map_err(|error| Failure::Run(error.to_string()))
}

type DemoResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn run_demo(folder: &Path, mode: &str) -> DemoResult<()> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the program's own path is not UTF-8")?;
    for (index, (name, shape)) in PATHS.iter().enumerate() {
        print_line(&format!("path {index}, {name}: {shape}"));
    }
    let mut testbed = Testbed::pair(&[program, "lab-agent"], &PATHS.map(|(_, shape)| shape))?;
    write_configs(&testbed, folder, mode)?;
    let daemons = [LEFT, RIGHT].map(|host| Daemon::start(&testbed, host, program, folder));
    let [left, right] = daemons;
    let (left, right) = (left?, right?);
    left.wait_until_up()?;
    right.wait_until_up()?;
    print_line("the tunnel is up on both ends, on both paths");
    transfer(&mut testbed, &left)?;
    drop((left, right));
    print_line("everything has been removed again");
    Ok(())
}

/// Writes the configurations of both ends.
fn write_configs(testbed: &Testbed, folder: &Path, mode: &str) -> DemoResult<()> {
    let private_keys = [keys::genkey(), keys::genkey()];
    for host in [LEFT, RIGHT] {
        let (other, inner) = (1 - host, INNER_ADDRESSES[host]);
        let directory = folder.join(host.to_string());
        std::fs::create_dir_all(&directory)?;
        let mut text = format!("[interface]\naddress = \"{inner}/24\"\n");
        match mode {
            "mpt" => {
                let remote = INNER_ADDRESSES[other];
                text += "mode = \"mpt\"\nlisten-port = 4754\n\n[mpt]\nreorder-window = 1000\nkeepalive-time = \"1s\"\ndead-time = \"3s\"\n";
                write!(text, "\n[[peer]]\naddress = \"{remote}\"\nallowed-ips = \"{remote}/32\"\n")?;
            }
            _ => {
                let public_key = keys::pubkey(&private_keys[other])?;
                writeln!(text, "private-key = \"{}\"", *private_keys[host])?;
                write!(
                    text,
                    "\n[[peer]]\npublic-key = \"{public_key}\"\nallowed-ips = \"{}/32\"\n",
                    INNER_ADDRESSES[other]
                )?;
            }
        }
        // In `ropewalk` mode the right host is a server, which learns the address of the left one.
        let initiates = mode == "mpt" || host == LEFT;
        for (index, (name, _)) in PATHS.iter().enumerate().filter(|_| initiates) {
            let (device, source, remote) = (testbed.device(index), testbed.v4(index, host), testbed.v4(index, other));
            write!(text, "\n[[path]]\nname = \"{name}\"\ninterface = \"{device}\"\nsource = \"{source}\"\n")?;
            writeln!(text, "endpoint = \"{remote}\"")?;
        }
        let file = directory.join("rw0.toml");
        std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(file)?.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The daemon of one host.
struct Daemon {
    child: Child,
    client: Client,
}

impl Daemon {
    fn start(testbed: &Testbed, host: usize, program: &str, folder: &Path) -> DemoResult<Self> {
        let directory: PathBuf = folder.join(host.to_string());
        let mut command: Command = testbed.command(host, program);
        command.arg("up").arg(directory.join("rw0.toml")).env("ROPEWALK_RUN", &directory).env("RUST_LOG", "warn");
        let child = command.stdin(Stdio::null()).spawn()?;
        Ok(Self { child, client: Client::new(&directory, "rw0") })
    }

    /// Waits until every path is up.
    fn wait_until_up(&self) -> DemoResult<()> {
        let start = Instant::now();
        while start.elapsed() < STARTUP_TIMEOUT {
            let all_paths_up =
                |status: &daemon::status::TunnelStatus| status.paths().all(|(_, path)| path.state == PathState::Up);
            if self.client.status().is_ok_and(|status| all_paths_up(&status)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err("an end of the tunnel does not come up; its errors are above".into())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Stops the daemon; kills it if its control socket does not answer.
        if self.client.request("POST", "/v1/down", "").is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Counters of the receiver.
#[derive(Default)]
struct ReceiverCounters {
    bytes: AtomicU64,
    /// The longest time without a byte in this phase, microseconds.
    gap_us: AtomicU64,
    stop: AtomicBool,
}

/// Runs the three phases over one TCP connection through the tunnel.
fn transfer(testbed: &mut Testbed, left: &Daemon) -> DemoResult<()> {
    let address: SocketAddr = format!("{}:{TCP_PORT}", INNER_ADDRESSES[RIGHT]).parse()?;
    let listener = testbed.within(RIGHT, move || Ok(TcpListener::bind(address)?))?;
    let outgoing = testbed.within(LEFT, move || Ok(TcpStream::connect(address)?))?;
    let (incoming, _) = listener.accept()?;
    let counters = ReceiverCounters::default();
    thread::scope(|scope| {
        scope.spawn(|| send(outgoing, &counters));
        scope.spawn(|| receive(incoming, &counters));
        let outcome = run_phases(testbed, left, &counters);
        counters.stop.store(true, Relaxed);
        outcome
    })
}

fn run_phases(testbed: &mut Testbed, left: &Daemon, counters: &ReceiverCounters) -> DemoResult<()> {
    run_phase("both paths", counters, left)?;
    testbed.change(0, "both down")?;
    run_phase("the fibre is unplugged", counters, left)?;
    testbed.change(0, "both up")?;
    run_phase("the fibre is plugged in again", counters, left)
}

/// Runs one phase and prints its results.
fn run_phase(title: &str, counters: &ReceiverCounters, left: &Daemon) -> DemoResult<()> {
    counters.gap_us.store(0, Relaxed);
    let prior_bytes = counters.bytes.load(Relaxed);
    thread::sleep(PHASE_DURATION);
    let mbps = (counters.bytes.load(Relaxed) - prior_bytes) as f64 * 8e-6 / PHASE_DURATION.as_secs_f64();
    let gap_ms = counters.gap_us.load(Relaxed) as f64 / 1e3;
    let status = left.client.status()?;
    let shares = status.paths().map(|(_, path)| {
        let share = path.send_share.unwrap_or(0.0) * 100.0;
        format!("{} {} {share:.0}%", path.name, path.state.as_str())
    });
    let shares = shares.collect::<Vec<_>>().join(", ");
    print_line(&format!("{title}: {mbps:.1} Mbit/s, longest silence {gap_ms:.0} ms ({shares})"));
    Ok(())
}

/// Sends until the demonstration ends; errors are ignored, because the receiver's counters show them.
fn send(mut stream: TcpStream, counters: &ReceiverCounters) {
    let block = vec![0x55; 1 << 16];
    // The timeout lets a blocked writer see `stop`.
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    while !counters.stop.load(Relaxed) {
        let _ = stream.write(&block);
    }
}

/// Receives and counts until the demonstration ends.
fn receive(mut stream: TcpStream, counters: &ReceiverCounters) {
    let mut block = vec![0; 1 << 16];
    let mut latest = Instant::now();
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    while !counters.stop.load(Relaxed) {
        let Ok(bytes @ 1..) = stream.read(&mut block) else { continue };
        counters.bytes.fetch_add(bytes as u64, Relaxed);
        counters.gap_us.fetch_max(latest.elapsed().as_micros() as u64, Relaxed);
        latest = Instant::now();
    }
}

fn print_line(line: &str) {
    // If standard output is closed, the demonstration ends by itself.
    let _ = output::print(&format!("{line}\n"));
}
