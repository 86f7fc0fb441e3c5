//! What goes in comes out, byte for byte.

use crate::ends::{Ends, Family, Plan, USUAL};
use crate::traffic::Transfer;
use lab::testbed::{LEFT, RIGHT};

/// How much is sent: a gigabyte with `ROPEWALK_TEST_BYTES=1073741824`.
fn amount() -> u64 {
    let wanted = std::env::var("ROPEWALK_TEST_BYTES").ok().map(|text| text.parse().expect("a number of bytes"));
    wanted.unwrap_or(8 << 20)
}

/// A file from one host to the other, in one connection over all links. They are slow enough for any machine: where it is the
/// CPU that limits a tunnel, the first path may carry all.
fn carried(plan: Plan, links: &[&str], from: usize) {
    let Some(ends) = Ends::up(plan, links) else { return };
    assert_eq!(Transfer::start(&ends, from, amount()).finish(), amount());
    let sent: Vec<_> = (0..links.len()).map(|link| ends.path(from, link).sent.bytes).collect();
    assert!(sent.iter().all(|sent| *sent > amount() / 100), "every path carries more than a hundredth: {sent:?}");
}

const TWO: [&str; 2] = ["rate=20mbit delay=5ms", "rate=15mbit delay=10ms"];

#[test]
fn two_paths_carry_a_file_with_ipv4_inside_and_outside() {
    carried(Plan { outer: Family::V4, inner: Family::V4 }, &TWO, LEFT);
}

#[test]
fn two_paths_carry_a_file_with_ipv4_inside_and_ipv6_outside() {
    carried(Plan { outer: Family::V6, inner: Family::V4 }, &TWO, RIGHT);
}

#[test]
fn two_paths_carry_a_file_with_ipv6_inside_and_ipv4_outside() {
    carried(Plan { outer: Family::V4, inner: Family::V6 }, &TWO, RIGHT);
}

#[test]
fn two_paths_carry_a_file_with_ipv6_inside_and_outside() {
    carried(Plan { outer: Family::V6, inner: Family::V6 }, &TWO, LEFT);
}

#[test]
fn four_paths_carry_a_file() {
    let links = [8, 6, 4, 10].map(|rate| format!("rate={rate}mbit delay={rate}ms"));
    carried(USUAL, &links.each_ref().map(String::as_str), LEFT);
}
