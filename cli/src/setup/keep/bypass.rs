//! Routes for traffic that does not use the tunnel: a table with the default routes of the uplinks, and rules that lead to
//! it.

use super::super::host;
use super::super::promises::{self, Bypass, Protocol};
use super::examine::{Fault, FaultKind, Wanted, start_command};
use ipnet::IpNet;
use std::fmt::Write as _;

/// The ports that a captive portal needs: DNS and web pages.
pub(super) const PORTAL: [(Protocol, u16); 3] = [(Protocol::Tcp, 80), (Protocol::Tcp, 443), (Protocol::Udp, 53)];
/// The first of the table numbers that the daemon uses for copies (`policy_routing`).
const FIRST_TABLE: u32 = 0x5200_0000;
/// The first priority: before the daemon's rules and the main table.
const FIRST_PRIORITY: u32 = 31_000;

/// The numbers of a tunnel, from a hash of its name (FNV-1a).
fn numbers(interface: &str) -> (u32, u32) {
    let hash = strings::fnv1a_32(interface.bytes());
    (FIRST_TABLE | 0x0080_0000 | (hash & 0x007f_ffff), FIRST_PRIORITY + hash % 400 * 2)
}

/// The selectors of `ip rule` of one family.
fn selectors(wanted: &Wanted, is_ipv4: bool) -> Vec<String> {
    let portal: &[(Protocol, u16)] = if wanted.portal_s().is_some() { &PORTAL } else { &[] };
    let portal = portal.iter().map(|(protocol, port)| Bypass::Port(*protocol, *port));
    let all = wanted.promises.client.bypass.iter().cloned().chain(portal);
    all.filter_map(|bypass| match bypass {
        Bypass::Network(network) => (network.addr().is_ipv4() == is_ipv4).then(|| format!("to {network}")),
        // By its number: `ip` looks names up in `/etc/protocols`, which small systems do not have.
        Bypass::Port(protocol, port) => Some(format!("ipproto {} dport {port}", protocol.number())),
        Bypass::Device(device) => Some(format!("iif {device}")),
    })
    .collect()
}

fn family(is_ipv4: bool) -> &'static str {
    if is_ipv4 { "-4" } else { "-6" }
}

/// The default routes of the uplinks as `ip` shows and accepts them.
fn default_routes(wanted: &Wanted, is_ipv4: bool) -> Vec<String> {
    let text = host::output(&["ip", family(is_ipv4), "route", "show", "default"]).unwrap_or_default();
    let own = format!("dev {}", wanted.interface);
    let is_usable = |line: &&str| line.starts_with("default ") && !line.contains(&own) && !line.contains("linkdown");
    let lines = text.lines().map(str::trim).filter(is_usable);
    // Words that `ip` shows for a learned route and does not accept.
    let clean = |line: &str| {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let end = words.iter().position(|word| ["expires", "error", "hoplimit"].contains(word)).unwrap_or(words.len());
        words[..end].join(" ")
    };
    lines.map(clean).collect()
}

/// Whether rules and routes are as they should be.
pub(super) fn fault(wanted: &Wanted) -> Option<Fault> {
    let (table, priority) = numbers(&wanted.interface);
    let is_right = |is_ipv4: bool| {
        let selectors = selectors(wanted, is_ipv4);
        let rules = host::output(&["ip", family(is_ipv4), "rule", "show"]).unwrap_or_default();
        let own = rules.lines().filter(|line| is_own_rule(line, priority)).count();
        if own != selectors.len() * 2 {
            return false;
        }
        let table = table.to_string();
        let routes = host::output(&["ip", family(is_ipv4), "route", "show", "table", &table]).unwrap_or_default();
        let count = routes.lines().filter(|line| line.starts_with("default ")).count();
        count == if selectors.is_empty() { 0 } else { default_routes(wanted, is_ipv4).len() }
    };
    (!(is_right(true) && is_right(false))).then(|| Fault {
        kind: FaultKind::Bypass,
        // Default routes come and go with the uplinks.
        is_expected: true,
        text: "the routes of what bypasses the tunnel are missing".into(),
        remedy: format!("{} makes them", start_command(&wanted.interface)),
    })
}

