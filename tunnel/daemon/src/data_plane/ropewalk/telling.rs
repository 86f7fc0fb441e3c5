//! Reports the events of a peer to the control thread: names its paths, and drops events that exceed the peer's budget.

use super::RopewalkEngine;
use super::peer::{EnginePeer, Node};
use crate::data_plane::address::PathAddress;
use crate::data_plane::config::{PeerConfig, SocketConfig};
use crate::data_plane::event::{Budget, Change, EventSender, PathChange, PathName, PeerChange, PeerName, Refusal};
use crate::data_plane::event_loop::Io;
use machine::{Endpoint, EndpointEvent};
use node::NodeEvent;
use seal::{DropReason, PeerId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::{Instant, PathId, Span};

/// A reason for which handshakes are refused is reported again after this time: strangers can send any number of them.
const REFUSAL_INTERVAL: Span = Span::from_secs(60);

/// The refused handshakes that were reported.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: BTreeMap<Refusal, Instant>,
    /// The last value of [`seal::SealDevice::outdated_initiations`].
    outdated: u64,
}

impl RopewalkEngine {
    /// Counts a dropped datagram, and reports a refused handshake.
    pub(super) fn refuse(&mut self, io: &mut Io, now: Instant, socket: usize, reason: DropReason) {
        io.sockets[socket].report.refused += 1;
        let outdated = self.node.sessions().outdated_initiations();
        let is_outdated = std::mem::replace(&mut self.refusals.outdated, outdated) < outdated;
        let refusal = match reason {
            DropReason::UnknownPeer => Refusal::UnknownPeer,
            DropReason::InvalidMac1 => Refusal::OtherPublicKey,
            DropReason::NoCommonCipher => Refusal::NoCommonCipher,
            DropReason::ReplayedInitiation if is_outdated => Refusal::Outdated,
            _ => return,
        };
        let told = &mut self.refusals.told;
        if told.get(&refusal).is_none_or(|told| now.since(*told) >= REFUSAL_INTERVAL) {
            told.insert(refusal, now);
            io.events.send(Change::Refused(refusal));
        }
    }
}

impl EnginePeer {
    /// Reports an event of the node.
    pub(super) fn tell(&mut self, io: &Io, now: Instant, (node, id): (&Node, PeerId), event: NodeEvent) {
        let Self { config, teller, .. } = self;
        let is_established = matches!(event, NodeEvent::Established { .. });
        let changes = teller.changes((node, id), config, event, |index| io.sockets.get(index)?.config());
        let shared = (is_established && teller.is_key_shared(node, id)).then_some(PeerChange::KeyShared);
        for change in changes.into_iter().chain(shared) {
            teller.tell(&io.events, now, config, change);
        }
    }
}

/// The state of a peer that has been reported.
#[derive(Debug, Default)]
pub(super) struct Teller {
    budget: Budget,
    latest_takeover: Option<Instant>,
    /// The last reported address of each path.
    remotes: BTreeMap<PathId, SocketAddr>,
    /// The names of the paths that the peer has opened.
    names: BTreeMap<PathId, String>,
}

impl Teller {
    /// The names of the paths that the peer has opened, by path id.
    pub(super) fn names(&self) -> impl Iterator<Item = (u8, &String)> {
        self.names.iter().map(|(path, name)| (path.0 as u8, name))
    }

    /// The name of a path that the peer has opened: what the peer calls it, or `path-N` if it does not say or another
    /// path of the peer has that name.
    fn opened_name(&self, node: &Node, id: PeerId, config: &PeerConfig, path: PathId) -> String {
        let is_free = |name: &str| {
            !name.starts_with("path-")
                && config.paths.iter().all(|configured| configured.name != name)
                && self.names.iter().all(|(other, taken)| *other == path || taken != name)
        };
        let said = node.endpoint(id).and_then(|endpoint| endpoint.peer_name(path));
        said.filter(|name| is_free(name.as_str())).map_or_else(|| default_name(path), |name| name.as_str().to_owned())
    }

