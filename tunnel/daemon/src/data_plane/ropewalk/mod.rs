//! The engine of Ropewalk's own tunnel: packets from the device go to the peer's endpoint, fragments leave sealed, and
//! received datagrams are opened in place.
//!
//! Super-packets are carried whole, with their virtio-net header, and written to the far device in one call, with a header
//! rebuilt from the packet: no checksum is computed. Sessions, paths, order and retransmission belong to `node::Node`; sockets and
//! device are here. Inner addresses decide which peer gets a packet, and from which peer one is accepted.

mod device_packet;
mod hand_over;
mod packet;
mod peer;
mod relay;
mod streams;
mod telling;

use super::address::PathAddress;
use super::allowed_ips::AllowedIps;
use super::batch::TransmitBatch;
use super::buffer::BufferSlice;
use super::config::{Error, PeerConfig, RopewalkConfig, Update};
use super::device::Device;
use super::event::PeerChange;
use super::event_loop::{Engine, Io};
use super::report::Report;
use super::socket::{ReceivedDatagrams, SendOutcome, Socket};
use super::threads::{HandOver, OtherThreads};
use super::transmit::FreeBatches;
use crate::handshake_times::wall_clock;
use hand_over::Owner;
use machine::{Destination, EndpointEvent, Transmit, TransmitBody};
use node::{NodeEvent, Opened, PeerGroup};
use packet::{PacketBytes, PacketSlice};
use peer::{EnginePeer, Node};
use relay::RelayDriver;
use seal::{Entropy, PeerId, SealDevice, SystemEntropy};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use streams::StreamMap;
use units::{Instant, PathId};
use wire::delivery::{self, Rejection};
use wire::inner::Inner;
use wire::inner::ecn::Ecn;
use wire::virtio::VirtioNetHeader;

/// The ECN field of a TOS byte, and its codepoint ECT(0).
const ECN_MASK: u8 = 3;
const ECT_0: u8 = 2;

/// This end of the tunnels to all peers.
pub(super) struct RopewalkEngine {
    node: Node,
    peers: BTreeMap<PeerId, EnginePeer>,
    allowed_ips: AllowedIps<Owner>,
    /// Several servers: peers with the same networks.
    groups: Vec<PeerGroup>,
    /// The other data threads, if there are any.
    others: Option<OtherThreads>,
    relay: RelayDriver,
    mtu: u16,
    streams: StreamMap,
    deadline: Instant,
    /// The first time that handshakes may carry, nanoseconds since 1970.
    earliest_handshake: u64,
    /// The peers to which datagrams were sent in this iteration; empty between iterations.
    senders: Vec<PeerId>,
    /// The peers whose datagrams wait until a socket is writable.
    blocked: BTreeSet<PeerId>,
    /// The opened datagrams of one receive call: (start, end, datagram).
    opened_datagrams: Vec<(usize, usize, Opened)>,
    /// A datagram to an address that no path has: a handshake message, or a ping to a candidate.
    single: TransmitBatch,
    /// Batches for the paths that have something to send.
    free_batches: FreeBatches,
    /// A segment of a super-packet that the device does not accept.
    segment_buffer: Vec<u8>,
    refusals: telling::Refusals,
}

impl RopewalkEngine {
    /// An engine without sessions. Handshakes with peers whose address is known begin at once.
    ///
    /// # Errors
    /// An invalid configuration.
    pub(super) fn new(config: RopewalkConfig, mtu: u16, io: &Io, others: Option<OtherThreads>) -> Result<Self, Error> {
        let mut handshake_config = seal::HandshakeConfig::new(config.private_key);
        handshake_config.index_prefix = others.as_ref().map(|others| others.own);
        let seal = SealDevice::new(handshake_config, Box::new(SystemEntropy));
        let mut node = Node::new(seal, Box::new(peer::learned_path_config));
        node.set_other_peers(config.other_peers.iter().map(|peer| (peer.public_key, peer.thread)));
        let relay = RelayDriver::new(config.relay, &io.device)?;
        let mut peers = BTreeMap::new();
        for config in config.peers {
            peer::check_peer(&config, &node, |index| io.sockets.get(index).and_then(Socket::config))?;
            let (id, peer) = EnginePeer::add(config, relay.peer_relay(), &mut node, Instant::ZERO)?;
            telling::tell_configured(&io.events, &peer.config, |index| io.sockets.get(index)?.config());
            peers.insert(id, peer);
        }
        let groups = hand_over::groups(&peers, &[]);
        let mut hash_key = [0; 8];
        SystemEntropy.fill(&mut hash_key);
        Ok(Self {
            node,
            allowed_ips: hand_over::allowed_ips(&peers, &groups, &config.other_peers),
            groups,
            peers,
            others,
            relay,
            mtu,
            streams: StreamMap { key: u64::from_le_bytes(hash_key), rules: config.realtime },
            deadline: Instant::ZERO,
            earliest_handshake: config.earliest_handshake,
            senders: Vec::new(),
            blocked: BTreeSet::new(),
            opened_datagrams: Vec::new(),
            single: TransmitBatch::new(PathAddress::to_remote(SocketAddr::from(([0; 4], 0)))),
            free_batches: FreeBatches::default(),
            segment_buffer: vec![0; delivery::MAX_PACKET_BYTES],
            refusals: telling::Refusals::default(),
        })
    }

