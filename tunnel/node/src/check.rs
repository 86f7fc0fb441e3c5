//! Properties of a host that must hold whatever one of its peers sends; they panic if one does not. The fuzz target
//! (`fuzz/`) calls them, and so do tests, with the saved inputs of fuzzing and mutations of them.
//!
//! The host has two peers, each with a session: an honest one, which is a node as well, and a hostile one, which seals
//! whatever the bytes say. Arriving packets are written to a device that keeps them.

mod host;

use crate::Route;
use host::{Slice, TestAddress, TestHost, entropy, key, new_endpoint_config, packet, route};
use machine::PathConfig;
use seal::{HEADER_LEN, HandshakeConfig, PeerId, SealDevice, TAG_LEN};
use std::collections::{BTreeSet, VecDeque};
use units::{Instant, Span};
use wire::check::Choices;
use wire::frame::{Ack, AckRanges, Bundle, DataHeader, Frame, PathName, PathState};

/// The host whose behaviour is checked, and its peers.
const HOST: u8 = 1;
const HONEST: u8 = 2;
const HOSTILE: u8 = 3;
const PATH: PathConfig = PathConfig::regular(1472, 28);
/// Memory of each queue of an endpoint, bytes.
const MEMORY_BYTES: u64 = 256 << 10;
/// Maximum number of datagrams that one step may cause: the content of an endpoint's queues, and answers.
const MAX_DATAGRAMS: usize = 8192;
/// Steps after which the honest peer's packets have arrived.
const ROUNDS: usize = 100;

/// The hostile peer.
struct Hostile {
    sessions: SealDevice,
    host: PeerId,
    next_numbers: [u64; 16],
}

impl Hostile {
    fn new() -> Self {
        let mut sessions = SealDevice::new(HandshakeConfig::new(key(HOSTILE)), Box::new(entropy(HOSTILE)));
        let host = sessions.add(key(HOST).public_key(), None).expect("another key");
        sessions.start_initiating(Instant::ZERO, host);
        Self { sessions, host, next_numbers: [0; 16] }
    }

    fn seal(&mut self, now: Instant, path: u8, skip: u64, body: &[u8]) -> Option<Vec<u8>> {
        let number = &mut self.next_numbers[usize::from(path)];
        *number += skip;
        let mut datagram = vec![0; HEADER_LEN + body.len() + TAG_LEN];
        datagram[HEADER_LEN..][..body.len()].copy_from_slice(body);
        let is_sealed = self.sessions.seal(now, self.host, path, *number, &mut datagram).is_ok();
        *number += 1;
        is_sealed.then_some(datagram)
    }
}

/// The network, and the datagrams in transit.
struct World {
    now: Instant,
    host: TestHost,
    honest: TestHost,
    hostile: Hostile,
    /// Tokens of the pings that the hostile peer has received.
    tokens: VecDeque<u64>,
    next_id: u32,
    /// Numbers of the packets from and to the honest peer.
    to_host: BTreeSet<u32>,
    from_host: BTreeSet<u32>,
}

/// Whatever a hostile peer sends, and however the host's configuration changes: the memory charged equals the memory
/// held and does not exceed the options, and no packet is delivered with a source that is not the peer's. All packets
/// of an honest peer arrive, in both directions, except those that the sender's own queue drops (CoDel).
///
/// # Panics
/// If that does not hold.
pub fn node(data: &[u8]) {
    let mut world = World::new();
    let mut choices = Choices(data);
    while !choices.is_empty() {
        world.step(&mut choices);
        world.exchange();
    }
    for _ in 0..ROUNDS {
        world.now += Span::from_millis(20);
        world.exchange();
        if world.has_arrived() {
            return;
        }
    }
    panic!("{:?} of {:?}, {:?} of {:?}", world.host.delivered, world.to_host, world.honest.delivered, world.from_host);
}

impl World {
    /// All peers have a session and a path.
    fn new() -> Self {
        let mut world = Self {
            now: Instant(1_000_000_000),
            host: TestHost::new(HOST, &[HONEST, HOSTILE]),
            honest: TestHost::new(HONEST, &[HOST]),
            hostile: Hostile::new(),
            tokens: VecDeque::new(),
            next_id: 0,
            to_host: BTreeSet::new(),
            from_host: BTreeSet::new(),
        };
        let id = world.honest.peer(HOST);
        world.honest.node.set_path(world.now, id, 0, route(HOST), PATH);
        for _ in 0..8 {
            world.exchange();
            world.now += Span::from_millis(50);
        }
        world
    }

