//! What an MPTCP connection asks of a subflow's sender.

use super::{Sender, Steering, handshake::Handshake};
use control::{Delivery, Event};
use units::{Instant, Rate, Span};

impl Sender {
    /// Exchanges the controller at hand: the connection's is lent before each call that lets the subflow act, and taken
    /// back after it.
    pub(crate) fn lend(&mut self, steering: &mut Option<Box<Steering>>) {
        std::mem::swap(&mut self.steering, steering);
    }

    /// The handshake is done.
    pub(crate) fn is_open(&self) -> bool {
        self.handshake == Handshake::Open
    }

    /// One segment more to send. Unlike with [`Input::Write`](super::Input::Write), that there was none before says
    /// nothing of the application: the connection hands out its data as windows open.
    pub(crate) fn assign(&mut self) {
        self.available += 1;
    }

    /// The connection has no data: what is delivered from now on says little of the path.
    pub(crate) fn starve(&mut self) {
        self.note_starvation();
    }

    /// Segments handed over that have not left.
    pub(crate) fn unsent(&self) -> u32 {
        (self.available - self.board.next()) as u32
    }

    /// Nothing is to be sent, and nothing is unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.unsent() == 0 && self.board.counts().out == 0
    }

    /// The path is gone.
    pub(crate) fn close(&mut self, now: Instant) {
        self.notify(now, &Event::PathDown);
    }

    /// The window is too large for a path that holds up the others.
    pub(crate) fn penalise(&mut self, now: Instant) {
        self.notify(now, &Event::Penalty);
    }

    /// When the retransmission timer runs out; never if nothing is outstanding.
    pub(crate) fn retransmission_at(&self) -> Instant {
        self.timers.retransmission()
    }

    /// Mean deviation of the round-trip time.
    pub(crate) fn variance(&self) -> Span {
        self.round_trip.variance()
    }

    /// The delivery-rate sample of the latest acknowledgement, if it made one.
    pub(crate) fn last_delivery(&self) -> Option<Delivery> {
        self.last_delivery
    }

    /// What the controller paces at, or else Linux's estimate from window and smoothed RTT (`sk_pacing_rate`).
    pub(crate) fn pacing_rate(&self) -> Rate {
        self.decision.pacing.unwrap_or_else(|| self.default_pacing())
    }
}
