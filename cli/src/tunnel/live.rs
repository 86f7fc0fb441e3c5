//! `check --live`: what keeps a tunnel from working here and now.

use super::target::runtime_directory;
use crate::{Failure, output};
use daemon::config::TunnelConfig;
use daemon::control_plane::{Client, examine_paths, has_strict_reverse_path, translation};
use daemon::event::EventKind;
use daemon::status::{PathState, TunnelStatus};
use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No clock that is right shows an earlier time: 2026-01-01.
const EARLIEST_TIME: Duration = Duration::from_secs(1_767_225_600);
/// The least MTU of an uplink that IPv6 works over (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;
/// Refused handshakes are of interest for this time, milliseconds.
const RECENT_MS: u64 = 300_000;

/// What was found: problems, each with its remedy, and notes.
#[derive(Default)]
struct Findings {
    problems: usize,
    text: String,
}

impl Findings {
    fn problem(&mut self, text: &str, remedy: &str) {
        self.problems += 1;
        self.text += &format!("problem: {text}\n  remedy: {remedy}\n");
    }

    fn note(&mut self, text: &str) {
        self.text += &format!("{text}\n");
    }
}

pub(super) fn check(config: &TunnelConfig) -> Result<(), Failure> {
    let mut findings = Findings::default();
    match Client::new(&runtime_directory(), &config.interface.name).status() {
        Ok(status) => running(&status, &mut findings),
        Err(_) => {
            findings.note(&format!("{} is not up: its paths are examined without it", config.interface.name));
            not_running(config, &mut findings)?;
        }
    }
    devices(config, &mut findings);
    firewall(config, &mut findings);
    clock(&mut findings);
    output::print(&findings.text)?;
    match findings.problems {
        0 => output::print("no problem found\n"),
        1 => Err(Failure::Environment("1 problem found".into())),
        count => Err(Failure::Environment(format!("{count} problems found"))),
    }
}

/// What the daemon knows.
fn running(status: &TunnelStatus, findings: &mut Findings) {
    for (peer, path) in status.paths() {
        let name = &path.name;
        match (&path.cause, path.state) {
            (Some(cause), _) => findings.problem(&format!("path {name}: {}", cause.text), &cause.remedy),
            (None, PathState::Up) => {
                let rtt = path.probe_rtt_ms.or(path.srtt_ms).map_or_else(|| "?".into(), |rtt| format!("{rtt:.1} ms"));
                findings.note(&format!("path {name}: up, RTT {rtt}, path MTU {} bytes", path.pmtu_bytes));
            }
            (None, _) if peer.handshake_attempts > 0 => {
                let attempts = peer.handshake_attempts;
                findings.note(&format!("path {name}: {attempts} handshakes are not answered yet; ask again in 10 s"));
            }
            (None, state) => findings.note(&format!("path {name}: {}", state.as_str())),
        }
    }
    let is_recent = |unix_ms: u64| status.unix_ms.saturating_sub(unix_ms) < RECENT_MS;
    let refusals = status.events.iter().filter(|event| event.kind == EventKind::HandshakeRefused);
    for event in refusals.filter(|event| is_recent(event.unix_ms)) {
        findings.problem(&event.message, event.remedy.as_deref().unwrap_or_default());
    }
}

fn not_running(config: &TunnelConfig, findings: &mut Findings) -> Result<(), Failure> {
    let paths = examine_paths(config).map_err(|error| Failure::Environment(format!("netlink: {error}")))?;
    let waits = config.peers.iter().all(|peer| peer.endpoint.is_none());
    for finding in paths {
        let name = &finding.path;
        match finding.cause {
            Some(cause) => findings.problem(&format!("path {name}: {}", cause.text), &cause.remedy),
            None => findings.note(&format!("path {name}: a datagram leaves, and nothing refuses it")),
        }
        if let Some((source, text)) = finding.source.and_then(|source| Some((source, translation(source)?))) {
            findings.note(&format!("path {name}: {source} is {text}"));
        }
    }
    if waits {
        own_addresses(findings);
    }
    Ok(())
}

/// An end that waits for its peers needs an address that they can reach.
fn own_addresses(findings: &mut Findings) {
    let addresses: Vec<IpAddr> = daemon::control_plane::own_addresses();
    let is_public = |address: &IpAddr| translation(*address).is_none() && !address.is_loopback();
    if let (Some(address), false) = (addresses.first(), addresses.iter().any(is_public)) {
        findings.note(&format!("this end waits for its peers, and has no public address: {address} is {}", {
            translation(*address).unwrap_or("a local one")
        }));
    }
}

