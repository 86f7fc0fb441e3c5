//! The frame of window-based algorithms.

use super::Window;
use super::window::Episode;
use crate::{Cause, Context, Decision, Ecn, Event, Feedback, NO_THRESHOLD, PathController, PathInfo, Phase, Reduction};
use std::fmt::Debug;
use units::Span;

/// What a window-based algorithm says of itself. Everything else is the frame's.
pub trait Growth: Debug + Send {
    /// The path came up; the window stands at the initial one (Linux `init`, which runs after the handshake).
    fn start(&mut self, _window: &mut Window, _path: &PathInfo, _cx: &mut Context<'_>) {}

    /// An acknowledgement that may raise the window (Linux `cong_avoid`). `acked` packets were newly delivered.
    /// Not called while the window is being reduced, nor (see [`Growth::grows_unfilled`]) while it is not filled.
    fn grow(&mut self, window: &mut Window, acked: u32, feedback: &Feedback, cx: &mut Context<'_>);

    /// Congestion: the new threshold (Linux `ssthresh`).
    fn threshold(&mut self, window: &Window, cx: &mut Context<'_>) -> u32;

    /// The window below which rate halving does not go (Linux's former `min_cwnd`). Proportional rate reduction,
    /// which ends at the threshold, does not ask.
    fn floor(&self, window: &Window) -> u32 {
        window.threshold / 2
    }

    /// Whether the window may also grow while the sender does not fill it: for an algorithm that probes by other means
    /// than a full window (Linux: one that does not ask `tcp_is_cwnd_limited`).
    fn grows_unfilled(&self) -> bool {
        false
    }

    /// Every acknowledgement, before the phase changes and the window moves (Linux `pkts_acked`, `in_ack_event`).
    fn measure(&mut self, _window: &mut Window, _feedback: &Feedback, _cx: &mut Context<'_>) {}

    /// The sender goes from `window.phase` to `next` (Linux `set_state`). Every timeout reports [`Phase::Loss`] again.
    fn change_phase(&mut self, _window: &mut Window, _next: Phase, _cx: &mut Context<'_>) {}

    /// A timeout that costs a cut: the threshold is set, the window not yet (Linux `CA_EVENT_LOSS`).
    fn timed_out(&mut self, _window: &mut Window, _cx: &mut Context<'_>) {}

    /// A reduction is over and the window stands at the threshold (Linux `CA_EVENT_COMPLETE_CWR`).
    fn recovered(&mut self, _window: &mut Window, _cx: &mut Context<'_>) {}

    /// First packet after the path stood empty for `idle` (Linux `CA_EVENT_TX_START`).
    fn transmission_starts(&mut self, _window: &mut Window, _idle: Span, _cx: &mut Context<'_>) {}

    /// Idle for longer than the retransmission timeout (Linux `CA_EVENT_CWND_RESTART`).
    fn window_restarts(&mut self, _window: &mut Window, _cx: &mut Context<'_>) {}

    /// What the algorithm needs of ECN.
    fn ecn(&self) -> Ecn {
        Ecn::Classic
    }

    /// The window to return to when an episode proved spurious.
    fn undo(&mut self, window: &Window) -> u32 {
        window.size.max(window.prior_size)
    }
}

/// A single-path controller made of the frame and one algorithm's growth.
#[derive(Debug)]
pub struct Windowed<G> {
    window: Window,
    growth: G,
}

impl<G: Growth + 'static> Windowed<G> {
    /// Ready for the registry.
    pub fn boxed(growth: G) -> Box<dyn PathController> {
        Box::new(Self { window: Window::default(), growth })
    }
}

impl<G: Growth> PathController for Windowed<G> {
    fn on_event(&mut self, event: &Event, cx: &mut Context<'_>) {
        Step { window: &mut self.window, growth: &mut self.growth }.on_event(event, cx);
    }

    fn ecn(&self) -> Ecn {
        self.growth.ecn()
    }

    fn decision(&self) -> Decision {
        Decision { window: self.window.size, threshold: self.window.threshold, pacing: None }
    }
}

/// What one event does to a window: the same for a path on its own and for one among coupled siblings.
pub(super) struct Step<'a, G> {
    pub(super) window: &'a mut Window,
    pub(super) growth: &'a mut G,
}

impl<G: Growth> Step<'_, G> {
    pub(super) fn on_event(&mut self, event: &Event, cx: &mut Context<'_>) {
        match event {
            Event::Feedback(feedback) => self.on_feedback(feedback, cx),
            Event::PathUp(path) => self.start(path, cx),
            Event::PathDown => {}
            Event::Congestion { cause, cut, in_flight } => self.on_congestion(*cause, *cut, *in_flight, cx),
            Event::SpuriousLoss => self.on_spurious_loss(cx),
            Event::Recovered { settle } => self.on_recovered(*settle, cx),
            Event::Restart { idle, timeout } => self.on_restart(*idle, *timeout, cx),
            Event::ApplicationLimited { used } => self.on_application_limited(*used),
            Event::Penalty => self.on_penalty(),
            Event::MssChanged { mss } => self.window.mss = *mss,
        }
    }

    fn start(&mut self, path: &PathInfo, cx: &mut Context<'_>) {
        *self.window = Window {
            size: path.initial_window,
            initial: path.initial_window,
            mss: path.mss,
            tick: path.tick,
            clamp: path.clamp.min(u32::MAX / 2),
            reduction: path.reduction,
            ..Window::default()
        };
        self.growth.start(self.window, path, cx);
    }

    fn enter(&mut self, phase: Phase, cx: &mut Context<'_>) {
        self.growth.change_phase(self.window, phase, cx);
        self.window.phase = phase;
    }

    /// One cut an episode; the way down is [`Window::reduce`]'s.
    fn on_congestion(&mut self, cause: Cause, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        match cause {
            Cause::Timeout => self.on_timeout(cut, in_flight, cx),
            Cause::Loss => {
                let remembered = if self.window.in_reduction() { 0 } else { self.window.current_threshold() };
                self.begin_reduction(remembered, cx);
                self.enter(Phase::Recovery, cx);
                // The first retransmission goes out at once, also when a timer and no acknowledgement found the loss.
                if self.window.reduction == Reduction::Proportional {
                    self.window.size = in_flight + 1;
                }
            }
            // Marks and local drops are facts, never spurious: one cut a window, and none of that window is undone.
            Cause::Mark | Cause::LocalDrop if self.window.phase < Phase::Cwr => {
                self.begin_reduction(0, cx);
                self.enter(Phase::Cwr, cx);
            }
            Cause::Mark | Cause::LocalDrop => self.window.prior_threshold = 0,
            Cause::ProbeRepair => {
                self.begin_reduction(0, cx);
                self.enter(Phase::Cwr, cx);
                self.on_recovered(true, cx);
            }
        }
    }

    fn begin_reduction(&mut self, remembered_threshold: u32, cx: &mut Context<'_>) {
        let w = &mut *self.window;
        w.prior_threshold = remembered_threshold;
        if !w.in_reduction() {
            w.prior_size = w.size;
            w.credit = 0;
            w.episode = Episode::default();
            self.window.threshold = self.growth.threshold(self.window, cx);
            self.window.floor = self.growth.floor(self.window);
        }
    }

    fn on_timeout(&mut self, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        if cut {
            self.window.prior_threshold = self.window.current_threshold();
            self.window.prior_size = self.window.size;
            self.window.threshold = self.growth.threshold(self.window, cx);
            self.growth.timed_out(self.window, cx);
        }
        self.window.size = in_flight + 1;
        self.window.credit = 0;
        self.enter(Phase::Loss, cx);
    }

    fn on_spurious_loss(&mut self, cx: &mut Context<'_>) {
        if self.window.prior_threshold > 0 {
            self.window.size = self.growth.undo(self.window);
            self.window.threshold = self.window.threshold.max(self.window.prior_threshold);
        }
        self.end_episode(cx);
    }

    fn on_recovered(&mut self, settle: bool, cx: &mut Context<'_>) {
        if settle && self.window.threshold < NO_THRESHOLD {
            self.window.size = match self.window.reduction {
                Reduction::Proportional => self.window.threshold,
                Reduction::Halving => self.window.size.min(self.window.threshold),
            };
        }
        self.growth.recovered(self.window, cx);
        self.end_episode(cx);
    }

    /// At once, because the same acknowledgement may begin the next episode.
    fn end_episode(&mut self, cx: &mut Context<'_>) {
        if self.window.phase >= Phase::Cwr {
            self.enter(Phase::Open, cx);
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Context<'_>) {
        self.growth.measure(self.window, feedback, cx);
        if feedback.phase != self.window.phase {
            self.enter(feedback.phase, cx);
        }
        if self.window.in_reduction() {
            self.window.reduce(feedback);
        } else if feedback.may_grow && (feedback.window_limited || self.growth.grows_unfilled()) {
            self.growth.grow(self.window, feedback.acked, feedback, cx);
        }
    }

    /// RFC 2861: halve once per whole timeout gone by, down to the initial window.
    fn on_restart(&mut self, idle: Span, timeout: Span, cx: &mut Context<'_>) {
        if timeout > Span::ZERO && idle > timeout {
            self.growth.window_restarts(self.window, cx);
            let w = &mut *self.window;
            w.threshold = w.current_threshold();
            let floor = w.initial.min(w.size);
            let halvings = ((idle.as_nanos() - 1) / timeout.as_nanos()).min(31) as u32;
            w.size = (w.size >> halvings).max(floor);
        }
        self.growth.transmission_starts(self.window, idle, cx);
    }

    fn on_penalty(&mut self) {
        let w = &mut *self.window;
        if !w.in_slow_start() {
            w.threshold = (w.threshold / 2).max(2);
        }
        w.size = (w.size / 2).max(1);
    }

    fn on_application_limited(&mut self, used: u32) {
        let w = &mut *self.window;
        let used = used.max(w.initial);
        if used < w.size {
            w.threshold = w.current_threshold();
            w.size = (w.size + used) / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::reno::Reno;
    use units::{Instant, Stream};

    /// Reno at this window, after `events` in the open phase.
    fn after(size: u32, threshold: u32, events: &[Event]) -> Window {
        let window = Window { size, threshold, ..Window::default() };
        let mut flow = Windowed { window, growth: Reno };
        for event in events {
            flow.on_event(event, &mut Context { now: Instant::ZERO, random: &mut Stream::named(1, "test") });
        }
        flow.window
    }

    fn restart(idle: u64) -> Event {
        Event::Restart { idle: Span::from_millis(idle), timeout: Span::from_millis(250) }
    }

    fn congestion(cause: Cause, cut: bool, in_flight: u32) -> Event {
        Event::Congestion { cause, cut, in_flight }
    }

    #[test]
    fn the_window_is_halved_once_a_timeout_spent_idle_down_to_the_initial_window() {
        let window = |idle| after(160, NO_THRESHOLD, &[restart(idle)]).size;
        assert_eq!([250, 251, 900, 1000, 2000].map(window), [160, 80, 20, 20, 10]);
        assert_eq!(after(160, 50, &[restart(900)]).threshold, 120, "three quarters of the window were good");
    }

    #[test]
    fn credit_for_growth_ends_with_the_growth() {
        let acked =
            || Event::Feedback(Feedback { acked: 30, may_grow: true, window_limited: true, ..Feedback::default() });
        let credit = |event: Event| after(100, 50, &[acked(), event]).credit;
        assert_eq!(credit(acked()), 60);
        assert_eq!(credit(congestion(Cause::Loss, true, 90)), 0);
        assert_eq!(credit(congestion(Cause::Timeout, false, 90)), 0);
    }

    #[test]
    fn an_unused_window_shrinks_half_way_to_what_was_used() {
        let window = |used| after(100, 50, &[Event::ApplicationLimited { used }]).size;
        assert_eq!([20, 3, 100].map(window), [60, 55, 100]);
    }

    #[test]
    fn a_timeout_within_a_paid_episode_keeps_the_threshold_and_what_undo_returns_to() {
        let events = [congestion(Cause::Loss, true, 90), congestion(Cause::Timeout, false, 7)];
        let window = after(100, NO_THRESHOLD, &events);
        assert_eq!((window.size, window.threshold, window.prior_size), (8, 50, 100));
    }

    #[test]
    fn a_loss_after_a_mark_continues_its_reduction_and_cannot_be_undone() {
        let events = [congestion(Cause::Mark, true, 90), congestion(Cause::Loss, true, 80)];
        assert_eq!(after(100, NO_THRESHOLD, &events).phase, Phase::Recovery);
        let window = after(100, NO_THRESHOLD, &[&events[..], &[Event::SpuriousLoss]].concat());
        assert_eq!((window.size, window.prior_size, window.threshold), (81, 100, 50), "one retransmission, no undo");
    }

    #[test]
    fn one_acknowledgement_may_end_an_episode_and_begin_the_next() {
        let loss = || congestion(Cause::Loss, true, 90);
        let window = after(100, NO_THRESHOLD, &[loss(), Event::Recovered { settle: true }, loss()]);
        assert_eq!((window.prior_size, window.threshold), (50, 25));
        let window = after(100, NO_THRESHOLD, &[congestion(Cause::Timeout, true, 0), Event::SpuriousLoss, loss()]);
        assert_eq!((window.prior_size, window.threshold), (100, 50));
    }

    #[test]
    fn a_mark_in_recovery_forbids_its_undo_but_does_not_end_it() {
        let events = [congestion(Cause::Loss, true, 90), congestion(Cause::Mark, true, 80)];
        assert_eq!(after(100, NO_THRESHOLD, &events).phase, Phase::Recovery);
        assert_eq!(after(100, NO_THRESHOLD, &[&events[..], &[Event::SpuriousLoss]].concat()).threshold, 50);
    }

    #[test]
    fn a_probe_that_repaired_a_loss_costs_one_reduction_at_once() {
        let window = after(100, NO_THRESHOLD, &[congestion(Cause::ProbeRepair, true, 1)]);
        assert_eq!((window.size, window.threshold, window.phase), (50, 50, Phase::Open));
    }

    #[test]
    fn a_window_that_is_not_filled_does_not_grow() {
        let feedback = |window_limited| {
            Event::Feedback(Feedback { acked: 100, may_grow: true, window_limited, ..Feedback::default() })
        };
        let window = |limited| after(100, 50, &[feedback(limited)]).size;
        assert_eq!((window(false), window(true)), (100, 101));
    }
}