    fn has_arrived(&self) -> bool {
        let missing = |sent: &BTreeSet<u32>, receiver: &TestHost| sent.difference(&receiver.delivered).count() as u64;
        missing(&self.to_host, &self.host) <= self.honest.dropped(HOST)
            && missing(&self.from_host, &self.honest) <= self.host.dropped(HONEST)
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(12) {
            0..=5 => {
                for _ in 0..=choices.below(16) {
                    self.send_hostile(choices);
                }
            }
            6 | 7 => {
                let (id, len) = (self.next_id, choices.below(4096) as usize);
                self.next_id += 1;
                let (sender, number, to, ids) = if choices.byte() & 1 == 0 {
                    (&mut self.honest, HONEST, HOST, &mut self.to_host)
                } else {
                    (&mut self.host, HOST, HONEST, &mut self.from_host)
                };
                ids.insert(id);
                let peer = sender.peer(to);
                sender.node.offer(self.now, peer, choices.byte(), Slice::new(&packet(number, to, id, len), false));
            }
            8 => {
                let peer = self.host.peer(HOSTILE);
                let packet = Slice::new(&packet(HOST, HOSTILE, 0, choices.below(1 << 12) as usize), false);
                for _ in 0..=choices.byte() {
                    self.host.node.offer(self.now, peer, choices.byte(), packet.clone());
                }
            }
            9 => self.now += Span::from_micros(1 << choices.below(20)),
            10 => self.reload(choices),
            _ => {
                let count = usize::from(choices.byte());
                let mut datagram = choices.bytes(count).to_vec();
                self.host.receive(self.now, &route(HOSTILE), false, &mut datagram);
            }
        }
    }

    /// Sends a datagram of the hostile peer: bytes as they are, frames, or a fragment of an inner packet.
    fn send_hostile(&mut self, choices: &mut Choices<'_>) {
        let flags = choices.byte();
        let body = match choices.below(4) {
            0 => {
                let count = usize::from(choices.byte());
                choices.bytes(count).to_vec()
            }
            1 => {
                let mut body = Vec::new();
                (0..=choices.below(8)).for_each(|_| self.any_frame(choices).write(&mut body));
                body
            }
            _ if flags & 32 != 0 => any_bundle(choices),
            _ => any_fragment(choices),
        };
        let (path, skip) = (if flags & 1 == 0 { 0 } else { choices.byte() & 15 }, u64::from(flags >> 6));
        if let Some(mut datagram) = self.hostile.seal(self.now, path, skip, &body) {
            let from = Route { socket: 0, remote: TestAddress(HOSTILE, flags >> 2 & 1) };
            self.host.receive(self.now, &from, flags & 2 != 0, &mut datagram);
        }
    }

    fn any_frame(&mut self, choices: &mut Choices<'_>) -> Frame {
        let path = choices.byte() & 15;
        match choices.below(8) {
            0 => Frame::Ping { token: choices.below(256) },
            1 | 2 => Frame::Pong { token: self.tokens.pop_back().unwrap_or(0) },
            3 | 4 => {
                let mut ranges = AckRanges::default();
                ranges.push(0, choices.below(256) as u32);
                ranges.push(choices.below(16) as u32, choices.below(256) as u32);
                let [largest, receive_timestamp_us] = [0, 1].map(|_| choices.below(1 << 16) as u32);
                Frame::Ack(Ack { path, largest, ack_delay_us: 0, receive_timestamp_us, ce_count: 0, ranges })
            }
            5 => Frame::ReorderTimeout { micros: choices.below(1 << 32) as u32 },
            6 => {
                let states = PathState::ALL;
                Frame::Path { path, state: states[choices.below(5) as usize] }
            }
            7 if choices.byte() & 1 == 0 => {
                let name = ["eth1", "wwan0", "path-1"][choices.below(3) as usize];
                Frame::PathName { path, name: PathName::nearest_to(name).expect("not empty") }
            }
            _ => Frame::Close,
        }
    }

