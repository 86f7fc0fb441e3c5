//! Packets in transit between two hosts. Each path has one pipe per direction.

use crate::LinkConfig;
use link::{EcnField, Packet, Pipe};
use std::collections::BTreeMap;
use units::{Instant, RngStream, Span};

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

/// A packet's descriptor in a pipe.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    bytes: u32,
    /// Sequence number of sending, which orders simultaneous arrivals.
    packet_number: u64,
}

impl Packet for Descriptor {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flow(&self) -> u16 {
        0
    }
    fn ecn(&self) -> EcnField {
        EcnField::NotEct
    }
    fn mark(&mut self) {}
    /// The pipes here have no impairments: [`Network`] itself duplicates and corrupts.
    fn duplicate(&mut self) -> Self {
        *self
    }
    fn corrupt(&mut self) {}
}

/// The network between two hosts.
#[derive(Debug)]
pub struct Network<D> {
    /// The paths: `links[path][host]` carries what `host` sends. It may be changed at any time.
    pub links: Vec<[LinkConfig; 2]>,
    pipes: Vec<[Pipe<Descriptor>; 2]>,
    /// Packets in pipes, by number, with the extra delay of each copy that arrives.
    in_pipes: BTreeMap<u64, (Vec<Span>, D)>,
    /// The configuration that the pipes have now.
    applied_links: Vec<[LinkConfig; 2]>,
    /// Packets that have left their pipes, by arrival.
    arrivals: BTreeMap<(Instant, u64, usize), Arrival<D>>,
    /// Packets sent so far.
    sent_packets: u64,
    rng: RngStream,
}

impl<D: Clone> Network<D> {
    /// An empty network over these paths.
    #[must_use]
    pub fn new(seed: u64, links: Vec<[LinkConfig; 2]>) -> Self {
        let pipe = |link: LinkConfig| Pipe::new(&link.pipe_config(), RngStream::named(seed, "pipe"));
        let pipes = links.iter().map(|directions| directions.map(pipe)).collect();
        let applied_links = links.clone();
        Self {
            links,
            pipes,
            in_pipes: BTreeMap::new(),
            applied_links,
            arrivals: BTreeMap::new(),
            sent_packets: 0,
            rng: RngStream::named(seed, "network"),
        }
    }

    /// Sends a packet from the host and path of `source`; its copies arrive with these extra delays after the pipe.
    pub fn send_copies(&mut self, now: Instant, source: (usize, usize), bytes: u32, datagram: D, copies: Vec<Span>) {
        let (host, path) = source;
        self.apply_link_config(now, host, path);
        self.sent_packets += 1;
        self.in_pipes.insert(self.sent_packets, (copies, datagram));
        self.pipes[path][host].enqueue(now, Descriptor { bytes, packet_number: self.sent_packets });
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
    fn apply_link_config(&mut self, now: Instant, host: usize, path: usize) {
        let (link, pipe) = (self.links[path][host], &mut self.pipes[path][host]);
        let previous = std::mem::replace(&mut self.applied_links[path][host], link);
        if let Some(rate) = link.rate.filter(|_| link.rate != previous.rate) {
            pipe.set_rate(now, rate);
        }
        if link.delay != previous.delay {
            pipe.set_delay(now, link.delay);
        }
    }

    /// Lets a packet arrive at `now`, without crossing a link.
    pub fn inject(&mut self, now: Instant, arrival: Arrival<D>) {
        self.sent_packets += 1;
        self.arrivals.insert((now, self.sent_packets, 0), arrival);
    }

    /// When a packet leaves a pipe or arrives next; [`Instant::NEVER`] if none is in transit.
    #[must_use]
    pub fn next_event_time(&self) -> Instant {
        let pipes = self.pipes.iter().flatten().map(Pipe::next_event_at);
        pipes.chain(self.arrivals.keys().next().map(|key| key.0)).min().unwrap_or(Instant::NEVER)
    }

    /// The next packet that has arrived by `now`, if any.
    pub fn receive(&mut self, now: Instant) -> Option<Arrival<D>> {
        for (path, directions) in self.pipes.iter_mut().enumerate() {
            for (host, pipe) in directions.iter_mut().enumerate() {
                while pipe.next_event_at() <= now {
                    let pipe_exit = pipe.next_event_at();
                    let Some(Descriptor { packet_number, .. }) = pipe.dequeue_arrived(pipe_exit) else { continue };
                    let Some((copies, datagram)) = self.in_pipes.remove(&packet_number) else { continue };
                    for (copy, extra_delay) in copies.into_iter().enumerate() {
                        let arrival = Arrival { host: 1 - host, path, datagram: datagram.clone() };
                        self.arrivals.insert((pipe_exit + extra_delay, packet_number, copy), arrival);
                    }
                }
                while let Some((dropped, _)) = pipe.take_discarded() {
                    self.in_pipes.remove(&dropped.packet_number);
                }
            }
        }
        let entry = self.arrivals.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
