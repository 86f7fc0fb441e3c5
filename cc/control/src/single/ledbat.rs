//! LEDBAT++: background transport that keeps the queueing delay at 60 ms and yields to flows that fill the queue.
//!
//! The queueing delay is the minimum of the latest four RTTs minus the minimum of the last ten minutes (`base`).
//! - *Gain* `g = 1 / min(16, ceil(2 target / base))`: 1 (as Reno) from a base of 120 ms on, and less on shorter paths.
//! - Growth: `g` packets per round trip; above the target `g - C W (delay / target - 1)`, which removes at most half of
//!   the window `W`.
//! - Slow start: begins with two packets and grows by `g` per acknowledged packet. The first one ends when the delay
//!   exceeds three quarters of the target.
//! - *Slowdown*, so that the queue drains and each flow measures the base: two round trips after the end of the first
//!   slow start, two packets for two round trips, then slow start up to the former window. The next one begins nine
//!   times its duration after its end, which costs at most a tenth of the rate.
//! - Loss: half, as Reno.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus-01; RFC 6817 for the history of the base (ten minutes, one minimum each) and
//! the filter of four samples.
//! Deviations: round trips are counted by packets, and growth and decrease of congestion avoidance take place at their
//! end. A loss during the two round trips of a slowdown halves the window from before it, whose packets were lost, and
//! keeps the two packets (the draft does not say).

use crate::common::{self, CongestionOps, CwndController, CwndState, RoundTrip};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, ParamKind, Parameter, Params, PathInfo, Properties};
use units::{Instant, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "ledbat-plus-plus",
    aliases: &["ledbatpp"],
    title: "LEDBAT++, background transport: yields to flows that fill the queue; alone, keeps 60 ms queued",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01; RFC 6817",
    parameters: &[
        Parameter {
            name: "target_ms",
            description: "shrink while the queueing delay is above this, ms",
            kind: ParamKind::Number { default: 60.0, min: 1.0, max: 1000.0 },
        },
        Parameter {
            name: "constant",
            description: "fraction of the window removed per RTT at a delay of twice the target; at most a half",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 100.0 },
        },
        Parameter {
            name: "max_divisor",
            description: "the gain is at least 1 / this value",
            kind: ParamKind::Number { default: 16.0, min: 1.0, max: 1000.0 },
        },
        Parameter {
            name: "slowdown",
            description: "send two packets for two RTTs, repeatedly, to measure the base delay",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Parameter {
            name: "interval",
            description: "time from a slowdown's end to the next one, in durations of the slowdown",
            kind: ParamKind::Number { default: 9.0, min: 1.0, max: 1000.0 },
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Ledbat::new(params))),
};

/// Window at the start and during a slowdown, packets.
const MIN_CWND: u32 = 2;
/// Round trips between the first slow start and the first slowdown, and of a slowdown's minimum window.
const SLOWDOWN_ROUNDS: u32 = 2;
/// RTT samples of the current delay (RFC 6817: CURRENT_FILTER).
const CURRENT_FILTER: usize = 4;
/// Minutes of the base delay (RFC 6817: BASE_HISTORY).
const BASE_HISTORY: u64 = 10;
const MINUTE: Span = Span::from_secs(60);

/// State of LEDBAT++.
#[derive(Debug)]
pub struct Ledbat {
    target: Span,
    constant: f64,
    max_divisor: f64,
    has_slowdowns: bool,
    interval: f64,
    delays: Delays,
    round: RoundTrip,
    phase: Phase,
    /// Part of a packet by which the window is above `cwnd`.
    fraction: f64,
}

/// The phase of a flow with respect to its slowdowns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first slow start.
    Start,
    /// Before the first slowdown.
    FirstRounds { left: u32 },
    /// The minimum window of a slowdown.
    Frozen { since: Instant, left: u32 },
    /// The slow start of a slowdown.
    RampUp { since: Instant },
    /// Until the next slowdown.
    Avoidance { until: Instant },
}

/// The base delay and the current one.
#[derive(Debug)]
struct Delays {
    /// The minima of minutes, each at its number modulo the history's length: number and RTT.
    minutes: [(u64, Span); BASE_HISTORY as usize],
    now: u64,
    latest: [Span; CURRENT_FILTER],
    next: usize,
}

impl Default for Delays {
    fn default() -> Self {
        Self { minutes: [(0, Span::MAX); BASE_HISTORY as usize], now: 0, latest: [Span::MAX; CURRENT_FILTER], next: 0 }
    }
}

