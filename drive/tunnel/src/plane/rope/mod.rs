//! Ropewalk's own tunnel: what the device gives goes whole to the peer's machine, pieces leave sealed, and what arrives is
//! opened where it lies.
//!
//! Super-packets are carried whole, with their virtio-net header, and written to the far device in one go: no TCP is parsed
//! and no checksum computed. The machine decides path, order and repair; here are the addresses, the cipher and the copy
//! into a batch. Inner addresses decide who gets a packet, and who may send one.

mod assembler;
mod parcel;
mod peer;
mod routing;

use super::batch::Batch;
use super::buffer::Slice;
use super::device::{Device, Written};
use super::reactor::{Engine, Io};
use super::report::Report;
use super::setup::{Error, RopewalkSetup};
use super::socket::{Arrival, Route, Socket};
use assembler::Whole;
use parcel::Parcel;
use peer::Peer;
use protocol::tunnel::{Arrival as Landed, Data, Endpoint, FIRST_UNORDERED};
use routing::Routing;
use seal::{Entropy, HEADER, OVERHEAD, Opened, Peers, SystemEntropy, Taken};
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};
use units::{Instant, PathId};
use wire::frame::{Body, Frame};
use wire::gre;
use wire::inner::ecn::{self, Ecn};
use wire::inner::{Inner, mss, protocol as kind};
use wire::offload::Offload;
use wire::segment::Segmenter;

/// Expedited forwarding (RFC 3246): what says so would rather come out of order than late.
const EXPEDITED: u8 = 46;
/// The route number of an address that belongs to no path.
const STRANGER: u8 = 255;

/// One end of all tunnels.
pub(super) struct Rope {
    seal: Peers,
    peers: Vec<Peer>,
    routing: Routing,
    mtu: u16,
    /// Flows are hashed to streams under this key.
    key: u64,
    due: Instant,
    /// What was opened of one arrival, with its place; and the frames of one datagram.
    opened: Vec<(usize, usize, Opened)>,
    frames: Vec<Frame>,
    /// An answer to a handshake message.
    answer: Batch,
    /// Packets cut for a device that takes no super-packets.
    cut: Vec<u8>,
}

impl Rope {
    /// No session yet; peers whose address is known are asked for one at once.
    ///
    /// # Errors
    /// What is wrong with the setup.
    pub(super) fn new(setup: RopewalkSetup, mtu: u16, io: &Io) -> Result<Self, Error> {
        let mut seal = Peers::new(seal::Setup::new(setup.private), Box::new(SystemEntropy));
        let networks = setup
            .peers
            .iter()
            .enumerate()
            .flat_map(|(index, peer)| peer.allowed.iter().map(move |(address, prefix)| (*address, *prefix, index)));
        let routing = Routing::new(networks);
        let mut peers = Vec::with_capacity(setup.peers.len());
        for peer in setup.peers {
            let id = seal.add(peer.public, peer.preshared.clone());
            let id = id.map_err(|error| Error::setup(format!("peer {}: {error}", peer.name)))?;
            let peer = Peer::new(peer, id, io)?;
            if peer.is_known() {
                seal.want(Instant::ZERO, id);
            }
            peers.push(peer);
        }
        let mut key = [0; 8];
        SystemEntropy.fill(&mut key);
        Ok(Self {
            seal,
            peers,
            routing,
            mtu,
            key: u64::from_le_bytes(key),
            due: Instant::ZERO,
            opened: Vec::new(),
            frames: Vec::new(),
            answer: Batch::new(Route { remote: SocketAddr::from(([0; 4], 0)), source: None }),
            cut: vec![0; 1 << 16],
        })
    }

