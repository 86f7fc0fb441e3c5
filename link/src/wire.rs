//! The wire: packets in flight to the far end. They have left the transmitter, or are scheduled to leave it.

use crate::config::PipeConfig;
use crate::counters::LinkCounters;
use crate::impairments::{Impairment, Impairments};
use crate::jitter::JitterSource;
use crate::packet::Packet;
use crate::slots::Slots;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Instant, RngStream, Span};

/// Packets in flight, in the order in which they were sent.
///
/// The far end gets packets in that order: jitter, or a delay that gets shorter, lets a packet catch up with its
/// predecessor but not overtake it. Only packets that skip the delay, and all packets if jitter reorders, arrive
/// independently.
#[derive(Debug)]
pub(super) struct Wire<P> {
    delay: Span,
    jitter: JitterSource,
    packets: VecDeque<WirePacket<P>>,
    /// Whether packets have impairments or overtake. Otherwise `first_number` and `overtaking` are not used.
    is_impaired: bool,
    /// Number of the first of `packets`.
    first_number: u64,
    /// Arrivals and numbers of the packets in flight that may overtake others, earliest first.
    overtaking: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Time at which the last packet sent so far arrives.
    pub(super) last_arrival: Instant,
    delay_stage: Option<DelayStage>,
    slots: Option<Slots>,
}

#[derive(Debug)]
struct WirePacket<P> {
    departure: Instant,
    /// Arrival in order. A packet that may overtake arrives earlier, and leaves an empty place until then.
    arrival: Instant,
    /// `None` for a packet that is transmitted but lost, or that has arrived without delay.
    packet: Option<P>,
    impairment: Impairment,
}

impl<P: Packet> WirePacket<P> {
    /// Takes the packet's copy if there is one, and otherwise the packet.
    fn take(&mut self, counters: &mut LinkCounters) -> Option<P> {
        let mut is_corrupted = self.impairment.is_corrupted;
        let mut taken = if std::mem::take(&mut self.impairment.has_copy) && self.packet.is_some() {
            counters.duplicated += 1;
            is_corrupted = self.impairment.is_copy_corrupted;
            self.packet.as_mut().map(P::duplicate)
        } else {
            self.packet.take()
        };
        if let Some(packet) = taken.as_mut().filter(|_| is_corrupted) {
            counters.corrupted += 1;
            packet.corrupt();
        }
        taken
    }
}

/// The delay stage's limit: the arrivals of the packets in it, in order.
#[derive(Debug)]
struct DelayStage {
    limit: usize,
    arrivals: VecDeque<Instant>,
}

impl<P: Packet> Wire<P> {
    pub(super) fn new(config: &PipeConfig, rng: &mut RngStream) -> Self {
        let delay_stage = |limit| DelayStage { limit: limit as usize, arrivals: VecDeque::new() };
        Self {
            delay: config.delay,
            is_impaired: Impairments::new(config).is_some() || config.jitter.reorders || config.slot.is_some(),
            jitter: JitterSource::new(config.jitter),
            packets: VecDeque::new(),
            first_number: 0,
            overtaking: BinaryHeap::new(),
            last_arrival: Instant::ZERO,
            delay_stage: config.wire_limit.map(delay_stage),
            slots: config.slot.map(|slot| Slots::new(slot, RngStream::named(rng.bits(), "slot"))),
        }
    }

    /// Time at which the first packet arrives.
    #[inline]
    pub(super) fn next_arrival(&self) -> Instant {
        let in_order = self.packets.front().map_or(Instant::NEVER, |packet| packet.arrival);
        if self.is_impaired { self.next_impaired_arrival(in_order) } else { in_order }
    }

    #[cold]
    fn next_impaired_arrival(&self, in_order: Instant) -> Instant {
        let overtaking = self.overtaking.peek().map_or(Instant::NEVER, |Reverse((arrival, _))| *arrival);
        let opens_at = self.slots.as_ref().map_or(Instant::ZERO, |slots| slots.opens_at);
        in_order.min(overtaking).max(opens_at)
    }

