//! Memory that a hostile peer makes an endpoint hold: what is charged is what the allocator has given, and no more than
//! the options allow.

use ropewalk_machine::{
    Arrival, Delivery, Endpoint, Entropy, FIRST_UNORDERED_STREAM, Fragment, PacketBuffer, PathConfig, Payload,
    Reassembler, TransmitBody, TunnelOptions,
};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Instant, PathId, RngStream, Span};
use wire::frame::{Ack, AckRanges, Frame};

#[global_allocator]
static COUNTING: testing::CountingAllocator = testing::CountingAllocator;

fn in_use() -> u64 {
    testing::bytes_in_use().max(0) as u64
}

/// Bytes of a receive buffer, which is in use as long as a slice of it is.
#[derive(Clone, Debug)]
struct Slice {
    buffer: Rc<[u8]>,
    len: u32,
}

impl Slice {
    fn new(len: u32, buffer_bytes: usize) -> Self {
        Self { buffer: vec![0; buffer_bytes].into(), len }
    }
}

impl Payload for Slice {
    fn len(&self) -> u32 {
        self.len
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { buffer: self.buffer.clone(), len: end - start }
    }

    fn memory_bytes(&self) -> u64 {
        self.buffer.len() as u64 + 16
    }

    fn detach(&mut self) {
        *self = Self::new(self.len, self.len as usize);
    }
}

/// Bytes that a packet is copied to, as in the daemon.
#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl PacketBuffer<Slice> for Bytes {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn append(&mut self, payload: &Slice) {
        self.0.extend_from_slice(&payload.buffer[..payload.len as usize]);
    }

    fn memory_bytes(&self) -> u64 {
        self.0.capacity() as u64
    }
}

const PATH: PathConfig = PathConfig::regular(1472, 28);

/// What an endpoint uses besides what is charged: its path, and the queue of deliveries that it keeps.
const UNCHARGED_BYTES: u64 = 256 << 10;

/// An endpoint with one path, and the bytes in use with it.
struct Victim {
    endpoint: Endpoint<Slice>,
    in_use_before: u64,
    packet_number: u64,
}

impl Victim {
    fn new(options: &TunnelOptions) -> Self {
        let mut endpoint = Endpoint::new(options.endpoint_config(&[], Entropy::seeded(1)).expect("registered"));
        endpoint.set_path(PathId(0), PATH);
        Self { endpoint, in_use_before: in_use(), packet_number: 0 }
    }

    /// Receives a fragment, which is delivered if it is in order; returns the number of deliveries.
    fn receive(&mut self, now: Instant, stream: u8, sequence: u32, payload: Slice) -> usize {
        let arrival = Arrival { path: PathId(0), packet_number: self.packet_number, ce: false };
        self.packet_number += 1;
        let fragment = Fragment { stream, sequence, first: true, last: true, retransmission: false, payload };
        self.endpoint.receive_data(now, arrival, fragment);
        std::iter::from_fn(|| self.endpoint.poll_delivery()).count()
    }

    /// Asserts that what is in use is charged.
    fn check(&self) {
        let (used, charged) = (in_use() - self.in_use_before.min(in_use()), self.endpoint.status().reorder_memory);
        assert!(used <= charged + UNCHARGED_BYTES, "{used} bytes in use, {charged} charged");
        self.endpoint.check();
    }
}

#[test]
fn fragments_far_ahead_in_every_stream_cost_what_they_are_charged() {
    let mut victim = Victim::new(&TunnelOptions::default());
    for k in 0..2256 {
        let (stream, sequence) = ((k % 240) as u8, 65_535 - k / 240);
        victim.receive(Instant::ZERO, stream, sequence, Slice::new(1, 64 << 10));
    }
    assert_eq!(victim.endpoint.status().reorder_fragments, 2256);
    let used = in_use() - victim.in_use_before;
    assert!(used < 2256 * 512, "{used} bytes for 2256 fragments of one byte");
    victim.check();
}

#[test]
fn whatever_the_numbers_sizes_and_buffers_memory_is_charged_and_bounded() {
    for (seed, in_order) in [(1, true), (2, false)] {
        let options = TunnelOptions { memory_bytes: 1 << 20, in_order, ..TunnelOptions::default() };
        let mut victim = Victim::new(&options);
        let mut random = RngStream::named(seed, "a hostile peer");
        let mut bases = vec![0; 256];
        for step in 0..100_000_u64 {
            let stream = random.below(256) as usize;
            if random.chance(0.01) {
                bases[stream] += random.below(70_000) as u32;
            }
            let distance = if random.chance(0.5) { 60_000 } else { 20 };
            let sequence = bases[stream] + random.below(distance) as u32;
            let buffer_bytes = [2048, 65_536][usize::from(random.chance(0.05))];
            let payload = Slice::new(random.below(1400) as u32, buffer_bytes);
            victim.receive(Instant(step * 10_000), stream as u8, sequence, payload);
            victim.endpoint.on_timeout(Instant(step * 10_000));
            while victim.endpoint.poll_delivery().is_some() {}
            if step % 1000 == 0 {
                victim.check();
            }
        }
        assert!(victim.endpoint.status().reorder_memory > 1 << 19, "the buffer was nearly full");
    }
}

