//! Rekeying while data is in flight: nothing is lost, however deep the reordering.

use seal::DropReason;
use units::{RngStream, Span};

use crate::test_peer::{at, establish, pair};

#[test]
fn nothing_is_lost_when_sessions_are_rekeyed_under_reordering() {
    let (mut a, mut b) = pair();
    establish(at(1), &mut a, &mut b);
    let mut order = RngStream::named(5, "order");
    let (mut in_flight, mut opened, mut sent) = (Vec::new(), 0, 0);
    for step in 0..2000u64 {
        let now = at(2) + Span::from_millis(10 * step);
        in_flight.push(a.seal(now, &step.to_be_bytes()));
        sent += 1;
        if step % 500 == 250 {
            a.peers.rekey(now, a.other);
            let initiation = a.initiate(now).unwrap();
            let response = b.receive(now, &initiation).unwrap().reply.unwrap();
            a.receive(now, &response).unwrap();
        }
        while in_flight.len() > 100 {
            let datagram = in_flight.swap_remove(order.below(in_flight.len() as u64) as usize);
            b.open(now, &datagram).unwrap();
            opened += 1;
        }
        if step % 50 == 0 {
            let reply = b.seal(now, b"back");
            a.open(now, &reply).unwrap();
        }
    }
    for datagram in in_flight {
        b.open(at(23), &datagram).unwrap();
        opened += 1;
    }
    assert_eq!(opened, sent);
    assert_eq!(b.peers.counters().iter().map(|(_, count)| count).sum::<u64>(), 0);
}

#[test]
fn the_session_before_the_previous_is_removed() {
    let (mut a, mut b) = pair();
    establish(at(1), &mut a, &mut b);
    let late = a.seal(at(1), b"late");
    for second in 2..5 {
        a.peers.rekey(at(second), a.other);
        establish(at(second), &mut a, &mut b);
        let _ = a.initiate(at(second));
    }
    assert_eq!(b.open(at(5), &late).unwrap_err(), DropReason::NoSession);
}

#[test]
fn a_response_after_seconds_of_delay_is_accepted() {
    let (mut a, mut b) = pair();
    a.peers.start_initiating(at(1), a.other);
    let first = a.initiate(at(1)).unwrap();
    let mut initiations = 1;
    for step in 0..60 {
        initiations += usize::from(a.initiate(at(1) + Span::from_millis(step * 100)).is_some());
    }
    assert!(initiations >= 3, "it was retried meanwhile");
    let response = b.receive(at(4), &first).unwrap().reply.unwrap();
    assert!(a.receive(at(7), &response).unwrap().established.is_some());
}

#[test]
fn an_initiation_by_four_routes_establishes_one_session() {
    let (mut a, mut b) = pair();
    a.peers.start_initiating(at(1), a.other);
    let peer = a.peers.initiation_due(at(1), 1).unwrap();
    let by_route: Vec<_> = (0..4).map(|route| a.peers.initiation(at(1), peer, route).unwrap()).collect();
    let responses: Vec<_> = by_route.iter().map(|initiation| b.receive(at(1), initiation)).collect();
    assert_eq!(responses.iter().filter(|response| response.is_ok()).count(), 1);
    assert_eq!(b.peers.counters().get(DropReason::ReplayedInitiation), 3);
    let response = responses.into_iter().flatten().next().unwrap().reply.unwrap();
    a.receive(at(1), &response).unwrap();
    let datagram = a.seal(at(1), b"once");
    assert!(b.open(at(1), &datagram).unwrap().0.established.is_some());
}

#[test]
fn an_old_sessions_datagram_under_a_reused_index_is_not_authentic() {
    // Indices are drawn from 2^24: with enough sessions one is reused, and only the keys differ.
    let (mut a, mut b) = pair();
    establish(at(1), &mut a, &mut b);
    let old = a.seal(at(1), b"old");
    a.peers.rekey(at(2), a.other);
    establish(at(2), &mut a, &mut b);
    let new = a.seal(at(2), b"new");
    let mut moved = old.clone();
    moved[4..7].copy_from_slice(&new[4..7]);
    moved[8..12].copy_from_slice(&new[8..12]);
    assert_eq!(b.open(at(2), &moved).unwrap_err(), DropReason::AuthenticationFailed);
    assert!(b.open(at(2), &new).is_ok());
}
