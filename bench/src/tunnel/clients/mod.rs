//! `bench tunnel clients`: the cost of many idle clients for a server.
//!
//! The server is the daemon in a namespace. Its clients are [`simulated`] ones in one process of the other namespace, each
//! with a node, a UDP socket and a separate IP address: they complete handshakes, answer probes and send their own.
//!
//! The server starts with one client that never connects. A reload adds all the others, which connect at once, and another
//! one adds one more. Memory is that of the process (PSS: shared pages count in part), CPU time that of its threads by the
//! scheduler's nanoseconds.

pub(crate) mod simulated;

use super::options::Options;
use super::programs::Programs;
use super::testbed::{CLIENT, SERVER, Testbed};
use super::{bonding, cpu_accounting::CpuAccounting, ropewalk, scratch_folder};
use crate::measure::measure;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for which the idle clients' CPU time is measured: three of their probes.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Time from the last client coming up until memory and CPU time are measured: by then the probes for the paths' MTU are
/// over.
const SETTLE_TIME: Duration = Duration::from_secs(20);
/// Time limit for the daemon's start, and for applying a configuration.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The server's device.
const DEVICE: &str = "rwbc";
/// The clients' outer addresses, all of which the client's host has.
const OUTER_NETWORK: &str = "10.200.0.0/16";

/// Measures a server with `options.clients` clients.
pub(super) fn run(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    rows: &mut Vec<Value>,
) -> Result<(), String> {
    let clients = options.clients;
    if clients > simulated::MAX_CLIENTS {
        return Err(format!("--clients is at most {}", simulated::MAX_CLIENTS));
    }
    let calibration = calibration_s()?;
    let testbed = Testbed::make(programs, &[""])?;
    testbed.run(CLIENT, &format!("ip route add local {OUTER_NETWORK} dev lo"))?;
    testbed.run(SERVER, &format!("ip route add {OUTER_NETWORK} via {}", testbed.address(0, CLIENT)))?;
    eprintln!("clients: {clients}");
    let server = Server::start(&testbed, programs, accounting)?;
    let memory_of_one = server.memory()?;

    let reload = server.reload(programs, clients + 1)?;
    let memory_configured = server.memory()?;

    let mut group = Group::start(&testbed, &server.public_key, 1, clients)?;
    let all_up = group.wait()?;
    std::thread::sleep(SETTLE_TIME);
    let memory_connected = server.memory()?;
    let idle = server.cpu_s(IDLE_TIME)?;

    let reload_for_one = server.reload(programs, clients + 2)?;
    let one_up = Group::start(&testbed, &server.public_key, clients + 1, 1)?.wait()?;

    let per_client = |memory: Memory| (memory.pss_kb - memory_of_one.pss_kb) / clients as f64;
    rows.push(json!({
        "bench": "clients", "testbed": format!("{clients} idle"), "system": "ropewalk", "clients": clients,
        "pss_of_one_mb": memory_of_one.pss_kb / 1e3, "pss_mb": memory_connected.pss_kb / 1e3, "rss_mb": memory_connected.rss_kb / 1e3,
        "configured_kb_a_client": per_client(memory_configured), "kb_a_client": per_client(memory_connected),
        "idle_cores": idle / IDLE_TIME.as_secs_f64(),
        "idle_us_a_client": idle / IDLE_TIME.as_secs_f64() / clients as f64 * 1e6,
        "idle_calibrations": idle / IDLE_TIME.as_secs_f64() / calibration,
        "calibration_s": calibration,
        "reload_all_ms": milliseconds(reload), "all_up_ms": all_up.up_ms, "all_sessions_ms": all_up.session_ms,
        "reload_one_ms": milliseconds(reload_for_one), "one_up_ms": one_up.up_ms,
        "one_more_ms": milliseconds(reload_for_one) + one_up.up_ms,
    }));
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// CPU seconds of the calibration loop of `cargo xtask bench` now.
fn calibration_s() -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(measure(&[&program.to_string_lossy(), "calibrate"])?.cpu_s)
}

/// Memory of a process, in kB of 1024 bytes as the kernel counts.
#[derive(Clone, Copy, Debug)]
struct Memory {
    rss_kb: f64,
    pss_kb: f64,
}

