//! Rekeying while data is in flight: nothing is lost, however deep the reordering.

use seal::DropReason;
use units::{RngStream, Span};

use crate::test_peer::{establish, pair, secs};

#[test]
fn nothing_is_lost_when_sessions_are_rekeyed_under_reordering() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let mut order = RngStream::named(5, "order");
    let (mut in_flight, mut opened_count, mut sent_count) = (Vec::new(), 0, 0);
    for step in 0..2000u64 {
        let now = secs(2) + Span::from_millis(10 * step);
        in_flight.push(a.seal(now, &step.to_be_bytes()));
        sent_count += 1;
        if step % 500 == 250 {
            a.device.rekey(now, a.peer_id);
            let initiation = a.initiate(now).unwrap();
            let response = b.receive(now, &initiation).unwrap().reply.unwrap();
            a.receive(now, &response).unwrap();
        }
        while in_flight.len() > 100 {
            let datagram = in_flight.swap_remove(order.below(in_flight.len() as u64) as usize);
            b.open(now, &datagram).unwrap();
            opened_count += 1;
        }
        if step % 50 == 0 {
            let reply = b.seal(now, b"back");
            a.open(now, &reply).unwrap();
        }
    }
    for datagram in in_flight {
        b.open(secs(23), &datagram).unwrap();
        opened_count += 1;
    }
    assert_eq!(opened_count, sent_count);
    assert_eq!(b.device.counters().iter().map(|(_, count)| count).sum::<u64>(), 0);
}

#[test]
fn the_session_before_the_previous_is_removed() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let late = a.seal(secs(1), b"late");
    for second in 2..5 {
        a.device.rekey(secs(second), a.peer_id);
        establish(secs(second), &mut a, &mut b);
        let _ = a.initiate(secs(second));
    }
    assert_eq!(b.open(secs(5), &late).unwrap_err(), DropReason::NoSession);
}

#[test]
fn a_response_after_seconds_of_delay_is_accepted() {
    let (mut a, mut b) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let first = a.initiate(secs(1)).unwrap();
    let mut initiations = 1;
    for step in 0..60 {
        initiations += usize::from(a.initiate(secs(1) + Span::from_millis(step * 100)).is_some());
    }
    assert!(initiations >= 3, "it was retried meanwhile");
    let response = b.receive(secs(4), &first).unwrap().reply.unwrap();
    assert!(a.receive(secs(7), &response).unwrap().established.is_some());
}

#[test]
fn an_initiation_by_four_routes_establishes_one_session() {
    let (mut a, mut b) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let peer = a.device.initiation_due(secs(1), 1).unwrap();
    let initiations: Vec<_> = (0..4).map(|route| a.device.initiation(secs(1), peer, route).unwrap()).collect();
    let responses: Vec<_> = initiations.iter().map(|initiation| b.receive(secs(1), initiation)).collect();
    assert_eq!(responses.iter().filter(|response| response.is_ok()).count(), 1);
    assert_eq!(b.device.counters().get(DropReason::ReplayedInitiation), 3);
    let response = responses.into_iter().flatten().next().unwrap().reply.unwrap();
    a.receive(secs(1), &response).unwrap();
    let datagram = a.seal(secs(1), b"once");
    assert!(b.open(secs(1), &datagram).unwrap().0.established.is_some());
}

#[test]
fn an_old_sessions_datagram_under_a_reused_index_is_not_authentic() {
    // Indices are drawn from 2^24: with enough sessions one is reused, and only the keys differ.
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let old_datagram = a.seal(secs(1), b"old");
    a.device.rekey(secs(2), a.peer_id);
    establish(secs(2), &mut a, &mut b);
    let new_datagram = a.seal(secs(2), b"new");
    let mut forged = old_datagram.clone();
    forged[4..7].copy_from_slice(&new_datagram[4..7]);
    forged[8..12].copy_from_slice(&new_datagram[8..12]);
    assert_eq!(b.open(secs(2), &forged).unwrap_err(), DropReason::AuthenticationFailed);
    assert!(b.open(secs(2), &new_datagram).is_ok());
}
