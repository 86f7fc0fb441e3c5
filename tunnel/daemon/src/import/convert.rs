//! From MPT's keys to ours.

use super::Import;
use super::ini::Ini;
use ipnet::IpNet;
use parse::Error;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// MPT's limits.
const MOST_PATHS: usize = 20;
const MOST_NETWORKS: usize = 20;
/// How long MPT holds a packet if the file says 0 or nothing, ms.
const DEFAULT_HOLD: u64 = 100;

/// One path of MPT's.
struct Path {
    section: String,
    interface: Option<String>,
    source: Option<IpAddr>,
    remote: IpAddr,
    weight: u32,
    keepalive: u64,
    dead: u64,
    down: bool,
}

pub(super) fn convert(interface: &Ini, connection: &Ini) -> Result<Import, Error> {
    let mut notes = Vec::new();
    let mut toml = heading(connection);
    toml += &table_interface(interface, connection, &mut notes)?;
    let paths = paths(connection, &mut notes)?;
    toml += &table_mpt(connection, &paths, &mut notes)?;
    toml += &table_peer(connection, &mut notes)?;
    let port: u16 = connection.value("connection", "remote_port", "a UDP port")?.unwrap_or(65_000);
    for path in &paths {
        toml += &table_path(path, port);
    }
    left_out(interface, connection, &mut notes);
    Ok(Import { toml, notes })
}

fn heading(connection: &Ini) -> String {
    let name = connection.text("connection", "name").unwrap_or("connection");
    format!(
        "# MPT's connection \"{name}\". Nothing is authenticated or encrypted: for test beds and trusted networks.\n# \
         With Ropewalk on both ends, leave `mode`, [mpt] and `address` of the peer out, and give both ends keys.\n\n"
    )
}

fn table_interface(interface: &Ini, connection: &Ini, notes: &mut Vec<String>) -> Result<String, Error> {
    let tunnels: u32 = interface.value("general", "tunnel_num", "a number")?.unwrap_or(0);
    if tunnels != 1 {
        notes.push(format!("tunnel_num = {tunnels}: MPT supports one, and only [tun_0] was read"));
    }
    let mut addresses = Vec::new();
    for key in ["ipv4_addr", "ipv6_addr"] {
        addresses.extend(interface.value::<IpNet>("tun_0", key, "an address with its length, 10.0.0.1/24")?);
    }
    if addresses.is_empty() {
        return Err(interface.wrong("tun_0", "ipv4_addr", "the tunnel has no address", "ipv4_addr = 10.0.0.1/24"));
    }
    let local: IpAddr = connection.required("connection", "ip_local", "the tunnel's own address")?;
    if !addresses.iter().any(|it| it.addr() == local) {
        notes
            .push(format!("ip_local = {local} is none of the tunnel's addresses; MPT overwrites it with one of those"));
    }
    let mut text = format!("[interface]\nname = \"{}\"\n", interface.text("tun_0", "name").unwrap_or("tun0"));
    text += &format!("mode = \"mpt\"\naddress = {}\n", list(&addresses));
    text += &format!("mtu = {}\n", interface.value::<u16>("tun_0", "mtu", "bytes")?.unwrap_or(1440));
    let port: u16 = connection.value("connection", "local_port", "a UDP port")?.unwrap_or(0);
    Ok(text + &format!("listen-port = {port}\n\n"))
}

fn list<T: ToString>(values: &[T]) -> String {
    let quoted: Vec<_> = values.iter().map(|value| format!("\"{}\"", value.to_string())).collect();
    format!("[{}]", quoted.join(", "))
}

