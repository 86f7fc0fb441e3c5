//! The tunnel, each end started with a configuration file.

use super::cpu_accounting::CpuAccounting;
use super::programs::Programs;
use super::running::RunningSystem;
use super::testbed::{LEFT, RIGHT, Testbed};
use super::{probe, scratch};
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Inside the tunnel: left, right.
const INNER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];
const PORT: u16 = 4754;
/// Reorder window of `mpt` mode over several links, packets: the value of MPT's authors.
const WINDOW: u32 = 1600;
/// The longest time from the start until a datagram passes.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn start(
    mpt: bool,
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<RunningSystem, String> {
    let keys = [(); 2].map(|()| keys(programs));
    let [left, right] = keys;
    let keys = [left?, right?];
    let mut ends = Vec::new();
    for host in [RIGHT, LEFT] {
        ends.push(end(host, mpt, &keys, testbed, programs, accounting)?);
    }
    let running = RunningSystem::tunnel(INNER[RIGHT], ends);
    if probe::answers(testbed, INNER[RIGHT], TIMEOUT) {
        return Ok(running);
    }
    let log = fs::read_to_string(log_file(LEFT)).unwrap_or_default();
    Err(format!("nothing comes through the tunnel; the left end's last line: {}", log.lines().last().unwrap_or("")))
}

fn end(
    host: usize,
    mpt: bool,
    keys: &[[String; 2]; 2],
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
) -> Result<Child, String> {
    let file = scratch().join(format!("rwb{host}.toml"));
    fs::write(&file, configuration(host, mpt, keys, testbed)).map_err(|why| why.to_string())?;
    let log = File::create(log_file(host)).map_err(|why| why.to_string())?;
    let line = format!("{} up {}", programs.ropewalk.display(), file.display());
    let mut command = accounting.in_group(&testbed.command(host, &line));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|why| format!("{line}: {why}"))
}

/// The configuration of one end: the left one initiates, over every link.
fn configuration(host: usize, mpt: bool, keys: &[[String; 2]; 2], testbed: &Testbed) -> String {
    let (other, initiates) = (1 - host, host == LEFT || mpt);
    let mut text = format!("[interface]\nname = \"rwb{host}\"\naddress = \"{}/24\"\n", INNER[host]);
    if mpt {
        text += "mode = \"mpt\"\n";
    } else {
        let _ = writeln!(text, "private-key = \"{}\"", keys[host][0]);
    }
    if !initiates {
        let _ = writeln!(text, "listen-port = {PORT}");
    }
    if mpt && testbed.links() > 1 {
        let _ = write!(text, "\n[mpt]\nreorder-window = {WINDOW}\n");
    }
    text += "\n[[peer]]\n";
    let _ = if mpt {
        writeln!(text, "address = \"{}\"", INNER[other])
    } else {
        writeln!(text, "public-key = \"{}\"", keys[other][1])
    };
    let _ = writeln!(text, "allowed-ips = [\"{}/32\"]", INNER[other]);
    for link in 0..testbed.links() {
        let _ = write!(
            text,
            "\n[[path]]\ninterface = \"{}\"\nsource = \"{}\"\n",
            testbed.device(link),
            testbed.address(link, host)
        );
        if initiates {
            let _ = writeln!(text, "endpoint = \"{}:{PORT}\"", testbed.address(link, other));
        }
    }
    text
}

/// A private and its public key.
fn keys(programs: &Programs) -> Result<[String; 2], String> {
    let private = piped(programs, "genkey", "")?;
    let public = piped(programs, "pubkey", &private)?;
    Ok([private, public])
}

fn piped(programs: &Programs, verb: &str, input: &str) -> Result<String, String> {
    let mut child = Command::new(&programs.ropewalk);
    child.arg(verb).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().map_err(|why| why.to_string())?;
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(|why| why.to_string())?;
    if !output.status.success() {
        return Err(format!("this build has no `ropewalk {verb}`"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn log_file(host: usize) -> std::path::PathBuf {
    scratch().join(format!("rwb{host}.log"))
}
