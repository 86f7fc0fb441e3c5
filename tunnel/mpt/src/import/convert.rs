//! Conversion of MPT's keys.

use super::Import;
use super::ini::Ini;
use crate::config::{DEFAULT_MTU, DEFAULT_REORDER_TIMEOUT, DEFAULT_SCHEDULER};
use ipnet::IpNet;
use parse::Error;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// MPT's limits.
const MAX_PATHS: usize = 20;
const MAX_NETWORKS: usize = 20;

/// A path of an MPT connection.
struct MptPath {
    section: String,
    interface: Option<String>,
    source: Option<IpAddr>,
    remote: IpAddr,
    weight: u32,
    keepalive_time: u64,
    dead_time: u64,
    is_down: bool,
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
    note_unconverted_keys(interface, connection, &mut notes);
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
        return Err(interface.error("tun_0", "ipv4_addr", "the tunnel has no address", "ipv4_addr = 10.0.0.1/24"));
    }
    let local: IpAddr = connection.required("connection", "ip_local", "the tunnel's own address")?;
    if !addresses.iter().any(|address| address.addr() == local) {
        notes
            .push(format!("ip_local = {local} is none of the tunnel's addresses; MPT overwrites it with one of those"));
    }
    let mut text = format!("[interface]\nname = \"{}\"\n", interface.text("tun_0", "name").unwrap_or("tun0"));
    text += &format!("mode = \"mpt\"\naddress = {}\n", toml_list(&addresses));
    text += &format!("mtu = {}\n", interface.value::<u16>("tun_0", "mtu", "bytes")?.unwrap_or(DEFAULT_MTU));
    let port: u16 = connection.value("connection", "local_port", "a UDP port")?.unwrap_or(0);
    Ok(text + &format!("listen-port = {port}\n\n"))
}

fn toml_list<T: ToString>(values: &[T]) -> String {
    let strings: Vec<_> = values.iter().map(|value| format!("\"{}\"", value.to_string())).collect();
    format!("[{}]", strings.join(", "))
}

/// `[tunnel]` and `[mpt]`.
fn table_mpt(connection: &Ini, paths: &[MptPath], notes: &mut Vec<String>) -> Result<String, Error> {
    let window: u32 = connection.value("connection", "reorder_window", "packets, 0 for off")?.unwrap_or(0);
    let timeout: u64 = connection.value("connection", "max_buffdelay_msec", "milliseconds")?.unwrap_or(0);
    let timeout = if timeout == 0 { DEFAULT_REORDER_TIMEOUT.as_millis() } else { timeout };
    let mut text = format!("[tunnel]\nscheduler = \"{DEFAULT_SCHEDULER}\"\n");
    if window == 0 {
        text += "in-order = false\n\n[mpt]\n";
    } else {
        let _ = write!(text, "max-reorder-timeout = \"{timeout}ms\"\n\n[mpt]\nreorder-window = {window}\n");
    }
    let paths_with_keepalive = || paths.iter().filter(|path| path.keepalive_time > 0);
    if let Some(first) = paths_with_keepalive().min_by_key(|path| path.keepalive_time) {
        let dead_time = paths_with_keepalive().map(|path| path.dead_time).min().unwrap_or(first.dead_time);
        let _ = writeln!(text, "keepalive-time = \"{}s\"\ndead-time = \"{dead_time}s\"", first.keepalive_time);
        if paths.iter().any(|path| (path.keepalive_time, path.dead_time) != (first.keepalive_time, dead_time)) {
            notes.push("keepalive_time and dead_time differ between paths; all paths get the shortest".into());
        }
    }
    Ok(text + "\n")
}

fn table_peer(connection: &Ini, notes: &mut Vec<String>) -> Result<String, Error> {
    let remote: IpAddr = connection.required("connection", "ip_remote", "the peer's tunnel address")?;
    let count: usize = connection.value("connection", "network_count", "0 to 20")?.unwrap_or(0);
    if count > MAX_NETWORKS {
        return Err(connection.error("connection", "network_count", "MPT has at most 20 networks", "0 to 20"));
    }
    let mut networks = vec![IpNet::from(remote)];
    for section in (0..count).map(|index| format!("net_{index}")) {
        networks.push(connection.required::<IpNet>(&section, "dst_addr", "a network, 192.0.2.0/24")?.trunc());
        if let Some(source) = connection.text(&section, "src_addr") {
            notes.push(format!("[{section}] src_addr = {source}: packets are routed to a peer from any source"));
        }
    }
    Ok(format!("[[peer]]\naddress = \"{remote}\"\nallowed-ips = {}\n", toml_list(&networks)))
}

fn paths(connection: &Ini, notes: &mut Vec<String>) -> Result<Vec<MptPath>, Error> {
    let count: usize = connection.required("connection", "path_count", "1 to 20")?;
    if !(1..=MAX_PATHS).contains(&count) {
        return Err(connection.error("connection", "path_count", "MPT has 1 to 20 paths", "1 to 20"));
    }
    (0..count).map(|index| path(connection, &format!("path_{index}"), notes)).collect()
}

