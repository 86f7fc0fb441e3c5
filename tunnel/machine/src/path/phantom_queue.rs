//! A phantom queue: a queue that is only counted (the virtual queue of AVQ, Kunniyur and Srikant, SIGCOMM 2001; HULL's
//! phantom queue, Alizadeh et al., NSDI 2012). Data sent fills it, and it drains at nine tenths of the path's
//! bandwidth.
//!
//! A flow that paces itself at the rate that it measures fills a path without making a queue. The phantom queue shows
//! that the path is full all the same.

use control::common::WindowedMax;
use units::{Instant, Rate, Span};

/// Round trips over which the bandwidth is the maximum delivery rate (BBR's filter).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Drain rate, tenths of the bandwidth: the maximum of noisy samples is a few per cent too high.
const DRAIN_TENTHS: u64 = 9;
/// Quarters of the reference from which on the bandwidth still grows (BBR's full-pipe check) and does not limit yet.
const GROWTH_QUARTERS: u64 = 5;
/// Maximum length of the queue.
const MAX_LENGTH: Span = Span::from_millis(100);

/// The phantom queue of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhantomQueue {
    bandwidth: WindowedMax,
    /// The bandwidth at the time when its growth last emptied the queue.
    reference_bandwidth: u64,
    /// The path, and not the application, limits the rate.
    path_limited: bool,
    /// Time that the queue would have taken to drain at `updated`.
    length: Span,
    updated: Instant,
}

impl PhantomQueue {
    /// The maximum delivery rate of the last round trips; zero before the first sample.
    pub(super) fn bandwidth(&self) -> Rate {
        Rate(self.bandwidth.get())
    }

    /// Time that the queue takes to drain.
    pub(super) fn length(&self, now: Instant) -> Span {
        self.length.saturating_sub(now.since(self.updated))
    }

    /// A packet of so many bytes is sent.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u32) {
        let drain = Rate(self.bandwidth.get() / 10 * DRAIN_TENTHS);
        if self.path_limited && drain.0 > 0 {
            self.length = (self.length(now) + drain.time_for(u64::from(bytes))).min(MAX_LENGTH);
        }
        self.updated = now;
    }

    /// Takes a sample of the delivery rate. A sample of a path that was not `filled` is only a lower bound of the
    /// bandwidth.
    pub(super) fn on_delivery(&mut self, now: Instant, rate: Rate, filled: bool, srtt: Span) {
        if !filled && rate < self.bandwidth() {
            return;
        }
        let bandwidth = self.bandwidth.update(srtt.0.saturating_mul(BANDWIDTH_ROUNDS), now.0, rate.0);
        if bandwidth >= self.reference_bandwidth / 4 * GROWTH_QUARTERS {
            (self.reference_bandwidth, self.path_limited, self.length) = (bandwidth, false, Span::ZERO);
        }
        self.reference_bandwidth = self.reference_bandwidth.min(bandwidth);
        self.path_limited |= filled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANDWIDTH: Rate = Rate::from_mbit(100);

    /// A path of 100 Mbit/s that was filled, or not, and then for 400 ms this load in packets of 1250 bytes: 0.1 ms
    /// each.
    fn length_after(filled: bool, mbit: u64) -> Span {
        let mut queue = PhantomQueue::default();
        queue.on_delivery(Instant::ZERO, BANDWIDTH, filled, Span::from_millis(20));
        let gap = Rate::from_mbit(mbit).time_for(1250);
        let times = (0..)
            .map(|packet| Instant::ZERO + gap * packet)
            .take_while(|time| *time < Instant::ZERO + Span::from_millis(400));
        times.for_each(|now| queue.on_sent(now, 1250));
        queue.length(Instant::ZERO + Span::from_millis(400))
    }

    /// 400 ms at rate r bring 400 r / 90 ms of transmission at 90 Mbit/s, of which 400 ms drain.
    #[test]
    fn the_queue_grows_by_what_exceeds_nine_tenths_of_the_bandwidth() {
        for (mbit, expected) in [(80, 0.0), (89, 0.0), (95, 22.2), (100, 44.4), (200, 100.0)] {
            let length = length_after(true, mbit).as_secs_f64() * 1e3;
            // To a packet.
            assert!((length - expected).abs() < 0.2, "{mbit} Mbit/s: {length} ms, not {expected}");
        }
    }

    #[test]
    fn an_application_limited_rate_is_no_bound_of_the_bandwidth() {
        assert_eq!(length_after(false, 200), Span::ZERO);
        let mut queue = PhantomQueue::default();
        queue.on_delivery(Instant::ZERO, BANDWIDTH, true, Span::from_millis(20));
        queue.on_delivery(Instant::ZERO + Span::from_secs(1), Rate::from_mbit(40), false, Span::from_millis(20));
        assert_eq!(queue.bandwidth(), BANDWIDTH, "a lower rate of an idle path says nothing");
        queue.on_delivery(Instant::ZERO + Span::from_secs(2), Rate::from_mbit(40), true, Span::from_millis(20));
        assert_eq!(queue.bandwidth(), Rate::from_mbit(40), "that of a full one does");
    }

    #[test]
    fn a_bandwidth_that_grows_by_a_quarter_empties_the_queue() {
        let mut queue = PhantomQueue::default();
        let now = Instant::ZERO;
        queue.on_delivery(now, BANDWIDTH, true, Span::from_millis(20));
        (0..100).for_each(|_| queue.on_sent(now, 1250));
        assert!(queue.length(now) > Span::from_millis(11));
        queue.on_delivery(now, Rate::from_mbit(124), false, Span::from_millis(20));
        assert!(queue.length(now) > Span::from_millis(11));
        queue.on_delivery(now, Rate::from_mbit(125), false, Span::from_millis(20));
        assert_eq!(queue.length(now), Span::ZERO);
    }
}