/// The daemon that serves the clients; killed when it is dropped.
struct Server {
    daemon: Child,
    file: PathBuf,
    private_key: String,
    public_key: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Server {
    fn start(testbed: &Testbed, programs: &Programs, accounting: &CpuAccounting) -> Result<Self, String> {
        let keys = ropewalk::generate_keys(programs)?;
        let file = scratch_folder().join(format!("{DEVICE}.toml"));
        bonding::write(&file, 0o600, &configuration(&keys.private, 1))?;
        let line = format!("{} up {}", programs.ropewalk.display(), file.display());
        let log = File::create(scratch_folder().join(format!("{DEVICE}.log"))).map_err(|error| error.to_string())?;
        let mut command = accounting.in_group(&testbed.command(SERVER, &line));
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let daemon = command.spawn().map_err(|error| format!("{line}: {error}"))?;
        let server = Self { daemon, file, private_key: keys.private, public_key: keys.public };
        let begin = Instant::now();
        while ropewalk(programs, "show").is_err() {
            if begin.elapsed() > START_TIMEOUT {
                return Err("the server does not start".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Its data thread may still be starting.
        std::thread::sleep(Duration::from_secs(1));
        Ok(server)
    }

    /// Writes a configuration with this many clients; returns the time that reloading it takes.
    fn reload(&self, programs: &Programs, clients: usize) -> Result<Duration, String> {
        bonding::write(&self.file, 0o600, &configuration(&self.private_key, clients))?;
        let start = Instant::now();
        ropewalk(programs, "reload")?;
        Ok(start.elapsed())
    }

    fn memory(&self) -> Result<Memory, String> {
        let file = format!("/proc/{}/smaps_rollup", self.daemon.id());
        let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok())
                .ok_or_else(|| format!("{file}: no {name}"))
        };
        Ok(Memory { rss_kb: number("Rss:")?, pss_kb: number("Pss:")? })
    }

    /// CPU seconds of all its threads during an interval.
    fn cpu_s(&self, time: Duration) -> Result<f64, String> {
        let before = self.threads_s()?;
        std::thread::sleep(time);
        Ok(self.threads_s()? - before)
    }

    fn threads_s(&self) -> Result<f64, String> {
        let folder = format!("/proc/{}/task", self.daemon.id());
        let threads = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let nanoseconds = |thread: &Path| {
            let text = fs::read_to_string(thread.join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<f64>().ok()
        };
        Ok(threads.flatten().filter_map(|thread| nanoseconds(&thread.path())).sum::<f64>() / 1e9)
    }
}

/// Runs `ropewalk VERB DEVICE`.
fn ropewalk(programs: &Programs, verb: &str) -> Result<(), String> {
    let output = Command::new(&programs.ropewalk).args([verb, DEVICE]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ropewalk {verb}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// The server's configuration with the clients 0 to `clients`.
fn configuration(private_key: &str, clients: usize) -> String {
    let mut text = format!(
        "[interface]\nname = \"{DEVICE}\"\naddress = \"10.201.0.1/16\"\nprivate-key = \"{private_key}\"\n\
         listen-port = {}\nroutes = false\nhistory = \"off\"\n",
        ropewalk::GRE_IN_UDP_PORT
    );
    for client in 0..clients {
        let (key, address) = (simulated::private_key(client).public_key(), simulated::inner_address(client));
        let _ = write!(text, "\n[[peer]]\npublic-key = \"{key}\"\nallowed-ips = \"{address}/32\"\n");
    }
    text
}

/// A process of simulated clients; killed when it is dropped.
struct Group(Child);

/// Times that a group's clients took, from the start of their process.
#[derive(Clone, Copy, Debug)]
struct Connected {
    /// Until the last one had a session, ms.
    session_ms: f64,
    /// Until the path of the last one answered, ms.
    up_ms: f64,
}

impl Group {
    fn start(testbed: &Testbed, server_key: &str, first: usize, count: usize) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let (program, server) = (program.display(), testbed.address(0, SERVER));
        let line = format!("{program} clients {server_key} {server} {first} {count}");
        let child = testbed.command(CLIENT, &line).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        child.map(Self).map_err(|error| format!("{line}: {error}"))
    }

    /// Waits until all its clients are up; they stay.
    fn wait(&mut self) -> Result<Connected, String> {
        let mut line = String::new();
        let output = self.0.stdout.take().ok_or("the clients have no output")?;
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&line).map_err(|_| "not all clients came up".to_owned())?;
        let number = |key: &str| report[key].as_f64().unwrap_or_default();
        Ok(Connected { session_ms: number("session_ms"), up_ms: number("up_ms") })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
