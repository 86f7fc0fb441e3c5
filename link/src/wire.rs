//! The wire: packets that have left the transmitter, or are scheduled to, in flight to the far end.

use crate::config::PipeConfig;
use std::collections::VecDeque;
use units::{Instant, RngStream, Span};

/// Packets in flight, in order.
///
/// The far end gets packets in the order in which they were sent: jitter, or a delay that gets shorter, lets one
/// catch up with its predecessor but not overtake it.
#[derive(Debug)]
pub(super) struct Wire<P> {
    delay: Span,
    jitter: Span,
    packets: VecDeque<WirePacket<P>>,
    /// Time at which the last packet sent so far arrives.
    last_arrival: Instant,
    delay_stage: Option<DelayStage>,
}

#[derive(Debug)]
struct WirePacket<P> {
    departure: Instant,
    arrival: Instant,
    /// `None` for a packet that is transmitted but lost.
    packet: Option<P>,
}

/// The delay stage's limit: arrivals of the packets in it, in order.
#[derive(Debug)]
struct DelayStage {
    limit: usize,
    arrivals: VecDeque<Instant>,
}

impl<P> Wire<P> {
    pub(super) fn new(config: &PipeConfig) -> Self {
        let delay_stage = |limit| DelayStage { limit: limit as usize, arrivals: VecDeque::new() };
        Self {
            delay: config.delay,
            jitter: config.jitter,
            packets: VecDeque::new(),
            last_arrival: Instant::ZERO,
            delay_stage: config.wire_limit.map(delay_stage),
        }
    }

    /// Time at which the first packet arrives.
    #[inline]
    pub(super) fn next_arrival(&self) -> Instant {
        self.packets.front().map_or(Instant::NEVER, |packet| packet.arrival)
    }

    /// Whether the delay stage is full at `departure`; called in the order of departures.
    #[inline]
    pub(super) fn is_full(&mut self, departure: Instant) -> bool {
        self.delay_stage.as_mut().is_some_and(|delay_stage| delay_stage.is_full(departure))
    }

    /// Adds a packet that leaves the transmitter at `departure`; `None` for one that is lost.
    #[inline]
    pub(super) fn send(&mut self, departure: Instant, packet: Option<P>, rng: &mut RngStream) {
        let arrival = self.arrival_of(departure, packet.is_some(), rng);
        self.packets.push_back(WirePacket { departure, arrival, packet });
    }

    /// Removes the packet that has arrived by `now`.
    #[inline]
    pub(super) fn receive(&mut self, now: Instant) -> Option<P> {
        while self.next_arrival() <= now {
            let first = self.packets.pop_front()?;
            if first.packet.is_some() {
                return first.packet;
            }
        }
        None
    }

    /// Packets that will arrive, those that wait for the transmitter included.
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

    /// Gives the last packets new departures, all after `now`, and every packet that departs after `now` a new arrival.
    pub(super) fn reschedule(&mut self, now: Instant, departures: &[Instant], rng: &mut RngStream) {
        let first = self.packets.len() - departures.len();
        for (packet, departure) in self.packets.range_mut(first..).zip(departures) {
            packet.departure = *departure;
        }
        self.redraw_arrivals(now, rng);
    }

    /// Draws the jitter of packets that depart after `now` again: still uniform and independent.
    fn redraw_arrivals(&mut self, now: Instant, rng: &mut RngStream) {
        let first = self.packets.partition_point(|packet| packet.departure <= now);
        self.last_arrival = if first == 0 { Instant::ZERO } else { self.packets[first - 1].arrival };
        if let Some(delay_stage) = &mut self.delay_stage {
            delay_stage.arrivals = self
                .packets
                .range(..first)
                .filter(|packet| packet.packet.is_some())
                .map(|packet| packet.arrival)
                .collect();
        }
        for index in first..self.packets.len() {
            let (departure, will_arrive) = (self.packets[index].departure, self.packets[index].packet.is_some());
            self.packets[index].arrival = self.arrival_of(departure, will_arrive, rng);
        }
    }

    #[inline]
    fn arrival_of(&mut self, departure: Instant, will_arrive: bool, rng: &mut RngStream) -> Instant {
        let jitter = if self.jitter == Span::ZERO { 0 } else { rng.below(self.jitter.0.saturating_add(1)) };
        self.last_arrival = (departure + self.delay + Span(jitter)).max(self.last_arrival);
        if let (Some(delay_stage), true) = (&mut self.delay_stage, will_arrive) {
            delay_stage.arrivals.push_back(self.last_arrival);
        }
        self.last_arrival
    }
}

impl DelayStage {
    fn is_full(&mut self, departure: Instant) -> bool {
        while self.arrivals.front().is_some_and(|arrival| *arrival <= departure) {
            self.arrivals.pop_front();
        }
        self.arrivals.len() >= self.limit
    }
}
