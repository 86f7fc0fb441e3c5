//! Endpoints as hosts of the test network: payloads and datagrams are values.

use ropewalk_machine::{
    Arrival, Delivery, Endpoint, EndpointEvent, Entropy, Fragment, Payload, Reassembler, Transmit, TransmitBody,
    TunnelOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use testnet::{LinkConfig, PATH_CONFIG};
use units::{Instant, PathId, RngStream, Span};
use wire::frame::Frame;

/// Bytes `start` to `end` of inner packet `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) id: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Length of the whole packet.
    pub(crate) length: u32,
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        self.end - self.start
    }
    fn slice(&self, start: u32, end: u32) -> Self {
        assert!(start <= end && end <= self.len());
        Self { start: self.start + start, end: self.start + end, ..*self }
    }
    fn signal_congestion(&mut self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
enum Body {
    Data(Fragment<Bytes>),
    Bundle(Vec<Frame>, Vec<Fragment<Bytes>>),
    Frames(Vec<Frame>),
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    packet_number: u64,
    body: Body,
}

/// An endpoint, and the packets that it has delivered.
#[derive(Debug)]
pub(crate) struct TestHost {
    /// Time by which the host's clock is ahead of the simulation's.
    clock_offset: Span,
    pub(crate) endpoint: Endpoint<Bytes>,
    /// Packets delivered: stream, id and time.
    pub(crate) delivered: Vec<(u8, u64, Instant)>,
    reassembler: Reassembler<Vec<Bytes>>,
    pub(crate) events: Vec<(Instant, EndpointEvent)>,
    received: BTreeMap<PathId, BTreeSet<u64>>,
}

pub(crate) type Simulation = testnet::Simulation<TestHost>;

/// Two endpoints over these paths, which take bundles if the seed is even; the second one's clock is ahead of the first
/// one's.
pub(crate) fn simulation(
    seed: u64,
    links: Vec<[LinkConfig; 2]>,
    options: &TunnelOptions,
    clock_offset: Span,
) -> Simulation {
    let paths = links.len() as u16;
    let host = |index, clock_offset| {
        let mut host = TestHost { clock_offset, ..TestHost::new(options, 2 * seed + index, paths) };
        host.endpoint.set_bundling(seed.is_multiple_of(2));
        host
    };
    Simulation::new(seed, links, [host(0, Span::ZERO), host(1, clock_offset)])
}

/// Offers an inner packet to a host.
pub(crate) fn offer(simulation: &mut Simulation, host: usize, stream: u8, id: u64, length: u32) {
    simulation.with_host(host, |host, now| {
        host.endpoint.offer(now + host.clock_offset, stream, Bytes { id, start: 0, end: length, length });
    });
}

impl TestHost {
    pub(crate) fn new(options: &TunnelOptions, seed: u64, paths: u16) -> Self {
        let mut endpoint =
            Endpoint::new(options.endpoint_config(&[], Entropy::seeded(seed)).expect("registered algorithms"));
        (0..paths).for_each(|path| endpoint.set_path(PathId(path), PATH_CONFIG));
        let (reassembler, received) = (Reassembler::default(), BTreeMap::new());
        Self { clock_offset: Span::ZERO, endpoint, delivered: Vec::new(), reassembler, events: Vec::new(), received }
    }

    fn deliver(&mut self, now: Instant, delivery: &Delivery<Bytes>) {
        let stream = delivery.stream;
        assert!(!delivery.first || delivery.payload.start == 0, "a packet begins at its first byte");
        let Some(packet) = self.reassembler.add(delivery) else { return };
        let fragments = &packet.buffer;
        let is_contiguous = |pair: &[Bytes]| (pair[0].id, pair[0].end) == (pair[1].id, pair[1].start);
        assert!(fragments.windows(2).all(is_contiguous), "the fragments of a packet follow each other");
        let Bytes { id, end, length, .. } = fragments[fragments.len() - 1];
        assert_eq!(end, length, "a packet is whole");
        self.delivered.push((stream, id, now));
    }

    /// Datagrams that arrived on a path.
    pub(crate) fn received_count(&self, path: PathId) -> usize {
        self.received.get(&path).map_or(0, BTreeSet::len)
    }

    /// Ids of a stream's delivered packets.
    pub(crate) fn ids(&self, stream: u8) -> Vec<u64> {
        self.delivered
            .iter()
            .filter(|(delivered_stream, _, _)| *delivered_stream == stream)
            .map(|(_, id, _)| *id)
            .collect()
    }
}

impl testnet::Host for TestHost {
    type Datagram = Datagram;

    fn deadline(&self, now: Instant) -> Instant {
        let deadline = self.endpoint.deadline(now + self.clock_offset);
        if deadline == Instant::NEVER { deadline } else { Instant(deadline.0.saturating_sub(self.clock_offset.0)) }
    }

    fn on_timeout(&mut self, now: Instant) {
        self.endpoint.on_timeout(now + self.clock_offset);
    }

    fn receive(&mut self, now: Instant, path: usize, datagram: Datagram) {
        let (now, path) = (now + self.clock_offset, PathId(path as u16));
        if !self.received.entry(path).or_default().insert(datagram.packet_number) {
            return; // as the replay window drops it
        }
        let arrival = Arrival { path, packet_number: datagram.packet_number, ce: false };
        match datagram.body {
            Body::Data(data) => self.endpoint.receive_data(now, arrival, data),
            Body::Bundle(frames, data) => self.endpoint.receive_bundle(now, arrival, &frames, data.into_iter()),
            Body::Frames(frames) => self.endpoint.receive_control(now, arrival, &frames),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(usize, u32, Datagram)> {
        let Transmit { path, packet_number, body: transmit_body, .. } =
            self.endpoint.poll_transmit(now + self.clock_offset)?;
        let (body, bytes) = match transmit_body {
            TransmitBody::Data(data) => {
                let bytes = data.payload.len() + 34;
                (Body::Data(data), bytes)
            }
            TransmitBody::Bundle => {
                let (frames, data) = (self.endpoint.control_frames().to_vec(), self.endpoint.bundle().to_vec());
                let frame_bytes = wire::frame::Bundle::frames_len(frames.iter().map(Frame::len).sum());
                let entry_len = |entry: &Fragment<Bytes>| wire::frame::Bundle::entry_len(entry.payload.len() as usize);
                let bytes = 28 + frame_bytes + data.iter().map(entry_len).sum::<usize>();
                assert!(bytes as u32 <= PATH_CONFIG.max_datagram_size, "{bytes} bytes of a bundle");
                (Body::Bundle(frames, data), bytes as u32)
            }
            TransmitBody::Control { pad_to } => {
                (Body::Frames(self.endpoint.control_frames().to_vec()), pad_to.max(40) + 28)
            }
        };
        Some((path.index(), bytes, Datagram { packet_number, body }))
    }

    fn take_delivered(&mut self, now: Instant) {
        while let Some(delivery) = self.endpoint.poll_delivery() {
            self.deliver(now, &delivery);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push((now, event));
        }
    }

    fn is_drained(&self) -> bool {
        testnet::is_drained(&self.endpoint.status())
    }

    fn memory_bytes(&self) -> u64 {
        testnet::memory_bytes(&self.endpoint.status())
    }

    /// None: the AEAD's tag would not match.
    fn corrupt(_: Datagram, _: &mut RngStream) -> Option<Datagram> {
        None
    }
}
