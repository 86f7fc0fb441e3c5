//! YeAH (Yet Another Highspeed TCP): Scalable while the queue is short, otherwise Reno with precautionary decongestion.
//!
//! Once per round trip, `queue = window (rtt - base) / rtt`, with the minimum RTT of the round and the minimum ever
//! (`base`):
//! - Slow mode if `queue > 80` or `rtt - base > base / 8`, otherwise fast mode.
//! - Increase: Scalable's in fast mode (1 packet per 100 acknowledged), Reno's in slow mode.
//! - Decongestion: if `queue > 80`, the window falls by the queue (at most by half), but not below the estimated window
//!   of a competing Reno flow (`reno_count`).
//! - Decrease: by the queue, within 1/8 and 1/2 of the window, in fast mode and the first 16 rounds of slow mode;
//!   afterwards by half, because there are greedy flows.
//!
//! Source: Baiocchi, Castellani, Vacirca, "YeAH-TCP: yet another highspeed TCP" (PFLDnet 2007); integer steps as in
//! Linux 6.1 (`tcp_yeah.c`).
//! Deviations from the paper, as in Linux: one queue limit is used for both modes and for decongestion; the queue is
//! not smoothed.

use crate::common::{self, CongestionOps, CwndController, CwndState, VegasRtt};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, PathInfo,
    Properties,
};
use units::Span;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "yeah",
    aliases: &["yeah-tcp"],
    title: "Scalable without a queue, Reno with one; drains a long queue",
    source: "Baiocchi, Castellani, Vacirca, PFLDnet 2007; Linux 6.1 tcp_yeah.c",
    parameters: &[
        Parameter {
            name: "alpha",
            description: "maximum number of packets left in the queue",
            kind: ParamKind::Number { default: 80.0, min: 1.0, max: 1e6 },
        },
        Parameter {
            name: "phi",
            description: "slow mode if the queueing delay exceeds the base RTT divided by this value",
            kind: ParamKind::Number { default: 8.0, min: 1.0, max: 1e6 },
        },
        Parameter {
            name: "rho",
            description: "rounds of slow mode after which a loss halves",
            kind: ParamKind::Number { default: 16.0, min: 0.0, max: 1e6 },
        },
        Parameter {
            name: "zeta",
            description: "rounds of fast mode that restart the estimate of Reno's window",
            kind: ParamKind::Number { default: 50.0, min: 0.0, max: 1e6 },
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Yeah::new(params))),
};

/// Acknowledged packets per packet of growth in fast mode.
const AI_CNT: u32 = 100;
/// Minimum decrease: 2^-3 of the window.
const DELTA: u32 = 3;
/// The estimate of Reno's window before the first measurement.
const MIN_RENO_COUNT: u32 = 2;

/// State of YeAH.
#[derive(Debug)]
pub struct Yeah {
    alpha: u64,
    phi: u64,
    rho: u32,
    zeta: u32,
    vegas_rtt: VegasRtt,
    /// Packets queued at the end of the last round that had enough samples.
    last_q: u64,
    /// Consecutive rounds of slow mode; zero means fast mode.
    doing_reno_now: u32,
    fast_count: u32,
    /// Estimated window of a competing Reno flow.
    reno_count: u32,
}

impl Yeah {
    fn new(params: &Params) -> Self {
        Self {
            alpha: params.number("alpha") as u64,
            phi: params.number("phi") as u64,
            rho: params.number("rho") as u32,
            zeta: params.number("zeta") as u32,
            vegas_rtt: VegasRtt::default(),
            last_q: 0,
            doing_reno_now: 0,
            fast_count: 0,
            reno_count: MIN_RENO_COUNT,
        }
    }

    fn increase(&self, state: &mut CwndState, acked: u32) {
        let remaining_acked = if state.in_slow_start() { common::slow_start(state, acked) } else { acked };
        if remaining_acked > 0 {
            let period = if self.doing_reno_now == 0 { state.cwnd.min(AI_CNT) } else { state.cwnd };
            common::cong_avoid_ai(state, period, remaining_acked);
        }
    }

    fn end_round(&mut self, state: &mut CwndState) {
        let queueing_delay = self.vegas_rtt.queueing_delay();
        self.last_q = u64::from(state.cwnd) * queueing_delay / self.vegas_rtt.min_rtt;
        if self.last_q > self.alpha || queueing_delay > self.vegas_rtt.base_rtt / self.phi {
            self.decongest(state);
            let restarts = self.reno_count <= MIN_RENO_COUNT;
            self.reno_count = if restarts { (state.cwnd / 2).max(2) } else { self.reno_count + 1 };
            self.doing_reno_now += 1;
        } else {
            self.fast_count += 1;
            if self.fast_count > self.zeta {
                (self.reno_count, self.fast_count) = (MIN_RENO_COUNT, 0);
            }
            self.doing_reno_now = 0;
        }
    }

