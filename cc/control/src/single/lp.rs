//! TCP-LP: low priority; uses the capacity that other flows leave.
//!
//! A low-priority flow backs off before the queue overflows:
//! - **Early congestion**: the smoothed one-way delay is at least `min + 0.15 (max - min)` of the delays so far.
//! - It halves the window; a second one within three round trips (the *inference* time) leaves one packet. During the
//!   inference time the window does not grow.
//! - Everything else is Reno's.
//!
//! It needs `AckSample::one_way_delay` from the sender. Without timestamps it is Reno, as in Linux.
//!
//! Source: Kuzmanovic and Knightly, "TCP-LP: a distributed algorithm for low priority data transfer" (INFOCOM 2003);
//! order and integers as in Linux 6.1 (`tcp_lp.c`).
//! Deviations from the paper, all as in Linux: the maximum delay is the second largest so far. Early congestion resets
//! both extremes. Growth after it may be slow start. The comparison is strict, so that the very first sample (both the
//! minimum and the maximum) halves the window.
//!
//! Linux's delay: it subtracts timestamps, whose origin at the receiver has been random since Linux 4.10. The "delay"
//! of a flow is therefore any value up to 2^32 ms, and its sums and 15 % of its range overflow 32 bits. For most flows
//! there is never early congestion, and TCP-LP is Reno (measured on 6.1: the same windows to the packet). For some
//! flows there is early congestion without a cause. That is the default, `delay = "linux"`, with an origin drawn for
//! each flow; the sender booted when the simulation began. The paper's algorithm, which knows the delay, is
//! `delay = "path"`. With `"rtt"`, a queue on the reverse path makes it yield, too (and a packet that was alone in
//! flight gives no sample, because its acknowledgement may have been delayed).

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{AckProgress, AckSample, AlgorithmEntry, Constructor, Context, ParamKind, Parameter, Params, Properties};
use units::{Instant, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "lp",
    aliases: &["tcp-lp"],
    title: "low priority: yields as soon as the one-way delay rises",
    source: "Kuzmanovic and Knightly, INFOCOM 2003; Linux 6.1 tcp_lp.c",
    parameters: &[
        Parameter {
            name: "threshold",
            description: "early congestion begins at this fraction of the range of delays",
            kind: ParamKind::Number { default: 0.15, min: 0.0, max: 1.0 },
        },
        Parameter {
            name: "inference",
            description: "duration for which early congestion is watched and growth suspended, RTTs",
            kind: ParamKind::Number { default: 3.0, min: 0.0, max: 100.0 },
        },
        Parameter {
            name: "delay",
            description: "measure of the one-way delay: Linux's estimate, the delay of the path, or the RTT",
            kind: ParamKind::Choice(&["linux", "path", "rtt"]),
        },
    ],
    properties: Properties {
        // A second early congestion leaves one packet (Kuzmanovic and Knightly).
        min_cwnd: 1,
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| CwndController::boxed(Lp::new(params))),
};

/// State of TCP-LP.
#[derive(Debug)]
pub struct Lp {
    threshold_percent: u32,
    inference_rounds: f64,
    delay_source: DelaySource,
    owd: OwdFilter,
    inference_span: Span,
    /// The latest early congestion.
    last_drop: Option<Instant>,
    within_inf: bool,
}

/// Source of the delays.
#[derive(Debug)]
enum DelaySource {
    Linux(RemoteClock),
    Path,
    Rtt,
}

/// Linux's estimate of the one-way delay, in 32 bits as there.
#[derive(Debug, Default)]
struct RemoteClock {
    /// The origin of the receiver's timestamps, ms; drawn at the first acknowledgement.
    clock_offset: Option<u32>,
    /// Timestamps of receiver and sender at the latest estimate.
    latest: [u32; 2],
    /// The receiver's ticks per second of the sender.
    remote_hz: i64,
}

