//! A hostile peer with a session: nothing that it sends changes the service of the honest one.

use crate::hostile_client::{HostileClient, INNER};
use crate::tunnel_pair::{IPV4, TunnelPair};
use lab::testbed::{LEFT, RIGHT};
use std::net::{IpAddr, UdpSocket};
use testing::eventually;
use testnet::Attack;
use units::RngStream;

const LINKS: [&str; 2] = ["rate=50mbit delay=2ms", "rate=20mbit delay=5ms"];
/// Packets in another peer's name: fewer than any queue on the way holds.
const FOREIGN_PACKETS: u64 = 50;

/// Both daemons up, and a hostile peer with a session and a path.
fn pair_with_hostile_peer() -> Option<(TunnelPair, HostileClient)> {
    let mut pair = TunnelPair::configured(IPV4, &LINKS)?;
    let mut attacker = HostileClient::configure(&pair);
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    pair.wait_until_up(LEFT);
    attacker.connect();
    attacker.open_path();
    Some((pair, attacker))
}

#[test]
fn no_peer_speaks_with_another_peers_address() {
    let Some((pair, mut attacker)) = pair_with_hostile_peer() else { return };
    let address = (IpAddr::from(INNER.target), INNER.port);
    let listener = pair.testbed.within(RIGHT, || Ok(UdpSocket::bind(address)?)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut rng = RngStream::named(16, "attack");
    let mut sources = Vec::new();
    let mut buffer = [0; 2048];
    for k in 0..FOREIGN_PACKETS {
        let (path, body) = Attack::ForeignSource.datagram(k, &INNER, &mut rng);
        attacker.send(path, &body);
    }
    let dropped = || ["incomplete", "unallowed-source"].map(|reason| pair.drops(RIGHT, reason)).iter().sum::<u64>();
    let are_handled = || {
        sources.extend(std::iter::from_fn(|| listener.recv_from(&mut buffer).ok().map(|(_, source)| source.ip())));
        dropped() + sources.len() as u64 >= FOREIGN_PACKETS
    };
    assert!(eventually(are_handled), "{sources:?} {:?}", pair.status(RIGHT).drops);
    assert!(!sources.contains(&INNER.foreign.into()), "a packet in the honest peer's name was delivered: {sources:?}");
}
