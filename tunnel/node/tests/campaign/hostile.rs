//! A hostile peer beside the honest one: it has a session with a host, and sends it anything.

use crate::simulation::{Bytes, Simulation, TestAddress, TestHost};
use machine::{Entropy, Reassembler, TunnelOptions};
use ropewalk_node::{Node, Route};
use seal::{PeerId, PrivateKey, PublicKey};
use std::net::IpAddr;
use std::ops::Range;
use testnet::{Attack, HostilePeer, InnerAddresses};
use units::{Instant, RngStream};
use wire::check::TestDevice;
use wire::delivery::{MAX_PACKET_BYTES, deliver};
use wire::inner::Inner;

/// The addresses from this one on are the hostile peer's.
const FIRST_ADDRESS: u32 = 1 << 20;
const INNER: InnerAddresses =
    InnerAddresses { own: [10, 77, 0, 3], foreign: [10, 77, 0, 1], target: [10, 77, 0, 2], port: 9 };
/// Maximum number of datagrams of one attack.
const MAX_DATAGRAMS: u64 = 64;
/// Share of the datagrams that are changed at random.
const MUTATED_SHARE: f64 = 0.2;

/// The hostile peer of a host.
pub(crate) struct Hostile {
    peer: HostilePeer,
    /// The peer's id at the host.
    pub(crate) id: PeerId,
    reassembler: Reassembler<Vec<Bytes>>,
    rng: RngStream,
    /// Datagrams sent so far.
    sent: u64,
    /// Datagrams that the host has taken as the peer's.
    pub(crate) opened: u64,
    /// Packets of the peer that the host has delivered.
    pub(crate) delivered: u64,
}

impl Hostile {
    /// Adds the peer to a host.
    pub(crate) fn add(
        node: &mut Node<Bytes, TestAddress>,
        host_key: PublicKey,
        options: &TunnelOptions,
        seed: u64,
    ) -> Self {
        let mut rng = RngStream::named(seed, "hostile peer");
        let mut key = [0; 32];
        key.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
        let options = options.clone();
        let new_config =
            Box::new(move || options.endpoint_config(&[], Entropy::seeded(seed)).expect("registered algorithms"));
        let id = node.add_peer(PrivateKey::from_bytes(key).public_key(), None, new_config).expect("a good key");
        let mut entropy = RngStream::named(seed, "entropy of the hostile peer");
        let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = entropy.bits() as u8);
        let peer = HostilePeer::with_entropy(PrivateKey::from_bytes(key), host_key, Box::new(entropy));
        Self { peer, id, reassembler: Reassembler::default(), rng, sent: 0, opened: 0, delivered: 0 }
    }

    /// A datagram of the host arrives, if it is for the peer.
    pub(crate) fn receive(&mut self, now: Instant, destination: TestAddress, datagram: &mut [u8]) -> bool {
        let is_for_peer = destination.0 >= FIRST_ADDRESS;
        if is_for_peer {
            self.peer.receive(now, datagram);
        }
        is_for_peer
    }

    /// The host delivers a fragment of the peer: what it writes to its device has the peer's own source.
    pub(crate) fn deliver(&mut self, delivery: &machine::Delivery<Bytes>) {
        let Some(packet) = self.reassembler.add(delivery) else { return };
        let offload = packet.buffer.iter().any(|fragment| fragment.offload);
        let mut bytes: Vec<u8> = packet.buffer.iter().flat_map(Bytes::as_slice).copied().collect();
        let mut device = TestDevice { has_header: true, accepts_super_packets: true, ..TestDevice::default() };
        let own = IpAddr::from(INNER.own);
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        let _ = deliver(&mut bytes, offload, packet.ce, |source, _| source == own, &mut device, &mut buffer);
        let super_packets = device.super_packets.iter().map(|bytes| &bytes[wire::virtio::VirtioNetHeader::LEN..]);
        for packet in device.packets.iter().map(Vec::as_slice).chain(super_packets) {
            assert_eq!(Inner::parse(packet).map(|inner| inner.source), Ok(own), "a foreign source");
            self.delivered += 1;
        }
    }

    /// The next datagram of an attack, with the address that it comes from.
    fn datagram(&mut self, now: Instant, attack: Attack) -> Option<(TestAddress, Vec<u8>)> {
        let rng = &mut self.rng;
        let (path, mut body) = attack.datagram(self.sent, &INNER, rng);
        self.sent += 1;
        if rng.chance(MUTATED_SHARE) && !body.is_empty() {
            let position = rng.below(body.len() as u64) as usize;
            match rng.below(3) {
                0 => body.truncate(position),
                1 => body[position] = rng.bits() as u8,
                _ => body[position] ^= 1 << rng.below(8),
            }
        }
        let address = FIRST_ADDRESS + u32::from(path) + 100 * u32::from(rng.chance(0.01));
        Some((TestAddress(address), self.peer.seal(now, path, &body)?))
    }
}

impl TestHost {
    /// A burst of datagrams of the host's hostile peer, if it has one, with a session first.
    fn attack(&mut self, now: Instant) {
        let Some(hostile) = &mut self.hostile else { return };
        let wall_clock = (1 << 61) + now.0;
        if let Some(initiation) = hostile.peer.initiation(now, wall_clock) {
            let route = Route { socket: 0, remote: TestAddress(FIRST_ADDRESS) };
            let _ = self.node.open(now, &route, &mut initiation.as_bytes().to_vec());
        }
        let attack = Attack::ALL[hostile.rng.below(Attack::ALL.len() as u64) as usize];
        for _ in 0..hostile.rng.below(MAX_DATAGRAMS) {
            let Some((remote, mut datagram)) = hostile.datagram(now, attack) else { return };
            let route = Route { socket: 0, remote };
            let Ok(Some(opened)) = self.node.open(now, &route, &mut datagram) else { continue };
            assert_eq!(opened.peer, hostile.id);
            hostile.opened += 1;
            let make_payload = |range: Range<usize>, offload| Bytes::received(&datagram[range], offload);
            let _ = self.node.process(now, &route, false, opened, &datagram, make_payload);
        }
    }

    /// Counts again what is charged and held for all peers.
    pub(crate) fn check(&self) {
        let peers = [Some(self.peer), self.hostile.as_ref().map(|hostile| hostile.id)];
        peers.into_iter().flatten().filter_map(|id| self.node.endpoint(id)).for_each(machine::Endpoint::check);
    }
}

/// Both hosts get a hostile peer.
pub(crate) fn add_hostile_peers(simulation: &mut Simulation) {
    (0..2).for_each(|host| simulation.with_host(host, |host, _| host.add_hostile_peer()));
}

/// The hostile peer of a host attacks.
pub(crate) fn attack(simulation: &mut Simulation, host: usize) {
    simulation.with_host(host, TestHost::attack);
    simulation.hosts[host].check();
}
