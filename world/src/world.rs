//! The network between the hosts: packets enter a path, cross its pipes and leave at the far end.

use crate::chains::Chains;
use crate::event_queue::EventQueue;
use crate::packet::{Packet, PacketDescriptor, Slab};
use crate::progress::Progress;
use crate::store::Store;
use crate::tap::{LossCause, Step, Tap, Untapped};
use crate::topology::{Hop, Topology};
use link::{EcnField, Forwarded, Packet as _, Pipe, Verdict};
use std::collections::BTreeMap;
use units::Instant;

/// The outcome of sending a packet at its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The packet has left the host, or the time at which it will leave is unknown.
    Away,
    /// The packet leaves the host's own queue at this instant.
    Queued(Instant),
    /// The host's own queue dropped the packet.
    Dropped,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A pipe, which is to be [served](World::serve).
    Pipe(u32),
    /// A timer of the driver.
    Timer(u32),
}

/// Counters of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Pipes and timers that were due.
    pub events: u64,
    /// Packets times the pipes that they have crossed.
    pub packet_hops: u64,
    /// The same of data packets.
    pub data_packet_hops: u64,
}

impl Work {
    /// Counts the pipes that a packet has crossed.
    #[inline]
    fn count(&mut self, packet: PacketDescriptor, crossed: u8) {
        self.packet_hops += u64::from(crossed);
        self.data_packet_hops += if packet.is_data() { u64::from(crossed) } else { 0 };
    }
}

/// The network and the clock.
///
/// A driver sends packets by [`send`](Self::send), sets its timers by [`schedule`](Self::schedule), and takes what is due
/// by [`next`](Self::next). A pipe that is due it [serves](Self::serve), and what that returns has crossed its path: the
/// driver [removes](Slab::remove) it from the slab.
#[derive(Debug)]
pub struct World<S: Store, T = Untapped> {
    /// The present time.
    pub now: Instant,
    /// The packets that are in the network, or that the driver holds.
    pub slab: Slab<S::Content>,
    /// What contents refer to.
    pub store: S,
    /// Counters of work.
    pub work: Work,
    tap: Option<T>,
    topology: Topology,
    event_queue: EventQueue,
    progress: Progress,
    chains: Chains,
    /// Packets are forwarded to times before this one.
    horizon: Instant,
    /// The latest length of each pipe's queue that the tap has seen, packets.
    seen_queues: BTreeMap<u32, u64>,
}

impl<S: Store, T: Tap<S::Content>> World<S, T> {
    /// An empty network, and `timers` timers of its driver that are not set.
    ///
    /// # Panics
    /// With more than 2^20 pipes and timers.
    #[must_use]
    pub fn new(mut topology: Topology, timers: u32, store: S) -> Self {
        let pipes = topology.pipes.len() as u32;
        Self {
            now: Instant::ZERO,
            slab: Slab::default(),
            store,
            work: Work::default(),
            tap: None,
            chains: Chains::new(&mut topology),
            event_queue: EventQueue::new(pipes, pipes + timers),
            progress: Progress::default(),
            topology,
            horizon: Instant::ZERO,
            seen_queues: BTreeMap::new(),
        }
    }

    /// Pipes and paths.
    #[inline]
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The tap, if there is one.
    #[inline]
    pub fn tap(&mut self) -> Option<&mut T> {
        self.tap.as_mut()
    }

    /// Whether there is a tap.
    #[inline]
    #[must_use]
    pub fn is_tapped(&self) -> bool {
        self.tap.is_some()
    }

    /// Sets the tap, before the first packet.
    pub fn set_tap(&mut self, tap: T) {
        (self.tap, self.horizon) = (Some(tap), Instant::ZERO);
    }

    /// Advances the clock to what is due next and returns it; none if nothing is due by `end`.
    #[inline]
    pub fn next(&mut self, end: Instant) -> Option<Due> {
        let (time, id) = self.event_queue.pop_until(end)?;
        debug_assert!(time >= self.now, "time runs forward");
        self.now = time;
        self.work.events += 1;
        let pipes = self.topology.pipes.len() as u32;
        let due = if id < pipes { Due::Pipe(id) } else { Due::Timer(id - pipes) };
        self.progress.check(self.work.events, self.now, &due);
        Some(due)
    }

