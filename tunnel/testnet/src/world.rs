//! The world: two ends, the wires between them, and what is on its way.

use crate::Wire;
use crate::draw::MEMORY;
use machine::EndpointStatus;
use std::collections::BTreeMap;
use units::{Instant, Span, Stream};

/// One end of a world: a machine, and whoever drives it.
pub trait End {
    /// What goes over the wires.
    type Datagram: Clone;
    /// When [`End::on_timeout`] is due.
    fn deadline(&self, now: Instant) -> Instant;
    /// Time has passed.
    fn on_timeout(&mut self, now: Instant);
    /// A datagram arrives on a path.
    fn receive(&mut self, now: Instant, path: usize, datagram: Self::Datagram);
    /// A datagram to be sent on a path, and its UDP payload in bytes.
    fn poll_transmit(&mut self, now: Instant) -> Option<(usize, u32, Self::Datagram)>;
    /// Takes what came up, after all that was to be sent.
    fn collect(&mut self, now: Instant);
    /// Its endpoint in numbers.
    fn status(&self) -> EndpointStatus;
    /// The datagram with a fault in it; `None` if nobody would take it.
    fn corrupt(datagram: Self::Datagram, random: &mut Stream) -> Option<Self::Datagram>;
    /// This end is where the datagram is sent to.
    fn is_at(&self, _path: usize, _datagram: &Self::Datagram) -> bool {
        true
    }
}

/// Who is to receive a datagram, on which path.
type Arrival<D> = (usize, usize, D);

/// Two ends and a network.
#[derive(Debug)]
pub struct World<E: End> {
    /// The time.
    pub now: Instant,
    /// The ends.
    pub ends: [E; 2],
    /// The paths: what each end sends on them meets its own wire.
    pub wires: Vec<[Wire; 2]>,
    free_at: Vec<[Instant; 2]>,
    flying: BTreeMap<(Instant, u64), Arrival<E::Datagram>>,
    /// Some that arrived, for whoever wants to send them again.
    recorded: Vec<Arrival<E::Datagram>>,
    counter: u64,
    seed: u64,
    random: Stream,
    /// Datagrams that each end sent on each path.
    pub launched: [Vec<u64>; 2],
    /// Datagrams that arrived with a fault, or not at all because of it.
    pub corrupted: u64,
    /// Datagrams that somebody sent again.
    pub replayed: u64,
}

/// Milliseconds after the beginning.
#[must_use]
pub fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::from_millis(n)
}

impl<E: End> World<E> {
    /// A world with these ends, which begin to send.
    #[must_use]
    pub fn new(seed: u64, wires: Vec<[Wire; 2]>, ends: [E; 2]) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            ends,
            free_at: vec![[Instant::ZERO; 2]; wires.len()],
            launched: [0, 1].map(|_| vec![0; wires.len()]),
            wires,
            flying: BTreeMap::new(),
            recorded: Vec::new(),
            counter: 0,
            seed,
            random: Stream::named(seed, "network"),
            corrupted: 0,
            replayed: 0,
        };
        world.settle(0);
        world.settle(1);
        world
    }

    /// Does something at an end, and what follows from it.
    pub fn act<T>(&mut self, side: usize, what: impl FnOnce(&mut E, Instant) -> T) -> T {
        let result = what(&mut self.ends[side], self.now);
        self.settle(side);
        result
    }

    /// Runs so long.
    pub fn run_for(&mut self, span: Span) {
        self.run(self.now + span);
    }

    /// Runs until then.
    pub fn run(&mut self, until: Instant) {
        loop {
            let arrival = self.flying.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
            let timers = [0, 1].map(|side| self.ends[side].deadline(self.now).max(self.now));
            let next = arrival.min(timers[0]).min(timers[1]);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if arrival == next {
                self.arrive();
            } else {
                self.act(usize::from(timers[1] < timers[0]), E::on_timeout);
            }
        }
    }

    /// Runs until nothing waits, is on its way or held at either end.
    ///
    /// # Panics
    /// If that takes longer than `most`.
    pub fn assert_quiet_within(&mut self, most: Span) {
        let quiet = |status: EndpointStatus| {
            status.fragments_in_flight + status.ingress_packets + status.reorder_fragments == 0
        };
        let last = self.now + most;
        while !self.ends.iter().map(E::status).all(quiet) {
            assert!(self.now < last, "seed {}: nothing is left: {:?}", self.seed, self.ends.each_ref().map(E::status));
            self.run_for(Span::from_secs(1));
        }
    }

    /// Asserts that no end keeps more than its setup allows.
    ///
    /// # Panics
    /// If one does.
    pub fn assert_memory(&self) {
        for status in self.ends.iter().map(E::status) {
            let most = status.ingress_bytes.max(status.reorder_fragments * 1500);
            assert!(most <= MEMORY, "seed {}: memory is bounded: {status:?}", self.seed);
        }
    }

    /// Somebody sends again what was recorded.
    pub fn replay(&mut self) {
        if self.recorded.is_empty() {
            return;
        }
        let index = self.random.below(self.recorded.len() as u64) as usize;
        let datagram = self.recorded[index].clone();
        self.replayed += 1;
        self.fly(self.now, datagram);
    }

    /// Takes the datagram that would arrive last off its way.
    pub fn intercept(&mut self) -> Option<E::Datagram> {
        self.flying.pop_last().map(|(_, (_, _, datagram))| datagram)
    }

    fn arrive(&mut self) {
        let Some((_, (side, path, datagram))) = self.flying.pop_first() else { return };
        if self.recorded.len() < 200 && self.random.chance(0.02) {
            self.recorded.push((side, path, datagram.clone()));
        }
        self.act(side, |end, now| end.receive(now, path, datagram));
    }

    fn settle(&mut self, side: usize) {
        while let Some((path, bytes, datagram)) = self.ends[side].poll_transmit(self.now) {
            self.launch(side, path, bytes, datagram);
        }
        self.ends[side].collect(self.now);
    }

    fn launch(&mut self, side: usize, path: usize, bytes: u32, datagram: E::Datagram) {
        self.launched[side][path] += 1;
        let wire = self.wires[path][side];
        let reachable = self.ends[1 - side].is_at(path, &datagram);
        if !reachable || wire.is_down(self.now) || bytes > wire.largest || self.random.chance(wire.loss) {
            return;
        }
        let start = self.free_at[path][side].max(self.now);
        if start.since(self.now) > wire.queue {
            return;
        }
        let departure = start + wire.rate.time_for(u64::from(bytes + 28));
        self.free_at[path][side] = departure;
        let Some(datagram) = self.perhaps_corrupt(wire.corruption, datagram) else { return };
        for _ in 0..1 + u64::from(self.random.chance(wire.duplication)) {
            let jitter = Span(self.random.below(wire.jitter.0 + 1));
            self.fly(departure + wire.delay + jitter, (1 - side, path, datagram.clone()));
        }
    }

    fn perhaps_corrupt(&mut self, chance: f64, datagram: E::Datagram) -> Option<E::Datagram> {
        if !self.random.chance(chance) {
            return Some(datagram);
        }
        self.corrupted += 1;
        E::corrupt(datagram, &mut self.random)
    }

    fn fly(&mut self, arrival: Instant, datagram: Arrival<E::Datagram>) {
        self.counter += 1;
        self.flying.insert((arrival, self.counter), datagram);
    }
}
