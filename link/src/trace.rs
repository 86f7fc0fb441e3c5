//! Delivery opportunities instead of a rate, as mahimahi's `mm-link` replays them.
//!
//! Each opportunity carries up to 1500 bytes of the packets that were waiting *before* its instant. Several small
//! packets share one opportunity; what is left of a packet at its end goes with the next. An opportunity that finds
//! nothing to carry, or not enough, is wasted.

use scenario::model::Trace;
use units::{Instant, Rate, Span};

/// Bytes one opportunity carries.
const OPPORTUNITY: u64 = 1500;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// A trace and how far it has been used.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    trace: Trace,
    mean_rate: Rate,
    /// The opportunity in use, and the bytes it can still carry.
    at: Instant,
    credit: u64,
    /// The first opportunity after it.
    next: Place,
}

/// An opportunity: which repetition of the trace, which entry.
#[derive(Clone, Copy, Debug)]
struct Place {
    lap: u64,
    index: usize,
}

impl Place {
    const FIRST: Self = Self { lap: 0, index: 0 };
}

impl Cursor {
    /// At the trace's beginning, which is time zero.
    pub(super) fn new(trace: Trace) -> Self {
        assert!(!trace.opportunities.is_empty() && trace.period_ms > 0, "an empty trace never carries anything");
        let bytes = trace.opportunities.len() as u64 * OPPORTUNITY;
        let mean_rate = Rate::of(bytes, Span::from_millis(trace.period_ms));
        Self { trace, mean_rate, at: Instant::ZERO, credit: 0, next: Place::FIRST }
    }

    /// Gives back all opportunities.
    pub(super) fn rewind(&mut self) {
        (self.at, self.credit, self.next) = (Instant::ZERO, 0, Place::FIRST);
    }

    /// When the last opportunity given out so far is.
    pub(super) fn used_until(&self) -> Instant {
        self.at
    }

    /// The mean rate over one period.
    pub(super) fn mean_rate(&self) -> Rate {
        self.mean_rate
    }

    /// What the opportunities after `from`, until `to`, can carry.
    pub(super) fn capacity(&self, from: Instant, to: Instant) -> u64 {
        (self.opportunities_until(to) - self.opportunities_until(from)) * OPPORTUNITY
    }

    fn opportunities_until(&self, at: Instant) -> u64 {
        let (lap, within) = (at.as_millis() / self.trace.period_ms, at.as_millis() % self.trace.period_ms);
        let begun = self.trace.opportunities.partition_point(|millis| *millis <= within);
        lap * self.trace.opportunities.len() as u64 + begun as u64
    }

    /// When the first byte of a packet that is there since `ready` can leave.
    pub(super) fn start(&self, ready: Instant) -> Instant {
        if self.shares(ready) { self.at } else { self.instant(self.place_after(ready)) }
    }

    /// Carries a packet that is there since `ready`: when its first and its last byte leave.
    pub(super) fn send(&mut self, ready: Instant, bytes: u64) -> (Instant, Instant) {
        if !self.shares(ready) {
            self.open(self.place_after(ready));
        }
        let (start, mut left) = (self.at, bytes);
        while left > self.credit {
            left -= self.credit;
            self.open(self.next);
        }
        self.credit -= left;
        (start, self.at)
    }

    /// Does the opportunity in use still have room for a packet that is there since `ready`?
    fn shares(&self, ready: Instant) -> bool {
        self.credit > 0 && self.at > ready
    }

    fn open(&mut self, place: Place) {
        self.at = self.instant(place);
        self.credit = OPPORTUNITY;
        self.next = self.following(place);
    }

    fn instant(&self, place: Place) -> Instant {
        let millis = place.lap * self.trace.period_ms + self.trace.opportunities[place.index];
        Instant(millis * NANOS_PER_MILLI)
    }

    fn following(&self, place: Place) -> Place {
        match place.index + 1 {
            index if index < self.trace.opportunities.len() => Place { index, ..place },
            _ => Place { lap: place.lap + 1, index: 0 },
        }
    }

    /// The first unused opportunity later than `ready`.
    fn place_after(&self, ready: Instant) -> Place {
        if self.instant(self.next) > ready {
            return self.next;
        }
        let (lap, within) = (ready.as_millis() / self.trace.period_ms, ready.as_millis() % self.trace.period_ms);
        match self.trace.opportunities.partition_point(|millis| *millis <= within) {
            index if index < self.trace.opportunities.len() => Place { lap, index },
            _ => Place { lap: lap + 1, index: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(opportunities: &[u64], period_ms: u64) -> Cursor {
        Cursor::new(Trace { opportunities: opportunities.into(), period_ms })
    }

    fn ms(n: u64) -> Instant {
        Instant(n * NANOS_PER_MILLI)
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_span_two() {
        let mut cursor = cursor(&[1, 2, 5], 5);
        assert_eq!(cursor.send(ms(0), 1000), (ms(1), ms(1)));
        assert_eq!(cursor.send(ms(0), 1000), (ms(1), ms(2)));
        assert_eq!(cursor.send(ms(0), 1000), (ms(2), ms(2)));
        assert_eq!(cursor.send(ms(0), 1), (ms(5), ms(5)));
    }

    #[test]
    fn who_comes_at_or_after_an_opportunity_waits_for_the_next() {
        let mut cursor = cursor(&[1, 2, 5], 5);
        assert_eq!(cursor.send(ms(0), 500), (ms(1), ms(1)));
        assert_eq!(cursor.send(ms(1), 500), (ms(2), ms(2)), "the 1000 bytes left at 1 ms are wasted");
        assert_eq!(cursor.send(ms(3), 500), (ms(5), ms(5)));
    }

    #[test]
    fn the_trace_repeats_with_its_period() {
        let mut cursor = cursor(&[1, 2, 5], 5);
        assert_eq!(cursor.send(Instant(1), 7500), (ms(1), ms(7)));
        assert_eq!(cursor.start(ms(7)), ms(10));
        assert_eq!(cursor.send(ms(1_000_000_003), 1500).0, ms(1_000_000_005));
        assert_eq!(cursor.send(ms(2_000_000_005), 1500).0, ms(2_000_000_006), "5 ms of one lap, 0 of the next");
    }

    #[test]
    fn opportunities_given_back_are_used_again_but_not_past_ones() {
        let mut cursor = cursor(&[1, 2, 5], 5);
        assert_eq!(cursor.send(ms(0), 15_000).1, ms(16));
        cursor.rewind();
        assert_eq!(cursor.send(ms(3), 500), (ms(5), ms(5)));
    }

    #[test]
    fn the_capacity_of_a_span_is_that_of_the_opportunities_in_it() {
        let cursor = cursor(&[1, 2, 5], 5);
        assert_eq!(cursor.capacity(ms(0), ms(4)), 3000);
        assert_eq!(cursor.capacity(ms(2), ms(11)), 5 * 1500, "those at 5, 6, 7, 10 and 11 ms");
    }

    #[test]
    fn twelve_opportunities_a_millisecond_are_144_mbit() {
        assert_eq!(cursor(&[1; 12], 1).mean_rate(), Rate::from_mbit(144));
    }
}