    /// Changes the hostile peer's configuration as a reload does, or the host's network.
    fn reload(&mut self, choices: &mut Choices<'_>) {
        let (id, path) = (self.host.peer(HOSTILE), choices.byte() & 15);
        let node = &mut self.host.node;
        match choices.below(6) {
            0 => node.set_path(self.now, id, path, route(HOSTILE), PATH),
            1 => node.remove_path(self.now, id, path),
            2 => node.set_endpoint_config(id, new_endpoint_config()),
            3 => {
                self.host.remove_peer(id);
                self.host.add_peer(HOSTILE);
            }
            4 => self.hostile.sessions.rekey(self.now, self.hostile.host),
            _ => self.hostile.sessions.reset(self.now, self.hostile.host),
        }
    }

    /// Carries all datagrams until none is left.
    fn exchange(&mut self) {
        for _ in 0..64 {
            let from_honest = self.honest.transmit(self.now);
            let from_host = self.host.transmit(self.now);
            let is_quiet = from_honest.is_empty() && from_host.is_empty();
            for (_, mut datagram) in from_honest {
                self.host.receive(self.now, &route(HONEST), false, &mut datagram);
            }
            for (to, datagram) in from_host {
                self.carry(to, datagram);
            }
            let id = self.hostile.sessions.initiation_due(self.now, self.now.0);
            if let Some(initiation) = id.and_then(|id| self.hostile.sessions.initiation(self.now, id, 0)) {
                self.host.receive(self.now, &route(HOSTILE), false, &mut initiation.as_bytes().to_vec());
            }
            self.host.deliver(self.now);
            self.honest.deliver(self.now);
            if is_quiet {
                return;
            }
        }
    }

    fn carry(&mut self, to: TestAddress, mut datagram: Vec<u8>) {
        if to.0 == HONEST {
            return self.honest.receive(self.now, &route(HOST), false, &mut datagram);
        }
        if wire::gre::Sealed::parse(&datagram).is_none() {
            let _ = self.hostile.sessions.receive(self.now, |_| 0, &[HOST, 0], &datagram);
            return;
        }
        if self.hostile.sessions.open(self.now, &mut datagram).is_ok() {
            let body = &datagram[HEADER_LEN..datagram.len() - TAG_LEN];
            let Ok(wire::frame::Body::Control(frames)) = wire::frame::Body::parse(body) else { return };
            let tokens = frames.map_while(Result::ok).filter_map(|frame| match frame {
                Frame::Ping { token } => Some(token),
                _ => None,
            });
            self.tokens.extend(tokens);
            self.tokens.drain(..self.tokens.len().saturating_sub(16));
        }
    }
}

/// A fragment of an inner packet: whole or a part, from the peer's address or another's, with a virtio_net_hdr or not.
fn any_fragment(choices: &mut Choices<'_>) -> Vec<u8> {
    let flags = choices.byte();
    let header = DataHeader {
        stream: choices.byte(),
        sequence: choices.below(1 << 32) as u32 >> (choices.byte() & 31),
        first: flags & 1 == 0,
        last: flags & 2 == 0,
        retransmission: flags & 4 != 0,
        offload: flags & 8 != 0,
    };
    let source = if flags & 16 == 0 { HOSTILE } else { HONEST };
    let mut packet = packet(source, HOST, u32::MAX, choices.below(1200) as usize);
    if header.offload {
        let gso_type = [0, 5, 1][choices.below(3) as usize];
        let mut virtio = vec![1, gso_type, 0, 0, choices.byte(), 0, 20, 0, 6, 0];
        for _ in 0..choices.below(4) {
            virtio[choices.below(10) as usize] = choices.byte();
        }
        packet.splice(0..0, virtio);
    }
    for _ in 0..choices.below(4) {
        let offset = choices.below(44) as usize;
        packet[offset % 32] = choices.byte();
    }
    [&header.to_bytes()[..], &packet].concat()
}

/// A bundle of such fragments, the length of one of which may be wrong.
fn any_bundle(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut body = vec![0; Bundle::frames_len(0)];
    Bundle::write_frames(&mut body, &[]);
    let wrong = choices.below(8);
    for index in 0..=choices.below(8) {
        let fragment = any_fragment(choices);
        let (header, bytes) = DataHeader::parse(&fragment).expect("a fragment has a header");
        let start = body.len();
        body.resize(start + Bundle::entry_len(bytes.len()), 0);
        Bundle::write_entry(&mut body[start..], bytes.len(), |buffer| {
            buffer.copy_from_slice(bytes);
            DataHeader { first: true, last: true, ..header }
        });
        if index == wrong {
            body[start + DataHeader::LEN] = choices.byte();
        }
    }
    body
}
