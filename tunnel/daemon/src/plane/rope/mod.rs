//! Ropewalk's own tunnel: what the device gives goes whole to the peer's machine, pieces leave sealed, and what arrives is
//! opened where it lies.
//!
//! Super-packets are carried whole, with their virtio-net header, and written to the far device in one go: no TCP is parsed
//! and no checksum computed. Sessions, paths, order and repair are the host's (`node::Host`); here are its sockets and the
//! device. Inner addresses decide who gets a packet, and who may send one.

mod assembler;
mod deliver;
mod parcel;
mod peer;
mod place;
mod routing;

use super::batch::Batch;
use super::buffer::Slice;
use super::device::Device;
use super::reactor::{Engine, Io};
use super::report::Report;
use super::setup::{Error, PeerSetup, RopewalkSetup, Update};
use super::socket::{Arrival, Route, Sent, Socket};
use deliver::{Unfit, check, write};
use machine::{Content, FIRST_UNORDERED_STREAM, MAX_PATHS, Transmit};
use node::Opened;
use parcel::Parcel;
use peer::Peer;
use place::Place;
use routing::Routing;
use seal::{Entropy, PeerId, Peers, SystemEntropy};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use units::{Instant, PathId};
use wire::inner::ecn::Ecn;
use wire::inner::{Inner, mss, protocol as kind};
use wire::offload::Offload;

/// Expedited forwarding (RFC 3246): what says so would rather come out of order than late.
const EXPEDITED: u8 = 46;
/// ECN's bits of a TOS byte, and those of ECT(0).
const ECN: u8 = 3;
const CAPABLE: u8 = 2;

type Host = node::Host<Parcel, Place>;

/// One end of all tunnels.
pub(super) struct Rope {
    host: Host,
    /// In the order of the setup.
    peers: BTreeMap<PeerId, Peer>,
    routing: Routing<PeerId>,
    mtu: u16,
    /// Flows are hashed to streams under this key.
    key: u64,
    due: Instant,
    /// What was opened of one arrival, with its place.
    opened: Vec<(usize, usize, Opened)>,
    /// A handshake message.
    message: Batch,
    /// Packets cut for a device that takes no super-packets.
    cut: Vec<u8>,
}

impl Rope {
    /// No session yet; peers whose address is known are asked for one at once.
    ///
    /// # Errors
    /// What is wrong with the setup.
    pub(super) fn new(setup: RopewalkSetup, mtu: u16, io: &Io) -> Result<Self, Error> {
        let seal = Peers::new(seal::Setup::new(setup.private), Box::new(SystemEntropy));
        let mut host = Host::new(seal, Box::new(peer::learned));
        let mut peers = BTreeMap::new();
        for setup in setup.peers {
            peer::check(&setup, &host, |at| io.sockets.get(at).and_then(Socket::setup))?;
            let (id, peer) = Peer::add(setup, &mut host, Instant::ZERO)?;
            peers.insert(id, peer);
        }
        let mut key = [0; 8];
        SystemEntropy.fill(&mut key);
        Ok(Self {
            host,
            routing: routing(&peers),
            peers,
            mtu,
            key: u64::from_le_bytes(key),
            due: Instant::ZERO,
            opened: Vec::new(),
            message: Batch::new(Route { remote: SocketAddr::from(([0; 4], 0)), source: None }),
            cut: vec![0; 1 << 16],
        })
    }

    /// Sends handshake messages that are due.
    fn send_messages(&mut self, sockets: &mut [Socket], now: Instant) {
        let wall = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        while let Some((route, message)) = self.host.poll_message(now, wall) {
            let bytes = message.as_bytes();
            self.message.aim(route.remote.0);
            self.message.push(bytes.len(), 0, |datagram| {
                datagram.copy_from_slice(bytes);
                bytes.len()
            });
            // One that does not leave is asked again.
            sockets[usize::from(route.socket)].send(&self.message, 0);
        }
    }

    /// Sends what the host lets out now.
    fn transmit(&mut self, sockets: &mut [Socket], now: Instant) {
        while let Some((id, transmit)) = self.host.poll_transmit(now) {
            let sent = self.send(sockets, now, id, &transmit);
            note(&mut self.host, now, id, transmit.path, sent);
        }
        for (id, peer) in &mut self.peers {
            for (path, lane) in peer.lanes() {
                let sent = lane.outlet.flush(&mut sockets[lane.socket]);
                note(&mut self.host, now, *id, path, sent);
            }
        }
    }

