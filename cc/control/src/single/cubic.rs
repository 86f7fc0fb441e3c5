//! CUBIC: growth along a cubic curve through the window of the last loss.
//!
//! - Increase: towards `W(t) = C (t - K)^3 + W_max`, with `t` since the first acknowledgement after the reduction, so
//!   that the curve is flat near `W_max`; never slower than a Reno flow with the same decrease would grow.
//! - Decrease: threshold = 0.7 window; `W_max` = the window, or 0.85 of it if it had not returned to the last `W_max`
//!   (fast convergence, which leaves room for new flows).
//! - Slow start ends by loss, by HyStart (`hystart.rs`), by HyStart++ (`hystart_plus.rs`) or by SEARCH (`search.rs`).
//!
//! Source: RFC 9438; integer arithmetic, constants and order of Linux 6.1 (`tcp_cubic.c`), clock ticks of 1 ms.
//! Deviations from the RFC, all as in Linux: the look-ahead is the minimum RTT, not the smoothed one. Growth is capped
//! at half a window per round trip, instead of the target at 1.5 windows. The Reno estimate keeps its slope (8/15). A
//! timeout resets `W_max`, and undo does not restore the curve. Deviation from Linux: the cube root is exact (Linux: to
//! 0.2 %).

use super::hystart::HyStart;
use super::hystart_plus::HyStartPlus;
use super::search::Search;
use crate::common::{self, CongestionOps, CwndState, careful_resume};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, Properties,
};
use units::{INFINITE_SSTHRESH, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "cubic",
    aliases: &[],
    title: "cubic growth around the window of the last loss; Linux's default",
    source: "RFC 9438; Linux 6.1 tcp_cubic.c",
    parameters: &[
        Parameter {
            name: "beta",
            description: "window after a loss, as a fraction of the window before it",
            kind: ParamKind::Number { default: 0.7, min: 0.1, max: 0.95 },
        },
        Parameter {
            name: "c",
            description: "steepness of the curve, packets/s^3",
            kind: ParamKind::Number { default: 0.4, min: 0.01, max: 10.0 },
        },
        Parameter {
            name: "fast_convergence",
            description: "aim lower after a loss below the last maximum",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Parameter {
            name: "friendliness",
            description: "never grow slower than Reno would",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Parameter {
            name: "hystart",
            description: "leave slow start by delay or ACK train; plus-plus: by delay, on probation (RFC 9406); search: when \
                          deliveries no longer double (draft-chung-ietf-ccwg-00)",
            kind: ParamKind::Choice(&["on", "plus-plus", "search", "off"]),
        },
        careful_resume::SAVED_CWND,
        careful_resume::SAVED_RTT,
    ],
    properties: Properties { check: careful_resume::check, ..Properties::DEFAULT },
    constructor: Constructor::PerPath(|params| careful_resume::boxed(Cubic::new(params), params)),
};

/// The curve is recomputed when the window changed or this many milliseconds passed, at most once per millisecond.
const UPDATE_INTERVAL_MS: u64 = 1000 / 32;
/// Delay samples are not trusted for this many milliseconds after an epoch begins.
const DELAY_HOLDOFF_MS: u64 = 1000;
/// Time on the curve is capped (units of 1/1024 s), so that its cube fits. By then no window is large enough.
const MAX_T: u64 = 1 << 20;

/// State of CUBIC.
#[derive(Debug)]
pub struct Cubic {
    cubic: CubicFunction,
    fast_convergence: bool,
    tcp_friendliness: bool,
    hystart: bool,
    /// Kept over a timeout, because HyStart++ is used in the first slow start only.
    hystart_plus: Option<HyStartPlus>,
    /// Also used in the first slow start only.
    search: Option<Search>,
    ca: Bictcp,
}

/// The constants of the cubic function in fixed point.
#[derive(Debug)]
struct CubicFunction {
    /// Multiplicative decrease, in 1/1024.
    beta: u64,
    /// C in packets/s^3, in 1/1024.
    c: u64,
    /// Eight times the number of packets that a Reno flow with this beta needs, per packet of window, to grow by one:
    /// (1 + beta) / (3 (1 - beta)).
    beta_scale: u64,
}

/// State that a timeout resets (Linux `struct bictcp`). Times are milliseconds unless stated otherwise.
#[derive(Debug, Default)]
struct Bictcp {
    /// Packets to be acknowledged per packet of window growth.
    cnt: u32,
    last_max_cwnd: u32,
    epoch: Option<Epoch>,
    delay_min_us: u64,
    last_cwnd: u32,
    last_time: u64,
    hystart_state: HyStart,
}

/// A stage of growth from one reduction to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    epoch_start: u64,
    /// Window at which the curve is flat, packets (Linux `bic_origin_point`).
    origin_point: u32,
    /// Time from the start to the flat point, in 1/1024 s (Linux `bic_K`).
    k: u64,
    /// Acknowledged packets that have not raised `tcp_cwnd` yet.
    ack_cnt: u64,
    /// The window that Reno would have.
    tcp_cwnd: u32,
}

impl Cubic {
    /// CUBIC with the parameters of [`ENTRY`].
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let is_on = |name| params.choice(name) == "on";
        Self {
            cubic: CubicFunction::new(params.number("beta"), params.number("c")),
            fast_convergence: is_on("fast_convergence"),
            tcp_friendliness: is_on("friendliness"),
            hystart: is_on("hystart"),
            hystart_plus: (params.choice("hystart") == "plus-plus").then(HyStartPlus::default),
            search: (params.choice("hystart") == "search").then(Search::default),
            ca: Bictcp::default(),
        }
    }

    /// The packets by which slow start may grow.
    fn slow_start_acked(&mut self, state: &CwndState, acked: u32) -> u32 {
        match &mut self.hystart_plus {
            Some(hystart_plus) if state.ssthresh == INFINITE_SSTHRESH => hystart_plus.cwnd_increase(acked),
            _ => acked,
        }
    }

    /// Recomputes `cnt`, if it is due.
    fn update(&mut self, CwndState { cwnd, tick, .. }: &CwndState, acked: u32, now: u64) {
        let (cwnd, tick_us) = (*cwnd, tick.as_micros());
        let ca = &mut self.ca;
        if let Some(epoch) = &mut ca.epoch {
            epoch.ack_cnt += u64::from(acked);
        }
        if ca.last_cwnd == cwnd && now - ca.last_time <= UPDATE_INTERVAL_MS {
            return;
        }
        if ca.epoch.is_none() || now != ca.last_time {
            (ca.last_cwnd, ca.last_time) = (cwnd, now);
            let last_max = ca.last_max_cwnd;
            let epoch = ca.epoch.get_or_insert_with(|| self.cubic.new_epoch(cwnd, last_max, acked, now));
            let elapsed = now - epoch.epoch_start + ca.delay_min_us.div_ceil(tick_us) * tick_us / 1000;
            ca.cnt = cnt_towards(self.cubic.target(epoch, elapsed * 1024 / 1000), cwnd);
            if last_max == 0 {
                // No loss yet: at least 5 % per round trip.
                ca.cnt = ca.cnt.min(20);
            }
        }
        if let (true, Some(epoch)) = (self.tcp_friendliness, &mut ca.epoch) {
            ca.cnt = ca.cnt.min(self.cubic.tcp_friendliness_cnt(epoch, cwnd));
        }
        ca.cnt = ca.cnt.max(2);
    }
}

