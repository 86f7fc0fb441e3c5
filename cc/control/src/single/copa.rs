//! Copa: a target rate in inverse proportion to the queueing delay.
//!
//! With the queueing delay `dq = standing_rtt - min_rtt` (the minimum RTT of the last half smoothed RTT, and that of
//! the last 10 s), each acknowledged packet moves the window by `v / (delta window)`: up while the rate
//! `window / standing_rtt` is at most `1 / (delta dq)`, and down otherwise. A flow therefore keeps about `1 / delta`
//! packets queued.
//! - *Velocity* `v`: doubles every round trip once the window has moved in the same direction for three round trips; 1
//!   after a change of direction.
//! - Slow start doubles every round trip until the rate is above the target. Pacing: `2 window / standing_rtt`.
//! - *Competitive mode* (optional): Copa flows empty the queue every few round trips. If it has not been nearly empty
//!   (a tenth of the range of RTTs) for five round trips, a loss-based flow fills it. Then `1 / delta` grows by 1 per
//!   round trip and halves on loss, like Reno's window.
//! - Loss changes nothing else. After a timeout, slow start restarts with one packet.
//!
//! Source: Arun and Balakrishnan, "Copa: practical delay-based congestion control for the internet" (NSDI 2018).
//! Deviations from the paper: the windowed extremes are Linux's three-sample filters. `v / delta` is at most the
//! window, so that the window changes by no more than itself per round trip (the paper sets no bound). The window grows
//! only while it is filled (the paper does not say). The competitive mode is off by default, as in the deployed
//! implementation (mvfst has none): on a short path the queue of a flow's own slow start can trigger it. Once
//! `1 / delta` exceeds the bandwidth-delay product, the window no longer oscillates, so that the queue is never empty
//! again.

use crate::common::{RoundTrip, WindowedMax};
use crate::{
    AckSample, AlgorithmEntry, Cause, Constructor, Context, Decision, Deviation, ParamKind, Parameter, Params,
    PathController, PathEvent, PathInfo, Properties,
};
use units::{INFINITE_SSTHRESH, Instant, Rate, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "copa",
    aliases: &[],
    title: "delay-based: a target rate of one packet per delta times the queueing delay",
    source: "Arun and Balakrishnan, NSDI 2018",
    parameters: &[
        Parameter {
            name: "delta",
            description: "1 / packets that the flow keeps in the queue",
            kind: ParamKind::Number { default: 0.5, min: 0.004, max: 1.0 },
        },
        Parameter {
            name: "competitive",
            description: "compete if other flows fill the queue",
            kind: ParamKind::Choice(&["off", "on"]),
        },
    ],
    properties: Properties {
        deviations: &[(Deviation::KeepsCwndOnUndo, "loss does not reduce the window")],
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| Box::new(Copa::new(params))),
};

/// Windows are counted in 2^-16 packets, and queued packets (1 / delta) in 2^-8.
const PACKET: u64 = 1 << 16;
const INV_DELTA_ONE: u64 = 1 << 8;
/// The minimum window outside a timeout.
const MIN_CWND: u64 = 2 * PACKET;
/// Maximum window.
const MAX_CWND: u64 = (INFINITE_SSTHRESH as u64) * PACKET;
/// Window of the minimum RTT's filter.
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// Round trips in one direction before the velocity doubles.
const VELOCITY_ROUNDS: u32 = 3;
/// The maximum RTT is that of the last 4 round trips; the queue must have been nearly empty in the last 5.
const MAX_RTT_ROUNDS: u64 = 4;
const EMPTY_ROUNDS: u64 = 5;
/// Nearly empty: this fraction of the range of RTTs.
const EMPTY_DIVISOR: u64 = 10;

