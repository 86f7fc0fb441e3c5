//! Vegas: keeps a few packets queued, by delay.
//!
//! Once per round trip, with the minimum RTT of the round and the minimum ever (`base`):
//! `diff = window (rtt - base) / base`, about the number of packets that this flow has in the queue.
//! - Increase: one packet if `diff < alpha`. Decrease: one packet if `diff > beta`.
//! - Slow start ends if `diff > gamma`, at the window without a queue: `window base / rtt`.
//! - Loss: half, as Reno. Reno's growth applies in a round with too few samples, and from a loss to the open state
//!   unless nothing is in flight.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global internet" (JSAC 1995); integer
//! steps as in Linux 6.1 (`tcp_vegas.c`).
//! Deviations from the paper, all as in Linux: `diff` is scaled by rtt / base and so reacts a little earlier; slow
//! start doubles every round trip instead of every other one; there are no retransmission rules of its own.

use crate::common::{self, CongestionOps, CwndController, CwndState, VegasRtt};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, Deviation, ParamKind, Parameter, Params,
    Properties,
};
use units::Span;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "vegas",
    aliases: &[],
    title: "delay-based: keeps two to four packets in the queue",
    source: "Brakmo and Peterson, JSAC 1995; Linux 6.1 tcp_vegas.c",
    parameters: &[
        Parameter {
            name: "alpha",
            description: "grow while fewer packets than this are queued",
            kind: ParamKind::Number { default: 2.0, min: 0.0, max: 1000.0 },
        },
        Parameter {
            name: "beta",
            description: "shrink while more packets than this are queued",
            kind: ParamKind::Number { default: 4.0, min: 0.0, max: 1000.0 },
        },
        Parameter {
            name: "gamma",
            description: "leave slow start when more packets than this are queued",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1000.0 },
        },
    ],
    properties: Properties {
        deviations: &[(Deviation::RaisesUnfilledCwnd, "the queueing delay tells what the path carries")],
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| CwndController::boxed(Vegas::new(params))),
};

/// State of Vegas.
#[derive(Debug)]
pub struct Vegas {
    alpha: u64,
    beta: u64,
    gamma: u64,
    vegas_rtt: VegasRtt,
}

impl Vegas {
    fn new(params: &Params) -> Self {
        let packets = |name| params.number(name) as u64;
        Self { alpha: packets("alpha"), beta: packets("beta"), gamma: packets("gamma"), vegas_rtt: VegasRtt::default() }
    }

    /// Adjusts the window at the end of a round.
    fn end_round(&self, state: &mut CwndState, acked: u32) {
        let cwnd = u64::from(state.cwnd);
        let VegasRtt { base_rtt: base, min_rtt, .. } = self.vegas_rtt;
        let (target, queued) = (cwnd * base / min_rtt, cwnd * self.vegas_rtt.queueing_delay() / base);
        if state.in_slow_start() {
            if queued > self.gamma {
                state.cwnd = state.cwnd.min(target as u32 + 1);
                state.ssthresh = state.ssthresh.min(state.cwnd);
            } else {
                common::slow_start(state, acked);
            }
        } else if queued > self.beta {
            state.cwnd -= 1;
            state.ssthresh = state.ssthresh.min(state.cwnd);
        } else if queued < self.alpha {
            state.cwnd += 1;
        }
        state.cwnd = state.cwnd.min(state.cwnd_clamp).max(2);
        state.ssthresh = state.current_ssthresh().max(2);
    }
}

impl CongestionOps for Vegas {
    fn ignores_cwnd_limited(&self) -> bool {
        true
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        if !self.vegas_rtt.is_enabled() {
            return common::reno_cong_avoid_if_limited(state, acked, sample);
        }
        if self.vegas_rtt.ends(sample) {
            if self.vegas_rtt.has_enough_samples() {
                self.end_round(state, acked);
            } else {
                common::reno_cong_avoid_if_limited(state, acked, sample);
            }
            self.vegas_rtt.reset_round();
        } else if state.in_slow_start() {
            common::slow_start(state, acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        common::reno_ssthresh(state)
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

    /// The state after a round of three samples; the base RTT is 100 ms.
    fn after_a_round(rtt_ms: u64, mut state: CwndState) -> CwndState {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        (vegas.vegas_rtt.base_rtt, vegas.vegas_rtt.min_rtt, vegas.vegas_rtt.cnt_rtt) = (100_000, rtt_ms * 1000, 3);
        let sample = AckSample { snd_una: 1, snd_nxt: 51, cwnd_limited: true, ..AckSample::default() };
        vegas.cong_avoid(&mut state, 1, &sample, &mut context(0));
        state
    }

    #[test]
    fn holds_two_to_four_packets_in_the_queue() {
        let cwnd = |rtt| after_a_round(rtt, congestion_avoidance(50)).cwnd;
        assert_eq!([cwnd(104), cwnd(106), cwnd(110), cwnd(101)], [50, 50, 49, 51]);
    }

    #[test]
    fn slow_start_ends_at_the_window_without_queue() {
        let state = after_a_round(110, slow_start(50));
        assert_eq!((state.cwnd, state.ssthresh), (46, 46), "50 * 100 / 110 + 1");
        assert_eq!(after_a_round(101, slow_start(50)).cwnd, 51);
    }

    #[test]
    fn a_decrease_lowers_the_threshold_too() {
        let state = after_a_round(110, CwndState { cwnd: 50, ssthresh: 50, ..CwndState::default() });
        assert_eq!((state.cwnd, state.ssthresh), (49, 49));
    }

    #[test]
    fn a_round_with_two_samples_grows_as_reno() {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        let mut state = congestion_avoidance(50);
        (vegas.vegas_rtt.base_rtt, vegas.vegas_rtt.min_rtt, vegas.vegas_rtt.cnt_rtt) = (100_000, 110_000, 2);
        let sample = AckSample { snd_una: 1, snd_nxt: 51, cwnd_limited: true, ..AckSample::default() };
        vegas.cong_avoid(&mut state, 50, &sample, &mut context(0));
        assert_eq!(state.cwnd, 51);
    }

    #[test]
    fn an_rtt_of_zero_counts_as_one_microsecond() {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        let sample = AckSample { rtt: Some(Span::ZERO), ..AckSample::default() };
        vegas.pkts_acked(&mut CwndState::default(), &sample.progress(), &mut context(0));
        assert_eq!((vegas.vegas_rtt.base_rtt, vegas.vegas_rtt.min_rtt, vegas.vegas_rtt.cnt_rtt), (1, 1, 1));
    }

    #[test]
    fn the_base_rtt_is_reset_when_transmission_starts_again() {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        vegas.vegas_rtt.base_rtt = 100_000;
        vegas.on_tx_start(&mut CwndState::default(), Span::ZERO, &mut context(0));
        assert_eq!(vegas.vegas_rtt.base_rtt, u64::MAX);
    }
}
