//! The nftables tables of a tunnel, as text for `nft -f -`.
//!
//! Protocols are numbers: nft looks up their names in `/etc/protocols`, which small systems do not have.
//!
//! - `ropewalk_NAME`: translation, port forwards, and rules for traffic between the tunnel and this host's networks.
//! - `ropewalk_NAME_only`: with `exclusive`, the traffic that may leave this host outside the tunnel. It stays in place
//!   without a daemon.

use super::promises::{Bypass, ClientPromises, Forward, Lan, Promises, ServerPromises};
use daemon::control_plane::ENROLMENT_PORT;
use daemon::data_plane::SOCKET_MARK;
use daemon::speed_test::PORT as SPEED_TEST_PORT;
use ipnet::IpNet;
use std::fmt::Write as _;

/// Addresses that no client reaches, whatever the options: link-local ones, at which clouds serve credentials to their
/// hosts.
const NEVER: [&str; 3] = ["169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128"];
/// Addresses that are not on the Internet: private, shared (RFC 6598), loopback, unique local.
const PRIVATE: [&str; 6] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "fc00::/7"];
/// Refuses with an ICMP error, so that programs do not wait.
const REFUSE: &str = "reject with icmpx type admin-prohibited";

/// The text of a tunnel's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    /// The table's name and its text, which replaces the table in one transaction.
    pub(super) tables: Vec<(String, String)>,
}

/// Further inputs of the tables, in addition to the promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// Whether the tunnel is exclusive.
    pub(super) is_exclusive: bool,
    /// The numeric id of the daemon's user, which looks up the endpoint's name.
    pub(super) daemon_user: u32,
    /// Networks of this host's devices, without the tunnel's and those of a server's uplinks.
    pub(super) networks: Vec<IpNet>,
}

/// The name of a tunnel's table.
pub(super) fn table_name(interface: &str) -> String {
    let name: String = interface.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("ropewalk_{name}")
}

/// The name of the table of an exclusive tunnel.
pub(super) fn exclusive_table_name(interface: &str) -> String {
    format!("{}_only", table_name(interface))
}

/// The tables of a tunnel.
pub(super) fn tables(interface: &str, promises: &Promises, surroundings: &Surroundings) -> Tables {
    let mut tables = Vec::new();
    let text = match &promises.server {
        Some(server) => server_chains(interface, server, surroundings),
        None => client_chains(interface, &promises.client),
    };
    if !text.is_empty() {
        tables.push((table_name(interface), text));
    }
    if surroundings.is_exclusive {
        let name = exclusive_table_name(interface);
        tables.push((name, exclusive_chains(interface, &promises.client, surroundings.daemon_user)));
    }
    let whole = |(name, chains): (String, String)| {
        let text = format!("table inet {name} {{}}\ndelete table inet {name}\ntable inet {name} {{\n{chains}}}\n");
        (name, text)
    };
    Tables { tables: tables.into_iter().map(whole).collect() }
}

/// A chain with its rules, one per line.
fn chain(name: &str, hook: Option<&str>, rules: &[String]) -> String {
    let hook = hook.map_or_else(String::new, |hook| format!("        {hook};\n"));
    let rules: String = rules.iter().map(|rule| format!("        {rule}\n")).collect();
    format!("    chain {name} {{\n{hook}{rules}    }}\n")
}

/// Rules that match networks of each family: `FAMILY saddr|daddr { ... } VERDICT`.
fn of_networks(direction: &str, networks: &[IpNet], verdict: &str) -> Vec<String> {
    let family = |is_ipv4: bool| {
        let own: Vec<IpNet> = networks.iter().filter(|network| network.addr().is_ipv4() == is_ipv4).copied().collect();
        let texts: Vec<_> = IpNet::aggregate(&own).iter().map(ToString::to_string).collect();
        let family = if is_ipv4 { "ip" } else { "ip6" };
        (!texts.is_empty()).then(|| format!("{family} {direction} {{ {} }} {verdict}", texts.join(", ")))
    };
    [family(true), family(false)].into_iter().flatten().collect()
}

