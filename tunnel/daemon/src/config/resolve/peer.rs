//! `[[peer]]`.

use super::context::{Context, missing};
use super::peers_file;
use super::value;
use crate::config::endpoint::PeerEndpoint;
use crate::config::model::ConfiguredPeer;
use crate::config::peers_file::{PEER_NAME_HELP, is_peer_name};
use crate::config::tables::{ConfigFile, PeerTable, StringOrList};
use ipnet::IpNet;
use parse::{Diagnostic, Spanned};
use seal::{PresharedKey, PublicKey};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) fn peers(file: &ConfigFile, context: &mut Context<'_>) -> Vec<ConfiguredPeer> {
    let tables = file.peer.as_deref().unwrap_or_default();
    let peers_file = file.interface.as_ref().and_then(|table| table.get().peers_file.as_ref());
    if tables.is_empty() && peers_file.is_none() {
        context.report(missing(0..0, "peer").with_help("[[peer]] with `public-key` and `allowed-ips`"));
    }
    if let (true, Some(second)) = (context.is_mpt, tables.get(1)) {
        context.report(
            Diagnostic::new(second.span(), "`mpt` mode has one peer").with_help("a file, and an interface, for each"),
        );
    }
    let mut peers = Peers::default();
    tables.iter().for_each(|table| peers.add(table, false, context));
    if context.is_mpt {
        context.refuse(peers_file, "peers-file", "`mpt` mode has one peer, in the configuration");
    } else if let Some(name) = peers_file {
        peers_file::read_into(name, &mut peers, context);
    }
    peers.list
}

/// The peers so far, of one file or of two.
#[derive(Default)]
pub(super) struct Peers {
    pub(super) list: Vec<ConfiguredPeer>,
    keys: BTreeSet<PublicKey>,
    /// Networks, each with the index of its peer.
    networks: BTreeMap<IpNet, usize>,
}

impl Peers {
    /// Adds the peer of a table, which may be one of the `peers-file`, after checking it against those before.
    pub(super) fn add(&mut self, table: &Spanned<PeerTable>, is_enrolled: bool, context: &mut Context<'_>) {
        let mut networks = Vec::new();
        let mut peer = peer(table, &mut networks, context);
        peer.is_enrolled = is_enrolled;
        if !is_enrolled {
            let help = "it is written by `ropewalk setup server`, into the file that `peers-file` names";
            context.refuse(table.get().token_expires.as_ref(), "token-expires", help);
            context.refuse(table.get().expires.as_ref(), "expires", help);
        }
        if let (Some(key), Some(text)) = (peer.public_key, &table.get().public_key)
            && !self.keys.insert(key)
        {
            let diagnostic = Diagnostic::new(text.span(), "another peer has this key");
            context.report(diagnostic.with_help("one [[peer]] for each key"));
        }
        let index = self.list.len();
        for (network, span) in networks {
            let owner = *self.networks.entry(network).or_insert(index);
            if owner != index && !are_alternatives(&self.list[owner], &peer) {
                let diagnostic = Diagnostic::new(span, format!("`{network}` belongs to another peer"));
                let help = "peers may share addresses by prefixes of different length only, but for several servers, \
                            which have all networks in common and each a `priority`";
                context.report(diagnostic.with_help(help));
            }
        }
        self.list.push(peer);
    }
}

/// A network of a peer, and its span.
type SpannedNetwork = (IpNet, Range<usize>);

fn peer(table: &Spanned<PeerTable>, networks: &mut Vec<SpannedNetwork>, context: &mut Context<'_>) -> ConfiguredPeer {
    let values = table.get();
    let (public_key, preshared_key) = if context.is_mpt { refuse_keys(values, context) } else { keys(table, context) };
    let mut allowed_ips = Vec::new();
    for (text, span) in value::strings(values.allowed_ips.as_ref()) {
        if let Some(network) = context.ok(value::parse_network(&text, span.clone())) {
            allowed_ips.push(network.trunc());
            networks.push((network.trunc(), span));
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
    let endpoint = endpoint(values.endpoint.as_ref(), context);
    let unix_time = |seconds: &Spanned<i64>| u64::try_from(*seconds.get()).unwrap_or(0);
    let (token_expires, expires) =
        (values.token_expires.as_ref().map(unix_time), values.expires.as_ref().map(unix_time));
    let name = values.name.as_ref().and_then(|name| context.ok(peer_name(name)));
    let priority = priority(values, context);
    ConfiguredPeer {
        name,
        public_key,
        preshared_key,
        allowed_ips,
        endpoint,
        address,
        token_expires,
        expires,
        is_enrolled: false,
        priority,
    }
}

/// The name of a peer. It must be printable, because it is shown in terminals and pages.
fn peer_name(name: &Spanned<String>) -> Result<String, Diagnostic> {
    if is_peer_name(name.get()) {
        return Ok(name.get().clone());
    }
    let diagnostic = Diagnostic::new(name.span(), "this is not a name of a peer");
    Err(diagnostic.with_help(PEER_NAME_HELP))
}

fn priority(values: &PeerTable, context: &mut Context<'_>) -> Option<u32> {
    if context.is_mpt {
        context.refuse(values.priority.as_ref(), "priority", "`mpt` mode has one peer: remove it");
    }
    let number = values.priority.as_ref()?;
    Some(value::integer(Some(number), 0..=1000, 0, context) as u32)
}

/// Whether two peers are servers of one group: both have a priority, and the same networks.
fn are_alternatives(peer: &ConfiguredPeer, other: &ConfiguredPeer) -> bool {
    let networks = |peer: &ConfiguredPeer| peer.allowed_ips.iter().copied().collect::<BTreeSet<_>>();
    peer.priority.is_some() && other.priority.is_some() && networks(peer) == networks(other)
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

/// The endpoint of a peer, from one place or a list of them.
pub(super) fn endpoint(value: Option<&Spanned<StringOrList>>, context: &mut Context<'_>) -> Option<PeerEndpoint> {
    let help = "such as `vpn.example.org:4754`, `192.0.2.1:4754` or `[2001:db8::1]:4754`";
    let places = value::strings(value);
    let span = value.map_or(0..0, Spanned::span);
    if value.is_some() && places.is_empty() {
        context.report(Diagnostic::new(span, "there is no endpoint in this list").with_help(help));
    } else if context.is_mpt && places.len() > 1 {
        let diagnostic = Diagnostic::new(span, "a path has one endpoint in `mpt` mode");
        context.report(diagnostic.with_help("MPT's paths are fixed: [[path]] for each"));
    }
    let parse = |(text, span): (String, Range<usize>)| {
        context.ok(PeerEndpoint::parse(&text).map_err(|error| Diagnostic::new(span, error).with_help(help)))
    };
    places.into_iter().filter_map(parse).reduce(PeerEndpoint::or)
}