    /// Sends handshake messages that are due.
    fn send_handshakes(&mut self, sockets: &mut [Socket], now: Instant) {
        let earliest = self.earliest_handshake;
        let wall_clock = || wall_clock().max(earliest);
        while let Some((route, message)) = self.node.poll_handshake(now, wall_clock) {
            let bytes = message.as_bytes();
            self.single.reset(route.remote);
            self.single.push(bytes.len(), 0, |datagram| {
                datagram.copy_from_slice(bytes);
                bytes.len()
            });
            // The timer of a message that is not sent repeats it.
            sockets[usize::from(route.socket)].send(&self.single, 0);
        }
    }

    /// Sends all datagrams that the node has ready.
    fn transmit(&mut self, sockets: &mut [Socket], now: Instant) {
        // Data of relayed connections stays in the relay until the tunnel can send it.
        if self.relay.is_enabled() {
            self.peers.iter_mut().for_each(|(id, peer)| peer.relay.offer_messages(now, *id, &mut self.node));
        }
        let mut senders = std::mem::take(&mut self.senders);
        while let Some((id, transmit)) = self.node.poll_transmit(now) {
            if senders.last() != Some(&id) {
                senders.push(id);
            }
            let outcome = self.send(sockets, now, id, &transmit);
            on_send_outcome(&mut self.node, now, id, transmit.path, outcome);
            if let Some(peer) = self.peers.get_mut(&id).filter(|_| self.relay.is_enabled()) {
                peer.relay.offer_messages(now, id, &mut self.node);
            }
        }
        for id in senders.drain(..) {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            for (path, path_queue) in peer.path_queues() {
                let outcome = path_queue.queue.flush(&mut sockets[path_queue.socket]);
                on_send_outcome(&mut self.node, now, id, path, outcome);
            }
            if peer.is_blocked() {
                self.blocked.insert(id);
            }
        }
        self.senders = senders;
    }

    /// Seals one datagram into its path's batch.
    fn send(
        &mut self,
        sockets: &mut [Socket],
        now: Instant,
        id: PeerId,
        transmit: &Transmit<PacketSlice>,
    ) -> SendOutcome {
        let Self { node, peers, single, free_batches, .. } = self;
        let len = node.encode_length(id, transmit);
        let (Some(route), Some(peer)) = (node.transmit_route(id, transmit), peers.get_mut(&id)) else {
            return SendOutcome::Unreachable;
        };
        if transmit.destination == Destination::Candidate {
            let socket = usize::from(route.socket);
            single.reset(route.remote);
            single.push(len, 0, |datagram| {
                let is_sealed = node.seal_into(now, id, transmit, datagram, |_, _| false);
                if is_sealed { len } else { 0 }
            });
            // The failure says nothing about the path's present address.
            sockets[socket].send(single, 0);
            return SendOutcome::Sent;
        }
        let path_queue = peer.path_queue(sockets, transmit.path, route, free_batches);
        let (tos, len) = match &transmit.body {
            TransmitBody::Data(data) if data.last && !data.first => {
                (outer_tos(data.payload.tos), path_queue.queue.padded_len(len))
            }
            TransmitBody::Data(data) => (outer_tos(data.payload.tos), len),
            TransmitBody::Bundle => {
                let first = node.endpoint(id).and_then(|endpoint| endpoint.bundle().first());
                (first.map_or(0, |fragment| outer_tos(fragment.payload.tos)), len)
            }
            TransmitBody::Control { .. } => (0, len),
        };
        path_queue.queue.push(&mut sockets[path_queue.socket], len, tos, |datagram| {
            let write_payload = |packet: &PacketSlice, bytes: &mut [u8]| {
                packet.write(bytes);
                packet.offload
            };
            if node.seal_into(now, id, transmit, datagram, write_payload) { len } else { 0 }
        })
    }

