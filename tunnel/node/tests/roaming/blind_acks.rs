//! A hostile peer that acknowledges what it does not receive (RFC 9000, section 21.4, between two paths): it once answered
//! at an address that is another's now, and acknowledges over its other path all that is sent there.

use crate::hostile::{HostilePeer, Received};
use crate::{CLIENT, OTHER};
use units::{Instant, Span};
use wire::frame::{Ack, AckRanges, Frame};

/// Maximum time between two pings of a path that carries data.
const MAX_PING_INTERVAL: Span = Span::from_millis(2500);
/// Pings in a row without an answer after which a path that carries data has failed, and the time between two of them with
/// a round trip of up to 100 ms.
const MAX_UNANSWERED: u64 = 8;
const PING_SPACING: Span = Span::from_millis(200);
/// Data that the server sends a millisecond, bytes: 80 Mbit/s.
const BYTES_PER_MS: u64 = 10_000;

/// Everything up to `largest` has arrived on `path`.
fn ack(path: u8, largest: u64, now: Instant) -> Frame {
    let mut ranges = AckRanges::default();
    ranges.push(0, (largest + 1).min(1 << 20) as u32);
    let receive_timestamp_us = (now.0 / 1000) as u32;
    Frame::Ack(Ack { path, largest: largest as u32, ack_delay_us: 0, receive_timestamp_us, ce_count: 0, ranges })
}

/// The server sends for a millisecond, and the peer acknowledges all that it sent on path 1 over path 0, where it answers
/// pings.
fn step(peer: &mut HostilePeer, id: &mut u64) -> Vec<Received> {
    for _ in 0..BYTES_PER_MS / 1000 {
        peer.network.offer(1, *id, 1000);
        *id += 1;
    }
    let received = peer.run_for(Span::from_millis(1));
    let data = received.iter().filter(|datagram| datagram.path == 1 && datagram.frames.is_none());
    if let Some(largest) = data.map(|datagram| datagram.packet_number).max() {
        peer.send_frames(CLIENT, 0, &[ack(1, largest, peer.network.now())]);
    }
    peer.answer(CLIENT, &received);
    received
}

#[test]
fn a_path_whose_data_is_acknowledged_blindly_is_left_after_eight_unanswered_pings() {
    let mut peer = HostilePeer::connect();
    let mut id = 0;
    peer.send_frames(CLIENT, 0, &[Frame::Ping { token: 1 }]);
    peer.send_frames(OTHER, 1, &[Frame::Ping { token: 1 }]);
    for _ in 0..3000 {
        let received = step(&mut peer, &mut id);
        peer.answer(OTHER, &received);
    }
    assert!(peer.network.host(1).path(1).up);
    // From here on the address is another's, and silent.
    let (silence, attacker_bytes) = (peer.network.now(), peer.sent_bytes);
    let mut last_data = silence;
    let (mut data_bytes, mut other_bytes) = (0, 0);
    while peer.network.now().since(silence) < Span::from_secs(30) {
        for datagram in step(&mut peer, &mut id).iter().filter(|datagram| datagram.destination == OTHER) {
            match datagram.frames {
                None => (data_bytes, last_data) = (data_bytes + datagram.bytes as u64, peer.network.now()),
                Some(_) => other_bytes += datagram.bytes as u64,
            }
        }
    }
    let attacker_bytes = (peer.sent_bytes - attacker_bytes) as u64;
    let bound = MAX_PING_INTERVAL + PING_SPACING * MAX_UNANSWERED;
    assert!(last_data.since(silence) <= bound, "{} of {bound}", last_data.since(silence));
    // 34 bytes of header and tag for each fragment of 1000 bytes.
    assert!(data_bytes <= bound.as_millis() * BYTES_PER_MS * 1034 / 1000, "{data_bytes} bytes");
    assert!(other_bytes < data_bytes / 100, "pings: {other_bytes} bytes, and {attacker_bytes} by the attacker");
}
