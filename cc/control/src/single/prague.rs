//! TCP Prague: DCTCP for the Internet, the sender of L4S.
//!
//! Its packets are ECT(1), each mark is reported to it ([`Ecn::L4s`]), and an L4S queue marks early and often:
//! - Once per virtual round trip, `R* = max(RTT, 25 ms)`: `alpha <- (1 - g) alpha + g F`, with `F` the fraction of
//!   marked packets and `g` = 1/16. Alpha keeps its first value until the first mark.
//! - A mark: window x (1 - alpha / 2) at once, at most once per `R*`.
//! - Increase: slow start up to the first mark or loss; then `(RTT / R*)^2` packets per round trip, by the acknowledged
//!   packets that are not marked, also while marks reduce the window. The window has a fraction.
//! - Loss: half, as Reno; of the window before the mark if one has just reduced it.
//! - Pacing at one window per smoothed RTT, twice that in slow start.
//!
//! At a steady marking probability `p` the two balance at a window of `2 (1 - p) / p` packets for RTTs above 25 ms.
//! Below, they balance at the rate that the flow would have there: `(RTT / R*) 2 (1 - p) / p` packets.
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control-04, sections 2.4 and 3. Deviations: the RTT independence
//! applies from the first mark on, not only some hundred round trips later. The window is at least two packets. There
//! is no fall-back on suspicion of a classic ECN queue. A loss halves the window, instead of reducing it as CUBIC does.

use crate::common::{self, CongestionOps, CwndState};
use crate::{
    AckSample, AlgorithmEntry, CaState, Cause, Constructor, Context, Decision, Deviation, Ecn, ParamKind, Parameter,
    Params, PathController, PathEvent, Properties,
};
use units::{Instant, Rate, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "prague",
    aliases: &["tcp-prague"],
    title: "low latency, low loss, scalable throughput (L4S): DCTCP for the Internet",
    source: "draft-briscoe-iccrg-prague-congestion-control-04",
    parameters: &[
        Parameter {
            name: "gain_shift",
            description: "g = 2^-gain_shift: gain of the filter for the marked fraction",
            kind: ParamKind::Number { default: 4.0, min: 1.0, max: 10.0 },
        },
        Parameter {
            name: "alpha",
            description: "estimate of the marked fraction before the first mark",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1.0 },
        },
        Parameter {
            name: "rtt_virt_ms",
            description: "RTT whose behaviour flows with a shorter RTT imitate, ms; 0: off",
            kind: ParamKind::Number { default: 25.0, min: 0.0, max: 1_000.0 },
        },
    ],
    properties: Properties {
        ecn: |_| Ecn::L4s,
        deviations: &[(
            Deviation::ReducesOnLossAfterMark,
            "a mark costs a share of alpha, loss always half (section 2.4.3 of the draft)",
        )],
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| Box::new(Prague::new(params))),
};

/// IP and TCP headers with timestamps, bytes: the pacing rate includes them in addition to the payload.
const HEADERS: u64 = 52;

/// State of Prague.
#[derive(Debug)]
pub struct Prague {
    state: CwndState,
    window: Window,
    rtt_virt: Span,
    gain: f64,
    first_alpha: f64,
    /// The smoothed fraction of marked packets, 0 to 1.
    alpha: f64,
    saw_mark: bool,
    /// Time of the latest update of alpha, and packets delivered and marked since then.
    updated: Instant,
    delivered: u64,
    marked: u64,
    /// Time from which a mark may reduce again.
    next_reduction: Instant,
    srtt: Span,
}

/// The growth of the window, and its reduction by loss.
#[derive(Debug)]
struct Window {
    /// Fraction of a packet by which the window is larger, 0 to 1.
    fraction: f64,
    /// Growth, packets per round trip.
    increase: f64,
    /// The window before, while marks reduce it.
    before_mark: Option<u32>,
}

impl Default for Window {
    fn default() -> Self {
        Self { fraction: 0.0, increase: 1.0, before_mark: None }
    }
}

impl Window {
    fn scale(&mut self, state: &mut CwndState, factor: f64) {
        let window = ((f64::from(state.cwnd) + self.fraction) * factor).max(2.0);
        state.cwnd = window as u32;
        self.fraction = window - f64::from(state.cwnd);
        state.ssthresh = state.cwnd;
    }
}