    /// The changes that an event of the node means. `socket` returns the configuration of a socket.
    pub(super) fn changes<'a>(
        &mut self,
        (node, id): (&Node, PeerId),
        config: &PeerConfig,
        event: NodeEvent,
        socket: impl Fn(usize) -> Option<&'a SocketConfig>,
    ) -> Vec<PeerChange> {
        let path = match event {
            NodeEvent::PathOpened(path) | NodeEvent::Tunnel(EndpointEvent::PathNamed(path)) => Some(path),
            _ => None,
        };
        let mut changes = Vec::new();
        if let Some(path) = path.filter(|path| !is_configured(config, *path)) {
            let name = self.opened_name(node, id, config, path);
            let is_other = self.names.get(&path).is_some_and(|old| *old != name);
            let address = node.route(id, path).map(|route| route.remote);
            let mut tell = |names: &_, change| {
                changes.push(PeerChange::Path(path_name(config, names, path, address, &socket), change));
            };
            // A path with another name is another path to those who see it.
            if is_other {
                tell(&self.names, PathChange::Removed);
            }
            self.names.insert(path, name);
            if is_other {
                tell(&self.names, PathChange::Added);
                let status = node.endpoint(id).map(Endpoint::status);
                let is_up = status.is_some_and(|it| it.paths.iter().any(|it| it.path == path && it.up));
                if is_up {
                    tell(&self.names, PathChange::Up(None));
                }
            }
        }
        changes.extend(self.change((node, id), config, event, socket));
        match event {
            NodeEvent::PathForgotten(path) | NodeEvent::Tunnel(EndpointEvent::PathRemoved(path)) => {
                self.names.remove(&path);
            }
            // The paths that the peer had opened are gone.
            NodeEvent::Established { numbers_reset: true } | NodeEvent::Tunnel(EndpointEvent::Closed) => {
                self.names.clear();
            }
            _ => {}
        }
        changes
    }

    /// The change that an event of the node means, if it is reported.
    fn change<'a>(
        &mut self,
        (node, id): (&Node, PeerId),
        config: &PeerConfig,
        event: NodeEvent,
        socket: impl Fn(usize) -> Option<&'a SocketConfig>,
    ) -> Option<PeerChange> {
        let path_change = |path: PathId, change: PathChange| {
            let address = node.route(id, path).map(|route| route.remote);
            Some(PeerChange::Path(path_name(config, &self.names, path, address, &socket), change))
        };
        let change = match event {
            NodeEvent::Established { numbers_reset } => {
                let cipher = node.sessions().status(id).and_then(|session| session.cipher);
                Some(PeerChange::Established { restarted: numbers_reset, cipher })
            }
            NodeEvent::PathMigrated(path) => path_change(path, PathChange::Moved(self.remote(config, path))),
            NodeEvent::PathOpened(path) if is_configured(config, path) => None,
            NodeEvent::PathOpened(path) => path_change(path, PathChange::Added),
            NodeEvent::PathForgotten(path) => path_change(path, PathChange::Removed),
            NodeEvent::Tunnel(event) => match event {
                EndpointEvent::PathUp(path) => {
                    let status = node.endpoint(id).map(Endpoint::status);
                    let paths = status.iter().flat_map(|status| &status.paths);
                    path_change(
                        path,
                        PathChange::Up(paths.filter(|status| status.path == path).find_map(|it| it.probe_rtt)),
                    )
                }
                // A removed path no longer exists; the removal is reported.
                EndpointEvent::PathDown(path) if !node.endpoint(id).is_some_and(|it| it.has_path(path)) => None,
                EndpointEvent::PathDown(path) => path_change(path, PathChange::Down),
                // The peer does not use the path, although this end would.
                EndpointEvent::PathRemoved(path) if is_configured(config, path) => path_change(path, PathChange::Down),
                EndpointEvent::PathRemoved(path) => path_change(path, PathChange::Removed),
                EndpointEvent::Closed => Some(PeerChange::Closed),
                EndpointEvent::ControllerFailed => {
                    let reason = node.endpoint(id).and_then(|endpoint| endpoint.status().controller_failure);
                    Some(PeerChange::ControllerFailed(reason.unwrap_or_default()))
                }
                EndpointEvent::MaxDatagramSize(..) | EndpointEvent::PathNamed(_) => None,
            },
        };
        self.remotes = node.routes(id).map(|(path, route)| (path, route.remote.remote)).collect();
        change
    }

    fn remote(&self, config: &PeerConfig, path: PathId) -> Option<SocketAddr> {
        let configured = || config.paths.iter().find(|it| u16::from(it.id) == path.0).map(|it| it.remote);
        self.remotes.get(&path).copied().or_else(configured)
    }

    /// Whether a host took the session back from another one with the same key since the last call.
    pub(super) fn is_key_shared(&mut self, node: &Node, id: PeerId) -> bool {
        let takeover = node.sessions().status(id).and_then(|session| session.latest_takeover);
        std::mem::replace(&mut self.latest_takeover, takeover) != takeover && takeover.is_some()
    }

    /// Sends a change, unless the peer has exceeded its budget.
    pub(super) fn tell(&mut self, events: &EventSender, now: Instant, config: &PeerConfig, change: PeerChange) {
        if self.budget.take(now) {
            send(events, config, change);
        }
    }
}

