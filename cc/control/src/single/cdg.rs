//! CDG: backs off with a probability that grows with the delay gradient.
//!
//! Once per round trip, the minimum and maximum RTT of the round are compared with those of the previous round. The
//! differences, summed over eight rounds, make a gradient `g` (microseconds):
//! - `g > 0`: with probability `1 - exp(-g / G)` (G = 24 ms), the window is multiplied by 0.7. After five backoffs
//!   without effect, which a loss-based flow causes, backoffs are suspended until the gradient falls.
//! - Otherwise Reno's increase.
//! - Loss: half of the window, or of the *shadow window* if that is larger. This is the window that the flow would have
//!   without backoffs, so that loss-based flows do not profit from them.
//! - Slow start ends by loss, by a backoff, or by CDG's own HyStart.
//!
//! Source: Hayes and Armitage, "Revisiting TCP congestion control using delay gradients" (Networking 2011); constants,
//! integers and order of Linux 6.1 (`tcp_cdg.c`).
//! Deviations from the paper, as in Linux: sums instead of means (G includes the division), and HyStart.
//! Deviation from Linux: the exponential is exact (Linux: a table, within 1e-4).
//!
//! A backoff is a reduction that the sender begins on request, in the state CWR. The window falls over a round trip, in
//! proportion to the delivered packets. A request after a timeout is ignored, and the next reduction is then that of a
//! backoff.

use crate::common::{self, CongestionOps, CwndController, CwndState, RoundTrip};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, Constructor, Context, ParamKind, Parameter, Params, PathInfo, Properties,
};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "cdg",
    aliases: &[],
    title: "delay gradient: backs off at random while the RTT rises",
    source: "Hayes and Armitage, Networking 2011; Linux 6.1 tcp_cdg.c",
    parameters: &[
        Parameter {
            name: "backoff_beta",
            description: "window after a backoff, as a fraction of the window before it",
            kind: ParamKind::Number { default: std::f64::consts::FRAC_1_SQRT_2, min: 0.1, max: 0.95 },
        },
        Parameter {
            name: "backoff_factor",
            description: "backoff probability is 1 - exp(-factor * gradient), factor in 1/s",
            kind: ParamKind::Number { default: 42.0, min: 0.0, max: 10_000.0 },
        },
        Parameter {
            name: "ineffective",
            description: "backoffs without effect before they are suspended; 0: never",
            kind: ParamKind::Number { default: 5.0, min: 0.0, max: 1000.0 },
        },
        Parameter {
            name: "shadow",
            description: "after a loss, keep at least half of the window that the flow would have without backoffs",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Parameter {
            name: "hystart",
            description: "leave slow start by delay or ACK train",
            kind: ParamKind::Choice(&["on", "off"]),
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Cdg::new(params))),
};

/// Number of rounds in a gradient.
const WINDOW: usize = 8;
/// A gradient below this shows that a backoff had an effect, microseconds.
const EFFECTIVE_GRADIENT: i64 = -32;
/// Maximum count of delayed acknowledgements.
const MAX_DELAYED_ACKS: u32 = 5;
/// HyStart: maximum gap of an ACK train and minimum delay threshold, microseconds; number of samples before the delay
/// of a round counts.
const HYSTART_ACK_DELTA_US: u64 = 3_000;
const HYSTART_DELAY_MIN_US: u64 = 125;
const HYSTART_MIN_SAMPLES: u32 = 8;

/// State of CDG.
#[derive(Debug)]
pub struct Cdg {
    /// Window after a backoff, in 1/1024 of the window before it.
    backoff_beta: u64,
    backoff_factor: f64,
    ineffective: u32,
    use_shadow: bool,
    hystart: bool,
    shadow_wnd: u32,
    /// Number of the next new packet, at the latest acknowledgement.
    snd_nxt: u64,
    rtt_seq: RoundTrip,
    rtt: Option<MinMax>,
    rtt_prev: Option<MinMax>,
    gradients: Gradients,
    backoff_cnt: u32,
    /// Whether the current or next reduction is that of a backoff.
    in_backoff: bool,
    delack: u32,
    ack_train: Option<AckTrain>,
    sample_cnt: u32,
    delay_min: Option<u64>,
}

