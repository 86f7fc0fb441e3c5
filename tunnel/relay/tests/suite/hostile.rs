//! A peer that sends anything: memory and the number of connections stay bounded, and nothing panics.

use crate::network::{Bytes, addresses};
use ropewalk_relay::{Body, Event, Header, Message, Relay, RelayConfig, ResetReason};
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

fn any_message(random: &mut RngStream) -> Message<Bytes> {
    let length = random.below(2000) as u16;
    let body = match random.below(8) {
        0 => Body::Open(addresses(random.below(100) as u16)),
        1 => Body::Accept { window_end: any_offset(random) },
        2 | 3 => Body::Data { offset: any_offset(random), length, fin: random.chance(0.1) },
        4 => Body::Data { offset: 700 * random.below(100), length, fin: false },
        5 | 6 => Body::Ack { offset: any_offset(random), window_end: any_offset(random), gap_end: any_offset(random) },
        _ => Body::Reset([ResetReason::Refused, ResetReason::Reset][random.below(2) as usize]),
    };
    let chunk = matches!(body, Body::Data { .. }).then(|| Bytes(vec![0; usize::from(length)]));
    let header = Header { opened_by_sender: random.chance(0.7), connection: random.below(30) as u32, body };
    Message { header, chunk: chunk.filter(|chunk| !chunk.0.is_empty()) }
}

#[test]
fn memory_connections_and_answers_stay_bounded_whatever_the_peer_sends() {
    for seed in 0..20 {
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
