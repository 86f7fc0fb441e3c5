//! TCP-NV ("New Vegas"): Vegas for data centres, judged by rates instead of single RTTs.
//!
//! In an evaluation (one or more round trips) the greatest rate and the least RTT seen tell the window that the path
//! carries without queue; ten packets more are granted:
//! `most = greatest rate * least RTT + 10`, a rate being what was delivered over one packet's smoothed RTT.
//! - Window above `most`: no growth, threshold = `most`, and 30 % of what is above goes.
//! - Window 2 or more below: growth is allowed: Reno's, slowed by a factor of two for each recent timeout.
//! - Loss: 0.8 of the window.
//! - The least RTT is that of the last 5 s or so (drawn at random between 3.75 and 6.25 s, so that flows differ).
//!
//! A flow that never lets its own queue drain forgets the path's RTT after that time: alone on a path, its queue grows
//! by the pad every period. Growth stays off after a reduction until 20 samples of an evaluation speak for it: few
//! packets a round trip, little growth.
//!
//! Source: Brakmo, "TCP-NV: congestion avoidance for data centers" (2010); constants, integers and order of Linux 6.1
//! (`tcp_nv.c`).
//! Departures from Linux: an acknowledgement without a valid delivery-rate sample is not judged; no base RTT given from
//! outside (Linux: by a BPF program).

use crate::frame::{self, CwndState, WindowRule, Windowed};
use crate::{
    AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamDefault, Parameter, Params, PathInfo, RateSample,
};
use units::{INFINITE_SSTHRESH, Instant, Span};

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "nv",
    aliases: &["tcp-nv"],
    title: "New Vegas: for data centres, keeps about ten packets in the queue",
    source: "Brakmo, 2010; Linux 6.1 tcp_nv.c",
    parameters: &[
        Parameter {
            name: "pad",
            meaning: "packets granted above what the path carries",
            default: ParamDefault::Number { value: 10.0, least: 2.0, most: 1000.0 },
        },
        Parameter {
            name: "reset_period",
            meaning: "how long a least RTT holds, seconds",
            default: ParamDefault::Number { value: 5.0, least: 0.1, most: 3600.0 },
        },
        Parameter {
            name: "beta",
            meaning: "window after a loss, as a share of the window before it",
            default: ParamDefault::Number { value: 0.8, least: 0.1, most: 0.95 },
        },
    ],
    make: Constructor::Single(|settings| Windowed::boxed(Nv::new(settings))),
};

/// A window this close below the greatest is neither raised nor lowered, packets.
const PAD_BUFFER: u32 = 2;
/// Of the packets above the greatest window so many go, in 1/128.
const DECREASE: u32 = 38;
/// Samples before a decision: to shrink, to shrink out of slow start, to grow.
const SAMPLES_TO_SHRINK: u32 = 60;
const SAMPLES_TO_LEAVE_SLOW_START: u32 = 30;
const SAMPLES_TO_GROW: u32 = 20;
/// Round trips before a decision to shrink, and without enough samples before growth stops.
const ROUNDS_TO_SHRINK: u32 = 2;
const ROUNDS_TO_STOP: u32 = 10;
/// Growth is slowed by 2^8 at most, and is quicker again after this many good evaluations.
const SLOWEST: u32 = 8;
const GOOD_EVALUATIONS: u32 = 8;
/// The window that a round trip with one sample may have: bounds and step, packets.
const LEAST_LONE: u32 = 4;
const MOST_LONE: u32 = 81;
const LONE_STEP: u32 = 2;
/// Growth does not go beyond a packet per so many acked.
const LEAST_PERIOD: u32 = 4;
/// Rates are counted in 100 bit/s, with microseconds and bytes.
const RATE_UNIT: u64 = 80_000;
/// The first least RTT holds for this long.
const FIRST_RESET: Span = Span::from_secs(2);

/// TCP-NV's own part of a window. Times are microseconds.
#[derive(Debug)]
pub struct Nv {
    pad: u32,
    reset_period: f64,
    /// In 1/1024.
    beta: u64,

    smoothed_rtt: Option<u64>,
    least_rtt: u64,
    /// Of the time since the last reset.
    next_least_rtt: u64,
    reset_at: Instant,

    evaluation: Evaluation,
    round_end: u64,
    una: u64,
    /// Receivers and interfaces may acknowledge so many packets in one go.
    lone: u32,

