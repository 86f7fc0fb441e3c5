//! A new session takes over while data are on their way: nothing is lost, however deep the reordering.

use seal::Refusal;
use units::{Span, Stream};

use crate::world::{at, meet, pair};

#[test]
fn nothing_is_lost_when_sessions_change_under_reordering() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let mut order = Stream::named(5, "order");
    let (mut on_the_way, mut opened, mut sent) = (Vec::new(), 0, 0);
    for step in 0..2000u64 {
        let now = at(2) + Span::from_millis(10 * step);
        on_the_way.push(a.seal(now, &step.to_be_bytes()));
        sent += 1;
        if step % 500 == 250 {
            a.peers.renew(now, a.other);
            let question = a.ask(now).unwrap();
            let answer = b.receive(now, &question).unwrap().reply.unwrap();
            a.receive(now, &answer).unwrap();
        }
        while on_the_way.len() > 100 {
            let datagram = on_the_way.swap_remove(order.below(on_the_way.len() as u64) as usize);
            b.open(now, &datagram).unwrap();
            opened += 1;
        }
        if step % 50 == 0 {
            let back = b.seal(now, b"back");
            a.open(now, &back).unwrap();
        }
    }
    for datagram in on_the_way {
        b.open(at(23), &datagram).unwrap();
        opened += 1;
    }
    assert_eq!(opened, sent);
    assert_eq!(b.peers.counters().iter().map(|(_, count)| count).sum::<u64>(), 0);
}

#[test]
fn the_session_before_the_last_is_gone() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let late = a.seal(at(1), b"late");
    for second in 2..5 {
        a.peers.renew(at(second), a.other);
        meet(at(second), &mut a, &mut b);
        let _ = a.ask(at(second));
    }
    assert_eq!(b.open(at(5), &late).unwrap_err(), Refusal::NoSession);
}

#[test]
fn an_answer_after_seconds_of_delay_is_still_understood() {
    let (mut a, mut b) = pair();
    a.peers.want(at(1), a.other);
    let first = a.ask(at(1)).unwrap();
    let mut questions = 1;
    for tenth in 0..60 {
        questions += usize::from(a.ask(at(1) + Span::from_millis(tenth * 100)).is_some());
    }
    assert!(questions >= 3, "it asked again meanwhile");
    let answer = b.receive(at(4), &first).unwrap().reply.unwrap();
    assert!(a.receive(at(7), &answer).unwrap().established.is_some());
}

#[test]
fn the_same_question_by_four_routes_makes_one_session() {
    let (mut a, mut b) = pair();
    a.peers.want(at(1), a.other);
    let peer = a.peers.question_due(at(1), 1).unwrap();
    let by_route: Vec<_> = (0..4).map(|route| a.peers.question(at(1), peer, route).unwrap()).collect();
    let answers: Vec<_> = by_route.iter().map(|question| b.receive(at(1), question)).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(b.peers.counters().get(Refusal::ReplayedInitiation), 3);
    let answer = answers.into_iter().flatten().next().unwrap().reply.unwrap();
    a.receive(at(1), &answer).unwrap();
    let datagram = a.seal(at(1), b"once");
    assert!(b.open(at(1), &datagram).unwrap().0.established.is_some());
}

#[test]
fn an_old_sessions_datagram_under_a_reused_index_is_refused() {
    // Indices are drawn from 2^24: with enough sessions one comes again, and then the keys tell them apart.
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let old = a.seal(at(1), b"old");
    a.peers.renew(at(2), a.other);
    meet(at(2), &mut a, &mut b);
    let new = a.seal(at(2), b"new");
    let mut moved = old.clone();
    moved[4..7].copy_from_slice(&new[4..7]);
    moved[8..12].copy_from_slice(&new[8..12]);
    assert_eq!(b.open(at(2), &moved).unwrap_err(), Refusal::Forged);
    assert!(b.open(at(2), &new).is_ok());
}
