//! Forwarding, address translation and the opening of the firewall on a server.

use super::host;
use super::plan::{NewFile, Step, words};
use super::record::{Undo, read_sysctl};
use daemon::control_plane::ENROLMENT_PORT;
use daemon::speed_test::PORT as SPEED_TEST_PORT;
use ipnet::IpNet;
use std::path::{Path, PathBuf};

/// Whether IPv4 packets are forwarded, and whether ICMP redirects are accepted.
const FORWARDING: &str = "net.ipv4.ip_forward";
const ACCEPT_REDIRECTS: &str = "net.ipv4.conf.all.accept_redirects";

/// What the firewall is to let through.
#[derive(Debug)]
pub(super) struct Firewall<'a> {
    pub(super) interface: &'a str,
    /// The UDP port of the tunnel.
    pub(super) port: u16,
    /// Inner networks whose packets leave with the server's address.
    pub(super) translated: Vec<IpNet>,
    /// Whether packets of IPv6 are forwarded.
    pub(super) has_ipv6: bool,
    /// The devices of the default routes.
    pub(super) uplinks: &'a [String],
}

impl Firewall<'_> {
    /// The name of the table.
    fn table(&self) -> String {
        let name: String = self.interface.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        format!("ropewalk_{name}")
    }

    pub(super) fn rules_file(&self) -> PathBuf {
        PathBuf::from(format!("/etc/ropewalk/{}.nft", self.interface))
    }

    /// The table: translation, and no new connections from outside to the clients whose addresses are translated.
    fn rules(&self) -> String {
        let (table, device) = (self.table(), self.interface);
        let family = |network: &IpNet| if network.addr().is_ipv4() { "ip" } else { "ip6" };
        let source = |network: &IpNet| {
            format!("        {} saddr {} oifname != \"{device}\" masquerade\n", family(network), network.trunc())
        };
        let inbound = |network: &IpNet| {
            let network_text = network.trunc();
            format!(
                "        iifname != \"{device}\" oifname \"{device}\" {} daddr {network_text} ct state new drop\n",
                family(network)
            )
        };
        let sources: String = self.translated.iter().map(source).collect();
        let inbound: String = self.translated.iter().map(inbound).collect();
        format!(
            "# Of `ropewalk setup server`. The first two lines make it new each time.\n\
             table inet {table} {{}}\ndelete table inet {table}\ntable inet {table} {{\n    chain postrouting {{\n        \
             type nat hook postrouting priority srcnat;\n{sources}    }}\n    chain forward {{\n        \
             type filter hook forward priority filter;\n{inbound}    }}\n}}\n"
        )
    }

    /// The steps, and the commands before the daemon's start and after its end.
    pub(super) fn steps(&self) -> (Vec<Step>, Vec<Vec<String>>, Vec<Vec<String>>) {
        let rules = self.rules_file();
        let mut steps = vec![Step::File(NewFile::of_root(rules.clone(), 0o644, self.rules()))];
        steps.extend(self.sysctl_steps());
        let (mut start, mut stop) = (
            vec![words(&["nft", "-f", &rules.display().to_string()])],
            vec![words(&["nft", "delete", "table", "inet", &self.table()])],
        );
        if is_ufw_active() {
            steps.extend(self.ufw());
        } else if host::output(&["firewall-cmd", "--state"]).is_some_and(|text| text.trim() == "running") {
            steps.extend(self.firewalld());
        } else {
            let (open, close) = self.dropping_chains();
            start.extend(open);
            stop.extend(close);
        }
        (steps, start, stop)
    }

    fn sysctl_steps(&self) -> Vec<Step> {
        let mut keys = vec![(FORWARDING.to_owned(), "1")];
        if self.has_ipv6 {
            // A router takes no default route from router advertisements, unless it is told to.
            let advertised = |device: &&String| read_sysctl(&accept_ra(device)).is_some_and(|value| value == "1");
            keys.extend(self.uplinks.iter().filter(advertised).map(|device| (accept_ra(device), "2")));
            keys.push(("net.ipv6.conf.all.forwarding".to_owned(), "1"));
        }
        sysctl_steps(self.interface, &keys)
    }

    fn ufw(&self) -> Vec<Step> {
        let (port, device) = (format!("{}/udp", self.port), self.interface);
        let (services, speed_test) = (format!("{ENROLMENT_PORT}:{SPEED_TEST_PORT}"), SPEED_TEST_PORT.to_string());
        let rules: [&[&str]; 4] = [
            &["allow", &port],
            &["allow", "in", "on", device, "to", "any", "port", &services, "proto", "tcp"],
            &["allow", "in", "on", device, "to", "any", "port", &speed_test, "proto", "udp"],
            &["allow", "in", "on", device],
        ];
        let step = |(index, rule): (usize, &&[&str])| {
            let command: &[&str] = if index == 3 { &["ufw", "route"] } else { &["ufw"] };
            let undo = words(&[command, &["delete"], rule].concat());
            Step::Command { run: words(&[command, rule].concat()), undo: Some(Undo::Command(undo)) }
        };
        rules.iter().enumerate().map(step).collect()
    }

    fn firewalld(&self) -> Vec<Step> {
        let (port, device) = (self.port, self.interface);
        let pairs = [
            [format!("--add-port={port}/udp"), format!("--remove-port={port}/udp")],
            [format!("--zone=trusted --add-interface={device}"), format!("--zone=trusted --remove-interface={device}")],
        ];
        let line = |options: &str| -> Vec<String> {
            ["firewall-cmd", "--permanent"].into_iter().chain(options.split(' ')).map(str::to_owned).collect()
        };
        let reload = words(&["firewall-cmd", "--reload"]);
        let mut steps = vec![Step::AtRemoval(Undo::Command(reload.clone()))];
        steps.extend(
            pairs.iter().map(|[add, remove]| Step::Command { run: line(add), undo: Some(Undo::Command(line(remove))) }),
        );
        steps.push(Step::Command { run: reload, undo: None });
        steps
    }

    /// Commands that let the tunnel through chains of others that drop by default. Accepting in a table of its own does
    /// not help there: a packet passes only if every chain accepts it.
    fn dropping_chains(&self) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
        let text = host::output(&["nft", "-j", "list", "chains"]).unwrap_or_default();
        let list: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let chains = list["nftables"].as_array().into_iter().flatten().map(|object| &object["chain"]);
        let comment = comment(self.interface);
        let mut open = Vec::new();
        for chain in chains.filter(|chain| chain["policy"] == "drop") {
            let word = |key: &str| chain[key].as_str().unwrap_or_default();
            let (device, port) = (self.interface, self.port);
            let rules = match word("hook") {
                "input" => vec![
                    format!("udp dport {port} accept"),
                    format!("iifname {device} tcp dport {ENROLMENT_PORT}-{SPEED_TEST_PORT} accept"),
                    format!("iifname {device} udp dport {SPEED_TEST_PORT} accept"),
                ],
                "forward" => vec![
                    format!("iifname {device} accept"),
                    format!("oifname {device} ct state established,related accept"),
                ],
                _ => continue,
            };
            let place = format!("nft insert rule {} {} {}", word("family"), word("table"), word("name"));
            open.extend(rules.iter().map(|rule| {
                let words = place.split(' ').chain(rule.split(' ')).chain(["comment"]).map(str::to_owned);
                words.chain([format!("\"{comment}\"")]).collect::<Vec<_>>()
            }));
        }
        let program = super::service::own_program().display().to_string();
        let close = words(&[&program, "setup", "delete-rules", self.interface]);
        let closing = if open.is_empty() { vec![] } else { vec![close] };
        // Those of an earlier start that was killed go first.
        (closing.iter().cloned().chain(open).collect(), closing)
    }
}