/// Packets to be acknowledged per packet of growth so that `target` is reached within one round trip.
fn cnt_towards(target: u64, cwnd: u32) -> u32 {
    match target.saturating_sub(u64::from(cwnd)) {
        0 => cwnd.saturating_mul(100),
        distance => (u64::from(cwnd) / distance) as u32,
    }
}

impl CubicFunction {
    fn new(beta: f64, c: f64) -> Self {
        let (beta, c) = (libm::round(beta * 1024.0) as u64, libm::round(c * 1024.0) as u64);
        Self { beta, c, beta_scale: 8 * (1024 + beta) / 3 / (1024 - beta) }
    }

    fn new_epoch(&self, cwnd: u32, last_max: u32, acked: u32, start: u64) -> Epoch {
        let origin = last_max.max(cwnd);
        Epoch {
            epoch_start: start,
            origin_point: origin,
            k: self.k(origin - cwnd),
            ack_cnt: u64::from(acked),
            tcp_cwnd: cwnd,
        }
    }

    /// `K = cbrt(distance / C)`, in 1/1024 s: the time from the start of an epoch to its origin.
    fn k(&self, distance: u32) -> u64 {
        cube_root(((1 << 40) / self.c).saturating_mul(u64::from(distance)))
    }

    /// `C (t - K)^3 + origin`, `t` in 1/1024 s.
    fn target(&self, epoch: &Epoch, t: u64) -> u64 {
        let offset = t.abs_diff(epoch.k).min(MAX_T);
        let rise = ((u128::from(self.c) * u128::from(offset.pow(3))) >> 40) as u64;
        let origin = u64::from(epoch.origin_point);
        if t < epoch.k { origin.saturating_sub(rise) } else { origin + rise }
    }

