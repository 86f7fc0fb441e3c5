//! The operations of a window-based algorithm, and the controller of one path that calls them.

use super::CwndState;
use super::prr::Prr;
use crate::{
    AckProgress, AckSample, CaState, Cause, Context, Decision, PathController, PathEvent, PathInfo, Reduction,
};
use std::fmt::Debug;
use units::{INFINITE_SSTHRESH, Span};

/// The operations of a window-based algorithm, with the names of Linux's `tcp_congestion_ops`.
pub trait CongestionOps: Debug + Send + Sync {
    /// The path came up; the window is the initial one (Linux `init`, which runs after the handshake).
    fn init(&mut self, _state: &mut CwndState, _path: &PathInfo, _cx: &mut Context<'_>) {}

    /// Handles an acknowledgement that may raise the window; `acked` packets were newly delivered (Linux `cong_avoid`).
    /// Not called during a reduction, nor while the sender does not fill the window, unless the algorithm
    /// [ignores](CongestionOps::ignores_cwnd_limited) that.
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, cx: &mut Context<'_>);

    /// The slow-start threshold after congestion (Linux `ssthresh`).
    fn ssthresh(&mut self, state: &CwndState, cx: &mut Context<'_>) -> u32;

    /// Whether the window also grows while the sender does not fill it (Linux: `cong_avoid` without
    /// `tcp_is_cwnd_limited`).
    fn ignores_cwnd_limited(&self) -> bool {
        false
    }

    /// Called for every acknowledgement, before it ends or begins a reduction (Linux `in_ack_event`).
    fn in_ack_event(&mut self, _state: &mut CwndState, _progress: &AckProgress, _cx: &mut Context<'_>) {}

    /// Called for every acknowledgement, before it ends or begins a reduction (Linux `pkts_acked`).
    fn pkts_acked(&mut self, _state: &mut CwndState, _progress: &AckProgress, _cx: &mut Context<'_>) {}

    /// Called for every acknowledgement, after it has ended or begun a reduction and before it otherwise changes the
    /// window.
    fn on_ack(&mut self, _state: &mut CwndState, _sample: &AckSample, _cx: &mut Context<'_>) {}

    /// The sender's state changes from `state.ca_state` to `next` (Linux `set_state`). Every timeout reports
    /// [`CaState::Loss`] again.
    fn set_state(&mut self, _state: &mut CwndState, _next: CaState, _cx: &mut Context<'_>) {}

    /// Handles a timeout that reduces: the threshold is already set, the window is not (Linux `CA_EVENT_LOSS`).
    fn on_timeout(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {}

    /// A reduction is over and the window is the threshold (Linux `CA_EVENT_COMPLETE_CWR`).
    fn on_recovered(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {}

    /// First packet after `idle` without packets in flight (Linux `CA_EVENT_TX_START`).
    fn on_tx_start(&mut self, _state: &mut CwndState, _idle: Span, _cx: &mut Context<'_>) {}

    /// The window restarts, because the path was idle for longer than the retransmission timeout (Linux
    /// `CA_EVENT_CWND_RESTART`).
    fn on_window_restart(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {}

    /// Minimum window of rate halving (Linux before 3.2: `min_cwnd`).
    fn min_cwnd(&self, state: &CwndState) -> u32 {
        state.ssthresh / 2
    }

    /// The window after an episode that proved spurious (Linux `undo_cwnd`).
    fn undo_cwnd(&mut self, state: &CwndState) -> u32 {
        state.cwnd.max(state.prior_cwnd)
    }
}

/// The controller of one path, from a [`CongestionOps`].
#[derive(Debug)]
pub struct CwndController<O> {
    state: CwndState,
    ops: O,
}

impl<O: CongestionOps + 'static> CwndController<O> {
    /// A controller that uses these operations, for an algorithm's registration.
    pub fn boxed(ops: O) -> Box<dyn PathController> {
        Box::new(Self::new(ops))
    }

    /// A controller that uses these operations.
    #[must_use]
    pub fn new(ops: O) -> Self {
        Self { state: CwndState::default(), ops }
    }

    /// The window and its state.
    #[must_use]
    pub fn state(&self) -> &CwndState {
        &self.state
    }

    /// The window, for a policy that controls it from outside.
    pub fn state_mut(&mut self) -> &mut CwndState {
        &mut self.state
    }
}

impl<O: CongestionOps> PathController for CwndController<O> {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        self.state.on_event(&mut self.ops, event, cx);
    }

    fn decision(&self) -> Decision {
        Decision { cwnd: self.state.cwnd, ssthresh: self.state.ssthresh, pacing_rate: None }
    }

    fn requests_reduction(&self) -> bool {
        self.state.requests_reduction
    }
}

impl CwndState {
    /// Handles an event of the path with the algorithm's `ops`, coupled or not.
    #[inline(always)]
    pub(crate) fn on_event(&mut self, ops: &mut impl CongestionOps, event: &PathEvent, cx: &mut Context<'_>) {
        if let Some(left) = self.left.take() {
            self.leave(ops, left, event, cx);
        }
        match event {
            PathEvent::Ack(sample) => self.on_ack(ops, sample, cx),
            PathEvent::AckProgress(progress) => self.on_progress(ops, progress, cx),
            PathEvent::PathUp(path) => self.init(ops, path, cx),
            PathEvent::PathDown => {}
            PathEvent::Congestion { cause, reduce_cwnd, in_flight, by_timer } => {
                self.on_congestion(ops, *cause, *reduce_cwnd, *in_flight, *by_timer, cx);
            }
            PathEvent::SpuriousLoss => self.on_spurious_loss(ops),
            PathEvent::Recovered { to_ssthresh } => {
                self.on_recovered(ops, *to_ssthresh, cx);
                if self.ca_state >= CaState::Cwr {
                    self.set_state(ops, CaState::Open, cx);
                }
            }
            PathEvent::WindowRestart { idle, rto } => self.on_window_restart(ops, *idle, *rto, cx),
            PathEvent::IdleRestart { idle, .. } => ops.on_tx_start(self, *idle, cx),
            PathEvent::ApplicationLimited { cwnd_used } => self.on_application_limited(*cwnd_used),
            PathEvent::Penalise => self.penalise(),
            PathEvent::MssChanged { mss } => self.mss = *mss,
        }
    }

    fn init(&mut self, ops: &mut impl CongestionOps, path: &PathInfo, cx: &mut Context<'_>) {
        *self = Self {
            cwnd: path.initial_window,
            initial_window: path.initial_window,
            mss: path.mss,
            tick: path.tick,
            cwnd_clamp: path.cwnd_clamp.min(u32::MAX / 2),
            reduction: path.reduction,
            ..Self::default()
        };
        ops.init(self, path, cx);
    }

    fn set_state(&mut self, ops: &mut impl CongestionOps, ca_state: CaState, cx: &mut Context<'_>) {
        ops.set_state(self, ca_state, cx);
        self.ca_state = ca_state;
    }

    /// Leaves the state of an episode that is over for what the acknowledgement says that has ended it. Without SACK the state
    /// lasts until more than its window is acknowledged (Linux `tcp_is_non_sack_preventing_reopen`).
    #[cold]
    fn leave(&mut self, ops: &mut impl CongestionOps, left: CaState, event: &PathEvent, cx: &mut Context<'_>) {
        self.ca_state = left;
        let next = match event {
            PathEvent::Ack(sample) if sample.ca_state == left => return,
            PathEvent::Ack(sample) if sample.ca_state == CaState::Disorder && left < CaState::Loss => CaState::Disorder,
            _ => CaState::Open,
        };
        self.set_state(ops, next, cx);
    }

    /// Begins or continues a reduction. If an acknowledgement found the loss, its sample lowers the window. A timer has
    /// no sample: its reduction counts one packet as delivered, so that the first retransmission can leave (Linux
    /// `tcp_rack_reo_timeout`).
    fn on_loss(&mut self, ops: &mut impl CongestionOps, in_flight: u32, by_timer: bool, cx: &mut Context<'_>) {
        let prior_ssthresh = if self.in_cwnd_reduction() { 0 } else { self.current_ssthresh() };
        self.begin_reduction(ops, prior_ssthresh, cx);
        self.set_state(ops, CaState::Recovery, cx);
        if by_timer {
            self.reduce_cwnd(&AckSample { acked: 1, in_flight, ..AckSample::default() });
        }
    }

    /// Sets the threshold, once per episode; [`CwndState::reduce_cwnd`] lowers the window.
    fn on_congestion(
        &mut self,
        ops: &mut impl CongestionOps,
        cause: Cause,
        reduce_cwnd: bool,
        in_flight: u32,
        by_timer: bool,
        cx: &mut Context<'_>,
    ) {
        match cause {
            Cause::Timeout => self.on_timeout(ops, reduce_cwnd, in_flight, cx),
            Cause::Loss => self.on_loss(ops, in_flight, by_timer, cx),
            // Without a loss, a reduction is never spurious. There is one reduction per window, and none of that window
            // is undone. That the state Loss has ended is known only now.
            Cause::EcnMark | Cause::LocalDrop | Cause::Requested
                if self.ca_state < CaState::Cwr || self.ca_state == CaState::Loss && reduce_cwnd =>
            {
                self.begin_reduction(ops, 0, cx);
                self.set_state(ops, CaState::Cwr, cx);
            }
            Cause::EcnMark | Cause::LocalDrop | Cause::Requested => self.prior_ssthresh = 0,
            Cause::TlpRecovery => {
                self.begin_reduction(ops, 0, cx);
                self.set_state(ops, CaState::Cwr, cx);
                self.on_recovered(ops, true, cx);
                self.end_episode();
            }
        }
    }

    fn begin_reduction(&mut self, ops: &mut impl CongestionOps, prior_ssthresh: u32, cx: &mut Context<'_>) {
        self.prior_ssthresh = prior_ssthresh;
        if !self.in_cwnd_reduction() {
            self.prior_cwnd = self.cwnd;
            self.cwnd_cnt = 0;
            self.prr = Prr::default();
            self.ssthresh = ops.ssthresh(self, cx);
            self.min_cwnd = ops.min_cwnd(self);
        }
    }

    fn on_timeout(&mut self, ops: &mut impl CongestionOps, reduce_cwnd: bool, in_flight: u32, cx: &mut Context<'_>) {
        if reduce_cwnd {
            self.prior_ssthresh = self.current_ssthresh();
            self.prior_cwnd = self.cwnd;
            self.ssthresh = ops.ssthresh(self, cx);
            ops.on_timeout(self, cx);
        }
        self.cwnd = in_flight + 1;
        self.cwnd_cnt = 0;
        self.set_state(ops, CaState::Loss, cx);
    }

    fn on_spurious_loss(&mut self, ops: &mut impl CongestionOps) {
        if self.prior_ssthresh > 0 {
            self.cwnd = ops.undo_cwnd(self);
            self.ssthresh = self.ssthresh.max(self.prior_ssthresh);
        }
        self.end_episode();
    }

    fn on_recovered(&mut self, ops: &mut impl CongestionOps, to_ssthresh: bool, cx: &mut Context<'_>) {
        if to_ssthresh && self.ssthresh < INFINITE_SSTHRESH {
            self.cwnd = match self.reduction {
                Reduction::Proportional => self.ssthresh,
                Reduction::Halving => self.cwnd.min(self.ssthresh),
            };
        }
        ops.on_recovered(self, cx);
    }

    /// Ends the episode before the acknowledgement's own event, because that acknowledgement may begin the next one.
    fn end_episode(&mut self) {
        if self.ca_state >= CaState::Cwr {
            self.left = Some(std::mem::replace(&mut self.ca_state, CaState::Open));
        }
    }

    #[inline(always)]
    fn on_progress(&mut self, ops: &mut impl CongestionOps, progress: &AckProgress, cx: &mut Context<'_>) {
        // With nothing outstanding, a window update or a report of duplicates is not followed by a sample.
        self.has_progress = progress.pkts_acked > 0 || progress.snd_una < progress.snd_nxt;
        if self.has_progress {
            ops.pkts_acked(self, progress, cx);
        }
        ops.in_ack_event(self, progress, cx);
    }

    #[inline(always)]
    fn on_ack(&mut self, ops: &mut impl CongestionOps, sample: &AckSample, cx: &mut Context<'_>) {
        if !self.has_progress {
            self.on_progress(ops, &sample.progress(), cx);
        }
        (self.has_progress, self.requests_reduction) = (false, false);
        ops.on_ack(self, sample, cx);
        if sample.ca_state != self.ca_state {
            self.set_state(ops, sample.ca_state, cx);
        }
        if self.in_cwnd_reduction() {
            self.reduce_cwnd(sample);
        } else if sample.may_raise_cwnd && (sample.cwnd_limited || ops.ignores_cwnd_limited()) {
            ops.cong_avoid(self, sample.acked, sample, cx);
        }
    }

    /// RFC 2861: halves the window once per retransmission timeout spent idle, down to the initial window.
    fn on_window_restart(&mut self, ops: &mut impl CongestionOps, idle: Span, rto: Span, cx: &mut Context<'_>) {
        if rto > Span::ZERO && idle > rto {
            ops.on_window_restart(self, cx);
            self.ssthresh = self.current_ssthresh();
            let restart_window = self.initial_window.min(self.cwnd);
            let halvings = ((idle.as_nanos() - 1) / rto.as_nanos()).min(31) as u32;
            self.cwnd = (self.cwnd >> halvings).max(restart_window);
        }
    }

    fn penalise(&mut self) {
        if !self.in_slow_start() {
            self.ssthresh = (self.ssthresh / 2).max(2);
        }
        self.cwnd = (self.cwnd / 2).max(1);
    }

    fn on_application_limited(&mut self, cwnd_used: u32) {
        let cwnd_used = cwnd_used.max(self.initial_window);
        if cwnd_used < self.cwnd {
            self.ssthresh = self.current_ssthresh();
            self.cwnd = (self.cwnd + cwnd_used) / 2;
        }
    }
}

#[cfg(test)]
mod tests;