/// Sends a change that this end made, which needs no budget.
pub(super) fn send(events: &EventSender, config: &PeerConfig, change: PeerChange) {
    let name = PeerName { public_key: Some(config.public_key), name: config.name.clone() };
    events.send(Change::Peer(name, change));
}

fn is_configured(config: &PeerConfig, path: PathId) -> bool {
    config.paths.iter().any(|configured| u16::from(configured.id) == path.0)
}

/// The name of a path that the peer has opened without a name.
fn default_name(path: PathId) -> String {
    format!("path-{}", path.0)
}

/// The name of a path, and the device and address that it is bound to.
fn path_name<'a>(
    config: &PeerConfig,
    names: &BTreeMap<PathId, String>,
    path: PathId,
    address: Option<PathAddress>,
    socket: impl Fn(usize) -> Option<&'a SocketConfig>,
) -> PathName {
    let remote = address.map(|address| address.remote);
    let Some(configured) = config.paths.iter().find(|configured| u16::from(configured.id) == path.0) else {
        let source = address.and_then(|address| address.source);
        let name = names.get(&path).cloned().unwrap_or_else(|| default_name(path));
        return PathName { name, opened_by_peer: true, remote, source, interface: None };
    };
    let socket = socket(configured.socket);
    PathName {
        name: configured.name.clone(),
        opened_by_peer: false,
        remote: remote.or(Some(configured.remote)),
        interface: socket.and_then(|socket| socket.interface.clone()),
        source: socket.map(|socket| socket.bind.ip()).filter(|source| !source.is_unspecified()),
    }
}

/// Reports the paths of a new peer.
pub(super) fn tell_configured<'a>(
    events: &EventSender,
    config: &PeerConfig,
    socket: impl Fn(usize) -> Option<&'a SocketConfig>,
) {
    for path in &config.paths {
        let name = path_name(config, &BTreeMap::new(), PathId(u16::from(path.id)), None, &socket);
        send(events, config, PeerChange::Path(name, PathChange::Configured));
    }
}

/// Reports how the paths of `new` differ from those of `old`, by their names.
pub(super) fn tell_reload<'a>(
    events: &EventSender,
    old: &PeerConfig,
    new: &PeerConfig,
    socket: impl Fn(usize) -> Option<&'a SocketConfig>,
) {
    for path in &old.paths {
        let name = path_name(old, &BTreeMap::new(), PathId(u16::from(path.id)), None, |_| None);
        match new.paths.iter().find(|other| other.name == path.name) {
            None => send(events, new, PeerChange::Path(name, PathChange::Removed)),
            Some(other) if other.id != path.id => {
                let name = path_name(new, &BTreeMap::new(), PathId(u16::from(other.id)), None, &socket);
                send(events, new, PeerChange::Path(name, PathChange::Replaced));
            }
            Some(_) => {}
        }
    }
    for path in new.paths.iter().filter(|path| old.paths.iter().all(|other| other.name != path.name)) {
        let name = path_name(new, &BTreeMap::new(), PathId(u16::from(path.id)), None, &socket);
        send(events, new, PeerChange::Path(name, PathChange::Added));
    }
}

#[cfg(test)]
mod tests;