/// Minimum and maximum RTT of a round, or their differences from the previous round, microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct MinMax {
    min: i64,
    max: i64,
}

/// Differences of the last eight rounds.
#[derive(Debug, Default)]
struct Gradients {
    ring: [MinMax; WINDOW],
    tail: usize,
    filled: bool,
    sum: MinMax,
}

/// Closely spaced acknowledgements: time of the first and the latest, microseconds.
#[derive(Clone, Copy, Debug)]
struct AckTrain {
    first: u64,
    latest: u64,
}

impl Gradients {
    fn add_sample(&mut self, difference: MinMax) {
        let oldest = std::mem::replace(&mut self.ring[self.tail], difference);
        self.sum.min += difference.min - oldest.min;
        self.sum.max += difference.max - oldest.max;
        self.tail = (self.tail + 1) % WINDOW;
        self.filled |= self.tail == 0;
    }

    /// The gradient over eight rounds; extrapolated while there are fewer.
    fn smoothed(&self) -> i64 {
        let gradient = if self.sum.min > 0 { self.sum.min } else { self.sum.max };
        if self.filled { gradient } else { gradient * WINDOW as i64 / self.tail.max(1) as i64 }
    }
}

impl Cdg {
    fn new(params: &Params) -> Self {
        Self {
            backoff_beta: libm::round(params.number("backoff_beta") * 1024.0) as u64,
            backoff_factor: params.number("backoff_factor"),
            ineffective: params.number("ineffective") as u32,
            use_shadow: params.choice("shadow") == "on",
            hystart: params.choice("hystart") == "on",
            shadow_wnd: 0,
            snd_nxt: 0,
            rtt_seq: RoundTrip::default(),
            rtt: None,
            rtt_prev: None,
            gradients: Gradients::default(),
            backoff_cnt: 0,
            in_backoff: false,
            delack: 0,
            ack_train: None,
            sample_cnt: 0,
            delay_min: None,
        }
    }

    /// The gradient at the end of a round, if there is a previous round.
    fn end_round(&mut self) -> i64 {
        let prior = std::mem::replace(&mut self.rtt_prev, self.rtt.take());
        (self.ack_train, self.sample_cnt) = (None, 0);
        let (Some(current), Some(prior)) = (self.rtt_prev, prior) else { return 0 };
        self.gradients.add_sample(MinMax { min: current.min - prior.min, max: current.max - prior.max });
        let sum = self.gradients.sum;
        if sum.min <= EFFECTIVE_GRADIENT || sum.max <= EFFECTIVE_GRADIENT {
            self.backoff_cnt = 0;
        }
        self.gradients.smoothed()
    }

    /// Probability of a backoff at this gradient.
    fn probability(&self, gradient: i64) -> f64 {
        -libm::expm1(-(gradient as f64) * self.backoff_factor * 1e-6)
    }

    fn backoff_due(&mut self, gradient: i64, cx: &mut Context<'_>) -> bool {
        if gradient <= 0 || !cx.rng.chance(self.probability(gradient)) {
            return false;
        }
        self.backoff_cnt += 1;
        self.ineffective == 0 || self.backoff_cnt <= self.ineffective
    }

    fn begin_backoff(&mut self, state: &mut CwndState) {
        self.shadow_wnd = self.shadow_wnd.max(state.cwnd);
        self.in_backoff = true;
        state.request_reduction();
    }

    fn hystart_update(&mut self, sample: &AckSample, now: u64) -> bool {
        let rtt = self.rtt.map(|rtt| rtt.min as u64);
        self.delay_min = self.delay_min.into_iter().chain(rtt).min();
        let Some(delay_min) = self.delay_min else { return false };
        self.ack_train_found(delay_min, sample, now) || self.delay_found(delay_min, rtt)
    }

