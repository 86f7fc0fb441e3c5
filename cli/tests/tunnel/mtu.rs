//! Paths that swallow large datagrams without a word.

use crate::ends::{Ends, USUAL, within};
use crate::traffic::Transfer;
use daemon::status::PathState;
use lab::testbed::LEFT;
use std::time::Duration;

/// How long finding a path's MTU may take while data flows.
const SEARCH: Duration = Duration::from_secs(10);

#[test]
fn a_path_of_1280_bytes_beside_one_of_1500_is_found_out_and_both_carry() {
    let Some(ends) = Ends::up(USUAL, &["rate=60mbit delay=5ms mtu=1280b", "rate=60mbit delay=10ms"]) else { return };
    let transfer = Transfer::start(&ends, LEFT, 32 << 20);
    assert_eq!(transfer.finish(), 32 << 20);
    let found = || [0, 1].map(|link| ends.path(LEFT, link).pmtu_bytes);
    // The search goes in steps: what is found is at most one step below what passes.
    let right = |[small, large]: [u32; 2]| (1260..=1280).contains(&small) && (1480..=1500).contains(&large);
    assert!(within(SEARCH, || right(found())).is_some(), "found {:?}, not 1280 and 1500", found());
    for link in 0..2 {
        let path = ends.path(LEFT, link);
        assert!(path.sent.bytes > 4 << 20, "both paths carry: {path:#?}");
    }
}

#[test]
fn a_black_hole_that_appears_while_a_transfer_runs_is_survived() {
    let Some(mut ends) = Ends::up(USUAL, &["rate=60mbit delay=5ms", "rate=60mbit delay=10ms"]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(4 << 20);
    let large = || (0..2).all(|link| ends.path(LEFT, link).pmtu_bytes >= 1480);
    assert!(within(SEARCH, large).is_some(), "1500 bytes pass");
    transfer.longest_gap();
    ends.testbed.change(0, "both mtu=1280b").unwrap();
    let noticed = within(SEARCH, || {
        let path = ends.path(LEFT, 0);
        path.pmtu_bytes <= 1280 && path.state == PathState::Up
    });
    transfer.wait_for(8 << 20);
    let gap = transfer.longest_gap();
    println!("noticed after {noticed:?}, longest silence {gap:?}");
    assert!(noticed.is_some(), "{:#?}", ends.path(LEFT, 0));
    let before = ends.path(LEFT, 0).sent.bytes;
    transfer.wait_for(8 << 20);
    assert!(ends.path(LEFT, 0).sent.bytes > before + (1 << 20), "the smaller path carries on");
    assert!(gap < Duration::from_secs(2), "{gap:?} without a byte");
    assert!(transfer.stop() > 0);
}
