//! `[[path]]`.

use super::context::{Context, flag, missing};
use super::interface::is_device_name;
use super::{peer, role, value};
use crate::config::endpoint::PeerEndpoint;
use crate::config::model::{ConfiguredPath, ConfiguredPeer, InterfaceConfig};
use crate::config::tables::{ConfigFile, PathTable};
use parse::{BitRate, Diagnostic, Spanned};
use std::net::IpAddr;

const MAX_PATHS: usize = 64;

pub(super) fn paths(
    file: &ConfigFile,
    interface: &mut InterfaceConfig,
    peers: &[ConfiguredPeer],
    context: &mut Context<'_>,
) -> Vec<ConfiguredPath> {
    let tables = file.path.as_deref().unwrap_or_default();
    let is_initiator =
        peers.iter().any(|peer| peer.endpoint.is_some()) || tables.iter().any(|path| path.get().endpoint.is_some());
    let has_listen_port = file.interface.as_ref().is_some_and(|table| table.get().listen_port.is_some());
    // An initiator needs no port that others know.
    if is_initiator && !has_listen_port && !context.is_mpt {
        interface.listen_port = 0;
    }
    if tables.is_empty() && context.is_mpt {
        context.report(
            missing(0..0, "path").with_help("[[path]] with `source` and `endpoint`, one for each of MPT's paths"),
        );
    }
    if tables.len() > MAX_PATHS {
        context.report(Diagnostic::new(tables[MAX_PATHS].span(), format!("more than {MAX_PATHS} paths")));
    }
    let mut paths: Vec<ConfiguredPath> =
        tables.iter().map(|table| path(table, interface.listen_port, context)).collect();
    for (index, table) in tables.iter().enumerate() {
        check(table, index, &paths, interface, peers, context);
        role::check(table, context);
        if !is_initiator && !context.is_mpt {
            role::warn_of_no_use(table, &paths[index].name, context);
        }
    }
    role::check_classes(file, &paths, interface, context);
    if paths.is_empty() && interface.uplinks.is_none() {
        // The routing table decides.
        paths.push(ConfiguredPath::any(interface.listen_port, "any".into()));
    }
    check_automatic(file, peers, context);
    check_routing_loop(tables, &paths, peers, file, context);
    paths
}

fn path(table: &Spanned<PathTable>, port: u16, context: &mut Context<'_>) -> ConfiguredPath {
    let values = table.get();
    let interface = values.interface.as_ref().map(|name| name.get().clone());
    let given_name = values.name.as_ref().map(|name| name.get().clone());
    let name =
        given_name.or_else(|| interface.clone()).or_else(|| values.source.as_ref().map(|source| source.get().clone()));
    if interface.is_none() && values.source.is_none() && values.endpoint.is_none() {
        let help = "the uplink, such as `interface = \"wwan0\"`, or an address of it as `source`";
        context.report(missing(table.span(), "interface").with_help(help));
    }
    if let Some(name) = values.interface.as_ref().filter(|name| !is_device_name(name.get())) {
        let message = format!("`{}` is not a valid device name", name.get());
        context.report(Diagnostic::new(name.span(), message).with_help("as `ip link` shows it, such as \"wwan0\""));
    }
    let rate = values.rate.as_ref().and_then(|text| context.ok(value::quantity::<BitRate>(text)));
    ConfiguredPath {
        name: name.unwrap_or_else(|| "any".into()),
        interface,
        source: values.source.as_ref().and_then(|text| value::address(text, context)),
        listen_port: value::integer(values.listen_port.as_ref(), 0..=65_535, i64::from(port), context) as u16,
        endpoint: peer::endpoint(values.endpoint.as_ref(), context),
        backup: flag(values.backup.as_ref(), false),
        metered: flag(values.metered.as_ref(), false),
        secondary: flag(values.secondary.as_ref(), false),
        classes: role::classes(values.classes.as_ref(), context),
        quota: role::quota(values, context),
        over_quota: false,
        weight: value::integer(values.weight.as_ref(), 1..=10_000, 1, context) as u32,
        rate: rate.map(|rate| rate.0),
        automatic: false,
        gateway: None,
    }
}

