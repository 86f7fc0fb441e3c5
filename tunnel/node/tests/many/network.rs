//! Any number of hosts on a network that delivers every datagram after the same time, unless a host is down.

use link::EcnField;
use machine::{PathConfig, Payload, Reassembler, TunnelOptions};
use ropewalk_node::{Address, Node, NodeEvent, Route};
use seal::{HandshakeConfig, PeerId, PrivateKey, SealDevice};
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{Instant, RngStream, Span};
use world::{Arrival, Endpoint, Hosts, Outbox, Topology};

pub(crate) const PATH: PathConfig = PathConfig::regular(1472, 28);
/// The delay of every datagram.
const DELAY: Span = Span::from_millis(10);

/// A host's address on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TestAddress {
    host: u32,
    path: u16,
}

impl Address for TestAddress {
    fn octets(&self, octets: &mut Vec<u8>) {
        octets.extend_from_slice(&self.host.to_be_bytes());
        octets.extend_from_slice(&self.path.to_be_bytes());
    }

    fn is_same_host(&self, other: &Self) -> bool {
        self.host == other.host
    }
}

/// A packet of some bytes that carry its number.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    bytes: Rc<[u8]>,
    start: u32,
    end: u32,
}

impl Slice {
    fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), start: 0, end: bytes.len() as u32 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start as usize..self.end as usize]
    }
}

impl Payload for Slice {
    fn len(&self) -> u32 {
        self.end - self.start
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { bytes: Rc::clone(&self.bytes), start: self.start + start, end: self.start + end }
    }
}

/// A host with its node.
pub(crate) struct Host {
    index: u32,
    pub(crate) node: Node<Slice, TestAddress>,
    pub(crate) peers: Vec<PeerId>,
    reassembler: Reassembler<Vec<Slice>>,
    /// The numbers of the packets received.
    pub(crate) delivered: BTreeSet<u32>,
    pub(crate) events: Vec<(PeerId, NodeEvent)>,
    pub(crate) is_down: bool,
    /// What the allocator holds for it.
    pub(crate) bytes_held: i64,
    in_use: fn() -> i64,
}

/// The hosts and the datagrams under way.
pub(crate) struct Network(Hosts<Host>);

pub(crate) fn key(host: usize) -> PrivateKey {
    let mut bytes = [7; 32];
    bytes[8..16].copy_from_slice(&(host as u64).to_le_bytes());
    PrivateKey::from_bytes(bytes)
}

impl Network {
    /// Hosts that know nobody. `in_use` returns the bytes that this thread has allocated.
    pub(crate) fn new(hosts: u32, in_use: fn() -> i64) -> Self {
        let hosts = (0..hosts).map(|index| Host::new(index, in_use)).collect();
        let mut hosts = Hosts::new(Topology::default(), Vec::new(), hosts);
        hosts.run_until(Instant(1_000_000_000));
        Self(hosts)
    }

    pub(crate) fn now(&self) -> Instant {
        self.0.now()
    }

    pub(crate) fn host(&self, index: usize) -> &Host {
        &self.0.hosts[index]
    }

    pub(crate) fn set_down(&mut self, host: usize, is_down: bool) {
        self.0.hosts[host].is_down = is_down;
    }

    /// Adds a peer to a host, with so many paths if the host knows its addresses.
    pub(crate) fn add_peer(&mut self, host: usize, peer: usize, paths: u8) -> PeerId {
        let now = self.now();
        self.0.hosts[host].charge(|host| {
            let new_config = move || {
                let entropy = machine::Entropy::seeded(peer as u64);
                TunnelOptions::default().endpoint_config(&[1; 4], entropy).expect("the defaults")
            };
            let id = host.node.add_peer(key(peer).public_key(), None, Box::new(new_config)).expect("another key");
            for path in 0..paths {
                let remote = TestAddress { host: peer as u32, path: path.into() };
                host.node.set_path(now, id, path, Route { socket: path.into(), remote }, PATH);
            }
            host.peers.push(id);
            id
        })
    }

    /// Sends packet `number` of 400 bytes.
    pub(crate) fn offer(&mut self, host: usize, peer: PeerId, number: u32) {
        let mut bytes = [0; 400];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        self.0.call(host, |host, outbox| {
            host.charge(|host| host.node.offer(outbox.now(), peer, 0, Slice::new(&bytes)));
            host.flush(outbox);
        });
    }