impl Delays {
    fn add_sample(&mut self, rtt: Span, now: Instant) {
        self.now = now.0 / MINUTE.as_nanos();
        let minimum = &mut self.minutes[(self.now % BASE_HISTORY) as usize];
        *minimum = if minimum.0 == self.now { (self.now, minimum.1.min(rtt)) } else { (self.now, rtt) };
        self.latest[self.next] = rtt;
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    /// The minimum of the last ten minutes; [`Span::MAX`] before the first sample.
    fn base(&self) -> Span {
        let is_recent = |minute: &&(u64, Span)| minute.0 + BASE_HISTORY > self.now;
        self.minutes.iter().filter(is_recent).map(|minute| minute.1).min().unwrap_or(Span::MAX)
    }

    fn queueing_delay(&self) -> Span {
        self.latest.iter().copied().min().unwrap_or(Span::MAX).saturating_sub(self.base())
    }
}

impl Ledbat {
    fn new(params: &Params) -> Self {
        Self {
            target: Span::from_secs_f64(params.number("target_ms") / 1000.0),
            constant: params.number("constant"),
            max_divisor: params.number("max_divisor"),
            has_slowdowns: params.choice("slowdown") == "on",
            interval: params.number("interval"),
            delays: Delays::default(),
            round: RoundTrip::default(),
            phase: Phase::Start,
            fraction: 0.0,
        }
    }

    fn gain(&self) -> f64 {
        let base = self.delays.base().max(Span::from_nanos(1));
        let divisor = (2 * self.target.as_nanos()).div_ceil(base.as_nanos());
        1.0 / (divisor as f64).clamp(1.0, self.max_divisor)
    }

    /// Packets by which a window changes in a round trip of congestion avoidance.
    fn step(&self, window: f64, may_grow: bool) -> f64 {
        let excess = self.delays.queueing_delay().as_secs_f64() / self.target.as_secs_f64() - 1.0;
        let growth = if may_grow { self.gain() } else { 0.0 };
        if excess <= 0.0 { growth } else { (growth - self.constant * window * excess).max(-window / 2.0) }
    }

    /// Changes the window by this many packets, up to `max`.
    fn change_window(&mut self, state: &mut CwndState, packets: f64, max: u32) {
        let max = f64::from(max.min(state.cwnd_clamp));
        let window = (f64::from(state.cwnd) + self.fraction + packets).clamp(f64::from(MIN_CWND), max.max(2.0));
        state.cwnd = window as u32;
        self.fraction = window - f64::from(state.cwnd);
    }

    fn avoid_congestion(&mut self, state: &mut CwndState, may_grow: bool) {
        let packets = self.step(f64::from(state.cwnd) + self.fraction, may_grow);
        self.change_window(state, packets, state.cwnd_clamp);
        // A decrease must not cause slow start.
        state.ssthresh = state.ssthresh.min(state.cwnd);
    }

    fn slow_down(&mut self, state: &mut CwndState, sample: &AckSample, now: Instant) {
        state.ssthresh = state.cwnd.max(MIN_CWND);
        (state.cwnd, self.fraction) = (MIN_CWND, 0.0);
        self.round.restart(sample.snd_nxt);
        self.phase = Phase::Frozen { since: now, left: SLOWDOWN_ROUNDS };
    }

    /// The phase after this acknowledgement, which may end a round trip.
    fn next_phase(&mut self, state: &mut CwndState, sample: &AckSample, round_ends: bool, now: Instant) {
        match &mut self.phase {
            Phase::Start if !state.in_slow_start() => {
                self.round.restart(sample.snd_nxt);
                self.phase = Phase::FirstRounds { left: SLOWDOWN_ROUNDS };
            }
            Phase::FirstRounds { left } | Phase::Frozen { left, .. } if round_ends && *left > 1 => *left -= 1,
            Phase::FirstRounds { .. } if round_ends && self.has_slowdowns => self.slow_down(state, sample, now),
            Phase::Frozen { since, .. } if round_ends => self.phase = Phase::RampUp { since: *since },
            Phase::RampUp { since } if !state.in_slow_start() => {
                let duration = Span::from_secs_f64(now.since(*since).as_secs_f64() * self.interval);
                self.phase = Phase::Avoidance { until: now + duration };
            }
            Phase::Avoidance { until } if now >= *until => self.slow_down(state, sample, now),
            _ => {}
        }
    }

