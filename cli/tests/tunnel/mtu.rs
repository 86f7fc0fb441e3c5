//! Paths that drop large datagrams without an ICMP error.

use crate::traffic::Transfer;
use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use std::net::UdpSocket;
use testing::eventually;

/// Slow enough for any machine: otherwise one path may carry all.
const LINKS: [&str; 2] = ["rate=10mbit delay=5ms", "rate=10mbit delay=10ms"];

#[test]
fn the_mtus_of_1280_and_1500_bytes_are_found_and_both_paths_carry() {
    let Some(pair) = TunnelPair::up(IPV4, &[&format!("{} mtu=1280b", LINKS[0]), LINKS[1]]) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    let pmtus = || [0, 1].map(|link| pair.path(LEFT, link).pmtu_bytes.unwrap_or(0));
    // The search goes in steps: it finds at most one step less than passes.
    let is_correct = |[small, large]: [u32; 2]| (1260..=1280).contains(&small) && (1480..=1500).contains(&large);
    assert!(eventually(|| is_correct(pmtus())), "found {:?}, not 1280 and 1500", pmtus());
    let carries_data = |link| eventually(|| pair.path(LEFT, link).sent.bytes > 1 << 20);
    assert!(carries_data(0) && carries_data(1), "{:#?}", pair.status(LEFT).peers[0]);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_black_hole_that_appears_while_a_transfer_runs_is_survived() {
    let Some(mut pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    let large = || (0..2).all(|link| pair.path(LEFT, link).pmtu_bytes >= Some(1480));
    assert!(eventually(large), "1500 bytes pass");
    pair.testbed.change(0, "both mtu=1280b").unwrap();
    // TCP's packets may be cut into datagrams that pass; these fit one that does not.
    let socket = pair.testbed.within(LEFT, || Ok(UdpSocket::bind((pair.families.inner_address(LEFT), 0))?)).unwrap();
    let is_found = eventually(|| {
        (0..10).for_each(|_| drop(socket.send_to(&[0; 1400], (pair.families.inner_address(RIGHT), 9))));
        let path = pair.path(LEFT, 0);
        path.pmtu_bytes <= Some(1280) && path.state == PathState::Up
    });
    assert!(is_found, "{:#?}", pair.path(LEFT, 0));
    transfer.wait_for(1 << 20);
    let prior_bytes = pair.path(LEFT, 0).sent.bytes;
    assert!(eventually(|| pair.path(LEFT, 0).sent.bytes > prior_bytes + (1 << 20)), "the smaller path carries on");
    assert!(transfer.stop() > 0);
}