    /// Seals one datagram into its path's batch.
    fn send(&mut self, sockets: &mut [Socket], now: Instant, id: PeerId, transmit: &Transmit<Parcel>) -> Sent {
        let Self { host, peers, .. } = self;
        let len = host.length(id, transmit);
        let (Some(route), Some(peer)) = (host.route(id, transmit.path), peers.get_mut(&id)) else { return Sent::Gone };
        let lane = peer.lane(sockets, transmit.path, route);
        let (tos, len) = match &transmit.content {
            Content::Data(data) if data.last && !data.first => (outer(data.payload.tos), lane.outlet.even(len)),
            Content::Data(data) => (outer(data.payload.tos), len),
            Content::Control { .. } => (0, len),
        };
        lane.outlet.push(&mut sockets[lane.socket], len, tos, |datagram| {
            let fill = |parcel: &Parcel, bytes: &mut [u8]| {
                let (piece, padding) = bytes.split_at_mut(parcel.bytes.len());
                piece.copy_from_slice(&parcel.bytes);
                padding.fill(0);
                parcel.offload
            };
            if host.write(now, id, transmit, datagram, fill) { len } else { 0 }
        })
    }

    /// What an opened datagram says, which lies at `start..end` of what arrived.
    fn take(
        &mut self,
        now: Instant,
        route: &node::Route<Place>,
        marked: bool,
        whole: &Slice,
        (start, end, opened): (usize, usize, Opened),
    ) {
        let wrap = |range: std::ops::Range<usize>, offload| {
            let bytes = whole.slice((start + range.start) as u32, (start + range.end) as u32);
            Parcel { bytes, offload, tos: 0 }
        };
        let taken = self.host.take(now, route, marked, opened, &whole[start..end], wrap);
        if let (Err(_), Some(peer)) = (taken, self.peers.get_mut(&opened.peer)) {
            peer.malformed += 1;
        }
    }

    /// Peers that are not among the wanted ones are told so, and forgotten.
    fn dismiss(&mut self, io: &mut Io, now: Instant, wanted: &[PeerSetup]) {
        let is_wanted = |peer: &Peer| wanted.iter().any(|setup| setup.public == peer.setup.public);
        let unwanted: Vec<_> = self.peers.iter().filter(|(_, peer)| !is_wanted(peer)).map(|(id, _)| *id).collect();
        unwanted.iter().for_each(|id| self.host.dismiss(*id));
        self.transmit(&mut io.sockets, now);
        for id in unwanted {
            self.host.remove_peer(id);
            self.peers.remove(&id);
        }
    }

    /// Hands whole parcels to the device.
    fn deliver(&mut self, device: &mut Device) {
        let Self { host, peers, routing, cut, .. } = self;
        while let Some((id, delivery)) = host.poll_delivery() {
            let Some(peer) = peers.get_mut(&id) else { continue };
            let Some(whole) = peer.assembler.add(&delivery) else { continue };
            match check(whole, |source| routing.find(source) == Some(id)) {
                Ok((offload, bytes, packet)) => {
                    peer.received.add(1, bytes.len() - packet);
                    write(device, offload, bytes, packet, cut);
                }
                Err(Unfit::Foreign) => peer.foreign += 1,
                Err(Unfit::Malformed) => peer.malformed += 1,
            }
        }
    }
}

/// What sending told of a path.
fn note(host: &mut Host, now: Instant, id: PeerId, path: PathId, sent: Sent) {
    match sent {
        Sent::Done | Sent::Blocked(_) => {}
        Sent::TooBig => host.endpoint_mut(id).into_iter().for_each(|it| it.on_too_large(now, path)),
        Sent::Gone => host.endpoint_mut(id).into_iter().for_each(|it| it.on_unreachable(now, path)),
    }
}

/// Which peer an inner address belongs to.
fn routing(peers: &BTreeMap<PeerId, Peer>) -> Routing<PeerId> {
    let of = |(id, peer): (&PeerId, &Peer)| {
        let id = *id;
        peer.setup.allowed.clone().into_iter().map(move |(address, prefix)| (address, prefix, id))
    };
    Routing::new(peers.iter().flat_map(of))
}

/// The outer header's TOS: the inner DSCP, and ECN as RFC 6040 copies it. A mark that the packet bears already travels
/// inside, and would count against this path: outside, it is one that can be marked.
fn outer(inner: u8) -> u8 {
    if inner & ECN == ECN { inner & !ECN | CAPABLE } else { inner }
}

impl Engine for Rope {
    fn outward(&mut self, io: &mut Io, now: Instant, len: usize) {
        let Io { device, pool, scratch, .. } = io;
        let skip = if device.has_header() { Offload::LEN } else { 0 };
        let offload = if skip > 0 { Offload::parse(&scratch[..len]).map(|it| it.0) } else { Ok(Offload::default()) };
        let parsed = offload.and_then(|offload| Ok((offload, Inner::parse(&scratch[skip..len])?)));
        let Ok((offload, inner)) = parsed else {
            device.report.malformed += 1;
            return;
        };
        let found = self.routing.find(inner.destination);
        let Some((id, peer)) = found.and_then(|id| Some((id, self.peers.get_mut(&id)?))) else {
            device.report.unrouted += 1;
            return;
        };
        if !self.host.is_ready(id) {
            peer.sessionless += 1;
            return;
        }
        if inner.protocol == kind::TCP {
            mss::clamp(&mut scratch[skip..len], self.mtu, offload.checksum.is_some());
        }
        let left_to_do = offload.cut.is_some() || offload.checksum.is_some();
        let Some(bytes) = pool.keep(scratch, len) else { return };
        let from = if left_to_do { 0 } else { skip };
        let bytes = bytes.slice(from as u32, len as u32);
        peer.sent.add(1, len - skip);
        self.host.offer(now, id, stream(&inner, self.key), Parcel { bytes, offload: left_to_do, tos: inner.tos });
    }