    /// Whether the delay stage is full at `departure`. It must be called in the order of departures.
    #[inline]
    pub(super) fn is_full(&mut self, departure: Instant) -> bool {
        self.delay_stage.as_mut().is_some_and(|delay_stage| delay_stage.is_full(departure))
    }

    /// Adds a packet that leaves the transmitter at `departure`; `None` for a lost one.
    #[inline]
    pub(super) fn send(&mut self, departure: Instant, packet: Option<P>, impairment: Impairment, rng: &mut RngStream) {
        let number = packet.is_some().then_some(self.first_number + self.packets.len() as u64);
        let arrival = self.arrival_of(departure, impairment.skips_delay, number, rng);
        self.packets.push_back(WirePacket { departure, arrival, packet, impairment });
    }

    /// As [`send`](Self::send), without impairment. A packet that arrives before `horizon` is returned with its
    /// arrival, and is not added.
    #[inline]
    pub(super) fn forward(
        &mut self,
        departure: Instant,
        packet: Option<P>,
        horizon: Instant,
        rng: &mut RngStream,
    ) -> Option<(P, Instant)> {
        let arrival = self.arrival_of(departure, false, packet.is_some().then_some(0), rng);
        if arrival < horizon {
            debug_assert!(self.packets.is_empty(), "those before it arrive before the horizon, too");
            return Some((packet?, arrival));
        }
        self.push(departure, arrival, packet);
        None
    }

    /// Adds a packet without impairment, after all others. Returns whether there are none.
    #[inline]
    pub(super) fn push(&mut self, departure: Instant, arrival: Instant, packet: Option<P>) -> bool {
        let is_first = self.packets.is_empty();
        self.packets.push_back(WirePacket { departure, arrival, packet, impairment: Impairment::default() });
        is_first
    }

    /// Whether packets wait for slots.
    pub(super) fn has_slots(&self) -> bool {
        self.slots.is_some()
    }

    /// Whether jitter lets packets overtake others.
    pub(super) fn reorders(&self) -> bool {
        self.jitter.reorders()
    }

    /// Whether the wire only adds a delay.
    pub(super) fn is_plain(&self) -> bool {
        self.jitter.is_none() && self.delay_stage.is_none() && !self.is_impaired
    }

    /// Arrival of the next packet, on a [plain](Self::is_plain) wire.
    #[inline]
    pub(super) fn plain_arrival_of(&self, departure: Instant) -> Instant {
        (departure + self.delay).max(self.last_arrival)
    }

    /// Removes the first packet that arrives before `horizon`, and returns it with its arrival. Without impairments
    /// only.
    pub(super) fn take_before(&mut self, horizon: Instant) -> Option<(P, Instant)> {
        while self.packets.front()?.arrival < horizon {
            let first = self.packets.pop_front()?;
            if let Some(packet) = first.packet {
                return Some((packet, first.arrival));
            }
        }
        None
    }

    /// Removes the packet that has arrived by `now`.
    #[inline]
    pub(super) fn receive(&mut self, now: Instant, counters: &mut LinkCounters) -> Option<P> {
        if self.is_impaired {
            let packet = self.receive_impaired(now, counters)?;
            self.slots.iter_mut().for_each(|slots| slots.count(now, packet.bytes()));
            return Some(packet);
        }
        while self.next_arrival() <= now {
            let first = self.packets.pop_front()?;
            if first.packet.is_some() {
                return first.packet;
            }
        }
        None
    }