    fn ack_train_found(&mut self, delay_min: u64, sample: &AckSample, now: u64) -> bool {
        match &mut self.ack_train {
            Some(train) if sample.cwnd_limited => {
                let is_close = now < train.latest + HYSTART_ACK_DELTA_US;
                if is_close {
                    train.latest = now;
                }
                is_close && now > train.first + (delay_min / 2).max(HYSTART_DELAY_MIN_US)
            }
            train => {
                *train = Some(AckTrain { first: now, latest: now });
                false
            }
        }
    }

    fn delay_found(&mut self, delay_min: u64, rtt: Option<u64>) -> bool {
        if self.sample_cnt < HYSTART_MIN_SAMPLES {
            self.sample_cnt += 1;
            return false;
        }
        rtt > Some((delay_min + delay_min / 8).max(HYSTART_DELAY_MIN_US))
    }
}

impl CongestionOps for Cdg {
    /// The RTT of the handshake belongs to the first round. Its packets are small, so that the first gradient is that
    /// of a transmission time and not that of the initial window's burst.
    fn init(&mut self, state: &mut CwndState, path: &PathInfo, _cx: &mut Context<'_>) {
        self.shadow_wnd = state.cwnd;
        self.rtt = path.rtt.map(|rtt| rtt.as_micros() as i64).map(|rtt| MinMax { min: rtt, max: rtt });
    }

