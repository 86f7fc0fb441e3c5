//! A path that fails while a transfer runs, and comes back.

use crate::ends::{Ends, USUAL, within};
use crate::traffic::Transfer;
use lab::testbed::{LEFT, RIGHT};
use std::thread::sleep;
use std::time::Duration;

#[test]
fn a_path_that_falls_silent_costs_less_than_a_second_and_one_that_is_back_is_used_within_two() {
    let Some(mut ends) = Ends::up(USUAL, &["rate=100mbit delay=10ms", "rate=50mbit delay=30ms"]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(8 << 20);
    transfer.longest_gap();
    ends.testbed.change(0, "both down").unwrap();
    sleep(Duration::from_secs(2));
    transfer.wait_for(1 << 20);
    let gap = transfer.longest_gap();
    let before = ends.path(RIGHT, 0).received.bytes;
    ends.testbed.change(0, "both up").unwrap();
    // More than probes are.
    let used = || ends.path(RIGHT, 0).received.bytes > before + (256 << 10);
    let back = within(Duration::from_secs(10), used);
    let after = transfer.longest_gap();
    println!("longest silence {gap:?}, the path is used again after {back:?}, then longest silence {after:?}");
    assert!(gap < Duration::from_secs(1), "{gap:?} without a byte");
    assert!(back.is_some_and(|back| back < Duration::from_secs(2)), "used again after {back:?}");
    assert!(after < Duration::from_secs(1), "{after:?} without a byte as the path came back");
    assert!(transfer.stop() > 0);
}
