//! Properties of the relay that must hold whatever the peer sends; they panic if one does not. The fuzz target (`fuzz/`)
//! calls them, and so do tests, with the saved inputs of fuzzing and mutations of them.

use crate::{Addresses, Body, Chunk, ConnectionId, Event, Header, Message, Relay, RelayConfig, ResetReason};
use std::net::{Ipv4Addr, SocketAddr};
use units::{Instant, Span};
use wire::check::Choices;
use wire::relay::Gaps;

/// Bytes of a connection, represented by their number.
#[derive(Clone, Debug)]
struct Length(u32);

impl Chunk for Length {
    fn len(&self) -> u32 {
        self.0
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        assert!(start <= end && end <= self.0, "{start}..{end} of {}", self.0);
        Self(end - start)
    }
}

const CONFIG: RelayConfig = RelayConfig { memory_bytes: 1 << 20, max_connections: 8 };
/// Maximum number of messages without data that wait in one step: the answers to its messages, and one of each
/// connection.
const MAX_ANSWERS: usize = 128;

/// Any messages in any order, from a peer and from local sockets. The memory charged equals the memory held and does
/// not exceed the configuration; connections and answers are bounded; a driver never gets more data than it may write.
///
/// # Panics
/// If that does not hold.
pub fn relay(data: &[u8]) {
    let mut choices = Choices(data);
    let mut relay: Relay<Length> = Relay::new(CONFIG);
    let (mut now, mut connections) = (Instant::ZERO, Vec::new());
    while !choices.is_empty() {
        step(&mut relay, &mut choices, &mut now, &connections);
        let events = std::iter::from_fn(|| relay.poll_event());
        connections.extend(events.map(|event| match event {
            Event::Opened { id, .. } | Event::Closed { id, .. } => id,
            Event::Accepted(id) | Event::Readable(id) | Event::Writable(id) => id,
        }));
        connections.drain(..connections.len().saturating_sub(16));
        relay.check();
        let answers = std::iter::from_fn(|| relay.poll_message(now, 0)).count();
        assert!(answers <= MAX_ANSWERS, "{answers} answers");
    }
    relay.reset_all();
    assert_eq!(relay.memory_used(), (0, 0));
}

fn step(relay: &mut Relay<Length>, choices: &mut Choices<'_>, now: &mut Instant, connections: &[ConnectionId]) {
    let index = connections.len().checked_sub(1 + choices.below(16) as usize);
    let id = index.map_or(ConnectionId { is_local: false, number: 0 }, |index| connections[index]);
    match choices.below(12) {
        0..=4 => {
            for _ in 0..=choices.below(32) {
                receive_any(relay, choices, *now, id);
            }
        }
        5 => relay.accept(*now, id),
        6 => {
            relay.open(*now, addresses(choices.byte()));
        }
        7 => {
            let capacity = relay.send_capacity(id);
            let length = capacity.min(choices.below(1 << 16)) as u32;
            relay.write(id, Length(length));
        }
        8 => relay.consume(*now, id, choices.below(1 << 16)),
        9 => {
            let max_bytes = choices.below(1 << 16) as u32;
            for message in (0..=choices.byte()).map_while(|_| relay.poll_message(*now, max_bytes)) {
                let length = message.chunk.as_ref().map_or(0, Chunk::len);
                assert!(length <= max_bytes, "{length} of {max_bytes} bytes");
            }
        }
        10 => {
            *now += Span::from_micros(1 << choices.below(28));
            relay.on_timeout(*now);
        }
        _ if choices.byte() & 1 == 0 => relay.finish(id),
        _ => relay.reset(*now, id, ResetReason::Reset),
    }
}

fn receive_any(relay: &mut Relay<Length>, choices: &mut Choices<'_>, now: Instant, known: ConnectionId) {
    let flags = choices.byte();
    let id = ConnectionId { is_local: flags & 1 != 0, number: u32::from(choices.byte()) };
    let id = if flags & 2 != 0 { known } else { id };
    let offset = |choices: &mut Choices<'_>| {
        let shift = choices.byte() & 63;
        choices.below(1 << 32) << 31 >> shift
    };
    let body = match choices.below(7) {
        0 => Body::Open(addresses(choices.byte())),
        1 => Body::Accept { window_end: offset(choices) },
        2 | 3 => Body::Data { offset: offset(choices), length: choices.below(1 << 16) as u16, fin: flags & 4 != 0 },
        4 => Body::Ack { offset: offset(choices), window_end: offset(choices), gap_end: offset(choices) },
        5 => Body::Reset(ResetReason::Refused),
        _ => {
            let mut end = offset(choices);
            let mut gaps = Gaps::new(end);
            for _ in 0..choices.below(8) {
                let start = end + choices.below(1 << 12);
                end = start + choices.below(1 << 12);
                gaps.push(start..end);
            }
            Body::Gaps(gaps)
        }
    };
    let header = Header { opened_by_sender: !id.is_local, connection: id.number, body };
    // As it comes from the wire.
    let mut encoded = Vec::new();
    header.write(&mut encoded);
    let length = if let Body::Data { length, .. } = body { length } else { 0 };
    encoded.resize(encoded.len() + usize::from(length), 0);
    let (header, data) = Header::parse(&encoded).expect("its own header");
    relay.receive(now, Message { header, chunk: (!data.is_empty()).then_some(Length(data.len() as u32)) });
}

fn addresses(number: u8) -> Addresses {
    let address = |last| SocketAddr::from((Ipv4Addr::new(192, 0, 2, last), 80));
    Addresses { source: address(number), destination: address(255) }
}
