//! Why the sender sends nothing more now ([`Limit`]), and for how long.

use super::{Sender, handshake::Handshake};
use crate::path::{Limit, LimitTimer, LimitTimes, LimitedTimes, SendLimit, SenderState};
use control::CaState;
use units::Instant;

/// The limit, and the state that decides it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// The state of an established sender when nothing more could be sent.
    state: SenderState,
    timer: LimitTimer,
}

impl Sender {
    /// Stores what decides the limit, once nothing more can be sent. `is_paced` if pacer or host queue make data wait.
    pub(super) fn store_limit(&mut self, limit: Option<SendLimit>, is_cwnd_full: bool, is_paced: bool) {
        self.limits.state = SenderState {
            withheld: self.withheld(limit),
            is_cwnd_full,
            is_recovering: self.path.ca_state >= CaState::Recovery,
            is_paced,
        };
    }

    /// Why there is nothing to send, if there is nothing. A closed window limits only a sender with more to send.
    fn withheld(&self, limit: Option<SendLimit>) -> Option<Limit> {
        let counts = self.scoreboard.counts();
        let has_unsent = self.scoreboard.snd_nxt() < self.write_seq;
        match limit {
            Some(SendLimit::ReceiveWindow) if has_unsent => Some(Limit::ReceiveWindow),
            Some(SendLimit::SendBuffer) => Some(Limit::SendBuffer),
            _ => (!has_unsent && counts.lost_out <= counts.retrans_out).then_some(Limit::Application),
        }
    }

    /// Records the limit from now on; before the connection is opened there is none.
    #[inline]
    pub(in crate::tcp) fn account_limit(&mut self, now: Instant) {
        if self.handshake != Handshake::Closed {
            let limit = if self.is_established() { self.limits.state.limit() } else { Limit::Handshake };
            self.limits.timer.set(now, limit);
        }
    }

    /// Records the limit of a subflow from now on. `withheld` is why its connection gives it no data; `is_suspended` if
    /// that is a timeout. Returns the limit; none if the subflow is not established.
    #[inline]
    pub(crate) fn account_subflow_limit(
        &mut self,
        now: Instant,
        is_up: bool,
        withheld: Limit,
        is_suspended: bool,
    ) -> Limit {
        let limit = if is_up { self.limits.state.given(withheld, is_suspended).limit() } else { Limit::Handshake };
        self.limits.timer.set(now, limit);
        limit
    }

    /// Why nothing more is sent now.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.limits.timer.limit()
    }

    /// How long each limit has held since the connection was opened, until `now`.
    #[must_use]
    pub fn limit_times(&self, now: Instant) -> LimitTimes {
        self.limits.timer.times(now)
    }

    /// How long the receive window and the send buffer have limited the sender, until `now`.
    #[must_use]
    pub fn limited_times(&self, now: Instant) -> LimitedTimes {
        self.limit_times(now).into()
    }
}
