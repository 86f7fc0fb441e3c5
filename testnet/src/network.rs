//! Packets in transit between two hosts, over paths of one pipe a direction.

use crate::LinkConfig;
use link::{Packet, Pipe};
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
    /// Number of the packet, which orders arrivals at one instant.
    number: u64,
}

impl Packet for Descriptor {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flow(&self) -> u16 {
        0
    }
    fn ecn_capable(&self) -> bool {
        false
    }
    fn mark(&mut self) {}
}

/// The network between two hosts.
#[derive(Debug)]
pub struct Network<D> {
    /// The paths: `links[path][host]` carries what `host` sends. May be changed at any time.
    pub links: Vec<[LinkConfig; 2]>,
    pipes: Vec<[Pipe<Descriptor>; 2]>,
    /// Packets in pipes, by number, with the extra delay of each copy that arrives: none if the packet is lost.
    in_pipes: BTreeMap<u64, (Vec<Span>, D)>,
    /// The configuration that the pipes have.
    configured: Vec<[LinkConfig; 2]>,
    /// Packets that have left their pipes, by arrival.
    arrivals: BTreeMap<(Instant, u64, usize), Arrival<D>>,
    sent: u64,
    rng: RngStream,
}

impl<D: Clone> Network<D> {
    /// An empty network over these paths.
    #[must_use]
    pub fn new(seed: u64, links: Vec<[LinkConfig; 2]>) -> Self {
        let pipe = |link: LinkConfig| Pipe::new(&link.pipe(), RngStream::named(seed, "pipe"));
        let pipes = links.iter().map(|directions| directions.map(pipe)).collect();
        let configured = links.clone();
        Self {
            links,
            pipes,
            in_pipes: BTreeMap::new(),
            configured,
            arrivals: BTreeMap::new(),
            sent: 0,
            rng: RngStream::named(seed, "network"),
        }
    }

    /// Sends a packet, whose copies arrive with these extra delays behind the pipe.
    pub fn send_copies(&mut self, now: Instant, from: (usize, usize), bytes: u32, datagram: D, copies: Vec<Span>) {
        let (host, path) = from;
        self.configure(now, host, path);
        self.sent += 1;
        self.in_pipes.insert(self.sent, (copies, datagram));
        self.pipes[path][host].offer(now, Descriptor { bytes, number: self.sent });
    }

    /// Sends a packet, which the link may lose, delay, duplicate or corrupt. `corrupt` flips a bit, or returns none if the
    /// receiver would ignore the packet. Returns whether the packet was corrupted.
    pub fn send(
        &mut self,
        now: Instant,
        from: (usize, usize),
        bytes: u32,
        datagram: D,
        corrupt: impl FnOnce(D, &mut RngStream) -> Option<D>,
    ) -> bool {
        let link = self.links[from.1][from.0];
        if link.is_down(now) || bytes > link.mtu || self.rng.chance(link.loss) {
            return false;
        }
        let is_corrupted = self.rng.chance(link.corruption);
        let datagram = if is_corrupted { corrupt(datagram, &mut self.rng) } else { Some(datagram) };
        if let Some(datagram) = datagram {
            let copies = 1 + u64::from(self.rng.chance(link.duplication));
            let copies = (0..copies).map(|_| Span(self.rng.below(link.reordering.0 + 1))).collect();
            self.send_copies(now, from, bytes, datagram, copies);
        }
        is_corrupted
    }

    /// Applies a changed rate or delay to the pipe.
    fn configure(&mut self, now: Instant, host: usize, path: usize) {
        let (link, pipe) = (self.links[path][host], &mut self.pipes[path][host]);
        let old = std::mem::replace(&mut self.configured[path][host], link);
        if let Some(rate) = link.rate.filter(|_| link.rate != old.rate) {
            pipe.set_rate(now, rate);
        }
        if link.delay != old.delay {
            pipe.set_delay(now, link.delay);
        }
    }

    /// Lets a packet arrive at once, past the links.
    pub fn inject(&mut self, now: Instant, arrival: Arrival<D>) {
        self.sent += 1;
        self.arrivals.insert((now, self.sent, 0), arrival);
    }

    /// When a packet leaves a pipe or arrives next; [`Instant::NEVER`] if none is in transit.
    #[must_use]
    pub fn next(&self) -> Instant {
        let pipes = self.pipes.iter().flatten().map(Pipe::next);
        pipes.chain(self.arrivals.keys().next().map(|key| key.0)).min().unwrap_or(Instant::NEVER)
    }

    /// The next packet that has arrived by `now`, if any.
    pub fn receive(&mut self, now: Instant) -> Option<Arrival<D>> {
        for (path, directions) in self.pipes.iter_mut().enumerate() {
            for (host, pipe) in directions.iter_mut().enumerate() {
                while pipe.next() <= now {
                    let at = pipe.next();
                    let Some(Descriptor { number, .. }) = pipe.take(at) else { continue };
                    let Some((copies, datagram)) = self.in_pipes.remove(&number) else { continue };
                    for (copy, extra) in copies.into_iter().enumerate() {
                        let arrival = Arrival { host: 1 - host, path, datagram: datagram.clone() };
                        self.arrivals.insert((at + extra, number, copy), arrival);
                    }
                }
                while let Some(dropped) = pipe.take_discarded() {
                    self.in_pipes.remove(&dropped.number);
                }
            }
        }
        let first = self.arrivals.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }
}