    fn peer_mut(&mut self, id: seal::PeerId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.id == id)
    }

    /// Asks for sessions that are due.
    fn ask(&mut self, io: &mut Io, now: Instant) {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        while let Some(id) = self.seal.question_due(now, wall) {
            let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == id) else { continue };
            for (index, lane) in (0_u8..).zip(&mut peer.lanes) {
                let (Some(lane), Some(question)) = (lane, self.seal.question(now, id, index)) else { continue };
                let bytes = question.as_bytes();
                lane.outlet.push(&mut io.sockets[lane.socket], bytes.len(), 0, |datagram| {
                    datagram.copy_from_slice(bytes);
                    bytes.len()
                });
            }
        }
    }

    /// A handshake message, and the answer to it. `None` if it was refused.
    fn shake(
        &mut self,
        socket: &mut Socket,
        now: Instant,
        index: usize,
        route: Route,
        message: &[u8],
    ) -> Option<Taken> {
        let number = self.route_number(index, route.remote);
        let mut source = [0; 18];
        let len = source_bytes(route.remote, &mut source);
        let taken = self.seal.receive(now, number, &source[..len], message).ok()?;
        if let Some(reply) = &taken.reply {
            let bytes = reply.as_bytes();
            self.answer.aim(route);
            self.answer.push(bytes.len(), 0, |datagram| {
                datagram.copy_from_slice(bytes);
                bytes.len()
            });
            socket.send(&self.answer, 0);
        }
        Some(taken)
    }

    fn establish(&mut self, io: &Io, established: &seal::Established) {
        let Some(peer) = self.peer_mut(established.peer) else { return };
        if established.fresh || peer.endpoint.is_none() {
            peer.begin(io);
        }
    }

    /// Which path of a peer leads there: cookies are bound to it.
    fn route_number(&self, socket: usize, remote: SocketAddr) -> u8 {
        let lanes = self.peers.iter().flat_map(|peer| (0_u8..).zip(&peer.lanes));
        let mut found = lanes.filter_map(|(index, lane)| Some((index, lane.as_ref()?)));
        let found = found.find(|(_, lane)| lane.socket == socket && lane.outlet.route().remote == remote);
        found.map_or(STRANGER, |(index, _)| index)
    }

    /// What an opened datagram says, which lies at `start..end` of what arrived.
    fn accept(
        &mut self,
        io: &mut Io,
        now: Instant,
        socket: usize,
        arrival: &Arrival,
        whole: &Slice,
        item: (usize, usize, Opened),
    ) {
        let (start, end, opened) = item;
        if let Some(established) = opened.established {
            self.establish(io, &established);
        }
        let Self { peers, frames, .. } = self;
        let Some(peer) = peers.iter_mut().find(|peer| peer.id == opened.peer) else { return };
        if !peer.follow(io, opened.path, opened.number, socket, arrival.route) {
            return;
        }
        let Some(endpoint) = &mut peer.endpoint else { return };
        let marked = Ecn::of(arrival.tos) == Ecn::Marked;
        let landed = Landed { path: PathId(u16::from(opened.path)), number: opened.number, marked };
        let (from, to) = ((start + HEADER) as u32, (end + HEADER - OVERHEAD) as u32);
        match Body::parse(&whole[from as usize..to as usize]) {
            Ok(Body::Data(header, piece)) => {
                let bytes = whole.slice(to - piece.len() as u32, to);
                let payload = Parcel { bytes, offload: header.offload, tos: 0 };
                let wire::frame::DataHeader { stream, sequence, first, last, again, .. } = header;
                endpoint.receive_data(now, landed, Data { stream, sequence, first, last, again, payload });
            }
            Ok(Body::Control(body)) => {
                frames.clear();
                frames.extend(body.map_while(Result::ok));
                endpoint.receive_control(now, landed, frames);
            }
            Err(_) => peer.malformed += 1,
        }
    }

    /// Hands the whole parcels of a peer to the device.
    fn deliver(&mut self, device: &mut Device, index: usize) {
        let Self { peers, routing, cut, .. } = self;
        let Peer { endpoint: Some(endpoint), assembler, received, foreign, malformed, .. } = &mut peers[index] else {
            return;
        };
        while let Some(delivery) = endpoint.poll_delivery() {
            let Some(whole) = assembler.add(&delivery) else { continue };
            match check(whole, |source| routing.find(source) == Some(index)) {
                Ok((offload, bytes, packet)) => {
                    received.add(1, bytes.len() - packet);
                    write(device, offload, bytes, packet, cut);
                }
                Err(Unfit::Foreign) => *foreign += 1,
                Err(Unfit::Malformed) => *malformed += 1,
            }
        }
    }
}

