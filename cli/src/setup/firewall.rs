//! Kernel settings of a setup, and rules for a firewall with its own commands: ufw, firewalld. All other nftables rules are
//! in `ruleset`, and `keep` keeps them in place.

use super::host;
use super::plan::{NewFile, Step, words};
use super::record::{Undo, read_sysctl};
use daemon::control_plane::ENROLMENT_PORT;
use daemon::speed_test::PORT as SPEED_TEST_PORT;
use std::path::Path;

/// Whether IPv4 packets are forwarded, and whether ICMP redirects are accepted.
const FORWARDING: &str = "net.ipv4.ip_forward";
const ACCEPT_REDIRECTS: &str = "net.ipv4.conf.all.accept_redirects";

/// The traffic that the firewall has to accept.
#[derive(Debug)]
pub(super) struct Firewall<'a> {
    pub(super) interface: &'a str,
    /// The UDP port of the tunnel.
    pub(super) port: u16,
}

impl Firewall<'_> {
    /// The steps for a firewall that would remove rules of others from its chains.
    pub(super) fn steps(&self) -> Vec<Step> {
        if is_ufw_active() {
            self.ufw()
        } else if host::output(&["firewall-cmd", "--state"]).is_some_and(|text| text.trim() == "running") {
            self.firewalld()
        } else {
            Vec::new()
        }
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
}

/// The settings of a host that forwards: those of IPv4, and of IPv6 if the host has it. `uplinks` that get their IPv6
/// default route from router advertisements keep it.
pub(super) fn forwarding(has_ipv6: bool, uplinks: &[String]) -> Vec<(String, String)> {
    let mut keys = vec![(FORWARDING.to_owned(), "1".to_owned())];
    if has_ipv6 {
        // A router takes no default route from router advertisements, unless it is configured to.
        let advertised = |device: &&String| read_sysctl(&accept_ra(device)).is_some_and(|value| value == "1");
        keys.extend(uplinks.iter().filter(advertised).map(|device| (accept_ra(device), "2".to_owned())));
        keys.push(("net.ipv6.conf.all.forwarding".to_owned(), "1".to_owned()));
    }
    keys
}

/// The key of `/proc/sys` that sets whether a device takes router advertisements. Its name may have dots.
fn accept_ra(device: &str) -> String {
    format!("net/ipv6/conf/{device}/accept_ra")
}

/// Steps that set keys of `/proc/sys` now and at each boot.
pub(super) fn sysctl_steps(interface: &str, keys: &[(String, String)]) -> Vec<Step> {
    let lines: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let text = format!("# Of `ropewalk setup`.\n{lines}");
    let file = NewFile::of_root(format!("/etc/sysctl.d/60-ropewalk-{interface}.conf"), 0o644, text);
    let folder = Step::Folder { path: "/etc/sysctl.d".into(), mode: 0o755, owner: None };
    let set = keys.iter().map(|(key, value)| Step::Sysctl { key: key.clone(), value: value.clone() });
    // Linux sets it when forwarding changes (`inet_forward_change`), so it is restored after that.
    let redirects = keys.iter().any(|(key, _)| key == FORWARDING).then_some(ACCEPT_REDIRECTS);
    let redirects = redirects.and_then(|key| Some(Undo::Sysctl { key: key.to_owned(), value: read_sysctl(key)? }));
    [folder, Step::File(file)].into_iter().chain(redirects.map(Step::AtRemoval)).chain(set).collect()
}

fn is_ufw_active() -> bool {
    Path::new("/etc/ufw/ufw.conf").exists()
        && host::output(&["ufw", "status"]).is_some_and(|text| text.starts_with("Status: active"))
}
