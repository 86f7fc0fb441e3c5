//! The relay's TCP ends (RFC 3135): the kernel's TCP, steered by address translation at the TUN device.
//!
//! ```text
//! client -> server              leaves by the device, and comes in again as  remote:n -> local:m
//! local:m -> remote:n           leaves by the device, and comes in again as  server -> client
//! ```
//! `local` and `remote` are the addresses of the internal network, which is on the device only: the daemon's socket is
//! connected from `local` to port `n` of `remote`. At the near end the client's SYN is held until the far end has
//! connected. Then the socket connects, its own SYN is dropped, and the client's replaces it (simultaneous open, RFC
//! 9293, section 3.5). So no socket listens, a firewall sees connections that the host has begun, and no SYN is
//! answered before the server has answered. At the far end the socket's SYN goes to the server with the client's
//! address.
//!
//! These packets come in by the device like those from the tunnel: reverse path filter, firewall and forwarding treat
//! them alike, and nothing except the device is changed on the host. The kernel translates if it can; otherwise the
//! daemon does.

mod connection;
mod kernel;
mod peer;
mod socket;
mod steering;
mod translations;

pub(super) use peer::PeerRelay;
pub(super) use steering::Steered;

use super::peer::EnginePeer;
use crate::config::RelayOptions;
use crate::data_plane::buffer::Pool;
use crate::data_plane::config::Error;
use crate::data_plane::device::Device;
use ::relay::{Addresses, ConnectionId, Event, ResetReason};
use connection::{ConnectedSocket, RelayedConnection, Stage};
use kernel::KernelTranslations;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use seal::PeerId;
use socket::{RelaySocket, reset_reason};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use translations::Translations;
use units::Instant;

/// Maximum number of epoll events fetched at once.
const MAX_EVENTS: usize = 256;

pub(super) type Peers = BTreeMap<PeerId, EnginePeer>;

/// All relayed connections at this end.
pub(super) struct RelayDriver {
    /// `None` if this end does not relay.
    options: Option<RelayOptions>,
    epoll: Epoll,
    translations: Translations,
    /// The connections by slot, which is also the data of epoll.
    connections: Vec<Option<RelayedConnection>>,
    free_slots: Vec<usize>,
    slots: BTreeMap<(PeerId, ConnectionId), usize>,
    /// Slots of connections that have something to do.
    active: VecDeque<usize>,
}