impl CongestionOps for Window {
    fn cong_avoid(&mut self, state: &mut CwndState, _acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        let unmarked = sample.acked.saturating_sub(sample.marked);
        let rest = if state.in_slow_start() { common::slow_start(state, unmarked) } else { unmarked };
        self.fraction += f64::from(rest) * self.increase / (f64::from(state.cwnd) + self.fraction);
        let whole = self.fraction as u32;
        self.fraction -= f64::from(whole);
        state.cwnd = (state.cwnd + whole).min(state.cwnd_clamp);
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        self.fraction = 0.0;
        let window = self.before_mark.take().unwrap_or(state.cwnd);
        (window / 2).min(state.cwnd).max(2)
    }
}

impl Prague {
    fn new(params: &Params) -> Self {
        let alpha = params.number("alpha");
        Self {
            state: CwndState::default(),
            window: Window::default(),
            rtt_virt: Span::from_secs_f64(params.number("rtt_virt_ms") / 1000.0),
            gain: 1.0 / f64::from(1_u32 << params.number("gain_shift") as u32),
            first_alpha: alpha,
            alpha,
            saw_mark: false,
            updated: Instant::ZERO,
            delivered: 0,
            marked: 0,
            next_reduction: Instant::ZERO,
            srtt: Span::ZERO,
        }
    }

    fn init(&mut self, now: Instant) {
        self.window = Window::default();
        self.alpha = self.first_alpha;
        (self.saw_mark, self.delivered, self.marked) = (false, 0, 0);
        (self.updated, self.next_reduction, self.srtt) = (now, now, Span::ZERO);
    }

    /// Whether the window is being reduced because of loss.
    fn is_in_loss(&self) -> bool {
        self.state.ca_state >= CaState::Cwr
    }

    fn on_ack(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        self.srtt = sample.srtt;
        let virtual_rtt = self.srtt.max(self.rtt_virt);
        if self.srtt > Span::ZERO {
            let ratio = self.srtt.as_secs_f64() / virtual_rtt.as_secs_f64();
            self.window.increase = ratio * ratio;
        }
        self.update_alpha(sample, virtual_rtt, cx.now);
        if sample.marked > 0 && !self.is_in_loss() && cx.now >= self.next_reduction {
            self.next_reduction = cx.now + virtual_rtt;
            self.window.scale(&mut self.state, 1.0 - self.alpha / 2.0);
        }
        // Marks need no episode of the window: it was reduced at once, and continues to grow.
        let is_marked_only = sample.ca_state == CaState::Cwr && !self.is_in_loss();
        let ca_state = if is_marked_only { CaState::Open } else { sample.ca_state };
        self.state.on_event(&mut self.window, &PathEvent::Ack(AckSample { ca_state, ..*sample }), cx);
    }

    fn update_alpha(&mut self, sample: &AckSample, virtual_rtt: Span, now: Instant) {
        self.delivered += u64::from(sample.acked);
        self.marked += u64::from(sample.marked);
        self.saw_mark |= sample.marked > 0;
        if self.saw_mark && self.delivered > 0 && now.since(self.updated) >= virtual_rtt {
            let share = (self.marked as f64 / self.delivered as f64).min(1.0);
            self.alpha += self.gain * (share - self.alpha);
            (self.updated, self.delivered, self.marked) = (now, 0, 0);
        }
    }
}

