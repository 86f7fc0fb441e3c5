//! Starts the tunnel's daemons on both hosts of a testbed, each with a configuration file.

use super::cpu_accounting::CpuAccounting;
use super::programs::Programs;
use super::running::RunningSystem;
use super::testbed::{CLIENT, SERVER, Testbed};
use super::{probe, scratch_folder};
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Inner addresses of the tunnel's client and server.
pub(super) const INNER_ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];
/// The inner address of an attacker.
pub(super) const ATTACKER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 3);
/// UDP port of the tunnel (RFC 8086).
pub(super) const GRE_IN_UDP_PORT: u16 = 4754;
/// Reorder window of `mpt` mode over several links, packets: the value of MPT's authors.
const REORDER_WINDOW: u32 = 1600;
/// Maximum time from the start of the daemons until the tunnel forwards a datagram.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

/// How the tunnel carries TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// As encrypted packets.
    Packets,
    /// As relayed connections.
    Relay,
    /// As packets in the clear, in MPT's format.
    Mpt,
}

/// Both ends with a path over every link.
pub(super) fn start(
    mode: Mode,
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<RunningSystem, String> {
    let keys = [generate_keys(programs)?, generate_keys(programs)?];
    let setup = Setup { mode, keys: &keys, links: testbed.links(), attacker: None, scheduler: None };
    start_both(&setup, testbed, programs, accounting)
}

/// As [`start`], encrypted, with a real-time class and a scheduler.
pub(super) fn start_with_class(
    scheduler: &str,
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<RunningSystem, String> {
    let keys = [generate_keys(programs)?, generate_keys(programs)?];
    let links = testbed.links();
    let setup = Setup { mode: Mode::Packets, keys: &keys, links, attacker: None, scheduler: Some(scheduler) };
    start_both(&setup, testbed, programs, accounting)
}

/// As [`start`], but the last link is left to an attacker, which is a peer of the server with a separate inner address.
/// Returns also its private key and the server's public key.
pub(super) fn start_with_attacker(
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<(RunningSystem, [String; 2]), String> {
    let keys = [generate_keys(programs)?, generate_keys(programs)?];
    let attacker = generate_keys(programs)?;
    let setup = Setup {
        mode: Mode::Packets,
        keys: &keys,
        links: testbed.links() - 1,
        attacker: Some(&attacker.public),
        scheduler: None,
    };
    let running = start_both(&setup, testbed, programs, accounting)?;
    Ok((running, [attacker.private, keys[SERVER].public.clone()]))
}

/// The contents of the configurations of both ends.
struct Setup<'a> {
    mode: Mode,
    keys: &'a [KeyPair; 2],
    /// The links that have a path: the first ones.
    links: usize,
    /// The public key of a further peer of the server.
    attacker: Option<&'a str>,
    /// The scheduler of a tunnel with a real-time class; without a class the default one.
    scheduler: Option<&'a str>,
}

fn start_both(
    setup: &Setup<'_>,
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<RunningSystem, String> {
    for host in [SERVER, CLIENT] {
        write_configuration(host, setup, testbed)?;
    }
    start_configured(testbed, programs, accounting)
}

/// Both ends, as their files configure them.
pub(super) fn start_configured(
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<RunningSystem, String> {
    let mut daemons = Vec::new();
    for host in [SERVER, CLIENT] {
        daemons.push(start_daemon(host, testbed, programs, accounting)?);
    }
    let running = RunningSystem::tunnel(INNER_ADDRESSES[SERVER], daemons);
    if probe::is_reachable(testbed, INNER_ADDRESSES[SERVER], STARTUP_TIMEOUT) {
        return Ok(running);
    }
    let log = fs::read_to_string(log_file(CLIENT)).unwrap_or_default();
    Err(format!("no packet comes through the tunnel; the client's last line: {}", log.lines().last().unwrap_or("")))
}

/// Writes the configuration of one host.
fn write_configuration(host: usize, setup: &Setup<'_>, testbed: &Testbed) -> Result<(), String> {
    let file = configuration_file(host);
    // It holds a key: the daemon refuses a file that others may read.
    let _ = fs::remove_file(&file);
    let options = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&file);
    let written = options.and_then(|mut opened| opened.write_all(configuration(host, setup, testbed).as_bytes()));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

/// Starts the daemon of one host.
fn start_daemon(
    host: usize,
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<Child, String> {
    let file = configuration_file(host);
    let log = File::create(log_file(host)).map_err(|error| error.to_string())?;
    let command_line = format!("{} {} up {}", programs.wrapper, programs.ropewalk.display(), file.display());
    let mut command = accounting.in_group(&testbed.command(host, &command_line));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|error| format!("{command_line}: {error}"))
}

/// The configuration of one host, with a path over every link. The client initiates; in `mpt` mode both do.
fn configuration(host: usize, setup: &Setup<'_>, testbed: &Testbed) -> String {
    let Setup { mode, keys, links, attacker, scheduler } = *setup;
    let mpt = mode == Mode::Mpt;
    let (other, initiates) = (1 - host, host == CLIENT || mpt);
    let mut text =
        format!("[interface]\nname = \"{}\"\naddress = \"{}/24\"\n", interface_name(host), INNER_ADDRESSES[host]);
    if mpt {
        text += "mode = \"mpt\"\n";
    } else {
        let _ = writeln!(text, "private-key = \"{}\"", keys[host].private);
    }
    if !initiates {
        let _ = writeln!(text, "listen-port = {GRE_IN_UDP_PORT}");
    }
    if mpt && links > 1 {
        let _ = write!(text, "\n[mpt]\nreorder-window = {REORDER_WINDOW}\n");
    }
    if mode == Mode::Relay {
        text += "\n[tunnel]\nrelay = \"tcp\"\n";
    }
    if let Some(scheduler) = scheduler {
        let _ = write!(text, "\n[tunnel]\nscheduler = \"{scheduler}\"\n\n[class.realtime]\n");
    }
    text += "\n[[peer]]\n";
    let _ = if mpt {
        writeln!(text, "address = \"{}\"", INNER_ADDRESSES[other])
    } else {
        writeln!(text, "public-key = \"{}\"", keys[other].public)
    };
    let _ = writeln!(text, "allowed-ips = [\"{}/32\"]", INNER_ADDRESSES[other]);
    if let Some(public) = attacker.filter(|_| host == SERVER) {
        let _ = write!(text, "\n[[peer]]\npublic-key = \"{public}\"\nallowed-ips = [\"{ATTACKER_ADDRESS}/32\"]\n");
    }
    for link in 0..links {
        let _ = write!(
            text,
            "\n[[path]]\ninterface = \"{}\"\nsource = \"{}\"\n",
            testbed.device(link),
            testbed.address(link, host)
        );
        if initiates {
            let _ = writeln!(text, "endpoint = \"{}:{GRE_IN_UDP_PORT}\"", testbed.address(link, other));
        }
    }
    text
}

/// A private key and its public key.
pub(super) struct KeyPair {
    pub(super) private: String,
    pub(super) public: String,
}

pub(super) fn generate_keys(programs: &Programs) -> Result<KeyPair, String> {
    let private = run_with_stdin(programs, "genkey", "")?;
    let public = run_with_stdin(programs, "pubkey", &private)?;
    Ok(KeyPair { private, public })
}

fn run_with_stdin(programs: &Programs, subcommand: &str, input: &str) -> Result<String, String> {
    let mut child = Command::new(&programs.ropewalk);
    child.arg(subcommand).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().map_err(|error| error.to_string())?;
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("this build has no `ropewalk {subcommand}`"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Name of the tunnel's interface on a host.
fn interface_name(host: usize) -> String {
    format!("rwb{host}")
}

/// The configuration of the tunnel on a host.
pub(super) fn configuration_file(host: usize) -> std::path::PathBuf {
    scratch_folder().join(format!("{}.toml", interface_name(host)))
}

fn log_file(host: usize) -> std::path::PathBuf {
    scratch_folder().join(format!("{}.log", interface_name(host)))
}
