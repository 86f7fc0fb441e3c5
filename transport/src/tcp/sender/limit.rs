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
    /// Called when nothing more can be sent: records the limit from now on. `is_paced` if pacer or host queue make data wait.
    #[inline]
    pub(super) fn account_limit(&mut self, now: Instant, limit: Option<SendLimit>, is_cwnd_full: bool, is_paced: bool) {
        let is_recovering = self.path.ca_state >= CaState::Recovery;
        self.limits.state = SenderState { withheld: self.withheld(limit), is_cwnd_full, is_recovering, is_paced };
        self.limits.timer.set(now, self.limits.state.limit());
    }

    /// Why there is nothing to send, if there is nothing. A closed window limits only a sender with more to send.
    #[inline]
    fn withheld(&self, limit: Option<SendLimit>) -> Option<Limit> {
        if self.scoreboard.snd_nxt() < self.write_seq {
            return limit
                .filter(|limit| matches!(limit, SendLimit::ReceiveWindow | SendLimit::SendBuffer))
                .map(Limit::from);
        }
        let counts = self.scoreboard.counts();
        match limit {
            Some(SendLimit::SendBuffer) => Some(Limit::SendBuffer),
            _ => (counts.lost_out <= counts.retrans_out).then_some(Limit::Application),
        }
    }

    /// Records the handshake as the limit, once it has begun.
    pub(super) fn account_handshake(&mut self, now: Instant) {
        if self.handshake != Handshake::Closed {
            self.limits.timer.set(now, Limit::Handshake);
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