impl PathController for Prague {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        let in_marked_window = self.window.before_mark.is_some();
        match event {
            PathEvent::Ack(sample) => return self.on_ack(sample, cx),
            PathEvent::PathUp(_) => self.init(cx.now),
            PathEvent::Congestion { cause: Cause::EcnMark, .. } if !self.is_in_loss() => {
                self.window.before_mark = Some(self.state.cwnd);
                return;
            }
            PathEvent::Congestion { cause: Cause::LocalDrop | Cause::TlpRecovery, .. } if in_marked_window => return,
            PathEvent::Recovered { .. } | PathEvent::SpuriousLoss if !self.is_in_loss() => {
                self.window.before_mark = None;
                return;
            }
            _ => {}
        }
        self.state.on_event(&mut self.window, event, cx);
        if in_marked_window && self.is_in_loss() {
            // A reduction by marks is not undone.
            (self.state.prior_ssthresh, self.window.before_mark) = (0, None);
        }
    }

    fn decision(&self) -> Decision {
        let CwndState { cwnd, ssthresh, mss, .. } = self.state;
        let pacing_rate = (self.srtt > Span::ZERO).then(|| {
            let gain = if cwnd < ssthresh / 2 { 2 } else { 1 };
            Rate::of(gain * u64::from(cwnd) * (u64::from(mss) + HEADERS), self.srtt).max(Rate::from_bits(8))
        });
        Decision { cwnd, ssthresh, pacing_rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{Flow, defaults};

    /// A flow in congestion avoidance with this RTT and window, at an alpha of `alpha`, and a mark seen.
    fn flow(rtt_ms: u64, cwnd: u32, alpha: f64) -> Flow<Prague> {
        let mut flow = Flow::with_rtt(Prague { alpha, saw_mark: true, ..Prague::new(&defaults(&ENTRY)) }, rtt_ms);
        (flow.controller.state.cwnd, flow.controller.state.ssthresh) = (cwnd, cwnd);
        (flow.controller.alpha, flow.controller.saw_mark) = (alpha, true);
        flow
    }

    /// A round trip of `acked` packets, `marked` of them marked.
    fn round(flow: &mut Flow<Prague>, acked: u32, marked: u32) {
        flow.round_with(acked, |sample| {
            (sample.marked, sample.may_raise_cwnd) = (marked, true);
        });
    }

    fn window(flow: &Flow<Prague>) -> f64 {
        f64::from(flow.controller.state.cwnd) + flow.controller.window.fraction
    }

    #[test]
    fn alpha_is_an_average_over_sixteen_virtual_round_trips() {
        let mut flow = flow(25, 100, 0.0);
        round(&mut flow, 100, 100);
        assert_eq!(flow.controller.alpha, 0.0625);
        round(&mut flow, 100, 50);
        assert_eq!(flow.controller.alpha, 0.0625 + (0.5 - 0.0625) / 16.0);
        // At 5 ms five round trips make one update.
        let mut short = self::flow(5, 100, 0.0);
        (0..5).for_each(|_| round(&mut short, 100, 20));
        assert!((short.controller.alpha - 0.2 / 16.0).abs() < 1e-12, "{}", short.controller.alpha);
    }

    #[test]
    fn alpha_waits_for_the_first_mark() {
        let mut flow = flow(50, 100, 1.0);
        flow.controller.saw_mark = false;
        (0..10).for_each(|_| round(&mut flow, 10, 0));
        assert_eq!(flow.controller.alpha, 1.0);
    }

    #[test]
    fn a_mark_reduces_by_half_of_alpha_at_once_and_once_a_virtual_round_trip() {
        let mut flow = flow(5, 100, 0.5);
        flow.congestion(Cause::EcnMark, 100);
        round(&mut flow, 10, 10);
        assert!((window(&flow) - 75.0).abs() < 1e-9, "{}", window(&flow));
        let reductions = (0..20).filter(|_| {
            let prior = window(&flow);
            flow.event(&PathEvent::Recovered { to_ssthresh: true });
            flow.congestion(Cause::EcnMark, 100);
            round(&mut flow, 10, 10);
            window(&flow) < prior
        });
        assert_eq!(reductions.count(), 4, "in 100 ms");
    }

    #[test]
    fn growth_of_a_short_round_trip_is_that_of_25_ms() {
        // (RTT / 25 ms)^2 packets per round trip, for packets that are not marked.
        for (rtt, expected) in [(25, 1.0), (50, 1.0), (5, 0.04), (10, 0.16)] {
            let mut flow = flow(rtt, 100, 0.0);
            round(&mut flow, 100, 0);
            assert!((window(&flow) - 100.0 - expected).abs() < 1e-9, "{rtt} ms: {}", window(&flow));
        }
        let mut flow = flow(25, 100, 0.0);
        flow.controller.next_reduction = Instant::NEVER;
        round(&mut flow, 100, 40);
        assert!((window(&flow) - 100.6).abs() < 1e-9, "{}", window(&flow));
    }

    #[test]
    fn loss_halves_the_window_before_the_mark() {
        let mut flow = flow(25, 100, 1.0);
        flow.congestion(Cause::EcnMark, 100);
        round(&mut flow, 10, 10);
        assert!((window(&flow) - 50.0).abs() < 1e-9, "{}", window(&flow));
        flow.congestion(Cause::Loss, 90);
        assert_eq!(flow.controller.decision().ssthresh, 50, "and no quarter");
        let mut unmarked = self::flow(25, 100, 0.1);
        unmarked.congestion(Cause::Loss, 90);
        assert_eq!(unmarked.controller.decision().ssthresh, 50);
    }

    #[test]
    fn it_paces_at_its_window_and_in_slow_start_at_twice_that() {
        let mut flow = flow(25, 100, 0.5);
        round(&mut flow, 1, 0);
        let rate = |flow: &Flow<Prague>| flow.controller.decision().pacing_rate.expect("an RTT").as_bits();
        assert_eq!(rate(&flow), 100 * 1500 * 8 * 40);
        flow.controller.state.ssthresh = 1000;
        assert_eq!(rate(&flow), 2 * 100 * 1500 * 8 * 40);
    }
}
