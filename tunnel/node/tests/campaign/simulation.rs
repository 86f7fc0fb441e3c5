//! Hosts of the tunnel on the test network: real handshakes, ciphers and bytes; addresses may be rebound.

use crate::hostile::Hostile;
use machine::{Delivery, EndpointStatus, Entropy, Payload, Reassembler, TunnelOptions};
use ropewalk_node::{Address, Malformed, Node, NodeEvent, Route};
use seal::{PeerId, PrivateKey, PublicKey, SealDevice};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use testnet::{LinkConfig, PATH_CONFIG};
use units::{Instant, PathId, RngStream, Span};

/// The address of a host on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TestAddress(pub(crate) u32);

impl Address for TestAddress {
    fn octets(&self, octets: &mut Vec<u8>) {
        octets.extend_from_slice(&self.0.to_be_bytes());
    }

    /// A rebound address is that of another host.
    fn is_same_host(&self, other: &Self) -> bool {
        self == other
    }
}

/// Bytes, shared.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    buffer: Rc<[u8]>,
    start: usize,
    end: usize,
    /// Whether the packet begins with a virtio_net_hdr.
    pub(crate) offload: bool,
}

impl Bytes {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { buffer: bytes.into(), start: 0, end: bytes.len(), offload: false }
    }

    /// A fragment, of a packet with a virtio_net_hdr if `offload`.
    pub(crate) fn received(bytes: &[u8], offload: bool) -> Self {
        Self { offload, ..Self::new(bytes) }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        (self.end - self.start) as u32
    }
    fn slice(&self, start: u32, end: u32) -> Self {
        let (start, end) = (self.start + start as usize, self.start + end as usize);
        Self { start, end, ..self.clone() }
    }
    fn signal_congestion(&mut self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    source: TestAddress,
    destination: TestAddress,
    bytes: Vec<u8>,
}

/// A host, and the packets that it has delivered.
pub(crate) struct TestHost {
    pub(crate) node: Node<Bytes, TestAddress>,
    pub(crate) peer: PeerId,
    identity: Identity,
    /// The address on each path, as its peer sees it.
    pub(crate) addresses: Vec<TestAddress>,
    /// Time by which the wall clock is ahead of the simulation's, nanoseconds.
    pub(crate) wall_clock: u64,
    reassembler: Reassembler<Vec<Bytes>>,
    /// Packets delivered since the last restart of either host: stream and id.
    pub(crate) delivered: Vec<(u8, u64)>,
    /// Ids of all packets ever delivered.
    pub(crate) all_delivered: BTreeSet<u64>,
    pub(crate) events: Vec<NodeEvent>,
    pub(crate) refused: u64,
    /// Another peer, which is hostile.
    pub(crate) hostile: Option<Hostile>,
}

/// The state that a host keeps across a restart.
#[derive(Clone)]
struct Identity {
    seed: u64,
    index: usize,
    private: [u8; 32],
    peer_key: PublicKey,
    options: TunnelOptions,
}

pub(crate) type Simulation = testnet::Simulation<TestHost>;

/// A client that knows the server's addresses, and a server that knows none of the client's.
pub(crate) fn simulation(seed: u64, links: Vec<[LinkConfig; 2]>, options: &TunnelOptions) -> Simulation {
    let mut rng = RngStream::named(seed, "keys");
    let mut keys = [[0; 32]; 2];
    keys.iter_mut().flatten().for_each(|byte| *byte = rng.bits() as u8);
    let hosts = [0, 1].map(|index| {
        let peer_key = PrivateKey::from_bytes(keys[1 - index]).public_key();
        let addresses = (0..links.len()).map(|path| address(index, path)).collect();
        TestHost::new(
            Instant::ZERO,
            Identity { seed, index, private: keys[index], peer_key, options: options.clone() },
            addresses,
        )
    });
    Simulation::new(seed, links, hosts)
}

/// Restarts a host, which keeps its keys only.
pub(crate) fn restart(simulation: &mut Simulation, host: usize) {
    simulation.with_host(host, TestHost::restart);
    simulation.hosts[1 - host].delivered.clear();
}

/// Rebinds the client's address on a path, as a NAT that has lost its mapping does.
pub(crate) fn rebind(simulation: &mut Simulation, path: usize) {
    simulation.hosts[0].addresses[path].0 += 10;
}

/// Removes a path at the client, as a changed configuration does.
pub(crate) fn remove_path(simulation: &mut Simulation, path: u8) {
    simulation.with_host(0, |host, now| host.node.remove_path(now, host.peer, path));
}

/// Adds path `path` at the client, over the network's path `network_path`.
pub(crate) fn add_path(simulation: &mut Simulation, path: u8, network_path: usize) {
    let route = Route { socket: network_path as u16, remote: address(1, network_path) };
    simulation.with_host(0, |host, now| host.node.set_path(now, host.peer, path, route, PATH_CONFIG));
}

