//! TCP-NV ("New Vegas"): Vegas for data centres, with rates instead of single RTTs.
//!
//! In an evaluation (one or more round trips), the maximum rate and the minimum RTT give the window without queue, plus
//! a pad of ten packets: `max_win = maximum rate * minimum RTT + 10`. A rate is the number of packets delivered over
//! one packet's smoothed RTT.
//! - Window above `max_win`: no growth, threshold = `max_win`, and the window falls by 30 % of the excess.
//! - Window at least 2 packets below: Reno's growth is allowed, slowed by a factor of two for each recent timeout.
//! - Loss: 0.8 of the window.
//! - The minimum RTT is that of the last 5 s or so (drawn at random between 3.75 and 6.25 s, so that flows differ).
//!
//! A flow that never lets its own queue drain loses the path's RTT after that time: alone on a path, its queue grows by
//! the pad in every period. After a reduction, growth needs 20 samples in an evaluation, so that the flow grows little
//! with few packets per round trip.
//!
//! Source: Brakmo, "TCP-NV: congestion avoidance for data centers" (2010); constants, integers and order of Linux 6.1
//! (`tcp_nv.c`).
//! Deviations from Linux: an acknowledgement without a valid delivery-rate sample is ignored, and no base RTT is given
//! from outside (Linux: by a BPF program).

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, PathInfo,
    Properties, RateSample,
};
use units::{INFINITE_SSTHRESH, Instant, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "nv",
    aliases: &["tcp-nv"],
    title: "New Vegas: for data centres, keeps about ten packets in the queue",
    source: "Brakmo, 2010; Linux 6.1 tcp_nv.c",
    parameters: &[
        Parameter {
            name: "pad",
            description: "packets allowed beyond the path's capacity",
            kind: ParamKind::Number { default: 10.0, min: 2.0, max: 1000.0 },
        },
        Parameter {
            name: "reset_period",
            description: "lifetime of a minimum RTT, seconds",
            kind: ParamKind::Number { default: 5.0, min: 0.1, max: 3600.0 },
        },
        Parameter {
            name: "beta",
            description: "window after a loss, as a fraction of the window before it",
            kind: ParamKind::Number { default: 0.8, min: 0.1, max: 0.95 },
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Nv::new(params))),
};

/// A window this close below the maximum is neither raised nor lowered, packets.
const PAD_BUFFER: u32 = 2;
/// Fraction of the packets above the maximum window by which the window is reduced, in 1/128 (`nv_dec_factor`).
const LOSS_DEC_FACTOR: u32 = 38;
/// Samples before a decision to shrink, to shrink in slow start, and to grow.
const DEC_EVAL_MIN_CALLS: u32 = 60;
const SSTHRESH_EVAL_MIN_CALLS: u32 = 30;
const INC_EVAL_MIN_CALLS: u32 = 20;
/// Round trips before a decision to shrink, and without enough samples before growth stops.
const RTT_MIN_CNT: u32 = 2;
const STOP_RTT_CNT: u32 = 10;
/// Maximum exponent by which growth is slowed, and good evaluations before it falls.
const MIN_CWND_GROW_SHIFT: u32 = 8;
const MIN_CWND_GROWTH_EVALS: u32 = 8;
/// Window that a round trip with one sample may have: bounds and step, packets.
const MIN_MIN_CWND: u32 = 4;
const MAX_MIN_CWND: u32 = 81;
const MIN_CWND_STEP: u32 = 2;
/// Minimum window after an evaluation.
const MIN_CWND: u32 = 2;
/// Minimum number of acknowledged packets per packet of growth.
const MIN_GROWTH_CNT: u32 = 4;
/// Rates are counted in 100 bit/s, with microseconds and bytes.
const RATE_SCALE: u64 = 80_000;
/// Time after which the first minimum RTT is reset.
const INIT_RESET_PERIOD: Span = Span::from_secs(2);

/// State of TCP-NV. Times are microseconds.
#[derive(Debug)]
pub struct Nv {
    pad: u32,
    reset_period: f64,
    /// Window after a loss, in 1/1024 of the window before it.
    beta: u64,

