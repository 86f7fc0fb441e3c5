//! H-TCP: increase by the time since the last congestion, decrease by the ratio of minimum to maximum RTT.
//!
//! - Increase: `alpha` packets per window, 1 for the first second (`Delta_L`) after a congestion and then
//!   `1 + 10 (D - 1) + ((D - 1) / 2)^2`, `D` in seconds. It is scaled by the minimum RTT in units of 100 ms (half to
//!   ten times) and by `2 (1 - beta)`, so that the growth per second depends on neither RTT nor decrease.
//! - Decrease: threshold = `beta` of the window, `beta = minimum RTT / maximum RTT` within 0.5 and 0.8, which just
//!   empties the queue; 0.5 if the throughput since the last congestion differs by more than a fifth from that before.
//!
//! Source: Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks" (PFLDnet 2004); integer steps as
//! in Linux 6.1 (`tcp_htcp.c`). Times are the host's timer ticks, and RTTs are rounded up to them. Deviations from the
//! paper, as in Linux: the maximum RTT loses a twentieth of its distance from the minimum with every congestion and
//! ignores a sample more than 20 ms above it; there is no adaptive decrease with a minimum RTT of 10 ms or less.

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, PathInfo,
    Properties,
};
use units::Span;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "htcp",
    aliases: &["h-tcp"],
    title: "H-TCP: grows faster the longer no loss occurs, shrinks by the RTT ratio",
    source: "Leith and Shorten, PFLDnet 2004; Linux 6.1 tcp_htcp.c",
    parameters: &[
        Parameter {
            name: "low_speed_s",
            description: "time after a congestion in which growth is Reno's (Delta_L), s",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 3600.0 },
        },
        Parameter {
            name: "beta_min",
            description: "minimum window after a loss, as a fraction of the window before it",
            kind: ParamKind::Number { default: 0.5, min: 0.1, max: 0.95 },
        },
        Parameter {
            name: "beta_max",
            description: "maximum window after a loss, as a fraction of the window before it",
            kind: ParamKind::Number { default: 0.8, min: 0.1, max: 0.95 },
        },
        Parameter {
            name: "rtt_scaling",
            description: "make growth per second independent of the RTT",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Parameter {
            name: "bandwidth_switch",
            description: "halve if the throughput has changed since the last congestion",
            kind: ParamKind::Choice(&["on", "off"]),
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Htcp::new(params))),
};

/// Alpha and beta are kept in 1/128.
const ONE: u64 = 128;
/// Amount by which a sample may exceed the maximum RTT.
const MAX_RTT_STEP: Span = Span::from_millis(20);
/// Minimum RTT up to which ticks are too coarse for a ratio.
const MIN_RATIO_RTT: Span = Span::from_millis(10);
/// The throughput filter is restarted until this many minimum RTTs after a congestion.
const SETTLING_RTTS: u64 = 3;

/// State of H-TCP. Times are ticks, RTTs zero before the first sample.
#[derive(Debug)]
pub struct Htcp {
    constants: Constants,
    alpha: u64,
    beta: u64,
    /// Whether the throughput was steady at the last congestion, so that beta adapts to the RTT ratio.
    modeswitch: bool,
    /// Packets of the latest acknowledgement in the open state, until they are counted.
    pkts_acked: u32,
    min_rtt: u64,
    epoch: Epoch,
    throughput: Throughput,
    /// The epoch before the last congestion, for undo.
    undo: Option<Epoch>,
}

#[derive(Debug)]
struct Constants {
    delta_l: Span,
    beta: (u64, u64),
    rtt_scaling: bool,
    bandwidth_switch: bool,
}

/// State that congestion overwrites and undo restores.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    last_cong: u64,
    max_rtt: u64,
    /// Maximum throughput of the previous epoch.
    old_max_b: u64,
}

/// Packets per second, measured by the window.
#[derive(Debug, Default)]
struct Throughput {
    packetcount: u32,
    /// The start of the measurement; none for the first one, which Linux takes to have begun with the host.
    lasttime: Option<u64>,
    bi: u64,
    max_b: u64,
}

/// Ticks per second.
fn hz(state: &CwndState) -> u64 {
    Span::from_secs(1).as_nanos() / state.tick.as_nanos()
}

impl Htcp {
    fn new(params: &Params) -> Self {
        let share = |name| (params.number(name) * ONE as f64) as u64;
        let is_on = |name| params.choice(name) == "on";
        let beta = (share("beta_min"), share("beta_max").max(share("beta_min")));
        Self {
            alpha: ONE,
            beta: beta.0,
            constants: Constants {
                delta_l: Span::from_secs_f64(params.number("low_speed_s")),
                beta,
                rtt_scaling: is_on("rtt_scaling"),
                bandwidth_switch: is_on("bandwidth_switch"),
            },
            modeswitch: false,
            pkts_acked: 1,
            min_rtt: 0,
            epoch: Epoch::default(),
            throughput: Throughput::default(),
            undo: None,
        }
    }

