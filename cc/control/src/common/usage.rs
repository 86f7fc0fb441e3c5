//! Whether a path is in use, so that its siblings take it into account.

use crate::{Cause, PathEvent};
use units::Instant;

/// The use of one path, by its events.
///
/// RFC 6356 couples the subflows over which a connection sends. In use is a path with packets in flight, or with a packet sent
/// less than a retransmission timeout ago. One that has never sent, a backup that stands by, and one that has timed out and
/// had no acknowledgement since are not: windows and RTTs of the past would slow the others down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Whether packets are in flight, as far as events say.
    is_sending: bool,
    /// Time from which on it is idle, if nothing is in flight.
    idle_from: Instant,
    has_timed_out: bool,
}

impl Usage {
    /// A path that has sent nothing.
    pub(crate) const NEVER: Self = Self { is_sending: false, idle_from: Instant::ZERO, has_timed_out: false };

    /// Takes an event of the path into account.
    pub(crate) fn on_event(&mut self, event: &PathEvent) {
        match event {
            PathEvent::PathUp(_) | PathEvent::PathDown => *self = Self::NEVER,
            PathEvent::IdleRestart { .. } => self.is_sending = true,
            PathEvent::Ack(sample) => {
                self.is_sending = sample.in_flight > 0;
                self.idle_from = sample.idle_from;
                self.has_timed_out &= sample.acked == 0;
            }
            PathEvent::Congestion { cause: Cause::Timeout, .. } => self.has_timed_out = true,
            _ => {}
        }
    }

    /// Whether it is in use at `now`.
    pub(crate) fn is_in_use(&self, now: Instant) -> bool {
        !self.has_timed_out && (self.is_sending || now < self.idle_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckSample;
    use units::Span;

    #[test]
    fn a_path_is_in_use_while_packets_are_in_flight_and_for_a_timeout_after_the_latest() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let ack = |acked, in_flight, idle_from| {
            PathEvent::Ack(AckSample { acked, in_flight, idle_from: at(idle_from), ..AckSample::default() })
        };
        let restart = PathEvent::IdleRestart { idle: Span::ZERO, rto: Span::ZERO, app_limited: true };
        let timeout = PathEvent::Congestion { cause: Cause::Timeout, reduce_cwnd: true, by_timer: true, in_flight: 0 };
        let mut usage = Usage::NEVER;
        let mut after = |event: &PathEvent, ms: u64| {
            usage.on_event(event);
            usage.is_in_use(at(ms))
        };
        assert!(!after(&PathEvent::MssChanged { mss: 1000 }, 0), "it has never sent");
        assert!(after(&restart, 10_000));
        assert!(after(&ack(1, 3, 300), 10_000));
        assert!(after(&ack(3, 0, 300), 299) && !after(&ack(0, 0, 300), 300));
        assert!(after(&restart, 400) && !after(&timeout, 700));
        assert!(!after(&ack(0, 1, 900), 710), "nothing was delivered");
        assert!(after(&ack(1, 0, 900), 720));
        assert!(!after(&PathEvent::PathDown, 720));
    }
}