    /// The time at which something is due next; [`Instant::NEVER`] if nothing is.
    pub fn next_at(&mut self) -> Instant {
        self.event_queue.first()
    }

    /// Sets a timer of the driver, unless it is due earlier.
    #[inline]
    pub fn schedule(&mut self, timer: u32, time: Instant) {
        self.event_queue.schedule(self.topology.pipes.len() as u32 + timer, time);
    }

    /// Sends a packet of `bytes`, with all headers but the link layer's, on a path. It counts as a data packet or not.
    #[inline(always)]
    pub fn send(&mut self, path: u16, packet: Packet<S::Content>, bytes: u32, ecn: EcnField, is_data: bool) -> Sent {
        let descriptor = self.make(packet, bytes, ecn, is_data);
        self.enter(path, descriptor)
    }

    /// As [`send`](Self::send), of a packet that its host holds until it [enters](Self::enter) a path.
    #[inline(always)]
    pub fn make(&mut self, packet: Packet<S::Content>, bytes: u32, ecn: EcnField, is_data: bool) -> PacketDescriptor {
        let flow = packet.flow_hash();
        PacketDescriptor::new(self.slab.insert(packet), bytes, flow, ecn, is_data)
    }

    /// Offers a packet that the driver holds to the first pipe of a path.
    #[inline(never)]
    pub fn enter(&mut self, path: u16, descriptor: PacketDescriptor) -> Sent {
        self.slab.get_mut(descriptor.slot()).path = path;
        if self.tap.is_some() {
            self.show_entry(path, descriptor);
        }
        let (first, verdict) = self.offer_at(self.now, descriptor);
        match verdict {
            _ if !first.is_local => Sent::Away,
            Verdict::Dropped => Sent::Dropped,
            Verdict::Accepted | Verdict::Lost => {
                self.topology.pipes[first.pipe as usize].last_departure().map_or(Sent::Away, Sent::Queued)
            }
        }
    }

    /// Dequeues the packet that is due from a pipe and enqueues it at the next one; returns it if it has crossed its
    /// path.
    #[inline]
    pub fn serve(&mut self, pipe: u32) -> Option<PacketDescriptor> {
        let state = &mut self.topology.pipes[pipe as usize];
        let arrived = state.dequeue_arrived(self.now);
        let (next, has_discarded) = (state.next_event_at(), state.has_discarded());
        self.event_queue.schedule_pipe(pipe, next);
        if has_discarded {
            self.reclaim(pipe);
        }
        let mut descriptor = arrived?;
        if self.tap.is_some() {
            descriptor = self.show_exit(pipe, descriptor);
        }
        if descriptor.is_new_copy() {
            self.separate_copy(&mut descriptor);
        }
        match self.advance(descriptor) {
            Some(next) => {
                self.offer_next(next.pipe, descriptor);
                None
            }
            None if descriptor.is_corrupted() && !self.accepts_corrupted(descriptor) => {
                self.discard(descriptor, None, LossCause::Checksum);
                None
            }
            None => {
                if self.tap.is_some() {
                    self.show_queues(descriptor);
                    self.show(descriptor, Step::Delivered);
                }
                Some(descriptor)
            }
        }
    }

    /// Counts a packet that has crossed a pipe; returns the next one of its path.
    #[inline]
    fn advance(&mut self, descriptor: PacketDescriptor) -> Option<Hop> {
        let &Packet { path, direction, hop, .. } = self.count_hops(descriptor, 1);
        self.topology.hop(path, direction, hop)
    }

    /// Gives a copy, whose original leaves the pipe next, a new slot.
    #[cold]
    fn separate_copy(&mut self, descriptor: &mut PacketDescriptor) {
        let mut packet = self.slab.get(descriptor.slot()).clone();
        self.store.duplicate(&mut packet.content);
        *descriptor = descriptor.separated(self.slab.insert(packet));
    }