#[test]
fn numbers_delivered_out_of_order_are_charged() {
    let options = TunnelOptions { memory_bytes: 1 << 20, ..TunnelOptions::default() };
    let mut victim = Victim::new(&options);
    let deliveries: usize =
        (1..30_000).map(|k| victim.receive(Instant::ZERO, FIRST_UNORDERED_STREAM, 2 * k, Slice::new(1, 64))).sum();
    assert_eq!(deliveries, 29_999, "each at once");
    assert_eq!(victim.endpoint.status().reorder_fragments, 0);
    assert!(victim.endpoint.status().reorder_memory > 1 << 19);
    victim.check();
}

#[test]
fn memory_is_free_again_after_the_reorder_timeout() {
    let mut victim = Victim::new(&TunnelOptions::default());
    for k in 0..20_000 {
        victim.receive(Instant::ZERO, (k % 200) as u8, 1 + 2 * (k / 200), Slice::new(1000, 2048));
    }
    let used = in_use() - victim.in_use_before;
    assert!(used > 20_000_000);
    victim.endpoint.on_timeout(Instant::ZERO + Span::from_secs(1));
    assert_eq!(std::iter::from_fn(|| victim.endpoint.poll_delivery()).count(), 20_000);
    assert_eq!(victim.endpoint.status().reorder_memory, 0);
    victim.check();
}

#[test]
fn incomplete_packets_use_bounded_memory_and_leave_none() {
    let before = in_use();
    let mut reassembler: Reassembler<Bytes> = Reassembler::default();
    let fragment =
        |stream, first, last| Delivery { stream, payload: Slice::new(1400, 1400), first, last, gap: false, ce: false };
    for k in 0..45 {
        for stream in 0..=255 {
            assert!(reassembler.add(&fragment(stream, k == 0, false)).is_none());
        }
    }
    let used = in_use() - before;
    assert!(used <= reassembler.memory_bytes() + (512 << 10) && reassembler.memory_bytes() <= 8 << 20, "{used}");
    let complete = (0..=255).filter(|stream| reassembler.add(&fragment(*stream, false, true)).is_some()).count();
    assert!((64..=128).contains(&complete), "{complete} of the latest");
    assert_eq!(reassembler.incomplete_packets, 256 - complete as u64);
    assert_eq!(reassembler.memory_bytes(), 0);
    let used = in_use() - before;
    assert!(used <= 1 << 20, "{used} bytes in use");
}

/// A peer that acknowledges late, so that its congestion window is large, and has this host send it small packets: answers
/// to its own echo requests, for instance. Each keeps a whole buffer in use.
#[test]
fn packets_that_a_peer_acknowledges_late_keep_bounded_memory_in_use() {
    const MEMORY_BYTES: u64 = 1 << 20;
    const RTT: Span = Span::from_millis(1000);
    let mut victim = Victim::new(&TunnelOptions { memory_bytes: MEMORY_BYTES, ..TunnelOptions::default() });
    let mut answers: VecDeque<(Instant, Frame)> = VecDeque::new();
    let (mut max_used, mut largest) = (0, 0);
    for k in 0..200_000_u64 {
        let now = Instant::ZERO + Span::from_micros(100) * k;
        while let Some((_, frame)) = answers.pop_front_if(|(time, _)| *time <= now) {
            let arrival = Arrival { path: PathId(0), packet_number: victim.packet_number, ce: false };
            victim.packet_number += 1;
            victim.endpoint.receive_control(now, arrival, &[frame]);
        }
        victim.endpoint.on_timeout(now);
        victim.endpoint.offer(now, (k % 200) as u8, Slice::new(64, 2048));
        while let Some(transmit) = victim.endpoint.poll_transmit(now) {
            largest = transmit.packet_number as u32;
            let TransmitBody::Control { .. } = transmit.body else { continue };
            for frame in victim.endpoint.control_frames() {
                if let Frame::Ping { token } = frame {
                    answers.push_back((now + RTT, Frame::Pong { token: *token }));
                }
            }
        }
        if k % 10 == 0 {
            let mut ranges = AckRanges::default();
            ranges.push(0, largest + 1);
            let micros = (now.0 / 1000) as u32;
            let ack = Ack { path: 0, largest, ack_delay_us: 0, receive_timestamp_us: micros, ce_count: 0, ranges };
            answers.push_back((now + RTT, Frame::Ack(ack)));
        }
        max_used = max_used.max(in_use() - victim.in_use_before.min(in_use()));
        victim.endpoint.check();
    }
    // The ingress queue and the fragments in flight, with an eighth for what is held of each packet besides its buffer.
    let bound = MEMORY_BYTES / 8 * 9 * (1 + 3) + UNCHARGED_BYTES;
    assert!(max_used <= bound, "{max_used} bytes in use, at most {bound}");
}