    /// Passes an opened datagram, at `start..end` of `buffer`, to the node.
    fn process(
        &mut self,
        now: Instant,
        route: &node::Route<PathAddress>,
        ce: bool,
        buffer: &BufferSlice,
        (start, end, datagram): (usize, usize, Opened),
    ) {
        let make_payload = |range: std::ops::Range<usize>, offload| {
            let bytes = buffer.slice((start + range.start) as u32, (start + range.end) as u32);
            PacketSlice::new(bytes, offload, 0)
        };
        let processed = self.node.process(now, route, ce, datagram, &buffer[start..end], make_payload);
        if let (Err(_), Some(peer)) = (processed, self.peers.get_mut(&datagram.peer)) {
            peer.malformed += 1;
        }
    }

    /// Closes the tunnel to the peers that are not in `configured`, and removes them.
    fn remove_peers_not_in(&mut self, io: &mut Io, now: Instant, configured: &[PeerConfig]) {
        let keys: BTreeSet<_> = configured.iter().map(|config| config.public_key).collect();
        let is_configured = |peer: &EnginePeer| keys.contains(&peer.config.public_key);
        let removed: Vec<_> = self.peers.iter().filter(|(_, peer)| !is_configured(peer)).map(|(id, _)| *id).collect();
        removed.iter().for_each(|id| self.node.close_peer(*id));
        self.transmit(&mut io.sockets, now);
        for id in removed {
            self.node.remove_peer(id);
            if let Some(peer) = self.peers.remove(&id) {
                telling::send(&io.events, &peer.config, PeerChange::Removed);
            }
            self.blocked.remove(&id);
        }
    }

    /// Writes reassembled packets to the device, and passes messages to the relay.
    fn deliver(&mut self, device: &mut Device, now: Instant) {
        let Self { node, peers, allowed_ips, groups, relay, segment_buffer, .. } = self;
        while let Some((id, delivery)) = node.poll_delivery() {
            let Some(peer) = peers.get_mut(&id) else { continue };
            let Some(packet) = peer.reassembler.add(&delivery) else { continue };
            if packet.buffer.is_message() {
                // Without a relay this end has announced nothing, and answers nothing.
                if relay.is_enabled() {
                    let received = peer.relay.receive(now, std::mem::take(&mut packet.buffer.bytes));
                    peer.malformed += u64::from(received.is_err());
                }
                continue;
            }
            let is_internal = |address| relay.is_internal(address);
            let refused = Cell::new(None);
            let is_allowed = |source, destination| {
                let is_own = allowed_ips.find(source).is_some_and(|owner| owner.is(id, groups));
                let is_allowed = is_own && !is_internal(source) && !is_internal(destination);
                refused.set((!is_allowed).then_some(source));
                is_allowed
            };
            let PacketBytes { bytes, offload } = packet.buffer;
            match delivery::deliver(bytes, *offload, packet.ce, is_allowed, device, segment_buffer) {
                Ok(()) => {}
                Err(Rejection::UnallowedSource) => peer.unallowed_sources.add(refused.get()),
                Err(Rejection::Malformed) => peer.malformed += 1,
            }
        }
    }
}

impl RopewalkEngine {
    /// Moves the bytes of relayed connections, and opens and closes them.
    fn run_relay(&mut self, io: &mut Io, now: Instant) {
        let Self { node, peers, allowed_ips, groups, relay, streams, .. } = self;
        let is_allowed =
            |peer: PeerId, source: IpAddr| allowed_ips.find(source).is_some_and(|owner| owner.is(peer, groups));
        if !relay.is_enabled() {
            return;
        }
        let refused = relay.handle_events(now, peers, &mut io.device, is_allowed);
        relay.transfer(now, peers, &mut io.pool);
        for (peer, syn) in refused {
            offer_syn(node, now, peer, syn, io.device.has_header(), streams);
        }
    }