    fn is_frozen(&self) -> bool {
        matches!(self.phase, Phase::Frozen { .. })
    }
}

impl CongestionOps for Ledbat {
    fn init(&mut self, state: &mut CwndState, path: &PathInfo, cx: &mut Context<'_>) {
        (self.phase, self.fraction, self.delays) = (Phase::Start, 0.0, Delays::default());
        state.cwnd = state.cwnd.min(MIN_CWND);
        if let Some(rtt) = path.rtt {
            self.delays.add_sample(rtt, cx.now);
        }
    }

    fn ignores_cwnd_limited(&self) -> bool {
        true // The window shrinks also while it is not filled.
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, cx: &mut Context<'_>) {
        let round_ends = self.round.ends(sample);
        if self.phase == Phase::Start && self.delays.queueing_delay() > self.target * 3 / 4 {
            state.ssthresh = state.ssthresh.min(state.cwnd.max(MIN_CWND));
        }
        if self.is_frozen() {
            state.cwnd = state.cwnd.min(MIN_CWND);
        } else if state.in_slow_start() {
            if sample.cwnd_limited {
                let packets = self.gain() * f64::from(acked);
                self.change_window(state, packets, state.ssthresh);
            }
        } else if round_ends {
            self.avoid_congestion(state, sample.cwnd_limited);
        }
        self.next_phase(state, sample, round_ends, cx.now);
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        self.fraction = 0.0;
        if self.is_frozen() { (state.ssthresh / 2).max(MIN_CWND) } else { common::reno_ssthresh(state) }
    }

    fn on_ack(&mut self, _state: &mut CwndState, sample: &AckSample, cx: &mut Context<'_>) {
        if let Some(rtt) = sample.rtt {
            self.delays.add_sample(rtt, cx.now);
        }
    }

