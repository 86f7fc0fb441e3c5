//! Two hosts with a virtual clock, and the network between them.

use crate::{Arrival, LinkConfig, Network};
use units::{Instant, RngStream, Span};

/// A host of a simulation.
pub trait Host {
    /// A datagram between the hosts.
    type Datagram: Clone;
    /// When [`Host::on_timeout`] is due.
    fn deadline(&self, now: Instant) -> Instant;
    /// A timer has expired.
    fn on_timeout(&mut self, now: Instant);
    /// A datagram arrives on a path.
    fn receive(&mut self, now: Instant, path: usize, datagram: Self::Datagram);
    /// The next datagram to be sent: its path, its UDP payload in bytes, and itself.
    fn poll_transmit(&mut self, now: Instant) -> Option<(usize, u32, Self::Datagram)>;
    /// Takes what the host has delivered; called after everything was sent.
    fn collect(&mut self, _now: Instant) {}
    /// The datagram with a flipped bit; `None` if no host would accept it.
    fn corrupt(datagram: Self::Datagram, rng: &mut RngStream) -> Option<Self::Datagram>;
    /// Whether the datagram's destination on the path is this host.
    fn is_at(&self, _path: usize, _datagram: &Self::Datagram) -> bool {
        true
    }
    /// Whether the host has nothing queued or in flight.
    fn is_drained(&self) -> bool {
        true
    }
    /// Bytes that the host keeps.
    fn memory(&self) -> u64 {
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
    /// A simulation of these hosts, which begin to send.
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
        simulation.poll(0);
        simulation.poll(1);
        simulation
    }

    /// Calls `action` on a host and then polls it.
    pub fn act<T>(&mut self, host: usize, action: impl FnOnce(&mut H, Instant) -> T) -> T {
        let result = action(&mut self.hosts[host], self.now);
        self.poll(host);
        result
    }

    /// Runs for a time.
    pub fn run_for(&mut self, span: Span) {
        self.run(self.now + span);
    }

    /// Runs until an instant.
    pub fn run(&mut self, until: Instant) {
        loop {
            let timers = [0, 1].map(|host| self.hosts[host].deadline(self.now).max(self.now));
            let next = self.network.next().max(self.now).min(timers[0]).min(timers[1]);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if let Some(arrival) = self.network.receive(next) {
                self.arrive(arrival);
            } else if timers.contains(&next) {
                self.act(usize::from(timers[1] < timers[0]), H::on_timeout);
            }
        }
    }

    /// Runs until both hosts are drained.
    ///
    /// # Panics
    /// If that takes longer than `max`.
    pub fn assert_drained_within(&mut self, max: Span) {
        let end = self.now + max;
        while !self.hosts.iter().all(H::is_drained) {
            assert!(self.now < end, "seed {}: a host is not drained", self.seed);
            self.run_for(Span::from_secs(1));
        }
    }

    /// Asserts that no host keeps more than `max` bytes.
    ///
    /// # Panics
    /// If one does.
    pub fn assert_memory(&self, max: u64) {
        let memory = self.hosts.each_ref().map(H::memory);
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

    fn arrive(&mut self, arrival: Arrival<H::Datagram>) {
        if self.recorded.len() < 200 && self.rng.chance(0.02) {
            self.recorded.push(arrival.clone());
        }
        let Arrival { host, path, datagram } = arrival;
        self.act(host, |host, now| host.receive(now, path, datagram));
    }

    /// Sends what a host has to send and takes what it has delivered.
    fn poll(&mut self, host: usize) {
        while let Some((path, bytes, datagram)) = self.hosts[host].poll_transmit(self.now) {
            self.sent[host][path] += 1;
            if self.hosts[1 - host].is_at(path, &datagram) {
                let corrupted = self.network.send(self.now, (host, path), bytes, datagram, H::corrupt);
                self.corrupted += u64::from(corrupted);
            }
        }
        self.hosts[host].collect(self.now);
    }
}