    #[cold]
    fn accepts_corrupted(&mut self, descriptor: PacketDescriptor) -> bool {
        self.store.accepts_corrupted(&mut self.slab.get_mut(descriptor.slot()).content)
    }

    /// Changes a pipe, of which no packet was forwarded beyond now: now is before the [horizon](Self::extend_horizon).
    pub fn change<R>(&mut self, pipe: u32, change: impl FnOnce(&mut Pipe<PacketDescriptor>, Instant) -> R) -> R {
        let result = change(&mut self.topology.pipes[pipe as usize], self.now);
        self.settle(pipe);
        result
    }

    /// A pipe, for measurements that change nothing.
    pub fn pipe_mut(&mut self, pipe: u32) -> &mut Pipe<PacketDescriptor> {
        &mut self.topology.pipes[pipe as usize]
    }

    /// Checks that packets are conserved: each that was offered to a pipe has left it or is still in it, and the slab has
    /// exactly the packets that are in pipes, and `held` more that the driver holds.
    ///
    /// # Panics
    /// If packets are not conserved: a mistake of this crate, or of its driver.
    pub fn assert_conserved(&mut self, held: u64) {
        (0..self.topology.pipes.len() as u32).for_each(|pipe| self.settle(pipe));
        let inside: u64 = self.topology.pipes.iter().map(Pipe::packets_inside).sum();
        assert_eq!(self.slab.packets(), inside + held, "packets in the slab, packets in pipes and held");
        for (index, pipe) in self.topology.pipes.iter().enumerate() {
            let counters = pipe.counters();
            assert_eq!(
                counters.offered + counters.duplicated,
                counters.delivered + counters.dropped + counters.lost + pipe.packets_inside(),
                "pipe {index} does not conserve packets: {counters:?}"
            );
        }
    }

    /// Lets packets, including those in flight, be forwarded to times before `horizon`, which is not earlier than the
    /// previous one. Until then the driver neither changes nor samples a pipe.
    pub fn extend_horizon(&mut self, horizon: Instant) {
        if self.tap.is_some() {
            return;
        }
        self.horizon = horizon;
        for index in 0..self.chains.last_first().len() {
            let pipe = self.chains.last_first()[index];
            while let Some((descriptor, arrival)) = self.topology.pipes[pipe as usize].forward_first(horizon) {
                if self.advance(descriptor).is_some() {
                    self.offer_at(arrival, descriptor);
                }
            }
        }
    }

    /// Offers a packet that has crossed a pipe to the next one.
    #[inline(never)]
    fn offer_next(&mut self, pipe: u32, descriptor: PacketDescriptor) {
        if self.tap.is_some() {
            self.show(descriptor, Step::Enters { pipe });
        }
        self.offer_at(self.now, descriptor);
    }

    /// Offers a packet to the next pipe of its path at a time that may be later than now, and to further ones as far as
    /// pipes forward. Returns the first pipe and its verdict.
    #[inline(always)]
    fn offer_at(&mut self, mut time: Instant, mut descriptor: PacketDescriptor) -> (Hop, Verdict) {
        let packet = self.slab.get_mut(descriptor.slot());
        let (hops, pipes) = self.topology.hops_and_pipes(packet.path, packet.direction);
        let (bytes, horizon, mut crossed) = (descriptor.bytes(), self.horizon, 0);
        let hops = &hops[usize::from(packet.hop)..];
        let (first, mut is_settled) = (hops[0], false);
        let mut hops = hops.iter();
        let (pipe, verdict) = loop {
            let &Hop { pipe, forwards, .. } = hops.next().expect("the last pipe of a path does not forward");
            let state = &mut pipes[pipe as usize];
            if !forwards {
                break match state.enqueue_plain(time, descriptor) {
                    Ok(is_first) => {
                        is_settled = !is_first;
                        (pipe, Verdict::Accepted)
                    }
                    Err(descriptor) => (pipe, state.enqueue_any(time, descriptor)),
                };
            }
            time = match state.forward_plain(time, bytes, horizon) {
                Some(arrival) => arrival,
                None => match state.forward(time, descriptor, horizon) {
                    Forwarded::Arrives(packet, arrival) => {
                        descriptor = packet;
                        arrival
                    }
                    Forwarded::Enqueued(verdict) => break (pipe, verdict),
                },
            };
            crossed += 1;
        };
        packet.hop += crossed;
        self.work.count(descriptor, crossed);
        if !is_settled {
            self.settle(pipe);
        }
        (first, if crossed == 0 { verdict } else { Verdict::Accepted })
    }