    /// Handles events of the sessions, after the node has. Reassembly needs none, because a packet begins with its
    /// first fragment.
    fn handle_node_events(&mut self, io: &Io, now: Instant) {
        while let Some((id, event)) = self.node.poll_event(now) {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            match event {
                NodeEvent::Established { numbers_reset } => peer.relay.on_established(now, numbers_reset),
                NodeEvent::Tunnel(EndpointEvent::Closed) => peer.relay.on_closed(),
                _ => {}
            }
            peer.tell(io, now, (&self.node, id), event);
        }
    }

    /// Handles all packets that have left by the device.
    fn read_device(&mut self, io: &mut Io, now: Instant) {
        while let Ok(Some(len)) = io.device.read(&mut io.read_buffer) {
            self.on_device_packet(io, now, len);
        }
    }
}

/// Offers a SYN that was held, with the device's header, as a packet.
fn offer_syn(node: &mut Node, now: Instant, peer: PeerId, syn: Vec<u8>, has_header: bool, streams: &StreamMap) {
    let skip = if has_header { VirtioNetHeader::LEN } else { 0 };
    let Ok(inner) = Inner::parse(&syn[skip..]) else { return };
    node.offer(now, peer, streams.stream(&inner), PacketSlice::new(syn.into(), has_header, inner.tos));
}

/// Passes the outcome of sending to the peer's endpoint.
fn on_send_outcome(node: &mut Node, now: Instant, id: PeerId, path: PathId, outcome: SendOutcome) {
    match outcome {
        SendOutcome::Sent | SendOutcome::Blocked(_) => {}
        SendOutcome::TooBig => node.endpoint_mut(id).into_iter().for_each(|endpoint| endpoint.on_too_large(now, path)),
        SendOutcome::Unreachable => {
            node.endpoint_mut(id).into_iter().for_each(|endpoint| endpoint.on_unreachable(now, path));
        }
    }
}

/// The outer header's TOS: the inner packet's original DSCP and ECN field (RFC 6040), also ECT(1). CE becomes ECT(0):
/// the inner header carries the mark, which would otherwise count against this path.
fn outer_tos(inner: u8) -> u8 {
    if inner & ECN_MASK == ECN_MASK { inner & !ECN_MASK | ECT_0 } else { inner }
}

impl Engine for RopewalkEngine {
    fn on_device_packet(&mut self, io: &mut Io, now: Instant, len: usize) {
        self.offer_device_packet(io, now, len, true);
    }

    fn on_handed_over(&mut self, io: &mut Io, now: Instant, item: HandOver) {
        self.handle_handed_over(io, now, item);
    }

    fn on_datagrams(&mut self, io: &mut Io, now: Instant, socket: usize, received: &ReceivedDatagrams) {
        let mut opened_datagrams = std::mem::take(&mut self.opened_datagrams);
        let route = node::Route { socket: socket as u16, remote: received.address };
        // All datagrams are opened while the buffer has one owner; then it is read through slices.
        for start in (0..received.len).step_by(received.segment_size.max(1)) {
            let end = received.len.min(start + received.segment_size);
            if self.hand_over_datagram(socket, received, &io.read_buffer[start..end]) {
                continue;
            }
            match self.node.open(now, &route, &mut io.read_buffer[start..end]) {
                Ok(datagram) => opened_datagrams.extend(datagram.map(|datagram| (start, end, datagram))),
                Err(reason) => self.refuse(io, now, socket, reason),
            }
            self.pass_initiation(socket, received, &io.read_buffer[start..end]);
        }
        if let Some(buffer) =
            (!opened_datagrams.is_empty()).then(|| io.pool.freeze(&mut io.read_buffer, received.len)).flatten()
        {
            let ce = received.ecn == Ecn::Ce;
            opened_datagrams.drain(..).for_each(|datagram| self.process(now, &route, ce, &buffer, datagram));
        }
        opened_datagrams.clear();
        self.opened_datagrams = opened_datagrams;
    }