fn is_own_rule(line: &str, priority: u32) -> bool {
    let number = line.split(':').next().and_then(|text| text.trim().parse::<u32>().ok());
    number.is_some_and(|number| number == priority || number == priority + 1)
}

/// Routes of this host that lead around a tunnel that is to carry everything: a lease may have made them.
pub(super) fn around(wanted: &Wanted) -> Vec<Fault> {
    let client = &wanted.promises.client;
    let is_exclusive = wanted.surroundings.is_exclusive;
    let routes = |family| host::output(&["ip", family, "route", "show"]).unwrap_or_default();
    let text = [routes("-4"), routes("-6")].concat();
    let own = format!(" dev {} ", wanted.interface);
    let network = |line: &str| promises::network(line.split_whitespace().next()?).ok();
    // Their metric is the smallest.
    let own: Vec<IpNet> = text.lines().filter(|line| line.contains(&own)).filter_map(network).collect();
    let is_known = |network: IpNet, device: &str| {
        let is_bypassed = |bypass: &Bypass| matches!(bypass, Bypass::Network(own) if own.contains(&network));
        let is_local = !is_exclusive || client.local_networks;
        own.contains(&network)
            || client.lans.iter().any(|lan| lan.device == device)
            || client.bypass.iter().any(is_bypassed)
            || is_local && !host::is_public(network.addr())
    };
    let effect = if is_exclusive { "packets there are refused" } else { "packets there leave outside the tunnel" };
    let fault = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1).copied());
        let (network, device) = (network(line)?, after("dev")?);
        after("via").filter(|_| network.prefix_len() > 1 && !is_known(network, device)).map(|router| Fault {
            kind: FaultKind::Keeper,
            is_expected: false,
            text: format!("a route leads {network} around the tunnel, by {device} to {router}: {effect}"),
            remedy: format!(
                "`ip route del {network} via {router} dev {device}`; for good, `UseRoutes=no` and `RoutesToDNS=no` of networkd \
                 if its lease makes it"
            ),
        })
    };
    if wanted.takes_all { text.lines().filter_map(fault).collect() } else { Vec::new() }
}

/// Replaces all rules and routes.
pub(super) fn apply(wanted: &Wanted) -> Result<(), String> {
    remove(&wanted.interface);
    wanted.open_portal()?;
    let (table, priority) = numbers(&wanted.interface);
    for is_ipv4 in [true, false] {
        let selectors = selectors(wanted, is_ipv4);
        if selectors.is_empty() {
            continue;
        }
        let mut batch = String::new();
        for route in default_routes(wanted, is_ipv4) {
            let _ = writeln!(batch, "route add {route} table {table}");
        }
        for selector in selectors {
            // Networks to which this host has a route other than a default route come first, except the tunnel's two halves
            // of the default route.
            let _ = writeln!(batch, "rule add pref {priority} {selector} lookup main suppress_prefixlength 1");
            let _ = writeln!(batch, "rule add pref {} {selector} lookup {table}", priority + 1);
        }
        host::run_with_input(&["ip", family(is_ipv4), "-force", "-batch", "-"], &batch)?;
    }
    Ok(())
}

/// Removes them; missing ones are not an error.
pub(super) fn remove(interface: &str) {
    let (table, priority) = numbers(interface);
    for is_ipv4 in [true, false] {
        let rules = host::output(&["ip", family(is_ipv4), "rule", "show"]).unwrap_or_default();
        for line in rules.lines().filter(|line| is_own_rule(line, priority)) {
            let number = line.split(':').next().unwrap_or_default();
            let _ = host::output(&["ip", family(is_ipv4), "rule", "del", "pref", number]);
        }
        let _ = host::output(&["ip", family(is_ipv4), "route", "flush", "table", &table.to_string()]);
    }
}