/// Sets a host's preshared key.
pub(crate) fn set_preshared_key(simulation: &mut Simulation, host: usize, secret: u8) {
    let secret = seal::PresharedKey::from_bytes([secret; 32]);
    simulation.with_host(host, |host, now| host.node.set_preshared(now, host.peer, Some(secret)));
}

/// Offers an inner packet to a host.
pub(crate) fn offer(simulation: &mut Simulation, host: usize, stream: u8, id: u64, length: usize) {
    let packet = Bytes::new(&content(id, length));
    simulation.with_host(host, |host, now| host.node.offer(now, host.peer, stream, packet));
}

/// The server opens a datagram of the client, and processes it after the client has restarted and has a new session.
pub(crate) fn process_after_restart(simulation: &mut Simulation) -> Result<(), Malformed> {
    let client = &mut simulation.hosts[0];
    client.node.offer(simulation.now, client.peer, 1, Bytes::new(&content(1, 100)));
    let (_, _, mut datagram) = testnet::Host::poll_transmit(client, simulation.now).expect("the packet is sent");
    let route = Route { socket: 0, remote: datagram.source };
    let opened = simulation.hosts[1].node.open(simulation.now, &route, &mut datagram.bytes).expect("authentic");
    restart(simulation, 0);
    simulation.run_for(Span::from_secs(2));
    let make_payload = |_: Range<usize>, _| Bytes::new(&[]);
    simulation.hosts[1].node.process(
        simulation.now,
        &route,
        false,
        opened.expect("sealed"),
        &datagram.bytes,
        make_payload,
    )
}

fn address(index: usize, path: usize) -> TestAddress {
    TestAddress((1000 * (index + 1) + path) as u32)
}

/// The content of packet `id`.
fn content(id: u64, length: usize) -> Vec<u8> {
    let mut rng = RngStream::named(id, "content");
    let mut bytes = [id.to_be_bytes(), (length as u64).to_be_bytes()].concat();
    bytes.extend((16..length).map(|_| rng.bits() as u8));
    bytes
}

impl TestHost {
    fn new(now: Instant, identity: Identity, addresses: Vec<TestAddress>) -> Self {
        let Identity { seed, index, private, peer_key, options } = identity.clone();
        let mut rng = RngStream::named(seed + index as u64, "entropy");
        let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
        let mut config = seal::HandshakeConfig::new(PrivateKey::from_bytes(private));
        // Now and then one end or both are of a version without bundles.
        config.capabilities = if (seed + index as u64).is_multiple_of(4) { 0 } else { config.capabilities };
        let peers = SealDevice::new(config, Box::new(entropy));
        let mut node = Node::new(peers, Box::new(|_| PATH_CONFIG));
        let new_config = Box::new(move || {
            options.endpoint_config(&[], Entropy::seeded(2 * seed + index as u64)).expect("registered algorithms")
        });
        let peer = node.add_peer(peer_key, None, new_config).expect("a good key");
        for path in 0..if index == 0 { addresses.len() } else { 0 } {
            node.set_path(now, peer, path as u8, Route { socket: path as u16, remote: address(1, path) }, PATH_CONFIG);
        }
        Self {
            node,
            peer,
            identity,
            addresses,
            wall_clock: 1 << 60,
            reassembler: Reassembler::default(),
            delivered: Vec::new(),
            all_delivered: BTreeSet::new(),
            events: Vec::new(),
            refused: 0,
            hostile: None,
        }
    }

    /// Adds a hostile peer.
    pub(crate) fn add_hostile_peer(&mut self) {
        let Identity { seed, index, private, options, .. } = &self.identity;
        let own_key = PrivateKey::from_bytes(*private).public_key();
        self.hostile = Some(Hostile::add(&mut self.node, own_key, options, 2 * seed + *index as u64));
    }

    fn restart(&mut self, now: Instant) {
        let identity = Identity { seed: self.identity.seed + 7919, ..self.identity.clone() };
        let has_hostile_peer = self.hostile.is_some();
        let restarted = Self::new(now, identity, std::mem::take(&mut self.addresses));
        *self = Self {
            wall_clock: self.wall_clock,
            all_delivered: std::mem::take(&mut self.all_delivered),
            refused: self.refused,
            ..restarted
        };
        if has_hostile_peer {
            self.add_hostile_peer();
        }
    }

    fn deliver(&mut self, delivery: &Delivery<Bytes>) {
        let stream = delivery.stream;
        let Some(packet) = self.reassembler.add(delivery) else { return };
        let packet: Vec<u8> = packet.buffer.iter().flat_map(Bytes::as_slice).copied().collect();
        let id = u64::from_be_bytes(*packet.first_chunk().expect("a packet has a number"));
        assert!(packet == content(id, packet.len()), "packet {id} is what was sent");
        assert!(self.all_delivered.insert(id), "packet {id} is delivered once");
        self.delivered.push((stream, id));
    }

