//! Compound TCP: Reno's loss window plus a delay window, which fills an empty path quickly.
//!
//! `window = loss window + delay window`.
//! - Loss window: +1 packet per window acknowledged, halved on loss.
//! - Delay window, once per round trip, with `backlog = window (1 - base / rtt)` (the minimum RTT of the round, and the
//!   minimum ever): below `gamma` packets it grows by `max(alpha window^k - 1, 0)`, otherwise it shrinks by
//!   `zeta backlog`.
//! - On loss the delay window becomes `max((1 - beta) window - loss window / 2, 0)`; on a timeout it becomes zero.
//! - In slow start and up to 41 packets the delay window does not grow: the flow is Reno.
//! - `gamma` follows the queue of a Reno flow: with each loss it moves half way to 3/4 of the loss window's backlog,
//!   within 5 and 30 packets.
//!
//! Source: Tan, Song, Zhang, Sridharan, "A compound TCP approach for high-speed and long distance networks" (INFOCOM
//! 2006), draft-sridharan-tcpm-ctcp-02. It is not in Linux. Points that these leave open are as in the Linux module of
//! Castellani, Hemminger and Andrew (2008): the minimum RTT of a round, more than two samples per round, gamma's gain
//! of 1/2. Proportional rate reduction and undo are those of Linux 6.1.

use crate::common::{self, CongestionOps, CwndController, CwndState, VegasRtt};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, Properties,
};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "compound",
    aliases: &["ctcp"],
    title: "Reno's window plus a delay-based one (Compound TCP)",
    source: "Tan et al., INFOCOM 2006; draft-sridharan-tcpm-ctcp-02",
    parameters: &[
        Parameter {
            name: "alpha",
            description: "growth of the delay window per RTT, times window^k, packets",
            kind: ParamKind::Number { default: 0.125, min: 0.0, max: 10.0 },
        },
        Parameter {
            name: "beta",
            description: "decrease on loss, as a fraction of the window",
            kind: ParamKind::Number { default: 0.5, min: 0.05, max: 0.95 },
        },
        Parameter {
            name: "k",
            description: "exponent of the window in the growth of the delay window",
            kind: ParamKind::Number { default: 0.75, min: 0.0, max: 1.0 },
        },
        Parameter {
            name: "gamma",
            description: "backlog from which the delay window shrinks, packets (initial value if tuned)",
            kind: ParamKind::Number { default: 30.0, min: 1.0, max: 1e6 },
        },
        Parameter {
            name: "gamma_tuning",
            description: "let gamma follow the queue of a Reno flow",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Parameter {
            name: "zeta",
            description: "fraction of the backlog that the delay window gives back per RTT",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 10.0 },
        },
        Parameter {
            name: "low_window",
            description: "window up to which the flow is Reno, packets",
            kind: ParamKind::Number { default: 41.0, min: 0.0, max: 1e6 },
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Compound::new(params))),
};

/// Bounds of a tuned gamma, packets.
const GAMMA_BOUNDS: (f64, f64) = (5.0, 30.0);
/// Share of a new sample in gamma.
const GAMMA_GAIN: f64 = 0.5;
/// Gamma's target as a share of Reno's backlog.
const GAMMA_SHARE: f64 = 0.75;

/// State of Compound TCP.
#[derive(Debug)]
pub struct Compound {
    constants: Constants,
    gamma: f64,
    gamma_tuning: bool,
    vegas_rtt: VegasRtt,
    /// `1 - base_rtt / rtt` of the last round: the fraction of the window that is queued.
    queueing_share: f64,
    /// The delay window, packets. Its integer part is in [`CwndState::cwnd`].
    dwnd: f64,
    /// The delay window before the last reduction.
    prior_dwnd: f64,
}

/// The constants of the delay window.
#[derive(Debug)]
struct Constants {
    alpha: f64,
    beta: f64,
    k: f64,
    zeta: f64,
    low_window: u32,
}

impl Constants {
    /// Growth per round trip without backlog, packets.
    fn increment(&self, cwnd: f64) -> f64 {
        (self.alpha * libm::pow(cwnd, self.k) - 1.0).max(0.0)
    }
}

impl Compound {
    fn new(params: &Params) -> Self {
        Self {
            constants: Constants {
                alpha: params.number("alpha"),
                beta: params.number("beta"),
                k: params.number("k"),
                zeta: params.number("zeta"),
                low_window: params.number("low_window") as u32,
            },
            gamma: params.number("gamma"),
            gamma_tuning: params.choice("gamma_tuning") == "on",
            vegas_rtt: VegasRtt::default(),
            queueing_share: 0.0,
            dwnd: 0.0,
            prior_dwnd: 0.0,
        }
    }

    /// The loss window, at least one packet, because a reduction may have lowered the sum of both.
    fn loss_window(&mut self, state: &CwndState) -> f64 {
        let cwnd = f64::from(state.cwnd);
        self.dwnd = self.dwnd.min(cwnd - 1.0).max(0.0);
        cwnd - self.dwnd
    }

