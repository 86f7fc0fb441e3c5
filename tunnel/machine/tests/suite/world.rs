//! Endpoints as ends of a world: payloads are values, and so are datagrams.

use ropewalk_machine::{
    Arrival, Content, Delivery, Endpoint, EndpointEvent, EndpointStatus, Fragment, Payload, Transmit,
};
use std::collections::{BTreeMap, BTreeSet};
use testnet::{Assembly, Kind, PATH, Wire};
use units::{Instant, PathId, Span, Stream};
use wire::frame::Frame;

/// Some bytes of parcel `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) id: u64,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Of the whole parcel.
    pub(crate) length: u32,
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        self.to - self.from
    }
    fn slice(&self, from: u32, to: u32) -> Self {
        assert!(from <= to && to <= self.len());
        Self { from: self.from + from, to: self.from + to, ..*self }
    }
    fn signal_congestion(&mut self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
enum Carried {
    Data(Fragment<Bytes>),
    Frames(Vec<Frame>),
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    number: u64,
    content: Carried,
}

/// One end, with what came out of it.
#[derive(Debug)]
pub(crate) struct End {
    /// What its clock is ahead of the world's.
    ahead: Span,
    pub(crate) endpoint: Endpoint<Bytes>,
    /// Whole parcels that came up, by stream: id and time.
    pub(crate) up: Vec<(u8, u64, Instant)>,
    assembly: Assembly<Bytes>,
    pub(crate) events: Vec<(Instant, EndpointEvent)>,
    seen: BTreeMap<PathId, BTreeSet<u64>>,
}

pub(crate) type World = testnet::World<End>;

/// A world whose ends know all paths, and whose right end's clock is ahead of the left one's.
pub(crate) fn world(seed: u64, wires: Vec<[Wire; 2]>, kind: Kind, ahead: Span) -> World {
    let paths = wires.len() as u16;
    let end = |side, ahead| End { ahead, ..End::new(kind, 2 * seed + side, paths) };
    World::new(seed, wires, [end(0, Span::ZERO), end(1, ahead)])
}

/// A parcel from the device of an end.
pub(crate) fn offer(world: &mut World, side: usize, stream: u8, id: u64, length: u32) {
    world.act(side, |end, now| end.endpoint.offer(now + end.ahead, stream, Bytes { id, from: 0, to: length, length }));
}

impl End {
    pub(crate) fn new(kind: Kind, seed: u64, paths: u16) -> Self {
        let mut endpoint = Endpoint::new(kind.setup(seed));
        (0..paths).for_each(|path| endpoint.set_path(PathId(path), PATH));
        let (assembly, seen) = (Assembly::default(), BTreeMap::new());
        Self { ahead: Span::ZERO, endpoint, up: Vec::new(), assembly, events: Vec::new(), seen }
    }

    fn take_up(&mut self, now: Instant, delivery: Delivery<Bytes>) {
        let stream = delivery.stream;
        assert!(!delivery.first || delivery.payload.from == 0, "a parcel begins at its beginning");
        let follows = |before: &Bytes, next: &Bytes| (before.id, before.to) == (next.id, next.from);
        let Some(pieces) = self.assembly.push(delivery, follows) else { return };
        let Bytes { id, to, length, .. } = pieces[pieces.len() - 1];
        assert_eq!(to, length, "a parcel is whole");
        self.up.push((stream, id, now));
    }

    /// Ids that came up in a stream.
    pub(crate) fn ids(&self, stream: u8) -> Vec<u64> {
        self.up.iter().filter(|(of, _, _)| *of == stream).map(|(_, id, _)| *id).collect()
    }
}

impl testnet::End for End {
    type Datagram = Datagram;

    fn deadline(&self, now: Instant) -> Instant {
        let due = self.endpoint.deadline(now + self.ahead);
        if due == Instant::NEVER { due } else { Instant(due.0.saturating_sub(self.ahead.0)) }
    }

    fn on_timeout(&mut self, now: Instant) {
        self.endpoint.on_timeout(now + self.ahead);
    }

    fn receive(&mut self, now: Instant, path: usize, datagram: Datagram) {
        let (now, path) = (now + self.ahead, PathId(path as u16));
        if !self.seen.entry(path).or_default().insert(datagram.number) {
            return; // the replay window's work
        }
        let arrival = Arrival { path, packet_number: datagram.number, ce: false };
        match datagram.content {
            Carried::Data(data) => self.endpoint.receive_data(now, arrival, data),
            Carried::Frames(frames) => self.endpoint.receive_control(now, arrival, &frames),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(usize, u32, Datagram)> {
        let Transmit { path, packet_number: number, content } = self.endpoint.poll_transmit(now + self.ahead)?;
        let (content, bytes) = match content {
            Content::Data(data) => {
                let bytes = data.payload.len() + 34;
                (Carried::Data(data), bytes)
            }
            Content::Control { pad_to } => (Carried::Frames(self.endpoint.control().to_vec()), pad_to.max(40) + 28),
        };
        Some((path.index(), bytes, Datagram { number, content }))
    }

    fn collect(&mut self, now: Instant) {
        while let Some(delivery) = self.endpoint.poll_delivery() {
            self.take_up(now, delivery);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push((now, event));
        }
    }

    fn status(&self) -> EndpointStatus {
        self.endpoint.status()
    }

    /// The seal breaks.
    fn corrupt(_: Datagram, _: &mut Stream) -> Option<Datagram> {
        None
    }
}
