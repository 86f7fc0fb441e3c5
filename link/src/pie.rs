//! PIE: drop on arrival with a probability that a proportional-integral controller adjusts to the delay.
//!
//! RFC 8033; names in brackets are the RFC's:
//! - every `tupdate` (section 4.2): `p += f(p) (alpha (delay - target) + beta (delay - previous delay))`, where `f` is
//!   the table of [`tuning`], so that a small `p` moves in small steps. From `p` = 10 % on, an update adds at most 2
//!   percentage points (section 5.5). If there is no delay twice in a row, `p *= 0.98`;
//! - the delay is that of the last packet to leave, by its timestamps (section 4.3, the second method, and Linux's
//!   default); it is zero if that packet left the queue empty. No departure rate is estimated (section 5.2);
//! - no early drop while the burst allowance of 150 ms lasts (section 4.4), nor below half the target with `p` below
//!   20 %, nor with two packets or less (section 4.1);
//! - drops are spread (section 5.4): there is no drop before the probabilities since the last drop add up to 0.85, and
//!   a drop at 8.5 at the latest. The fraction of dropped packets is therefore below `p`: about `p / 1.85` if `p` is
//!   small;
//! - with ECN, packets are marked instead of dropped while `p` is at most 10 % (section 5.1).
//!
//! As in Linux, and beyond the RFC, `p` grows by another 2 percentage points at each update with more than 250 ms of
//! delay. Unlike in Linux, the burst allowance is consumed by time, as in the RFC, not by departures.

use super::aqm::EnqueueAction;
use crate::config::PieConfig;
use units::{Instant, RngStream, Span};

/// Burst allowance \[`MAX_BURST`\].
const MAX_BURST: Span = Span::from_millis(150);
/// Backlog up to which nothing is dropped early: two full packets with Ethernet headers, as in Linux.
const MIN_BACKLOG_BYTES: u64 = 2 * 1514;
/// Probability up to which packets are marked instead of dropped.
const MAX_MARK_PROBABILITY: f64 = 0.1;
/// The largest increase per update from 10 % on, and the extra increase above [`HIGH_DELAY`].
const MAX_STEP: f64 = 0.02;
/// Delay above which the probability grows faster (Linux).
const HIGH_DELAY: Span = Span::from_millis(250);

/// PIE's parameters and state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pie {
    config: PieConfig,
    ecn: bool,
    /// Drop probability \[`drop_prob_`\].
    probability: f64,
    /// Probabilities since the last drop \[`accu_prob_`\].
    accu_prob: f64,
    /// Delay of the last packet to leave \[`current_qdelay`\].
    qdelay: Span,
    /// `qdelay` at the last update.
    qdelay_old: Span,
    burst_allowance: Span,
    next_update: Instant,
}

impl Pie {
    pub(super) fn new(config: PieConfig, ecn: bool) -> Self {
        assert!(config.tupdate > Span::ZERO, "the probability is updated");
        Self {
            config,
            ecn,
            probability: 0.0,
            accu_prob: 0.0,
            qdelay: Span::ZERO,
            qdelay_old: Span::ZERO,
            burst_allowance: MAX_BURST,
            next_update: Instant::ZERO + config.tupdate,
        }
    }

