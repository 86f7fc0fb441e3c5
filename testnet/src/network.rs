//! Packets in transit between two hosts. Each path has one pipe per direction.

use crate::LinkConfig;
use link::EcnField;
use std::collections::BTreeMap;
use std::fmt::Debug;
use units::{Instant, RngStream, Span};
use world::{Direction, Due, Packet, Plain, Topology, World};

/// A packet that arrives.
#[derive(Clone, Debug)]
pub struct Arrival<D> {
    /// The receiving host, 0 or 1.
    pub host: usize,
    /// The path.
    pub path: usize,
    /// The packet.
    pub datagram: D,
}

/// A packet in a pipe.
#[derive(Clone, Debug)]
struct InPipe<D> {
    /// Sequence number of sending, which orders simultaneous arrivals.
    number: u64,
    /// The extra delay of each copy that arrives.
    copies: Vec<Span>,
    datagram: D,
}

/// The network between two hosts.
#[derive(Debug)]
pub struct Network<D: Clone + Debug> {
    /// The paths: `links[path][host]` carries what `host` sends. It may be changed at any time.
    pub links: Vec<[LinkConfig; 2]>,
    /// Pipe `2 path + host` carries what `host` sends on `path`.
    world: World<Plain<InPipe<D>>>,
    /// The configuration that the pipes have now.
    applied_links: Vec<[LinkConfig; 2]>,
    /// Packets that have left their pipes, by arrival.
    arrivals: BTreeMap<(Instant, u64, usize), Arrival<D>>,
    /// Packets sent so far.
    sent_packets: u64,
    rng: RngStream,
}

impl<D: Clone + Debug> Network<D> {
    /// An empty network over these paths.
    #[must_use]
    pub fn new(seed: u64, links: Vec<[LinkConfig; 2]>) -> Self {
        let mut topology = Topology::default();
        for directions in &links {
            let mut add = |link: &LinkConfig| topology.add_pipe(&link.pipe_config(), RngStream::named(seed, "pipe"));
            let pipes = directions.each_ref().map(|link| vec![add(link)]);
            topology.add_path(pipes);
        }
        Self {
            applied_links: links.clone(),
            links,
            world: World::new(topology, 0, Plain::default()),
            arrivals: BTreeMap::new(),
            sent_packets: 0,
            rng: RngStream::named(seed, "network"),
        }
    }

    /// Sends a packet from the host and path of `source`; its copies arrive with these extra delays after the pipe.
    pub fn send_copies(&mut self, now: Instant, source: (usize, usize), bytes: u32, datagram: D, copies: Vec<Span>) {
        let (host, path) = source;
        self.world.now = now;
        self.apply_link_config(host, path);
        self.sent_packets += 1;
        let direction = if host == 0 { Direction::Forward } else { Direction::Reverse };
        let content = InPipe { number: self.sent_packets, copies, datagram };
        self.world.send(path as u16, Packet::new(content, 0, 0, direction), bytes, EcnField::NotEct, true);
    }

    /// Sends a packet from the host and path of `source`, which the link may lose, delay, duplicate or corrupt.
    /// `corrupt` flips a bit, or returns `None` if the receiver would ignore the packet. Returns whether the packet was
    /// corrupted.
    pub fn send(
        &mut self,
        now: Instant,
        source: (usize, usize),
        bytes: u32,
        datagram: D,
        corrupt: impl FnOnce(D, &mut RngStream) -> Option<D>,
    ) -> bool {
        let link = self.links[source.1][source.0];
        if link.is_down(now) || bytes > link.mtu || self.rng.chance(link.loss) {
            return false;
        }
        let is_corrupted = self.rng.chance(link.corruption);
        let datagram = if is_corrupted { corrupt(datagram, &mut self.rng) } else { Some(datagram) };
        if let Some(datagram) = datagram {
            let copies = 1 + u64::from(self.rng.chance(link.duplication));
            let copies = (0..copies).map(|_| Span(self.rng.below(link.reordering.0 + 1))).collect();
            self.send_copies(now, source, bytes, datagram, copies);
        }
        is_corrupted
    }

    /// Applies a changed rate or delay to the pipe.
    fn apply_link_config(&mut self, host: usize, path: usize) {
        let link = self.links[path][host];
        let previous = std::mem::replace(&mut self.applied_links[path][host], link);
        if (link.rate, link.delay) == (previous.rate, previous.delay) {
            return;
        }
        self.world.change((2 * path + host) as u32, |pipe, now| {
            if let Some(rate) = link.rate.filter(|_| link.rate != previous.rate) {
                pipe.set_rate(now, rate);
            }
            if link.delay != previous.delay {
                pipe.set_delay(now, link.delay);
            }
        });
    }

    /// Lets a packet arrive at `now`, without crossing a link.
    pub fn inject(&mut self, now: Instant, arrival: Arrival<D>) {
        self.sent_packets += 1;
        self.arrivals.insert((now, self.sent_packets, 0), arrival);
    }

    /// When a packet leaves a pipe or arrives next; [`Instant::NEVER`] if none is in transit.
    pub fn next_event_time(&mut self) -> Instant {
        let arrival = self.arrivals.first_entry().map_or(Instant::NEVER, |entry| entry.key().0);
        self.world.next_at().min(arrival)
    }

    /// The next packet that has arrived by `now`, if any.
    pub fn receive(&mut self, now: Instant) -> Option<Arrival<D>> {
        while let Some(due) = self.world.next(now) {
            let Due::Pipe(pipe) = due else { continue };
            let Some(descriptor) = self.world.serve(pipe) else { continue };
            let (host, path) = (1 - pipe as usize % 2, pipe as usize / 2);
            let InPipe { number, copies, datagram } = self.world.slab.remove(descriptor.slot()).content.clone();
            for (copy, extra_delay) in copies.into_iter().enumerate() {
                let arrival = Arrival { host, path, datagram: datagram.clone() };
                self.arrivals.insert((self.world.now + extra_delay, number, copy), arrival);
            }
        }
        let entry = self.arrivals.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
