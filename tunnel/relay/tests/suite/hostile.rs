//! A peer that sends anything: memory and the number of connections stay bounded, and nothing panics.

use crate::network::{Bytes, addresses};
use ropewalk_relay::{Body, Chunk, ConnectionId, Event, Gaps, Header, Message, Relay, RelayConfig, ResetReason};
use std::cell::Cell;
use std::rc::Rc;
use units::{Instant, RngStream, Span};

const CONFIG: RelayConfig = RelayConfig { memory_bytes: 1 << 18, max_connections: 20 };

fn any_offset(random: &mut RngStream) -> u64 {
    match random.below(4) {
        0 => random.below(3000),
        1 => random.below(1 << 18),
        2 => random.below(1 << 40),
        _ => random.bits() >> 1,
    }
}

fn any_gaps(random: &mut RngStream) -> Gaps {
    let mut end = any_offset(random);
    let mut gaps = Gaps::new(end);
    for _ in 0..random.below(9) {
        let start = end + random.below(2000);
        end = start + random.below(2000);
        gaps.push(start..end);
    }
    gaps
}

fn any_message(random: &mut RngStream) -> Message<Bytes> {
    let length = random.below(2000) as u16;
    let body = match random.below(9) {
        0 => Body::Open(addresses(random.below(100) as u16)),
        1 => Body::Accept { window_end: any_offset(random) },
        2 | 3 => Body::Data { offset: any_offset(random), length, fin: random.chance(0.1) },
        4 => Body::Data { offset: 700 * random.below(100), length, fin: false },
        5 | 6 => Body::Ack { offset: any_offset(random), window_end: any_offset(random), gap_end: any_offset(random) },
        7 => Body::Gaps(any_gaps(random)),
        _ => Body::Reset([ResetReason::Refused, ResetReason::Reset][random.below(2) as usize]),
    };
    let chunk = matches!(body, Body::Data { .. }).then(|| Bytes(vec![0; usize::from(length)]));
    let header = Header { opened_by_sender: random.chance(0.7), connection: random.below(30) as u32, body };
    Message { header, chunk: chunk.filter(|chunk| !chunk.0.is_empty()) }
}

#[test]
fn memory_connections_and_answers_stay_bounded_whatever_the_peer_sends() {
    for seed in testing::campaign(20).range() {
        let mut random = RngStream::named(seed, "a hostile peer");
        let mut relay: Relay<Bytes> = Relay::new(CONFIG);
        let mut now = Instant::ZERO;
        for _ in 0..20_000 {
            now += Span::from_micros(random.below(20_000));
            if random.chance(0.01) {
                relay.open(now, addresses(1));
            }
            relay.receive(now, any_message(&mut random));
            while let Some(event) = relay.poll_event() {
                match event {
                    Event::Opened { id, .. } if random.chance(0.8) => relay.accept(now, id),
                    Event::Accepted(id) => relay.write(id, Bytes(vec![1; 1500])),
                    Event::Readable(id) if random.chance(0.5) => relay.consume(now, id, random.below(4000)),
                    Event::Writable(id) if random.chance(0.1) => relay.finish(id),
                    _ => {}
                }
            }
            if relay.deadline() <= now {
                relay.on_timeout(now);
            }
            let mut answers = 0;
            while relay.poll_message(now, 1400).is_some() {
                answers += 1;
            }
            // What is open is answered once, and what it has to send is bounded by the memory.
            assert!(answers <= 20 * 2 + CONFIG.memory_bytes / 256, "{answers}");
            let (sent, received) = relay.memory_used();
            assert!(sent <= CONFIG.memory_bytes && received <= CONFIG.memory_bytes, "{sent} {received}");
            assert!(relay.connections().count() <= CONFIG.max_connections);
        }
        relay.reset_all();
        assert_eq!(relay.memory_used(), (0, 0));
    }
}

#[test]
fn tiny_chunks_with_gaps_are_charged() {
    let mut relay: Relay<Bytes> = Relay::new(CONFIG);
    let receive = |relay: &mut Relay<Bytes>, body, chunk| {
        relay.receive(Instant::ZERO, Message { header: Header { opened_by_sender: true, connection: 1, body }, chunk });
    };
    receive(&mut relay, Body::Open(addresses(1)), None);
    while let Some(event) = relay.poll_event() {
        if let Event::Opened { id, .. } = event {
            relay.accept(Instant::ZERO, id);
        }
    }
    for offset in (1..60_000).step_by(2) {
        receive(&mut relay, Body::Data { offset, length: 1, fin: false }, Some(Bytes(vec![0])));
    }
    // Half of the memory, at 257 bytes each: a connection may hold half of what others leave.
    let (_, received) = relay.memory_used();
    assert!((CONFIG.memory_bytes / 2 - 257..=CONFIG.memory_bytes / 2).contains(&received), "{received}");
}