/// `[tunnel]` and `[mpt]`.
fn table_mpt(connection: &Ini, paths: &[Path], notes: &mut Vec<String>) -> Result<String, Error> {
    let window: u32 = connection.value("connection", "reorder_window", "packets, 0 for off")?.unwrap_or(0);
    let hold: u64 = connection.value("connection", "max_buffdelay_msec", "milliseconds")?.unwrap_or(0);
    let hold = if hold == 0 { DEFAULT_HOLD } else { hold };
    let mut text = "[tunnel]\nscheduler = \"packet-round-robin\"\n".to_owned();
    if window == 0 {
        text += "order = false\n\n[mpt]\n";
    } else {
        let _ = write!(text, "max-hold = \"{hold}ms\"\n\n[mpt]\nreorder-window = {window}\n");
    }
    let alive = || paths.iter().filter(|path| path.keepalive > 0);
    if let Some(first) = alive().min_by_key(|path| path.keepalive) {
        let dead = alive().map(|path| path.dead).min().unwrap_or(first.dead);
        let _ = writeln!(text, "keepalive = \"{}s\"\ndead = \"{dead}s\"", first.keepalive);
        if paths.iter().any(|path| (path.keepalive, path.dead) != (first.keepalive, dead)) {
            notes.push("keepalive_time and dead_time differ between paths; here all have the shortest".into());
        }
    }
    Ok(text + "\n")
}

fn table_peer(connection: &Ini, notes: &mut Vec<String>) -> Result<String, Error> {
    let remote: IpAddr = connection.required("connection", "ip_remote", "the peer's tunnel address")?;
    let count: usize = connection.value("connection", "network_count", "0 to 20")?.unwrap_or(0);
    if count > MOST_NETWORKS {
        return Err(connection.wrong("connection", "network_count", "MPT has at most 20 networks", "0 to 20"));
    }
    let mut allowed = vec![IpNet::from(remote)];
    for section in (0..count).map(|at| format!("net_{at}")) {
        allowed.push(connection.required::<IpNet>(&section, "dst_addr", "a network, 192.0.2.0/24")?.trunc());
        if let Some(source) = connection.text(&section, "src_addr") {
            notes.push(format!(
                "[{section}] src_addr = {source}: whatever is routed to a peer goes to it, from any source"
            ));
        }
    }
    Ok(format!("[[peer]]\naddress = \"{remote}\"\nallowed-ips = {}\n", list(&allowed)))
}

fn paths(connection: &Ini, notes: &mut Vec<String>) -> Result<Vec<Path>, Error> {
    let count: usize = connection.required("connection", "path_count", "1 to 20")?;
    if !(1..=MOST_PATHS).contains(&count) {
        return Err(connection.wrong("connection", "path_count", "MPT has 1 to 20 paths", "1 to 20"));
    }
    (0..count).map(|at| path(connection, &format!("path_{at}"), notes)).collect()
}

fn path(connection: &Ini, section: &str, notes: &mut Vec<String>) -> Result<Path, Error> {
    if !connection.has(section) {
        let right = format!("a [{section}], or a smaller path_count");
        return Err(connection.wrong("connection", "path_count", &format!("there is no [{section}]"), &right));
    }
    let number = |key, default| Ok::<u64, Error>(connection.value(section, key, "a whole number")?.unwrap_or(default));
    let address = |key| connection.value::<IpAddr>(section, key, "an address");
    let source = address("private_ipaddr")?.filter(|address| !address.is_unspecified());
    let keepalive = number("keepalive_time", 0)?;
    let interface = connection.text(section, "interface_name").map(str::to_owned);
    let remote = connection.required(section, "remote_ipaddr", "the peer's address on this path")?;
    if let Some(gateway) = address("gw_ipaddr")?.filter(|address| !address.is_unspecified()) {
        let device = interface.as_deref().unwrap_or("DEVICE");
        notes.push(format!(
            "[{section}] gw_ipaddr: no routes to peers are set; if the system has none: ip route add {remote} via \
             {gateway} dev {device}"
        ));
    }
    Ok(Path {
        section: section.to_owned(),
        interface,
        source,
        remote,
        weight: connection.value(section, "weight_out", "1 to 10000")?.unwrap_or(1),
        keepalive,
        dead: number("dead_time", 3 * keepalive)?,
        down: number("status", 0)? != 0,
    })
}

