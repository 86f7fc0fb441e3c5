//! Endpoints at the ends of paths.

use crate::packet::{Direction, Packet};
use crate::store::Plain;
use crate::tap::Tap;
use crate::topology::Topology;
use crate::world::{Due, Sent, World};
use link::{EcnField, Packet as _};
use std::collections::BTreeMap;
use std::fmt::Debug;
use units::{Instant, Span};

/// What stands at the end of paths: a machine without a clock and sockets.
pub trait Endpoint {
    /// What its packets carry.
    type Content: Clone + Debug;

    /// The time at which [`on_timeout`](Self::on_timeout) is due: at once if it is past, and never if it is
    /// [`Instant::NEVER`]. It is read before the run and after each call.
    fn deadline(&self, now: Instant) -> Instant;

    /// The deadline has come.
    fn on_timeout(&mut self, outbox: &mut Outbox<'_, Self::Content>);

    /// A packet has crossed a path.
    fn receive(&mut self, arrival: Arrival<Self::Content>, outbox: &mut Outbox<'_, Self::Content>);
}

impl<E: Endpoint + ?Sized> Endpoint for Box<E> {
    type Content = E::Content;

    fn deadline(&self, now: Instant) -> Instant {
        (**self).deadline(now)
    }

    fn on_timeout(&mut self, outbox: &mut Outbox<'_, Self::Content>) {
        (**self).on_timeout(outbox);
    }

    fn receive(&mut self, arrival: Arrival<Self::Content>, outbox: &mut Outbox<'_, Self::Content>) {
        (**self).receive(arrival, outbox);
    }
}

/// A packet that has reached an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<C> {
    /// The path that it has crossed.
    pub path: u16,
    /// Its flow.
    pub flow: u16,
    /// Size with all headers but the link layer's, bytes.
    pub bytes: u32,
    /// The ECN field.
    pub ecn: EcnField,
    /// What it carries.
    pub content: C,
}

/// A packet that an endpoint sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<C> {
    /// The path, of which the endpoint is an end.
    pub path: u16,
    /// Its flow, by which queue disciplines classify.
    pub flow: u16,
    /// Size with all headers but the link layer's, bytes.
    pub bytes: u32,
    /// The ECN field.
    pub ecn: EcnField,
    /// What it carries.
    pub content: C,
}

impl<C> Outgoing<C> {
    /// A packet of flow 0 that is not ECN-capable.
    pub fn new(path: u16, bytes: u32, content: C) -> Self {
        Self { path, flow: 0, bytes, ecn: EcnField::NotEct, content }
    }
}

/// The world below endpoints.
pub type HostsWorld<C> = World<Plain<C>, Box<dyn Tap<C>>>;

/// Packets that arrive without crossing a path, by arrival and the order in which they were sent.
#[derive(Debug)]
struct Posted<C> {
    arrivals: BTreeMap<(Instant, u64), (usize, Arrival<C>)>,
    sent: u64,
}

/// What an endpoint may do with the network while it is called.
#[derive(Debug)]
pub struct Outbox<'a, C: Clone + Debug> {
    world: &'a mut HostsWorld<C>,
    posted: &'a mut Posted<C>,
    ends: &'a [[usize; 2]],
    host: usize,
}

impl<C: Clone + Debug> Outbox<'_, C> {
    /// The present time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.world.now
    }

    /// Sends a packet.
    ///
    /// # Panics
    /// If the endpoint is at neither end of the path.
    pub fn send(&mut self, outgoing: Outgoing<C>) -> Sent {
        let Outgoing { path, flow, bytes, ecn, content } = outgoing;
        let end = self.ends[usize::from(path)].iter().position(|end| *end == self.host);
        let direction = match end {
            Some(0) => Direction::Forward,
            Some(_) => Direction::Reverse,
            None => panic!("endpoint {} is at no end of path {path}", self.host),
        };
        self.world.send(path, Packet::new(content, flow, 0, direction), bytes, ecn, true)
    }

    /// Lets a packet arrive at an endpoint after `delay`, without crossing a path: for networks that are only delays, and
    /// for what an attacker or another path lets arrive. A tap does not see it.
    pub fn post(&mut self, host: usize, delay: Span, arrival: Arrival<C>) {
        self.posted.arrivals.insert((self.world.now + delay, self.posted.sent), (host, arrival));
        self.posted.sent += 1;
    }
}