    fn end_round(&mut self, state: &mut CwndState) {
        self.queueing_share = self.vegas_rtt.queueing_delay() as f64 / self.vegas_rtt.min_rtt as f64;
        let loss_window = state.cwnd - (self.dwnd as u32).min(state.cwnd - 1);
        let cwnd = f64::from(state.cwnd);
        let backlog = cwnd * self.queueing_share;
        if backlog >= self.gamma {
            self.dwnd = (self.dwnd - self.constants.zeta * backlog).max(0.0);
        } else if state.cwnd > self.constants.low_window {
            self.dwnd += self.constants.increment(cwnd);
        }
        state.cwnd = loss_window.saturating_add(self.dwnd as u32).clamp(2, state.cwnd_clamp);
    }

    fn tune_gamma(&mut self, loss_window: f64) {
        let sample = GAMMA_SHARE * loss_window * self.queueing_share;
        let (min, max) = GAMMA_BOUNDS;
        self.gamma = ((1.0 - GAMMA_GAIN) * self.gamma + GAMMA_GAIN * sample).clamp(min, max);
    }
}

impl CongestionOps for Compound {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        let in_slow_start = state.in_slow_start();
        if in_slow_start {
            self.dwnd = 0.0;
        }
        common::reno_cong_avoid(state, acked);
        if self.vegas_rtt.ends(sample) {
            if self.vegas_rtt.has_enough_samples() && !in_slow_start {
                self.end_round(state);
            }
            self.vegas_rtt.reset_round();
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        let loss_window = self.loss_window(state);
        if self.gamma_tuning {
            self.tune_gamma(loss_window);
        }
        self.prior_dwnd = self.dwnd;
        self.dwnd = ((1.0 - self.constants.beta) * f64::from(state.cwnd) - loss_window / 2.0).max(0.0);
        ((loss_window / 2.0 + self.dwnd) as u32).max(2)
    }

    fn pkts_acked(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        self.vegas_rtt.add_sample(progress);
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        self.vegas_rtt.set_state(next);
        if next == CaState::Loss {
            self.dwnd = 0.0;
        }
    }

    fn undo_cwnd(&mut self, state: &CwndState) -> u32 {
        self.dwnd = self.prior_dwnd;
        state.cwnd.max(state.prior_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults, slow_start};

    fn compound(dwnd: f64) -> Compound {
        Compound { dwnd, ..Compound::new(&defaults(&ENTRY)) }
    }

    #[test]
    fn the_delay_window_grows_by_an_eighth_of_the_window_to_three_quarters() {
        for (cwnd, growth) in [(41.0, 1.03), (100.0, 2.95), (1000.0, 21.2), (10_000.0, 124.0)] {
            let increment = compound(0.0).constants.increment(cwnd);
            assert!((increment / growth - 1.0).abs() < 0.005, "{cwnd}: {increment} instead of {growth}");
        }
    }

    /// Window and delay window after a round at this RTT with `dwnd` of the 100 packets; the base is 100 ms.
    fn after_a_round(cwnd: u32, dwnd: f64, rtt_ms: u64) -> (u32, f64) {
        let (mut compound, mut state) = (compound(dwnd), congestion_avoidance(cwnd));
        (compound.vegas_rtt.base_rtt, compound.vegas_rtt.min_rtt, compound.vegas_rtt.cnt_rtt) =
            (100_000, rtt_ms * 1000, 3);
        let sample = AckSample { snd_una: 1, snd_nxt: 101, ..AckSample::default() };
        compound.cong_avoid(&mut state, 0, &sample, &mut context(0));
        (state.cwnd, compound.dwnd)
    }

    #[test]
    fn the_delay_window_shrinks_with_a_backlog() {
        let (cwnd, dwnd) = after_a_round(100, 0.0, 110);
        assert_eq!(cwnd, 102, "9 packets wait: 2.95 more");
        assert!((dwnd - 2.95).abs() < 0.005);
        let (cwnd, dwnd) = after_a_round(100, 60.0, 160);
        assert_eq!(cwnd, 62, "37.5 of 100 packets wait");
        assert!((dwnd - 22.5).abs() < 1e-9);
        assert_eq!(after_a_round(100, 20.0, 160).0, 80, "the loss window stays");
        assert_eq!(after_a_round(41, 0.0, 101).0, 41, "too small a window");
    }

    #[test]
    fn a_loss_halves_both_windows() {
        let mut compound = compound(60.0);
        let state = slow_start(100);
        assert_eq!(compound.ssthresh(&state, &mut context(0)), 50);
        assert_eq!(compound.dwnd, 30.0);
        assert_eq!(compound.undo_cwnd(&CwndState { cwnd: 50, prior_cwnd: 100, ..state }), 100);
        assert_eq!(compound.dwnd, 60.0);
    }

    #[test]
    fn gamma_moves_half_way_to_three_quarters_of_renos_backlog() {
        let mut compound = Compound { queueing_share: 0.2, ..compound(0.0) };
        compound.tune_gamma(100.0);
        assert_eq!(compound.gamma, 22.5, "20 packets wait: half of 30 and half of 15");
        for _ in 0..10 {
            compound.tune_gamma(1.0);
        }
        assert_eq!(compound.gamma, 5.0);
    }

    #[test]
    fn a_timeout_ends_the_delay_window() {
        let (mut compound, mut state) = (compound(60.0), CwndState::default());
        compound.set_state(&mut state, CaState::Loss, &mut context(0));
        assert_eq!(compound.dwnd, 0.0);
    }
}