    fn flush(&mut self, io: &mut Io, now: Instant) {
        self.deliver(&mut io.device, now);
        self.run_relay(io, now);
        self.transmit(&mut io.sockets, now);
        self.handle_node_events(io, now);
        for group in &mut self.groups {
            let moved = group.update(now, |id| self.node.works(id));
            if let Some(EnginePeer { config, teller, .. }) = moved.and_then(|id| self.peers.get_mut(&id)) {
                teller.tell(&io.events, now, config, PeerChange::Active(config.allowed_ips.clone()));
            }
        }
        self.send_handshakes(&mut io.sockets, now);
        // Without a relay no datagram costs a step for each peer.
        let relays = self.relay.is_enabled().then(|| self.peers.values()).into_iter().flatten();
        let relay_deadline = relays.map(|peer| peer.relay.deadline()).min().unwrap_or(Instant::NEVER);
        let group_deadline = self.groups.iter().map(PeerGroup::deadline).min().unwrap_or(Instant::NEVER);
        let deadline = self.node.deadline(now).min(relay_deadline).min(group_deadline);
        self.deadline = if self.relay.is_active() { now } else { deadline };
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.relay.as_fd())
    }

    fn on_poll_ready(&mut self, now: Instant) {
        self.relay.poll_sockets(now, &mut self.peers);
    }

    fn on_writable(&mut self, io: &mut Io, now: Instant, socket: usize) {
        let Self { node, peers, blocked, .. } = self;
        blocked.retain(|id| {
            let Some(peer) = peers.get_mut(id) else { return false };
            for (path, path_queue) in peer.path_queues().filter(|(_, path_queue)| path_queue.socket == socket) {
                let outcome = path_queue.queue.send_queued(&mut io.sockets[socket]);
                on_send_outcome(node, now, *id, path, outcome);
            }
            peer.is_blocked()
        });
    }

    fn is_blocked(&self, socket: usize) -> bool {
        self.blocked.iter().filter_map(|id| self.peers.get(id)).any(|peer| peer.is_blocked_by(socket))
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn on_timeout(&mut self, _io: &mut Io, now: Instant) {
        self.node.on_timeout(now);
        if self.relay.is_enabled() {
            self.peers.values_mut().for_each(|peer| peer.relay.on_timeout(now));
        }
    }

    fn set_link(&mut self, _io: &mut Io, now: Instant, socket: usize, up: bool) {
        if up {
            self.node.on_link_up(socket as u16);
        } else {
            self.node.on_link_down(now, socket as u16);
        }
    }

    fn check(&self, update: &Update) -> Result<(), Error> {
        let socket_config = |index: usize| update.sockets.get(index).and_then(Option::as_ref);
        update.peers.iter().try_for_each(|config| peer::check_peer(config, &self.node, socket_config))
    }

    fn update(&mut self, io: &mut Io, now: Instant, update: Update, replaced: &[usize]) {
        replaced.iter().for_each(|socket| self.node.close_socket(now, *socket as u16));
        self.remove_peers_not_in(io, now, &update.peers);
        for config in update.peers {
            match self.node.sessions().find(&config.public_key).and_then(|id| Some((id, self.peers.get_mut(&id)?))) {
                Some((id, peer)) => {
                    telling::tell_reload(&io.events, &peer.config, &config, |index| io.sockets.get(index)?.config());
                    peer.change(config, id, &mut self.node, now);
                }
                None => {
                    telling::tell_configured(&io.events, &config, |index| io.sockets.get(index)?.config());
                    self.peers.extend(EnginePeer::add(config, self.relay.peer_relay(), &mut self.node, now));
                }
            }
        }
        io.reserve(self.peers.len());
        self.node.set_other_peers(update.other_peers.iter().map(|peer| (peer.public_key, peer.thread)));
        self.groups = hand_over::groups(&self.peers, &self.groups);
        self.allowed_ips = hand_over::allowed_ips(&self.peers, &self.groups, &update.other_peers);
        let Self { relay, peers, allowed_ips, groups, .. } = self;
        relay.end_unallowed(now, peers, |peer, address| {
            allowed_ips.find(address).is_some_and(|owner| owner.is(peer, groups))
        });
        self.mtu = update.mtu;
    }

    fn stop(&mut self, io: &mut Io, now: Instant) {
        while self.relay.abort_any(now, &mut self.peers) {
            // Lets the resets that the kernel sends reach their hosts.
            self.read_device(io, now);
        }
        self.node.close();
        self.transmit(&mut io.sockets, now);
    }

    fn report(&self, report: &mut Report) {
        let kernel_translation = self.relay.has_kernel_translation();
        report.peers = self.peers.iter().map(|(id, peer)| peer.report(*id, &self.node, kernel_translation)).collect();
        for peer in &mut report.peers {
            let id = self.node.sessions().find(&peer.public_key);
            let group = id.and_then(|id| self.groups.iter().find(|group| group.contains(id)));
            peer.active = group.map(|group| Some(group.active()) == id);
        }
        report.dropped = *self.node.sessions().counters();
        report.not_handed_over = self.others.as_ref().map_or(0, |others| others.dropped);
    }
}