    fn on_event(&mut self, event: NodeEvent) {
        if event == (NodeEvent::Established { numbers_reset: true }) {
            // Packets in flight from before a restart may have the ids of later ones.
            self.delivered.clear();
        }
        self.events.push(event);
    }

    /// Whether the other host's address on a path is one from which a peer authenticated lately.
    pub(crate) fn knows_address_of(&self, other: &Self, path: usize) -> bool {
        let mut octets = Vec::new();
        other.addresses[path].octets(&mut octets);
        self.node.sessions().knows_source(&octets)
    }

    /// Numbers of the host's paths.
    pub(crate) fn paths(&self) -> Vec<u16> {
        self.status().paths.iter().map(|status| status.path.0).collect()
    }

    /// Whether the path is up at this host.
    pub(crate) fn is_up(&self, path: u16) -> bool {
        self.status().paths.iter().any(|status| status.path == PathId(path) && status.up)
    }
}

impl testnet::Host for TestHost {
    type Datagram = Datagram;

    fn deadline(&self, now: Instant) -> Instant {
        self.node.deadline(now)
    }

    fn on_timeout(&mut self, now: Instant) {
        self.node.on_timeout(now);
    }

    fn receive(&mut self, now: Instant, path: usize, mut datagram: Datagram) {
        let route = Route { socket: path as u16, remote: datagram.source };
        let bytes = &mut datagram.bytes;
        let Ok(opened) = self.node.open(now, &route, bytes) else {
            self.refused += 1;
            return;
        };
        let Some(opened) = opened else { return };
        assert_eq!(opened.peer, self.peer);
        let make_payload = |range: Range<usize>, _| Bytes::new(&bytes[range]);
        self.node
            .process(now, &route, false, opened, bytes, make_payload)
            .expect("an authentic datagram is well-formed");
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(usize, u32, Datagram)> {
        let (route, bytes) = self.poll_bytes(now)?;
        let path = usize::from(route.socket);
        Some((path, bytes.len() as u32, Datagram { source: self.addresses[path], destination: route.remote, bytes }))
    }

    fn take_delivered(&mut self, now: Instant) {
        while let Some((peer, delivery)) = self.node.poll_delivery() {
            match &mut self.hostile {
                Some(hostile) if peer == hostile.id => hostile.deliver(&delivery),
                _ => self.deliver(&delivery),
            }
        }
        while let Some((peer, event)) = self.node.poll_event(now) {
            if peer == self.peer {
                self.on_event(event);
            }
        }
    }

    fn is_drained(&self) -> bool {
        testnet::is_drained(&self.status())
    }

    fn memory_bytes(&self) -> u64 {
        testnet::memory_bytes(&self.status())
    }

    fn corrupt(mut datagram: Datagram, rng: &mut RngStream) -> Option<Datagram> {
        let index = rng.below(datagram.bytes.len() as u64) as usize;
        datagram.bytes[index] ^= 1 << rng.below(8);
        Some(datagram)
    }

    fn is_destination(&self, path: usize, datagram: &Datagram) -> bool {
        self.addresses[path] == datagram.destination
    }
}

impl TestHost {
    /// Status of the endpoint for the peer.
    pub(crate) fn status(&self) -> EndpointStatus {
        self.node.endpoint(self.peer).expect("the peer was added").status()
    }

    /// The next datagram for the honest peer; those for the hostile one arrive there.
    fn poll_bytes(&mut self, now: Instant) -> Option<(Route<TestAddress>, Vec<u8>)> {
        loop {
            let (route, mut bytes) = self.poll_any(now)?;
            if !self.hostile.as_mut().is_some_and(|hostile| hostile.receive(now, route.remote, &mut bytes)) {
                return Some((route, bytes));
            }
        }
    }

    fn poll_any(&mut self, now: Instant) -> Option<(Route<TestAddress>, Vec<u8>)> {
        let wall_clock = self.wall_clock + now.0;
        if let Some((route, message)) = self.node.poll_handshake(now, || wall_clock) {
            return Some((route, message.as_bytes().to_vec()));
        }
        let write_payload = |payload: &Bytes, bytes: &mut [u8]| {
            bytes.copy_from_slice(payload.as_slice());
            false
        };
        loop {
            let (peer, transmit) = self.node.poll_transmit(now)?;
            let mut bytes = vec![0; self.node.encode_length(peer, &transmit)];
            if self.node.seal_into(now, peer, &transmit, &mut bytes, write_payload) {
                return Some((self.node.transmit_route(peer, &transmit).expect("a path has a route").clone(), bytes));
            }
        }
    }
}
