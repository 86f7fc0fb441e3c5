//! Files are transferred byte for byte.

use crate::traffic::Transfer;
use crate::tunnel_pair::{AddressFamilies, Family, IPV4, TunnelPair};
use lab::testbed::{LEFT, RIGHT};

/// Bytes of a transfer; `ROPEWALK_TEST_BYTES` sets another number.
fn transfer_bytes() -> u64 {
    let bytes = std::env::var("ROPEWALK_TEST_BYTES").ok().map(|text| text.parse().expect("a number of bytes"));
    bytes.unwrap_or(8 << 20)
}

/// Transfers a file in one connection, and asserts that every path carries a part. The links are slow enough for any
/// machine: where the CPU limits a tunnel, the first path may carry all.
fn assert_all_paths_carry(families: AddressFamilies, links: &[&str], from: usize) {
    let Some(pair) = TunnelPair::up(families, links) else { return };
    assert_eq!(Transfer::start(&pair, from, transfer_bytes()).finish(), transfer_bytes());
    let sent: Vec<_> = (0..links.len()).map(|link| pair.path(from, link).sent.bytes).collect();
    assert!(
        sent.iter().all(|sent| *sent > transfer_bytes() / 100),
        "every path carries more than a hundredth: {sent:?}"
    );
}

const TWO_LINKS: [&str; 2] = ["rate=20mbit delay=5ms", "rate=15mbit delay=10ms"];

#[test]
fn two_paths_carry_a_file_with_any_inner_and_outer_address_family() {
    for (outer, inner, from) in [
        (Family::V4, Family::V4, LEFT),
        (Family::V6, Family::V4, RIGHT),
        (Family::V4, Family::V6, RIGHT),
        (Family::V6, Family::V6, LEFT),
    ] {
        assert_all_paths_carry(AddressFamilies { outer, inner }, &TWO_LINKS, from);
    }
}

#[test]
fn four_paths_carry_a_file() {
    let links = [8, 6, 4, 10].map(|rate| format!("rate={rate}mbit delay={rate}ms"));
    assert_all_paths_carry(IPV4, &links.each_ref().map(String::as_str), LEFT);
}