    fn inward(&mut self, io: &mut Io, now: Instant, socket: usize, arrival: &Arrival) {
        let mut opened = std::mem::take(&mut self.opened);
        let route = node::Route { socket: socket as u16, remote: Place(arrival.route) };
        // All is opened while the buffer has one owner; then it is read through slices.
        for start in (0..arrival.len).step_by(arrival.segment.max(1)) {
            let end = arrival.len.min(start + arrival.segment);
            match self.host.open(now, &route, &mut io.scratch[start..end]) {
                Ok(item) => opened.extend(item.map(|item| (start, end, item))),
                Err(_) => io.sockets[socket].report.refused += 1,
            }
        }
        if let Some(whole) = (!opened.is_empty()).then(|| io.pool.keep(&mut io.scratch, arrival.len)).flatten() {
            let marked = Ecn::of(arrival.tos) == Ecn::Marked;
            opened.drain(..).for_each(|item| self.take(now, &route, marked, &whole, item));
        }
        opened.clear();
        self.opened = opened;
    }

    fn flush(&mut self, io: &mut Io, now: Instant) {
        self.deliver(&mut io.device);
        self.transmit(&mut io.sockets, now);
        // The host has drawn its conclusions already; an assembler needs none, as a stream begins with a first piece.
        while self.host.poll_event(now).is_some() {}
        self.send_messages(&mut io.sockets, now);
        self.due = self.host.deadline(now);
    }

    fn writable(&mut self, io: &mut Io, now: Instant, socket: usize) {
        for (id, peer) in &mut self.peers {
            for (path, lane) in peer.lanes().filter(|(_, lane)| lane.socket == socket) {
                let sent = lane.outlet.retry(&mut io.sockets[socket]);
                note(&mut self.host, now, *id, path, sent);
            }
        }
    }

    fn is_blocked(&self, socket: usize) -> bool {
        self.peers.values().any(|peer| peer.is_blocked(socket))
    }

    fn deadline(&self) -> Instant {
        self.due
    }

    fn on_timeout(&mut self, _io: &mut Io, now: Instant) {
        self.host.on_timeout(now);
    }

    fn set_link(&mut self, _io: &mut Io, now: Instant, socket: usize, up: bool) {
        if up {
            self.host.on_link_up(socket as u16);
        } else {
            self.host.on_link_down(now, socket as u16);
        }
    }

    fn set_path(&mut self, _io: &mut Io, now: Instant, path: usize, enabled: bool) {
        for id in self.peers.keys().filter(|_| path < MAX_PATHS) {
            self.host.set_enabled(now, *id, path as u8, enabled);
        }
    }

    fn check(&self, update: &Update) -> Result<(), Error> {
        let socket = |at: usize| update.sockets.get(at).and_then(Option::as_ref);
        update.peers.iter().try_for_each(|setup| peer::check(setup, &self.host, socket))
    }

    fn update(&mut self, io: &mut Io, now: Instant, update: Update, replaced: &[usize]) {
        replaced.iter().for_each(|socket| self.host.close_socket(now, *socket as u16));
        self.dismiss(io, now, &update.peers);
        for setup in update.peers {
            match self.host.sessions().find(&setup.public).and_then(|id| Some((id, self.peers.get_mut(&id)?))) {
                Some((id, peer)) => peer.change(setup, id, &mut self.host, now),
                None => self.peers.extend(Peer::add(setup, &mut self.host, now)),
            }
        }
        self.routing = routing(&self.peers);
        self.mtu = update.mtu;
    }

    fn stop(&mut self, io: &mut Io, now: Instant) {
        self.host.close();
        self.transmit(&mut io.sockets, now);
    }

    fn report(&self, report: &mut Report) {
        report.peers = self.peers.iter().map(|(id, peer)| peer.report(*id, &self.host)).collect();
        report.refusals = *self.host.sessions().counters();
    }
}

/// The stream of a packet's flow: ordered, unless it asks for haste or its flow is unknown.
fn stream(inner: &Inner, key: u64) -> u8 {
    let hash = inner.flow_hash(key);
    let hasty = inner.tos >> 2 == EXPEDITED || matches!(inner.protocol, kind::ICMP | kind::ICMPV6);
    let unordered = 256 - u64::from(FIRST_UNORDERED_STREAM);
    if hasty {
        FIRST_UNORDERED_STREAM + (hash % unordered) as u8
    } else {
        (hash % u64::from(FIRST_UNORDERED_STREAM)) as u8
    }
}