    last_rtt: Option<u64>,
    min_rtt: u64,
    /// Minimum RTT since the last reset.
    min_rtt_new: u64,
    min_rtt_reset: Instant,

    eval: Eval,
    rtt_start_seq: u64,
    last_snd_una: u64,
    /// Acknowledged by the latest acknowledgement.
    snd_una: u64,
    /// Packets that receivers and interfaces may acknowledge at once.
    base_min_cwnd: u32,

    allow_cwnd_growth: bool,
    /// Growth is slowed by two to the power of this.
    cwnd_growth_shift: u32,
    growth_evals: u32,
    catchup: bool,
}

/// Counts of the current evaluation.
#[derive(Debug, Default)]
struct Eval {
    rtt_max_rate: u64,
    eval_call_cnt: u32,
    rtt_cnt: u32,
}

impl Nv {
    fn new(params: &Params) -> Self {
        Self {
            pad: params.number("pad") as u32,
            reset_period: params.number("reset_period"),
            beta: libm::round(params.number("beta") * 1024.0) as u64,
            last_rtt: None,
            min_rtt: u64::MAX,
            min_rtt_new: u64::MAX,
            min_rtt_reset: Instant::ZERO + INIT_RESET_PERIOD,
            eval: Eval::default(),
            rtt_start_seq: 0,
            last_snd_una: 0,
            snd_una: 0,
            base_min_cwnd: MIN_MIN_CWND,
            allow_cwnd_growth: true,
            cwnd_growth_shift: 0,
            growth_evals: 0,
            catchup: false,
        }
    }

    fn add_sample(&mut self, rtt: u64, delivery: &RateSample, mss: u32, cx: &mut Context<'_>) {
        let rtt = match self.last_rtt {
            Some(last) => rtt.midpoint(last),
            None => {
                self.min_rtt = 2 * rtt;
                rtt
            }
        };
        self.last_rtt = Some(rtt);
        let rate = u64::from(delivery.delivered) * u64::from(mss) * RATE_SCALE / rtt.max(1);
        self.eval.rtt_max_rate = self.eval.rtt_max_rate.max(rate);
        self.eval.eval_call_cnt += 1;
        self.min_rtt = self.min_rtt.min(rtt);
        self.min_rtt_new = self.min_rtt_new.min(rtt);
        self.update_min_rtt(cx);
    }

    fn update_min_rtt(&mut self, cx: &mut Context<'_>) {
        if cx.now >= self.min_rtt_reset {
            self.min_rtt = std::mem::replace(&mut self.min_rtt_new, u64::MAX);
            let period = self.reset_period * (0.75 + 0.5 * cx.rng.unit());
            self.min_rtt_reset = cx.now + Span::from_secs_f64(period);
            self.base_min_cwnd = (self.base_min_cwnd / 2).max(MIN_MIN_CWND);
        }
    }

    /// Window without queue plus the pad, packets (`max_win`).
    fn max_win(&self, mss: u32) -> u32 {
        let bytes = u128::from(self.eval.rtt_max_rate) * u128::from(self.min_rtt) / u128::from(RATE_SCALE);
        let packets = bytes / u128::from(mss.max(1));
        u32::try_from(packets).unwrap_or(INFINITE_SSTHRESH).min(INFINITE_SSTHRESH - self.pad) + self.pad
    }

    /// Evaluates a round trip at its end.
    fn end_round(&mut self, state: &mut CwndState, acked_packets: u64, sample: &AckSample) {
        self.eval.rtt_cnt += 1;
        self.rtt_start_seq = sample.snd_nxt;
        if self.eval.eval_call_cnt == 1
            && acked_packets >= u64::from(self.base_min_cwnd - 1)
            && self.base_min_cwnd < MAX_MIN_CWND
        {
            // A whole round trip in one acknowledgement is no evidence; a larger window comes first.
            self.base_min_cwnd = (self.base_min_cwnd + MIN_CWND_STEP).min(MAX_MIN_CWND);
            self.rtt_start_seq = sample.snd_nxt + u64::from(self.base_min_cwnd);
            (self.eval.eval_call_cnt, self.allow_cwnd_growth) = (0, true);
            return;
        }
        let max_win = self.max_win(state.mss);
        let evaluated_now = if state.cwnd > max_win {
            self.decrease(state, max_win)
        } else {
            state.cwnd <= max_win - PAD_BUFFER && self.increase()
        };
        if evaluated_now {
            self.eval = Eval::default();
            state.cwnd = state.cwnd.max(MIN_CWND);
        }
    }

