//! `check --live`: finds the faults that currently keep a tunnel from working.

use super::beyond;
use super::target::runtime_directory;
use crate::{Failure, output, setup};
use daemon::config::{TunnelConfig, unix_time};
use daemon::control_plane::{
    Client, PathFinding, examine_paths, has_strict_reverse_path, kept_handshake_time, left_out_uplinks,
    overlapping_networks, routed_devices, second_translator, translation, with_present_uplinks,
};
use daemon::event::{Event, EventKind, EventLevel};
use daemon::status::{Notice, PathState, PathStatus, PeerStatus, TunnelStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A correct clock never shows an earlier time: 2026-01-01.
const EARLIEST_TIME: Duration = Duration::from_secs(1_767_225_600);
/// The minimum MTU of an uplink for IPv6 (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;
/// The time by which a file's date may be in the future: another machine's clock may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(3600);
/// The time by which setting back a clock is not unusual, as by NTP.
const CLOCK_STEP: Duration = Duration::from_secs(300);
/// The time within which a daemon knows the state of each path: a handshake and its repetitions, and the causes that it then
/// finds.
const SETTLE_TIME: Duration = Duration::from_secs(10);
/// The time for which a client may still retry the key of its token, milliseconds.
const ENROLMENT_MS: u64 = 60_000;
/// The time for which refused handshakes are reported, milliseconds.
const RECENT_MS: u64 = 300_000;

/// The findings: problems, each with its remedy, and notes.
#[derive(Default)]
pub(super) struct Findings {
    problems: usize,
    text: String,
}

impl Findings {
    pub(super) fn problem(&mut self, text: &str, remedy: &str) {
        self.problems += 1;
        self.text += &format!("problem: {text}\n  remedy: {remedy}\n");
    }

    pub(super) fn has_no_problem(&self) -> bool {
        self.problems == 0
    }

    pub(super) fn text(&self) -> &str {
        self.text.trim_end()
    }

    fn notice(&mut self, notice: &Notice) {
        match notice.level {
            EventLevel::Info => self.note(&format!("{}\n  remedy: {}", notice.text, notice.remedy)),
            EventLevel::Warn | EventLevel::Error => self.problem(&notice.text, &notice.remedy),
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        self.text += &format!("{text}\n");
    }
}

pub(super) fn check(config: &TunnelConfig, file: &Path) -> Result<(), Failure> {
    let mut findings = Findings::default();
    let netlink = |error: std::io::Error| Failure::Environment(format!("netlink: {error}"));
    let config = &with_present_uplinks(config.clone()).map_err(netlink)?;
    let client = Client::new(&runtime_directory(), &config.interface.name);
    let status = settled_status(&client);
    let paths = examine_paths(config).map_err(netlink)?;
    match &status {
        Some(status) => running(status, &client, config, &mut findings),
        None => {
            let text = format!("{} is not up: its paths are examined without it", config.interface.name);
            if setup::is_set_up(&config.interface.name) {
                findings.problem(&text, &start_command(&config.interface.name, file));
            } else {
                findings.note(&text);
            }
            not_running(&paths, &mut findings);
        }
    }
    uplinks(config, status.as_ref(), &mut findings).map_err(netlink)?;
    paths.iter().for_each(|finding| translations(finding, &mut findings));
    if config.peers.iter().all(|peer| peer.endpoint.is_none()) {
        own_addresses(&mut findings);
    }
    overlapping_networks(config).iter().for_each(|notice| findings.notice(notice));
    devices(config, &mut findings);
    beyond::promises(&config.interface.name, &mut findings);
    if let Some(status) = &status {
        beyond::unallowed(status, &mut findings);
        beyond::ask(status, &mut findings);
    }
    firewall(config, &mut findings);
    clock(file, &config.interface.name, &mut findings);
    output::print(&findings.text)?;
    match findings.problems {
        0 if status.is_none() => output::print("no problem found before its start\n"),
        0 => output::print("no problem found\n"),
        1 => Err(Failure::Environment("1 problem found".into())),
        count => Err(Failure::Environment(format!("{count} problems found"))),
    }
}

/// The command that starts a tunnel made by the setup.
fn start_command(interface: &str, file: &Path) -> String {
    if Path::new("/run/systemd/system").is_dir() {
        return format!("`systemctl start ropewalk@{interface}`");
    }
    format!("`ropewalk up {}`", file.display())
}

/// The status of a daemon that knows whether each of its paths works. After a start and after a change it does not know yet:
/// a DHCP client is busy, or the first handshakes are under way. `None` if it does not run.
fn settled_status(client: &Client) -> Option<TunnelStatus> {
    let start = Instant::now();
    loop {
        let status = client.status().ok()?;
        let is_young = status.uptime_s < SETTLE_TIME.as_secs_f64();
        let is_known =
            |path: &PathStatus| path.state == PathState::Up || path.opened_by_peer || path.cause.is_some() && !is_young;
        let is_settled = status.paths().all(|(_, path)| is_known(path));
        if is_settled || start.elapsed() > SETTLE_TIME {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The findings of the daemon.
fn running(status: &TunnelStatus, client: &Client, config: &TunnelConfig, findings: &mut Findings) {
    for (peer, path) in status.paths() {
        let name = &path.name;
        match (&path.cause, path.state) {
            (Some(cause), _) => findings.problem(&format!("path {name}: {}", cause.text), &cause.remedy),
            (None, PathState::Up) => {
                let rtt = path.probe_rtt_ms.or(path.srtt_ms).map_or_else(|| "?".into(), |rtt| format!("{rtt:.1} ms"));
                let pmtu = path.pmtu_bytes.map_or_else(|| "?".into(), |bytes| bytes.to_string());
                findings.note(&format!("path {name}: up, RTT {rtt}, path MTU {pmtu} bytes"));
            }
            (None, _) if peer.handshake_attempts > 0 => {
                let attempts = peer.handshake_attempts;
                findings.note(&format!(
                    "path {name}: not known yet, {attempts} handshakes have not been answered; ask again in 10 s"
                ));
            }
            (None, state) => findings.note(&format!("path {name}: {}", state.as_str())),
        }
    }
    for (text, remedy) in status.peers.iter().filter_map(PeerStatus::shared_key) {
        findings.problem(&text, &remedy);
    }
    if let Some((text, remedy)) = super::status::outdated(status) {
        findings.problem(&text, &remedy);
    }
    refusals(status, client, config, findings);
}

/// Handshakes that were refused: a problem while this end waits for a peer, otherwise those of somebody else.
fn refusals(status: &TunnelStatus, client: &Client, config: &TunnelConfig, findings: &mut Findings) {
    let events = client.request("GET", "/v1/events?since=0", "").ok();
    let events: Vec<Event> = events.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    // The one-time key of a token opens no session after its use.
    let is_of_enrolment = |event: &Event| {
        let mut enrolments = events.iter().filter(|other| other.kind == EventKind::Enrolment);
        enrolments.any(|other| event.unix_ms.abs_diff(other.unix_ms) < ENROLMENT_MS)
    };
    let has_token = |peer: &PeerStatus| {
        let configured =
            config.peers.iter().find(|other| other.public_key.map(|key| key.to_string()) == peer.public_key);
        configured.is_some_and(|peer| peer.token_expires.is_some())
    };
    let has_session = |peer: &PeerStatus| peer.paths.iter().any(|path| path.state == PathState::Up);
    let is_waiting = status.peers.iter().any(|peer| !has_session(peer) && !has_token(peer));
    let is_recent = |event: &&Event| status.unix_ms.saturating_sub(event.unix_ms) < RECENT_MS;
    for event in events.iter().filter(|event| event.kind == EventKind::HandshakeRefused).filter(is_recent) {
        let age_s = status.unix_ms.saturating_sub(event.unix_ms) / 1000;
        if is_waiting && !is_of_enrolment(event) {
            findings.problem(&event.message, event.remedy.as_deref().unwrap_or_default());
        } else {
            let text = &event.message;
            findings.note(&format!("{age_s} s ago {text}; no problem: every expected peer has a session"));
        }
    }
}

fn not_running(paths: &[PathFinding], findings: &mut Findings) {
    for finding in paths {
        let name = &finding.path;
        match &finding.cause {
            Some(cause) => findings.problem(&format!("path {name}: {}", cause.text), &cause.remedy),
            None => findings.note(&format!("path {name}: a datagram leaves, and is not refused")),
        }
    }
}

/// With `uplinks`: reports that there is none, and the devices that are left out.
fn uplinks(config: &TunnelConfig, status: Option<&TunnelStatus>, findings: &mut Findings) -> std::io::Result<()> {
    let paths = status.iter().flat_map(|status| status.paths()).map(|(_, path)| path.name.clone());
    // Networks behind this host are not uplinks.
    let client = setup::client_promises(&config.interface.name);
    let behind = client.into_iter().flat_map(|client| client.lans).map(|lan| lan.device);
    let left_out = left_out_uplinks(config, &paths.chain(behind).collect::<Vec<_>>())?;
    if config.interface.uplinks.is_some() && config.paths.is_empty() {
        let remedy = left_out
            .first()
            .map_or("`ip route add default via GATEWAY dev DEVICE metric 700`", |notice| &notice.remedy);
        findings.problem("there is no path: no device that may be an uplink has a default route", remedy);
    }
    left_out.iter().for_each(|notice| findings.notice(notice));
    Ok(())
}

/// The findings about address translation on a path.
fn translations(PathFinding { path, source, routers, .. }: &PathFinding, findings: &mut Findings) {
    let Some((source, text)) = source.and_then(|source| Some((source, translation(source)?))) else { return };
    findings.note(&format!("path {path}: {source} is {text}"));
    if let Some(second) = second_translator(source, routers) {
        findings.note(&format!(
            "path {path}: probably double NAT: behind the router {} is another one without a public address, {second}. A \
             client works anyway; a server needs its UDP port forwarded by both, or the inner router made a bridge",
            routers[0]
        ));
    }
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
    let mut devices: Vec<String> = config.paths.iter().filter_map(|path| path.interface.clone()).collect();
    if waits_for_peers(config) {
        // Peers may arrive by any of them.
        let routed = routed_devices().unwrap_or_default().into_iter().filter(|device| device.has_ipv4);
        devices.extend(routed.map(|device| device.name).filter(|name| *name != config.interface.name));
    }
    devices.sort();
    devices.dedup();
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

fn waits_for_peers(config: &TunnelConfig) -> bool {
    config.peers.iter().any(|peer| peer.endpoint.is_none())
}

/// Rules of nftables that drop what comes in on the tunnel's port. Only root can read the rules.
fn firewall(config: &TunnelConfig, findings: &mut Findings) {
    let port = config.interface.listen_port;
    if !waits_for_peers(config) || port == 0 {
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

/// The rule of an input chain that refuses UDP to `port`, or the chain's policy if no rule names the port: of the chain, or of
/// one that it jumps to, as ufw's and firewalld's do.
fn refusing_rule(rules: &str, port: u16) -> Option<String> {
    let words = |line: &str| line.split([' ', ',', '{', '}', ';']).map(str::to_owned).collect::<Vec<_>>();
    let names_port = |line: &&str| line.contains("udp") && words(line).iter().any(|word| *word == port.to_string());
    let refuses = |line: &&&str| words(line).iter().any(|word| word == "drop" || word == "reject");
    for table in rules.split("\ntable ") {
        let chains: BTreeMap<&str, Vec<&str>> = table.split("chain ").skip(1).filter_map(chain).collect();
        for input in chains.values().filter(|lines| lines.iter().any(|line| line.contains("hook input"))) {
            let own: Vec<&str> = reached(&chains, input).into_iter().filter(names_port).collect();
            if let Some(rule) = own.iter().find(refuses) {
                return Some((*rule).to_owned());
            }
            if let (true, Some(policy)) = (own.is_empty(), input.iter().find(|line| line.contains("policy drop"))) {
                return Some((*policy).to_owned());
            }
        }
    }
    None
}

/// The name and the lines of a chain.
fn chain(text: &str) -> Option<(&str, Vec<&str>)> {
    let lines = text.lines().skip(1).map(str::trim).take_while(|line| *line != "}").collect();
    Some((text.lines().next()?.trim_end_matches('{').trim(), lines))
}

/// The lines of a chain, and of those that it leads to.
fn reached<'r>(chains: &BTreeMap<&str, Vec<&'r str>>, start: &[&'r str]) -> Vec<&'r str> {
    let (mut lines, mut seen) = (start.to_vec(), BTreeSet::new());
    let mut next = 0;
    while let Some(line) = lines.get(next).copied() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let targets = words.windows(2).filter(|pair| ["jump", "goto"].contains(&pair[0])).map(|pair| pair[1]);
        for target in targets.filter(|target| seen.insert(*target)).collect::<Vec<_>>() {
            lines.extend(chains.get(target).into_iter().flatten());
        }
        next += 1;
    }
    lines
}

/// Handshakes carry the time, which must be later than that of the previous handshake.
fn clock(file: &Path, interface: &str, findings: &mut Findings) {
    let remedy = "`timedatectl set-ntp true`, or `date -s`";
    let refuse = "peers refuse handshakes that are older than the last one";
    let now = SystemTime::now();
    if now.duration_since(UNIX_EPOCH).is_ok_and(|now| now < EARLIEST_TIME) && kept_handshake_time(interface).is_none() {
        return findings.problem(&format!("the clock is wrong: it is before 2026, and {refuse}"), remedy);
    }
    let kept = kept_handshake_time(interface);
    if let Some((state, time)) = kept.filter(|(_, time)| Duration::from_secs(unix_time()) + CLOCK_STEP < *time) {
        let behind_s = time.as_secs().saturating_sub(unix_time());
        let behind = match behind_s {
            0..7200 => format!("{} min", behind_s / 60),
            7200..172_800 => format!("{} h", behind_s / 3600),
            _ => format!("{} days", behind_s / 86_400),
        };
        let text = format!(
            "the clock is wrong: it is {behind} behind the time of the latest handshakes ({}). Handshakes count on from there, \
             so the tunnel works anyway",
            state.display()
        );
        return findings.problem(&text, remedy);
    }
    let written = std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    let ahead = written.and_then(|written| written.duration_since(now).ok()).filter(|ahead| *ahead > CLOCK_TOLERANCE);
    if let Some(ahead) = ahead {
        let hours = ahead.as_secs() / 3600;
        let text = format!("the clock is wrong: {} was written {hours} h later than now, and {refuse}", file.display());
        findings.problem(&text, remedy);
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

    /// As in ufw: the rule of a port is in a chain to which the input chain leads over another.
    #[test]
    fn a_rule_counts_where_the_input_chain_jumps_to() {
        let rules = |rule: &str| {
            format!(
                "table ip filter {{\n\tchain user {{\n\t\t{rule}\n\t}}\n\n\tchain before {{\n\t\tcounter packets 1 bytes 2 jump user\n\t\tjump before\n\t}}\n\n\tchain INPUT {{\n\t\t\
                 type filter hook input priority filter; policy drop;\n\t\tcounter jump before\n\t}}\n}}\n\
                 table ip6 filter {{\n\tchain user {{\n\t\tudp dport 4754 drop\n\t}}\n}}\n"
            )
        };
        assert_eq!(refusing_rule(&rules("udp dport 4754 counter accept"), 4754), None);
        assert_eq!(refusing_rule(&rules("udp dport 4754 drop"), 4754).as_deref(), Some("udp dport 4754 drop"));
        assert!(refusing_rule(&rules("tcp dport 22 accept"), 4754).is_some_and(|rule| rule.contains("policy drop")));
    }
}