impl RemoteClock {
    /// The difference of the timestamps for a packet sent at `sent` and received `delay` later; `None` while the rate
    /// of the receiver's clock is not known.
    fn owd(&mut self, sent: Instant, delay: Span, cx: &mut Context<'_>) -> Option<u32> {
        let receiver = *self.clock_offset.get_or_insert_with(|| cx.rng.bits() as u32);
        // The sender knows the origin of its own echoed timestamps (`tsoffset`).
        let timestamps = [receiver.wrapping_add((sent + delay).as_millis() as u32), sent.as_millis() as u32];
        self.update_remote_hz(timestamps);
        // Whole milliseconds per tick: zero once the estimate is above 1000.
        let tick = if self.remote_hz > 0 { (1000 / self.remote_hz) as u32 } else { return None };
        Some(timestamps[0].wrapping_mul(tick).wrapping_sub(timestamps[1])).filter(|delay| *delay > 0)
    }

    fn update_remote_hz(&mut self, timestamps: [u32; 2]) {
        let [receiver, sender] = std::mem::replace(&mut self.latest, timestamps);
        let elapsed = [timestamps[0].wrapping_sub(receiver), timestamps[1].wrapping_sub(sender)].map(i64::from);
        if receiver == 0 || sender == 0 || elapsed.contains(&0) {
            return;
        }
        let remote_hz = 1000 * elapsed[0] / elapsed[1];
        // Smoothed by 1/64 of the difference, rounded down: it follows a lower value, but not one that is less than 64
        // higher.
        let difference = if self.remote_hz > 0 { (remote_hz - self.remote_hz).div_euclid(64) } else { remote_hz };
        self.remote_hz += difference;
    }
}

/// One-way delays, in microseconds or Linux's milliseconds, in 32 bits as in Linux.
#[derive(Debug, Default)]
struct OwdFilter {
    /// Eight times the smoothed delay; zero before the first sample.
    smoothed8: u32,
    owd_min: u32,
    owd_max: u32,
    /// The maximum ever, which is not used because it may be an outlier.
    owd_max_rsv: u32,
}

impl OwdFilter {
    fn sowd(&self) -> u32 {
        self.smoothed8 / 8
    }

    fn add_sample(&mut self, delay: u32) {
        if self.smoothed8 == 0 {
            *self = Self { smoothed8: delay.wrapping_mul(8), owd_min: delay, owd_max: delay, owd_max_rsv: delay };
            return;
        }
        self.owd_min = self.owd_min.min(delay);
        if delay > self.owd_max_rsv {
            self.owd_max = std::mem::replace(&mut self.owd_max_rsv, delay);
        } else {
            self.owd_max = self.owd_max.max(delay);
        }
        self.smoothed8 = self.smoothed8.wrapping_sub(self.sowd()).wrapping_add(delay);
    }

    /// Whether the smoothed delay is below this fraction of the range.
    fn within_threshold(&self, percent: u32) -> bool {
        let range = self.owd_max.wrapping_sub(self.owd_min);
        self.sowd() < self.owd_min.wrapping_add(range.wrapping_mul(percent) / 100)
    }

    fn reset_extremes(&mut self) {
        let sowd = self.sowd();
        (self.owd_min, self.owd_max, self.owd_max_rsv) = (sowd, 2 * sowd, 2 * sowd);
    }
}

impl Lp {
    fn new(params: &Params) -> Self {
        Self {
            threshold_percent: (params.number("threshold") * 100.0) as u32,
            inference_rounds: params.number("inference"),
            delay_source: match params.choice("delay") {
                "path" => DelaySource::Path,
                "rtt" => DelaySource::Rtt,
                _ => DelaySource::Linux(RemoteClock::default()),
            },
            owd: OwdFilter::default(),
            inference_span: Span::ZERO,
            last_drop: None,
            within_inf: false,
        }
    }

    /// The one-way delay of this acknowledgement.
    fn owd_sample(&mut self, progress: &AckProgress, cx: &mut Context<'_>) -> Option<u32> {
        let micros = |span: Span| (span.as_micros() as u32).max(1);
        match &mut self.delay_source {
            DelaySource::Linux(clock) => clock.owd(cx.now - progress.rtt?, progress.one_way_delay?, cx),
            DelaySource::Path => progress.one_way_delay.map(micros),
            // A packet was alone in flight: a receiver that delays acknowledgements waits for a second one.
            DelaySource::Rtt if progress.in_flight + progress.pkts_acked <= 1 => None,
            DelaySource::Rtt => progress.rtt.map(micros),
        }
    }