    /// Lowers the window towards `max_win`. Returns false while there are too few samples.
    fn decrease(&mut self, state: &mut CwndState, max_win: u32) -> bool {
        let Eval { eval_call_cnt: calls, rtt_cnt: rtts, .. } = self.eval;
        let slow_start = state.ssthresh == INFINITE_SSTHRESH;
        let min_calls = if slow_start { SSTHRESH_EVAL_MIN_CALLS } else { DEC_EVAL_MIN_CALLS };
        if rtts < RTT_MIN_CNT || calls < min_calls {
            self.allow_cwnd_growth &= slow_start || rtts <= STOP_RTT_CNT;
            return false;
        }
        let excess = state.cwnd - max_win;
        state.ssthresh = max_win;
        state.cwnd = if excess > 2 { state.cwnd - (excess * LOSS_DEC_FACTOR / 128).max(2) } else { max_win };
        (self.allow_cwnd_growth, self.growth_evals) = (false, 0);
        true
    }

    /// Allows growth. Returns false while there are too few samples.
    fn increase(&mut self) -> bool {
        if self.eval.eval_call_cnt < INC_EVAL_MIN_CALLS {
            return false;
        }
        self.allow_cwnd_growth = true;
        self.growth_evals += 1;
        if self.cwnd_growth_shift > 0 && self.growth_evals > MIN_CWND_GROWTH_EVALS {
            self.cwnd_growth_shift -= 1;
            self.growth_evals = 0;
        }
        true
    }
}

