//! Methods of a sender that only an MPTCP connection calls.

use super::{Sender, SenderConfig, handshake::Handshake};
use crate::path::ControllerHandle;
use control::{PathEvent, RateSample};
use units::{Instant, PathId, Rate, Span};

/// Receive window of a subflow's sender, bytes. The connection, not the subflow, obeys the peer's window.
const UNLIMITED_WINDOW: u64 = 1 << 60;

impl Sender {
    /// The sender of a subflow. The send buffer is the connection's, which assigns a subflow no more than it can hold.
    pub(crate) fn of_subflow(config: SenderConfig, path: PathId) -> Self {
        let config = SenderConfig { send_buffer: u64::MAX, ..config };
        let snd_wnd_end = UNLIMITED_WINDOW / u64::from(config.mss);
        Self { snd_wnd_edge: UNLIMITED_WINDOW, snd_wnd_end, ..Self::new(config, path) }
    }

    /// True for the sender of a subflow.
    pub(super) fn is_subflow(&self) -> bool {
        self.snd_wnd_edge == UNLIMITED_WINDOW
    }

    /// True once the connection is established.
    pub(crate) fn is_established(&self) -> bool {
        matches!(self.handshake, Handshake::Established)
    }

    /// Adds one segment to send. Unlike [`Input::Write`](super::Input::Write), it does not mark rate samples as
    /// application-limited, because the connection assigns its data as windows open.
    pub(crate) fn assign(&mut self, continues: bool) {
        self.write_seq += 1;
        self.transmit.holds_new_data = false;
        self.append_to_buffer(continues);
    }

    /// Records that the connection has no data: from now on rate samples are application-limited if the window has
    /// room.
    pub(crate) fn mark_app_limited(&mut self) {
        self.check_app_limited();
    }

    /// Sets whether the application waits for memory of the connection. Missing data is then not the application's
    /// limit.
    pub(crate) fn set_connection_full(&mut self, is_full: bool) {
        self.write_queue.is_connection_full = is_full;
    }

    /// Segments assigned and not yet sent.
    pub(crate) fn unsent(&self) -> u32 {
        (self.write_seq - self.scoreboard.snd_nxt()) as u32
    }

    /// True if there is nothing to send and nothing is unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.unsent() == 0 && self.scoreboard.counts().packets_out == 0
    }

    /// Notifies the controller that the subflow was removed.
    pub(crate) fn close(&mut self, now: Instant, controller: &mut ControllerHandle) {
        self.path.notify(now, &PathEvent::PathDown, controller);
    }

    /// Penalisation (Raiciu et al., NSDI 2012): the controller reduces the window of a subflow that blocks the others.
    pub(crate) fn penalise(&mut self, now: Instant, controller: &mut ControllerHandle) {
        self.path.notify(now, &PathEvent::Penalise, controller);
    }

    /// RTTVAR (RFC 6298, with Linux's lower bound).
    pub(crate) fn rttvar(&self) -> Span {
        self.path.rtt.rttvar()
    }

    /// The delivery-rate sample of the latest acknowledgement, if it was valid.
    pub(crate) fn last_delivery(&self) -> Option<RateSample> {
        self.last_delivery
    }

    /// The controller's pacing rate, or otherwise Linux's estimate from window and smoothed RTT (`sk_pacing_rate`).
    pub(crate) fn pacing_rate(&self) -> Rate {
        self.path.decision.pacing_rate.unwrap_or(self.pacing_rate)
    }

    /// Called after an acknowledgement: what leaves until the next one does not raise the rate, and a timeout does not
    /// lower it (Linux `tcp_update_pacing_rate`).
    pub(super) fn update_pacing_rate(&mut self) {
        self.pacing_rate = self.path.pacing_rate(self.config.mss, self.scoreboard.counts().packets_out);
    }
}