fn path(connection: &Ini, section: &str, notes: &mut Vec<String>) -> Result<MptPath, Error> {
    if !connection.has(section) {
        let valid = format!("a [{section}], or a smaller path_count");
        return Err(connection.error("connection", "path_count", &format!("there is no [{section}]"), &valid));
    }
    let number = |key, default| Ok::<u64, Error>(connection.value(section, key, "a whole number")?.unwrap_or(default));
    let address = |key| connection.value::<IpAddr>(section, key, "an address");
    let source = address("private_ipaddr")?.filter(|address| !address.is_unspecified());
    let keepalive_time = number("keepalive_time", 0)?;
    let interface = connection.text(section, "interface_name").map(str::to_owned);
    let remote = connection.required(section, "remote_ipaddr", "the peer's address on this path")?;
    if let Some(gateway) = address("gw_ipaddr")?.filter(|address| !address.is_unspecified()) {
        let device = interface.as_deref().unwrap_or("DEVICE");
        notes.push(format!(
            "[{section}] gw_ipaddr: no routes to peers are set; if the system has none: ip route add {remote} via \
             {gateway} dev {device}"
        ));
    }
    Ok(MptPath {
        section: section.to_owned(),
        interface,
        source,
        remote,
        weight: connection.value(section, "weight_out", "1 to 10000")?.unwrap_or(1),
        keepalive_time,
        dead_time: number("dead_time", 3 * keepalive_time)?,
        is_down: number("status", 0)? != 0,
    })
}

fn table_path(path: &MptPath, port: u16) -> String {
    let mut lines = vec!["[[path]]".to_owned(), format!("name = \"{}\"", path.section)];
    lines.extend(path.interface.as_ref().map(|name| format!("interface = \"{name}\"")));
    lines.extend(path.source.map(|address| format!("source = \"{address}\"")));
    lines.push(format!("endpoint = \"{}\"", SocketAddr::new(path.remote, port)));
    lines.extend((path.weight != 1).then(|| format!("weight = {}", path.weight)));
    // A path that is down at MPT's start becomes a comment.
    let comment = if path.is_down { "# " } else { "" };
    lines.iter().fold("\n".to_owned(), |text, line| format!("{text}{comment}{line}\n"))
}

/// Keys that are converted, or that have no effect in MPT itself.
const CONVERTED_KEYS: &[&str] = &[
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
const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    ("accept_remote", "connections are never accepted from unknown peers"),
    ("cmdport_local", "there is no command port; `ropewalk show` and `ropewalk down` use a socket of this host"),
    ("cmd_timeout", "there is no command port"),
    ("remote_cmd_port", "there is no command port, so a peer learns a path's state from keepalives only"),
    ("local_cmd_port", "there is no command port"),
    ("permission", "MPT itself never looks at it"),
    ("auth_type", "MPT authenticates commands only, never data; leave `mode` out to authenticate everything"),
    ("auth_key", "MPT authenticates commands only, never data; the key was not copied"),
    ("weight_in", "each end uses weights of its own"),
    ("public_ipaddr", "it is used by MPT's commands only"),
    ("tcp_src", "flows are not pinned to paths by port"),
    ("tcp_dst", "flows are not pinned to paths by port"),
    ("udp_src", "flows are not pinned to paths by port"),
    ("udp_dst", "flows are not pinned to paths by port"),
];

fn note_unconverted_keys(interface: &Ini, connection: &Ini, notes: &mut Vec<String>) {
    let numbered_sections = |kind: &'static str, max| (0..max).map(move |index| format!("{kind}_{index}"));
    let mut sections = vec![(interface, "general".to_owned()), (interface, "tun_0".into())];
    sections.push((connection, "connection".into()));
    sections.extend(
        numbered_sections("path", MAX_PATHS)
            .chain(numbered_sections("net", MAX_NETWORKS))
            .map(|section| (connection, section)),
    );
    let mut noted_keys = Vec::new();
    for (ini, section) in &sections {
        for key in ini.keys(section).filter(|key| !CONVERTED_KEYS.contains(key)) {
            let is_path_status = key == "status" && section.starts_with("path");
            match WITHOUT_COUNTERPART.iter().find(|(name, _)| *name == key) {
                _ if noted_keys.contains(&key) => {}
                Some((_, reason)) => notes.push(format!("{key}: {reason}")),
                None if is_path_status && ini.text(section, key) != Some("0") => {
                    notes.push(format!("[{section}] is down at start: it is written as a comment"));
                }
                None if key == "status" => {}
                None => notes.push(format!("[{section}] {key}: not a key of MPT")),
            }
            noted_keys.push(key);
        }
    }
}
