//! TCP Illinois: increase and decrease depend on the queueing delay; loss triggers the decrease.
//!
//! Once per round trip, with the mean queueing delay of the round `da` and the maximum ever `dm`:
//! - Increase: `alpha` packets per window, 10 while `da` is within 1 % of `dm`, then falling as `k1 / (k2 + da)` to
//!   0.3. Once it has fallen, five rounds without delay restore it.
//! - Decrease: by `beta` of the window, 1/8 up to `da = 0.1 dm`, rising linearly to 1/2 at `0.8 dm`.
//! - Reno (1, 1/2) below 15 packets and after a timeout.
//!
//! Source: Liu, Basar, Srikant, "TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed
//! networks" (Performance Evaluation 2008); fixed point and order as in Linux 6.1 (`tcp_illinois.c`).
//! Deviations from the paper, as in Linux: `alpha` starts at its maximum. The maximum delay is never reset, so that one
//! outlier makes the flow aggressive from then on. Packets of an acknowledgement beyond slow start are dropped.

use crate::common::{self, CongestionOps, CwndController, CwndState, RoundTrip};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, Properties,
};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "illinois",
    aliases: &[],
    title: "loss-based, with steps sized by the queueing delay",
    source: "Liu, Basar, Srikant, Performance Evaluation 2008; Linux 6.1 tcp_illinois.c",
    parameters: &[
        Parameter {
            name: "alpha_min",
            description: "growth at the maximum delay, packets per RTT",
            kind: ParamKind::Number { default: 0.3, min: 0.01, max: 10.0 },
        },
        Parameter {
            name: "alpha_max",
            description: "growth without delay, packets per RTT",
            kind: ParamKind::Number { default: 10.0, min: 0.01, max: 1000.0 },
        },
        Parameter {
            name: "beta_min",
            description: "decrease at low delay, as a fraction of the window",
            kind: ParamKind::Number { default: 0.125, min: 0.0, max: 0.9 },
        },
        Parameter {
            name: "beta_max",
            description: "decrease at high delay, as a fraction of the window",
            kind: ParamKind::Number { default: 0.5, min: 0.0, max: 0.9 },
        },
        Parameter {
            name: "window_threshold",
            description: "Reno below this many packets",
            kind: ParamKind::Number { default: 15.0, min: 0.0, max: 1e6 },
        },
        Parameter {
            name: "theta",
            description: "rounds without delay after which alpha returns to its maximum",
            kind: ParamKind::Number { default: 5.0, min: 0.0, max: 255.0 },
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Illinois::new(params))),
};

/// Alpha is kept in 1/128, beta in 1/64.
const ALPHA_ONE: u64 = 128;
const BETA_ONE: u64 = 64;
/// Reno's halving.
const BETA_RENO: u64 = BETA_ONE / 2;
/// Maximum RTT that is used, microseconds: 3.3 s.
const RTT_MAX: u64 = u32::MAX as u64 / 1280;

/// State of Illinois.
#[derive(Debug)]
pub struct Illinois {
    constants: Constants,
    alpha: u64,
    beta: u64,
    /// Packets of the latest acknowledgement, until they are counted.
    acked: u32,
    base_rtt: u64,
    max_rtt: u64,
    round: RoundTrip,
    sum_rtt: u64,
    cnt_rtt: u64,
    /// Whether the delay has risen since alpha was at its maximum.
    rtt_above: bool,
    /// Rounds without delay since the delay rose.
    rtt_low: u64,
    restart_round: bool,
}

/// The constants, in fixed point.
#[derive(Debug)]
struct Constants {
    alpha: (u64, u64),
    beta: (u64, u64),
    win_thresh: u32,
    theta: u64,
}

impl Constants {
    fn new(params: &Params) -> Self {
        let bounds = |min, max, one: u64| {
            let scaled = |name| (params.number(name) * one as f64) as u64;
            (scaled(min), scaled(max).max(scaled(min)))
        };
        Self {
            alpha: bounds("alpha_min", "alpha_max", ALPHA_ONE),
            beta: bounds("beta_min", "beta_max", BETA_ONE),
            win_thresh: params.number("window_threshold") as u32,
            theta: params.number("theta") as u64,
        }
    }

    /// Alpha on the hyperbola through (0, maximum alpha) and (dm, minimum alpha).
    fn alpha(&self, da: u64, dm: u64) -> u64 {
        let (min, max) = self.alpha;
        dm * max / (dm + da * (max - min) / min)
    }

    fn beta(&self, da: u64, dm: u64) -> u64 {
        let ((min, max), (low, high)) = (self.beta, (dm / 10, 8 * dm / 10));
        if da <= low {
            min
        } else if da >= high {
            max
        } else {
            (min * high + (max - min) * da - max * low) / (high - low)
        }
    }
}

impl Illinois {
    fn new(params: &Params) -> Self {
        let constants = Constants::new(params);
        Self {
            alpha: constants.alpha.1,
            beta: BETA_RENO,
            constants,
            acked: 0,
            base_rtt: u64::MAX,
            max_rtt: 0,
            round: RoundTrip::default(),
            sum_rtt: 0,
            cnt_rtt: 0,
            rtt_above: false,
            rtt_low: 0,
            restart_round: false,
        }
    }

