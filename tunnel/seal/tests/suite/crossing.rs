//! Both peers initiate at the same time: in whatever order the messages arrive, and whichever are lost, they agree on one session.

use proptest::prelude::*;
use seal::{DropReason, HandshakeMessage};
use units::{Instant, Span};

use crate::world::{End, at, pair};

/// A datagram in flight.
#[derive(Clone)]
enum Datagram {
    Handshake(HandshakeMessage),
    Data(Vec<u8>),
}

/// Delivers `datagram` to `end`; returns the reply.
fn deliver(now: Instant, end: &mut End, datagram: &Datagram) -> Option<Datagram> {
    match datagram {
        Datagram::Handshake(message) => end.receive(now, message).ok()?.reply.map(Datagram::Handshake),
        Datagram::Data(datagram) => end.open(now, datagram).ok().and(None),
    }
}

/// Both initiate at once; then messages arrive in the order that `order` draws, and each end keeps sending.
fn cross(order: &[u8]) -> (End, End) {
    let (mut a, mut b) = pair();
    let now = at(1);
    a.peers.start_initiating(now, a.other);
    b.peers.start_initiating(now, b.other);
    let mut to_b = vec![Datagram::Handshake(a.initiate(now).unwrap())];
    let mut to_a = vec![Datagram::Handshake(b.initiate(now).unwrap())];
    for &draw in order {
        let (end, inbox, outbox) =
            if draw & 1 == 0 { (&mut a, &mut to_a, &mut to_b) } else { (&mut b, &mut to_b, &mut to_a) };
        if !inbox.is_empty() {
            let datagram = inbox.remove(usize::from(draw >> 1) % inbox.len());
            outbox.extend(deliver(now, end, &datagram));
        }
        if end.peers.status(end.other).unwrap().since.is_some() {
            outbox.push(Datagram::Data(end.seal(now, b"data")));
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
        if a.peers.status(a.other).unwrap().since.is_some() {
            to_b.push(Datagram::Data(a.seal(now, b"data")));
        }
        if b.peers.status(b.other).unwrap().since.is_some() {
            to_a.push(Datagram::Data(b.seal(now, b"data")));
        }
    }
    (a, b)
}

/// Both seal a datagram and open the other's.
fn talk(a: &mut End, b: &mut End) {
    let (to_b, to_a) = (a.seal(at(2), b"to b"), b.seal(at(2), b"to a"));
    assert_eq!(b.open(at(2), &to_b).unwrap().1, b"to b");
    assert_eq!(a.open(at(2), &to_a).unwrap().1, b"to a");
}

proptest! {
    #[test]
    fn simultaneous_handshakes_work_in_any_order(order in prop::collection::vec(any::<u8>(), 0..24)) {
        let (mut a, mut b) = cross(&order);
        talk(&mut a, &mut b);
        prop_assert_eq!(a.peers.counters().get(DropReason::AuthenticationFailed) + b.peers.counters().get(DropReason::AuthenticationFailed), 0);
        prop_assert_eq!(a.peers.counters().get(DropReason::NoSession) + b.peers.counters().get(DropReason::NoSession), 0);
    }
}

#[test]
fn of_simultaneous_sessions_the_larger_keys_seals() {
    let (mut a, mut b) = cross(&[1, 0, 0, 1, 0, 1, 0, 1]);
    talk(&mut a, &mut b);
    // The initiator of the session that seals rekeys first: after two minutes exactly one of them does.
    let larger_is_a = a.peers.public() > b.peers.public();
    let (first, second) = if larger_is_a { (&mut a, &mut b) } else { (&mut b, &mut a) };
    for end in [&mut *first, &mut *second] {
        while end.initiate(at(2)).is_some() {}
    }
    let due = at(1) + Span::from_secs(121);
    let back = second.seal(at(2), b"not silent");
    first.open(at(2), &back).unwrap();
    let back = first.seal(at(2), b"not silent");
    second.open(at(2), &back).unwrap();
    assert!(first.initiate(due).is_some(), "the larger key initiated it");
    assert!(second.initiate(due).is_none(), "the other one responded");
}

#[test]
fn a_late_response_to_the_smaller_key_does_not_replace_the_larger_ones_session() {
    let (a, b) = pair();
    let (mut larger, mut smaller) = if a.peers.public() > b.peers.public() { (a, b) } else { (b, a) };
    for end in [&mut larger, &mut smaller] {
        end.peers.start_initiating(at(1), end.other);
    }
    let (of_larger, of_smaller) = (larger.initiate(at(1)).unwrap(), smaller.initiate(at(1)).unwrap());
    let response = smaller.receive(at(1), &of_larger).unwrap().reply.unwrap();
    let late = larger.receive(at(1), &of_smaller).unwrap().reply.unwrap();
    larger.receive(at(1), &response).unwrap();
    let first = larger.seal(at(1), b"first");
    assert!(smaller.open(at(1), &first).unwrap().0.established.is_some());
    let before = smaller.seal(at(1), b"before")[4..7].to_vec();
    assert!(smaller.receive(at(1), &late).unwrap().established.is_none(), "nothing changes");
    assert_eq!(smaller.seal(at(1), b"after")[4..7], before, "the same session seals");
}