/// A network with endpoints.
#[derive(Debug)]
pub struct Hosts<E: Endpoint> {
    /// The endpoints. To let one send, [call](Self::call) it.
    pub hosts: Vec<E>,
    world: HostsWorld<E::Content>,
    posted: Posted<E::Content>,
    /// The endpoints at the ends of each path: its forward direction leads from the first to the second.
    ends: Vec<[usize; 2]>,
}

impl<E: Endpoint> Hosts<E> {
    /// A network with these endpoints, of which each path joins two.
    ///
    /// # Panics
    /// If there are not as many pairs of ends as paths.
    #[must_use]
    pub fn new(topology: Topology, ends: Vec<[usize; 2]>, hosts: Vec<E>) -> Self {
        assert_eq!(topology.paths(), ends.len(), "two ends for each path");
        let world = World::new(topology, hosts.len() as u32 + 1, Plain::default());
        let posted = Posted { arrivals: BTreeMap::new(), sent: 0 };
        let mut it = Self { hosts, world, posted, ends };
        (0..it.hosts.len()).for_each(|host| it.set_timer(host));
        it
    }

    /// Sets the tap, before the first packet.
    pub fn set_tap(&mut self, tap: impl Tap<E::Content> + 'static) {
        self.world.set_tap(Box::new(tap));
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.world.now
    }

    /// The network, for its counters and for changes of its pipes.
    pub fn world(&mut self) -> &mut HostsWorld<E::Content> {
        &mut self.world
    }

    /// Calls an endpoint, which may send.
    pub fn call<R>(&mut self, host: usize, call: impl FnOnce(&mut E, &mut Outbox<'_, E::Content>) -> R) -> R {
        let mut outbox = Outbox { world: &mut self.world, posted: &mut self.posted, ends: &self.ends, host };
        let result = call(&mut self.hosts[host], &mut outbox);
        self.set_timer(host);
        self.set_post_timer();
        result
    }

    fn set_timer(&mut self, host: usize) {
        let now = self.world.now;
        self.world.schedule(host as u32, self.hosts[host].deadline(now).max(now));
    }

    /// Sets the timer after those of the endpoints.
    fn set_post_timer(&mut self) {
        if let Some(entry) = self.posted.arrivals.first_entry() {
            self.world.schedule(self.hosts.len() as u32, entry.key().0);
        }
    }

    /// Runs until `end`, which is included.
    pub fn run_until(&mut self, end: Instant) {
        self.world.extend_horizon(end + Span(1));
        while let Some(due) = self.world.next(end) {
            match due {
                Due::Pipe(pipe) => self.serve(pipe),
                Due::Timer(host) if host as usize == self.hosts.len() => self.deliver_posted(),
                Due::Timer(host) => self.wake(host as usize),
            }
        }
        self.world.now = self.world.now.max(end);
    }

    /// Runs for `span`.
    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.world.now + span);
    }

    fn serve(&mut self, pipe: u32) {
        let Some(descriptor) = self.world.serve(pipe) else { return };
        let Packet { content, flow, path, direction, .. } = self.world.slab.remove(descriptor.slot()).clone();
        let arrival = Arrival { path, flow, bytes: descriptor.bytes(), ecn: descriptor.ecn(), content };
        let host = self.ends[usize::from(path)][direction.other() as usize];
        self.call(host, |endpoint, outbox| endpoint.receive(arrival, outbox));
    }

    fn deliver_posted(&mut self) {
        let now = self.world.now;
        if let Some(entry) = self.posted.arrivals.first_entry().filter(|entry| entry.key().0 <= now) {
            let (host, arrival) = entry.remove();
            self.call(host, |endpoint, outbox| endpoint.receive(arrival, outbox));
        }
        self.set_post_timer();
    }

    /// Calls an endpoint whose timer is due, or was when it was set.
    fn wake(&mut self, host: usize) {
        if self.hosts[host].deadline(self.world.now) <= self.world.now {
            return self.call(host, E::on_timeout);
        }
        self.set_timer(host);
    }

    /// Checks that each packet has arrived, is lost or is in a pipe.
    ///
    /// # Panics
    /// If one is not.
    pub fn assert_conserved(&mut self) {
        self.world.assert_conserved(0);
    }
}
