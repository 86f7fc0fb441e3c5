//! `[[path]]`.

use super::{Context, interface::is_device, missing, peer, value};
use crate::config::{Endpoint, Interface, Path, Peer, file};
use parse::{At, BitRate, Fault};
use std::net::IpAddr;

/// Path ids have eight bits; 0 and up.
const MOST: usize = 64;

pub(super) fn paths(
    file: &file::File,
    interface: &mut Interface,
    peers: &[Peer],
    context: &mut Context<'_>,
) -> Vec<Path> {
    let tables = file.path.as_deref().unwrap_or_default();
    let calls =
        peers.iter().any(|peer| peer.endpoint.is_some()) || tables.iter().any(|path| path.get().endpoint.is_some());
    let port_is_said = file.interface.as_ref().is_some_and(|table| table.get().listen_port.is_some());
    // Who calls needs no port that others know.
    if calls && !port_is_said && !context.is_mpt {
        interface.listen_port = 0;
    }
    if tables.is_empty() && context.is_mpt {
        context.fault(missing(0..0, "path").help("[[path]] with `source` and `endpoint`, one for each of MPT's paths"));
    }
    if tables.len() > MOST {
        context.fault(Fault::at(tables[MOST].span(), format!("more than {MOST} paths")));
    }
    let mut paths: Vec<Path> = tables.iter().map(|table| path(table, interface.listen_port, context)).collect();
    for (at, table) in tables.iter().enumerate() {
        together(table, at, &paths, interface, peers, context);
    }
    if paths.is_empty() {
        paths.push(any(interface.listen_port));
    }
    around_the_tunnel(tables, &paths, peers, file, context);
    paths
}

/// Without any [[path]], what the routing table says is the one path.
fn any(listen_port: u16) -> Path {
    Path {
        name: "any".into(),
        interface: None,
        source: None,
        listen_port,
        endpoint: None,
        backup: false,
        metered: false,
        weight: 1,
        rate: None,
    }
}

fn path(table: &At<file::Path>, port: u16, context: &mut Context<'_>) -> Path {
    let given = table.get();
    let interface = given.interface.as_ref().map(|name| name.get().clone());
    let text = given.name.as_ref().map(|name| name.get().clone());
    let name = text.or_else(|| interface.clone()).or_else(|| given.source.as_ref().map(|it| it.get().clone()));
    if interface.is_none() && given.source.is_none() && given.endpoint.is_none() {
        let help = "the uplink, such as `interface = \"wwan0\"`, or an address of it as `source`";
        context.fault(missing(table.span(), "interface").help(help));
    }
    if let Some(name) = given.interface.as_ref().filter(|name| !is_device(name.get())) {
        let message = format!("`{}` cannot be a device's name", name.get());
        context.fault(Fault::at(name.span(), message).help("as `ip link` shows it, such as \"wwan0\""));
    }
    let rate = given.rate.as_ref().and_then(|text| context.noted(value::quantity::<BitRate>(text)));
    Path {
        name: name.unwrap_or_else(|| "any".into()),
        interface,
        source: given.source.as_ref().and_then(|text| value::address(text, context)),
        listen_port: value::within(given.listen_port.as_ref(), 0..=65_535, i64::from(port), context) as u16,
        endpoint: given.endpoint.as_ref().and_then(|text| peer::endpoint(text, context)),
        backup: given.backup.as_ref().is_some_and(|it| *it.get()),
        metered: given.metered.as_ref().is_some_and(|it| *it.get()),
        weight: value::within(given.weight.as_ref(), 1..=10_000, 1, context) as u32,
        rate: rate.map(|rate| rate.0),
    }
}

/// What must go together in one path, and with the paths before it.
fn together(
    table: &At<file::Path>,
    at: usize,
    paths: &[Path],
    interface: &Interface,
    peers: &[Peer],
    context: &mut Context<'_>,
) {
    let (given, path) = (table.get(), &paths[at]);
    if paths[..at].iter().any(|other| other.name == path.name) {
        let span = given.name.as_ref().map_or(table.span(), At::span);
        context.fault(Fault::at(span, format!("another path is called `{}`", path.name)).help("a `name` of its own"));
    }
    if let (true, Some(name)) = (path.interface.as_ref() == Some(&interface.name), &given.interface) {
        context.fault(Fault::at(name.span(), "a path cannot lead through the tunnel itself"));
    }
    if let (Some(text), 2..) = (&given.endpoint, peers.len()) {
        let fault = Fault::at(text.span(), "an endpoint of which peer? There are several");
        context.fault(fault.help("`endpoint` in each [[peer]]"));
    }
    let literal = |endpoint: &Endpoint| endpoint.address().map(|it| it.ip());
    let reached = path.endpoint.as_ref().and_then(literal);
    if let (Some(source), Some(reached), Some(text)) = (path.source, reached, &given.source)
        && source.is_ipv4() != reached.is_ipv4()
    {
        let fault = Fault::at(text.span(), format!("`{source}` cannot send to `{reached}`"));
        context.fault(fault.help("both IPv4, or both IPv6"));
    }
}

/// Outer packets must not be routed into the tunnel: with a default route inside, each path needs its device.
fn around_the_tunnel(
    tables: &[At<file::Path>],
    paths: &[Path],
    peers: &[Peer],
    file: &file::File,
    context: &mut Context<'_>,
) {
    let routes = file.interface.as_ref().and_then(|table| table.get().routes.as_ref()).is_none_or(|it| *it.get());
    let swallowed = |address: IpAddr| peers.iter().flat_map(|peer| &peer.allowed_ips).find(|it| it.contains(&address));
    for (at, path) in paths.iter().enumerate().filter(|(_, path)| routes && path.interface.is_none()) {
        let endpoints = path.endpoint.iter().chain(peers.iter().filter_map(|peer| peer.endpoint.as_ref()));
        let reached = endpoints.filter_map(Endpoint::address).map(|it| it.ip());
        let everything = peers.iter().flat_map(|peer| &peer.allowed_ips).find(|it| it.prefix_len() == 0);
        if let Some(network) = reached.filter_map(swallowed).next().or(everything) {
            let span = tables.get(at).map_or(0..0, At::span);
            let message = format!("`{network}` would lead this path's own packets into the tunnel");
            let help = "`interface = ...` binds the path to its device, so that it goes round the tunnel";
            context.fault(Fault::at(span, message).help(help));
        }
    }
}
