//! Both peers initiate at the same time: they agree on one session in whatever order the messages arrive.

use proptest::prelude::*;
use seal::{DropReason, HandshakeMessage};
use units::{Instant, Span};

use crate::test_peer::{TestPeer, pair, secs};

/// A datagram in flight.
#[derive(Clone)]
enum Datagram {
    Handshake(HandshakeMessage),
    Data(Vec<u8>),
}

/// Delivers `datagram` to `peer`; returns the reply.
fn deliver(now: Instant, peer: &mut TestPeer, datagram: &Datagram) -> Option<Datagram> {
    match datagram {
        Datagram::Handshake(message) => peer.receive(now, message).ok()?.reply.map(Datagram::Handshake),
        Datagram::Data(datagram) => peer.open(now, datagram).ok().and(None),
    }
}

/// Both initiate at once; then messages arrive in the order that `order` draws, and each end keeps sending.
fn initiate_both(order: &[u8]) -> (TestPeer, TestPeer) {
    let (mut a, mut b) = pair();
    let now = secs(1);
    a.device.start_initiating(now, a.peer_id);
    b.device.start_initiating(now, b.peer_id);
    let mut to_b = vec![Datagram::Handshake(a.initiate(now).unwrap())];
    let mut to_a = vec![Datagram::Handshake(b.initiate(now).unwrap())];
    for &step in order {
        let (peer, inbox, outbox) =
            if step & 1 == 0 { (&mut a, &mut to_a, &mut to_b) } else { (&mut b, &mut to_b, &mut to_a) };
        if !inbox.is_empty() {
            let datagram = inbox.remove(usize::from(step >> 1) % inbox.len());
            outbox.extend(deliver(now, peer, &datagram));
        }
        if peer.device.status(peer.peer_id).unwrap().latest_handshake.is_some() {
            outbox.push(Datagram::Data(peer.seal(now, b"data")));
        }
    }
    // Everything that is in flight arrives, and each end sends once more.
    for _ in 0..3 {
        for datagram in std::mem::take(&mut to_b) {
            to_a.extend(deliver(now, &mut b, &datagram));
        }
        for datagram in std::mem::take(&mut to_a) {
            to_b.extend(deliver(now, &mut a, &datagram));
        }
        if a.device.status(a.peer_id).unwrap().latest_handshake.is_some() {
            to_b.push(Datagram::Data(a.seal(now, b"data")));
        }
        if b.device.status(b.peer_id).unwrap().latest_handshake.is_some() {
            to_a.push(Datagram::Data(b.seal(now, b"data")));
        }
    }
    (a, b)
}

/// Both seal a datagram and open the other's.
fn assert_both_open(a: &mut TestPeer, b: &mut TestPeer) {
    let (to_b, to_a) = (a.seal(secs(2), b"to b"), b.seal(secs(2), b"to a"));
    assert_eq!(b.open(secs(2), &to_b).unwrap().1, b"to b");
    assert_eq!(a.open(secs(2), &to_a).unwrap().1, b"to a");
}

proptest! {
    #[test]
    fn simultaneous_handshakes_work_in_any_order(order in prop::collection::vec(any::<u8>(), 0..24)) {
        let (mut a, mut b) = initiate_both(&order);
        assert_both_open(&mut a, &mut b);
        prop_assert_eq!(a.device.counters().get(DropReason::AuthenticationFailed) + b.device.counters().get(DropReason::AuthenticationFailed), 0);
        prop_assert_eq!(a.device.counters().get(DropReason::NoSession) + b.device.counters().get(DropReason::NoSession), 0);
    }
}

#[test]
fn the_session_that_the_larger_key_initiated_seals() {
    let (mut a, mut b) = initiate_both(&[1, 0, 0, 1, 0, 1, 0, 1]);
    assert_both_open(&mut a, &mut b);
    // The initiator of the session that seals rekeys first: after two minutes exactly one of them does.
    let is_a_larger = a.device.public_key() > b.device.public_key();
    let (first, second) = if is_a_larger { (&mut a, &mut b) } else { (&mut b, &mut a) };
    for peer in [&mut *first, &mut *second] {
        while peer.initiate(secs(2)).is_some() {}
    }
    let rekey_time = secs(1) + Span::from_secs(121);
    let reply = second.seal(secs(2), b"not silent");
    first.open(secs(2), &reply).unwrap();
    let reply = first.seal(secs(2), b"not silent");
    second.open(secs(2), &reply).unwrap();
    assert!(first.initiate(rekey_time).is_some(), "the larger key initiated it");
    assert!(second.initiate(rekey_time).is_none(), "the other one responded");
}

#[test]
fn a_late_response_to_the_smaller_key_does_not_replace_the_larger_ones_session() {
    let (a, b) = pair();
    let (mut larger, mut smaller) = if a.device.public_key() > b.device.public_key() { (a, b) } else { (b, a) };
    for peer in [&mut larger, &mut smaller] {
        peer.device.start_initiating(secs(1), peer.peer_id);
    }
    let (larger_initiation, smaller_initiation) =
        (larger.initiate(secs(1)).unwrap(), smaller.initiate(secs(1)).unwrap());
    let response = smaller.receive(secs(1), &larger_initiation).unwrap().reply.unwrap();
    let late_response = larger.receive(secs(1), &smaller_initiation).unwrap().reply.unwrap();
    larger.receive(secs(1), &response).unwrap();
    let first = larger.seal(secs(1), b"first");
    assert!(smaller.open(secs(1), &first).unwrap().0.established.is_some());
    let session_index = smaller.seal(secs(1), b"before")[4..7].to_vec();
    assert!(smaller.receive(secs(1), &late_response).unwrap().established.is_none(), "nothing changes");
    assert_eq!(smaller.seal(secs(1), b"after")[4..7], session_index, "the same session seals");
}
