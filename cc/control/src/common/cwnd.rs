//! The state of a congestion window.

use super::prr::Prr;
use crate::{AckSample, CaState, Reduction};
use units::{INFINITE_SSTHRESH, Instant, Span};

/// A path's congestion window and its state, as in Linux's `tcp_sock`. Windows are in packets.
#[derive(Clone, Debug)]
pub struct CwndState {
    /// Congestion window: packets that may be in flight.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Maximum window.
    pub cwnd_clamp: u32,
    /// Acknowledged packets that have not raised the window yet.
    pub cwnd_cnt: u32,
    /// The window before the latest reduction.
    pub prior_cwnd: u32,
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// The sender's congestion state.
    pub ca_state: CaState,
    /// The state whose episode is over, until the next event says whether the state is, too.
    pub(crate) left: Option<CaState>,
    /// The host's timer tick (Linux: a jiffy).
    pub tick: Span,
    /// The threshold to which undo returns; 0 if the latest reduction cannot be undone.
    pub(crate) prior_ssthresh: u32,
    pub(crate) initial_window: u32,
    pub(crate) reduction: Reduction,
    pub(crate) prr: Prr,
    /// Minimum window of the current rate halving.
    pub(crate) min_cwnd: u32,
    /// Whether the progress of the current acknowledgement has been counted.
    pub(crate) has_progress: bool,
    /// Whether the sender is asked to begin a reduction.
    pub(crate) requests_reduction: bool,
}

impl Default for CwndState {
    fn default() -> Self {
        Self {
            cwnd: 10,
            ssthresh: INFINITE_SSTHRESH,
            cwnd_clamp: u32::MAX / 2,
            cwnd_cnt: 0,
            prior_cwnd: 0,
            mss: 1448,
            ca_state: CaState::Open,
            left: None,
            tick: Span::from_millis(1),
            prior_ssthresh: 0,
            initial_window: 10,
            reduction: Reduction::default(),
            prr: Prr::default(),
            min_cwnd: 0,
            has_progress: false,
            requests_reduction: false,
        }
    }
}

impl CwndState {
    /// Whether the window is below the slow-start threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `now` in milliseconds, as shown by the host's ticking clock.
    #[must_use]
    pub fn clock_ms(&self, now: Instant) -> u64 {
        Instant(now.0 / self.tick.0 * self.tick.0).as_millis()
    }

    /// `now` in ticks of the host's timer (Linux `tcp_jiffies32`).
    #[must_use]
    pub fn jiffies(&self, now: Instant) -> u64 {
        now.0 / self.tick.0
    }

    /// A span in whole ticks, rounded up as Linux rounds an RTT.
    #[must_use]
    pub fn jiffies_in(&self, span: Span) -> u64 {
        span.as_micros().div_ceil(self.tick.as_micros())
    }

    /// Whether the window is being reduced (Linux `tcp_in_cwnd_reduction`). It does not grow during the reduction.
    #[must_use]
    pub fn in_cwnd_reduction(&self) -> bool {
        matches!(self.ca_state, CaState::Cwr | CaState::Recovery)
    }

    /// The threshold to which undo of a new episode returns (Linux `tcp_current_ssthresh`): at least three quarters of
    /// the window.
    #[must_use]
    pub fn current_ssthresh(&self) -> u32 {
        if self.in_cwnd_reduction() { self.ssthresh } else { self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2)) }
    }

    /// Asks the sender to begin a reduction, which cannot be undone (Linux `tcp_enter_cwr` called by an algorithm).
    pub fn request_reduction(&mut self) {
        self.requests_reduction = true;
        self.prior_ssthresh = 0;
    }

    /// Lowers the window by one acknowledgement's step (Linux `tcp_cwnd_reduction`).
    pub(super) fn reduce_cwnd(&mut self, sample: &AckSample) {
        match self.reduction {
            Reduction::Proportional => self.proportional_rate_reduction(sample),
            Reduction::Halving => self.halve_rate(sample),
        }
    }
}
