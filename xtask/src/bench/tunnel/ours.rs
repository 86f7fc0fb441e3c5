//! Our own tunnel, both ends from a configuration like a person's.

use super::account::Account;
use super::bed::{Bed, LEFT, RIGHT};
use super::subject::{Carrier, Tools};
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
/// Packets that `mpt` mode puts in order over several links: what MPT's authors measured with.
const WINDOW: u32 = 1600;
/// From its start until it carries a datagram.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn start(mpt: bool, bed: &Bed, tools: &Tools, account: &Account) -> Result<Carrier, String> {
    let keys = [(); 2].map(|()| keys(tools));
    let [left, right] = keys;
    let keys = [left?, right?];
    let mut ends = Vec::new();
    for host in [RIGHT, LEFT] {
        ends.push(end(host, mpt, &keys, bed, tools, account)?);
    }
    let carrier = Carrier::tunnel(INNER[RIGHT], ends);
    if probe::answers(bed, INNER[RIGHT], PATIENCE) {
        return Ok(carrier);
    }
    let said = fs::read_to_string(log(LEFT)).unwrap_or_default();
    Err(format!("nothing comes through the tunnel; the left end's last words: {}", said.lines().last().unwrap_or("")))
}

fn end(
    host: usize,
    mpt: bool,
    keys: &[[String; 2]; 2],
    bed: &Bed,
    tools: &Tools,
    account: &Account,
) -> Result<Child, String> {
    let file = scratch().join(format!("rwb{host}.toml"));
    fs::write(&file, configuration(host, mpt, keys, bed)).map_err(|why| why.to_string())?;
    let log = File::create(log(host)).map_err(|why| why.to_string())?;
    let line = format!("{} up {}", tools.ropewalk.display(), file.display());
    let mut command = account.charge(&bed.command(host, &line));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|why| format!("{line}: {why}"))
}

/// The left end calls, over every link.
fn configuration(host: usize, mpt: bool, keys: &[[String; 2]; 2], bed: &Bed) -> String {
    let (other, calls) = (1 - host, host == LEFT || mpt);
    let mut text = format!("[interface]\nname = \"rwb{host}\"\naddress = \"{}/24\"\n", INNER[host]);
    if mpt {
        text += "mode = \"mpt\"\n";
    } else {
        let _ = writeln!(text, "private-key = \"{}\"", keys[host][0]);
    }
    if !calls {
        let _ = writeln!(text, "listen-port = {PORT}");
    }
    if mpt && bed.links() > 1 {
        let _ = write!(text, "\n[mpt]\nreorder-window = {WINDOW}\n");
    }
    text += "\n[[peer]]\n";
    let _ = if mpt {
        writeln!(text, "address = \"{}\"", INNER[other])
    } else {
        writeln!(text, "public-key = \"{}\"", keys[other][1])
    };
    let _ = writeln!(text, "allowed-ips = [\"{}/32\"]", INNER[other]);
    for link in 0..bed.links() {
        let _ = write!(
            text,
            "\n[[path]]\ninterface = \"{}\"\nsource = \"{}\"\n",
            bed.device(link),
            bed.address(link, host)
        );
        if calls {
            let _ = writeln!(text, "endpoint = \"{}:{PORT}\"", bed.address(link, other));
        }
    }
    text
}

/// A private and its public key.
fn keys(tools: &Tools) -> Result<[String; 2], String> {
    let private = piped(tools, "genkey", "")?;
    let public = piped(tools, "pubkey", &private)?;
    Ok([private, public])
}

fn piped(tools: &Tools, verb: &str, input: &str) -> Result<String, String> {
    let mut child = Command::new(&tools.ropewalk);
    child.arg(verb).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().map_err(|why| why.to_string())?;
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(|why| why.to_string())?;
    if !output.status.success() {
        return Err(format!("this build has no `ropewalk {verb}`"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn log(host: usize) -> std::path::PathBuf {
    scratch().join(format!("rwb{host}.log"))
}