/// Why a parcel is not for the device.
enum Unfit {
    /// It is no IP packet, not what its header says, or was marked and cannot show it.
    Malformed,
    /// Its source is not its peer's.
    Foreign,
}

/// Looks at a parcel before the device gets it: what it is, where its packet begins, whose it is. Marks it if its pieces
/// were marked (RFC 6040, section 4.2).
fn check(whole: Whole<'_>, is_own: impl Fn(IpAddr) -> bool) -> Result<(Offload, &[u8], usize), Unfit> {
    let Whole { bytes, offload, marked } = whole;
    let start = if offload { Offload::LEN } else { 0 };
    let header = if offload { Offload::parse(bytes).map(|(header, _)| header) } else { Ok(Offload::default()) };
    let header = header.map_err(|_| Unfit::Malformed)?;
    let packet = &mut bytes[start..];
    header.validate(packet).map_err(|_| Unfit::Malformed)?;
    let inner = Inner::parse(packet).map_err(|_| Unfit::Malformed)?;
    if !is_own(inner.source) {
        return Err(Unfit::Foreign);
    }
    if marked && !ecn::mark(packet) {
        return Err(Unfit::Malformed);
    }
    Ok((header, bytes, start))
}

/// Writes a parcel: as it is if the device can take it, else cut.
fn write(device: &mut Device, offload: Offload, bytes: &[u8], start: usize, buffer: &mut [u8]) {
    let packet = &bytes[start..];
    let is_super = offload.cut.is_some();
    if start == 0 {
        return device.write_plain(packet);
    }
    let takes = if is_super { device.takes(offload.cut) } else { device.has_header() };
    if takes && device.write_super(&[IoSlice::new(bytes)]) == Written::Done {
        return;
    }
    let Ok(mut cut) = Segmenter::new(offload, packet) else { return };
    while let Some(len) = cut.next_into(buffer) {
        device.write_plain(&buffer[..len]);
    }
}