/// The comment of rules in others' chains.
pub(super) fn comment(interface: &str) -> String {
    format!("ropewalk-{interface}")
}

/// The key of `/proc/sys` that says whether a device takes router advertisements. Its name may have dots.
fn accept_ra(device: &str) -> String {
    format!("net/ipv6/conf/{device}/accept_ra")
}

/// Steps that set keys of `/proc/sys` now and at each boot.
pub(super) fn sysctl_steps(interface: &str, keys: &[(String, &str)]) -> Vec<Step> {
    let lines: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let text = format!("# Of `ropewalk setup`.\n{lines}");
    let file = NewFile::of_root(format!("/etc/sysctl.d/60-ropewalk-{interface}.conf"), 0o644, text);
    let folder = Step::Folder { path: "/etc/sysctl.d".into(), mode: 0o755, owner: None };
    let set = keys.iter().map(|(key, value)| Step::Sysctl { key: key.clone(), value: (*value).to_owned() });
    // Linux sets it when forwarding changes (`inet_forward_change`), so it is set back after that.
    let redirects = keys.iter().any(|(key, _)| key == FORWARDING).then_some(ACCEPT_REDIRECTS);
    let redirects = redirects.and_then(|key| Some(Undo::Sysctl { key: key.to_owned(), value: read_sysctl(key)? }));
    [folder, Step::File(file)].into_iter().chain(redirects.map(Step::AtRemoval)).chain(set).collect()
}

fn is_ufw_active() -> bool {
    Path::new("/etc/ufw/ufw.conf").exists()
        && host::output(&["ufw", "status"]).is_some_and(|text| text.starts_with("Status: active"))
}