    fn decongest(&self, state: &mut CwndState) {
        if self.last_q > self.alpha && state.cwnd > self.reno_count {
            let reduction = self.last_q.min(u64::from(state.cwnd / 2)) as u32;
            state.cwnd = (state.cwnd - reduction).max(self.reno_count);
            state.ssthresh = state.cwnd;
        }
    }
}

impl CongestionOps for Yeah {
    /// Clamps the window as Linux does, whose arithmetic is 32-bit.
    fn init(&mut self, state: &mut CwndState, _path: &PathInfo, _cx: &mut Context<'_>) {
        state.cwnd_clamp = state.cwnd_clamp.min(u32::MAX / 128);
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        self.increase(state, acked);
        if self.vegas_rtt.ends(sample) {
            if self.vegas_rtt.has_enough_samples() {
                self.end_round(state);
            }
            self.vegas_rtt.reset_round();
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        let half = (state.cwnd / 2).max(2);
        let reduction = if self.doing_reno_now < self.rho {
            (self.last_q.min(u64::from(half)) as u32).max(state.cwnd >> DELTA)
        } else {
            half
        };
        self.fast_count = 0;
        self.reno_count = (self.reno_count / 2).max(MIN_RENO_COUNT);
        state.cwnd.saturating_sub(reduction).max(2)
    }

    fn pkts_acked(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        self.vegas_rtt.add_sample(progress);
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        self.vegas_rtt.set_state(next);
    }

    fn on_tx_start(&mut self, _state: &mut CwndState, _idle: Span, _cx: &mut Context<'_>) {
        self.vegas_rtt.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults, slow_start};

    /// A flow and its window of 1000 packets after a round at this RTT; the base is 100 ms.
    fn after_a_round(rtt_ms: u64) -> (Yeah, CwndState) {
        let (mut yeah, mut state) = (Yeah::new(&defaults(&ENTRY)), congestion_avoidance(1000));
        (yeah.vegas_rtt.base_rtt, yeah.vegas_rtt.min_rtt, yeah.vegas_rtt.cnt_rtt) = (100_000, rtt_ms * 1000, 3);
        let sample = AckSample { snd_una: 1, snd_nxt: 1001, ..AckSample::default() };
        yeah.cong_avoid(&mut state, 0, &sample, &mut context(0));
        (yeah, state)
    }

    #[test]
    fn a_long_queue_is_drained() {
        let round_at = |rtt_ms| {
            let (yeah, state) = after_a_round(rtt_ms);
            (yeah.last_q, yeah.doing_reno_now, state.cwnd)
        };
        assert_eq!(round_at(105), (47, 0, 1000));
        assert_eq!(round_at(110), (90, 1, 910));
        assert_eq!(round_at(113), (115, 1, 885));
    }

    #[test]
    fn decongestion_stops_at_the_window_of_a_reno_flow() {
        let (mut yeah, mut state) = after_a_round(110);
        assert_eq!((yeah.reno_count, state.ssthresh), (455, 910));
        (yeah.reno_count, state.cwnd) = (900, 1000);
        yeah.decongest(&mut state);
        assert_eq!(state.cwnd, 910, "the queue of 90 is less");
        yeah.reno_count = 950;
        state.cwnd = 1000;
        yeah.decongest(&mut state);
        assert_eq!(state.cwnd, 950);
    }

    #[test]
    fn a_loss_reduces_by_the_queue_within_an_eighth_and_a_half() {
        let state = slow_start(1000);
        let ssthresh_after = |queue, doing_reno_now| {
            let mut yeah = Yeah { last_q: queue, doing_reno_now, ..Yeah::new(&defaults(&ENTRY)) };
            yeah.ssthresh(&state, &mut context(0))
        };
        assert_eq!(
            [ssthresh_after(47, 0), ssthresh_after(300, 15), ssthresh_after(900, 0), ssthresh_after(47, 16)],
            [875, 700, 500, 500]
        );
    }

    #[test]
    fn fast_mode_is_scalable_and_slow_mode_reno() {
        let grown = |doing_reno_now| {
            let yeah = Yeah { doing_reno_now, ..Yeah::new(&defaults(&ENTRY)) };
            let mut state = congestion_avoidance(1000);
            yeah.increase(&mut state, 1000);
            state.cwnd
        };
        assert_eq!([grown(0), grown(1)], [1010, 1001]);
    }
}
