//! Any number of hosts on a network that delivers every datagram after the same time, unless a host is down.

use machine::{PathConfig, Payload, Reassembler, TunnelOptions};
use ropewalk_node::{Address, Node, NodeEvent, Route};
use seal::{HandshakeConfig, PeerId, PrivateKey, SealDevice};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{Instant, RngStream, Span};

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
    pub(crate) node: Node<Slice, TestAddress>,
    pub(crate) peers: Vec<PeerId>,
    reassembler: Reassembler<Vec<Slice>>,
    /// The numbers of the packets received.
    pub(crate) delivered: BTreeSet<u32>,
    pub(crate) events: Vec<(PeerId, NodeEvent)>,
    pub(crate) is_down: bool,
}

/// A datagram under way: the host that it goes to, how it arrives, and its bytes.
type InTransit = (u32, Route<TestAddress>, Vec<u8>);

/// The hosts and the datagrams under way.
pub(crate) struct Network {
    pub(crate) now: Instant,
    pub(crate) hosts: Vec<Host>,
    /// By arrival, and the order in which they were sent.
    in_transit: BTreeMap<(Instant, u64), InTransit>,
    sent: u64,
    /// What the allocator holds for host 0.
    pub(crate) first_host_bytes: i64,
    in_use: fn() -> i64,
}

pub(crate) fn key(host: usize) -> PrivateKey {
    let mut bytes = [7; 32];
    bytes[8..16].copy_from_slice(&(host as u64).to_le_bytes());
    PrivateKey::from_bytes(bytes)
}

impl Network {
    /// Hosts that know nobody. `in_use` returns the bytes that this thread has allocated.
    pub(crate) fn new(hosts: usize, in_use: fn() -> i64) -> Self {
        let mut network = Self {
            now: Instant(1_000_000_000),
            hosts: Vec::new(),
            in_transit: BTreeMap::new(),
            sent: 0,
            first_host_bytes: 0,
            in_use,
        };
        network.hosts.extend((0..hosts).map(|host| {
            let mut rng = RngStream::named(host as u64, "entropy");
            let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
            let sessions = SealDevice::new(HandshakeConfig::new(key(host)), Box::new(entropy));
            Host {
                node: Node::new(sessions, Box::new(|_| PATH)),
                peers: Vec::new(),
                reassembler: Reassembler::default(),
                delivered: BTreeSet::new(),
                events: Vec::new(),
                is_down: false,
            }
        }));
        network
    }

    /// Adds a peer to a host, with so many paths if the host knows its addresses.
    pub(crate) fn add_peer(&mut self, host: usize, peer: usize, paths: u8) -> PeerId {
        let now = self.now;
        self.charge(host, |host| {
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

    /// Runs `work`, and charges host 0 with the memory that it takes or frees.
    fn charge<T>(&mut self, host: usize, work: impl FnOnce(&mut Host) -> T) -> T {
        let before = (self.in_use)();
        let result = work(&mut self.hosts[host]);
        self.first_host_bytes += if host == 0 { (self.in_use)() - before } else { 0 };
        result
    }

    /// Sends packet `number` of 400 bytes.
    pub(crate) fn offer(&mut self, host: usize, peer: PeerId, number: u32) {
        let now = self.now;
        let mut bytes = [0; 400];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        self.charge(host, |host| host.node.offer(now, peer, 0, Slice::new(&bytes)));
        self.flush(host);
    }

    /// Sends and delivers what a host has ready, as the daemon does in an iteration of its loop.
    fn flush(&mut self, index: usize) {
        let now = self.now;
        let before = (self.in_use)();
        let mut sent = Vec::new();
        let host = &mut self.hosts[index];
        while let Some((_, delivery)) = host.node.poll_delivery() {
            if let Some(packet) = host.reassembler.add(&delivery) {
                let bytes = packet.buffer[0].bytes();
                host.delivered.insert(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            }
        }
        while let Some((id, transmit)) = host.node.poll_transmit(now) {
            let Some(route) = host.node.transmit_route(id, &transmit).cloned() else { continue };
            let mut datagram = vec![0; host.node.encode_length(id, &transmit)];
            let write = |payload: &Slice, bytes: &mut [u8]| {
                bytes[..payload.bytes().len()].copy_from_slice(payload.bytes());
                false
            };
            if host.node.seal_into(now, id, &transmit, &mut datagram, write) {
                sent.push((route, datagram));
            }
        }
        host.events.extend(std::iter::from_fn(|| host.node.poll_event(now)));
        while let Some((route, message)) = host.node.poll_handshake(now, || now.0) {
            sent.push((route, message.as_bytes().to_vec()));
        }
        let held = (self.in_use)() - before;
        let of_datagrams: usize = sent.iter().map(|(_, datagram)| datagram.capacity()).sum();
        let of_list = sent.capacity() * size_of::<(Route<TestAddress>, Vec<u8>)>();
        if index == 0 {
            self.first_host_bytes += held - (of_datagrams + of_list) as i64;
        }
        for (route, datagram) in sent {
            let source = TestAddress { host: index as u32, path: route.socket };
            let arrival = Route { socket: route.remote.path, remote: source };
            self.in_transit.insert((now + DELAY, self.sent), (route.remote.host, arrival, datagram));
            self.sent += 1;
        }
    }

    /// Runs until `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        (0..self.hosts.len()).for_each(|host| self.flush(host));
        let mut known: Vec<Instant> = (0..self.hosts.len()).map(|host| self.deadline(host)).collect();
        let mut deadlines: BTreeSet<(Instant, usize)> = known.iter().copied().zip(0..).collect();
        loop {
            let arrival = self.in_transit.keys().next().map_or(Instant::NEVER, |key| key.0);
            let (deadline, due) = deadlines.first().copied().expect("a host");
            let next = arrival.min(deadline.max(self.now));
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            let host = if arrival <= next {
                let (_, (to, route, datagram)) = self.in_transit.pop_first().expect("one is under way");
                self.receive(to as usize, &route, datagram);
                to as usize
            } else {
                self.charge(due, |host| host.node.on_timeout(next));
                due
            };
            self.flush(host);
            deadlines.remove(&(known[host], host));
            known[host] = self.deadline(host);
            deadlines.insert((known[host], host));
        }
    }

    fn deadline(&self, host: usize) -> Instant {
        let host = &self.hosts[host];
        if host.is_down { Instant::NEVER } else { host.node.deadline(self.now) }
    }

    fn receive(&mut self, host: usize, route: &Route<TestAddress>, mut datagram: Vec<u8>) {
        let now = self.now;
        if self.hosts[host].is_down {
            return;
        }
        self.charge(host, |host| {
            if let Ok(Some(opened)) = host.node.open(now, route, &mut datagram) {
                let payload = |range: std::ops::Range<usize>, _| Slice::new(&datagram[range]);
                let _ = host.node.process(now, route, false, opened, &datagram, payload);
            }
        });
    }
}