/// The octets of an address and of its port: what a cookie is bound to.
fn source_bytes(source: SocketAddr, into: &mut [u8; 18]) -> usize {
    let len = match source.ip() {
        IpAddr::V4(v4) => {
            into[..4].copy_from_slice(&v4.octets());
            4
        }
        IpAddr::V6(v6) => {
            into[..16].copy_from_slice(&v6.octets());
            16
        }
    };
    into[len..len + 2].copy_from_slice(&source.port().to_be_bytes());
    len + 2
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
        let Some(peer) = self.routing.find(inner.destination).map(|index| &mut self.peers[index]) else {
            device.report.unrouted += 1;
            return;
        };
        let Some(endpoint) = &mut peer.endpoint else {
            peer.sessionless += 1;
            return;
        };
        if inner.protocol == kind::TCP {
            mss::clamp(&mut scratch[skip..len], self.mtu, offload.checksum.is_some());
        }
        let left_to_do = offload.cut.is_some() || offload.checksum.is_some();
        let Some(bytes) = pool.keep(scratch, len) else { return };
        let from = if left_to_do { 0 } else { skip };
        let bytes = bytes.slice(from as u32, len as u32);
        peer.sent.add(1, len - skip);
        endpoint.offer(now, stream(&inner, self.key), Parcel { bytes, offload: left_to_do, tos: inner.tos });
    }

    fn inward(&mut self, io: &mut Io, now: Instant, socket: usize, arrival: &Arrival) {
        let mut opened = std::mem::take(&mut self.opened);
        let mut refused = 0;
        // All is opened while the buffer has one owner; then it is read through slices.
        let Io { scratch, sockets, .. } = &mut *io;
        let mut established = None;
        for start in (0..arrival.len).step_by(arrival.segment.max(1)) {
            let end = arrival.len.min(start + arrival.segment);
            let datagram = &mut scratch[start..end];
            let taken = if is_handshake(datagram) {
                let taken = self.shake(&mut sockets[socket], now, socket, arrival.route, datagram);
                established = taken.as_ref().and_then(|taken| taken.established).or(established);
                taken.is_some()
            } else {
                let result = self.seal.open(now, datagram);
                opened.extend(result.ok().map(|it| (start, end, it)));
                result.is_ok()
            };
            refused += u64::from(!taken);
        }
        sockets[socket].report.refused += refused;
        if let Some(established) = established {
            self.establish(io, &established);
        }
        if let Some(whole) = (!opened.is_empty()).then(|| io.pool.keep(&mut io.scratch, arrival.len)).flatten() {
            for item in opened.drain(..) {
                self.accept(io, now, socket, arrival, &whole, item);
            }
        }
        opened.clear();
        self.opened = opened;
    }

    fn flush(&mut self, io: &mut Io, now: Instant) {
        let mut due = self.seal.deadline();
        if now >= due {
            self.ask(io, now);
            due = self.seal.deadline();
        }
        for index in 0..self.peers.len() {
            self.deliver(&mut io.device, index);
            let peer = &mut self.peers[index];
            peer.transmit(&mut io.sockets, &mut self.seal, now);
            let (renew, closed) = peer.events();
            if closed {
                peer.endpoint = None;
                self.seal.forget(now, peer.id);
            } else if renew {
                self.seal.renew(now, peer.id);
            }
            due = due.min(peer.endpoint.as_ref().map_or(Instant::NEVER, |endpoint| endpoint.deadline(now)));
        }
        self.due = due.min(self.seal.deadline());
    }

    fn writable(&mut self, io: &mut Io, now: Instant, socket: usize) {
        for peer in &mut self.peers {
            for index in 0..peer.lanes.len() {
                let Some(lane) = peer.lanes[index].as_mut().filter(|lane| lane.socket == socket) else { continue };
                let sent = lane.outlet.retry(&mut io.sockets[socket]);
                peer.note(now, PathId(index as u16), sent);
            }
        }
    }

    fn is_blocked(&self, socket: usize) -> bool {
        let mut lanes = self.peers.iter().flat_map(|peer| peer.lanes.iter().flatten());
        lanes.any(|lane| lane.socket == socket && lane.outlet.is_blocked())
    }

    fn deadline(&self) -> Instant {
        self.due
    }

    fn on_timeout(&mut self, _io: &mut Io, now: Instant) {
        for endpoint in self.peers.iter_mut().filter_map(|peer| peer.endpoint.as_mut()) {
            if endpoint.deadline(now) <= now {
                endpoint.on_timeout(now);
            }
        }
    }

    fn set_link(&mut self, _io: &mut Io, now: Instant, socket: usize, up: bool) {
        for peer in &mut self.peers {
            let lanes = (0..).map(PathId).zip(&peer.lanes);
            for (path, _) in lanes.filter(|(_, lane)| !up && lane.as_ref().is_some_and(|lane| lane.socket == socket)) {
                peer.endpoint.iter_mut().for_each(|endpoint| endpoint.on_unreachable(now, path));
            }
        }
    }

    fn set_path(&mut self, _io: &mut Io, _now: Instant, _path: usize, _enabled: bool) {}

    fn stop(&mut self, io: &mut Io, now: Instant) {
        for peer in &mut self.peers {
            peer.endpoint.iter_mut().for_each(Endpoint::close);
            peer.transmit(&mut io.sockets, &mut self.seal, now);
        }
    }

    fn report(&self, report: &mut Report) {
        report.peers = self.peers.iter().map(|peer| peer.report(&self.seal)).collect();
        report.refusals = *self.seal.counters();
    }
}

fn is_handshake(datagram: &[u8]) -> bool {
    datagram.get(2..4).is_some_and(|protocol| protocol == gre::HANDSHAKE.to_be_bytes())
}

/// The stream of a packet's flow: ordered, unless it asks for haste or its flow is unknown.
fn stream(inner: &Inner, key: u64) -> u8 {
    let hash = inner.flow_hash(key);
    let hasty = inner.tos >> 2 == EXPEDITED || matches!(inner.protocol, kind::ICMP | kind::ICMPV6);
    let unordered = 256 - u64::from(FIRST_UNORDERED);
    if hasty { FIRST_UNORDERED + (hash % unordered) as u8 } else { (hash % u64::from(FIRST_UNORDERED)) as u8 }
}
