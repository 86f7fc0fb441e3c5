//! Delivery opportunities instead of a rate, as mahimahi's `mm-link` replays them.
//!
//! Each opportunity carries up to 1500 bytes of packets that were waiting *before* its instant. Several small packets
//! share one opportunity, and the rest of a packet that exceeds one goes with the next. Capacity of an opportunity that
//! is not used is lost.

use crate::config::RateTrace;
use units::{Instant, Rate, Span};

/// Bytes that one opportunity carries.
const OPPORTUNITY_BYTES: u64 = RateTrace::OPPORTUNITY_BYTES;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// A trace and the opportunities used so far.
#[derive(Clone, Debug)]
pub(super) struct TraceCursor {
    trace: RateTrace,
    /// Offset in the (repeating) trace at time zero.
    offset: Span,
    mean_rate: Rate,
    /// The opportunity in use, and the bytes it can still carry.
    instant: Instant,
    bytes_left: u64,
    /// The first opportunity after the one in use.
    next_opportunity: Opportunity,
}

/// An opportunity: repetition of the trace, and index in it.
#[derive(Clone, Copy, Debug)]
struct Opportunity {
    repetition: u64,
    index: usize,
}

impl TraceCursor {
    /// A cursor at time zero, which corresponds to `offset` in the trace.
    pub(super) fn new(trace: RateTrace, offset: Span) -> Self {
        assert!(!trace.opportunities.is_empty() && trace.period_ms > 0, "an empty trace never carries anything");
        let first = first_after(&trace, Instant::ZERO + offset);
        let (instant, mean_rate) = (Instant::ZERO, trace.mean_rate());
        Self { trace, offset, mean_rate, instant, bytes_left: 0, next_opportunity: first }
    }

    /// Returns to time zero.
    pub(super) fn reset(&mut self) {
        let first = first_after(&self.trace, Instant::ZERO + self.offset);
        (self.instant, self.bytes_left, self.next_opportunity) = (Instant::ZERO, 0, first);
    }

    /// Instant of the opportunity in use, or of the last one that was used.
    pub(super) fn last_used_at(&self) -> Instant {
        self.instant
    }

    /// The mean rate over one period.
    pub(super) fn mean_rate(&self) -> Rate {
        self.mean_rate
    }

    /// Bytes that the opportunities after `from`, until `to`, can carry.
    pub(super) fn bytes_between(&self, from: Instant, to: Instant) -> u64 {
        self.trace.bytes_until(to + self.offset) - self.trace.bytes_until(from + self.offset)
    }

    /// Time at which the first byte of a packet that has been available since `available_at` can leave.
    pub(super) fn start(&self, available_at: Instant) -> Instant {
        if self.has_bytes_left(available_at) { self.instant } else { self.instant_of(self.first_after(available_at)) }
    }

    /// Carries a packet that has been available since `available_at`. Returns the times at which its first and its last
    /// byte leave.
    pub(super) fn send(&mut self, available_at: Instant, bytes: u64) -> (Instant, Instant) {
        if !self.has_bytes_left(available_at) {
            self.start_opportunity(self.first_after(available_at));
        }
        let (start, mut remaining) = (self.instant, bytes);
        while remaining > self.bytes_left {
            remaining -= self.bytes_left;
            self.start_opportunity(self.next_opportunity);
        }
        self.bytes_left -= remaining;
        (start, self.instant)
    }

    /// Whether the opportunity in use has room for a packet that has been available since `available_at`.
    fn has_bytes_left(&self, available_at: Instant) -> bool {
        self.bytes_left > 0 && self.instant > available_at
    }

    fn start_opportunity(&mut self, opportunity: Opportunity) {
        self.instant = self.instant_of(opportunity);
        self.bytes_left = OPPORTUNITY_BYTES;
        self.next_opportunity = self.following(opportunity);
    }

    fn instant_of(&self, opportunity: Opportunity) -> Instant {
        let millis = opportunity.repetition * self.trace.period_ms + self.trace.opportunities[opportunity.index];
        Instant(millis * NANOS_PER_MILLI - self.offset.0)
    }

    fn following(&self, opportunity: Opportunity) -> Opportunity {
        match opportunity.index + 1 {
            index if index < self.trace.opportunities.len() => Opportunity { index, ..opportunity },
            _ => Opportunity { repetition: opportunity.repetition + 1, index: 0 },
        }
    }

    /// The first unused opportunity later than `available_at`.
    fn first_after(&self, available_at: Instant) -> Opportunity {
        if self.instant_of(self.next_opportunity) > available_at {
            return self.next_opportunity;
        }
        first_after(&self.trace, available_at + self.offset)
    }
}

/// The first opportunity later than `place` in a trace that repeats for ever.
fn first_after(trace: &RateTrace, place: Instant) -> Opportunity {
    let (repetition, offset_ms) = (place.as_millis() / trace.period_ms, place.as_millis() % trace.period_ms);
    match trace.opportunities.partition_point(|millis| *millis <= offset_ms) {
        index if index < trace.opportunities.len() => Opportunity { repetition, index },
        _ => Opportunity { repetition: repetition + 1, index: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(opportunities: &[u64], period_ms: u64) -> TraceCursor {
        cursor_from(opportunities, period_ms, 0)
    }

    fn cursor_from(opportunities: &[u64], period_ms: u64, offset_ms: u64) -> TraceCursor {
        TraceCursor::new(RateTrace { opportunities: opportunities.into(), period_ms }, Span::from_millis(offset_ms))
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
    fn a_packet_at_or_after_an_opportunity_waits_for_the_next() {
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
        assert_eq!(cursor.send(ms(2_000_000_005), 1500).0, ms(2_000_000_006), "5 ms of one repetition, 0 of the next");
    }

    #[test]
    fn after_a_reset_opportunities_are_used_again_but_not_past_ones() {
        let mut cursor = cursor(&[1, 2, 5], 5);
        assert_eq!(cursor.send(ms(0), 15_000).1, ms(16));
        cursor.reset();
        assert_eq!(cursor.send(ms(3), 500), (ms(5), ms(5)));
    }

    #[test]
    fn the_capacity_of_a_span_is_that_of_the_opportunities_in_it() {
        let cursor = cursor(&[1, 2, 5], 5);
        assert_eq!(cursor.bytes_between(ms(0), ms(4)), 3000);
        assert_eq!(cursor.bytes_between(ms(2), ms(11)), 5 * 1500, "those at 5, 6, 7, 10 and 11 ms");
    }

    #[test]
    fn an_offset_begins_elsewhere_and_wraps_around() {
        for offset in [0, 1, 2, 3, 4, 5, 9, 5000] {
            let (mut whole, mut later) = (cursor(&[1, 2, 5], 5), cursor_from(&[1, 2, 5], 5, offset));
            assert_eq!(later.bytes_between(ms(0), ms(7)), whole.bytes_between(ms(offset), ms(offset + 7)));
            for now in 0..12 {
                let (start, departure) = whole.send(ms(offset + now), 1000);
                let shifted = |instant: Instant| Instant(instant.0 - ms(offset).0);
                assert_eq!(later.send(ms(now), 1000), (shifted(start), shifted(departure)), "{offset} ms, {now} ms");
            }
            later.reset();
            assert_eq!(later.start(ms(20)), cursor_from(&[1, 2, 5], 5, offset).start(ms(20)));
        }
    }

    #[test]
    fn twelve_opportunities_a_millisecond_are_144_mbit() {
        assert_eq!(cursor(&[1; 12], 1).mean_rate(), Rate::from_mbit(144));
    }
}
