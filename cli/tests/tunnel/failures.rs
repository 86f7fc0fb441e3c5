//! A path that fails while a transfer runs, and comes back. How soon is measured in virtual time (`tunnel/machine`) and by
//! `cargo xtask bench tunnel`.

use crate::ends::{Ends, USUAL};
use crate::traffic::Transfer;
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

#[test]
fn a_path_that_falls_silent_is_found_and_replaced_by_the_other_and_used_again_when_it_is_back() {
    let Some(mut ends) = Ends::up(USUAL, &["rate=20mbit delay=10ms", "rate=10mbit delay=30ms"]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(1 << 20);
    ends.testbed.change(0, "both down").unwrap();
    assert!(eventually(|| ends.path(LEFT, 0).state == PathState::Down), "{:#?}", ends.path(LEFT, 0));
    let other = ends.path(RIGHT, 1).received.bytes;
    assert!(eventually(|| ends.path(RIGHT, 1).received.bytes > other + (1 << 20)), "the other path carries all");
    transfer.wait_for(1 << 20);
    let before = ends.path(RIGHT, 0).received.bytes;
    ends.testbed.change(0, "both up").unwrap();
    // More than probes are.
    let used = || ends.path(RIGHT, 0).received.bytes > before + (256 << 10);
    assert!(eventually(used), "{:#?}", ends.path(RIGHT, 0));
    assert!(transfer.stop() > 0);
}
