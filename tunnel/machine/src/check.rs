//! Properties of an endpoint and a reassembler that must hold whatever the peer sends; they panic if one does not. The fuzz
//! targets (`fuzz/`) call them, and so do tests, with the saved inputs of fuzzing and mutations of them.

use crate::{
    Arrival, Delivery, Endpoint, Entropy, Fragment, MAX_PATHS, PacketBuffer, PathClasses, PathConfig, Payload,
    Reassembler, TransmitBody, TunnelOptions,
};
use std::collections::BTreeSet;
use units::{Instant, PathId, Span};
use wire::check::Choices;
use wire::frame::{Ack, AckRanges, Body, Frame, MAX_BUNDLE_ENTRIES, PathName, PathState};

/// A test payload: its number, its length, and the memory that it keeps in use.
#[derive(Clone, Debug)]
struct TestPayload {
    id: u64,
    len: u32,
    buffer_bytes: u64,
}

impl Payload for TestPayload {
    fn len(&self) -> u32 {
        self.len
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { len: end - start, ..*self }
    }

    fn memory_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    fn detach(&mut self) {
        self.buffer_bytes = u64::from(self.len);
    }

    fn signal_congestion(&mut self) -> bool {
        self.id.is_multiple_of(2)
    }
}

/// The length of a packet that is reassembled, in a buffer that doubles.
#[derive(Debug, Default)]
struct Length {
    len: u64,
    capacity: u64,
}

impl PacketBuffer<TestPayload> for Length {
    fn clear(&mut self) {
        self.len = 0;
    }

    fn append(&mut self, payload: &TestPayload) {
        self.len += u64::from(payload.len);
        self.capacity = self.capacity.max(self.len.next_power_of_two());
    }

    fn memory_bytes(&self) -> u64 {
        self.capacity
    }
}

const PATH: PathConfig = PathConfig::regular(1472, 28);
/// Paths of the endpoint at first.
const PATHS: u64 = 2;
/// Maximum number of datagrams that one input may cause: the content of `memory_bytes` in packets of the smallest size,
/// and answers.
const MAX_TRANSMITS: usize = 8192;

/// An endpoint, and the state of its driver and its peer.
struct Victim {
    endpoint: Endpoint<TestPayload>,
    reassembler: Reassembler<Length>,
    now: Instant,
    /// Number of the next datagram from the peer, on all paths.
    next_number: u64,
    next_id: u64,
    /// Numbers of the fragments that were received and not yet delivered.
    received: BTreeSet<u64>,
    /// Path and packet number of the datagrams sent, the latest last.
    sent: Vec<(PathId, u64)>,
    /// Path and token of the pings sent, the latest last.
    pings: Vec<(PathId, u64)>,
}

/// Any input of an endpoint, in any order: fragments, frames, host packets, timers, and changes of its paths. The
/// memory charged equals the memory held and does not exceed the options; each fragment is delivered at most once;
/// answers are bounded.
///
/// # Panics
/// If that does not hold.
pub fn endpoint(data: &[u8]) {
    let mut choices = Choices(data);
    let mut victim = Victim::new(choices.byte());
    while !choices.is_empty() {
        victim.step(&mut choices);
        victim.poll();
        victim.endpoint.check();
    }
}

