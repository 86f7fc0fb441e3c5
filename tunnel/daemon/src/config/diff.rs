//! The differences between two configurations of a running tunnel, and those that need a restart.

use super::model::{ConfiguredPath, ConfiguredPeer, InterfaceConfig, Mode, TunnelConfig};
use machine::TunnelOptions;
use seal::PublicKey;
use std::collections::BTreeMap;

/// A change from the old configuration to the new one.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigChange {
    /// The path of this name is removed.
    RemovePath(String),
    /// A new path, or one whose socket or endpoint differs from those of the old path of that name, which is removed
    /// first.
    AddPath(ConfiguredPath),
    /// The path of this name keeps its socket and endpoint, but other properties changed.
    SetPath(ConfiguredPath),
    /// The values of these keys changed for the peer with this public key.
    SetPeer(ConfiguredPeer, Vec<&'static str>),
    /// A new peer.
    AddPeer(ConfiguredPeer),
    /// The peer with this public key is removed.
    RemovePeer(ConfiguredPeer),
    /// These keys of the device changed.
    SetInterface(Vec<&'static str>),
    /// These keys changed, which needs a restart.
    NeedsRestart(Vec<&'static str>),
}

/// The changes from `old` to `new`. A [`ConfigChange::NeedsRestart`] is the last one.
#[must_use]
pub fn diff(old: &TunnelConfig, new: &TunnelConfig) -> Vec<ConfigChange> {
    let mut changes = path_changes(&old.paths, &new.paths);
    changes.extend(peer_list_changes(&old.peers, &new.peers));
    let mut restart_keys = needs_restart(old, new);
    if new.mpt().is_some() {
        restart_keys.extend(needs_restart_in_mpt(&changes));
    }
    let interface_keys = interface_changes(&old.interface, &new.interface);
    if !interface_keys.is_empty() {
        changes.push(ConfigChange::SetInterface(interface_keys));
    }
    if !restart_keys.is_empty() {
        changes.push(ConfigChange::NeedsRestart(restart_keys));
    }
    changes
}

/// The keys whose values differ.
fn differing_keys<const N: usize>(keys: [(&'static str, bool); N]) -> Vec<&'static str> {
    keys.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

fn interface_changes(old: &InterfaceConfig, new: &InterfaceConfig) -> Vec<&'static str> {
    differing_keys([
        ("interface.address", old.addresses != new.addresses),
        ("interface.mtu", old.mtu != new.mtu),
        ("interface.routes", old.routes != new.routes),
        ("interface.uplinks", old.uplinks != new.uplinks),
        ("interface.routing", old.policy_routing != new.policy_routing),
        ("interface.exclusive", old.exclusive != new.exclusive),
    ])
}

/// Keys that only a restart can change. `interface.listen-port` is not one of them: it shows as a change of the paths.
fn needs_restart(old: &TunnelConfig, new: &TunnelConfig) -> Vec<&'static str> {
    let mode = match (&old.mode, &new.mode) {
        (Mode::Ropewalk { .. }, Mode::Ropewalk { .. }) => "interface.private-key",
        (Mode::Mpt(_), Mode::Mpt(_)) => "mpt",
        _ => "interface.mode",
    };
    let (old_interface, new_interface) = (&old.interface, &new.interface);
    let mut keys = differing_keys([
        (mode, old.mode != new.mode),
        ("interface.name", old_interface.name != new_interface.name),
        ("interface.peers-file", old_interface.peers_file != new_interface.peers_file),
        ("interface.user", old_interface.user != new_interface.user),
        ("interface.metrics", old_interface.metrics != new_interface.metrics),
        ("interface.threads", old_interface.threads != new_interface.threads),
    ]);
    keys.extend(option_changes(&old.options, &new.options));
    keys.extend(super::observation::changes(&old.observation, &new.observation));
    let class_differs = old.realtime != new.realtime || old.options.realtime != new.options.realtime;
    keys.extend(class_differs.then_some("class.realtime"));
    keys.extend((old.relay != new.relay).then_some("tunnel.relay"));
    keys
}

fn option_changes(old: &TunnelOptions, new: &TunnelOptions) -> Vec<&'static str> {
    differing_keys([
        ("tunnel.congestion", old.congestion != new.congestion),
        ("tunnel.scheduler", old.scheduler != new.scheduler),
        ("tunnel.retransmit", old.retransmit != new.retransmit),
        ("tunnel.ack-filter", old.ack_filter != new.ack_filter),
        ("tunnel.in-order", old.in_order != new.in_order),
        ("tunnel.late", old.deliver_late != new.deliver_late),
        ("tunnel.max-reorder-timeout", old.max_reorder_timeout != new.max_reorder_timeout),
    ])
}

/// The changed keys that are fixed in `mpt` mode: its ends have one sequence number space over a fixed set of paths,
/// and no message to announce a change.
fn needs_restart_in_mpt(changes: &[ConfigChange]) -> Vec<&'static str> {
    let is_path_change = |change: &ConfigChange| {
        matches!(change, ConfigChange::RemovePath(_) | ConfigChange::AddPath(_) | ConfigChange::SetPath(_))
    };
    let path_key = changes.iter().any(is_path_change).then_some("path (in `mpt` mode)");
    let peer_keys = changes.iter().flat_map(|change| match change {
        ConfigChange::SetPeer(_, keys) => keys.as_slice(),
        _ => &[],
    });
    path_key.into_iter().chain(peer_keys.copied().filter(|key| *key != ALLOWED_IPS)).collect()
}

fn path_changes(old: &[ConfiguredPath], new: &[ConfiguredPath]) -> Vec<ConfigChange> {
    let find = |paths: &[ConfiguredPath], name: &str| paths.iter().find(|path| path.name == name).cloned();
    let is_kept = |path: &ConfiguredPath| find(new, &path.name).is_some_and(|new_path| same_address(path, &new_path));
    let removed = old.iter().filter(|path| !is_kept(path)).map(|path| ConfigChange::RemovePath(path.name.clone()));
    let added_or_changed = new.iter().filter_map(|path| match find(old, &path.name) {
        Some(old_path) if old_path == *path => None,
        Some(old_path) if same_address(&old_path, path) => Some(ConfigChange::SetPath(path.clone())),
        _ => Some(ConfigChange::AddPath(path.clone())),
    });
    removed.chain(added_or_changed).collect()
}

/// Whether both have the same socket and the same endpoint.
fn same_address(a: &ConfiguredPath, b: &ConfiguredPath) -> bool {
    (&a.interface, a.source, a.listen_port, &a.endpoint) == (&b.interface, b.source, b.listen_port, &b.endpoint)
}

const ALLOWED_IPS: &str = "peer.allowed-ips";

fn peer_list_changes(old: &[ConfiguredPeer], new: &[ConfiguredPeer]) -> Vec<ConfigChange> {
    let by_key = |peers: &'_ [ConfiguredPeer]| -> BTreeMap<Option<PublicKey>, usize> {
        peers.iter().enumerate().map(|(index, peer)| (peer.public_key, index)).collect()
    };
    let (old_by_key, new_by_key) = (by_key(old), by_key(new));
    let removed = old.iter().filter(|peer| !new_by_key.contains_key(&peer.public_key));
    let removed = removed.cloned().map(ConfigChange::RemovePeer);
    let added_or_changed =
        new.iter().filter_map(|peer| match old_by_key.get(&peer.public_key).map(|index| &old[*index]) {
            Some(old_peer) if old_peer == peer => None,
            Some(old_peer) => Some(ConfigChange::SetPeer(peer.clone(), peer_changes(old_peer, peer))),
            None => Some(ConfigChange::AddPeer(peer.clone())),
        });
    removed.chain(added_or_changed).collect()
}

fn peer_changes(old: &ConfiguredPeer, new: &ConfiguredPeer) -> Vec<&'static str> {
    differing_keys([
        (ALLOWED_IPS, old.allowed_ips != new.allowed_ips),
        ("peer.endpoint", old.endpoint != new.endpoint),
        ("peer.preshared-key", old.preshared_key != new.preshared_key),
        ("peer.name", old.name != new.name),
        ("peer.address", old.address != new.address),
        ("peer.priority", old.priority != new.priority),
        ("peer.expires", old.expires != new.expires),
    ])
}