fn table_path(path: &Path, port: u16) -> String {
    let mut lines = vec!["[[path]]".to_owned(), format!("name = \"{}\"", path.section)];
    lines.extend(path.interface.as_ref().map(|name| format!("interface = \"{name}\"")));
    lines.extend(path.source.map(|address| format!("source = \"{address}\"")));
    lines.push(format!("endpoint = \"{}\"", SocketAddr::new(path.remote, port)));
    lines.extend((path.weight != 1).then(|| format!("weight = {}", path.weight)));
    // A path that MPT starts without is there to be taken into use by hand.
    let comment = if path.down { "# " } else { "" };
    lines.iter().fold("\n".to_owned(), |text, line| format!("{text}{comment}{line}\n"))
}

/// Keys that carry something over, or nothing at all in MPT itself.
const KNOWN: &[&str] = &[
    "tunnel_num",
    "name",
    "mtu",
    "ipv4_addr",
    "ipv6_addr",
    "ip_ver",
    "ip_local",
    "local_port",
    "remote_port",
    "ip_remote",
    "path_count",
    "network_count",
    "reorder_window",
    "max_buffdelay_msec",
    "interface_name",
    "private_ipaddr",
    "gw_ipaddr",
    "remote_ipaddr",
    "keepalive_time",
    "dead_time",
    "weight_out",
    "src_addr",
    "dst_addr",
    "interface_num",
    "window_size",
    "cmd_default",
    "default_cmd",
];

/// Keys without a counterpart, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("accept_remote", "no connection is made on a stranger's demand"),
    (
        "cmdport_local",
        "there is no command port; `ropewalk show` and `ropewalk down` speak through a socket of this host",
    ),
    ("cmd_timeout", "there is no command port"),
    ("remote_cmd_port", "there is no command port, so a peer is not told of a path's state but by keepalives"),
    ("local_cmd_port", "there is no command port"),
    ("permission", "MPT itself never looks at it"),
    ("auth_type", "MPT authenticates commands only, never data; leave `mode` out to have everything authenticated"),
    ("auth_key", "MPT authenticates commands only, never data; the key was not copied"),
    ("weight_in", "each end chooses by weights of its own"),
    ("public_ipaddr", "only MPT's commands tell it to the peer"),
    ("tcp_src", "flows are not pinned to paths by port"),
    ("tcp_dst", "flows are not pinned to paths by port"),
    ("udp_src", "flows are not pinned to paths by port"),
    ("udp_dst", "flows are not pinned to paths by port"),
];

fn left_out(interface: &Ini, connection: &Ini, notes: &mut Vec<String>) {
    let numbered = |kind: &'static str, most| (0..most).map(move |at| format!("{kind}_{at}"));
    let mut sections = vec![(interface, "general".to_owned()), (interface, "tun_0".into())];
    sections.push((connection, "connection".into()));
    sections.extend(numbered("path", MOST_PATHS).chain(numbered("net", MOST_NETWORKS)).map(|it| (connection, it)));
    let mut told = Vec::new();
    for (ini, section) in &sections {
        for key in ini.keys(section).filter(|key| !KNOWN.contains(key)) {
            let is_path_status = key == "status" && section.starts_with("path");
            match LEFT_OUT.iter().find(|(name, _)| *name == key) {
                _ if told.contains(&key) => {}
                Some((_, why)) => notes.push(format!("{key}: {why}")),
                None if is_path_status && ini.text(section, key) != Some("0") => {
                    notes.push(format!("[{section}] is down at start: it is written as a comment"));
                }
                None if key == "status" => {}
                None => notes.push(format!("[{section}] {key}: unknown to MPT and to us")),
            }
            told.push(key);
        }
    }
}