thread_local! {
    /// Bytes of all [`Buffer`]s.
    static IN_USE: Cell<u64> = const { Cell::new(0) };
}

/// A buffer that a message was received in.
#[derive(Debug)]
struct Buffer(u64);

impl Buffer {
    fn new(len: u64) -> Rc<Self> {
        IN_USE.set(IN_USE.get() + len);
        Rc::new(Self(len))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        IN_USE.set(IN_USE.get() - self.0);
    }
}

/// Bytes of a buffer, which is in use as long as they are.
#[derive(Clone, Debug)]
struct Slice {
    buffer: Rc<Buffer>,
    len: u32,
}

impl Chunk for Slice {
    fn len(&self) -> u32 {
        self.len
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { buffer: self.buffer.clone(), len: end - start }
    }

    fn detach(&mut self) {
        self.buffer = Buffer::new(u64::from(self.len));
    }
}

/// Receives messages of 60 000 bytes of which few are new, or all of which but few are consumed.
fn receive_pieces(connections: u32, new_bytes: u64, consumed: u64) -> (u64, u64) {
    let config = RelayConfig { memory_bytes: 64 << 20, ..RelayConfig::default() };
    let mut relay: Relay<Slice> = Relay::new(config);
    for connection in 0..connections {
        let header = |body| Header { opened_by_sender: true, connection, body };
        relay.receive(Instant::ZERO, Message { header: header(Body::Open(addresses(1))), chunk: None });
        let id = ConnectionId { is_local: false, number: connection };
        relay.accept(Instant::ZERO, id);
        for k in 0..20 {
            let chunk = Slice { buffer: Buffer::new(60_000), len: 60_000 };
            let body = Body::Data { offset: k * new_bytes, length: 60_000, fin: false };
            relay.receive(Instant::ZERO, Message { header: header(body), chunk: Some(chunk) });
            relay.consume(Instant::ZERO, id, consumed);
        }
        while relay.poll_event().is_some() || relay.poll_message(Instant::ZERO, 0).is_some() {}
    }
    (IN_USE.get(), relay.memory_used().1)
}

#[test]
fn bytes_that_came_before_are_not_held_with_the_new_ones() {
    let (in_use, charged) = receive_pieces(20, 100, 0);
    assert!(in_use <= charged, "{in_use} bytes in use, {charged} charged");
}

#[test]
fn of_a_chunk_that_was_consumed_but_for_its_end_little_is_held() {
    let (in_use, charged) = receive_pieces(100, 60_000, 59_900);
    assert!(in_use <= 2 * charged, "{in_use} bytes in use, {charged} charged");
}

#[test]
fn answers_are_bounded_that_a_peer_does_not_let_leave() {
    let mut relay: Relay<Bytes> = Relay::new(CONFIG);
    for connection in 0..100_000 {
        let body = Body::Data { offset: 0, length: 1, fin: false };
        let header = Header { opened_by_sender: true, connection, body };
        relay.receive(Instant::ZERO, Message { header, chunk: Some(Bytes(vec![0])) });
    }
    assert_eq!(std::iter::from_fn(|| relay.poll_message(Instant::ZERO, 0)).count(), 4096);
}

thread_local! {
    /// How often the length of a chunk was asked for.
    static LENGTHS: Cell<u64> = const { Cell::new(0) };
}

/// One byte.
#[derive(Clone, Debug)]
struct Byte;

impl Chunk for Byte {
    fn len(&self) -> u32 {
        LENGTHS.set(LENGTHS.get() + 1);
        1
    }

    fn slice(&self, _: u32, _: u32) -> Self {
        Self
    }
}

