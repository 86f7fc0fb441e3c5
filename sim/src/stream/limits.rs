//! How long each limit has held back a flow's sender, and those of its subflows.

use crate::stream::transport::Sender;
use transport::path::{Limit, LimitTimes, LimitedTimes};
use units::{Instant, Span};

/// The limits of a flow's earlier connections, and those of all its connections once it has ended.
#[derive(Debug, Default)]
pub(crate) struct FlowLimits {
    buffers: LimitedTimes,
    earlier: Option<Box<Totals>>,
    end: Option<Box<(Instant, Totals)>>,
}

/// Times of a flow, and of its subflows or paths.
#[derive(Clone, Debug, Default)]
struct Totals {
    flow: LimitTimes,
    subflows: Vec<LimitTimes>,
}

impl Totals {
    /// These and those of another connection, until `now`.
    fn with(mut self, sender: &impl Sender, now: Instant) -> Self {
        self.flow = self.flow + sender.limit_times(now);
        for (index, times) in sender.subflow_limit_times(now).enumerate() {
            match self.subflows.get_mut(index) {
                Some(total) => *total = *total + times,
                None => self.subflows.push(times),
            }
        }
        self
    }
}

impl FlowLimits {
    /// Called when the connection of `sender` is replaced by another one.
    pub(crate) fn close(&mut self, sender: &impl Sender, now: Instant) {
        self.buffers = self.buffer_times(sender, now);
        self.earlier = Some(Box::new(self.totals(sender, now)));
    }

    /// Called when the flow is complete or stopped, and at the end of the run. The first call counts.
    #[cold]
    pub(crate) fn finish(&mut self, sender: &impl Sender, now: Instant) {
        if self.end.is_none() {
            self.end = Some(Box::new((now, self.totals(sender, now))));
        }
    }

    fn totals(&self, sender: &impl Sender, now: Instant) -> Totals {
        self.earlier.as_deref().cloned().unwrap_or_default().with(sender, now)
    }

    /// How long receive window and send buffer have limited the flow, whose current sender this is, until `now`.
    pub(crate) fn buffer_times(&self, sender: &impl Sender, now: Instant) -> LimitedTimes {
        self.buffers + sender.limited_times(now)
    }

    /// The record of a flow that has ended.
    pub(crate) fn record(&self, start: Instant) -> Option<record::LimitTimes> {
        self.end.as_deref().map(|(end, totals)| record(totals.flow, end.since(start)))
    }

    /// The record of a subflow of a flow that has ended.
    pub(crate) fn subflow_record(&self, subflow: usize, start: Instant) -> Option<record::LimitTimes> {
        let (end, totals) = self.end.as_deref()?;
        Some(record(*totals.subflows.get(subflow)?, end.since(start)))
    }
}

/// The times of a sender that was on for `duration`. While it had no connection, its application had nothing to send.
fn record(mut times: LimitTimes, duration: Span) -> record::LimitTimes {
    debug_assert!(times.total() <= duration, "{times:?} of {duration:?}");
    times.add(Limit::Application, duration.saturating_sub(times.total()));
    let of = |limit| times.of(limit).as_secs_f64();
    record::LimitTimes {
        handshake: of(Limit::Handshake),
        application: of(Limit::Application),
        receive_window: of(Limit::ReceiveWindow),
        send_buffer: of(Limit::SendBuffer),
        recovery: of(Limit::Recovery),
        pacing: of(Limit::Pacing),
        window: of(Limit::Window),
        scheduler: of(Limit::Scheduler),
    }
}