impl CongestionOps for Nv {
    fn init(&mut self, _state: &mut CwndState, _path: &PathInfo, cx: &mut Context<'_>) {
        self.min_rtt_reset = cx.now + INIT_RESET_PERIOD;
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        if !self.allow_cwnd_growth {
            return;
        }
        let remaining_acked = if state.in_slow_start() { common::slow_start(state, acked) } else { acked };
        if remaining_acked > 0 {
            let period = u64::from(state.cwnd.max(MIN_GROWTH_CNT)) << self.cwnd_growth_shift;
            common::cong_avoid_ai(state, u32::try_from(period).unwrap_or(u32::MAX), remaining_acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        (((u64::from(state.cwnd) * self.beta) >> 10) as u32).max(2)
    }

    fn in_ack_event(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        self.snd_una = progress.snd_una;
    }

    fn on_ack(&mut self, state: &mut CwndState, sample: &AckSample, cx: &mut Context<'_>) {
        let Some(rtt) = sample.rtt.filter(|_| sample.prior_ca_state <= CaState::Disorder) else { return };
        let acked_packets = sample.snd_una.saturating_sub(std::mem::replace(&mut self.last_snd_una, sample.snd_una));
        let Some(delivery) = sample.rate_sample.filter(|delivery| delivery.delivered > 0) else { return };
        self.add_sample(rtt.as_micros(), &delivery, state.mss, cx);
        if sample.snd_una > self.rtt_start_seq {
            self.end_round(state, acked_packets, sample);
        }
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        match next {
            CaState::Open if std::mem::take(&mut self.catchup) => {
                (self.eval, self.last_rtt) = (Eval::default(), None);
                // The evaluation after a recovery begins with the acknowledgement that opens the state.
                (self.growth_evals, self.rtt_start_seq, self.last_snd_una) = (0, self.snd_una, self.snd_una);
            }
            CaState::Open | CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery => (self.catchup, self.allow_cwnd_growth) = (true, false),
            CaState::Loss => {
                (self.catchup, self.allow_cwnd_growth) = (true, false);
                self.cwnd_growth_shift = (self.cwnd_growth_shift + 1).min(MIN_CWND_GROW_SHIFT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults, slow_start};

    fn nv() -> Nv {
        Nv::new(&defaults(&ENTRY))
    }

    /// After an evaluation that saw 100 packets delivered in a millisecond, with 800 us as the minimum RTT.
    fn evaluated(calls: u32, rtts: u32) -> Nv {
        let eval = Eval { rtt_max_rate: 11_584_000, eval_call_cnt: calls, rtt_cnt: rtts };
        Nv { min_rtt: 800, eval, ..nv() }
    }

    fn evaluate(nv: &mut Nv, cwnd: u32, ssthresh: u32) -> CwndState {
        let mut state = CwndState { cwnd, ssthresh, ..CwndState::default() };
        nv.end_round(&mut state, 1, &AckSample { snd_nxt: 100, ..AckSample::default() });
        state
    }

    fn sample(nv: &mut Nv, rtt_us: u64, packets: u32, now_ms: u64) {
        let interval = Span::from_micros(rtt_us);
        let delivery =
            RateSample { delivered: packets, interval, prior_delivered: 0, app_limited: false, ack_delayed: false };
        nv.add_sample(rtt_us, &delivery, 1448, &mut context(now_ms));
    }

    #[test]
    fn a_loss_keeps_819_of_1024() {
        let state = slow_start(100);
        assert_eq!(nv().ssthresh(&state, &mut context(0)), 79);
    }

    #[test]
    fn the_rate_is_the_kernels() {
        let mut nv = nv();
        sample(&mut nv, 1000, 100, 0);
        assert_eq!((nv.eval.rtt_max_rate, nv.min_rtt, nv.min_rtt_new), (11_584_000, 1000, 1000));
    }

    #[test]
    fn a_window_above_max_win_loses_30_percent_of_the_excess() {
        let mut nv = evaluated(60, 1);
        assert_eq!(nv.max_win(1448), 90, "80 and the pad of 10");
        let state = evaluate(&mut nv, 100, 50);
        assert_eq!((state.cwnd, state.ssthresh, nv.allow_cwnd_growth), (98, 90, false));
        assert_eq!(nv.eval.eval_call_cnt, 0, "the next evaluation begins");
        assert_eq!(evaluate(&mut evaluated(60, 1), 92, 50).cwnd, 90);
        assert_eq!(evaluate(&mut evaluated(60, 1), 190, 50).cwnd, 190 - 100 * 38 / 128);
    }

    #[test]
    fn a_decrease_needs_60_samples_and_the_end_of_slow_start_30() {
        assert_eq!(evaluate(&mut evaluated(59, 1), 100, 50).cwnd, 100);
        assert_eq!(evaluate(&mut evaluated(29, 1), 100, INFINITE_SSTHRESH).cwnd, 100);
        assert_eq!(evaluate(&mut evaluated(30, 1), 100, INFINITE_SSTHRESH).ssthresh, 90);
        assert_eq!(evaluate(&mut evaluated(60, 0), 100, 50).cwnd, 100, "and two round trips");
    }

    #[test]
    fn growth_stops_when_ten_rounds_brought_too_few_samples() {
        let may_grow = |rtts| {
            let mut nv = evaluated(30, rtts);
            evaluate(&mut nv, 100, 50);
            nv.allow_cwnd_growth
        };
        assert_eq!([9, 10].map(may_grow), [true, false]);
    }

    #[test]
    fn growth_is_allowed_two_packets_below_after_20_samples() {
        let allows_growth = |calls, cwnd| {
            let mut nv = Nv { allow_cwnd_growth: false, ..evaluated(calls, 0) };
            evaluate(&mut nv, cwnd, 50);
            nv.allow_cwnd_growth
        };
        assert_eq!([allows_growth(20, 88), allows_growth(19, 88), allows_growth(20, 89)], [true, false, false]);
    }

    #[test]
    fn a_timeout_slows_growth_by_two_until_nine_good_evaluations() {
        let mut nv = nv();
        nv.set_state(&mut CwndState::default(), CaState::Loss, &mut context(0));
        assert_eq!((nv.cwnd_growth_shift, nv.allow_cwnd_growth, nv.catchup), (1, false, true));
        for eval in 1..=9 {
            assert_eq!(nv.cwnd_growth_shift, 1, "evaluation {eval}");
            nv.eval.eval_call_cnt = 20;
            nv.increase();
        }
        assert_eq!(nv.cwnd_growth_shift, 0);
        let period = |shift| {
            let mut state = congestion_avoidance(10);
            let mut nv = Nv { cwnd_growth_shift: shift, ..super::tests::nv() };
            nv.cong_avoid(&mut state, 15, &AckSample::default(), &mut context(0));
            (state.cwnd, state.cwnd_cnt)
        };
        assert_eq!([period(0), period(1)], [(11, 5), (10, 15)]);
    }

    #[test]
    fn a_round_trip_in_one_acknowledgement_is_not_evaluated() {
        let mut nv = Nv { allow_cwnd_growth: false, ..evaluated(1, 5) };
        let mut state = CwndState { cwnd: 100, ssthresh: 50, ..CwndState::default() };
        nv.end_round(&mut state, 3, &AckSample { snd_nxt: 100, ..AckSample::default() });
        assert_eq!((nv.base_min_cwnd, nv.rtt_start_seq, nv.allow_cwnd_growth, state.cwnd), (6, 106, true, 100));
    }

    #[test]
    fn the_min_rtt_is_reset_after_the_period() {
        let mut nv = nv();
        sample(&mut nv, 100, 10, 0);
        sample(&mut nv, 100_000, 10, 1000);
        assert_eq!(nv.min_rtt, 100);
        nv.min_rtt_new = u64::MAX;
        sample(&mut nv, 100_000, 10, 2000);
        assert_eq!(nv.min_rtt, 75_025, "smoothed: half of the last, half of this one");
        let next_reset = nv.min_rtt_reset.since(Instant::ZERO).as_millis();
        assert!((5_750..=8_250).contains(&next_reset), "{next_reset}");
    }

    /// The acknowledgement that ends a recovery covers many packets; were it counted, growth would be allowed at once.
    #[test]
    fn growth_waits_for_an_evaluation_after_a_recovery() {
        let (mut nv, mut state) = (nv(), congestion_avoidance(20));
        let delivery = RateSample {
            delivered: 2,
            interval: Span::from_millis(40),
            prior_delivered: 0,
            app_limited: false,
            ack_delayed: false,
        };
        let mut acknowledge = |nv: &mut Nv, snd_una, [prior_ca_state, ca_state]: [CaState; 2]| {
            let (rtt, rate_sample) = (Some(Span::from_millis(40)), Some(delivery));
            let sample =
                AckSample { snd_una, snd_nxt: snd_una + 20, rtt, rate_sample, prior_ca_state, ..AckSample::default() };
            nv.in_ack_event(&mut state, &sample.progress(), &mut context(snd_una));
            if ca_state != prior_ca_state {
                nv.set_state(&mut state, ca_state, &mut context(snd_una));
            }
            nv.on_ack(&mut state, &sample, &mut context(snd_una));
        };
        acknowledge(&mut nv, 2, [CaState::Open; 2]);
        acknowledge(&mut nv, 3, [CaState::Open, CaState::Recovery]);
        acknowledge(&mut nv, 50, [CaState::Recovery, CaState::Open]);
        acknowledge(&mut nv, 52, [CaState::Open; 2]);
        assert!(!nv.allow_cwnd_growth && nv.base_min_cwnd == MIN_MIN_CWND);
    }

    #[test]
    fn an_evaluation_starts_over_after_a_reduction() {
        let mut nv = evaluated(50, 3);
        for ca_state in [CaState::Recovery, CaState::Open] {
            nv.set_state(&mut CwndState::default(), ca_state, &mut context(0));
        }
        assert_eq!((nv.eval.eval_call_cnt, nv.allow_cwnd_growth, nv.cwnd_growth_shift), (0, false, 0));
    }
}
