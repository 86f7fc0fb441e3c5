//! BIC: binary search for the window of the last loss.
//!
//! - Increase per round trip: a quarter of the distance to the last maximum, at most 16 packets (additive increase), at
//!   least a fifth of a packet near it; beyond the maximum the same steps mirrored. Reno below 15 packets.
//! - Decrease: threshold = 0.8 window (half below 15 packets), with fast convergence as in CUBIC.
//!
//! Source: Xu, Harfoush, Rhee, "Binary increase congestion control (BIC) for fast long-distance networks" (INFOCOM
//! 2004); constants and integer steps as in Linux 6.1 (`tcp_bic.c`), clock ticks of 1 ms.
//! Deviation from the paper, as in Linux: the step is scaled by the packets per acknowledgement, although growth counts
//! packets, not acknowledgements, so that delayed acknowledgements make it up to twice as fast.

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bic",
    aliases: &[],
    title: "binary search for the window of the last loss",
    source: "Xu, Harfoush, Rhee, INFOCOM 2004; Linux 6.1 tcp_bic.c",
    parameters: &[],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|_| CwndController::boxed(Bic::default())),
};

/// Maximum growth per round trip, packets (S_max).
const MAX_INCREMENT: u32 = 16;
/// Up to this window BIC is Reno.
const LOW_WINDOW: u32 = 14;
/// Window after a loss, in 1/1024 of the window before it.
const BETA: u64 = 819;
/// The binary search takes 1/4 of the distance.
const BICTCP_B: u32 = 4;
/// Growth near the maximum: `PART / SMOOTH` packets per round trip.
const SMOOTH_PART: u32 = 20;
/// Before any loss, growth of at least one packet per this many acknowledged packets.
const MAX_CNT_BEFORE_LOSS: u32 = 20;
/// `delayed_ack` counts in sixteenths.
const ACK_RATIO_SHIFT: u32 = 4;
/// The growth is recomputed when the window has changed or this many milliseconds have passed.
const UPDATE_INTERVAL_MS: u64 = 1000 / 32;

/// State of BIC.
#[derive(Debug)]
pub struct Bic {
    /// Packets to be acknowledged per packet of window growth.
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u64,
    /// Packets per acknowledgement, smoothed, in sixteenths.
    delayed_ack: u32,
}

impl Default for Bic {
    fn default() -> Self {
        Self { cnt: 0, last_max_cwnd: 0, last_cwnd: 0, last_time: 0, delayed_ack: 2 << ACK_RATIO_SHIFT }
    }
}

impl Bic {
    fn update(&mut self, cwnd: u32, now: u64) {
        if self.last_cwnd != cwnd || now - self.last_time > UPDATE_INTERVAL_MS {
            (self.last_cwnd, self.last_time) = (cwnd, now);
            self.cnt = self.cnt_at(cwnd);
        }
    }

    fn cnt_at(&self, cwnd: u32) -> u32 {
        if cwnd <= LOW_WINDOW {
            return cwnd;
        }
        let cnt = self.binary_increase_cnt(cwnd);
        let period = if self.last_max_cwnd == 0 { cnt.min(MAX_CNT_BEFORE_LOSS) } else { cnt };
        ((u64::from(period) << ACK_RATIO_SHIFT) / u64::from(self.delayed_ack)).max(1) as u32
    }

    /// The inverse of the growth per round trip, in acknowledged packets per packet of growth.
    fn binary_increase_cnt(&self, cwnd: u32) -> u32 {
        let smooth = cwnd.saturating_mul(SMOOTH_PART) / BICTCP_B;
        if cwnd < self.last_max_cwnd {
            return match (self.last_max_cwnd - cwnd) / BICTCP_B {
                0 | 1 => smooth,
                step => cwnd / step.min(MAX_INCREMENT),
            };
        }
        match cwnd - self.last_max_cwnd {
            beyond if beyond < BICTCP_B => smooth,
            beyond if beyond < MAX_INCREMENT * (BICTCP_B - 1) => cwnd.saturating_mul(BICTCP_B - 1) / beyond,
            _ => cwnd / MAX_INCREMENT,
        }
    }
}

impl CongestionOps for Bic {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, cx: &mut Context<'_>) {
        let remaining_acked = if state.in_slow_start() { common::slow_start(state, acked) } else { acked };
        if remaining_acked > 0 {
            self.update(state.cwnd, state.clock_ms(cx.now));
            common::cong_avoid_ai(state, self.cnt, remaining_acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        let cwnd = u64::from(state.cwnd);
        let converge = state.cwnd < self.last_max_cwnd;
        self.last_max_cwnd = if converge { (cwnd * (1024 + BETA) / 2048) as u32 } else { state.cwnd };
        let ssthresh = if state.cwnd <= LOW_WINDOW { cwnd / 2 } else { cwnd * BETA / 1024 };
        (ssthresh as u32).max(2)
    }

    fn min_cwnd(&self, state: &CwndState) -> u32 {
        state.ssthresh
    }

    fn pkts_acked(&mut self, state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        if state.ca_state == CaState::Open {
            self.delayed_ack = self.delayed_ack - (self.delayed_ack >> ACK_RATIO_SHIFT) + progress.pkts_acked;
        }
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        if next == CaState::Loss {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, slow_start};

    fn after_loss_at(last_max_cwnd: u32) -> Bic {
        Bic { last_max_cwnd, delayed_ack: 1 << ACK_RATIO_SHIFT, ..Bic::default() }
    }

    fn ssthresh(bic: &mut Bic, cwnd: u32) -> u32 {
        bic.ssthresh(&slow_start(cwnd), &mut context(0))
    }

    #[test]
    fn the_growth_below_and_beyond_the_last_maximum() {
        let period = |cwnd, last_max_cwnd| after_loss_at(last_max_cwnd).cnt_at(cwnd);
        assert_eq!([period(100, 200), period(160, 200), period(197, 200)], [6, 16, 985]);
        assert_eq!([period(200, 200), period(210, 200), period(260, 200)], [1000, 63, 16]);
        assert_eq!([period(14, 200), period(100, 0)], [14, 6]);
    }

    #[test]
    fn delayed_acknowledgements_shorten_the_period() {
        let bic = Bic { last_max_cwnd: 200, ..Bic::default() };
        assert_eq!(bic.cnt_at(160), 8, "two packets an acknowledgement: twice as fast");
    }

    #[test]
    fn the_packets_of_an_acknowledgement_are_averaged_in_the_open_state() {
        let ratio_after = |ca_state| {
            let mut bic = Bic::default();
            let mut state = CwndState { ca_state, ..CwndState::default() };
            let progress = AckProgress { pkts_acked: 4, ..AckProgress::default() };
            for _ in 0..100 {
                bic.pkts_acked(&mut state, &progress, &mut context(0));
            }
            bic.delayed_ack >> ACK_RATIO_SHIFT
        };
        assert_eq!([CaState::Open, CaState::Disorder].map(ratio_after), [4, 2]);
    }

    #[test]
    fn keeps_four_fifths_of_a_large_and_half_of_a_small_window() {
        assert_eq!([14, 15, 100, 3].map(|cwnd| ssthresh(&mut Bic::default(), cwnd)), [7, 11, 79, 2]);
    }

    #[test]
    fn fast_convergence_lowers_the_maximum_after_a_loss_below_the_last() {
        let mut bic = after_loss_at(100);
        ssthresh(&mut bic, 80);
        assert_eq!(bic.last_max_cwnd, 71);
    }
}
