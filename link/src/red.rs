//! Random early detection: drop before the queue is full, with a probability that grows with its average length.
//!
//! S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993, figure 2:
//!
//! - average: `avg += w (q - avg)` on every arrival. After an idle time it is as if `m` packets had met an empty queue:
//!   `avg *= (1 - w)^m`, `m` = idle time / transmission time of a typical packet;
//! - between the thresholds: `p_b = p (avg - min) / (max - min)`, and `p_a = p_b / (1 - count p_b)`, which
//!   spreads the early drops evenly: the gap between two is uniform in `1 .. 1/p_b - 1` packets;
//! - from `max` on every packet is dropped (not "gentle").
//!
//! The queue is measured in bytes; the drop probability does not depend on a packet's size. If the queue uses ECN, an
//! early drop becomes a mark. Above `max` packets are still dropped, unless `hard_drop` is off. Each is then marked,
//! and only the queue's limit drops (`tc-red` without `harddrop`).

use super::aqm::EnqueueAction;
use crate::config::RedConfig;
use units::{Rate, RngStream, Span};

/// Bytes of the average packet in which idle time is counted (the `avpkt` that `tc-red` suggests).
const AVPKT: u64 = 1000;

/// RED's parameters and state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Red {
    min: f64,
    max: f64,
    probability: f64,
    weight: f64,
    hard_drop: bool,
    average: f64,
    /// Packets since the last early drop while between the thresholds.
    count: Option<u32>,
}

impl Red {
    pub(super) fn new(config: RedConfig) -> Self {
        let RedConfig { min, max, probability, weight, hard_drop } = config;
        Self { min: min as f64, max: max as f64, probability, weight, hard_drop, average: 0.0, count: None }
    }

    /// The action for a packet that arrives while `bytes` wait. `idle` is how long queue and transmitter have been
    /// idle, with the link's rate; `None` if they are busy.
    pub(super) fn enqueue(
        &mut self,
        bytes: u64,
        idle: Option<(Span, Option<Rate>)>,
        rng: &mut RngStream,
    ) -> EnqueueAction {
        match idle {
            Some((span, rate)) => self.decay(span, rate),
            None => self.average += self.weight * (bytes as f64 - self.average),
        }
        match self.average {
            average if average < self.min => self.accept(),
            average if average < self.max => self.drop_early(rng),
            _ => self.drop_all(),
        }
    }

    fn decay(&mut self, idle: Span, rate: Option<Rate>) {
        // An unlimited link passes any number of packets in no time.
        let packets = rate.map_or(f64::INFINITY, |rate| idle.0 as f64 / rate.time_for(AVPKT).0 as f64);
        self.average *= libm::pow(1.0 - self.weight, packets);
    }

    fn accept(&mut self) -> EnqueueAction {
        self.count = None;
        EnqueueAction::Accept
    }

    fn drop_early(&mut self, rng: &mut RngStream) -> EnqueueAction {
        let count = self.count.map_or(0, |count| count + 1);
        let base = self.probability * (self.average - self.min) / (self.max - self.min);
        let divisor = 1.0 - f64::from(count) * base;
        let drop = rng.unit() * divisor < base;
        self.count = Some(if drop { 0 } else { count });
        if drop { EnqueueAction::MarkOrDrop } else { EnqueueAction::Accept }
    }

    fn drop_all(&mut self) -> EnqueueAction {
        self.count = Some(0);
        if self.hard_drop { EnqueueAction::Drop } else { EnqueueAction::MarkOrDrop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weight 1: the average is the queue of the moment.
    fn red(probability: f64, weight: f64) -> Red {
        Red::new(RedConfig { min: 10_000, max: 30_000, probability, weight, hard_drop: true })
    }

    #[test]
    fn the_gap_between_early_drops_is_uniform() {
        // Half-way between the thresholds p_b is 0.1: gaps 1 to 9, each with probability 1/9. Only the very first
        // packet counts as number 0, so that the first gap may be 10.
        let (mut red, mut rng) = (red(0.2, 1.0), RngStream::named(5, "red"));
        let (mut gaps, mut gap) = ([0u32; 11], 0);
        for _ in 0..500_000 {
            gap += 1;
            if red.enqueue(20_000, None, &mut rng) == EnqueueAction::MarkOrDrop {
                gaps[std::mem::take(&mut gap)] += 1;
            }
        }
        let drops: f64 = gaps[1..10].iter().map(|n| f64::from(*n)).sum();
        let (share, error) = (1.0 / 9.0, (1.0 / 9.0 * 8.0 / 9.0 / drops).sqrt());
        assert!(gaps[1..10].iter().all(|n| (f64::from(*n) / drops - share).abs() < 5.0 * error), "{gaps:?}");
    }

    #[test]
    fn the_share_of_early_drops_grows_linearly_between_the_thresholds() {
        for (queue, base) in [(12_000, 0.02), (15_000, 0.05), (20_000, 0.1)] {
            let (mut red, mut rng, packets) = (red(0.2, 1.0), RngStream::named(6, "red"), 1_000_000);
            let drops =
                (0..packets).filter(|_| red.enqueue(queue, None, &mut rng) == EnqueueAction::MarkOrDrop).count() as f64;
            // A renewal process: n drops take n mean gaps (uniform in 1 .. 1/base - 1), give or take sqrt(n)
            // deviations.
            let (values, mean) = (1.0 / base - 1.0, 0.5 / base);
            let error = (drops * (values * values - 1.0) / 12.0).sqrt();
            assert!((drops * mean - f64::from(packets)).abs() < 5.0 * error, "{queue} bytes: {drops} drops");
        }
    }

    #[test]
    fn nothing_is_dropped_below_the_lower_threshold_and_everything_above_the_upper_one() {
        let (mut red, mut rng) = (red(0.2, 1.0), RngStream::named(7, "red"));
        assert!((0..1000).all(|_| red.enqueue(9_999, None, &mut rng) == EnqueueAction::Accept));
        assert!((0..1000).all(|_| red.enqueue(30_000, None, &mut rng) == EnqueueAction::Drop));
        red.hard_drop = false;
        assert!((0..1000).all(|_| red.enqueue(30_000, None, &mut rng) == EnqueueAction::MarkOrDrop));
    }

    #[test]
    fn idle_time_lowers_the_average_as_packets_meeting_an_empty_queue_would() {
        let (mut idle, mut busy, mut rng) = (red(0.2, 0.002), red(0.2, 0.002), RngStream::named(8, "red"));
        (idle.average, busy.average) = (9_000.0, 9_000.0);
        let rate = Rate::from_mbit(8); // a typical packet takes 1 ms
        idle.enqueue(0, Some((Span::from_millis(100), Some(rate))), &mut rng);
        (0..100).for_each(|_| assert_eq!(busy.enqueue(0, None, &mut rng), EnqueueAction::Accept));
        assert!(
            (idle.average - busy.average).abs() < 1e-6
                && (idle.average - 9_000.0 * libm::pow(0.998, 100.0)).abs() < 1e-6
        );
        idle.enqueue(0, Some((Span::ZERO, None)), &mut rng);
        assert_eq!(idle.average, 0.0);
    }
}
