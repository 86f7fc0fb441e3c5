//! A peer of the engine: the transmit queue of each of its paths, its reassembly and its counters.

use super::packet::{PacketBytes, PacketSlice};
use super::relay::PeerRelay;
use super::telling::Teller;
use crate::data_plane::address::PathAddress;
use crate::data_plane::config::{Error, PeerConfig, PeerPathConfig, SocketConfig, path_config};
use crate::data_plane::report::{AddressReport, PeerReport};
use crate::data_plane::socket::Socket;
use crate::data_plane::transmit::{FreeBatches, TransmitQueue};
use machine::{Endpoint, EndpointConfig, MAX_PATHS, PathConfig, Reassembler};
use seal::{Entropy, PeerId, SystemEntropy};
use std::net::IpAddr;
use units::{Instant, PathId};

pub(super) type Node = node::Node<PacketSlice, PathAddress>;

/// The MTU tried on a path that the peer opened, bytes: Ethernet's.
const DEFAULT_MTU: u16 = 1500;
/// Maximum number of a peer's addresses that are counted one by one.
const MAX_UNALLOWED: usize = 4;

/// The transmit queue of a path, and the socket that it uses.
pub(super) struct PathQueue {
    pub(super) socket: usize,
    pub(super) queue: TransmitQueue,
}

/// Packets of a peer from addresses that are not its own.
#[derive(Debug, Default)]
pub(super) struct UnallowedSources {
    pub(super) count: u64,
    /// The number of packets by address, for the latest [`MAX_UNALLOWED`] addresses: a peer may invent any number of
    /// them.
    pub(super) latest: Vec<(IpAddr, u64)>,
}

impl UnallowedSources {
    pub(super) fn add(&mut self, source: Option<IpAddr>) {
        self.count += 1;
        let Some(source) = source else { return };
        if let Some((_, count)) = self.latest.iter_mut().find(|(address, _)| *address == source) {
            *count += 1;
            return;
        }
        if self.latest.len() == MAX_UNALLOWED {
            self.latest.remove(0);
        }
        self.latest.push((source, 1));
    }
}

/// A peer of the engine.
pub(super) struct EnginePeer {
    pub(super) config: PeerConfig,
    /// The queue of each path, by path id; `None` before the first datagram.
    path_queues: Vec<Option<PathQueue>>,
    pub(super) reassembler: Reassembler<PacketBytes>,
    pub(super) relay: PeerRelay,
    pub(super) teller: Teller,
    pub(super) no_session: u64,
    pub(super) unallowed_sources: UnallowedSources,
    pub(super) malformed: u64,
}

impl EnginePeer {
    /// Adds a peer to the node.
    ///
    /// # Errors
    /// As [`check_peer`], or if another peer has the same key.
    pub(super) fn add(
        config: PeerConfig,
        relay: PeerRelay,
        node: &mut Node,
        now: Instant,
    ) -> Result<(PeerId, Self), Error> {
        let id = node.add_peer(config.public_key, config.preshared_key.clone(), new_endpoint_config(&config));
        let id = id.map_err(|error| Error::config(format!("peer {}: {error}", config.public_key)))?;
        for path in &config.paths {
            node.set_path(now, id, path.id, route(path), path.path);
        }
        let peer = Self {
            config,
            path_queues: (0..MAX_PATHS).map(|_| None).collect(),
            reassembler: Reassembler::default(),
            relay,
            teller: Teller::default(),
            no_session: 0,
            unallowed_sources: UnallowedSources::default(),
            malformed: 0,
        };
        Ok((id, peer))
    }

    /// Applies `new_config`, which was checked. New paths are added before old ones are removed, so that the removal
    /// can be announced on the new ones.
    pub(super) fn change(&mut self, new_config: PeerConfig, id: PeerId, node: &mut Node, now: Instant) {
        if self.config.preshared_key != new_config.preshared_key {
            node.set_preshared(now, id, new_config.preshared_key.clone());
        }
        if self.config.weights() != new_config.weights() {
            node.set_endpoint_config(id, new_endpoint_config(&new_config));
        }
        for path in new_config.paths.iter().filter(|path| !self.config.paths.contains(path)) {
            node.set_path(now, id, path.id, route(path), path.path);
        }
        for old_path in
            self.config.paths.iter().filter(|old_path| !new_config.paths.iter().any(|path| path.id == old_path.id))
        {
            node.remove_path(now, id, old_path.id);
            self.path_queues[usize::from(old_path.id)] = None;
        }
        self.config = new_config;
    }