    /// The action for a packet that arrives at `now` while `bytes` wait. It is [`EnqueueAction::MarkOrDrop`] if the
    /// packet should be marked.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        bytes: u64,
        ecn_capable: bool,
        rng: &mut RngStream,
    ) -> EnqueueAction {
        self.update_until(now);
        if self.is_exempt(bytes) || !self.drops_early(rng) {
            return EnqueueAction::Accept;
        }
        if self.ecn && ecn_capable && self.probability <= MAX_MARK_PROBABILITY {
            EnqueueAction::MarkOrDrop
        } else {
            EnqueueAction::Drop
        }
    }

    /// Called when a packet leaves at `now` after a sojourn time of `sojourn`.
    pub(super) fn on_departure(&mut self, now: Instant, sojourn: Span, is_queue_empty: bool) {
        self.update_until(now);
        self.qdelay = if is_queue_empty { Span::ZERO } else { sojourn };
    }

    fn is_exempt(&self, bytes: u64) -> bool {
        self.burst_allowance > Span::ZERO
            || (self.qdelay < self.config.target / 2 && self.probability < 0.2)
            || bytes <= MIN_BACKLOG_BYTES
    }

    /// Whether this packet is dropped at random (RFC 8033, section 5.4).
    fn drops_early(&mut self, rng: &mut RngStream) -> bool {
        if self.probability == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.probability;
        let drops = self.accu_prob >= 8.5 || (self.accu_prob >= 0.85 && rng.chance(self.probability));
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// Performs the updates that were due by `now`.
    fn update_until(&mut self, now: Instant) {
        while self.next_update <= now {
            self.update();
            self.next_update += self.config.tupdate;
            if self.is_idle() {
                self.next_update += self.config.tupdate * (now.since(self.next_update).0 / self.config.tupdate.0);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.probability == 0.0
            && (self.qdelay, self.qdelay_old, self.burst_allowance) == (Span::ZERO, Span::ZERO, MAX_BURST)
    }

    fn update(&mut self) {
        let (delay, delay_old, target) =
            (self.qdelay.as_secs_f64(), self.qdelay_old.as_secs_f64(), self.config.target.as_secs_f64());
        let step =
            tuning(self.probability) * (self.config.alpha * (delay - target) + self.config.beta * (delay - delay_old));
        self.probability += if self.probability >= 0.1 { step.min(MAX_STEP) } else { step };
        if self.qdelay > HIGH_DELAY {
            self.probability += MAX_STEP;
        }
        if self.qdelay == Span::ZERO && self.qdelay_old == Span::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.config.tupdate);
        let (is_low, was_low) = (self.qdelay < self.config.target / 2, self.qdelay_old < self.config.target / 2);
        if self.probability == 0.0 && is_low && was_low {
            self.burst_allowance = MAX_BURST;
        }
        self.qdelay_old = self.qdelay;
    }
}

/// The factor of a step at drop probability `p` (RFC 8033, section 4.2).
fn tuning(p: f64) -> f64 {
    match p {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// PIE as the RFC has it, past its burst allowance, at this probability and delays of so many ms, now and before.
    fn pie(probability: f64, qdelay: u64, qdelay_old: u64) -> Pie {
        let (qdelay, qdelay_old) = (Span::from_millis(qdelay), Span::from_millis(qdelay_old));
        let pie = Pie::new(PieConfig::default(), true);
        Pie { probability, qdelay, qdelay_old, burst_allowance: Span::ZERO, ..pie }
    }

    fn updated_probability(probability: f64, delay: u64, qdelay_old: u64) -> f64 {
        let mut pie = pie(probability, delay, qdelay_old);
        pie.update();
        pie.probability
    }

    #[test]
    fn the_probability_moves_by_the_rfcs_formula_and_table() {
        // 25 ms now, 20 ms before: 0.125 x 0.010 + 1.25 x 0.005 = 0.0075, times the factor of each row of the table.
        let rows = [(0.0, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0), (0.05, 2.0), (0.5, 1.0)];
        for (probability, divisor) in rows {
            let expected = probability + 0.0075 / divisor;
            assert!((updated_probability(probability, 25, 20) - expected).abs() < 1e-15, "{probability}: {expected}");
        }
        // 10 ms now, 30 ms before: 0.125 x -0.005 + 1.25 x -0.020 = -0.025625.
        assert!((updated_probability(0.5, 10, 30) - 0.474_375).abs() < 1e-15);
        assert_eq!(updated_probability(0.001, 10, 30), 0.0, "a probability is not negative");
    }

    #[test]
    fn steps_up_are_two_points_at_most_from_ten_percent_on() {
        // 100 ms, 15 ms before: 0.125 x 0.085 + 1.25 x 0.085 = 0.116875.
        assert!((updated_probability(0.1, 100, 15) - 0.12).abs() < 1e-15);
        assert!((updated_probability(0.09, 100, 15) - (0.09 + 0.116_875 / 2.0)).abs() < 1e-15, "not below");
        assert!((updated_probability(0.5, 300, 300) - (0.5 + 0.02 + 0.02)).abs() < 1e-15, "and two more above 250 ms");
        assert_eq!(updated_probability(0.99, 300, 300), 1.0);
    }

    #[test]
    fn without_delay_the_probability_decays() {
        // 0.125 x -0.015 = -0.001875, then 0.98 of what is left.
        assert!((updated_probability(0.5, 0, 0) - (0.5 - 0.001_875) * 0.98).abs() < 1e-15);
        assert!((updated_probability(0.5, 0, 1) - (0.5 - 0.001_875 - 0.00125)).abs() < 1e-15, "twice in a row");
    }

    #[test]
    fn a_burst_passes_for_as_long_as_the_allowance_lasts() {
        let (mut rng, mut pie) = (RngStream::named(1, "pie"), Pie { burst_allowance: MAX_BURST, ..pie(1.0, 100, 100) });
        let first_drop =
            (0..).find(|ms| pie.enqueue(Instant(ms * MS), 1 << 20, false, &mut rng) != EnqueueAction::Accept);
        assert_eq!(first_drop, Some(150), "ten updates of 15 ms");
        // It comes back once there is nothing to drop and the delay was below half the target twice.
        pie.qdelay = Span::from_millis(7);
        let reset = (151..).find(|ms| {
            pie.enqueue(Instant(ms * MS), 0, false, &mut rng);
            pie.burst_allowance == MAX_BURST
        });
        assert!(reset.is_some() && pie.probability == 0.0);
    }

    #[test]
    fn short_queues_and_short_delays_are_spared() {
        let mut rng = RngStream::named(2, "pie");
        let mut action = |mut pie: Pie, bytes| pie.enqueue(Instant::ZERO, bytes, false, &mut rng);
        // A probability of one drops whatever is not spared.
        assert_eq!(action(pie(1.0, 100, 100), 3028), EnqueueAction::Accept);
        assert_eq!(action(pie(1.0, 100, 100), 3029), EnqueueAction::Drop);
        let pie_with = |probability, delay| Pie { accu_prob: 8.5, ..pie(probability, delay, 100) };
        assert_eq!(action(pie_with(0.19, 7), 1 << 20), EnqueueAction::Accept);
        assert_eq!(action(pie_with(0.2, 7), 1 << 20), EnqueueAction::Drop);
        assert_eq!(action(pie_with(0.19, 8), 1 << 20), EnqueueAction::Drop);
    }

    #[test]
    fn marks_stand_in_for_drops_up_to_ten_percent() {
        let mut rng = RngStream::named(3, "pie");
        let mut action = |probability, ecn_capable| {
            let mut pie = Pie { accu_prob: 8.5, ..pie(probability, 100, 100) };
            pie.enqueue(Instant::ZERO, 1 << 20, ecn_capable, &mut rng)
        };
        assert_eq!(
            [action(0.1, true), action(0.101, true), action(0.1, false)],
            [EnqueueAction::MarkOrDrop, EnqueueAction::Drop, EnqueueAction::Drop]
        );
    }

    #[test]
    fn drops_are_neither_close_together_nor_far_apart() {
        let (mut pie, mut rng) = (pie(1.0 / 16.0, 100, 100), RngStream::named(4, "pie"));
        let (mut gaps, mut gap) = (Vec::new(), 0u32);
        for _ in 0..1_000_000 {
            gap += 1;
            if pie.enqueue(Instant::ZERO, 1 << 20, false, &mut rng) == EnqueueAction::Drop {
                gaps.push(f64::from(std::mem::take(&mut gap)));
            }
        }
        // Thirteen packets add up to 0.81; from the 14th on each strikes with 1 in 16, a geometric number of mean 16
        // and deviation 16 sqrt(15/16); the 136th adds up to 8.5 and strikes for sure.
        let (mean, count) = (gaps.iter().sum::<f64>() / gaps.len() as f64, gaps.len() as f64);
        let (expected, deviation) = (13.0 + 16.0 * (1.0 - libm::pow(0.9375, 123.0)), 16.0 * 0.9375f64.sqrt());
        assert!((mean - expected).abs() < 5.0 * deviation / count.sqrt(), "{mean} for {expected}");
        let (min, max) = (gaps.iter().copied().fold(f64::MAX, f64::min), gaps.iter().copied().fold(0.0, f64::max));
        assert_eq!((min, max), (14.0, 136.0));
    }

    #[test]
    fn a_long_idle_time_keeps_the_phase_of_updates() {
        let mut idle = pie(0.3, 40, 40);
        idle.qdelay = Span::ZERO;
        idle.update_until(Instant(3_600_000 * MS + 7 * MS));
        assert!(idle.is_idle());
        assert_eq!(idle.next_update, Instant(3_600_015 * MS), "240 000 whole updates");
    }
}
