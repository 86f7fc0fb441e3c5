//! Two hosts with real handshakes and ciphers, and a network of one delay between addresses, with an attacker in it that
//! sees every datagram and decides what becomes of it.

use link::EcnField;
use machine::{Entropy, PathStatus, Payload, Reassembler, TunnelOptions};
use ropewalk_node::{Node, NodeEvent, Route};
use seal::{HandshakeConfig, PeerId, PrivateKey, SealDevice};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use testnet::PATH_CONFIG;
use units::{Instant, PathId, RngStream, Span};
use world::{Arrival, Endpoint, Hosts, Outbox, Topology};

/// One-way delay between any two addresses.
pub(crate) const DELAY: Span = Span::from_millis(10);

/// An address in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) ip: u32,
    pub(crate) port: u16,
}

impl ropewalk_node::Address for Address {
    fn octets(&self, octets: &mut Vec<u8>) {
        octets.extend_from_slice(&self.ip.to_be_bytes());
        octets.extend_from_slice(&self.port.to_be_bytes());
    }

    fn is_same_host(&self, other: &Self) -> bool {
        self.ip == other.ip
    }
}

/// An inner packet, or a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Bytes(Rc<[u8]>, Range<usize>);

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        &self.0[self.1.clone()]
    }
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        self.1.len() as u32
    }
    fn slice(&self, start: u32, end: u32) -> Self {
        Self(self.0.clone(), self.1.start + start as usize..self.1.start + end as usize)
    }
    fn signal_congestion(&mut self) -> bool {
        true
    }
}

/// A datagram in the network.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) source: Address,
    pub(crate) destination: Address,
    pub(crate) bytes: Vec<u8>,
}

/// What becomes of a datagram: the datagrams that arrive, and after how much.
pub(crate) type Attack = Box<dyn FnMut(Instant, Datagram) -> Vec<(Span, Datagram)>>;

/// What the hosts share: who is in the network, and what they have sent.
struct Wire {
    attack: Attack,
    /// Bytes that each host sent to each address, and bytes that arrived from there.
    traffic: BTreeMap<(usize, Address), (usize, usize)>,
}

/// A host with one peer.
pub(crate) struct Host {
    pub(crate) node: Node<Bytes, Address>,
    pub(crate) peer: PeerId,
    /// The address of each socket, as the network sees it.
    pub(crate) sockets: Vec<Address>,
    reassembler: Reassembler<Vec<Bytes>>,
    /// Ids of the inner packets delivered.
    pub(crate) delivered: Vec<u64>,
    pub(crate) events: Vec<(Instant, NodeEvent)>,
}

impl Host {
    /// A host with these sockets; its peer has key number `1 - key`.
    pub(crate) fn new(key: u8, boot: u64, sockets: Vec<Address>, options: &TunnelOptions) -> Self {
        let mut rng = RngStream::named(boot, if key == 0 { "left" } else { "right" });
        let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
        let device = SealDevice::new(HandshakeConfig::new(private_key(key)), Box::new(entropy));
        let mut node = Node::new(device, Box::new(|_| PATH_CONFIG));
        let options = options.clone();
        let config = move || options.endpoint_config(&[], Entropy::seeded(boot)).expect("registered algorithms");
        let peer = node.add_peer(private_key(1 - key).public_key(), None, Box::new(config)).expect("a good key");
        let reassembler = Reassembler::default();
        Self { node, peer, sockets, reassembler, delivered: Vec::new(), events: Vec::new() }
    }

    /// Adds a path by socket `socket` to `remote`.
    pub(crate) fn add_path(&mut self, now: Instant, path: u8, socket: u16, remote: Address) {
        self.node.set_path(now, self.peer, path, Route { socket, remote }, PATH_CONFIG);
    }

    pub(crate) fn path(&self, path: u16) -> PathStatus {
        let status = self.node.endpoint(self.peer).expect("the peer was added").status();
        *status.paths.iter().find(|status| status.path == PathId(path)).expect("the path exists")
    }

    /// The peer's address on a path, and the own socket.
    pub(crate) fn route(&self, path: u16) -> (u16, Address) {
        let route = self.node.route(self.peer, PathId(path)).expect("the path exists");
        (route.socket, route.remote)
    }

    /// When the host saw its peer at another address on path 0.
    pub(crate) fn moves(&self) -> Vec<Instant> {
        let is_move = |event: &NodeEvent| *event == NodeEvent::PathMigrated(PathId(0));
        self.events.iter().filter(|(_, event)| is_move(event)).map(|(time, _)| *time).collect()
    }

    fn receive(&mut self, now: Instant, socket: usize, source: Address, mut bytes: Vec<u8>) {
        let route = Route { socket: socket as u16, remote: source };
        let Ok(Some(opened)) = self.node.open(now, &route, &mut bytes) else { return };
        let payload = |range: Range<usize>, _| Bytes(bytes[range.clone()].into(), 0..range.len());
        let _ = self.node.process(now, &route, false, opened, &bytes, payload);
    }

    fn poll(&mut self, now: Instant) -> Option<Datagram> {
        let (route, bytes) = match self.node.poll_handshake(now, || now.0 + (1 << 60)) {
            Some((route, message)) => (route, message.as_bytes().to_vec()),
            None => self.poll_sealed(now)?,
        };
        Some(Datagram { source: self.sockets[usize::from(route.socket)], destination: route.remote, bytes })
    }

    fn poll_sealed(&mut self, now: Instant) -> Option<(Route<Address>, Vec<u8>)> {
        let write = |payload: &Bytes, bytes: &mut [u8]| {
            bytes.copy_from_slice(payload.as_slice());
            false
        };
        let (peer, transmit) = self.node.poll_transmit(now)?;
        let mut bytes = vec![0; self.node.encode_length(peer, &transmit)];
        let is_sealed = self.node.seal_into(now, peer, &transmit, &mut bytes, write);
        assert!(is_sealed, "there is a session");
        Some((self.node.transmit_route(peer, &transmit).expect("it has a route").clone(), bytes))
    }