    /// Advances the estimate of Reno's window. Returns the largest `cnt` that keeps up with it.
    fn tcp_friendliness_cnt(&self, epoch: &mut Epoch, cwnd: u32) -> u32 {
        let delta = (u64::from(cwnd) * self.beta_scale / 8).max(1);
        let increments = epoch.ack_cnt.saturating_sub(1) / delta;
        epoch.ack_cnt -= increments * delta;
        epoch.tcp_cwnd += increments as u32;
        cwnd.checked_div(epoch.tcp_cwnd.saturating_sub(cwnd)).unwrap_or(u32::MAX)
    }
}

/// The integer part of the cube root.
fn cube_root(value: u64) -> u64 {
    let cube = |x: u64| u128::from(x).pow(3);
    let mut root = libm::cbrt(value as f64) as u64;
    while cube(root) > u128::from(value) {
        root -= 1;
    }
    while cube(root + 1) <= u128::from(value) {
        root += 1;
    }
    root
}

impl CongestionOps for Cubic {
    #[inline]
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, cx: &mut Context<'_>) {
        let remaining_acked =
            if state.in_slow_start() { common::slow_start(state, self.slow_start_acked(state, acked)) } else { acked };
        if remaining_acked > 0 {
            self.update(state, remaining_acked, state.clock_ms(cx.now));
            common::cong_avoid_ai(state, self.ca.cnt, remaining_acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        let (cwnd, beta, ca) = (u64::from(state.cwnd), self.cubic.beta, &mut self.ca);
        let converge = self.fast_convergence && state.cwnd < ca.last_max_cwnd;
        ca.epoch = None;
        ca.last_max_cwnd = if converge { (cwnd * (1024 + beta) / 2048) as u32 } else { state.cwnd };
        ((cwnd * beta / 1024) as u32).max(2)
    }

    fn min_cwnd(&self, state: &CwndState) -> u32 {
        state.ssthresh
    }

    #[inline]
    fn on_ack(&mut self, state: &mut CwndState, sample: &AckSample, cx: &mut Context<'_>) {
        self.ca.hystart_state.srtt = sample.srtt.as_micros();
        if let Some(hystart_plus) = self.hystart_plus.as_mut().filter(|_| state.ssthresh == INFINITE_SSTHRESH)
            && hystart_plus.update(sample.rtt.map(Span::as_micros), sample)
        {
            state.ssthresh = state.cwnd;
        }
        let Some(rtt) = sample.rtt else { return };
        if let Some(search) = self.search.as_mut().filter(|_| state.ssthresh == INFINITE_SSTHRESH)
            && let Some(overshoot) = search.update(rtt.as_micros(), sample, cx.now.0 / 1000)
        {
            state.cwnd = state.cwnd.saturating_sub(overshoot).max(state.initial_window);
            state.ssthresh = state.cwnd;
        }
    }

    /// HyStart sees the window before the acknowledgement reduces it.
    fn pkts_acked(&mut self, state: &mut CwndState, progress: &AckProgress, cx: &mut Context<'_>) {
        let (Some(rtt), ca) = (progress.rtt, &mut self.ca) else { return };
        if ca.epoch.is_some_and(|epoch| cx.now.as_millis() < epoch.epoch_start + DELAY_HOLDOFF_MS) {
            return;
        }
        let rtt = rtt.as_micros().max(1);
        if ca.delay_min_us == 0 || rtt < ca.delay_min_us {
            ca.delay_min_us = rtt;
        }
        let in_hystart = self.hystart && state.in_slow_start();
        if in_hystart && ca.hystart_state.update(rtt, ca.delay_min_us, state, progress, cx.now.0 / 1000) {
            state.ssthresh = state.cwnd;
        }
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        if next == CaState::Loss {
            self.ca = Bictcp::default();
        }
    }

    /// Time without data does not count as time on the curve.
    fn on_tx_start(&mut self, state: &mut CwndState, idle: Span, cx: &mut Context<'_>) {
        if let Some(epoch) = &mut self.ca.epoch {
            epoch.epoch_start = (epoch.epoch_start + idle.as_millis()).min(state.clock_ms(cx.now));
        }
    }
}

#[cfg(test)]
mod tests;