fn devices(config: &TunnelConfig, findings: &mut Findings) {
    let devices: Vec<_> = config.paths.iter().filter_map(|path| path.interface.as_ref()).collect();
    for device in &devices {
        if devices.len() > 1 && has_strict_reverse_path(device) {
            let remedy = format!("`sysctl net.ipv4.conf.{device}.rp_filter=2`");
            findings.problem(&format!("rp_filter = 1 on {device} drops replies on all uplinks but one"), &remedy);
        }
        let mtu = std::fs::read_to_string(format!("/sys/class/net/{device}/mtu")).ok();
        if let Some(mtu) = mtu.and_then(|mtu| mtu.trim().parse::<u32>().ok()).filter(|mtu| *mtu < LEAST_MTU) {
            let remedy = format!("`ip link set {device} mtu 1500`, if the network carries it");
            findings.problem(&format!("{device} has an MTU of {mtu} bytes, less than {LEAST_MTU}"), &remedy);
        }
    }
}

/// Rules of nftables that drop what comes in on the tunnel's port. The rules of others than root cannot be read.
fn firewall(config: &TunnelConfig, findings: &mut Findings) {
    let waits = config.peers.iter().any(|peer| peer.endpoint.is_none());
    let port = config.interface.listen_port;
    if !waits || port == 0 {
        return;
    }
    let output = Command::new("nft").args(["list", "ruleset"]).output();
    let Some(rules) = output.ok().filter(|output| output.status.success()) else {
        return findings.note("the firewall's rules cannot be read: `nft list ruleset` as root");
    };
    let remedy = format!("`nft insert rule FAMILY TABLE CHAIN udp dport {port} accept`");
    if let Some(rule) = refusing_rule(&String::from_utf8_lossy(&rules.stdout), port) {
        findings.problem(&format!("the firewall lets no UDP {port} in: `{rule}`"), &remedy);
    }
}

/// The rule of an input chain that refuses UDP to `port`, or the chain's policy if no rule of it names the port.
fn refusing_rule(rules: &str, port: u16) -> Option<String> {
    for chain in rules.split("chain ").skip(1).filter(|chain| chain.contains("hook input")) {
        let lines = chain.lines().map(str::trim).take_while(|line| *line != "}");
        let words = |line: &str| line.split([' ', ',', '{', '}', ';']).map(str::to_owned).collect::<Vec<_>>();
        let names_port = |line: &&str| line.contains("udp") && words(line).iter().any(|word| *word == port.to_string());
        let own: Vec<_> = lines.clone().filter(names_port).collect();
        let refuses = |line: &&str| words(line).iter().any(|word| word == "drop" || word == "reject");
        if let Some(rule) = own.iter().find(|line| refuses(line)) {
            return Some((*rule).to_owned());
        }
        if let (true, Some(policy)) = (own.is_empty(), lines.clone().find(|line| line.contains("policy drop"))) {
            return Some(policy.to_owned());
        }
    }
    None
}

/// Handshakes carry the time, which must be later than that of the handshake before.
fn clock(findings: &mut Findings) {
    if SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|now| now < EARLIEST_TIME) {
        let text = "the clock is wrong: it is before 2026, and peers refuse handshakes older than the last one";
        findings.problem(text, "`timedatectl set-ntp true`, or `date -s`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_or_a_policy_that_refuses_the_port_is_found() {
        let chain = |policy: &str, rule: &str| {
            format!(
                "table inet f {{\n\tchain in {{\n\t\ttype filter hook input priority filter; policy {policy};\n\t\t{rule}\n\t}}\n}}\n"
            )
        };
        assert_eq!(
            refusing_rule(&chain("accept", "udp dport 4754 drop"), 4754).as_deref(),
            Some("udp dport 4754 drop")
        );
        assert_eq!(refusing_rule(&chain("accept", "udp dport 47540 drop"), 4754), None);
        assert_eq!(refusing_rule(&chain("drop", "udp dport { 53, 4754 } accept"), 4754), None);
        let policy = refusing_rule(&chain("drop", "tcp dport 22 accept"), 4754);
        assert_eq!(policy.as_deref(), Some("type filter hook input priority filter; policy drop;"));
    }
}
