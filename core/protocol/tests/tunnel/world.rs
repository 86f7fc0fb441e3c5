//! Two endpoints and paths that do what networks do, and worse: they delay, jitter, reorder, lose, duplicate, and stop.

use ropewalk_protocol::tunnel::{
    Arrival, Content, Data, Delivery, Endpoint, Event, PathSetup, Payload, Setup, Transmit,
};
use std::collections::BTreeMap;
use units::{Instant, PathId, Rate, Span, Stream};
use wire::frame::Frame;

/// Some bytes of parcel `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) id: u64,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        self.to - self.from
    }
    fn slice(&self, from: u32, to: u32) -> Self {
        assert!(from <= to && to <= self.len());
        Self { id: self.id, from: self.from + from, to: self.from + to }
    }
    fn signal(&mut self) -> bool {
        true
    }
}

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) rate: Rate,
    pub(crate) delay: Span,
    /// Up to so much more, in any order.
    pub(crate) jitter: Span,
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    /// The queue holds so much time.
    pub(crate) queue: Span,
    /// UDP payload that passes.
    pub(crate) largest: u32,
    pub(crate) down: Option<(Instant, Instant)>,
}

impl Wire {
    pub(crate) fn plain(mbit: u64, delay_ms: u64) -> Self {
        Self {
            rate: Rate::from_mbit(mbit),
            delay: Span::from_millis(delay_ms),
            jitter: Span::ZERO,
            loss: 0.0,
            duplication: 0.0,
            queue: Span::from_millis(100),
            largest: 1500,
            down: None,
        }
    }
}

#[derive(Clone, Debug)]
enum Carried {
    Data(Data<Bytes>),
    Frames(Vec<Frame>),
}

#[derive(Debug)]
struct Datagram {
    path: PathId,
    number: u64,
    content: Carried,
}

/// One end, with what came out of it.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) endpoint: Endpoint<Bytes>,
    /// Whole parcels that came up, by stream: id and time.
    pub(crate) up: Vec<(u8, u64, Instant)>,
    assembly: BTreeMap<u8, (u64, u32)>,
    pub(crate) events: Vec<(Instant, Event)>,
    seen: BTreeMap<PathId, std::collections::BTreeSet<u64>>,
    pub(crate) most_held: u64,
    pub(crate) most_outstanding: u64,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) ends: [End; 2],
    pub(crate) wires: Vec<[Wire; 2]>,
    free_at: Vec<[Instant; 2]>,
    flying: BTreeMap<(Instant, u64), (usize, Datagram)>,
    counter: u64,
    random: Stream,
    lengths: BTreeMap<u64, u32>,
    pub(crate) dropped_by_queue: u64,
    pub(crate) lost: u64,
    pub(crate) datagrams: u64,
}

impl World {
    pub(crate) fn new(seed: u64, wires: Vec<[Wire; 2]>, setup: impl Fn(u64) -> Setup) -> Self {
        let end = |side: u64| End {
            endpoint: Endpoint::new(setup(2 * seed + side)),
            up: Vec::new(),
            assembly: BTreeMap::new(),
            events: Vec::new(),
            seen: BTreeMap::new(),
            most_held: 0,
            most_outstanding: 0,
        };
        let mut world = Self {
            now: Instant::ZERO,
            ends: [end(0), end(1)],
            free_at: vec![[Instant::ZERO; 2]; wires.len()],
            wires,
            flying: BTreeMap::new(),
            counter: 0,
            random: Stream::named(seed, "world"),
            lengths: BTreeMap::new(),
            dropped_by_queue: 0,
            lost: 0,
            datagrams: 0,
        };
        for path in 0..world.wires.len() as u16 {
            let setup = PathSetup { backup: false, metered: false, largest: 1472, headers: 28, most: None };
            world.ends.iter_mut().for_each(|end| end.endpoint.set_path(PathId(path), setup));
        }
        world.settle(0);
        world.settle(1);
        world
    }

    pub(crate) fn offer(&mut self, side: usize, stream: u8, id: u64, length: u32) {
        self.lengths.insert(id, length);
        self.ends[side].endpoint.offer(self.now, stream, Bytes { id, from: 0, to: length });
        self.settle(side);
    }

    /// Runs until `until`, or until nothing is left to do.
    pub(crate) fn run(&mut self, until: Instant) {
        loop {
            let arrival = self.flying.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
            let timers = [0, 1].map(|side| self.ends[side].endpoint.deadline(self.now).max(self.now));
            let next = arrival.min(timers[0]).min(timers[1]);
            if next > until {
                self.now = until;
                return;
            }
            if next == self.now {
                self.counter += 1;
            }
            self.now = next;
            if arrival == next {
                let (_, (side, datagram)) = self.flying.pop_first().expect("there is one");
                self.arrive(side, datagram);
                self.settle(side);
            } else {
                let side = usize::from(timers[1] < timers[0]);
                self.ends[side].endpoint.on_timeout(self.now);
                self.settle(side);
            }
        }
    }

