//! Why the connection, and each of its paths, sends nothing more now ([`Limit`]), and for how long.

use super::path::Path;
use super::{PathState, Sender};
use crate::path::{Limit, LimitTimer, LimitTimes, LimitedTimes, SenderState};
use control::CaState;
use units::Instant;

/// The limits of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// The connection's limit, which follows from those of its paths.
    connection: LimitTimer,
    /// Flow control, whatever the paths' windows.
    pub flow_control: LimitTimer,
}

impl Path {
    /// Records the limit from now on. `withheld` is why the connection has assigned no more data.
    fn account_limit(&mut self, now: Instant, withheld: Limit) -> Limit {
        let state = SenderState {
            withheld: self.waiting.is_empty().then_some(Limit::Application),
            is_cwnd_full: !self.sender.has_room(self.sent.in_flight()),
            is_recovering: self.sender.ca_state() >= CaState::Recovery,
            is_paced: self.sender.next_send_time() > now,
        };
        let is_up = self.state == PathState::Up;
        let limit = if is_up { state.given(withheld, self.is_suspect).limit() } else { Limit::Handshake };
        self.limits.set(now, limit);
        limit
    }
}

impl Sender {
    /// Called when nothing more can be sent: records the limit of each path, and of the connection.
    pub(super) fn account_limits(&mut self, now: Instant) {
        if self.connect_time.is_none() {
            return;
        }
        let withheld = self.withheld();
        let has_regular = self.paths.iter().any(|path| path.is_active() && !path.config.backup);
        let limit_of = |path: &mut Path| {
            let is_passed_over = path.config.backup && has_regular && withheld != Limit::Application;
            path.account_limit(now, if is_passed_over { Limit::Scheduler } else { withheld })
        };
        let limit = self.paths.iter_mut().map(limit_of).min();
        self.limits.connection.set(now, limit.unwrap_or_default());
    }

    /// Why a path with room gets no more data.
    fn withheld(&self) -> Limit {
        let (has_unsent, has_lost) = (self.queue.data.unsent() > 0, self.queue.lost() > 0);
        if !has_unsent && !has_lost {
            let waits_elsewhere = self.paths.iter().any(|path| !path.waiting.is_empty());
            return if waits_elsewhere { Limit::Scheduler } else { Limit::Application };
        }
        let is_blocked = !has_lost && self.queue.data.snd_nxt() >= self.max_data;
        if is_blocked { Limit::ReceiveWindow } else { Limit::Scheduler }
    }

    /// Why the connection sends nothing more now.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.limits.connection.limit()
    }

    /// How long each limit has held since the connection was opened, until `now`.
    #[must_use]
    pub fn limit_times(&self, now: Instant) -> LimitTimes {
        self.limits.connection.times(now)
    }

    /// How long each limit of each path has held since the connection was opened, until `now`.
    pub fn path_limit_times(&self, now: Instant) -> impl Iterator<Item = LimitTimes> {
        self.paths.iter().map(move |path| path.limits.times(now))
    }

    /// How long flow control has limited the sender, until `now`, whatever the paths' windows.
    #[must_use]
    pub fn limited_times(&self, now: Instant) -> LimitedTimes {
        self.limits.flow_control.times(now).into()
    }
}
