//! `[[peer]]`.

use super::context::{Context, missing};
use super::value;
use crate::config::endpoint::PeerEndpoint;
use crate::config::model::ConfiguredPeer;
use crate::config::tables::{ConfigFile, PeerTable};
use ipnet::IpNet;
use parse::{Diagnostic, Spanned};
use seal::{PresharedKey, PublicKey};
use std::ops::Range;

pub(super) fn peers(file: &ConfigFile, context: &mut Context<'_>) -> Vec<ConfiguredPeer> {
    let tables = file.peer.as_deref().unwrap_or_default();
    if tables.is_empty() {
        context.report(missing(0..0, "peer").with_help("[[peer]] with `public-key` and `allowed-ips`"));
    }
    if let (true, Some(second)) = (context.is_mpt, tables.get(1)) {
        context.report(
            Diagnostic::new(second.span(), "`mpt` mode has one peer").with_help("a file, and an interface, for each"),
        );
    }
    let mut networks = Vec::new();
    let peers: Vec<ConfiguredPeer> = tables.iter().map(|table| peer(table, &mut networks, context)).collect();
    for (index, table) in tables.iter().enumerate() {
        let has_same_key =
            |earlier: &ConfiguredPeer| earlier.public_key.is_some() && earlier.public_key == peers[index].public_key;
        if let (true, Some(key)) = (peers[..index].iter().any(has_same_key), &table.get().public_key) {
            context.report(
                Diagnostic::new(key.span(), "another peer has this key").with_help("one [[peer]] for each key"),
            );
        }
    }
    for (index, (network, peer, span)) in networks.iter().enumerate() {
        if networks[..index].iter().any(|(earlier, owner, _)| earlier == network && owner != peer) {
            let diagnostic = Diagnostic::new(span.clone(), format!("`{network}` belongs to another peer"));
            context.report(diagnostic.with_help("peers may share addresses by prefixes of different length only"));
        }
    }
    peers
}

/// A network of a peer, the start of the peer's table, and the span of the network.
type OwnedNetwork = (IpNet, usize, Range<usize>);

fn peer(table: &Spanned<PeerTable>, networks: &mut Vec<OwnedNetwork>, context: &mut Context<'_>) -> ConfiguredPeer {
    let values = table.get();
    let (public_key, preshared_key) = if context.is_mpt { refuse_keys(values, context) } else { keys(table, context) };
    let mut allowed_ips = Vec::new();
    for (text, span) in value::strings(values.allowed_ips.as_ref()) {
        if let Some(network) = context.ok(value::parse_network(&text, span.clone())) {
            allowed_ips.push(network.trunc());
            networks.push((network.trunc(), table.span().start, span));
        }
    }
    if values.allowed_ips.is_none() {
        let help = "the inner addresses of this peer, such as `allowed-ips = [\"10.77.0.2/32\"]`";
        context.report(missing(table.span(), "allowed-ips").with_help(help));
    }
    let address = values.address.as_ref().and_then(|text| value::address(text, context));
    if context.is_mpt && values.address.is_none() {
        let help = "the peer's inner address, such as `address = \"10.77.0.2\"`: MPT's keepalives carry it";
        context.report(missing(table.span(), "address").with_help(help));
    }
    let endpoint = values.endpoint.as_ref().and_then(|text| endpoint(text, context));
    ConfiguredPeer { public_key, preshared_key, allowed_ips, endpoint, address }
}

type Keys = (Option<PublicKey>, Option<PresharedKey>);

fn keys(table: &Spanned<PeerTable>, context: &mut Context<'_>) -> Keys {
    let values = table.get();
    context.refuse(values.address.as_ref(), "address", "only with mode = \"mpt\"; here `allowed-ips` is enough");
    if values.public_key.is_none() {
        let help = "the other end's: `ropewalk pubkey < KEYFILE` there prints it";
        context.report(missing(table.span(), "public-key").with_help(help));
    }
    let public_key = values.public_key.as_ref().and_then(|text| context.ok(value::key(text)));
    let (inline, file) = (values.preshared_key.as_ref(), values.preshared_key_file.as_ref());
    (public_key, value::secret(inline, file, "preshared-key", context))
}

fn refuse_keys(values: &PeerTable, context: &mut Context<'_>) -> Keys {
    let help = "`mpt` mode has no keys: remove it, or leave `mode` out";
    context.refuse(values.public_key.as_ref(), "public-key", help);
    context.refuse(values.preshared_key.as_ref(), "preshared-key", help);
    context.refuse(values.preshared_key_file.as_ref(), "preshared-key-file", help);
    (None, None)
}

pub(super) fn endpoint(text: &Spanned<String>, context: &mut Context<'_>) -> Option<PeerEndpoint> {
    let help = "such as `vpn.example.org:4754`, `192.0.2.1:4754` or `[2001:db8::1]:4754`";
    context.ok(PeerEndpoint::parse(text.get()).map_err(|error| Diagnostic::new(text.span(), error).with_help(help)))
}
