//! The frame of window-based algorithms.

use crate::{Cause, Context, Decision, Event, Feedback, NO_THRESHOLD, PathController, PathInfo, Phase};
use std::fmt::Debug;
use units::Span;

/// What a window-based algorithm says of itself. Everything else is the frame's.
pub trait Growth: Debug + Send {
    /// An acknowledgement that may raise the window (Linux `cong_avoid`). `acked` packets were newly delivered.
    /// Not called while the window is being reduced.
    fn grow(&mut self, window: &mut Window, acked: u32, feedback: &Feedback, cx: &mut Context<'_>);

    /// Congestion: the new threshold (Linux `ssthresh`).
    fn threshold(&mut self, window: &Window, cx: &mut Context<'_>) -> u32;

    /// Every acknowledgement, before the window moves (Linux `pkts_acked`, `in_ack_event`).
    fn measure(&mut self, _window: &mut Window, _feedback: &Feedback, _cx: &mut Context<'_>) {}

    /// The sender goes from `window.phase` to `next` (Linux `set_state`).
    fn change_phase(&mut self, _window: &mut Window, _next: Phase, _cx: &mut Context<'_>) {}

    /// A reduction is over and the window stands at the threshold (Linux `CA_EVENT_COMPLETE_CWR`).
    fn recovered(&mut self, _window: &mut Window, _cx: &mut Context<'_>) {}

    /// First packet after the path stood empty for `idle` (Linux `CA_EVENT_TX_START`).
    fn transmission_starts(&mut self, _window: &mut Window, _idle: Span, _cx: &mut Context<'_>) {}

    /// Idle for longer than the retransmission timeout (Linux `CA_EVENT_CWND_RESTART`).
    fn window_restarts(&mut self, _window: &mut Window, _cx: &mut Context<'_>) {}

    /// The window to return to when an episode proved spurious.
    fn undo(&mut self, window: &Window) -> u32 {
        window.size.max(window.prior_size)
    }
}

/// A congestion window and what the frame remembers about it. All in packets.
#[derive(Clone, Debug)]
pub struct Window {
    /// Packets that may be in flight.
    pub size: u32,
    /// Slow-start threshold.
    pub threshold: u32,
    /// Never above this.
    pub clamp: u32,
    /// Acked packets not yet turned into growth.
    pub credit: u32,
    /// The window before the latest reduction.
    pub prior_size: u32,
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// Where the sender stands.
    pub phase: Phase,
    pub(crate) prior_threshold: u32,
    pub(crate) initial: u32,
    pub(crate) reduction: Reduction,
}

/// Proportional rate reduction (RFC 6937): send in proportion to what leaves the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reduction {
    delivered: u32,
    sent: u32,
}

/// The least window: one packet always moves.
const MIN_WINDOW: u32 = 1;

impl Default for Window {
    fn default() -> Self {
        Self {
            size: 10,
            threshold: NO_THRESHOLD,
            clamp: u32::MAX / 2,
            credit: 0,
            prior_size: 0,
            mss: 1448,
            phase: Phase::Open,
            prior_threshold: 0,
            initial: 10,
            reduction: Reduction::default(),
        }
    }
}

impl Window {
    /// Below the threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Being reduced: no growth until that is over.
    #[must_use]
    pub fn in_reduction(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }

    /// The threshold that a new episode should remember: three quarters of the window count as known to be good.
    #[must_use]
    pub fn current_threshold(&self) -> u32 {
        if self.in_reduction() { self.threshold } else { self.threshold.max((self.size >> 1) + (self.size >> 2)) }
    }

    /// One step of proportional rate reduction. RFC 6937 section 3, with the extra packet that Linux 6.1 adds on a
    /// cumulative acknowledgement without new loss.
    fn reduce(&mut self, feedback: &Feedback) {
        if feedback.acked == 0 || self.prior_size == 0 {
            return;
        }
        self.reduction.delivered += feedback.acked;
        let budget = i64::from(self.threshold) - i64::from(feedback.in_flight);
        let (delivered, sent) = (i64::from(self.reduction.delivered), i64::from(self.reduction.sent));
        let send = if budget < 0 {
            let prior = i64::from(self.prior_size);
            (i64::from(self.threshold) * delivered + prior - 1) / prior - sent
        } else {
            let mut send = (delivered - sent).max(i64::from(feedback.acked));
            if feedback.advanced && feedback.lost == 0 {
                send += 1;
            }
            send.min(budget)
        };
        // The first retransmission always goes out.
        let send = send.max(i64::from(sent == 0));
        self.size = (feedback.in_flight + u32::try_from(send).unwrap_or(0)).max(MIN_WINDOW);
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

impl<G: Growth> Windowed<G> {
    fn start(&mut self, path: &PathInfo) {
        self.window = Window { size: path.initial_window, initial: path.initial_window, mss: path.mss, ..Window::default() };
    }

    fn enter(&mut self, phase: Phase, cx: &mut Context<'_>) {
        if phase != self.window.phase {
            self.growth.change_phase(&mut self.window, phase, cx);
            self.window.phase = phase;
        }
    }

    /// One cut an episode; the way down is [`Window::reduce`]'s.
    fn on_congestion(&mut self, cause: Cause, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        match cause {
            Cause::Timeout => self.on_timeout(cut, in_flight, cx),
            Cause::Loss => {
                let remembered = if self.window.in_reduction() { 0 } else { self.window.current_threshold() };
                self.begin_reduction(remembered, cx);
                self.enter(Phase::Recovery, cx);
            }
            // Marks and local drops are facts, never spurious: nothing to undo.
            Cause::Mark | Cause::LocalDrop => {
                self.begin_reduction(0, cx);
                self.enter(Phase::Cwr, cx);
            }
            Cause::ProbeRepair => {
                self.begin_reduction(0, cx);
                self.enter(Phase::Cwr, cx);
                self.on_recovered(true, cx);
                self.enter(Phase::Open, cx);
            }
        }
    }

    fn begin_reduction(&mut self, remembered_threshold: u32, cx: &mut Context<'_>) {
        let w = &mut self.window;
        w.prior_threshold = remembered_threshold;
        if !w.in_reduction() {
            w.prior_size = w.size;
            w.credit = 0;
            w.reduction = Reduction::default();
            self.window.threshold = self.growth.threshold(&self.window, cx);
        }
    }

    fn on_timeout(&mut self, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        if cut {
            self.window.prior_threshold = self.window.current_threshold();
            self.window.prior_size = self.window.size;
            self.window.threshold = self.growth.threshold(&self.window, cx);
        }
        self.window.size = in_flight + 1;
        self.window.credit = 0;
        self.enter(Phase::Loss, cx);
    }

    fn on_spurious_loss(&mut self) {
        if self.window.prior_threshold == 0 {
            return;
        }
        self.window.size = self.growth.undo(&self.window);
        self.window.threshold = self.window.threshold.max(self.window.prior_threshold);
    }

    fn on_recovered(&mut self, settle: bool, cx: &mut Context<'_>) {
        if settle && self.window.threshold < NO_THRESHOLD {
            self.window.size = self.window.threshold;
        }
        self.growth.recovered(&mut self.window, cx);
    }

    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Context<'_>) {
        self.enter(feedback.phase, cx);
        self.growth.measure(&mut self.window, feedback, cx);
        if self.window.in_reduction() {
            self.window.reduction.sent += feedback.sent;
            self.window.reduce(feedback);
        } else if feedback.may_grow {
            self.growth.grow(&mut self.window, feedback.acked, feedback, cx);
        }
    }

    /// RFC 2861: halve once per timeout spent idle, down to the initial window.
    fn on_restart(&mut self, idle: Span, timeout: Span, cx: &mut Context<'_>) {
        if timeout > Span::ZERO && idle > timeout {
            self.growth.window_restarts(&mut self.window, cx);
            let w = &mut self.window;
            w.threshold = w.current_threshold();
            let floor = w.initial.min(w.size);
            let halvings = (idle.as_nanos() / timeout.as_nanos()).min(31) as u32;
            w.size = (w.size >> halvings).max(floor);
        }
        self.growth.transmission_starts(&mut self.window, idle, cx);
    }

    fn on_application_limited(&mut self, used: u32) {
        let w = &mut self.window;
        let used = used.max(w.initial);
        if used < w.size {
            w.threshold = w.current_threshold();
            w.size = (w.size + used) / 2;
        }
    }
}

impl<G: Growth> PathController for Windowed<G> {
    fn on_event(&mut self, event: &Event, cx: &mut Context<'_>) {
        match event {
            Event::Feedback(feedback) => self.on_feedback(feedback, cx),
            Event::PathUp(path) => self.start(path),
            Event::PathDown => {}
            Event::Congestion { cause, cut, in_flight } => self.on_congestion(*cause, *cut, *in_flight, cx),
            Event::SpuriousLoss => self.on_spurious_loss(),
            Event::Recovered { settle } => self.on_recovered(*settle, cx),
            Event::Restart { idle, timeout } => self.on_restart(*idle, *timeout, cx),
            Event::ApplicationLimited { used } => self.on_application_limited(*used),
            Event::MssChanged { mss } => self.window.mss = *mss,
        }
    }

    fn decision(&self) -> Decision {
        Decision { window: self.window.size, threshold: self.window.threshold, pacing: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(delivered: u32, sent: u32, in_flight: u32, acked: u32, advanced: bool) -> u32 {
        let mut window = Window {
            threshold: 70,
            prior_size: 100,
            phase: Phase::Recovery,
            reduction: Reduction { delivered: delivered - acked, sent },
            ..Window::default()
        };
        window.reduce(&Feedback { acked, in_flight, advanced, ..Feedback::default() });
        window.size - in_flight
    }

    #[test]
    fn proportional_rate_reduction_as_in_the_kernel() {
        assert_eq!(reduce(1, 0, 99, 1, false), 1);
        assert_eq!(reduce(10, 6, 95, 1, false), 1);
        assert_eq!(reduce(10, 7, 95, 1, false), 0);
        assert_eq!(reduce(40, 30, 60, 2, true), 10);
    }
}