    #[cold]
    fn receive_impaired(&mut self, now: Instant, counters: &mut LinkCounters) -> Option<P> {
        while self.next_arrival() <= now {
            let first = self.overtaking.peek().filter(|Reverse((arrival, _))| *arrival <= now);
            let index = first.map(|Reverse((_, number))| (number - self.first_number) as usize);
            let entry = self.packets.get_mut(index.unwrap_or(0))?;
            let taken = entry.take(counters);
            if entry.packet.is_none() {
                match index {
                    Some(_) => drop(self.overtaking.pop()),
                    None => self.remove_first(),
                }
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    fn remove_first(&mut self) {
        self.packets.pop_front();
        self.first_number += 1;
    }

    /// Packets that will arrive, including those that wait for the transmitter.
    pub(super) fn packets_in_flight(&self) -> u64 {
        self.packets.iter().filter(|packet| packet.packet.is_some()).count() as u64
    }

    /// Time at which the packet before the last `waiting` ones leaves the transmitter, if it has not arrived yet.
    pub(super) fn departure_before(&self, waiting: usize) -> Option<Instant> {
        let index = (self.packets.len() - waiting).checked_sub(1)?;
        Some(self.packets[index].departure)
    }

    /// Removes all packets; returns those that would have arrived.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = P> {
        self.last_arrival = Instant::ZERO;
        self.overtaking.clear();
        if let Some(delay_stage) = &mut self.delay_stage {
            delay_stage.arrivals.clear();
        }
        self.packets.drain(..).filter_map(|packet| packet.packet)
    }

    /// Sets the propagation delay of packets that depart after `now`.
    pub(super) fn set_delay(&mut self, now: Instant, delay: Span, rng: &mut RngStream) {
        self.delay = delay;
        self.redraw_arrivals(now, rng);
    }

    /// Sets new departures, all after `now`, for the last packets, and new arrivals for every packet that departs after
    /// `now`.
    pub(super) fn reschedule(&mut self, now: Instant, departures: &[Instant], rng: &mut RngStream) {
        let first = self.packets.len() - departures.len();
        for (packet, departure) in self.packets.range_mut(first..).zip(departures) {
            packet.departure = *departure;
        }
        self.redraw_arrivals(now, rng);
    }

    /// Draws the jitter of packets that depart after `now` again, still uniform and independent.
    fn redraw_arrivals(&mut self, now: Instant, rng: &mut RngStream) {
        let first = self.packets.partition_point(|packet| packet.departure <= now);
        self.last_arrival = if first == 0 { Instant::ZERO } else { self.packets[first - 1].arrival };
        if let Some(delay_stage) = &mut self.delay_stage {
            delay_stage.arrivals = self
                .packets
                .range(..first)
                .filter(|packet| packet.packet.is_some() && !packet.impairment.skips_delay)
                .map(|packet| packet.arrival)
                .collect();
        }
        let first_number = self.first_number;
        self.overtaking.retain(|Reverse((_, number))| *number < first_number + first as u64);
        for index in first..self.packets.len() {
            let WirePacket { departure, ref packet, impairment, .. } = self.packets[index];
            let number = packet.is_some().then_some(first_number + index as u64);
            self.packets[index].arrival = self.arrival_of(departure, impairment.skips_delay, number, rng);
        }
    }

    /// Arrival in order of a packet, with its number; `None` if it is lost.
    #[inline]
    fn arrival_of(
        &mut self,
        departure: Instant,
        skips_delay: bool,
        number: Option<u64>,
        rng: &mut RngStream,
    ) -> Instant {
        if skips_delay {
            self.overtaking.extend(number.map(|number| Reverse((departure, number))));
            return departure.max(self.last_arrival);
        }
        let arrival = departure + self.jitter.delay(self.delay, rng);
        self.last_arrival = arrival.max(self.last_arrival);
        if let Some(number) = number {
            if self.jitter.reorders() {
                self.overtaking.push(Reverse((arrival, number)));
            }
            if let Some(delay_stage) = &mut self.delay_stage {
                delay_stage.push(if self.jitter.reorders() { arrival } else { self.last_arrival });
            }
        }
        self.last_arrival
    }
}

impl DelayStage {
    /// Adds a packet. Nearly always it is the last one.
    fn push(&mut self, arrival: Instant) {
        let index = self.arrivals.iter().rposition(|other| *other <= arrival).map_or(0, |last| last + 1);
        self.arrivals.insert(index, arrival);
    }

    fn is_full(&mut self, departure: Instant) -> bool {
        while self.arrivals.front().is_some_and(|arrival| *arrival <= departure) {
            self.arrivals.pop_front();
        }
        self.arrivals.len() >= self.limit
    }
}
