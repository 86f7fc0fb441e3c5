//! MPT's wire format and Linux's own implementation of the same RFCs: FOU and GRE in a kernel of User-Mode Linux, which
//! needs no root.
//!
//! In one direction only: Debian's kernel receives GRE-in-UDP, but cannot send it (no `CONFIG_NET_FOU_IP_TUNNELS`).

use crate::tunnel_pair::program;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use testing::{Reason, skip};

const INIT: &str = include_str!("kernel.init");
const CONFIG: &str = r#"
[interface]
address = "10.77.0.1/24"
mode = "mpt"
listen-port = 4754

[[peer]]
address = "10.77.0.2"
allowed-ips = "10.77.0.2/32"

[[path]]
interface = "v0"
source = "10.1.0.1"
endpoint = "10.1.0.2"
"#;
/// Datagrams that the guest sends.
const SENT: u64 = 200;

/// Boots a guest whose init script is in `folder`, and waits until it halts.
fn boot(folder: &Path) {
    let dir = folder.display();
    let init = INIT.replace("DIR", &dir.to_string()).replace("PROGRAM", &program());
    fs::write(folder.join("init"), init).unwrap();
    fs::set_permissions(folder.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("rw0.toml"), CONFIG).unwrap();
    let console = fs::File::create(folder.join("console")).unwrap();
    let mut guest = Command::new("timeout");
    guest.args(["--kill-after=5", "180", "linux", "mem=256M", "rootfstype=hostfs", "root=/dev/root", "ro", "quiet"]);
    guest.args(["con=null", "con0=null,fd:1", &format!("init={dir}/init"), &format!("uml_dir={dir}/")]);
    guest.env("TMPDIR", folder).stdin(Stdio::null()).stderr(console.try_clone().unwrap()).stdout(console);
    guest.status().unwrap();
}

/// Field `name` of the protocol's lines in `/proc/net/snmp`: one with names, one with numbers.
fn snmp(text: &str, protocol: &str, name: &str) -> u64 {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let protocol_lines: Vec<_> = lines.iter().filter(|line| line[0] == protocol).collect();
    let index = protocol_lines[0].iter().position(|field| *field == name).unwrap();
    protocol_lines[1][index].parse().unwrap()
}

#[test]
fn linux_decapsulates_our_gre_in_udp_and_finds_its_sequence_numbers_in_order() {
    if Command::new("linux").arg("--version").output().is_err() {
        return skip(Reason::Missing, "no User-Mode Linux (`cargo xtask setup` installs it)");
    }
    let folder = std::env::temp_dir().join(format!("rw-kernel-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    boot(&folder);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (console, messages, snmp_text, devices) = (read("console"), read("messages"), read("snmp"), read("dev"));
    fs::remove_dir_all(&folder).unwrap();
    let has_amx = fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" amx_tile"));
    if has_amx && messages.is_empty() && console.contains("exitcode=0x0000000b") {
        return skip(Reason::Processor, "its first program does not start: the processor has AMX");
    }
    if messages.contains("no GRE in UDP\n") {
        return skip(Reason::Kernel, "that kernel has no FOU or no GRE");
    }
    let line =
        devices.lines().find_map(|line| line.trim().strip_prefix("gre-udp:")).unwrap_or_else(|| panic!("{messages}"));
    let received: Vec<u64> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
    // Bytes, packets, errors, drops; the host's own IPv6 packets count too.
    assert!(received[1] >= SENT, "{line}");
    assert_eq!(received[2..4], [0, 0], "{line}");
    assert_eq!(snmp(&snmp_text, "Udp:", "NoPorts"), SENT);
    assert_eq!(snmp(&snmp_text, "Udp:", "InCsumErrors"), 0);
}