    fn update_params(&mut self, cwnd: u32) {
        if cwnd < self.constants.win_thresh {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_RENO);
        } else if let Some(mean) = self.sum_rtt.checked_div(self.cnt_rtt) {
            let (da, dm) = (mean - self.base_rtt, self.max_rtt - self.base_rtt);
            self.alpha = self.next_alpha(da, dm);
            self.beta = self.constants.beta(da, dm);
        }
        (self.sum_rtt, self.cnt_rtt) = (0, 0);
    }

    fn next_alpha(&mut self, da: u64, dm: u64) -> u64 {
        let low_delay = dm / 100;
        if da > low_delay {
            self.rtt_above = true;
            return self.constants.alpha(da - low_delay, dm - low_delay);
        }
        if self.rtt_above {
            self.rtt_low += 1;
            if self.rtt_low < self.constants.theta {
                return self.alpha;
            }
            (self.rtt_above, self.rtt_low) = (false, 0);
        }
        self.constants.alpha.1
    }

    /// Grows by about alpha packets per window.
    fn increase(&mut self, state: &mut CwndState) {
        state.cwnd_cnt += std::mem::replace(&mut self.acked, 1);
        let delta = ((u64::from(state.cwnd_cnt) * self.alpha) >> ALPHA_ONE.ilog2()) as u32;
        if delta >= state.cwnd {
            state.cwnd = (state.cwnd + delta / state.cwnd).min(state.cwnd_clamp);
            state.cwnd_cnt = 0;
        }
    }
}

impl CongestionOps for Illinois {
    /// Rounds are also counted while the window is not filled, but `cong_avoid` does not grow it then.
    fn ignores_cwnd_limited(&self) -> bool {
        true
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        if self.round.ends(sample) {
            self.update_params(state.cwnd);
        }
        if !sample.cwnd_limited {
            return;
        }
        if state.in_slow_start() {
            common::slow_start(state, acked);
        } else {
            self.increase(state);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        let reduction = (u64::from(state.cwnd) * self.beta) >> BETA_ONE.ilog2();
        (state.cwnd - reduction as u32).max(2)
    }

    fn pkts_acked(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        if std::mem::take(&mut self.restart_round) {
            self.round.restart(progress.snd_nxt);
        }
        self.acked = progress.pkts_acked;
        if let Some(rtt) = progress.rtt {
            let rtt = rtt.as_micros().min(RTT_MAX);
            (self.base_rtt, self.max_rtt) = (self.base_rtt.min(rtt), self.max_rtt.max(rtt));
            (self.sum_rtt, self.cnt_rtt) = (self.sum_rtt + rtt, self.cnt_rtt + 1);
        }
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        if next == CaState::Loss {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_RENO);
            (self.rtt_above, self.rtt_low) = (false, 0);
            (self.sum_rtt, self.cnt_rtt) = (0, 0);
            self.restart_round = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults};
    use units::Span;

    /// Alpha in packets and beta in 1/64 after a round with this mean delay; 100 ms is the greatest.
    fn after_a_round(da: u64) -> (f64, u64) {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        (illinois.base_rtt, illinois.max_rtt) = (50_000, 150_000);
        (illinois.sum_rtt, illinois.cnt_rtt) = (4 * (50_000 + da), 4);
        illinois.update_params(100);
        (illinois.alpha as f64 / 128.0, illinois.beta)
    }

    #[test]
    fn alpha_falls_and_beta_rises_with_the_delay() {
        let cases = [(500, 10.0, 8), (1_000, 10.0, 8), (10_000, 2.516, 8), (50_000, 0.578, 21)];
        for (da, alpha, beta) in cases.into_iter().chain([(80_000, 0.367, 32), (100_000, 0.297, 32)]) {
            let (our_alpha, our_beta) = after_a_round(da);
            assert!((our_alpha - alpha).abs() < 0.0005 && our_beta == beta, "{da} us: {our_alpha}, {our_beta}");
        }
    }

    #[test]
    fn small_windows_use_renos_parameters() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        illinois.update_params(14);
        assert_eq!((illinois.alpha, illinois.beta), (128, 32));
    }

    #[test]
    fn alpha_comes_back_after_five_rounds_without_delay() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        (illinois.base_rtt, illinois.max_rtt) = (50_000, 150_000);
        let mut round = |delay: u64| {
            (illinois.sum_rtt, illinois.cnt_rtt) = (50_000 + delay, 1);
            illinois.update_params(100);
            illinois.alpha
        };
        assert_eq!([100_000, 0, 0, 0, 0, 0].map(&mut round), [38, 38, 38, 38, 38, 1280]);
    }

    #[test]
    fn grows_ten_packets_a_window_without_delay() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        let mut state = congestion_avoidance(100);
        for una in 1..=5 {
            let sample =
                AckSample { pkts_acked: 2, cwnd_limited: true, snd_una: una, snd_nxt: 1_000, ..AckSample::default() };
            illinois.pkts_acked(&mut state, &sample.progress(), &mut context(0));
            illinois.cong_avoid(&mut state, 2, &sample, &mut context(0));
        }
        assert_eq!((state.cwnd, state.cwnd_cnt), (101, 0), "one packet for ten of a hundred");
    }

    #[test]
    fn a_timeout_falls_back_to_reno_and_begins_a_round() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        let mut state = congestion_avoidance(100);
        let sample = AckSample { rtt: Some(Span::from_millis(50)), ..AckSample::default() };
        illinois.pkts_acked(&mut state, &sample.progress(), &mut context(0));
        illinois.set_state(&mut state, CaState::Loss, &mut context(0));
        assert_eq!((illinois.alpha, illinois.beta, illinois.cnt_rtt), (128, 32, 0));
    }
}