    /// The paths on which datagrams were sent.
    pub(super) fn path_queues(&mut self) -> impl Iterator<Item = (PathId, &mut PathQueue)> {
        (0..).map(PathId).zip(&mut self.path_queues).filter_map(|(path, path_queue)| Some((path, path_queue.as_mut()?)))
    }

    /// The transmit queue of a path, whose datagrams go to `route` from now on.
    pub(super) fn path_queue(
        &mut self,
        sockets: &mut [Socket],
        path: PathId,
        route: &node::Route<PathAddress>,
        free_batches: &FreeBatches,
    ) -> &mut PathQueue {
        let (socket, address) = (usize::from(route.socket), route.remote);
        let slot = &mut self.path_queues[path.index()];
        if slot.as_ref().is_some_and(|path_queue| path_queue.socket != socket) {
            *slot = None;
        }
        let path_queue = slot.get_or_insert_with(|| {
            let queue = TransmitQueue::new(address, free_batches.clone());
            PathQueue { socket, queue }
        });
        path_queue.queue.set_address(&mut sockets[socket], address);
        path_queue
    }

    /// Whether datagrams wait until this socket is writable.
    pub(super) fn is_blocked_by(&self, socket: usize) -> bool {
        self.path_queues.iter().flatten().any(|path_queue| path_queue.socket == socket && path_queue.queue.is_blocked())
    }

    /// Whether datagrams wait until some socket is writable.
    pub(super) fn is_blocked(&self) -> bool {
        self.path_queues.iter().flatten().any(|path_queue| path_queue.queue.is_blocked())
    }

    pub(super) fn report(&self, id: PeerId, node: &Node, kernel_translation: bool) -> PeerReport {
        let address = |(path, route): (PathId, &node::Route<PathAddress>)| AddressReport {
            path: path.0 as u8,
            remote: route.remote.remote,
            local: route.remote.source,
        };
        PeerReport {
            public_key: self.config.public_key,
            session: node.sessions().status(id),
            status: node.endpoint(id).map(Endpoint::status),
            addresses: node.routes(id).map(address).collect(),
            names: self.teller.names().map(|(path, name)| (path, name.clone())).collect(),
            active: None,
            no_session: self.no_session,
            unallowed_source: self.unallowed_sources.count,
            unallowed_sources: self.unallowed_sources.latest.clone(),
            incomplete: self.reassembler.incomplete_packets + self.malformed,
            relay: self.relay.report(kernel_translation),
        }
    }
}

/// Checks whether the node can add a peer, with these sockets.
///
/// # Errors
/// An invalid key or algorithm, or a path without a socket of its address family.
pub(super) fn check_peer<'a>(
    config: &PeerConfig,
    node: &Node,
    socket_config: impl Fn(usize) -> Option<&'a SocketConfig>,
) -> Result<(), Error> {
    let config_error = |message: String| Error::config(format!("peer {}: {message}", config.public_key));
    config.options.endpoint_config(&config.weights(), machine::Entropy::seeded(0)).map_err(config_error)?;
    // Only new peers are checked: the check multiplies a curve point, and a reload may have a thousand peers.
    if node.sessions().find(&config.public_key).is_none() {
        node.sessions().check_peer_key(&config.public_key).map_err(|error| config_error(error.to_string()))?;
    }
    if config.paths.iter().any(|path| usize::from(path.id) >= MAX_PATHS) {
        return Err(config_error(format!("at most {MAX_PATHS} paths")));
    }
    for PeerPathConfig { name, socket: index, remote, .. } in &config.paths {
        let socket =
            socket_config(*index).ok_or_else(|| Error::config(format!("path {name}: there is no socket {index}")))?;
        if socket.bind.is_ipv4() != remote.is_ipv4() {
            return Err(Error::config(format!("path {name}: {remote} is not of its socket's address family")));
        }
    }
    Ok(())
}

/// Makes the endpoint's configuration, at the start and whenever the peer restarts.
fn new_endpoint_config(config: &PeerConfig) -> node::NewEndpointConfig {
    let (options, weights) = (config.options.clone(), config.weights());
    Box::new(move || -> EndpointConfig {
        let entropy = machine::Entropy::new(|| {
            let mut bits = [0; 8];
            SystemEntropy.fill(&mut bits);
            u64::from_le_bytes(bits)
        });
        options.endpoint_config(&weights, entropy).expect("the options were checked")
    })
}

/// The configured address of a path.
fn route(path: &PeerPathConfig) -> node::Route<PathAddress> {
    node::Route { socket: path.socket as u16, remote: PathAddress::to_remote(path.remote) }
}

/// The configuration of a path that the peer opened.
pub(super) fn learned_path_config(route: &node::Route<PathAddress>) -> PathConfig {
    path_config(DEFAULT_MTU, route.remote.remote)
}