/// Copa on one path.
#[derive(Debug)]
pub struct Copa {
    /// Congestion window, in 2^-16 packets.
    cwnd: u64,
    ssthresh: u32,
    mss: u32,
    slow_start: bool,
    /// Packets in the queue (1 / delta), in 2^-8: the parameter, and the current value.
    default_inv_delta: u64,
    inv_delta: u64,
    competitive: bool,
    rtts: RttFilters,
    velocity: Velocity,
    round: RoundTrip,
    lost: bool,
    /// Window and slow start before a timeout.
    prior_state: Option<(u64, bool)>,
}

/// Extremes of the RTT over three time windows, nanoseconds.
#[derive(Debug, Default)]
struct RttFilters {
    /// Filters of maxima: these two hold [`u64::MAX`] minus the RTT.
    min_rtt: WindowedMax,
    standing_rtt: WindowedMax,
    max_rtt: WindowedMax,
    last_nearly_empty: Instant,
}

/// Velocity of the window: its change doubles after rounds in one direction.
#[derive(Debug)]
struct Velocity {
    value: u64,
    up: bool,
    same_direction_rounds: u32,
    /// Window one round trip ago, in 2^-16 packets.
    prior_cwnd: u64,
}

impl RttFilters {
    fn min_rtt(&self) -> u64 {
        u64::MAX - self.min_rtt.get()
    }

    fn standing_rtt(&self) -> u64 {
        u64::MAX - self.standing_rtt.get()
    }

    fn add_sample(&mut self, rtt: u64, srtt: u64, now: Instant) {
        self.min_rtt.update(MIN_RTT_WINDOW.as_nanos(), now.0, u64::MAX - rtt);
        self.standing_rtt.update(srtt / 2, now.0, u64::MAX - rtt);
        self.max_rtt.update(srtt.saturating_mul(MAX_RTT_ROUNDS), now.0, rtt);
        let range = self.max_rtt.get().saturating_sub(self.min_rtt());
        // Not strictly less: on a path with constant RTT, the queue is empty.
        if rtt <= self.min_rtt() + range / EMPTY_DIVISOR {
            self.last_nearly_empty = now;
        }
    }
}

impl Velocity {
    fn new(cwnd: u64) -> Self {
        Self { value: 1, up: true, same_direction_rounds: 0, prior_cwnd: cwnd }
    }

    /// Updates direction and velocity at the end of a round trip with this window.
    fn end_round(&mut self, cwnd: u64) {
        let up = cwnd > self.prior_cwnd;
        if up == self.up {
            self.same_direction_rounds += 1;
            if self.same_direction_rounds >= VELOCITY_ROUNDS {
                self.value = self.value.saturating_mul(2);
            }
        } else {
            (self.value, self.same_direction_rounds) = (1, 0);
        }
        (self.up, self.prior_cwnd) = (up, cwnd);
    }
}

impl Copa {
    fn new(params: &Params) -> Self {
        let inv_delta = libm::round(INV_DELTA_ONE as f64 / params.number("delta")) as u64;
        Self {
            cwnd: 10 * PACKET,
            ssthresh: INFINITE_SSTHRESH,
            mss: 1448,
            slow_start: true,
            default_inv_delta: inv_delta,
            inv_delta,
            competitive: params.choice("competitive") == "on",
            rtts: RttFilters::default(),
            velocity: Velocity::new(10 * PACKET),
            round: RoundTrip::default(),
            lost: false,
            prior_state: None,
        }
    }

    fn init(&mut self, path: &PathInfo, now: Instant) {
        self.cwnd = u64::from(path.initial_window) * PACKET;
        self.velocity = Velocity::new(self.cwnd);
        self.mss = path.mss;
        self.rtts.last_nearly_empty = now;
        if let Some(rtt) = path.rtt {
            self.rtts.add_sample(rtt.as_nanos(), rtt.as_nanos(), now);
        }
    }

