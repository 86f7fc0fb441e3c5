//! The frame of window-based algorithms.

use super::CwndState;
use super::cwnd::Prr;
use crate::{AckSample, CaState, Cause, Context, Decision, Ecn, PathController, PathEvent, PathInfo, Reduction};
use std::fmt::Debug;
use units::{INFINITE_SSTHRESH, Span};

/// What a window-based algorithm says of itself. Everything else is the frame's.
pub trait WindowRule: Debug + Send {
    /// The path came up; the window stands at the initial one (Linux `init`, which runs after the handshake).
    fn init(&mut self, _state: &mut CwndState, _path: &PathInfo, _cx: &mut Context<'_>) {}

    /// An acknowledgement that may raise the window (Linux `cong_avoid`). `acked` packets were newly delivered.
    /// Not called while the window is being reduced, nor (see [`WindowRule::ignores_cwnd_limited`]) while it is not filled.
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, cx: &mut Context<'_>);

    /// Congestion: the new threshold (Linux `ssthresh`).
    fn ssthresh(&mut self, state: &CwndState, cx: &mut Context<'_>) -> u32;

    /// The window below which rate halving does not go (Linux's former `min_cwnd`). Proportional rate reduction,
    /// which ends at the threshold, does not ask.
    fn min_cwnd(&self, state: &CwndState) -> u32 {
        state.ssthresh / 2
    }

    /// Whether the window may also grow while the sender does not fill it: for an algorithm that probes by other means
    /// than a full window (Linux: one that does not ask `tcp_is_cwnd_limited`).
    fn ignores_cwnd_limited(&self) -> bool {
        false
    }

    /// Every acknowledgement, before the phase changes and the window moves (Linux `pkts_acked`, `in_ack_event`).
    fn on_ack(&mut self, _state: &mut CwndState, _feedback: &AckSample, _cx: &mut Context<'_>) {}

    /// The sender goes from `state.ca_state` to `next` (Linux `set_state`). Every timeout reports [`CaState::Loss`] again.
    fn set_state(&mut self, _state: &mut CwndState, _next: CaState, _cx: &mut Context<'_>) {}

    /// A timeout that costs a cut: the threshold is set, the window not yet (Linux `CA_EVENT_LOSS`).
    fn on_timeout(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {}

    /// A reduction is over and the window stands at the threshold (Linux `CA_EVENT_COMPLETE_CWR`).
    fn on_recovered(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {}

    /// First packet after the path stood empty for `idle` (Linux `CA_EVENT_TX_START`).
    fn on_tx_start(&mut self, _state: &mut CwndState, _idle: Span, _cx: &mut Context<'_>) {}

    /// Idle for longer than the retransmission timeout (Linux `CA_EVENT_CWND_RESTART`).
    fn on_idle_restart(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {}

    /// What the algorithm needs of ECN.
    fn ecn(&self) -> Ecn {
        Ecn::Classic
    }

    /// The window to return to when an episode proved spurious.
    fn undo_cwnd(&mut self, state: &CwndState) -> u32 {
        state.cwnd.max(state.prior_cwnd)
    }
}

/// A single-path controller made of the frame and one algorithm's growth.
#[derive(Debug)]
pub struct Windowed<G> {
    state: CwndState,
    rule: G,
}

impl<G: WindowRule + 'static> Windowed<G> {
    /// Ready for the registry.
    pub fn boxed(rule: G) -> Box<dyn PathController> {
        Box::new(Self { state: CwndState::default(), rule: rule })
    }
}

impl<G: WindowRule> PathController for Windowed<G> {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        Step { state: &mut self.state, rule: &mut self.rule }.on_event(event, cx);
    }

    fn ecn(&self) -> Ecn {
        self.rule.ecn()
    }

    fn decision(&self) -> Decision {
        Decision { cwnd: self.state.cwnd, ssthresh: self.state.ssthresh, pacing_rate: None }
    }
}

/// What one event does to a window: the same for a path on its own and for one among coupled siblings.
pub(super) struct Step<'a, G> {
    pub(super) state: &'a mut CwndState,
    pub(super) rule: &'a mut G,
}

impl<G: WindowRule> Step<'_, G> {
    pub(super) fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        match event {
            PathEvent::Ack(sample) => self.on_feedback(sample, cx),
            PathEvent::PathUp(path) => self.start(path, cx),
            PathEvent::PathDown => {}
            PathEvent::Congestion { cause, cut, in_flight } => self.on_congestion(*cause, *cut, *in_flight, cx),
            PathEvent::SpuriousLoss => self.on_spurious_loss(cx),
            PathEvent::Recovered { to_ssthresh: settle } => self.on_recovered(*settle, cx),
            PathEvent::IdleRestart { idle, rto: timeout } => self.on_restart(*idle, *timeout, cx),
            PathEvent::ApplicationLimited { cwnd_used: used } => self.on_application_limited(*used),
            PathEvent::Penalise => self.on_penalty(),
            PathEvent::MssChanged { mss } => self.state.mss = *mss,
        }
    }

    fn start(&mut self, path: &PathInfo, cx: &mut Context<'_>) {
        *self.state = CwndState {
            cwnd: path.initial_window,
            initial_window: path.initial_window,
            mss: path.mss,
            tick: path.tick,
            cwnd_clamp: path.cwnd_clamp.min(u32::MAX / 2),
            reduction: path.reduction,
            ..CwndState::default()
        };
        self.rule.init(self.state, path, cx);
    }

    fn enter(&mut self, ca_state: CaState, cx: &mut Context<'_>) {
        self.rule.set_state(self.state, ca_state, cx);
        self.state.ca_state = ca_state;
    }

    /// One cut an episode; the way down is [`CwndState::reduce`]'s.
    fn on_congestion(&mut self, cause: Cause, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        match cause {
            Cause::Timeout => self.on_timeout(cut, in_flight, cx),
            Cause::Loss => {
                let remembered = if self.state.in_cwnd_reduction() { 0 } else { self.state.current_ssthresh() };
                self.begin_reduction(remembered, cx);
                self.enter(CaState::Recovery, cx);
                // The first retransmission goes out at once, also when a timer and no acknowledgement found the loss.
                if self.state.reduction == Reduction::Proportional {
                    self.state.cwnd = in_flight + 1;
                }
            }
            // Marks and local drops are facts, never spurious: one cut a window, and none of that window is undone.
            Cause::EcnMark | Cause::LocalDrop if self.state.ca_state < CaState::Cwr => {
                self.begin_reduction(0, cx);
                self.enter(CaState::Cwr, cx);
            }
            Cause::EcnMark | Cause::LocalDrop => self.state.prior_ssthresh = 0,
            Cause::TlpRepair => {
                self.begin_reduction(0, cx);
                self.enter(CaState::Cwr, cx);
                self.on_recovered(true, cx);
            }
        }
    }

    fn begin_reduction(&mut self, remembered_threshold: u32, cx: &mut Context<'_>) {
        let w = &mut *self.state;
        w.prior_ssthresh = remembered_threshold;
        if !w.in_cwnd_reduction() {
            w.prior_cwnd = w.cwnd;
            w.cwnd_cnt = 0;
            w.prr = Prr::default();
            self.state.ssthresh = self.rule.ssthresh(self.state, cx);
            self.state.min_cwnd = self.rule.min_cwnd(self.state);
        }
    }

    fn on_timeout(&mut self, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        if cut {
            self.state.prior_ssthresh = self.state.current_ssthresh();
            self.state.prior_cwnd = self.state.cwnd;
            self.state.ssthresh = self.rule.ssthresh(self.state, cx);
            self.rule.on_timeout(self.state, cx);
        }
        self.state.cwnd = in_flight + 1;
        self.state.cwnd_cnt = 0;
        self.enter(CaState::Loss, cx);
    }

    fn on_spurious_loss(&mut self, cx: &mut Context<'_>) {
        if self.state.prior_ssthresh > 0 {
            self.state.cwnd = self.rule.undo_cwnd(self.state);
            self.state.ssthresh = self.state.ssthresh.max(self.state.prior_ssthresh);
        }
        self.end_episode(cx);
    }

    fn on_recovered(&mut self, settle: bool, cx: &mut Context<'_>) {
        if settle && self.state.ssthresh < INFINITE_SSTHRESH {
            self.state.cwnd = match self.state.reduction {
                Reduction::Proportional => self.state.ssthresh,
                Reduction::Halving => self.state.cwnd.min(self.state.ssthresh),
            };
        }
        self.rule.on_recovered(self.state, cx);
        self.end_episode(cx);
    }

    /// At once, because the same acknowledgement may begin the next episode.
    fn end_episode(&mut self, cx: &mut Context<'_>) {
        if self.state.ca_state >= CaState::Cwr {
            self.enter(CaState::Open, cx);
        }
    }

    fn on_feedback(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        self.rule.on_ack(self.state, sample, cx);
        if sample.ca_state != self.state.ca_state {
            self.enter(sample.ca_state, cx);
        }
        if self.state.in_cwnd_reduction() {
            self.state.reduce(sample);
        } else if sample.may_raise_cwnd && (sample.cwnd_limited || self.rule.ignores_cwnd_limited()) {
            self.rule.cong_avoid(self.state, sample.acked, sample, cx);
        }
    }

    /// RFC 2861: halve once per whole timeout gone by, down to the initial window.
    fn on_restart(&mut self, idle: Span, timeout: Span, cx: &mut Context<'_>) {
        if timeout > Span::ZERO && idle > timeout {
            self.rule.on_idle_restart(self.state, cx);
            let w = &mut *self.state;
            w.ssthresh = w.current_ssthresh();
            let floor = w.initial_window.min(w.cwnd);
            let halvings = ((idle.as_nanos() - 1) / timeout.as_nanos()).min(31) as u32;
            w.cwnd = (w.cwnd >> halvings).max(floor);
        }
        self.rule.on_tx_start(self.state, idle, cx);
    }

    fn on_penalty(&mut self) {
        let w = &mut *self.state;
        if !w.in_slow_start() {
            w.ssthresh = (w.ssthresh / 2).max(2);
        }
        w.cwnd = (w.cwnd / 2).max(1);
    }

    fn on_application_limited(&mut self, used: u32) {
        let w = &mut *self.state;
        let used = used.max(w.initial_window);
        if used < w.cwnd {
            w.ssthresh = w.current_ssthresh();
            w.cwnd = (w.cwnd + used) / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::reno::Reno;
    use units::{Instant, Stream};

    /// Reno at this window, after `events` in the open phase.
    fn after(cwnd: u32, ssthresh: u32, events: &[PathEvent]) -> CwndState {
        let state = CwndState { cwnd: cwnd, ssthresh: ssthresh, ..CwndState::default() };
        let mut flow = Windowed { state, rule: Reno };
        for event in events {
            flow.on_event(event, &mut Context { now: Instant::ZERO, rng: &mut Stream::named(1, "test") });
        }
        flow.state
    }

    fn restart(idle: u64) -> PathEvent {
        PathEvent::IdleRestart { idle: Span::from_millis(idle), rto: Span::from_millis(250) }
    }

    fn congestion(cause: Cause, cut: bool, in_flight: u32) -> PathEvent {
        PathEvent::Congestion { cause, cut, in_flight }
    }

    #[test]
    fn the_window_is_halved_once_a_timeout_spent_idle_down_to_the_initial_window() {
        let state = |idle| after(160, INFINITE_SSTHRESH, &[restart(idle)]).cwnd;
        assert_eq!([250, 251, 900, 1000, 2000].map(state), [160, 80, 20, 20, 10]);
        assert_eq!(after(160, 50, &[restart(900)]).ssthresh, 120, "three quarters of the window were good");
    }

    #[test]
    fn credit_for_growth_ends_with_the_growth() {
        let acked = || {
            PathEvent::Ack(AckSample { acked: 30, may_raise_cwnd: true, cwnd_limited: true, ..AckSample::default() })
        };
        let cwnd_cnt = |event: PathEvent| after(100, 50, &[acked(), event]).cwnd_cnt;
        assert_eq!(cwnd_cnt(acked()), 60);
        assert_eq!(cwnd_cnt(congestion(Cause::Loss, true, 90)), 0);
        assert_eq!(cwnd_cnt(congestion(Cause::Timeout, false, 90)), 0);
    }

    #[test]
    fn an_unused_window_shrinks_half_way_to_what_was_used() {
        let state = |used| after(100, 50, &[PathEvent::ApplicationLimited { cwnd_used: used }]).cwnd;
        assert_eq!([20, 3, 100].map(state), [60, 55, 100]);
    }

    #[test]
    fn a_timeout_within_a_paid_episode_keeps_the_threshold_and_what_undo_returns_to() {
        let events = [congestion(Cause::Loss, true, 90), congestion(Cause::Timeout, false, 7)];
        let state = after(100, INFINITE_SSTHRESH, &events);
        assert_eq!((state.cwnd, state.ssthresh, state.prior_cwnd), (8, 50, 100));
    }

    #[test]
    fn a_loss_after_a_mark_continues_its_reduction_and_cannot_be_undone() {
        let events = [congestion(Cause::EcnMark, true, 90), congestion(Cause::Loss, true, 80)];
        assert_eq!(after(100, INFINITE_SSTHRESH, &events).ca_state, CaState::Recovery);
        let state = after(100, INFINITE_SSTHRESH, &[&events[..], &[PathEvent::SpuriousLoss]].concat());
        assert_eq!((state.cwnd, state.prior_cwnd, state.ssthresh), (81, 100, 50), "one retransmission, no undo");
    }

    #[test]
    fn one_acknowledgement_may_end_an_episode_and_begin_the_next() {
        let loss = || congestion(Cause::Loss, true, 90);
        let state = after(100, INFINITE_SSTHRESH, &[loss(), PathEvent::Recovered { to_ssthresh: true }, loss()]);
        assert_eq!((state.prior_cwnd, state.ssthresh), (50, 25));
        let state =
            after(100, INFINITE_SSTHRESH, &[congestion(Cause::Timeout, true, 0), PathEvent::SpuriousLoss, loss()]);
        assert_eq!((state.prior_cwnd, state.ssthresh), (100, 50));
    }

    #[test]
    fn a_mark_in_recovery_forbids_its_undo_but_does_not_end_it() {
        let events = [congestion(Cause::Loss, true, 90), congestion(Cause::EcnMark, true, 80)];
        assert_eq!(after(100, INFINITE_SSTHRESH, &events).ca_state, CaState::Recovery);
        assert_eq!(after(100, INFINITE_SSTHRESH, &[&events[..], &[PathEvent::SpuriousLoss]].concat()).ssthresh, 50);
    }

    #[test]
    fn a_probe_that_repaired_a_loss_costs_one_reduction_at_once() {
        let state = after(100, INFINITE_SSTHRESH, &[congestion(Cause::TlpRepair, true, 1)]);
        assert_eq!((state.cwnd, state.ssthresh, state.ca_state), (50, 50, CaState::Open));
    }

    #[test]
    fn a_window_that_is_not_filled_does_not_grow() {
        let sample = |window_limited| {
            PathEvent::Ack(AckSample {
                acked: 100,
                may_raise_cwnd: true,
                cwnd_limited: window_limited,
                ..AckSample::default()
            })
        };
        let state = |limited| after(100, 50, &[sample(limited)]).cwnd;
        assert_eq!((state(false), state(true)), (100, 101));
    }
}
