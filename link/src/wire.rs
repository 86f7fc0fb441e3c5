//! The wire: what has left the transmitter, or is scheduled to, on its way to the far end.

use crate::config::PipeConfig;
use std::collections::VecDeque;
use units::{Instant, RngStream, Span};

/// Packets on their way, in order.
///
/// The far end gets packets in the order in which they were sent: jitter, or a delay that gets shorter, lets one
/// catch up with its predecessor but not overtake it.
#[derive(Debug)]
pub(super) struct Wire<P> {
    delay: Span,
    jitter: Span,
    packets: VecDeque<WirePacket<P>>,
    /// When the last packet sent so far arrives.
    last_arrival: Instant,
    delay_stage: Option<DelayStage>,
}

#[derive(Debug)]
struct WirePacket<P> {
    departure: Instant,
    arrival: Instant,
    /// `None` for a packet that will not arrive, but takes its turn at the transmitter.
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

    /// When the first packet arrives.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.packets.front().map_or(Instant::NEVER, |packet| packet.arrival)
    }

    /// Whether as many packets are on the wire at `departure` as may be; asked in the order of departures.
    #[inline]
    pub(super) fn is_full(&mut self, departure: Instant) -> bool {
        self.delay_stage.as_mut().is_some_and(|delay_stage| delay_stage.is_full(departure))
    }

    /// Takes a packet that leaves the transmitter at `departure`; `None` for one that will not arrive.
    #[inline]
    pub(super) fn send(&mut self, departure: Instant, packet: Option<P>, random: &mut RngStream) {
        let arrival = self.arrival_of(departure, packet.is_some(), random);
        self.packets.push_back(WirePacket { departure, arrival, packet });
    }

    /// A packet that arrives by `now`, if any is left.
    #[inline]
    pub(super) fn receive(&mut self, now: Instant) -> Option<P> {
        while self.next() <= now {
            let first = self.packets.pop_front()?;
            if first.packet.is_some() {
                return first.packet;
            }
        }
        None
    }

    /// Packets that will arrive, those at the transmitter included.
    pub(super) fn arriving(&self) -> u64 {
        self.packets.iter().filter(|it| it.packet.is_some()).count() as u64
    }

    /// When the last packet before the last `waiting` ones leaves the transmitter, if it has not arrived yet.
    pub(super) fn departure_before(&self, waiting: usize) -> Option<Instant> {
        let index = (self.packets.len() - waiting).checked_sub(1)?;
        Some(self.packets[index].departure)
    }

    /// Loses everything: the packets that would have arrived.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = P> {
        self.last_arrival = Instant::ZERO;
        if let Some(delay_stage) = &mut self.delay_stage {
            delay_stage.arrivals.clear();
        }
        self.packets.drain(..).filter_map(|it| it.packet)
    }

    /// New propagation delay for what departs after `now`.
    pub(super) fn set_delay(&mut self, now: Instant, delay: Span, random: &mut RngStream) {
        self.delay = delay;
        self.redraw_arrivals(now, random);
    }

    /// Gives the last packets new departures, all after `now`, and everything that departs after `now` a new arrival.
    pub(super) fn reschedule(&mut self, now: Instant, departures: &[Instant], random: &mut RngStream) {
        let first = self.packets.len() - departures.len();
        for (it, departure) in self.packets.range_mut(first..).zip(departures) {
            it.departure = *departure;
        }
        self.redraw_arrivals(now, random);
    }

    /// Jitter is drawn anew: still uniform, still independent.
    fn redraw_arrivals(&mut self, now: Instant, random: &mut RngStream) {
        let first = self.packets.partition_point(|packet| packet.departure <= now);
        self.last_arrival = if first == 0 { Instant::ZERO } else { self.packets[first - 1].arrival };
        if let Some(delay_stage) = &mut self.delay_stage {
            delay_stage.arrivals =
                self.packets.range(..first).filter(|f| f.packet.is_some()).map(|f| f.arrival).collect();
        }
        for index in first..self.packets.len() {
            let (departure, live) = (self.packets[index].departure, self.packets[index].packet.is_some());
            self.packets[index].arrival = self.arrival_of(departure, live, random);
        }
    }

    #[inline]
    fn arrival_of(&mut self, departure: Instant, live: bool, random: &mut RngStream) -> Instant {
        let extra = if self.jitter == Span::ZERO { 0 } else { random.below(self.jitter.0.saturating_add(1)) };
        self.last_arrival = (departure + self.delay + Span(extra)).max(self.last_arrival);
        if let (Some(delay_stage), true) = (&mut self.delay_stage, live) {
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