    fn update_alpha(&mut self, state: &CwndState, now: u64) {
        let (hz, elapsed) = (hz(state), now - self.epoch.last_cong);
        let diff = elapsed.saturating_sub(state.jiffies_in(self.constants.delta_l));
        let mut factor = 1;
        if diff > 0 {
            factor += (10 * diff + (diff / 2).pow(2) / hz) / hz;
        }
        if self.constants.rtt_scaling && self.min_rtt > 0 {
            // In eighths.
            let scale = (8 * hz / (10 * self.min_rtt)).clamp(4, 80);
            factor = (8 * factor / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }

    fn update_beta(&mut self, state: &CwndState) {
        let (min, max) = self.constants.beta;
        self.beta = min;
        if self.constants.bandwidth_switch {
            let max_b = self.throughput.max_b;
            let old_max_b = std::mem::replace(&mut self.epoch.old_max_b, max_b);
            if !(4 * old_max_b..=6 * old_max_b).contains(&(5 * max_b)) {
                self.modeswitch = false;
                return;
            }
        }
        let max_rtt = self.epoch.max_rtt;
        if self.modeswitch && self.min_rtt > state.jiffies_in(MIN_RATIO_RTT) && max_rtt > 0 {
            self.beta = (self.min_rtt * ONE / max_rtt).clamp(min, max);
        } else {
            self.modeswitch = true;
        }
    }

    fn measure_rtt(&mut self, rtt: u64, max_step: u64, ca_state: CaState) {
        if self.min_rtt == 0 || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        if ca_state == CaState::Open {
            let max_rtt = self.epoch.max_rtt.max(self.min_rtt);
            self.epoch.max_rtt = if rtt <= max_rtt + max_step { max_rtt.max(rtt) } else { max_rtt };
        }
    }

    fn measure_achieved_throughput(&mut self, state: &CwndState, pkts_acked: u32, now: u64) {
        let (min_rtt, since_cong) = (self.min_rtt, now - self.epoch.last_cong);
        let throughput = &mut self.throughput;
        if state.ca_state > CaState::Disorder {
            (throughput.packetcount, throughput.lasttime) = (0, Some(now));
            return;
        }
        throughput.packetcount += pkts_acked;
        let elapsed = throughput.lasttime.map_or(u64::MAX, |start| now - start);
        let required = state.cwnd.checked_sub((self.alpha / ONE).clamp(1, u64::from(u32::MAX)) as u32);
        if min_rtt == 0 || elapsed < min_rtt || required.is_none_or(|required| throughput.packetcount < required) {
            return;
        }
        let cur_bi = u64::from(throughput.packetcount) * hz(state) / elapsed;
        if since_cong / min_rtt <= SETTLING_RTTS {
            (throughput.bi, throughput.max_b) = (cur_bi, cur_bi);
        } else {
            throughput.bi = (3 * throughput.bi + cur_bi) / 4;
            throughput.max_b = throughput.max_b.max(throughput.bi);
        }
        (throughput.packetcount, throughput.lasttime) = (0, Some(now));
    }
}

impl CongestionOps for Htcp {
    fn init(&mut self, state: &mut CwndState, _path: &PathInfo, cx: &mut Context<'_>) {
        self.epoch.last_cong = state.jiffies(cx.now);
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, cx: &mut Context<'_>) {
        if state.in_slow_start() {
            common::slow_start(state, acked);
            return;
        }
        if u64::from(state.cwnd_cnt) * self.alpha / ONE >= u64::from(state.cwnd) {
            state.cwnd = (state.cwnd + 1).min(state.cwnd_clamp);
            state.cwnd_cnt = 0;
            self.update_alpha(state, state.jiffies(cx.now));
        } else {
            state.cwnd_cnt += self.pkts_acked;
        }
        self.pkts_acked = 1;
    }

    fn ssthresh(&mut self, state: &CwndState, cx: &mut Context<'_>) -> u32 {
        self.update_beta(state);
        self.update_alpha(state, state.jiffies(cx.now));
        let max_rtt = &mut self.epoch.max_rtt;
        if self.min_rtt > 0 && *max_rtt > self.min_rtt {
            *max_rtt = self.min_rtt + (*max_rtt - self.min_rtt) * 95 / 100;
        }
        ((u64::from(state.cwnd) * self.beta / ONE) as u32).max(2)
    }

    fn min_cwnd(&self, state: &CwndState) -> u32 {
        state.ssthresh
    }

    fn pkts_acked(&mut self, state: &mut CwndState, progress: &AckProgress, cx: &mut Context<'_>) {
        if state.ca_state == CaState::Open {
            self.pkts_acked = progress.pkts_acked;
        }
        if let Some(rtt) = progress.rtt.filter(|rtt| rtt.as_micros() > 0) {
            self.measure_rtt(state.jiffies_in(rtt), state.jiffies_in(MAX_RTT_STEP), state.ca_state);
        }
        if self.constants.bandwidth_switch {
            self.measure_achieved_throughput(state, progress.pkts_acked, state.jiffies(cx.now));
        }
    }

    /// Time counts from the end of the reduction.
    fn set_state(&mut self, state: &mut CwndState, next: CaState, cx: &mut Context<'_>) {
        if next >= CaState::Cwr {
            self.undo = Some(self.epoch);
            self.epoch.last_cong = state.jiffies(cx.now);
        } else if next == CaState::Open && self.undo.take().is_some() {
            self.epoch.last_cong = state.jiffies(cx.now);
        }
    }

    fn undo_cwnd(&mut self, state: &CwndState) -> u32 {
        if let Some(prior) = self.undo.take() {
            self.epoch = prior;
        }
        state.cwnd.max(state.prior_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};

    fn htcp() -> Htcp {
        Htcp::new(&defaults(&ENTRY))
    }

    /// Alpha in 1/128, so many milliseconds after the last congestion.
    fn alpha(mut htcp: Htcp, elapsed: u64) -> u64 {
        htcp.update_alpha(&CwndState::default(), elapsed);
        htcp.alpha
    }

    #[test]
    fn growth_rises_with_the_time_since_the_last_congestion() {
        let increase = |elapsed| alpha(htcp(), elapsed) / ONE;
        assert_eq!([1000, 2000, 3000, 6000].map(increase), [1, 11, 22, 57]);
        for (elapsed, paper) in [(2000, 11.25), (3000, 22.0), (6000, 57.25)] {
            assert!((increase(elapsed) as f64 - paper).abs() < 1.0, "truncated, not more");
        }
    }

    #[test]
    fn growth_is_scaled_by_the_round_trip() {
        let increases =
            |min_rtt| [1000, 2000, 3000, 6000].map(|elapsed| alpha(Htcp { min_rtt, ..htcp() }, elapsed) / ONE);
        assert_eq!(increases(100), [1, 11, 22, 57]);
        assert_eq!(increases(10), [1, 1, 2, 5]);
        assert_eq!(increases(200), [2, 22, 44, 114]);
    }

    #[test]
    fn a_smaller_decrease_makes_a_smaller_increase() {
        let increase = alpha(Htcp { min_rtt: 100, beta: 102, ..htcp() }, 2000);
        assert!((increase as f64 / ONE as f64 - 4.47).abs() < 0.005);
    }

    /// Beta in 1/128 at a congestion with these RTTs; `max_b` and `old_max_b` are the epochs' throughputs.
    fn beta(min_rtt: u64, max_rtt: u64, max_b: u64, old_max_b: u64) -> u64 {
        let mut htcp = Htcp { min_rtt, modeswitch: true, ..htcp() };
        (htcp.epoch.max_rtt, htcp.epoch.old_max_b, htcp.throughput.max_b) = (max_rtt, old_max_b, max_b);
        htcp.update_beta(&CwndState::default());
        htcp.beta
    }

    #[test]
    fn the_decrease_is_the_ratio_of_the_round_trips() {
        assert_eq!([150, 110, 300].map(|max_rtt| beta(100, max_rtt, 1000, 1000)), [85, 102, 64]);
        assert_eq!(beta(10, 15, 1000, 1000), 64, "too short to tell");
    }

    #[test]
    fn a_throughput_that_changed_by_more_than_a_fifth_halves_the_window() {
        let beta_with = |max_b| beta(100, 150, max_b, 1000);
        assert_eq!([799, 800, 1200, 1201].map(beta_with), [64, 85, 85, 64]);
    }

    #[test]
    fn the_greatest_rtt_rises_by_at_most_20_ms_and_decays() {
        let mut htcp = Htcp { min_rtt: 100, ..htcp() };
        let mut max_rtt_after = |rtt| {
            htcp.measure_rtt(rtt, 20, CaState::Open);
            htcp.epoch.max_rtt
        };
        assert_eq!([100, 121, 120, 140].map(&mut max_rtt_after), [100, 100, 120, 140]);
        htcp.ssthresh(&CwndState::default(), &mut context(0));
        assert_eq!(htcp.epoch.max_rtt, 138);
    }

    #[test]
    fn undo_restores_the_epoch() {
        let mut htcp = htcp();
        let mut state = CwndState { cwnd: 50, prior_cwnd: 100, ..CwndState::default() };
        htcp.throughput.max_b = 500;
        htcp.ssthresh(&state, &mut context(7000));
        htcp.set_state(&mut state, CaState::Recovery, &mut context(7000));
        assert_eq!(htcp.epoch.last_cong, 7000);
        assert_eq!(htcp.undo_cwnd(&state), 100);
        htcp.set_state(&mut state, CaState::Open, &mut context(7100));
        assert_eq!(htcp.epoch.last_cong, 0, "time goes on as if nothing had happened");
    }

    #[test]
    fn time_counts_from_the_end_of_the_reduction() {
        let (mut htcp, mut state) = (htcp(), CwndState::default());
        htcp.set_state(&mut state, CaState::Recovery, &mut context(7000));
        htcp.set_state(&mut state, CaState::Open, &mut context(7100));
        assert_eq!(htcp.epoch.last_cong, 7100);
        htcp.set_state(&mut state, CaState::Disorder, &mut context(7200));
        htcp.set_state(&mut state, CaState::Open, &mut context(7300));
        assert_eq!(htcp.epoch.last_cong, 7100, "disorder is no congestion");
    }
}
