//! Both ends ask at the same time: whatever order the messages arrive in, and whichever are lost, they find one session.

use proptest::prelude::*;
use seal::{Message, Refusal};
use units::{Instant, Span};

use crate::world::{End, at, pair};

/// One thing on its way.
#[derive(Clone)]
enum Way {
    Handshake(Message),
    Data(Vec<u8>),
}

/// Hands `way` to `end`; an answer comes back.
fn deliver(now: Instant, end: &mut End, way: &Way) -> Option<Way> {
    match way {
        Way::Handshake(message) => end.receive(now, message).ok()?.reply.map(Way::Handshake),
        Way::Data(datagram) => end.open(now, datagram).ok().and(None),
    }
}

/// Both ask at once; then messages arrive in the order that `order` draws, and each end keeps sending. Returns the ends.
fn cross(order: &[u8]) -> (End, End) {
    let (mut a, mut b) = pair();
    let now = at(1);
    a.peers.want(now, a.other);
    b.peers.want(now, b.other);
    let mut to_b = vec![Way::Handshake(a.ask(now).unwrap())];
    let mut to_a = vec![Way::Handshake(b.ask(now).unwrap())];
    for &draw in order {
        let (end, inbox, outbox) =
            if draw & 1 == 0 { (&mut a, &mut to_a, &mut to_b) } else { (&mut b, &mut to_b, &mut to_a) };
        if !inbox.is_empty() {
            let way = inbox.remove(usize::from(draw >> 1) % inbox.len());
            outbox.extend(deliver(now, end, &way));
        }
        if end.peers.status(end.other).unwrap().since.is_some() {
            outbox.push(Way::Data(end.seal(now, b"data")));
        }
    }
    // Everything that is still on its way arrives, and each end sends once more.
    for _ in 0..3 {
        for way in std::mem::take(&mut to_b) {
            to_a.extend(deliver(now, &mut b, &way));
        }
        for way in std::mem::take(&mut to_a) {
            to_b.extend(deliver(now, &mut a, &way));
        }
        if a.peers.status(a.other).unwrap().since.is_some() {
            to_b.push(Way::Data(a.seal(now, b"data")));
        }
        if b.peers.status(b.other).unwrap().since.is_some() {
            to_a.push(Way::Data(b.seal(now, b"data")));
        }
    }
    (a, b)
}

/// Both send and both understand.
fn talk(a: &mut End, b: &mut End) {
    let (to_b, to_a) = (a.seal(at(2), b"to b"), b.seal(at(2), b"to a"));
    assert_eq!(b.open(at(2), &to_b).unwrap().1, b"to b");
    assert_eq!(a.open(at(2), &to_a).unwrap().1, b"to a");
}

proptest! {
    #[test]
    fn two_that_ask_at_once_understand_each_other_in_any_order(order in prop::collection::vec(any::<u8>(), 0..24)) {
        let (mut a, mut b) = cross(&order);
        talk(&mut a, &mut b);
        prop_assert_eq!(a.peers.counters().get(Refusal::Forged) + b.peers.counters().get(Refusal::Forged), 0);
        prop_assert_eq!(a.peers.counters().get(Refusal::NoSession) + b.peers.counters().get(Refusal::NoSession), 0);
    }
}

#[test]
fn of_two_sessions_made_at_once_both_ends_settle_on_the_larger_keys() {
    let (mut a, mut b) = cross(&[1, 0, 0, 1, 0, 1, 0, 1]);
    talk(&mut a, &mut b);
    // Whoever asked for the session that seals asks again first: after two minutes exactly one of them does.
    let larger_is_a = a.peers.public() > b.peers.public();
    let (first, second) = if larger_is_a { (&mut a, &mut b) } else { (&mut b, &mut a) };
    for end in [&mut *first, &mut *second] {
        while end.ask(at(2)).is_some() {}
    }
    let due = at(1) + Span::from_secs(121);
    let back = second.seal(at(2), b"not silent");
    first.open(at(2), &back).unwrap();
    let back = first.seal(at(2), b"not silent");
    second.open(at(2), &back).unwrap();
    assert!(first.ask(due).is_some(), "the larger key asked for it");
    assert!(second.ask(due).is_none(), "the other one answered it");
}

#[test]
fn a_late_answer_does_not_take_the_smaller_key_away_from_the_larger_ones_session() {
    let (a, b) = pair();
    let (mut larger, mut smaller) = if a.peers.public() > b.peers.public() { (a, b) } else { (b, a) };
    for end in [&mut larger, &mut smaller] {
        end.peers.want(at(1), end.other);
    }
    let (of_larger, of_smaller) = (larger.ask(at(1)).unwrap(), smaller.ask(at(1)).unwrap());
    let answer = smaller.receive(at(1), &of_larger).unwrap().reply.unwrap();
    let late = larger.receive(at(1), &of_smaller).unwrap().reply.unwrap();
    larger.receive(at(1), &answer).unwrap();
    let first = larger.seal(at(1), b"first");
    assert!(smaller.open(at(1), &first).unwrap().0.established.is_some());
    let before = smaller.seal(at(1), b"before")[4..7].to_vec();
    assert!(smaller.receive(at(1), &late).unwrap().established.is_none(), "nothing changes");
    assert_eq!(smaller.seal(at(1), b"after")[4..7], before, "the same session seals");
}
