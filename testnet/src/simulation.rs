//! Two hosts with a virtual clock, and the network between them.

use crate::{Arrival, LinkConfig, Network};
use std::fmt::Debug;
use units::{Instant, RngStream, Span};

/// Maximum number of datagrams that are recorded for [`Simulation::replay`].
const MAX_RECORDED: usize = 200;
/// Share of the arriving datagrams that is recorded.
const RECORDED_SHARE: f64 = 0.02;

/// A host of a simulation.
pub trait Host {
    /// A datagram between the hosts.
    type Datagram: Clone + Debug;
    /// Time at which [`Host::on_timeout`] must be called; a past time means at once.
    fn deadline(&self, now: Instant) -> Instant;
    /// A timer has expired.
    fn on_timeout(&mut self, now: Instant);
    /// A datagram arrives on a path.
    fn receive(&mut self, now: Instant, path: usize, datagram: Self::Datagram);
    /// The next datagram to send: path, UDP payload in bytes, datagram.
    fn poll_transmit(&mut self, now: Instant) -> Option<(usize, u32, Self::Datagram)>;
    /// Takes the packets that the host has delivered. It is called after all datagrams have been sent.
    fn take_delivered(&mut self, _now: Instant) {}
    /// The datagram with a flipped bit; `None` if no host would accept it.
    fn corrupt(datagram: Self::Datagram, rng: &mut RngStream) -> Option<Self::Datagram>;
    /// Whether the datagram's destination on the path is this host.
    fn is_destination(&self, _path: usize, _datagram: &Self::Datagram) -> bool {
        true
    }
    /// Whether the host has nothing queued or in flight.
    fn is_drained(&self) -> bool {
        true
    }
    /// Bytes that the host has in its queues.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// Two hosts and a network.
#[derive(Debug)]
pub struct Simulation<H: Host> {
    /// The clock.
    pub now: Instant,
    /// The hosts.
    pub hosts: [H; 2],
    /// The network; `links[path][host]` carries what `host` sends.
    pub network: Network<H::Datagram>,
    /// A sample of the datagrams that arrived, for [`replay`](Self::replay).
    recorded: Vec<Arrival<H::Datagram>>,
    seed: u64,
    rng: RngStream,
    /// Datagrams that each host has sent on each path.
    pub sent: [Vec<u64>; 2],
    /// Datagrams that were corrupted.
    pub corrupted: u64,
    /// Datagrams that were replayed.
    pub replayed: u64,
}

impl<H: Host> Simulation<H> {
    /// A simulation of these hosts, which send their first datagrams at once.
    #[must_use]
    pub fn new(seed: u64, links: Vec<[LinkConfig; 2]>, hosts: [H; 2]) -> Self {
        let mut simulation = Self {
            now: Instant::ZERO,
            hosts,
            sent: [0, 1].map(|_| vec![0; links.len()]),
            network: Network::new(seed, links),
            recorded: Vec::new(),
            seed,
            rng: RngStream::named(seed, "replay"),
            corrupted: 0,
            replayed: 0,
        };
        simulation.transmit_all(0);
        simulation.transmit_all(1);
        simulation
    }

    /// Calls `action` with a host, then sends the datagrams that the host has to send.
    pub fn with_host<T>(&mut self, host: usize, action: impl FnOnce(&mut H, Instant) -> T) -> T {
        let result = action(&mut self.hosts[host], self.now);
        self.transmit_all(host);
        result
    }

    /// Runs for `span`.
    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let deadlines = [0, 1].map(|host| self.hosts[host].deadline(self.now).max(self.now));
            let next = self.network.next_event_time().max(self.now).min(deadlines[0]).min(deadlines[1]);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if let Some(arrival) = self.network.receive(next) {
                self.deliver_to_host(arrival);
            } else if deadlines.contains(&next) {
                self.with_host(usize::from(deadlines[1] < deadlines[0]), H::on_timeout);
            }
        }
    }

    /// Runs until both hosts are drained.
    ///
    /// # Panics
    /// If a host is not drained after `max`.
    pub fn assert_drained_within(&mut self, max: Span) {
        let end = self.now + max;
        while !self.hosts.iter().all(H::is_drained) {
            assert!(self.now < end, "seed {}: a host is not drained", self.seed);
            self.run_for(Span::from_secs(1));
        }
    }

    /// Asserts that no host has more than `max` bytes in its queues.
    ///
    /// # Panics
    /// If a host has.
    pub fn assert_memory(&self, max: u64) {
        let memory = self.hosts.each_ref().map(H::memory_bytes);
        assert!(memory.iter().all(|bytes| *bytes <= max), "seed {}: memory is bounded: {memory:?}", self.seed);
    }

    /// Sends a recorded datagram again.
    pub fn replay(&mut self) {
        if !self.recorded.is_empty() {
            let index = self.rng.below(self.recorded.len() as u64) as usize;
            self.replayed += 1;
            self.network.inject(self.now, self.recorded[index].clone());
        }
    }

    fn deliver_to_host(&mut self, arrival: Arrival<H::Datagram>) {
        if self.recorded.len() < MAX_RECORDED && self.rng.chance(RECORDED_SHARE) {
            self.recorded.push(arrival.clone());
        }
        let Arrival { host, path, datagram } = arrival;
        self.with_host(host, |receiver, now| receiver.receive(now, path, datagram));
    }

    /// Sends the datagrams that a host has to send and takes the packets that it has delivered.
    fn transmit_all(&mut self, host: usize) {
        while let Some((path, bytes, datagram)) = self.hosts[host].poll_transmit(self.now) {
            self.sent[host][path] += 1;
            if self.hosts[1 - host].is_destination(path, &datagram) {
                let is_corrupted = self.network.send(self.now, (host, path), bytes, datagram, H::corrupt);
                self.corrupted += u64::from(is_corrupted);
            }
        }
        self.hosts[host].take_delivered(self.now);
    }
}