    /// Gradients are evaluated in every round; `cong_avoid` itself checks for a full window before it grows.
    fn ignores_cwnd_limited(&self) -> bool {
        true
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, cx: &mut Context<'_>) {
        if self.hystart && state.in_slow_start() && self.hystart_update(sample, cx.now.0 / 1000) {
            state.ssthresh = state.cwnd;
        }
        if self.rtt.is_some() && self.rtt_seq.ends(sample) {
            let gradient = self.end_round();
            if self.backoff_due(gradient, cx) {
                return self.begin_backoff(state);
            }
        }
        if sample.cwnd_limited {
            let prior_cwnd = state.cwnd;
            common::reno_cong_avoid(state, acked);
            self.shadow_wnd = self.shadow_wnd.saturating_add(state.cwnd - prior_cwnd);
        } else {
            self.shadow_wnd = self.shadow_wnd.min(state.cwnd);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        if self.in_backoff {
            return (((u64::from(state.cwnd) * self.backoff_beta) >> 10) as u32).max(2);
        }
        self.shadow_wnd = (self.shadow_wnd / 2).min(state.cwnd);
        (state.cwnd / 2).max(if self.use_shadow { self.shadow_wnd } else { 0 }).max(2)
    }

    fn pkts_acked(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        self.snd_nxt = progress.snd_nxt;
        let Some(rtt) = progress.rtt.map(|rtt| rtt.as_micros() as i64).filter(|&rtt| rtt > 0) else { return };
        if progress.sacked == 0 {
            // After acknowledgements of pairs, an acknowledgement of a single packet was probably delayed: it raises no
            // RTT.
            if progress.pkts_acked == 1 && self.delack > 0 {
                self.delack -= 1;
                self.rtt.iter_mut().for_each(|of_round| of_round.min = of_round.min.min(rtt));
                return;
            }
            self.delack += u32::from(progress.pkts_acked > 1 && self.delack < MAX_DELAYED_ACKS);
        }
        let of_round = self.rtt.unwrap_or(MinMax { min: rtt, max: rtt });
        self.rtt = Some(MinMax { min: of_round.min.min(rtt), max: of_round.max.max(rtt) });
    }

    /// The round of a reduction is not compared with the next one.
    fn on_recovered(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {
        self.in_backoff = false;
        self.rtt_prev = self.rtt.take();
        self.rtt_seq.restart(self.snd_nxt);
    }

    fn on_window_restart(&mut self, state: &mut CwndState, _cx: &mut Context<'_>) {
        self.gradients = Gradients::default();
        (self.rtt, self.rtt_prev, self.ack_train, self.sample_cnt) = (None, None, None, 0);
        (self.backoff_cnt, self.delack, self.delay_min) = (0, 0, None);
        (self.shadow_wnd, self.in_backoff) = (state.cwnd, false);
        self.rtt_seq.restart(self.snd_nxt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, context_with, defaults};
    use units::{RngStream, Span};

    fn cdg() -> Cdg {
        Cdg::new(&defaults(&ENTRY))
    }

    /// Round trips of ten packets, acknowledged in pairs.
    struct Flow {
        cdg: Cdg,
        state: CwndState,
        una: u64,
        now: u64,
        rng: RngStream,
    }

    impl Flow {
        fn new(cdg: Cdg, state: CwndState) -> Self {
            Self { cdg, state, una: 0, now: 0, rng: RngStream::named(1, "test") }
        }

        fn round(&mut self, rtt_us: u64) {
            let end = self.una + 10;
            while self.una < end {
                self.una += 2;
                self.now += 10;
                let sample = AckSample {
                    acked: 2,
                    pkts_acked: 2,
                    rtt: Some(Span::from_micros(rtt_us)),
                    snd_una: self.una,
                    snd_nxt: end,
                    cwnd_limited: true,
                    ..AckSample::default()
                };
                let mut cx = context_with(self.now, &mut self.rng);
                self.cdg.pkts_acked(&mut self.state, &sample.progress(), &mut cx);
                self.cdg.cong_avoid(&mut self.state, 2, &sample, &mut cx);
            }
        }
    }

    #[test]
    fn the_chance_of_a_backoff_grows_with_the_gradient() {
        // The kernel's values; its table of the exponential is good to 1e-4.
        let linux = [(1000, 0.0411), (4000, 0.1547), (10_000, 0.3429), (16_000, 0.4893), (24_000, 0.6350)];
        for (gradient, linux) in linux {
            let ours = cdg().probability(gradient);
            assert!((ours - linux).abs() < 1e-4, "{gradient} us: {ours}");
            let exact = 1.0 - libm::exp(-42e-6 * gradient as f64);
            assert!((ours - exact).abs() < 1e-12, "{gradient} us: {ours}");
        }
    }

    #[test]
    fn a_backoff_keeps_seven_tenths_and_sets_the_shadow_window() {
        let backoff_from = |cwnd| {
            let (mut cdg, mut state) = (cdg(), congestion_avoidance(cwnd));
            cdg.begin_backoff(&mut state);
            assert!(state.requests_reduction);
            (cdg.ssthresh(&state, &mut context(0)), cdg.shadow_wnd)
        };
        assert_eq!([10, 100].map(backoff_from), [(7, 10), (70, 100)]);
    }

    #[test]
    fn a_loss_keeps_half_of_the_shadow() {
        let mut cdg = cdg();
        cdg.shadow_wnd = 90;
        assert_eq!(cdg.ssthresh(&congestion_avoidance(50), &mut context(0)), 45);
        assert_eq!(cdg.shadow_wnd, 45);
        assert_eq!(cdg.ssthresh(&congestion_avoidance(45), &mut context(0)), 22, "half of the window is as much");
    }

    #[test]
    fn the_gradient_is_the_sum_of_eight_rounds_extrapolated_while_there_are_fewer() {
        let mut gradients = Gradients::default();
        let mut smoothed = |min, max| {
            gradients.add_sample(MinMax { min, max });
            gradients.smoothed()
        };
        assert_eq!(smoothed(100, 0), 800);
        assert_eq!(smoothed(300, 0), 1600);
        (0..6).for_each(|_| assert!(smoothed(0, 0) > 0));
        assert_eq!(smoothed(50, 0), 350, "the first one has left");
        assert_eq!(smoothed(-400, 70), 70, "the greatest RTT counts where the minimum does not rise");
    }

    #[test]
    fn steady_delay_never_backs_off_and_grows_as_reno() {
        let mut flow = Flow::new(cdg(), congestion_avoidance(10));
        (0..50).for_each(|_| flow.round(20_000));
        assert_eq!((flow.cdg.backoff_cnt, flow.cdg.in_backoff), (0, false));
        let mut reno = congestion_avoidance(10);
        (0..250).for_each(|_| common::reno_cong_avoid(&mut reno, 2));
        assert_eq!(flow.state.cwnd, reno.cwnd);
    }

    #[test]
    fn rising_delay_asks_for_a_reduction_whose_end_begins_the_gradients_again() {
        let params = [("backoff_factor".to_owned(), crate::ParamValue::Number(10_000.0))].into();
        let cdg = Cdg::new(&Params::new(ENTRY.parameters, &params).expect("allowed"));
        let mut flow = Flow::new(cdg, congestion_avoidance(10));
        (0..2).for_each(|_| flow.round(20_000));
        assert!(!flow.state.requests_reduction);
        // The acknowledgement that ends the round brings its greatest RTT.
        flow.round(30_000);
        assert!(flow.state.requests_reduction && flow.cdg.in_backoff);
        flow.cdg.on_recovered(&mut flow.state, &mut context(0));
        assert!(!flow.cdg.in_backoff && flow.cdg.rtt.is_none() && flow.cdg.rtt_prev.is_some());
    }

    #[test]
    fn backoffs_are_suspended_after_five_without_effect() {
        let mut cdg = Cdg { backoff_factor: 1e9, ..cdg() };
        let backoffs: Vec<bool> = (0..7).map(|_| cdg.backoff_due(1000, &mut context(0))).collect();
        assert_eq!(backoffs, [true, true, true, true, true, false, false]);
        cdg.rtt = Some(MinMax { min: 900, max: 1000 });
        cdg.rtt_prev = Some(MinMax { min: 932, max: 1000 });
        cdg.end_round();
        assert!(cdg.backoff_due(1000, &mut context(0)), "32 us less: it had an effect");
    }

    #[test]
    fn a_delayed_acknowledgement_does_not_raise_the_round_s_rtts() {
        let mut cdg = cdg();
        let mut sample = |pkts_acked, rtt| {
            let progress = AckProgress { pkts_acked, rtt: Some(Span::from_micros(rtt)), ..AckProgress::default() };
            cdg.pkts_acked(&mut congestion_avoidance(10), &progress, &mut context(0));
            cdg.rtt.map(|rtt| (rtt.min, rtt.max))
        };
        assert_eq!(sample(2, 100), Some((100, 100)));
        assert_eq!(sample(1, 40_000), Some((100, 100)));
        assert_eq!(sample(1, 40_000), Some((100, 40_000)), "one pair excuses one");
        assert_eq!(sample(2, 120), Some((100, 40_000)));
        assert_eq!(sample(1, 90), Some((90, 40_000)), "but it may lower the minimum");
    }

    #[test]
    fn slow_start_ends_when_a_rounds_min_rtt_is_an_eighth_above_the_minimum() {
        let mut cdg = cdg();
        let found: Vec<bool> = (0..9).map(|_| cdg.delay_found(20_000, Some(22_501))).collect();
        assert_eq!(found, [false, false, false, false, false, false, false, false, true]);
        assert!(!cdg.delay_found(20_000, Some(22_500)));
        assert!(!cdg.delay_found(20_000, None), "the round has no sample yet");
    }

    #[test]
    fn a_train_longer_than_half_the_min_rtt_ends_slow_start() {
        let mut cdg = cdg();
        let sample = AckSample { cwnd_limited: true, ..AckSample::default() };
        let found = (0..100).find(|ack| cdg.ack_train_found(20_000, &sample, 1_000_000 + 2_999 * ack));
        assert_eq!(found, Some(4), "4 * 2.999 ms is more than 10 ms");
        cdg.ack_train = None;
        assert!((0..100).all(|ack| !cdg.ack_train_found(20_000, &sample, 1_000_000 + 3_000 * ack)));
    }
}