    fn on_ack(&mut self, sample: &AckSample, now: Instant) {
        self.lost |= sample.lost > 0;
        if let Some(rtt) = sample.rtt {
            self.rtts.add_sample(rtt.as_nanos(), sample.srtt.as_nanos(), now);
        }
        if self.round.ends(sample) {
            self.end_round(sample.srtt, now);
        }
        let below_target = self.is_below_target();
        if self.slow_start && !below_target {
            self.slow_start = false;
            self.ssthresh = (self.packets() as u32).max(2);
            self.velocity = Velocity::new(self.cwnd);
        }
        let may_grow = sample.cwnd_limited && sample.may_raise_cwnd;
        match (below_target, self.slow_start) {
            (true, _) if !may_grow => {}
            (true, true) => self.cwnd += u64::from(sample.acked) * PACKET,
            (true, false) => self.cwnd += self.step(sample.acked),
            (false, _) => {
                let min_cwnd = self.cwnd.min(MIN_CWND);
                self.cwnd = self.cwnd.saturating_sub(self.step(sample.acked)).max(min_cwnd);
            }
        }
        self.cwnd = self.cwnd.min(MAX_CWND);
    }

    fn end_round(&mut self, srtt: Span, now: Instant) {
        if !self.slow_start {
            self.velocity.end_round(self.cwnd);
            // A round trip changes the window by v / delta, which is at most the window itself.
            let max_velocity = self.cwnd * INV_DELTA_ONE / PACKET / self.inv_delta;
            self.velocity.value = self.velocity.value.min(max_velocity.max(1));
        }
        let lost = std::mem::take(&mut self.lost);
        let competing = self.competitive && now.since(self.rtts.last_nearly_empty) > srtt * EMPTY_ROUNDS;
        self.inv_delta = match (competing, lost) {
            (false, _) => self.default_inv_delta,
            (true, false) => self.inv_delta + INV_DELTA_ONE,
            (true, true) => (self.inv_delta / 2).max(self.default_inv_delta),
        };
    }

    /// Whether the rate is at most the target: `window / standing_rtt <= 1 / (delta dq)`.
    fn is_below_target(&self) -> bool {
        let (min_rtt, standing_rtt) = (self.rtts.min_rtt(), self.rtts.standing_rtt());
        let queueing_delay = standing_rtt.saturating_sub(min_rtt);
        let rate = u128::from(self.cwnd) * u128::from(queueing_delay) * u128::from(INV_DELTA_ONE);
        rate <= u128::from(self.inv_delta) * u128::from(PACKET) * u128::from(standing_rtt)
    }

    /// `v / (delta window)` for each of `acked` packets, in 2^-16 packets.
    fn step(&self, acked: u32) -> u64 {
        let packets =
            u128::from(acked) * u128::from(self.velocity.value) * u128::from(self.inv_delta * PACKET / INV_DELTA_ONE);
        u64::try_from(packets * u128::from(PACKET) / u128::from(self.cwnd.max(1))).unwrap_or(MAX_CWND)
    }

    fn packets(&self) -> u64 {
        self.cwnd / PACKET
    }

    fn on_timeout(&mut self, reduce_cwnd: bool, in_flight: u32) {
        if reduce_cwnd {
            self.prior_state = Some((self.cwnd, self.slow_start));
        }
        self.cwnd = u64::from(in_flight + 1) * PACKET;
        self.slow_start = true;
    }

    fn on_spurious_loss(&mut self) {
        if let Some((cwnd, slow_start)) = self.prior_state.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.slow_start = slow_start;
            self.velocity = Velocity::new(self.cwnd);
        }
    }
}