impl RelayDriver {
    /// # Errors
    /// No file descriptor is left.
    pub(super) fn new(options: Option<RelayOptions>, device: &Device) -> Result<Self, Error> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(|errno| Error::new("the relay's event queue", errno))?;
        if options.is_some() {
            raise_file_limit();
        }
        let kernel = options.as_ref().and_then(|_| KernelTranslations::attach(device.name()));
        Ok(Self {
            options,
            epoll,
            translations: Translations::new(kernel),
            connections: Vec::new(),
            free_slots: Vec::new(),
            slots: BTreeMap::new(),
            active: VecDeque::new(),
        })
    }

    /// This end of the relay with a new peer.
    pub(super) fn peer_relay(&self) -> PeerRelay {
        PeerRelay::new(self.options.as_ref().map(|options| options.max_connections))
    }

    /// Whether an address is of the internal networks, which no packet of the tunnel may have.
    pub(super) fn is_internal(&self, address: IpAddr) -> bool {
        let mut networks = self.options.iter().flat_map(|options| &options.networks);
        networks.any(|network| network.contains(address))
    }

    /// Whether this end relays.
    pub(super) fn is_enabled(&self) -> bool {
        self.options.is_some()
    }

    /// Whether the kernel translates packets.
    pub(super) fn has_kernel_translation(&self) -> bool {
        self.translations.is_in_kernel()
    }

    /// Whether connections have something to do without an event.
    pub(super) fn is_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// Handles all events of the relays.
    pub(super) fn handle_events(
        &mut self,
        now: Instant,
        peers: &mut Peers,
        device: &mut Device,
        is_allowed: impl Fn(PeerId, IpAddr) -> bool,
    ) -> Vec<(PeerId, Vec<u8>)> {
        let mut passed = Vec::new();
        for (peer, engine_peer) in peers {
            while let Some(event) = engine_peer.relay.relay.poll_event() {
                match event {
                    Event::Opened { id, addresses } => {
                        let is_allowed = is_allowed(*peer, addresses.source.ip());
                        self.on_opened(now, *peer, &mut engine_peer.relay, id, addresses, is_allowed);
                    }
                    Event::Accepted(id) => self.on_accepted(now, *peer, &mut engine_peer.relay, id, device),
                    Event::Readable(id) | Event::Writable(id) => self.activate(*peer, id),
                    Event::Closed { id, reason } => {
                        let syn = self.on_closed(now, *peer, &mut engine_peer.relay, id, reason, device);
                        passed.extend(syn.map(|syn| (*peer, syn)));
                    }
                }
            }
        }
        passed
    }

    /// Far end: connects to the server for the peer's client.
    fn on_opened(
        &mut self,
        now: Instant,
        peer: PeerId,
        relay: &mut PeerRelay,
        id: ConnectionId,
        addresses: Addresses,
        is_allowed: bool,
    ) {
        let connected = if is_allowed { self.connect(now, &addresses) } else { None };
        let Some(connected) = connected else {
            relay.counters.not_relayed += 1;
            return relay.relay.reset(now, id, ResetReason::NotRelayed);
        };
        relay.counters.accepted += 1;
        let packets = addresses.reversed();
        if let Some(earlier) = self.end_earlier(now, &packets) {
            relay.relay.reset(now, earlier, ResetReason::Reset);
        }
        self.translations.add(packets, connected.addresses, connected.number, false);
        self.add(RelayedConnection { peer, id, addresses, stage: Stage::Socket(connected), is_active: false });
    }

    /// Near end: the far end has connected. The socket takes the held SYN for that of its peer.
    fn on_accepted(
        &mut self,
        now: Instant,
        peer: PeerId,
        relay: &mut PeerRelay,
        id: ConnectionId,
        device: &mut Device,
    ) {
        let Some(slot) = self.slots.get(&(peer, id)).copied() else { return };
        let Some(connection) = &self.connections[slot] else { return };
        let addresses = connection.addresses;
        let Some(connected) = self.connect(now, &addresses) else {
            relay.relay.reset(now, id, ResetReason::Reset);
            let syn = self.remove(now, slot).and_then(held_syn);
            return syn.iter().for_each(|syn| steering::write_reset(device, syn));
        };
        self.translations.add(addresses, connected.addresses, connected.number, true);
        let socket = connected.addresses;
        let Some(connection) = &mut self.connections[slot] else { return };
        if let Stage::Held(mut syn) = std::mem::replace(&mut connection.stage, Stage::Socket(connected)) {
            steering::write_translated(device, &mut syn, &socket.reversed());
        }
        self.watch(slot);
    }

    /// A connection no longer exists. Returns the held SYN if it is to go through the tunnel instead.
    fn on_closed(
        &mut self,
        now: Instant,
        peer: PeerId,
        relay: &mut PeerRelay,
        id: ConnectionId,
        reason: Option<ResetReason>,
        device: &mut Device,
    ) -> Option<Vec<u8>> {
        let slot = self.slots.get(&(peer, id)).copied()?;
        let connection = self.remove(now, slot)?;
        let (addresses, packets) = (connection.addresses, packets(&connection));
        match (connection.stage, reason) {
            (Stage::Held(syn), Some(ResetReason::NotRelayed)) => {
                relay.counters.not_relayed += 1;
                self.translations.pass(now, addresses);
                return Some(syn);
            }
            (Stage::Held(syn), Some(ResetReason::Refused | ResetReason::Reset)) => steering::write_reset(device, &syn),
            (Stage::Held(syn), Some(ResetReason::Unreachable)) => steering::write_unreachable(device, &syn),
            // The client's own timeout ends its attempt.
            (Stage::Held(_), Some(ResetReason::TimedOut) | None) => {}
            (Stage::Socket(connected), Some(_)) => self.reset_socket(&packets, connected),
            // The kernel ends the connection in order.
            (Stage::Socket(_), None) => {}
        }
        None
    }

    /// A socket for a connection; `None` if it is not relayed.
    fn connect(&mut self, now: Instant, addresses: &Addresses) -> Option<ConnectedSocket> {
        let options = self.options.as_ref().filter(|options| options.is_relayed(addresses))?;
        let network = options.network(addresses.source.is_ipv4())?;
        let number = self.translations.take_number(now)?;
        let Ok((socket, local)) = RelaySocket::connect(network, number) else {
            self.translations.return_number(number);
            return None;
        };
        let socket_packets = Addresses { source: local, destination: (network.remote, number).into() };
        Some(ConnectedSocket::new(socket, number, socket_packets))
    }

    /// Holds a client's SYN, `bytes` with the device's header, and opens a connection to the peer. False if the SYN is
    /// to go through the tunnel as a packet.
    pub(super) fn hold(
        &mut self,
        now: Instant,
        peer: PeerId,
        relay: &mut PeerRelay,
        addresses: Addresses,
        bytes: &[u8],
    ) -> bool {
        let is_relayed = self.options.as_ref().is_some_and(|options| options.is_relayed(&addresses));
        if !is_relayed || !relay.is_usable(now) {
            return false;
        }
        let Some(id) = relay.relay.open(now, addresses) else {
            relay.counters.not_relayed += 1;
            self.translations.pass(now, addresses);
            return false;
        };
        relay.counters.opened += 1;
        self.translations.hold(addresses);
        let stage = Stage::Held(bytes.to_vec());
        self.add(RelayedConnection { peer, id, addresses, stage, is_active: false });
        true
    }

    fn add(&mut self, connection: RelayedConnection) {
        let slot = self.free_slots.pop().unwrap_or(self.connections.len());
        if slot == self.connections.len() {
            self.connections.push(None);
        }
        self.slots.insert((connection.peer, connection.id), slot);
        let has_socket = matches!(connection.stage, Stage::Socket(_));
        self.connections[slot] = Some(connection);
        if has_socket {
            self.watch(slot);
        }
    }

    /// Adds the socket of a connection to the interest list, edge-triggered, for the whole life of the connection.
    fn watch(&mut self, slot: usize) {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        if let Some(RelayedConnection { stage: Stage::Socket(connected), .. }) = &self.connections[slot] {
            // It fails only without memory; then the connection's timeouts end it.
            let _ = self.epoll.add(&connected.socket, EpollEvent::new(flags, slot as u64));
        }
    }

    /// Removes a connection; its translations stay for a while.
    fn remove(&mut self, now: Instant, slot: usize) -> Option<RelayedConnection> {
        let connection = self.connections[slot].take()?;
        self.slots.remove(&(connection.peer, connection.id));
        self.free_slots.push(slot);
        match &connection.stage {
            Stage::Held(_) => self.translations.release(&connection.addresses),
            Stage::Socket(connected) => {
                let packets = packets(&connection);
                self.translations.end(now, packets, connected.addresses, connected.number);
            }
        }
        Some(connection)
    }

    /// Ends an earlier connection of the peer whose packets have the addresses of a new one: its host has forgotten it.
    fn end_earlier(&mut self, now: Instant, packets: &Addresses) -> Option<ConnectionId> {
        let Some(translations::Action::Translate(earlier)) = self.translations.get(packets) else { return None };
        let is_earlier = |connection: &RelayedConnection| match &connection.stage {
            Stage::Socket(connected) => connected.number == earlier.number,
            Stage::Held(_) => false,
        };
        let slot = self.connections.iter().position(|connection| connection.as_ref().is_some_and(is_earlier));
        let connection = slot.filter(|_| earlier.is_live).and_then(|slot| self.remove(now, slot))?;
        if let Stage::Socket(connected) = connection.stage {
            connected.socket.abort();
        }
        Some(connection.id)
    }

    fn activate(&mut self, peer: PeerId, id: ConnectionId) {
        if let Some(slot) = self.slots.get(&(peer, id)).copied() {
            self.activate_slot(slot);
        }
    }

    fn activate_slot(&mut self, slot: usize) {
        if let Some(connection) = self.connections[slot].as_mut().filter(|connection| !connection.is_active) {
            connection.is_active = true;
            self.active.push_back(slot);
        }
    }

    /// Handles the epoll events of the sockets.
    pub(super) fn poll_sockets(&mut self, now: Instant, peers: &mut Peers) {
        let mut events = [EpollEvent::empty(); MAX_EVENTS];
        loop {
            let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
            for event in &events[..count] {
                self.on_socket_event(now, peers, event.data() as usize, event.events());
            }
            if count < MAX_EVENTS {
                return;
            }
        }
    }

    fn on_socket_event(&mut self, now: Instant, peers: &mut Peers, slot: usize, flags: EpollFlags) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        let (peer, id) = (connection.peer, connection.id);
        let Stage::Socket(connected) = &mut connection.stage else { return };
        if flags.contains(EpollFlags::EPOLLERR) {
            let error = connected.socket.take_error();
            let error = error.unwrap_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset));
            return self.fail(now, peers, slot, &error);
        }
        connected.is_readable |= flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP);
        connected.is_writable |= flags.contains(EpollFlags::EPOLLOUT);
        if connected.is_writable && !connected.is_established {
            connected.is_established = true;
            if let (false, Some(peer)) = (id.is_local, peers.get_mut(&peer)) {
                peer.relay.relay.accept(now, id);
            }
        }
        self.activate_slot(slot);
    }

    /// Handles a failed connection: its other end gets a reset.
    fn fail(&mut self, now: Instant, peers: &mut Peers, slot: usize, error: &io::Error) {
        let Some(connection) = self.remove(now, slot) else { return };
        if let Some(peer) = peers.get_mut(&connection.peer) {
            peer.relay.relay.reset(now, connection.id, reset_reason(error));
        }
        let packets = packets(&connection);
        if let Stage::Socket(connected) = connection.stage {
            self.translations.forget_packets(&packets, connected.number);
        }
    }

    /// Moves bytes between sockets and relays, each active connection once.
    pub(super) fn transfer(&mut self, now: Instant, peers: &mut Peers, pool: &mut Pool) {
        for _ in 0..self.active.len() {
            let Some(slot) = self.active.pop_front() else { break };
            let Some(connection) = self.connections[slot].as_mut() else { continue };
            connection.is_active = false;
            let (id, Some(peer)) = (connection.id, peers.get_mut(&connection.peer)) else { continue };
            let Stage::Socket(connected) = &mut connection.stage else { continue };
            match connected.transfer(now, id, &mut peer.relay, pool) {
                Ok(true) => self.activate_slot(slot),
                Ok(false) => {}
                Err(error) => self.fail(now, peers, slot, &error),
            }
        }
    }

    /// Ends the connections that the allowed IPs of their peers no longer allow.
    pub(super) fn end_unallowed(
        &mut self,
        now: Instant,
        peers: &mut Peers,
        is_allowed: impl Fn(PeerId, IpAddr) -> bool,
    ) {
        for slot in 0..self.connections.len() {
            let Some(connection) = &self.connections[slot] else { continue };
            if !peers.contains_key(&connection.peer) || !is_allowed(connection.peer, peer_address(connection)) {
                self.abort(now, slot, peers);
            }
        }
    }

    /// Resets a connection at both ends.
    fn abort(&mut self, now: Instant, slot: usize, peers: &mut Peers) {
        let Some(connection) = self.remove(now, slot) else { return };
        if let Some(peer) = peers.get_mut(&connection.peer) {
            peer.relay.relay.reset(now, connection.id, ResetReason::Reset);
        }
        let packets = packets(&connection);
        if let Stage::Socket(connected) = connection.stage {
            self.reset_socket(&packets, connected);
        }
    }

    /// Resets a connection whose packets have these addresses.
    fn reset_socket(&mut self, packets: &Addresses, connected: ConnectedSocket) {
        self.translations.forget_packets(packets, connected.number);
        connected.socket.abort();
    }

    /// Resets the next connection before the daemon ends. False if there is none.
    pub(super) fn abort_any(&mut self, now: Instant, peers: &mut Peers) -> bool {
        let slot = self.slots.values().next().copied();
        slot.into_iter().for_each(|slot| self.abort(now, slot, peers));
        slot.is_some()
    }
}

impl AsFd for RelayDriver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

/// The addresses of the connection's own packets that leave by the device.
fn packets(connection: &RelayedConnection) -> Addresses {
    if connection.id.is_local { connection.addresses } else { connection.addresses.reversed() }
}

/// The connection's address on the peer's side.
fn peer_address(connection: &RelayedConnection) -> IpAddr {
    packets(connection).destination.ip()
}

fn held_syn(connection: RelayedConnection) -> Option<Vec<u8>> {
    match connection.stage {
        Stage::Held(syn) => Some(syn),
        Stage::Socket(_) => None,
    }
}

/// Raises the limit of open files as far as allowed, up to the connections of all peers, because each connection has a
/// socket. So a peer with its maximum leaves the sockets of other peers available.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    const OTHER_FILES: u64 = 1024;
    let wanted = u64::from(translations::MAX_CONNECTIONS) + OTHER_FILES;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < wanted
    {
        // With a lower limit, connections beyond it are not relayed.
        let _: Result<(), Errno> = setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard);
    }
}