/// Checks that there is a peer with a known address, which automatic uplinks and routes need.
fn check_automatic(file: &ConfigFile, peers: &[ConfiguredPeer], context: &mut Context<'_>) {
    let table = file.interface.as_ref().map(Spanned::get);
    let spans = [
        ("uplinks", table.and_then(|table| table.uplinks.as_ref()).map(Spanned::span)),
        ("routing", table.and_then(|table| table.routing.as_ref()).map(Spanned::span)),
    ];
    let has_endpoint = peers.iter().any(|peer| peer.endpoint.is_some());
    for (key, span) in spans {
        let Some(span) = span else { continue };
        if context.is_mpt {
            let diagnostic = Diagnostic::new(span, format!("`{key}` has no meaning in this mode"));
            context.report(diagnostic.with_help("MPT's paths are fixed: [[path]] for each"));
        } else if !has_endpoint && key == "uplinks" {
            let diagnostic = Diagnostic::new(span, "automatic uplinks need a peer with an `endpoint`: there is none");
            context.report(
                diagnostic.with_help("`endpoint` in [[peer]]; an end that waits for its peers needs no uplinks"),
            );
        }
    }
}

/// Checks a path against the paths before it, the interface and the peers.
fn check(
    table: &Spanned<PathTable>,
    index: usize,
    paths: &[ConfiguredPath],
    interface: &InterfaceConfig,
    peers: &[ConfiguredPeer],
    context: &mut Context<'_>,
) {
    let (values, path) = (table.get(), &paths[index]);
    if paths[..index].iter().any(|earlier| earlier.name == path.name) {
        let span = values.name.as_ref().map_or(table.span(), Spanned::span);
        context.report(
            Diagnostic::new(span, format!("another path has the name `{}`", path.name))
                .with_help("a `name` of its own"),
        );
    }
    if let (true, Some(name)) = (path.interface.as_ref() == Some(&interface.name), &values.interface) {
        context.report(Diagnostic::new(name.span(), "a path cannot use the tunnel's own device"));
    }
    if let (Some(text), 2..) = (&values.endpoint, peers.len()) {
        let diagnostic = Diagnostic::new(text.span(), "`endpoint` of a path is ambiguous: there are several peers");
        context.report(diagnostic.with_help("`endpoint` in each [[peer]]"));
    }
    let is_reached = |endpoint: &PeerEndpoint, source: IpAddr| {
        !endpoint.is_numeric() || endpoint.addresses().any(|address| address.is_ipv4() == source.is_ipv4())
    };
    if let (Some(source), Some(remote), Some(text)) = (path.source, &path.endpoint, &values.source)
        && !is_reached(remote, source)
    {
        let diagnostic = Diagnostic::new(text.span(), format!("`{source}` cannot send to `{remote}`"));
        context.report(diagnostic.with_help("both IPv4, or both IPv6"));
    }
}

/// Checks that outer packets are not routed into the tunnel: if the allowed IPs contain an endpoint, its paths need an
/// interface.
fn check_routing_loop(
    tables: &[Spanned<PathTable>],
    paths: &[ConfiguredPath],
    peers: &[ConfiguredPeer],
    file: &ConfigFile,
    context: &mut Context<'_>,
) {
    let routes = flag(file.interface.as_ref().and_then(|table| table.get().routes.as_ref()), true);
    let route_to =
        |address: IpAddr| peers.iter().flat_map(|peer| &peer.allowed_ips).find(|network| network.contains(&address));
    for (index, path) in paths.iter().enumerate().filter(|(_, path)| routes && path.interface.is_none()) {
        let endpoints = path.endpoint.iter().chain(peers.iter().filter_map(|peer| peer.endpoint.as_ref()));
        let remote = endpoints.flat_map(PeerEndpoint::addresses).map(|address| address.ip());
        let default_route = peers.iter().flat_map(|peer| &peer.allowed_ips).find(|network| network.prefix_len() == 0);
        if let Some(network) = remote.filter_map(route_to).next().or(default_route) {
            let span = tables.get(index).map_or(0..0, Spanned::span);
            let message = format!("`{network}` would route this path's own packets into the tunnel");
            let help = "`interface = ...` binds the path to its device, whose routes it then uses";
            context.report(Diagnostic::new(span, message).with_help(help));
        }
    }
}