    /// Counts the pipes that a packet has crossed.
    #[inline]
    fn count_hops(&mut self, descriptor: PacketDescriptor, crossed: u8) -> &Packet<S::Content> {
        self.work.count(descriptor, crossed);
        let packet = self.slab.get_mut(descriptor.slot());
        packet.hop += crossed;
        packet
    }

    /// Called after each call of a pipe: schedules it, and reclaims the packets that it has discarded.
    #[inline]
    fn settle(&mut self, pipe: u32) {
        let state = &self.topology.pipes[pipe as usize];
        self.event_queue.schedule_pipe(pipe, state.next_event_at());
        if state.has_discarded() {
            self.reclaim(pipe);
        }
    }

    /// Reclaims the packets that a pipe has discarded.
    #[cold]
    fn reclaim(&mut self, pipe: u32) {
        while let Some((descriptor, verdict)) = self.topology.pipes[pipe as usize].take_discarded() {
            let cause = if verdict == Verdict::Dropped { LossCause::Queue } else { LossCause::Link };
            self.discard(descriptor, Some(pipe), cause);
        }
    }

    /// Frees a packet that does not arrive.
    #[cold]
    fn discard(&mut self, descriptor: PacketDescriptor, pipe: Option<u32>, cause: LossCause) {
        if self.tap.is_some() {
            self.show(descriptor, Step::Lost { pipe, cause });
        }
        self.store.discard(self.slab.remove(descriptor.slot()), descriptor.is_data(), cause);
    }

    /// Shows to the tap that a packet enters a path.
    #[cold]
    fn show_entry(&mut self, path: u16, descriptor: PacketDescriptor) {
        let pipe = self.topology.first(path, self.slab.get(descriptor.slot()).direction);
        self.show(descriptor, Step::Sent);
        self.show_queues(descriptor);
        self.show(descriptor, Step::Enters { pipe });
    }

    /// Shows a step to the tap.
    #[cold]
    fn show(&mut self, descriptor: PacketDescriptor, step: Step) {
        if let Some(tap) = &mut self.tap {
            tap.on_step(self.now, self.slab.get(descriptor.slot()), descriptor, step);
        }
    }

    /// Shows to the tap that a packet leaves a pipe, and whether that has marked it.
    #[cold]
    fn show_exit(&mut self, pipe: u32, descriptor: PacketDescriptor) -> PacketDescriptor {
        if descriptor.is_newly_marked() {
            self.show(descriptor, Step::Marked { pipe });
        }
        self.show(descriptor, Step::Leaves { pipe, is_copy: descriptor.is_new_copy() });
        descriptor.without_news()
    }

    /// Shows the queues of the path that a packet enters or has crossed, if they are longer or shorter than before.
    #[cold]
    fn show_queues(&mut self, descriptor: PacketDescriptor) {
        let &Packet { path, direction, .. } = self.slab.get(descriptor.slot());
        for hop in 0..=u8::MAX {
            let Some(Hop { pipe, .. }) = self.topology.hop(path, direction, hop) else { return };
            let packets = self.topology.pipes[pipe as usize].queued_packets(self.now);
            self.settle(pipe);
            let has_changed = self.seen_queues.insert(pipe, packets).unwrap_or(0) != packets;
            if let Some(tap) = self.tap.as_mut().filter(|_| has_changed) {
                tap.on_queue(self.now, pipe, packets);
            }
        }
    }
}
