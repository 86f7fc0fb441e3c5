//! A host with its driver's parts: node, reassembly, and a device that keeps all written packets.

use super::{HOSTILE, MAX_DATAGRAMS, MEMORY_BYTES, PATH};
use crate::{Address, NewEndpointConfig, Node, Route};
use machine::{Entropy, PacketBuffer, Payload, Reassembler, TunnelOptions};
use seal::{HandshakeConfig, PeerId, PrivateKey, SealDevice};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use units::Instant;
use wire::check::{TestDevice, check_super_packet};
use wire::delivery::{MAX_PACKET_BYTES, deliver};
use wire::inner::Inner;
use wire::relay::Header;

/// An address of the network: the number of the host, and of one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TestAddress(pub(super) u8, pub(super) u8);

impl Address for TestAddress {
    fn octets(&self, octets: &mut Vec<u8>) {
        octets.extend_from_slice(&[self.0, self.1]);
    }

    fn is_same_host(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Bytes of a datagram.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    buffer: Rc<[u8]>,
    range: Range<usize>,
    offload: bool,
}

impl Slice {
    pub(super) fn new(bytes: &[u8], offload: bool) -> Self {
        Self { buffer: bytes.into(), range: 0..bytes.len(), offload }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl Payload for Slice {
    fn len(&self) -> u32 {
        self.range.len() as u32
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        let (start, end) = (self.range.start + start as usize, self.range.start + end as usize);
        Self { range: start..end, ..self.clone() }
    }

    fn memory_bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    fn detach(&mut self) {
        *self = Self::new(self.bytes(), self.offload);
    }
}

/// The bytes of a packet that is reassembled.
#[derive(Debug, Default)]
struct Bytes {
    bytes: Vec<u8>,
    offload: bool,
}

impl PacketBuffer<Slice> for Bytes {
    fn clear(&mut self) {
        self.bytes.clear();
    }

    fn append(&mut self, payload: &Slice) {
        self.bytes.extend_from_slice(payload.bytes());
        self.offload = payload.offload;
    }

    fn memory_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }
}

/// A host.
pub(super) struct TestHost {
    number: u8,
    pub(super) node: Node<Slice, TestAddress>,
    reassemblers: BTreeMap<PeerId, Reassembler<Bytes>>,
    /// The number of each peer.
    numbers: BTreeMap<PeerId, u8>,
    /// Numbers of the honest packets that were delivered.
    pub(super) delivered: BTreeSet<u32>,
}

pub(super) fn key(number: u8) -> PrivateKey {
    PrivateKey::from_bytes([number; 32])
}

pub(super) fn entropy(number: u8) -> impl FnMut(&mut [u8]) + Send {
    let mut state = u64::from(number);
    move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
    }
}

pub(super) fn new_endpoint_config() -> NewEndpointConfig {
    let options = TunnelOptions { memory_bytes: MEMORY_BYTES, ..TunnelOptions::default() };
    Box::new(move || options.endpoint_config(&[], Entropy::seeded(1)).expect("registered algorithms"))
}

pub(super) fn route(number: u8) -> Route<TestAddress> {
    Route { socket: 0, remote: TestAddress(number, 0) }
}

/// The inner address of a host.
fn inner_address(number: u8) -> IpAddr {
    [192, 0, 2, number].into()
}

/// A UDP datagram between two hosts, with its number.
pub(super) fn packet(source: u8, destination: u8, id: u32, len: usize) -> Vec<u8> {
    let udp_len = (12 + len) as u16;
    let [high, low] = (20 + udp_len).to_be_bytes();
    let mut packet = vec![0x45, 2, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, source, 192, 0, 2, destination];
    packet.extend_from_slice(&[0, 7, 0, 7]);
    packet.extend_from_slice(&udp_len.to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(&id.to_be_bytes());
    packet.resize(packet.len() + len, 0);
    packet
}

impl TestHost {
    pub(super) fn new(number: u8, peers: &[u8]) -> Self {
        let sessions = SealDevice::new(HandshakeConfig::new(key(number)), Box::new(entropy(number)));
        let mut host = Self {
            number,
            node: Node::new(sessions, Box::new(|_| PATH)),
            reassemblers: BTreeMap::new(),
            numbers: BTreeMap::new(),
            delivered: BTreeSet::new(),
        };
        peers.iter().for_each(|peer| host.add_peer(*peer));
        host
    }

    pub(super) fn add_peer(&mut self, number: u8) {
        let id = self.node.add_peer(key(number).public_key(), None, new_endpoint_config()).expect("another key");
        self.reassemblers.insert(id, Reassembler::default());
        self.numbers.insert(id, number);
    }

    pub(super) fn remove_peer(&mut self, id: PeerId) {
        self.node.remove_peer(id);
        self.reassemblers.remove(&id);
        self.numbers.remove(&id);
    }

    pub(super) fn peer(&self, number: u8) -> PeerId {
        let (id, _) = self.numbers.iter().find(|(_, peer)| **peer == number).expect("a peer");
        *id
    }

    /// Packets to a peer that its ingress queue has dropped.
    pub(super) fn dropped(&self, number: u8) -> u64 {
        let endpoint = self.node.endpoint(self.peer(number)).expect("every peer has one");
        endpoint.status().counters.ingress_dropped_packets
    }

    pub(super) fn receive(&mut self, now: Instant, route: &Route<TestAddress>, ce: bool, datagram: &mut [u8]) {
        if let Ok(Some(opened)) = self.node.open(now, route, datagram) {
            let buffer: Rc<[u8]> = (&*datagram).into();
            let make_payload = |range, offload| Slice { buffer: buffer.clone(), range, offload };
            let _ = self.node.process(now, route, ce, opened, datagram, make_payload);
        }
    }

    /// Datagrams to be sent, with the number of their destination.
    pub(super) fn transmit(&mut self, now: Instant) -> Vec<(TestAddress, Vec<u8>)> {
        if self.node.deadline(now) <= now {
            self.node.on_timeout(now);
        }
        let mut datagrams = Vec::new();
        while let Some((route, message)) = self.node.poll_handshake(now, || now.0) {
            datagrams.push((route.remote, message.as_bytes().to_vec()));
        }
        while let Some((id, transmit)) = self.node.poll_transmit(now) {
            let mut datagram = vec![0; self.node.encode_length(id, &transmit)];
            let write = |payload: &Slice, buffer: &mut [u8]| {
                buffer[..payload.bytes().len()].copy_from_slice(payload.bytes());
                payload.offload
            };
            let route = self.node.route(id, transmit.path).cloned();
            if let (true, Some(route)) = (self.node.seal_into(now, id, &transmit, &mut datagram, write), route) {
                datagrams.push((route.remote, datagram));
            }
            assert!(datagrams.len() < MAX_DATAGRAMS, "no end of datagrams");
        }
        datagrams
    }

    /// Writes the packets that have arrived to a device, and checks them.
    pub(super) fn deliver(&mut self, now: Instant) {
        while let Some((id, delivery)) = self.node.poll_delivery() {
            let (Some(reassembler), Some(number)) = (self.reassemblers.get_mut(&id), self.numbers.get(&id)) else {
                continue;
            };
            if let Some(packet) = reassembler.add(&delivery) {
                let Bytes { bytes, offload } = packet.buffer;
                if *offload || !Header::is_message(bytes) {
                    let ids = write_to_device(bytes, *offload, packet.ce, *number, self.number);
                    if *number != HOSTILE {
                        ids.into_iter().for_each(|id| assert!(self.delivered.insert(id), "packet {id} came twice"));
                    }
                }
            }
            self.reassemblers[&id].check();
        }
        while self.node.poll_event(now).is_some() {}
        self.numbers.keys().filter_map(|id| self.node.endpoint(*id)).for_each(machine::Endpoint::check);
    }
}

/// Delivers a packet of a peer, whose source must be that peer's; returns the numbers of the packets for `destination`.
fn write_to_device(bytes: &mut [u8], offload: bool, ce: bool, peer: u8, destination: u8) -> Vec<u32> {
    let mut device = TestDevice { has_header: true, accepts_super_packets: true, ..TestDevice::default() };
    let is_allowed = |source, _| source == inner_address(peer);
    let _ = deliver(bytes, offload, ce, is_allowed, &mut device, &mut [0; MAX_PACKET_BYTES]);
    device.super_packets.iter().for_each(|bytes| check_super_packet(bytes));
    let packets = device.packets.iter().map(Vec::as_slice);
    let packets = packets.chain(device.super_packets.iter().map(|bytes| &bytes[wire::virtio::VirtioNetHeader::LEN..]));
    let id = |packet: &[u8]| {
        let inner = Inner::parse(packet).expect("only IP is written");
        assert_eq!(inner.source, inner_address(peer));
        let id = packet.get(28..32).filter(|_| inner.destination == inner_address(destination))?;
        Some(u32::from_be_bytes(*id.first_chunk()?))
    };
    packets.filter_map(id).collect()
}