    /// Runs until `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        (0..self.0.hosts.len()).for_each(|host| self.0.call(host, Host::flush));
        self.0.run_until(end);
    }
}

impl Host {
    fn new(index: u32, in_use: fn() -> i64) -> Self {
        let mut rng = RngStream::named(index.into(), "entropy");
        let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
        let sessions = SealDevice::new(HandshakeConfig::new(key(index as usize)), Box::new(entropy));
        Self {
            index,
            node: Node::new(sessions, Box::new(|_| PATH)),
            peers: Vec::new(),
            reassembler: Reassembler::default(),
            delivered: BTreeSet::new(),
            events: Vec::new(),
            is_down: false,
            bytes_held: 0,
            in_use,
        }
    }

    /// Runs `work`, and charges the host with the memory that it takes or frees.
    fn charge<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = (self.in_use)();
        let result = work(self);
        self.bytes_held += (self.in_use)() - before;
        result
    }

    /// Sends and delivers what the host has ready, as the daemon does in an iteration of its loop.
    fn flush(&mut self, outbox: &mut Outbox<'_, Datagram>) {
        let sent = self.charge(|host| host.poll(outbox.now()));
        let of_datagrams: usize = sent.iter().map(|(_, datagram)| datagram.capacity()).sum();
        let of_list = sent.capacity() * size_of::<Datagram>();
        self.bytes_held -= (of_datagrams + of_list) as i64;
        for (route, datagram) in sent {
            let source = TestAddress { host: self.index, path: route.socket };
            let (path, bytes) = (route.remote.path, datagram.len() as u32);
            let content = (Route { socket: path, remote: source }, datagram);
            let arrival = Arrival { path, flow: 0, bytes, ecn: EcnField::NotEct, content };
            outbox.post(route.remote.host as usize, DELAY, arrival);
        }
    }

    /// The datagrams that the host has ready. Takes what it delivers.
    fn poll(&mut self, now: Instant) -> Vec<Datagram> {
        let mut sent = Vec::new();
        while let Some((_, delivery)) = self.node.poll_delivery() {
            if let Some(packet) = self.reassembler.add(&delivery) {
                let bytes = packet.buffer[0].bytes();
                self.delivered.insert(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            }
        }
        while let Some((id, transmit)) = self.node.poll_transmit(now) {
            let Some(route) = self.node.transmit_route(id, &transmit).cloned() else { continue };
            let mut datagram = vec![0; self.node.encode_length(id, &transmit)];
            let write = |payload: &Slice, bytes: &mut [u8]| {
                bytes[..payload.bytes().len()].copy_from_slice(payload.bytes());
                false
            };
            if self.node.seal_into(now, id, &transmit, &mut datagram, write) {
                sent.push((route, datagram));
            }
        }
        self.events.extend(std::iter::from_fn(|| self.node.poll_event(now)));
        while let Some((route, message)) = self.node.poll_handshake(now, || now.0) {
            sent.push((route, message.as_bytes().to_vec()));
        }
        sent
    }
}

/// A datagram, with the route by which it leaves or arrives.
type Datagram = (Route<TestAddress>, Vec<u8>);

impl Endpoint for Host {
    type Content = Datagram;

    fn deadline(&self, now: Instant) -> Instant {
        if self.is_down { Instant::NEVER } else { self.node.deadline(now) }
    }

    fn on_timeout(&mut self, outbox: &mut Outbox<'_, Datagram>) {
        self.charge(|host| host.node.on_timeout(outbox.now()));
        self.flush(outbox);
    }

    fn receive(&mut self, arrival: Arrival<Datagram>, outbox: &mut Outbox<'_, Datagram>) {
        let (route, mut datagram) = arrival.content;
        if self.is_down {
            return;
        }
        self.charge(|host| {
            if let Ok(Some(opened)) = host.node.open(outbox.now(), &route, &mut datagram) {
                let payload = |range: std::ops::Range<usize>, _| Slice::new(&datagram[range]);
                let _ = host.node.process(outbox.now(), &route, false, opened, &datagram, payload);
            }
        });
        self.flush(outbox);
    }
}
