//! HyStart++: ends slow start by delay, after a conservative slow start.
//!
//! - A minimum RTT of a round that exceeds that of the previous round by an eighth (4 to 16 ms) begins *conservative
//!   slow start*: growth at a quarter of the rate, for five round trips.
//! - If the RTT falls below that of its beginning in this time, slow start is resumed.
//! - Otherwise slow start ends; a loss or mark ends it at once.
//!
//! A round's minimum RTT counts with at least eight samples. HyStart++ is only for the first slow start: later ones
//! have a threshold.
//!
//! Source: RFC 9406, for a sender that is not paced (at most eight packets of growth per acknowledgement).
//! Deviation from the RFC: growth counts packets, not bytes, and the fraction is carried over.

use crate::AckSample;
use crate::common::RoundTrip;

/// Minimum and maximum rise that counts, microseconds (MIN_RTT_THRESH, MAX_RTT_THRESH).
const MIN_RTT_THRESH_US: u64 = 4_000;
const MAX_RTT_THRESH_US: u64 = 16_000;
/// Between these bounds, the rise is this fraction of the RTT (MIN_RTT_DIVISOR).
const MIN_RTT_DIVISOR: u64 = 8;
/// Samples before a round's minimum RTT counts (N_RTT_SAMPLE).
const N_RTT_SAMPLE: u32 = 8;
/// Growth in conservative slow start is divided by this (CSS_GROWTH_DIVISOR).
const CSS_GROWTH_DIVISOR: u32 = 4;
/// Duration of conservative slow start, round trips, including the one in which it begins (CSS_ROUNDS).
const CSS_ROUNDS: u32 = 5;
/// Maximum growth per acknowledgement, packets (L).
const L: u32 = 8;

/// HyStart++ of the first slow start (RFC 9406). Times are microseconds.
#[derive(Debug, Default)]
pub(super) struct HyStartPlus {
    round: RoundTrip,
    last_round_min_rtt: Option<u64>,
    current_round_min_rtt: Option<u64>,
    rtt_sample_count: u32,
    css: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// Minimum RTT of the round that began CSS (`cssBaselineMinRtt`).
    css_baseline_min_rtt: u64,
    /// Round trips that have ended since.
    css_round_count: u32,
    /// Acknowledged packets that have not caused growth yet.
    acked: u32,
}

impl HyStartPlus {
    /// Whether slow start ends with this acknowledgement. `rtt` is its sample.
    pub(super) fn update(&mut self, rtt: Option<u64>, sample: &AckSample) -> bool {
        if self.round.ends(sample) {
            (self.last_round_min_rtt, self.current_round_min_rtt, self.rtt_sample_count) =
                (self.current_round_min_rtt, None, 0);
            if let Some(css) = &mut self.css {
                css.css_round_count += 1;
            }
        }
        if let Some(rtt) = rtt {
            self.current_round_min_rtt = Some(self.current_round_min_rtt.map_or(rtt, |current| current.min(rtt)));
            self.rtt_sample_count += 1;
            if self.rtt_sample_count >= N_RTT_SAMPLE {
                self.evaluate();
            }
        }
        self.css.is_some_and(|css| css.css_round_count >= CSS_ROUNDS)
    }

    fn evaluate(&mut self) {
        let Some(current) = self.current_round_min_rtt else { return };
        self.css = match (self.css, self.last_round_min_rtt) {
            (Some(css), _) => Some(css).filter(|css| current >= css.css_baseline_min_rtt),
            (None, Some(last)) if current >= last + rtt_thresh(last) => {
                Some(Css { css_baseline_min_rtt: current, css_round_count: 0, acked: 0 })
            }
            (None, _) => None,
        };
    }

    /// Packets by which the window grows for `acked` packets.
    pub(super) fn cwnd_increase(&mut self, acked: u32) -> u32 {
        let acked = acked.min(L);
        let Some(css) = &mut self.css else { return acked };
        css.acked += acked;
        let growth = css.acked / CSS_GROWTH_DIVISOR;
        css.acked %= CSS_GROWTH_DIVISOR;
        growth
    }
}

/// Rise of the RTT that begins conservative slow start.
fn rtt_thresh(rtt: u64) -> u64 {
    (rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_US, MAX_RTT_THRESH_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of ten acknowledgements, each with the same RTT.
    #[derive(Default)]
    struct Flow {
        hystart_plus: HyStartPlus,
        una: u64,
    }

    impl Flow {
        /// True if slow start ended in this round.
        fn round(&mut self, rtt: u64) -> bool {
            (0..10).any(|_| {
                self.una += 1;
                // A round ends after ten acknowledgements, the first with the first.
                let sample =
                    AckSample { snd_una: self.una, snd_nxt: (self.una - 1) / 10 * 10 + 10, ..AckSample::default() };
                self.hystart_plus.update(Some(rtt), &sample)
            })
        }

        fn in_css(&self) -> bool {
            self.hystart_plus.css.is_some()
        }
    }

    #[test]
    fn a_rise_is_an_eighth_between_4_and_16_ms() {
        assert_eq!([8_000, 100_000, 200_000].map(rtt_thresh), [4_000, 12_500, 16_000]);
    }

    #[test]
    fn a_rise_against_the_round_before_slows_growth_to_a_quarter() {
        let mut flow = Flow::default();
        flow.round(100_000);
        flow.round(112_499);
        assert!(!flow.in_css());
        assert_eq!(flow.hystart_plus.cwnd_increase(5), 5);
        flow.round(112_499 + 14_062);
        assert!(flow.in_css(), "112.499 ms and an eighth");
        assert_eq!([5, 5, 5, 5].map(|acked| flow.hystart_plus.cwnd_increase(acked)), [1, 1, 1, 2]);
    }

    #[test]
    fn a_rise_counts_with_eight_samples() {
        let mut flow = Flow::default();
        flow.round(100_000);
        for ack in 1..=8 {
            flow.una += 1;
            let sample = AckSample { snd_una: flow.una, snd_nxt: 20, ..AckSample::default() };
            flow.hystart_plus.update(Some(150_000), &sample);
            assert_eq!(flow.in_css(), ack == 8, "sample {ack}");
        }
    }

    #[test]
    fn five_rounds_later_slow_start_is_over() {
        let mut flow = Flow::default();
        flow.round(100_000);
        let ended: Vec<bool> = (0..6).map(|_| flow.round(150_000)).collect();
        assert_eq!(ended, [false, false, false, false, false, true], "the first of the next round says so");
    }

    #[test]
    fn slow_start_goes_on_if_the_rtt_falls_again() {
        let mut flow = Flow::default();
        flow.round(100_000);
        flow.round(150_000);
        assert!(flow.in_css());
        flow.round(149_999);
        assert!(!flow.in_css());
        assert!((0..20).all(|_| !flow.round(149_999)));
    }

    #[test]
    fn an_acknowledgement_of_many_packets_makes_eight_packets_of_growth() {
        assert_eq!(HyStartPlus::default().cwnd_increase(100), 8);
    }
}
