//! Why the connection, and each of its subflows, sends nothing more now ([`Limit`]), and for how long.

use super::{Sender, Subflow, SubflowState};
use crate::path::{Limit, LimitTimer, LimitTimes, LimitedTimes};
use schedule::{Fill, PathView};
use units::Instant;

/// The limits of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// The connection's limit, which follows from those of its subflows.
    connection: LimitTimer,
    /// Receive window and send buffer, whatever the subflows' windows.
    pub buffers: LimitTimer,
}

impl Sender {
    /// Called when nothing more can be sent: records the limit of each subflow, and of the connection.
    pub(super) fn account_limits(&mut self, now: Instant) {
        if self.connect_time.is_none() {
            return;
        }
        let withheld = self.withheld();
        let has_regular = self.subflows.iter().any(|subflow| subflow.is_active() && !subflow.config.backup);
        let fill = self.fill;
        let limit_of = |(subflow, view): (&mut Subflow, &PathView)| {
            let withheld = match withheld {
                Limit::Application => Limit::Application,
                _ if subflow.config.backup && has_regular => Limit::Scheduler,
                Limit::Scheduler if fill == Fill::SendBuffer && !view.has_room => Limit::SendBuffer,
                withheld => withheld,
            };
            let (is_up, is_suspended) = (subflow.state == SubflowState::Up, subflow.failed);
            subflow.sender.account_subflow_limit(now, is_up, withheld, is_suspended)
        };
        let limit = self.subflows.iter_mut().zip(&self.views).map(limit_of).min();
        self.limits.connection.set(now, limit.unwrap_or_default());
    }

    /// Why a subflow with room gets no more data.
    fn withheld(&self) -> Limit {
        if self.queue.unsent() == 0 {
            let waits_elsewhere = self.subflows.iter().any(|subflow| subflow.sender.unsent() > 0);
            return if waits_elsewhere { Limit::Scheduler } else { Limit::Application };
        }
        match self.queue.snd_nxt() {
            next if next >= self.snd_wnd_end => Limit::ReceiveWindow,
            next if next >= self.send_buffer.end() => Limit::SendBuffer,
            _ => Limit::Scheduler,
        }
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

    /// How long the receive window and the send buffer have limited the connection, until `now`, whatever the windows of
    /// its subflows.
    #[must_use]
    pub fn limited_times(&self, now: Instant) -> LimitedTimes {
        self.limits.buffers.times(now).into()
    }
}