fn parsed(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

fn server_chains(device: &str, server: &ServerPromises, surroundings: &Surroundings) -> String {
    let own = format!("iifname \"{device}\"");
    let mut text = String::new();
    if !server.forwards.is_empty() {
        let rules: Vec<_> = server.forwards.iter().map(|forward| translation(device, forward)).collect();
        text += &chain("prerouting", Some("type nat hook prerouting priority dstnat"), &rules);
    }
    let mut rules = of_networks("saddr", &server.routed, "return");
    rules.push(format!("{own} oifname != \"{device}\" masquerade"));
    text += &chain("postrouting", Some("type nat hook postrouting priority srcnat"), &rules);
    text += &chain(
        "forward",
        Some("type filter hook forward priority filter"),
        &[
            "ct state established,related accept".into(),
            format!("oifname \"{device}\" ct status dnat accept"),
            format!("{own} jump from_clients"),
            format!("oifname \"{device}\" jump to_clients"),
        ],
    );
    text += &chain("from_clients", None, &from_clients(device, server, &surroundings.networks));
    text += &chain("to_clients", None, &to_clients(server));
    text += &chain("input", Some("type filter hook input priority filter"), &input(device, server));
    text
}

/// The translation of a forwarded port. The sender keeps its address.
fn translation(device: &str, forward: &Forward) -> String {
    let Forward { protocol, port, to } = forward;
    let (protocol, family, l3) = match to {
        std::net::SocketAddr::V4(_) => (protocol.name(), "ip", "ipv4"),
        std::net::SocketAddr::V6(_) => (protocol.name(), "ip6", "ipv6"),
    };
    format!(
        "iifname != \"{device}\" fib daddr type local meta nfproto {l3} {protocol} dport {port} dnat {family} to {to}"
    )
}

/// Rules for traffic from clients: to the Internet, to addresses that the server opens, and to other sites.
fn from_clients(device: &str, server: &ServerPromises, networks: &[IpNet]) -> Vec<String> {
    let mut rules = of_networks("daddr", &parsed(&NEVER), REFUSE);
    rules.extend(of_networks("daddr", &server.open, "accept"));
    let dns: Vec<IpNet> = server.dns.iter().copied().map(IpNet::from).collect();
    rules.extend(of_networks("daddr", &dns, "meta l4proto { 6, 17 } th dport 53 accept"));
    if server.between_clients {
        rules.push(format!("oifname \"{device}\" accept"));
    }
    let sites: Vec<IpNet> = server.sites.values().flatten().copied().collect();
    for (family, from) in [("ip", true), ("ip6", false)] {
        let own: Vec<IpNet> = sites.iter().filter(|network| network.addr().is_ipv4() == from).copied().collect();
        let texts: Vec<_> = IpNet::aggregate(&own).iter().map(ToString::to_string).collect();
        if !texts.is_empty() {
            let set = texts.join(", ");
            rules.push(format!("oifname \"{device}\" {family} saddr {{ {set} }} {family} daddr {{ {set} }} accept"));
        }
    }
    rules.push(format!("oifname \"{device}\" {REFUSE}"));
    let others: Vec<IpNet> = parsed(&PRIVATE).into_iter().chain(networks.iter().copied()).collect();
    rules.extend(of_networks("daddr", &others, REFUSE));
    rules
}

/// Rules for traffic from outside to clients: only to addresses that are routed here, and from networks that the server
/// opens.
fn to_clients(server: &ServerPromises) -> Vec<String> {
    let mut rules = of_networks("daddr", &server.routed, "accept");
    rules.extend(of_networks("saddr", &server.open, "accept"));
    rules.push("drop".into());
    rules
}

/// The services of the server itself that clients reach: enrolment and speed tests, its resolver, and opened addresses.
fn input(device: &str, server: &ServerPromises) -> Vec<String> {
    let mut rules = vec![
        format!("iifname != \"{device}\" accept"),
        "ct state established,related accept".into(),
        "meta l4proto { 1, 58 } accept".into(),
        format!("tcp dport {ENROLMENT_PORT}-{SPEED_TEST_PORT} accept"),
        // The tunnel itself: a client behind another one, whose bond is one of its lines.
        format!("udp dport {{ {}, {SPEED_TEST_PORT} }} accept", server.port),
    ];
    let dns: Vec<IpNet> = server.dns.iter().copied().map(IpNet::from).collect();
    rules.extend(of_networks("daddr", &dns, "meta l4proto { 6, 17 } th dport 53 accept"));
    rules.extend(of_networks("daddr", &server.open, "accept"));
    rules.push(REFUSE.into());
    rules
}

/// The client's table; empty if nothing is behind it.
fn client_chains(device: &str, client: &ClientPromises) -> String {
    if client.lans.is_empty() {
        return String::new();
    }
    let networks = |is_wanted: fn(&Lan) -> bool| -> Vec<IpNet> {
        client.lans.iter().filter(|lan| is_wanted(lan)).map(|lan| lan.network).collect()
    };
    let mut rules =
        of_networks("saddr", &networks(|lan| lan.is_translated), &format!("oifname \"{device}\" masquerade"));
    if !client.bypass.is_empty() {
        // Traffic that bypasses the tunnel leaves by an uplink, whose network has no route to the one behind this host.
        let devices: Vec<_> = client.lans.iter().map(|lan| format!("\"{}\"", lan.device)).collect();
        let verdict = format!("oifname != {{ \"{device}\", {} }} masquerade", devices.join(", "));
        rules.extend(of_networks("saddr", &networks(|_| true), &verdict));
    }
    let mut text = String::new();
    if !rules.is_empty() {
        text += &chain("postrouting", Some("type nat hook postrouting priority srcnat"), &rules);
    }
    let mut rules = vec![format!("iifname != \"{device}\" accept"), "ct state established,related accept".into()];
    rules.extend(of_networks("daddr", &networks(|_| true), "accept"));
    rules.push(REFUSE.into());
    text + &chain("forward", Some("type filter hook forward priority filter"), &rules)
}

/// The chains of an exclusive tunnel. They accept the tunnel, the daemon's own datagrams by their mark, DHCP, neighbour
/// discovery, the look-up of the endpoint's name by the daemon's user, and what the setup was told.
fn exclusive_chains(device: &str, client: &ClientPromises, daemon_user: u32) -> String {
    let mut rules = vec![
        format!("oifname {{ \"lo\", \"{device}\" }} accept"),
        format!("meta mark {SOCKET_MARK:#x} accept"),
        "udp sport 68 udp dport 67 accept".into(),
        "udp sport 546 udp dport 547 accept".into(),
        "icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert, mld2-listener-report } accept"
            .into(),
        format!("meta skuid {daemon_user} meta l4proto {{ 6, 17 }} th dport 53 accept"),
        "meta l4proto { 6, 17 } th dport @portal accept".into(),
    ];
    if let Some(port) = client.login {
        rules.push(format!("tcp sport {port} ct direction reply accept"));
    }
    if client.local_networks {
        let private: Vec<_> = parsed(&PRIVATE).into_iter().filter(|network| !network.addr().is_loopback()).collect();
        rules.extend(of_networks("daddr", &private, "accept"));
    }
    let mut both = Vec::new();
    for Lan { device, network, .. } in &client.lans {
        both.extend(of_networks("daddr", &[*network], &format!("oifname \"{device}\" accept")));
    }
    both.extend(client.bypass.iter().filter_map(passing));
    rules.extend(both.iter().cloned());
    // Answers of this host's DHCP server, and its router advertisements to the networks behind it.
    for Lan { device, .. } in &client.lans {
        rules.push(format!("oifname \"{device}\" udp sport 67 udp dport 68 accept"));
        rules.push(format!("oifname \"{device}\" icmpv6 type nd-router-advert accept"));
    }
    rules.push(REFUSE.into());
    let mut text = "    set portal {\n        type inet_service\n        flags timeout\n    }\n".to_owned();
    text += &chain("output", Some("type filter hook output priority filter"), &rules);
    let mut rules = vec![format!("oifname \"{device}\" accept"), format!("iifname \"{device}\" accept")];
    rules.extend(both);
    rules.extend(client.bypass.iter().filter_map(|bypass| match bypass {
        Bypass::Device(from) => Some(format!("iifname \"{from}\" accept")),
        _ => None,
    }));
    if !client.bypass.is_empty() {
        rules.push("ct state established,related ct direction reply accept".into());
    }
    rules.push(REFUSE.into());
    text + &chain("forward", Some("type filter hook forward priority filter"), &rules)
}

/// The rule that accepts outgoing traffic that bypasses the tunnel. Packets that arrive by a device are not sent by this
/// host.
fn passing(bypass: &Bypass) -> Option<String> {
    match bypass {
        Bypass::Network(network) => of_networks("daddr", &[*network], "accept").pop(),
        Bypass::Port(protocol, port) => Some(format!("{} dport {port} accept", protocol.name())),
        Bypass::Device(_) => None,
    }
}

/// The rules that chains of other programs need if they drop by default: a packet passes only if every chain accepts it.
pub(super) fn accepting_rules(interface: &str, promises: &Promises, hook: &str) -> Vec<String> {
    let mut rules = Vec::new();
    match (hook, &promises.server) {
        ("input", Some(server)) => {
            rules.push(format!("udp dport {} accept", server.port));
            rules.push(format!("iifname {interface} tcp dport {ENROLMENT_PORT}-{SPEED_TEST_PORT} accept"));
            rules.push(format!("iifname {interface} udp dport {SPEED_TEST_PORT} accept"));
        }
        ("forward", Some(_)) => {
            rules.push(format!("iifname {interface} accept"));
            rules.push(format!("oifname {interface} accept"));
        }
        ("forward", None) if !promises.client.lans.is_empty() => {
            rules.push(format!("iifname {interface} accept"));
            rules.push(format!("oifname {interface} accept"));
        }
        _ => {}
    }
    rules
}

/// The tables in words.
impl std::fmt::Display for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        self.tables.iter().for_each(|(_, table)| {
            let _ = write!(text, "{table}");
        });
        f.write_str(&text)
    }
}