    may_grow: bool,
    /// Growth is slowed by two to the power of this.
    slowed: u32,
    good: u32,
    disturbed: bool,
}

/// What the present evaluation has seen.
#[derive(Debug, Default)]
struct Evaluation {
    rate: u64,
    samples: u32,
    rounds: u32,
}

impl Nv {
    fn new(settings: &Params) -> Self {
        Self {
            pad: settings.number("pad") as u32,
            reset_period: settings.number("reset_period"),
            beta: libm::round(settings.number("beta") * 1024.0) as u64,
            smoothed_rtt: None,
            least_rtt: u64::MAX,
            next_least_rtt: u64::MAX,
            reset_at: Instant::ZERO + FIRST_RESET,
            evaluation: Evaluation::default(),
            round_end: 0,
            una: 0,
            lone: LEAST_LONE,
            may_grow: true,
            slowed: 0,
            good: 0,
            disturbed: false,
        }
    }

    fn add(&mut self, rtt: u64, delivery: &RateSample, mss: u32, cx: &mut Context<'_>) {
        let rtt = match self.smoothed_rtt {
            Some(last) => rtt.midpoint(last),
            None => {
                self.least_rtt = 2 * rtt;
                rtt
            }
        };
        self.smoothed_rtt = Some(rtt);
        let rate = u64::from(delivery.delivered) * u64::from(mss) * RATE_UNIT / rtt.max(1);
        self.evaluation.rate = self.evaluation.rate.max(rate);
        self.evaluation.samples += 1;
        self.least_rtt = self.least_rtt.min(rtt);
        self.next_least_rtt = self.next_least_rtt.min(rtt);
        self.renew_least_rtt(cx);
    }

    fn renew_least_rtt(&mut self, cx: &mut Context<'_>) {
        if cx.now >= self.reset_at {
            self.least_rtt = std::mem::replace(&mut self.next_least_rtt, u64::MAX);
            let period = self.reset_period * (0.75 + 0.5 * cx.rng.unit());
            self.reset_at = cx.now + Span::from_secs_f64(period);
            self.lone = (self.lone / 2).max(LEAST_LONE);
        }
    }

    /// The window that the path carries, and the pad.
    fn most(&self, mss: u32) -> u32 {
        let carried = u128::from(self.evaluation.rate) * u128::from(self.least_rtt) / u128::from(RATE_UNIT);
        let packets = carried / u128::from(mss.max(1));
        u32::try_from(packets).unwrap_or(INFINITE_SSTHRESH).min(INFINITE_SSTHRESH - self.pad) + self.pad
    }

    /// At the end of a round trip.
    fn judge(&mut self, state: &mut CwndState, released: u64, sample: &AckSample) {
        self.evaluation.rounds += 1;
        self.round_end = sample.snd_nxt;
        if self.evaluation.samples == 1 && released >= u64::from(self.lone - 1) && self.lone < MOST_LONE {
            // A whole round trip in one acknowledgement says nothing: allow for a larger window first.
            self.lone = (self.lone + LONE_STEP).min(MOST_LONE);
            self.round_end = sample.snd_nxt + u64::from(self.lone);
            (self.evaluation.samples, self.may_grow) = (0, true);
            return;
        }
        let most = self.most(state.mss);
        let decided = if state.cwnd > most {
            self.shrink(state, most)
        } else {
            state.cwnd <= most - PAD_BUFFER && self.allow_growth()
        };
        if decided {
            self.evaluation = Evaluation::default();
        }
    }

    /// False while there is not enough evidence.
    fn shrink(&mut self, state: &mut CwndState, most: u32) -> bool {
        let Evaluation { samples, rounds, .. } = self.evaluation;
        let slow_start = state.ssthresh == INFINITE_SSTHRESH;
        let needed = if slow_start { SAMPLES_TO_LEAVE_SLOW_START } else { SAMPLES_TO_SHRINK };
        if rounds < ROUNDS_TO_SHRINK || samples < needed {
            self.may_grow &= slow_start || rounds <= ROUNDS_TO_STOP;
            return false;
        }
        let above = state.cwnd - most;
        state.ssthresh = most;
        state.cwnd = if above > 2 { state.cwnd - (above * DECREASE / 128).max(2) } else { most };
        (self.may_grow, self.good) = (false, 0);
        true
    }

