//! Paths that swallow large datagrams without a word.

use crate::ends::{Ends, USUAL};
use crate::traffic::Transfer;
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use std::net::UdpSocket;
use testing::eventually;

/// Slow enough for any machine: else one path may carry all.
const LINKS: [&str; 2] = ["rate=10mbit delay=5ms", "rate=10mbit delay=10ms"];

#[test]
fn a_path_of_1280_bytes_beside_one_of_1500_is_found_out_and_both_carry() {
    let Some(ends) = Ends::up(USUAL, &[&format!("{} mtu=1280b", LINKS[0]), LINKS[1]]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    let found = || [0, 1].map(|link| ends.path(LEFT, link).pmtu_bytes);
    // The search goes in steps: what is found is at most one step below what passes.
    let right = |[small, large]: [u32; 2]| (1260..=1280).contains(&small) && (1480..=1500).contains(&large);
    assert!(eventually(|| right(found())), "found {:?}, not 1280 and 1500", found());
    let carries = |link| eventually(|| ends.path(LEFT, link).sent.bytes > 1 << 20);
    assert!(carries(0) && carries(1), "{:#?}", ends.status(LEFT).peers[0]);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_black_hole_that_appears_while_a_transfer_runs_is_survived() {
    let Some(mut ends) = Ends::up(USUAL, &LINKS) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(1 << 20);
    let large = || (0..2).all(|link| ends.path(LEFT, link).pmtu_bytes >= 1480);
    assert!(eventually(large), "1500 bytes pass");
    ends.testbed.change(0, "both mtu=1280b").unwrap();
    // TCP's packets may be cut into datagrams that pass; these fit one that does not.
    let large = ends.testbed.within(LEFT, || Ok(UdpSocket::bind((ends.plan.inside(LEFT), 0))?)).unwrap();
    let noticed = eventually(|| {
        (0..10).for_each(|_| drop(large.send_to(&[0; 1400], (ends.plan.inside(RIGHT), 9))));
        let path = ends.path(LEFT, 0);
        path.pmtu_bytes <= 1280 && path.state == PathState::Up
    });
    assert!(noticed, "{:#?}", ends.path(LEFT, 0));
    transfer.wait_for(1 << 20);
    let before = ends.path(LEFT, 0).sent.bytes;
    assert!(eventually(|| ends.path(LEFT, 0).sent.bytes > before + (1 << 20)), "the smaller path carries on");
    assert!(transfer.stop() > 0);
}