    fn take_output(&mut self, now: Instant) {
        while let Some((_, delivery)) = self.node.poll_delivery() {
            let Some(packet) = self.reassembler.add(&delivery) else { continue };
            let id = packet.buffer.first().and_then(|bytes| bytes.as_slice().first_chunk().copied());
            self.delivered.push(u64::from_be_bytes(id.expect("a packet begins with its id")));
        }
        while let Some((_, event)) = self.node.poll_event(now) {
            self.events.push((now, event));
        }
    }
}

/// The private key of host `number`.
pub(crate) fn private_key(number: u8) -> PrivateKey {
    PrivateKey::from_bytes([number + 1; 32])
}

/// A host in the network.
struct Networked {
    index: usize,
    host: Host,
    wire: Rc<RefCell<Wire>>,
}

impl Networked {
    /// Sends what the host has to send, and takes what it delivers.
    fn flush(&mut self, outbox: &mut Outbox<'_, Datagram>) {
        while let Some(datagram) = self.host.poll(outbox.now()) {
            let mut wire = self.wire.borrow_mut();
            wire.traffic.entry((self.index, datagram.destination)).or_default().0 += datagram.bytes.len();
            for (delay, datagram) in (wire.attack)(outbox.now(), datagram) {
                post(delay, datagram, outbox);
            }
        }
        self.host.take_output(outbox.now());
    }
}

/// Lets a datagram arrive after `delay` at the host that has its destination then: the other one ignores it.
fn post(delay: Span, datagram: Datagram, outbox: &mut Outbox<'_, Datagram>) {
    let bytes = datagram.bytes.len() as u32;
    let arrival = Arrival { path: 0, flow: 0, bytes, ecn: EcnField::NotEct, content: datagram };
    [0, 1].into_iter().for_each(|host| outbox.post(host, delay, arrival.clone()));
}

impl Endpoint for Networked {
    type Content = Datagram;

    fn deadline(&self, now: Instant) -> Instant {
        self.host.node.deadline(now)
    }

    fn on_timeout(&mut self, outbox: &mut Outbox<'_, Datagram>) {
        self.host.node.on_timeout(outbox.now());
        self.flush(outbox);
    }

    fn receive(&mut self, arrival: Arrival<Datagram>, outbox: &mut Outbox<'_, Datagram>) {
        let Datagram { source, destination, bytes } = arrival.content;
        let Some(socket) = self.host.sockets.iter().position(|address| *address == destination) else { return };
        self.wire.borrow_mut().traffic.entry((self.index, source)).or_default().1 += bytes.len();
        self.host.receive(outbox.now(), socket, source, bytes);
        self.flush(outbox);
    }
}

/// The network.
pub(crate) struct Network {
    hosts: Hosts<Networked>,
    wire: Rc<RefCell<Wire>>,
}

impl Network {
    pub(crate) fn new(hosts: [Host; 2]) -> Self {
        let attack: Attack = Box::new(|_, datagram| vec![(DELAY, datagram)]);
        let wire = Rc::new(RefCell::new(Wire { attack, traffic: BTreeMap::new() }));
        let nodes = hosts.into_iter().enumerate().map(|(index, host)| Networked { index, host, wire: wire.clone() });
        let hosts = Hosts::new(Topology::default(), Vec::new(), nodes.collect());
        Self { hosts, wire }
    }

    pub(crate) fn now(&self) -> Instant {
        self.hosts.now()
    }

    /// A host.
    pub(crate) fn host(&self, index: usize) -> &Host {
        &self.hosts.hosts[index].host
    }

    /// A host, which may send at the next [`run_for`](Self::run_for).
    pub(crate) fn host_mut(&mut self, index: usize) -> &mut Host {
        &mut self.hosts.hosts[index].host
    }

    /// From now on an attacker decides what becomes of datagrams.
    pub(crate) fn attack(&mut self, attack: impl FnMut(Instant, Datagram) -> Vec<(Span, Datagram)> + 'static) {
        self.wire.borrow_mut().attack = Box::new(attack);
    }

    /// Lets a datagram arrive after `delay`.
    pub(crate) fn inject(&mut self, delay: Span, datagram: Datagram) {
        self.hosts.call(0, |_, outbox| post(delay, datagram, outbox));
    }

    pub(crate) fn run_for(&mut self, span: Span) {
        [0, 1].into_iter().for_each(|host| self.hosts.call(host, Networked::flush));
        self.hosts.run_for(span);
    }

    /// A host sends an inner packet of `length` bytes.
    pub(crate) fn offer(&mut self, host: usize, id: u64, length: usize) {
        let mut packet = id.to_be_bytes().to_vec();
        packet.resize(length, 0);
        let now = self.now();
        let Host { node, peer, .. } = self.host_mut(host);
        node.offer(now, *peer, 1, Bytes(packet.into(), 0..length));
    }

    /// Both hosts send an inner packet of 1400 bytes every millisecond, with these ids.
    pub(crate) fn exchange(&mut self, ids: Range<u64>) {
        for id in ids {
            self.offer(0, id, 1400);
            self.offer(1, id, 1400);
            self.run_for(Span::from_millis(1));
        }
    }

    /// Bytes that `host` sent to `address`, and bytes that arrived at it from there.
    pub(crate) fn bytes(&self, host: usize, address: Address) -> (usize, usize) {
        self.wire.borrow().traffic.get(&(host, address)).copied().unwrap_or_default()
    }
}
