//! The wire: what has left the transmitter, or is scheduled to, on its way to the far end.

use scenario::model;
use std::collections::VecDeque;
use units::{Instant, Span, Stream};

/// Packets on their way, in order.
///
/// The far end gets packets in the order in which they were sent: jitter, or a delay that gets shorter, lets one
/// catch up with its predecessor but not overtake it.
#[derive(Debug)]
pub(super) struct Wire<P> {
    delay: Span,
    jitter: Span,
    flights: VecDeque<Flight<P>>,
    /// When the last packet sent so far arrives.
    last: Instant,
    stage: Option<Stage>,
}

#[derive(Debug)]
struct Flight<P> {
    departure: Instant,
    arrival: Instant,
    /// `None`: it will not arrive, but takes its turn at the transmitter.
    packet: Option<P>,
}

/// The delay stage's limit: arrivals of the packets in it, in order.
#[derive(Debug)]
struct Stage {
    limit: usize,
    arrivals: VecDeque<Instant>,
}

impl<P> Wire<P> {
    pub(super) fn new(config: &model::Pipe) -> Self {
        let stage = |limit| Stage { limit: limit as usize, arrivals: VecDeque::new() };
        Self {
            delay: config.delay,
            jitter: config.jitter,
            flights: VecDeque::new(),
            last: Instant::ZERO,
            stage: config.wire_limit.map(stage),
        }
    }

    /// When the first packet arrives.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.flights.front().map_or(Instant::NEVER, |flight| flight.arrival)
    }

    /// Are as many packets on the wire at `departure` as may be? Asked in the order of departures.
    #[inline]
    pub(super) fn is_full(&mut self, departure: Instant) -> bool {
        self.stage.as_mut().is_some_and(|stage| stage.is_full(departure))
    }

    /// Takes a packet that leaves the transmitter at `departure`; `None` for one that will not arrive.
    #[inline]
    pub(super) fn launch(&mut self, departure: Instant, packet: Option<P>, random: &mut Stream) {
        let arrival = self.land(departure, packet.is_some(), random);
        self.flights.push_back(Flight { departure, arrival, packet });
    }

    /// A packet that arrives by `now`, if any is left.
    #[inline]
    pub(super) fn take(&mut self, now: Instant) -> Option<P> {
        while self.next() <= now {
            let flight = self.flights.pop_front()?;
            if flight.packet.is_some() {
                return flight.packet;
            }
        }
        None
    }

    /// Packets that will arrive, those at the transmitter included.
    pub(super) fn live(&self) -> u64 {
        self.flights.iter().filter(|flight| flight.packet.is_some()).count() as u64
    }

    /// When the last packet before the last `waiting` ones leaves the transmitter, if it has not arrived yet.
    pub(super) fn departure_before(&self, waiting: usize) -> Option<Instant> {
        let index = (self.flights.len() - waiting).checked_sub(1)?;
        Some(self.flights[index].departure)
    }

    /// Loses everything: the packets that would have arrived.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = P> {
        self.last = Instant::ZERO;
        if let Some(stage) = &mut self.stage {
            stage.arrivals.clear();
        }
        self.flights.drain(..).filter_map(|flight| flight.packet)
    }

    /// New propagation delay for what departs after `now`.
    pub(super) fn set_delay(&mut self, now: Instant, delay: Span, random: &mut Stream) {
        self.delay = delay;
        self.land_again(now, random);
    }

    /// Gives the last packets new departures, all after `now`, and everything that departs after `now` a new arrival.
    pub(super) fn reschedule(&mut self, now: Instant, departures: &[Instant], random: &mut Stream) {
        let first = self.flights.len() - departures.len();
        for (flight, departure) in self.flights.range_mut(first..).zip(departures) {
            flight.departure = *departure;
        }
        self.land_again(now, random);
    }

    /// Jitter is drawn anew: still uniform, still independent.
    fn land_again(&mut self, now: Instant, random: &mut Stream) {
        let first = self.flights.partition_point(|flight| flight.departure <= now);
        self.last = if first == 0 { Instant::ZERO } else { self.flights[first - 1].arrival };
        if let Some(stage) = &mut self.stage {
            stage.arrivals = self.flights.range(..first).filter(|f| f.packet.is_some()).map(|f| f.arrival).collect();
        }
        for index in first..self.flights.len() {
            let (departure, live) = (self.flights[index].departure, self.flights[index].packet.is_some());
            self.flights[index].arrival = self.land(departure, live, random);
        }
    }

    #[inline]
    fn land(&mut self, departure: Instant, live: bool, random: &mut Stream) -> Instant {
        let extra = if self.jitter == Span::ZERO { 0 } else { random.below(self.jitter.0.saturating_add(1)) };
        self.last = (departure + self.delay + Span(extra)).max(self.last);
        if let (Some(stage), true) = (&mut self.stage, live) {
            stage.arrivals.push_back(self.last);
        }
        self.last
    }
}

impl Stage {
    fn is_full(&mut self, departure: Instant) -> bool {
        while self.arrivals.front().is_some_and(|arrival| *arrival <= departure) {
            self.arrivals.pop_front();
        }
        self.arrivals.len() >= self.limit
    }
}