    /// False while there is not enough evidence.
    fn allow_growth(&mut self) -> bool {
        if self.evaluation.samples < SAMPLES_TO_GROW {
            return false;
        }
        self.may_grow = true;
        self.good += 1;
        if self.slowed > 0 && self.good > GOOD_EVALUATIONS {
            self.slowed -= 1;
            self.good = 0;
        }
        true
    }
}

impl WindowRule for Nv {
    fn init(&mut self, _state: &mut CwndState, _path: &PathInfo, cx: &mut Context<'_>) {
        self.reset_at = cx.now + FIRST_RESET;
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _feedback: &AckSample, _cx: &mut Context<'_>) {
        if !self.may_grow {
            return;
        }
        let left = if state.in_slow_start() { frame::slow_start(state, acked) } else { acked };
        if left > 0 {
            let period = u64::from(state.cwnd.max(LEAST_PERIOD)) << self.slowed;
            frame::additive_increase(state, u32::try_from(period).unwrap_or(u32::MAX), left);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        (((u64::from(state.cwnd) * self.beta) >> 10) as u32).max(2)
    }

    fn on_ack(&mut self, state: &mut CwndState, sample: &AckSample, cx: &mut Context<'_>) {
        let Some(rtt) = sample.rtt else { return };
        if sample.prior_ca_state > CaState::Disorder {
            return;
        }
        let released = sample.snd_una.saturating_sub(std::mem::replace(&mut self.una, sample.snd_una));
        let Some(delivery) = sample.rate_sample.filter(|delivery| delivery.delivered > 0) else { return };
        self.add(rtt.as_micros(), &delivery, state.mss, cx);
        if sample.snd_una > self.round_end {
            self.judge(state, released, sample);
        }
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        match next {
            CaState::Open if std::mem::take(&mut self.disturbed) => {
                (self.evaluation, self.smoothed_rtt) = (Evaluation::default(), None);
                (self.good, self.round_end) = (0, self.una);
            }
            CaState::Open | CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery => (self.disturbed, self.may_grow) = (true, false),
            CaState::Loss => {
                (self.disturbed, self.may_grow) = (true, false);
                self.slowed = (self.slowed + 1).min(SLOWEST);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};
    use units::Stream;

    fn nv() -> Nv {
        Nv::new(&defaults(&ENTRY))
    }

    /// After an evaluation that saw 100 packets delivered in a millisecond, with 800 us as the least RTT.
    fn evaluated(samples: u32, rounds: u32) -> Nv {
        let evaluation = Evaluation { rate: 11_584_000, samples, rounds };
        Nv { least_rtt: 800, evaluation, ..nv() }
    }

    fn judge(nv: &mut Nv, size: u32, ssthresh: u32) -> CwndState {
        let mut state = CwndState { cwnd: size, ssthresh: ssthresh, ..CwndState::default() };
        nv.judge(&mut state, 1, &AckSample { snd_nxt: 100, ..AckSample::default() });
        state
    }

    fn sample(nv: &mut Nv, rtt_us: u64, packets: u32, now_ms: u64) {
        let interval = Span::from_micros(rtt_us);
        let delivery =
            RateSample { delivered: packets, interval, prior_delivered: 0, app_limited: false, ack_delayed: false };
        nv.add(rtt_us, &delivery, 1448, &mut context(now_ms, &mut Stream::named(1, "test")));
    }

    #[test]
    fn a_loss_keeps_819_of_1024() {
        let state = CwndState { cwnd: 100, ..CwndState::default() };
        assert_eq!(nv().ssthresh(&state, &mut context(0, &mut Stream::named(1, "test"))), 79);
    }

    #[test]
    fn the_rate_is_the_kernels() {
        let mut nv = nv();
        sample(&mut nv, 1000, 100, 0);
        assert_eq!((nv.evaluation.rate, nv.least_rtt, nv.next_least_rtt), (11_584_000, 1000, 1000));
    }

    #[test]
    fn a_window_above_what_the_path_carries_loses_30_percent_of_the_excess() {
        let mut nv = evaluated(60, 1);
        assert_eq!(nv.most(1448), 90, "80 and the pad of 10");
        let after = judge(&mut nv, 100, 50);
        assert_eq!((after.cwnd, after.ssthresh, nv.may_grow), (98, 90, false));
        assert_eq!(nv.evaluation.samples, 0, "the next evaluation begins");
        assert_eq!(judge(&mut evaluated(60, 1), 92, 50).cwnd, 90);
        assert_eq!(judge(&mut evaluated(60, 1), 190, 50).cwnd, 190 - 100 * 38 / 128);
    }

    #[test]
    fn it_takes_60_samples_to_shrink_and_30_to_leave_slow_start() {
        assert_eq!(judge(&mut evaluated(59, 1), 100, 50).cwnd, 100);
        assert_eq!(judge(&mut evaluated(29, 1), 100, INFINITE_SSTHRESH).cwnd, 100);
        assert_eq!(judge(&mut evaluated(30, 1), 100, INFINITE_SSTHRESH).ssthresh, 90);
        assert_eq!(judge(&mut evaluated(60, 0), 100, 50).cwnd, 100, "and two round trips");
    }

    #[test]
    fn growth_stops_when_ten_rounds_brought_too_few_samples() {
        let may_grow = |rounds| {
            let mut nv = evaluated(30, rounds);
            judge(&mut nv, 100, 50);
            nv.may_grow
        };
        assert_eq!([9, 10].map(may_grow), [true, false]);
    }

    #[test]
    fn growth_is_allowed_two_packets_below_after_20_samples() {
        let allowed = |samples, size| {
            let mut nv = Nv { may_grow: false, ..evaluated(samples, 0) };
            judge(&mut nv, size, 50);
            nv.may_grow
        };
        assert_eq!([allowed(20, 88), allowed(19, 88), allowed(20, 89)], [true, false, false]);
    }

    #[test]
    fn a_timeout_slows_growth_by_two_until_nine_good_evaluations() {
        let (mut nv, mut stream) = (nv(), Stream::named(1, "test"));
        nv.set_state(&mut CwndState::default(), CaState::Loss, &mut context(0, &mut stream));
        assert_eq!((nv.slowed, nv.may_grow, nv.disturbed), (1, false, true));
        for evaluation in 1..=9 {
            assert_eq!(nv.slowed, 1, "evaluation {evaluation}");
            nv.evaluation.samples = 20;
            nv.allow_growth();
        }
        assert_eq!(nv.slowed, 0);
        let period = |slowed| {
            let mut state = CwndState { cwnd: 10, ssthresh: 2, ..CwndState::default() };
            let mut nv = Nv { slowed, ..super::tests::nv() };
            nv.cong_avoid(&mut state, 15, &AckSample::default(), &mut context(0, &mut Stream::named(1, "test")));
            (state.cwnd, state.cwnd_cnt)
        };
        assert_eq!([period(0), period(1)], [(11, 5), (10, 15)]);
    }

    #[test]
    fn a_round_trip_in_one_acknowledgement_widens_the_allowance_instead_of_being_judged() {
        let mut nv = Nv { may_grow: false, ..evaluated(1, 5) };
        let mut state = CwndState { cwnd: 100, ssthresh: 50, ..CwndState::default() };
        nv.judge(&mut state, 3, &AckSample { snd_nxt: 100, ..AckSample::default() });
        assert_eq!((nv.lone, nv.round_end, nv.may_grow, state.cwnd), (6, 106, true, 100));
    }

    #[test]
    fn the_least_rtt_is_forgotten_after_the_period() {
        let mut nv = nv();
        sample(&mut nv, 100, 10, 0);
        sample(&mut nv, 100_000, 10, 1000);
        assert_eq!(nv.least_rtt, 100);
        nv.next_least_rtt = u64::MAX;
        sample(&mut nv, 100_000, 10, 2000);
        assert_eq!(nv.least_rtt, 75_025, "smoothed: half of the last, half of this one");
        let next = nv.reset_at.since(Instant::ZERO).as_millis();
        assert!((5_750..=8_250).contains(&next), "{next}");
    }

    #[test]
    fn an_evaluation_starts_over_after_a_reduction() {
        let (mut nv, mut stream) = (evaluated(50, 3), Stream::named(1, "test"));
        for ca_state in [CaState::Recovery, CaState::Open] {
            nv.set_state(&mut CwndState::default(), ca_state, &mut context(0, &mut stream));
        }
        assert_eq!((nv.evaluation.samples, nv.may_grow, nv.slowed), (0, false, 0));
    }
}
