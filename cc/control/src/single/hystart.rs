//! HyStart: ends slow start before the queue overflows.
//!
//! Slow start ends on either of two signs of a full pipe:
//! - **ACK train**: acknowledgements keep coming closely spaced for longer than half the minimum RTT;
//! - **delay**: the minimum RTT of a round's first samples exceeds the minimum ever by an eighth (4 to 16 ms).
//!
//! Source: Ha and Rhee, "Taming the elephants: new TCP slow start" (2011); constants, order and microsecond clock as in
//! Linux 6.1 (`tcp_cubic.c`), for a sender that is not paced.

use crate::AckProgress;
use crate::common::{CwndState, RoundTrip};

/// Window below which HyStart is off, packets (Linux `hystart_low_window`).
const LOW_WINDOW: u32 = 16;
/// Maximum gap between acknowledgements of one train, microseconds.
const ACK_DELTA_US: u64 = 2_000;
/// RTT samples before a round's minimum delay counts.
const MIN_SAMPLES: u32 = 8;
/// The largest burst of segmentation offload, bytes, for which a train is allowed more time.
const GSO_MAX_SIZE: u64 = 65_536;

/// HyStart of one slow start. Times are microseconds.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    found: bool,
    round: RoundTrip,
    round_start: u64,
    last_ack: u64,
    curr_rtt: u64,
    sample_cnt: u32,
    /// The smoothed RTT by which Linux has estimated the rate at the latest acknowledgement.
    pub(super) srtt: u64,
}

impl HyStart {
    /// Whether slow start ends with this acknowledgement. `rtt` is its sample, `delay_min` the minimum so far.
    pub(super) fn update(
        &mut self,
        rtt: u64,
        delay_min: u64,
        state: &CwndState,
        progress: &AckProgress,
        now: u64,
    ) -> bool {
        if self.found {
            return false;
        }
        if self.round.ends_at(progress.snd_una, progress.snd_nxt) {
            (self.round_start, self.last_ack) = (now, now);
            (self.curr_rtt, self.sample_cnt) = (u64::MAX, 0);
        }
        if state.cwnd >= LOW_WINDOW {
            let train_found = self.ack_train_found(delay_min, state, now);
            self.found = self.delay_found(rtt, delay_min) || train_found;
        }
        self.found
    }

    fn ack_train_found(&mut self, delay_min: u64, state: &CwndState, now: u64) -> bool {
        if now - self.last_ack > ACK_DELTA_US {
            return false;
        }
        self.last_ack = now;
        now - self.round_start > (delay_min + ack_delay(state, self.srtt)) / 2
    }

    fn delay_found(&mut self, rtt: u64, delay_min: u64) -> bool {
        self.curr_rtt = self.curr_rtt.min(rtt);
        if self.sample_cnt < MIN_SAMPLES {
            self.sample_cnt += 1;
            return false;
        }
        self.curr_rtt > delay_min + delay_threshold(delay_min)
    }
}

/// Delay that ends slow start, microseconds.
fn delay_threshold(delay_min: u64) -> u64 {
    (delay_min / 8).clamp(4_000, 16_000)
}

/// Time of four of the largest bursts at the rate that Linux estimates (`sk_pacing_rate`: twice the window per smoothed
/// RTT, 1.2 times near the threshold), at most a millisecond.
fn ack_delay(state: &CwndState, srtt: u64) -> u64 {
    let percent = if state.cwnd < state.ssthresh / 2 { 200 } else { 120 };
    let bytes_per_rtt = percent * u64::from(state.mss) * u64::from(state.cwnd);
    (4 * GSO_MAX_SIZE * 100).saturating_mul(srtt).checked_div(bytes_per_rtt).unwrap_or(0).min(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::slow_start;

    fn progress(ack: u64) -> AckProgress {
        AckProgress { snd_una: ack, snd_nxt: 1_000, ..AckProgress::default() }
    }

    /// Acknowledgements, `gap` apart and all of one round with this RTT, until slow start ends.
    fn acks_until_found(gap: u64, rtt: u64, delay_min: u64, max_acks: u64) -> Option<u64> {
        let state = slow_start(100);
        let mut hystart = HyStart { srtt: rtt, ..HyStart::default() };
        (1..=max_acks).find(|&ack| hystart.update(rtt, delay_min, &state, &progress(ack), 1_000_000 + ack * gap))
    }

    #[test]
    fn the_delay_threshold_is_an_eighth_between_4_and_16_ms() {
        assert_eq!([8_000, 100_000, 200_000].map(delay_threshold), [4_000, 12_500, 16_000]);
    }

    #[test]
    fn delay_counts_from_the_ninth_sample_of_a_round() {
        assert_eq!(acks_until_found(0, 124_001, 100_000, 50), Some(9));
        assert_eq!(acks_until_found(0, 112_500, 100_000, 50), None, "at the threshold is not above it");
    }

    #[test]
    fn one_fast_sample_hides_the_delay_of_its_round() {
        let state = slow_start(100);
        let mut hystart = HyStart::default();
        for (ack, rtt) in [100_000].into_iter().chain([150_000; 30]).enumerate() {
            assert!(!hystart.update(rtt, 100_000, &state, &progress(ack as u64 + 1), 0));
        }
    }

    #[test]
    fn a_train_longer_than_half_the_min_rtt_ends_slow_start() {
        // 20 ms and the burst allowance of 1 ms: more than 10.5 ms after the round began, at 100 us a packet.
        assert_eq!(acks_until_found(100, 20_000, 20_000, 500), Some(107));
        assert_eq!(acks_until_found(2_001, 20_000, 20_000, 500), None, "wider gaps make no train");
    }

    #[test]
    fn hystart_is_off_below_sixteen_packets() {
        let state = slow_start(15);
        let mut hystart = HyStart::default();
        for ack in 1..100 {
            assert!(!hystart.update(500_000, 1_000, &state, &progress(ack), ack * 100));
        }
    }
}
