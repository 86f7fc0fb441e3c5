//! A hostile peer with a session: nothing that it sends changes the service of the honest one.

use crate::hostile_client::{HostileClient, INNER};
use crate::traffic::{EchoClient, Transfer};
use crate::tunnel_pair::{IPV4, TunnelPair, memory};
use lab::testbed::{LEFT, RIGHT};
use std::net::{IpAddr, UdpSocket};
use testing::eventually;
use testnet::Attack;
use units::RngStream;

const LINKS: [&str; 2] = ["rate=50mbit delay=2ms", "rate=20mbit delay=5ms"];
/// Datagrams of each attack: more than every stream has room for.
const DATAGRAMS: u64 = 4000;
/// Datagrams that are sent without a pause: fewer than any queue on the way holds.
const BURST: u64 = 50;
/// Packets in another peer's name: fewer than any queue on the way holds.
const FOREIGN_PACKETS: u64 = 50;
/// What a peer may make the daemon hold, bytes: 64 MiB of fragments that wait for order and 8 MiB of incomplete packets;
/// half of that again for the allocator.
const MEMORY: u64 = ((64 + 8) << 20) * 3 / 2;

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

/// Sends an attack, with the service of the honest peer checked in between.
fn attack(attack: Attack, attacker: &mut HostileClient, echo: &mut EchoClient) {
    let mut rng = RngStream::named(16, "attack");
    attacker.open_path();
    for k in 0..DATAGRAMS {
        let (path, body) = attack.datagram(k, &INNER, &mut rng);
        attacker.send(path, &body);
        if k % BURST == BURST - 1 {
            assert!(echo.gets_answer(), "{attack:?}: the honest peer gets no answer after {k} datagrams");
        }
    }
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

#[test]
fn no_attack_stops_the_honest_peer_or_takes_more_memory_than_a_peer_may() {
    let Some((pair, mut attacker)) = pair_with_hostile_peer() else { return };
    let mut echo = EchoClient::start(&pair, LEFT);
    assert!(echo.gets_answer());
    let prior_memory = memory(pair.pid(RIGHT));
    let transfer = Transfer::endless(&pair, LEFT);
    for kind in Attack::ALL {
        attack(kind, &mut attacker, &mut echo);
        transfer.wait_for(256 << 10);
        let growth = memory(pair.pid(RIGHT)).saturating_sub(prior_memory);
        println!("{kind:?}: {} MiB", growth >> 20);
        assert!(growth <= MEMORY, "{kind:?}: memory grew by {growth} bytes");
    }
    assert!(transfer.stop() >= 2 << 20, "every byte is correct");
}