    fn is_within_inference(&self, now: Instant) -> bool {
        self.last_drop.is_some_and(|last_drop| now.since(last_drop) < self.inference_span)
    }

    fn early_congestion(&mut self, state: &mut CwndState, now: Instant) {
        self.owd.reset_extremes();
        state.cwnd = if self.within_inf { 1 } else { (state.cwnd / 2).max(1) };
        self.last_drop = Some(now);
    }
}

impl CongestionOps for Lp {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        if !self.within_inf {
            common::reno_cong_avoid(state, acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        common::reno_ssthresh(state)
    }

    fn pkts_acked(&mut self, state: &mut CwndState, progress: &AckProgress, cx: &mut Context<'_>) {
        let Some(delay) = self.owd_sample(progress, cx) else {
            if matches!(self.delay_source, DelaySource::Rtt) {
                self.within_inf = self.is_within_inference(cx.now);
            }
            return;
        };
        self.owd.add_sample(delay);
        if let Some(rtt) = progress.rtt {
            self.inference_span = Span::from_secs_f64(rtt.as_secs_f64() * self.inference_rounds);
        }
        self.within_inf = self.is_within_inference(cx.now);
        if !self.owd.within_threshold(self.threshold_percent) {
            self.early_congestion(state, cx.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, context_with, defaults};
    use units::RngStream;

    fn lp_with(delay_source: DelaySource) -> Lp {
        Lp { delay_source, ..Lp::new(&defaults(&ENTRY)) }
    }

    /// A flow with delays of 20 to 60 ms and this smoothed delay.
    fn lp(smoothed_ms: u32) -> Lp {
        let delays = OwdFilter { smoothed8: smoothed_ms * 8000, owd_min: 20_000, owd_max: 60_000, owd_max_rsv: 60_000 };
        Lp { owd: delays, ..lp_with(DelaySource::Path) }
    }

    /// One more sample of this delay, 40 ms round trip.
    fn sample(lp: &mut Lp, state: &mut CwndState, delay_ms: u64, now_ms: u64) {
        let sample = AckSample {
            rtt: Some(Span::from_millis(40)),
            one_way_delay: Some(Span::from_millis(delay_ms)),
            ..AckSample::default()
        };
        lp.pkts_acked(state, &sample.progress(), &mut context(now_ms));
    }

    #[test]
    fn early_congestion_begins_at_15_percent_of_the_range() {
        let mut state = congestion_avoidance(40);
        sample(&mut lp(25), &mut state, 25, 1000);
        assert_eq!(state.cwnd, 40, "25 ms of 20 to 60: below 26");
        sample(&mut lp(26), &mut state, 26, 1000);
        assert_eq!(state.cwnd, 20);
    }

    #[test]
    fn early_congestion_again_within_three_round_trips_leaves_one_packet() {
        let (mut lp, mut state) = (lp(26), congestion_avoidance(40));
        sample(&mut lp, &mut state, 26, 1000);
        lp.owd = OwdFilter { smoothed8: 26 * 8000, owd_min: 20_000, owd_max: 60_000, owd_max_rsv: 60_000 };
        sample(&mut lp, &mut state, 26, 1119);
        assert_eq!(state.cwnd, 1);
    }

    #[test]
    fn early_congestion_three_round_trips_later_halves_again() {
        let (mut lp, mut state) = (lp(26), congestion_avoidance(40));
        sample(&mut lp, &mut state, 26, 1000);
        lp.owd = OwdFilter { smoothed8: 26 * 8000, owd_min: 20_000, owd_max: 60_000, owd_max_rsv: 60_000 };
        sample(&mut lp, &mut state, 26, 1120);
        assert_eq!(state.cwnd, 10);
    }

    #[test]
    fn the_window_does_not_grow_during_the_inference_time() {
        let (mut lp, mut state) = (lp(26), congestion_avoidance(40));
        sample(&mut lp, &mut state, 26, 1000);
        let cwnd_after = |lp: &mut Lp, state: &mut CwndState, now| {
            sample(lp, state, 26, now);
            lp.cong_avoid(state, 20, &AckSample::default(), &mut context(now));
            state.cwnd
        };
        assert_eq!(cwnd_after(&mut lp, &mut state, 1119), 20, "26 is below 26 + 0.15 * 26, but within 120 ms");
        assert_eq!(cwnd_after(&mut lp, &mut state, 1120), 21);
    }

    #[test]
    fn the_very_first_sample_halves_the_window() {
        let (mut lp, mut state) = (lp_with(DelaySource::Path), congestion_avoidance(10));
        sample(&mut lp, &mut state, 20, 1000);
        assert_eq!(state.cwnd, 5);
        sample(&mut lp, &mut state, 20, 1040);
        assert_eq!(state.cwnd, 5, "from then on the range is 20 to 40 ms");
    }

    #[test]
    fn one_outlier_does_not_widen_the_range() {
        let mut delays = OwdFilter::default();
        [20, 30, 500, 40].into_iter().for_each(|ms| delays.add_sample(ms));
        assert_eq!((delays.owd_min, delays.owd_max, delays.owd_max_rsv), (20, 40, 500));
        delays.add_sample(600);
        assert_eq!((delays.owd_max, delays.owd_max_rsv), (500, 600));
    }

    #[test]
    fn the_rtt_may_be_used_as_the_delay() {
        let cwnd_with = |delay_source| {
            let (mut lp, mut state) = (Lp { delay_source, ..lp(26) }, congestion_avoidance(40));
            let sample = AckSample { rtt: Some(Span::from_millis(26)), pkts_acked: 2, ..AckSample::default() };
            lp.pkts_acked(&mut state, &sample.progress(), &mut context(1000));
            state.cwnd
        };
        assert_eq!([DelaySource::Path, DelaySource::Rtt].map(cwnd_with), [40, 20]);
    }

    #[test]
    fn the_rtt_of_a_packet_alone_in_flight_is_no_delay_but_time_goes_on() {
        let (mut lp, mut state) = (Lp { delay_source: DelaySource::Rtt, ..lp(26) }, congestion_avoidance(40));
        let mut cwnd_after = |pkts_acked, now| {
            let rtt = Some(Span::from_millis(26));
            lp.pkts_acked(&mut state, &AckProgress { rtt, pkts_acked, ..AckProgress::default() }, &mut context(now));
            lp.cong_avoid(&mut state, 21, &AckSample::default(), &mut context(now));
            state.cwnd
        };
        assert_eq!([cwnd_after(2, 1000), cwnd_after(1, 1077), cwnd_after(1, 1078)], [21, 21, 22], "78 ms: three RTTs");
    }

    /// Samples a millisecond apart with delays that swing between 20 and 60 ms: how often there is early congestion.
    fn early_congestions(seed: u64) -> usize {
        let (mut lp, mut rng) = (lp_with(DelaySource::Linux(RemoteClock::default())), RngStream::named(seed, "test"));
        let is_early_congestion = |now: u64| {
            let mut state = congestion_avoidance(40);
            let delay = Span::from_millis(20 + (now / 10) % 40);
            let sample = AckSample {
                rtt: Some(Span::from_millis(20) + delay),
                one_way_delay: Some(delay),
                ..AckSample::default()
            };
            lp.pkts_acked(&mut state, &sample.progress(), &mut context_with(now, &mut rng));
            usize::from(state.cwnd < 40)
        };
        (1000..5000).map(is_early_congestion).sum()
    }

    /// Linux drops the fraction of its average: from 1000 a rate of 1063 leaves it there, one of 999 does not.
    #[test]
    fn the_rate_of_the_receivers_clock_rises_by_whole_64ths_only() {
        let after = |elapsed: u32| {
            let mut clock = RemoteClock { clock_offset: Some(0), latest: [1, 1], remote_hz: 1000 };
            clock.update_remote_hz([1 + elapsed, 1001]);
            clock.remote_hz
        };
        assert_eq!([1000, 1063, 1064, 2000, 999, 936, 500].map(after), [1000, 1000, 1001, 1015, 999, 999, 992]);
    }

    #[test]
    fn with_linuxs_random_origin_most_flows_never_yield() {
        let unaffected = (1..=100).filter(|seed| early_congestions(*seed) == 0).count();
        println!("{unaffected} of 100 flows never yield");
        // A difference of 2^29 ms or more, eight times of which overflows: seven in eight.
        assert!((75..100).contains(&unaffected), "{unaffected}");
    }
}