    fn on_recovered(&mut self, state: &mut CwndState, _cx: &mut Context<'_>) {
        if self.is_frozen() {
            state.cwnd = state.cwnd.min(MIN_CWND);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults, slow_start};
    use crate::{CaState, Cause, PathController, PathEvent};

    /// With this base and queueing delay, past the first slow start.
    fn ledbat(base_ms: u64, delay_ms: u64) -> Ledbat {
        let mut ledbat = Ledbat { phase: Phase::Avoidance { until: Instant::NEVER }, ..Ledbat::new(&defaults(&ENTRY)) };
        ledbat.delays.add_sample(Span::from_millis(base_ms), Instant::ZERO);
        (0..4).for_each(|_| ledbat.delays.add_sample(Span::from_millis(base_ms + delay_ms), Instant::ZERO));
        ledbat
    }

    /// One acknowledgement of `acked` packets that ends a round trip.
    fn round(ledbat: &mut Ledbat, state: &mut CwndState, acked: u32, now_ms: u64) {
        ledbat.round = RoundTrip::default();
        let sample = AckSample { snd_una: 1, snd_nxt: 1, cwnd_limited: true, ..AckSample::default() };
        ledbat.cong_avoid(state, acked, &sample, &mut context(now_ms));
    }

    #[test]
    fn the_gain_is_one_over_twice_the_target_in_bases_and_at_least_a_sixteenth() {
        let divisor = |base_ms| (1.0 / ledbat(base_ms, 0).gain()).round();
        let divisors = [1, 7, 8, 20, 40, 50, 60, 119, 120, 300].map(divisor);
        assert_eq!(divisors, [16.0, 16.0, 15.0, 6.0, 3.0, 3.0, 2.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn the_window_grows_by_the_gain_and_shrinks_by_the_excess_delay_and_at_most_by_half() {
        let step = |delay_ms| ledbat(60, delay_ms).step(100.0, true);
        assert_eq!([0, 59, 60].map(step), [0.5; 3], "up to the target");
        // 0.5 - 100 (66 / 60 - 1), (90 / 60 - 1) and (120 / 60 - 1).
        assert!((step(66) - (0.5 - 10.0)).abs() < 1e-9);
        assert!((step(90) - (0.5 - 50.0)).abs() < 1e-9);
        assert_eq!(step(120), -50.0);
        assert_eq!(ledbat(60, 0).step(100.0, false), 0.0, "nothing for a window that is not filled");
    }

    #[test]
    fn parts_of_a_packet_add_up() {
        let (mut ledbat, mut state) = (ledbat(60, 0), congestion_avoidance(10));
        let windows = [1, 2, 3, 4, 5].map(|now| {
            round(&mut ledbat, &mut state, 10, now);
            state.cwnd
        });
        assert_eq!(windows, [10, 11, 11, 12, 12], "half a packet a round trip");
    }

    #[test]
    fn the_delay_is_the_minimum_of_four_rtts_less_that_of_ten_minutes() {
        let mut delays = Delays::default();
        let delay_after = |delays: &mut Delays, rtt, seconds| {
            delays.add_sample(Span::from_millis(rtt), Instant::ZERO + Span::from_secs(seconds));
            (delays.base().as_millis(), delays.queueing_delay().as_millis())
        };
        assert_eq!([50, 90, 80, 95].map(|rtt| delay_after(&mut delays, rtt, 0)), [(50, 0); 4]);
        assert_eq!(delay_after(&mut delays, 100, 0), (50, 30));
        assert_eq!(delay_after(&mut delays, 70, 599), (50, 20), "the tenth minute");
        assert_eq!(delay_after(&mut delays, 100, 600), (70, 0), "the first one is forgotten");
    }

    #[test]
    fn the_first_slow_start_begins_with_two_packets_and_ends_above_three_quarters_of_the_target() {
        let mut controller = CwndController::new(Ledbat::new(&defaults(&ENTRY)));
        let rtt = Some(Span::from_millis(60));
        controller.on_event(&PathEvent::PathUp(crate::single::testing::path(10, rtt)), &mut context(0));
        assert_eq!(controller.decision().cwnd, 2);
        let cwnd_after = |delay_ms| {
            let (mut ledbat, mut state) = (Ledbat { phase: Phase::Start, ..ledbat(60, delay_ms) }, slow_start(40));
            round(&mut ledbat, &mut state, 40, 0);
            (state.cwnd, state.in_slow_start())
        };
        assert_eq!(cwnd_after(45), (60, true), "a gain of one half");
        assert_eq!(cwnd_after(46), (40, false));
    }

    #[test]
    fn a_slowdown_is_two_round_trips_of_two_packets_and_a_ramp_and_the_next_comes_after_nine_times_that() {
        let (mut ledbat, mut state) = (Ledbat { phase: Phase::Start, ..ledbat(120, 46) }, slow_start(40));
        let mut cwnd_after = |now_ms| {
            let acked = state.cwnd;
            round(&mut ledbat, &mut state, acked, now_ms);
            (state.cwnd, ledbat.phase)
        };
        let time = |ms| Instant::ZERO + Span::from_millis(ms);
        assert_eq!(cwnd_after(0).1, Phase::FirstRounds { left: 2 });
        assert_eq!(cwnd_after(100).1, Phase::FirstRounds { left: 1 });
        assert_eq!(cwnd_after(200), (2, Phase::Frozen { since: time(200), left: 2 }), "43 packets before");
        assert_eq!(cwnd_after(300), (2, Phase::Frozen { since: time(200), left: 1 }));
        assert_eq!(cwnd_after(400), (2, Phase::RampUp { since: time(200) }));
        let ramp = [500, 600, 700, 800].map(|now| cwnd_after(now).0);
        assert_eq!(ramp, [4, 8, 16, 32]);
        assert_eq!(cwnd_after(900), (43, Phase::Avoidance { until: time(900 + 9 * 700) }));
        assert_eq!(cwnd_after(7199).0, 44);
        assert_eq!(cwnd_after(7200).0, 2);
    }

    #[test]
    fn loss_halves_the_window_and_in_a_slowdown_the_one_before() {
        let congestion = PathEvent::Congestion { cause: Cause::Loss, reduce_cwnd: true, in_flight: 0, by_timer: false };
        let mut plain = CwndController::new(ledbat(60, 0));
        *plain.state_mut() = congestion_avoidance(40);
        plain.on_event(&congestion, &mut context(0));
        assert_eq!(plain.decision().ssthresh, 20);
        let frozen = Ledbat { phase: Phase::Frozen { since: Instant::ZERO, left: 2 }, ..ledbat(60, 0) };
        let mut frozen = CwndController::new(frozen);
        *frozen.state_mut() = CwndState { cwnd: 2, ssthresh: 40, ..CwndState::default() };
        frozen.on_event(&congestion, &mut context(0));
        frozen.on_event(&PathEvent::Recovered { to_ssthresh: true }, &mut context(100));
        assert_eq!((frozen.decision().cwnd, frozen.decision().ssthresh), (2, 20));
        assert_eq!(frozen.state().ca_state, CaState::Open);
    }
}