impl Victim {
    fn new(options: u8) -> Self {
        let bundling = options & 16 != 0;
        let options = TunnelOptions {
            in_order: options & 1 == 0,
            retransmit: options & 2 == 0,
            deliver_late: options & 4 != 0,
            congestion: if options & 8 == 0 { "bbr-path" } else { "off" }.into(),
            memory_bytes: 256 << 10,
            ..TunnelOptions::default()
        };
        let config = options.endpoint_config(&[], Entropy::seeded(1)).expect("registered algorithms");
        let mut endpoint = Endpoint::new(config);
        endpoint.set_bundling(bundling);
        (0..PATHS).for_each(|path| endpoint.set_path(PathId(path as u16), PATH));
        Self {
            endpoint,
            reassembler: Reassembler::default(),
            now: Instant(1_000_000_000),
            next_number: 0,
            next_id: 0,
            received: BTreeSet::new(),
            sent: Vec::new(),
            pings: Vec::new(),
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(12) {
            0..=3 => self.receive_fragments(choices),
            4 => {
                let count = usize::from(choices.byte());
                if let Ok(Body::Control(frames)) = Body::parse(choices.bytes(count)) {
                    let frames: Vec<_> = frames.map_while(Result::ok).collect();
                    self.receive_frames(choices, &frames);
                }
            }
            5 | 6 => {
                let frames: Vec<_> = (0..=choices.below(8)).map(|_| self.any_frame(choices)).collect();
                self.receive_frames(choices, &frames);
            }
            7 => {
                for _ in 0..=choices.below(16) {
                    let (stream, len) = (choices.byte(), choices.below(1 << 16) as u32);
                    let payload = TestPayload { id: self.id(), len, buffer_bytes: u64::from(len) + 256 };
                    self.endpoint.offer(self.now, stream, payload);
                }
            }
            8 | 9 => {
                self.now += Span::from_micros(1 << choices.below(24));
                self.endpoint.on_timeout(self.now);
            }
            10 => self.answer_ping(choices),
            _ => self.change_path(choices),
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn arrival(&mut self, choices: &mut Choices<'_>) -> Arrival {
        self.next_number += 1;
        let flags = choices.byte();
        Arrival { path: PathId(u16::from(flags & 3)), packet_number: self.next_number, ce: flags & 4 != 0 }
    }

    /// Receives fragments of one stream with numbers that are a step apart, each in a separate buffer.
    fn receive_fragments(&mut self, choices: &mut Choices<'_>) {
        let (stream, flags, spread) = (choices.byte(), choices.byte(), choices.byte());
        let first = choices.below(1 << 32) as u32 >> (spread & 31);
        let step = choices.below(1 << 16) as u32 >> (spread >> 4);
        let len = choices.below(2048) as u32;
        let mut bundle = Vec::new();
        for k in 0..=choices.below(64) as u32 {
            let arrival = self.arrival(choices);
            let id = self.id();
            self.received.insert(id);
            let fragment = Fragment {
                stream,
                sequence: first.wrapping_add(k.wrapping_mul(step)),
                first: flags & 1 != 0 || flags & 2 != 0 && k == 0,
                last: flags & 4 != 0,
                retransmission: flags & 8 != 0,
                payload: TestPayload { id, len, buffer_bytes: 66 << 10 },
            };
            if flags & 16 == 0 {
                self.endpoint.receive_data(self.now, arrival, fragment);
            } else {
                bundle.push(fragment);
            }
        }
        if !bundle.is_empty() {
            let (arrival, frame) = (self.arrival(choices), self.any_frame(choices));
            self.endpoint.receive_bundle(self.now, arrival, &[frame], bundle.into_iter());
        }
    }

    fn receive_frames(&mut self, choices: &mut Choices<'_>, frames: &[Frame]) {
        let arrival = self.arrival(choices);
        self.endpoint.receive_control(self.now, arrival, frames);
    }

    fn any_frame(&self, choices: &mut Choices<'_>) -> Frame {
        let path = choices.byte() & 3;
        match choices.below(8) {
            0..=2 => {
                let mut ranges = AckRanges::default();
                let largest = match self.sent.len().checked_sub(1 + choices.below(64) as usize) {
                    Some(index) => self.sent[index].1 as u32,
                    None => choices.below(1 << 32) as u32,
                };
                (0..=choices.below(4)).for_each(|_| {
                    ranges.push(choices.below(1 << 8) as u32, choices.below(1 << 16) as u32);
                });
                let [ack_delay_us, receive_timestamp_us] = [0, 1].map(|_| choices.below(1 << 32) as u32);
                let ce_count = choices.below(1 << 8) as u32;
                Frame::Ack(Ack { path, largest, ack_delay_us, receive_timestamp_us, ce_count, ranges })
            }
            3 => Frame::Ping { token: choices.below(1 << 32) },
            4 => Frame::Pong { token: choices.below(1 << 32) },
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

    /// Answers one of the latest pings, on its path.
    fn answer_ping(&mut self, choices: &mut Choices<'_>) {
        let Some(index) = self.pings.len().checked_sub(1 + choices.below(4) as usize) else { return };
        let (path, token) = self.pings[index];
        self.next_number += 1;
        let arrival = Arrival { path, packet_number: self.next_number, ce: false };
        self.endpoint.receive_control(self.now, arrival, &[Frame::Pong { token }]);
    }

    /// Changes a path as a reload, the host's links and its network do.
    fn change_path(&mut self, choices: &mut Choices<'_>) {
        let path = PathId(choices.below(MAX_PATHS as u64) as u16);
        let flags = choices.byte();
        match flags % 7 {
            0 => {
                let classes = [PathClasses::All, PathClasses::Realtime, PathClasses::Bulk][usize::from(flags) % 3];
                let (backup, metered, secondary) = (flags & 16 != 0, flags & 32 != 0, flags & 64 != 0);
                let config = PathConfig { backup, metered, secondary, classes, ..PATH };
                self.endpoint.set_path(path, config);
            }
            1 => self.endpoint.remove_path(self.now, path),
            2 => self.endpoint.forget_path(self.now, path),
            3 => self.endpoint.on_unreachable(self.now, path),
            4 => self.endpoint.on_too_large(self.now, path),
            5 => self.endpoint.ping_now(),
            _ => self.endpoint.announce_removal(path),
        }
    }

    /// Does what a driver does after each input.
    fn poll(&mut self) {
        while let Some(delivery) = self.endpoint.poll_delivery() {
            assert!(self.received.remove(&delivery.payload.id), "delivered once, and only what was received");
            add(&mut self.reassembler, &delivery);
        }
        let mut transmits = 0;
        while let Some(transmit) = self.endpoint.poll_transmit(self.now) {
            transmits += 1;
            assert!(transmits < MAX_TRANSMITS, "no end of datagrams");
            self.sent.push((transmit.path, transmit.packet_number));
            assert!(self.endpoint.bundle().len() <= MAX_BUNDLE_ENTRIES);
            if matches!(transmit.body, TransmitBody::Control { .. }) {
                let tokens = self.endpoint.control_frames().iter().filter_map(|frame| match frame {
                    Frame::Ping { token } => Some(*token),
                    _ => None,
                });
                self.pings.extend(tokens.map(|token| (transmit.path, token)));
            }
        }
        let events = std::iter::from_fn(|| self.endpoint.poll_event()).count();
        assert!(events < MAX_TRANSMITS, "no end of events");
        let _ = self.endpoint.deadline(self.now);
    }
}

/// Any fragments in any order: the memory of incomplete packets and the length of a packet are bounded.
///
/// # Panics
/// If that does not hold.
pub fn reassembler(data: &[u8]) {
    let (mut choices, mut reassembler) = (Choices(data), Reassembler::default());
    while !choices.is_empty() {
        let (stream, flags) = (choices.byte(), choices.byte());
        let (len, count) = (choices.below(1 << 16) as u32, choices.below(64));
        for k in 0..=count {
            let delivery = Delivery {
                stream: stream.wrapping_add(if flags & 16 != 0 { k as u8 } else { 0 }),
                payload: TestPayload { id: 0, len, buffer_bytes: 0 },
                first: flags & 1 != 0 || flags & 32 != 0 && k == 0,
                last: flags & 2 != 0 || flags & 64 != 0 && k == count,
                gap: flags & 4 != 0,
                ce: flags & 8 != 0,
            };
            add(&mut reassembler, &delivery);
        }
    }
}

fn add(reassembler: &mut Reassembler<Length>, delivery: &Delivery<TestPayload>) {
    if let Some(packet) = reassembler.add(delivery) {
        assert!(packet.buffer.len <= 65_609, "{} bytes", packet.buffer.len);
    }
    reassembler.check();
}