/// A server that sends bytes one by one, and a peer that says that all but the first are missing.
#[test]
fn the_work_of_a_message_does_not_grow_with_what_was_sent_before_it() {
    const CHUNKS: u64 = 10_000;
    let (mut relay, now): (Relay<Byte>, _) = (Relay::new(RelayConfig::default()), Instant::ZERO + Span::from_secs(10));
    let message = |body| Message { header: Header { opened_by_sender: true, connection: 1, body }, chunk: None };
    relay.receive(now, message(Body::Open(addresses(1))));
    let id = ConnectionId { is_local: false, number: 1 };
    relay.accept(now, id);
    (0..CHUNKS).for_each(|_| relay.write(id, Byte));
    while relay.poll_message(now, 1).is_some() {}
    relay.receive(now, message(Body::Ack { offset: 1, window_end: 1 << 20, gap_end: CHUNKS }));
    LENGTHS.set(0);
    let offsets = std::iter::from_fn(|| relay.poll_message(now, 1)).map(|message| match message.header.body {
        Body::Data { offset, .. } => offset,
        other => panic!("{other:?}"),
    });
    assert!(offsets.eq(1..CHUNKS), "each is sent again, in order");
    assert!(LENGTHS.get() <= 16 * CHUNKS, "{} lengths for {CHUNKS} messages", LENGTHS.get());
}

/// A server that has sent 20 000 bytes, and a peer that says that every second one is missing, again and again.
#[test]
fn of_any_gaps_4096_are_sent_again_in_a_round_trip() {
    let (mut relay, now): (Relay<Bytes>, _) = (Relay::new(RelayConfig::default()), Instant::ZERO + Span::from_secs(10));
    let message = |body| Message { header: Header { opened_by_sender: true, connection: 1, body }, chunk: None };
    relay.receive(now, message(Body::Open(addresses(1))));
    let id = ConnectionId { is_local: false, number: 1 };
    relay.accept(now, id);
    relay.write(id, Bytes(vec![0; 20_000]));
    while relay.poll_message(now, 1400).is_some() {}
    let mut sent_again = 0;
    for first in (0..20_000).step_by(16).cycle().take(5000) {
        let mut gaps = Gaps::new(first);
        (0..8).for_each(|k| assert!(gaps.push(first + 2 * k..first + 2 * k + 1)));
        relay.receive(now + Span::from_millis(100), message(Body::Gaps(gaps)));
        sent_again += std::iter::from_fn(|| relay.poll_message(now + Span::from_millis(100), 1400)).count();
    }
    assert_eq!(sent_again, 4096);
}

#[test]
fn a_peer_opens_two_thousand_connections_a_second_at_most() {
    let mut relay: Relay<Bytes> = Relay::new(RelayConfig { memory_bytes: 1 << 26, max_connections: 16_384 });
    let opened = |relay: &mut Relay<Bytes>, now, numbers: std::ops::Range<u32>| {
        for connection in numbers {
            let body = Body::Open(addresses(connection as u16));
            relay.receive(now, Message { header: Header { opened_by_sender: true, connection, body }, chunk: None });
            let reset = Body::Reset(ResetReason::Reset);
            let header = Header { opened_by_sender: true, connection, body: reset };
            relay.receive(now, Message { header, chunk: None });
        }
        let mut count = 0;
        while let Some(event) = relay.poll_event() {
            count += u32::from(matches!(event, Event::Opened { .. }));
        }
        count
    };
    assert_eq!(opened(&mut relay, Instant::ZERO, 0..5000), 2000, "though each is gone before the next");
    relay.reset_all();
    assert_eq!(opened(&mut relay, Instant::ZERO, 5000..6000), 0, "a restart of the peer is no way around");
    assert_eq!(opened(&mut relay, Instant::ZERO + Span::from_secs(1), 6000..9000), 2000);
}

#[test]
fn later_chunks_of_a_connection_are_at_most_4096_and_the_missing_one_is_always_taken() {
    let mut relay: Relay<Bytes> = Relay::new(RelayConfig { memory_bytes: 1 << 26, max_connections: 4 });
    let id = relay.open(Instant::ZERO, addresses(1)).expect("there is room");
    let mut data = |offset: u64| {
        let body = Body::Data { offset, length: 1, fin: false };
        let header = Header { opened_by_sender: false, connection: id.number, body };
        relay.receive(Instant::ZERO, Message { header, chunk: Some(Bytes(vec![0])) });
        relay.memory_used().1
    };
    let charge = data(1);
    let charged = (1..10_000).map(|k| data(1 + 2 * k)).last();
    assert_eq!(charged, Some(4096 * charge));
    assert_eq!(data(0), 4097 * charge);
}