impl PathController for Copa {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        match event {
            PathEvent::Ack(sample) => self.on_ack(sample, cx.now),
            PathEvent::PathUp(path) => self.init(path, cx.now),
            PathEvent::Congestion { cause: Cause::Timeout, reduce_cwnd, in_flight, .. } => {
                self.on_timeout(*reduce_cwnd, *in_flight);
            }
            PathEvent::Congestion { cause, .. } => {
                self.lost |= *cause != Cause::EcnMark;
                self.prior_state = None;
            }
            PathEvent::SpuriousLoss => self.on_spurious_loss(),
            PathEvent::MssChanged { mss } => self.mss = *mss,
            PathEvent::PathDown
            | PathEvent::AckProgress(_)
            | PathEvent::Recovered { .. }
            | PathEvent::WindowRestart { .. }
            | PathEvent::IdleRestart { .. }
            | PathEvent::ApplicationLimited { .. }
            | PathEvent::Penalise => {}
        }
    }

    fn decision(&self) -> Decision {
        let standing_rtt = self.rtts.standing_rtt();
        let has_standing_rtt = (1..u64::MAX).contains(&standing_rtt);
        let bytes = (2 * u128::from(self.cwnd) * u128::from(self.mss) / u128::from(PACKET)) as u64;
        let pacing_rate = has_standing_rtt.then(|| Rate::of(bytes, Span(standing_rtt)).max(Rate::from_bits(8)));
        Decision { cwnd: self.packets().max(1) as u32, ssthresh: self.ssthresh, pacing_rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};

    /// After slow start, with a minimum RTT of 100 ms and this standing RTT.
    fn copa(cwnd: u64, standing_ms: u64) -> Copa {
        let mut copa = Copa { cwnd: cwnd * PACKET, slow_start: false, ..Copa::new(&defaults(&ENTRY)) };
        copa.velocity = Velocity::new(copa.cwnd);
        copa.rtts.add_sample(100_000_000, 200_000_000, Instant::ZERO);
        copa.rtts.standing_rtt.reset(0, u64::MAX - standing_ms * 1_000_000);
        copa
    }

    /// One acknowledgement at the same instant, with this RTT.
    fn ack(copa: &mut Copa, acked: u32, rtt_ms: u64, now_ms: u64, change: impl Fn(&mut AckSample)) {
        let mut sample = AckSample {
            acked,
            rtt: Some(Span::from_millis(rtt_ms)),
            srtt: Span::from_millis(rtt_ms),
            cwnd_limited: true,
            may_raise_cwnd: true,
            ..AckSample::default()
        };
        change(&mut sample);
        copa.on_event(&PathEvent::Ack(sample), &mut context(now_ms));
    }

    #[test]
    fn the_target_is_one_packet_per_delta_and_queueing_delay() {
        // 1 / (0.5 * 10 ms) = 200 packets/s, which is a window of 22 in 110 ms.
        assert!(copa(22, 110).is_below_target());
        assert!(!Copa { cwnd: 22 * PACKET + 1, ..copa(22, 110) }.is_below_target());
        assert!(copa(1_000_000, 100).is_below_target(), "no queue, no bound");
    }

    #[test]
    fn an_acknowledgement_moves_the_window_by_v_over_delta_times_window() {
        let tenth = PACKET / 10;
        assert_eq!(copa(20, 110).step(1), tenth, "1 / (0.5 * 20)");
        let mut growing = copa(20, 110);
        (0..20).for_each(|_| ack(&mut growing, 1, 110, 0, |_| {}));
        assert!(growing.cwnd.abs_diff(22 * PACKET) < PACKET / 5, "two packets a round trip: {}", growing.cwnd);
        let mut shrinking = copa(40, 110);
        ack(&mut shrinking, 1, 110, 0, |_| {});
        assert_eq!(shrinking.cwnd, 40 * PACKET - PACKET / 20);
    }

    #[test]
    fn the_standing_rtt_is_the_minimum_of_half_a_smoothed_rtt_and_min_rtt_that_of_ten_seconds() {
        let mut copa = copa(20, 110);
        let standing_rtt = |copa: &Copa| copa.rtts.standing_rtt() / 1_000_000;
        let min_rtt = |copa: &Copa| copa.rtts.min_rtt() / 1_000_000;
        ack(&mut copa, 1, 105, 1000, |_| {});
        ack(&mut copa, 1, 120, 1040, |_| {});
        assert_eq!((standing_rtt(&copa), min_rtt(&copa)), (105, 100));
        ack(&mut copa, 1, 120, 1101, |_| {});
        assert_eq!(standing_rtt(&copa), 120);
        ack(&mut copa, 1, 120, 10_001, |_| {});
        assert!(min_rtt(&copa) > 100, "{}", min_rtt(&copa));
    }

    #[test]
    fn slow_start_doubles_until_the_rate_is_above_the_target() {
        let mut copa = Copa { slow_start: true, ..copa(20, 110) };
        ack(&mut copa, 2, 110, 0, |_| {});
        assert_eq!((copa.packets(), copa.slow_start, copa.ssthresh), (22, true, INFINITE_SSTHRESH));
        ack(&mut copa, 2, 110, 0, |_| {});
        assert_eq!((copa.packets(), copa.slow_start), (24, true), "22 is the target itself");
        ack(&mut copa, 2, 110, 0, |_| {});
        assert_eq!((copa.slow_start, copa.ssthresh, copa.packets()), (false, 24, 23));
    }

    #[test]
    fn velocity_doubles_after_three_round_trips_one_way_and_is_one_after_a_turn() {
        let mut velocity = Velocity::new(0);
        let mut end_round = |cwnd| {
            velocity.end_round(cwnd);
            velocity.value
        };
        assert_eq!([1, 2, 3, 4, 5].map(&mut end_round), [1, 1, 2, 4, 8]);
        assert_eq!([4, 3, 2, 1].map(end_round), [1, 1, 1, 2]);
    }

    #[test]
    fn velocity_at_most_doubles_the_window_a_round_trip() {
        let mut copa = copa(20, 100);
        (copa.velocity.value, copa.velocity.same_direction_rounds, copa.velocity.prior_cwnd) = (1000, 9, 0);
        copa.end_round(Span::from_millis(100), Instant::ZERO);
        assert_eq!(copa.velocity.value, 10, "2 * 10 packets are the window");
    }

    #[test]
    fn loss_keeps_the_window_and_a_timeout_restarts_slow_start() {
        let mut copa = copa(50, 100);
        let notify = |copa: &mut Copa, event| {
            copa.on_event(&event, &mut context(0));
            (copa.packets(), copa.slow_start)
        };
        let congestion = |cause| PathEvent::Congestion { cause, reduce_cwnd: true, in_flight: 0, by_timer: false };
        assert_eq!(notify(&mut copa, congestion(Cause::Loss)), (50, false));
        assert_eq!(notify(&mut copa, congestion(Cause::Timeout)), (1, true));
        assert_eq!(notify(&mut copa, PathEvent::SpuriousLoss), (50, false));
    }

    #[test]
    fn a_queue_that_is_never_nearly_empty_starts_the_competitive_mode() {
        let mut copa = Copa { competitive: true, ..copa(20, 110) };
        let round = |copa: &mut Copa, n: u64, rtt, lost| {
            ack(copa, 1, rtt, n * 200, |sample| (sample.snd_una, sample.snd_nxt, sample.lost) = (n, n, lost));
            copa.inv_delta / INV_DELTA_ONE
        };
        // The RTT varies between 100 and 200 ms: nearly empty is 110.
        assert_eq!((1..=5).map(|n| round(&mut copa, n, 200, 0)).collect::<Vec<_>>(), [2, 2, 2, 2, 2], "1 s is 5 RTTs");
        assert_eq!((6..=9).map(|n| round(&mut copa, n, 200, 0)).collect::<Vec<_>>(), [3, 4, 5, 6]);
        assert_eq!(round(&mut copa, 10, 200, 1), 3, "loss halves");
        assert_eq!(round(&mut copa, 11, 110, 0), 2, "nearly empty: its own share again");
    }

    #[test]
    fn the_pacing_rate_is_twice_the_window_a_standing_rtt() {
        let rate = copa(20, 100).decision().pacing_rate.expect("the RTT is known");
        assert_eq!(rate, Rate::from_bits(2 * 20 * 1448 * 8 * 10));
        assert_eq!(Copa::new(&defaults(&ENTRY)).decision().pacing_rate, None);
    }
}