    /// Nothing waits, is on its way or held at either end.
    pub(crate) fn is_quiet(&self) -> bool {
        let idle = |end: &End| {
            let status = end.endpoint.status();
            status.outstanding + status.waiting + status.held == 0
        };
        self.ends.iter().all(idle)
    }

    fn arrive(&mut self, side: usize, datagram: Datagram) {
        let end = &mut self.ends[side];
        if !end.seen.entry(datagram.path).or_default().insert(datagram.number) {
            return; // the replay window's work
        }
        let arrival = Arrival { path: datagram.path, number: datagram.number, marked: false };
        match datagram.content {
            Carried::Data(data) => end.endpoint.receive_data(self.now, arrival, data),
            Carried::Frames(frames) => end.endpoint.receive_control(self.now, arrival, &frames),
        }
    }

    fn settle(&mut self, side: usize) {
        while let Some(transmit) = self.ends[side].endpoint.poll_transmit(self.now) {
            self.launch(side, transmit);
        }
        let (now, lengths) = (self.now, &self.lengths);
        let end = &mut self.ends[side];
        while let Some(delivery) = end.endpoint.poll_delivery() {
            end.assemble(now, &delivery, lengths);
        }
        while let Some(event) = end.endpoint.poll_event() {
            end.events.push((now, event));
        }
        let status = end.endpoint.status();
        end.most_held = end.most_held.max(status.held);
        end.most_outstanding = end.most_outstanding.max(status.outstanding);
    }

    fn launch(&mut self, side: usize, transmit: Transmit<Bytes>) {
        self.datagrams += 1;
        let (content, bytes) = match transmit.content {
            Content::Data(data) => {
                let bytes = data.payload.len() + 34;
                (Carried::Data(data), bytes)
            }
            Content::Control { pad_to } => {
                (Carried::Frames(self.ends[side].endpoint.control().to_vec()), pad_to.max(40) + 28)
            }
        };
        let index = transmit.path.index();
        let wire = self.wires[index][side];
        let is_down = wire.down.is_some_and(|(from, to)| (from..to).contains(&self.now));
        if is_down || bytes > wire.largest || self.random.chance(wire.loss) {
            self.lost += 1;
            return;
        }
        let start = self.free_at[index][side].max(self.now);
        if start.since(self.now) > wire.queue {
            self.dropped_by_queue += 1;
            return;
        }
        let departure = start + wire.rate.time_for(u64::from(bytes + 28));
        self.free_at[index][side] = departure;
        let copies = 1 + u64::from(self.random.chance(wire.duplication));
        for _ in 0..copies {
            let jitter = Span(self.random.below(wire.jitter.0 + 1));
            self.counter += 1;
            let datagram = Datagram { path: transmit.path, number: transmit.number, content: content.clone() };
            self.flying.insert((departure + wire.delay + jitter, self.counter), (1 - side, datagram));
        }
    }
}

impl End {
    fn assemble(&mut self, now: Instant, delivery: &Delivery<Bytes>, lengths: &BTreeMap<u64, u32>) {
        let Bytes { id, from, to } = delivery.payload;
        if delivery.first && delivery.last {
            assert_eq!((from, to), (0, lengths[&id]), "a parcel is whole");
            return self.up.push((delivery.stream, id, now));
        }
        if delivery.first {
            assert_eq!(from, 0, "a parcel begins at its beginning");
            self.assembly.insert(delivery.stream, (id, 0));
        }
        if delivery.gap && !delivery.first {
            self.assembly.remove(&delivery.stream);
        }
        let Some(part) = self.assembly.get_mut(&delivery.stream) else { return };
        assert_eq!(*part, (id, from), "the pieces of a parcel come one after another");
        part.1 = to;
        if delivery.last {
            assert_eq!(to, lengths[&id], "a parcel is whole");
            self.assembly.remove(&delivery.stream);
            self.up.push((delivery.stream, id, now));
        }
    }

    /// Ids that came up in a stream.
    pub(crate) fn ids(&self, stream: u8) -> Vec<u64> {
        self.up.iter().filter(|(of, _, _)| *of == stream).map(|(_, id, _)| *id).collect()
    }
}

/// The daemon's defaults, with this congestion control.
pub(crate) fn setup(congestion: &str, scheduler: &str, repair: bool, order: bool, seed: u64) -> Setup {
    let none = BTreeMap::new();
    let controller = (congestion != "off")
        .then(|| control::registry::find(congestion).expect("registered").controller(&none).expect("has defaults"));
    Setup {
        scheduler: schedule::find(scheduler).expect("registered").scheduler(&[], 0, &none).expect("has defaults"),
        controller,
        repair,
        order,
        deliver_late: false,
        hold_most: Span::from_millis(500),
        probe: Span::from_millis(200),
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        memory: 64 << 20,
        seed,
    }
}
