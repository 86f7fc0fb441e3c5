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

/// A way back of 125 kbit/s carries 100 datagrams per second with an inner acknowledgement each. A download of 8 Mbit/s has 320
/// acknowledgements, one per two packets.
#[test]
fn acknowledgements_of_a_download_over_a_slow_way_back_are_thinned_and_share_datagrams() {
    let line = "rate=8mbit delay=12ms queue=100ms / rate=125kbit delay=12ms queue=200ms";
    let Some(pair) = TunnelPair::up(IPV4, &[line]) else { return };
    assert_eq!(Transfer::start(&pair, LEFT, 4 << 20).finish(), 4 << 20);
    let status = pair.status(RIGHT);
    let (queue, datagrams) = (status.peers[0].ingress_queue, status.peers[0].paths[0].sent);
    let acknowledgements = status.interface.sent.packets;
    assert!(queue.thinned_acks > 0 && queue.bundled_packets > 0, "{queue:?}");
    assert!(datagrams.packets < acknowledgements / 2, "{datagrams:?} for {acknowledgements} acknowledgements");
}
