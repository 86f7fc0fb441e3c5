//! Whether a path is in use, so that its siblings take it into account.

use crate::{Cause, PathEvent};
use units::Instant;

/// The use of one path, derived from its events.
///
/// RFC 6356 couples the subflows over which a connection sends. A path is in use if it has packets in flight and one
/// was acknowledged less than a retransmission timeout ago, or if a packet was sent less than that ago. Paths that have
/// never sent, idle backups, and paths that do not answer are not in use, because their old windows and RTTs would slow
/// the others down. QUIC and the tunnel have no retransmission timeout that would report a stalled path, so time
/// decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    in_use_until: Instant,
    /// Whether a timeout has occurred since the latest acknowledgement.
    has_timed_out: bool,
}

impl Usage {
    /// A path that has sent nothing.
    pub(crate) const NEVER: Self = Self { in_use_until: Instant::ZERO, has_timed_out: false };

    /// Takes an event of the path at `now` into account.
    pub(crate) fn on_event(&mut self, event: &PathEvent, now: Instant) {
        match event {
            PathEvent::PathUp(_) | PathEvent::PathDown => *self = Self::NEVER,
            PathEvent::IdleRestart { rto, .. } => self.in_use_until = now + *rto,
            PathEvent::Ack(sample) => {
                let is_idle = sample.in_flight == 0;
                let until = if is_idle { sample.last_sent } else { now } + sample.rto;
                let has_answered = sample.acked > 0;
                self.in_use_until = if has_answered { until } else { self.in_use_until.min(until) };
                self.has_timed_out &= !has_answered;
            }
            PathEvent::Congestion { cause: Cause::Timeout, .. } => self.has_timed_out = true,
            _ => {}
        }
    }

    /// Whether the path is in use at `now`.
    pub(crate) fn is_in_use(&self, now: Instant) -> bool {
        !self.has_timed_out && now < self.in_use_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckSample;
    use units::Span;

    #[test]
    fn a_path_is_in_use_for_a_timeout_after_the_latest_answer_or_if_idle_after_the_latest_packet() {
        let (at, rto) = (|ms| Instant::ZERO + Span::from_millis(ms), Span::from_millis(200));
        let ack = |acked, in_flight, last_sent| {
            PathEvent::Ack(AckSample { acked, in_flight, last_sent: at(last_sent), rto, ..AckSample::default() })
        };
        let restart = PathEvent::IdleRestart { idle: Span::ZERO, rto, app_limited: true };
        let timeout = PathEvent::Congestion { cause: Cause::Timeout, reduce_cwnd: true, by_timer: true, in_flight: 0 };
        let mut usage = Usage::NEVER;
        // Whether it is in use at the last of these times, in ms, after an event at the first.
        let mut after = |event: &PathEvent, [happened, ms]: [u64; 2]| {
            usage.on_event(event, at(happened));
            usage.is_in_use(at(ms))
        };
        assert!(!after(&PathEvent::MssChanged { mss: 1000 }, [0, 0]), "it has never sent");
        assert!(after(&restart, [10, 209]) && !after(&restart, [10, 210]));
        assert!(after(&ack(1, 3, 20), [100, 299]) && !after(&ack(1, 3, 20), [100, 300]), "packets are in flight");
        assert!(!after(&ack(0, 3, 20), [250, 300]), "nothing was delivered");
        assert!(after(&ack(3, 0, 120), [260, 319]) && !after(&ack(0, 0, 120), [260, 320]), "it is idle");
        assert!(after(&restart, [400, 500]) && !after(&timeout, [500, 500]));
        assert!(!after(&ack(0, 1, 500), [510, 510]), "nothing was delivered");
        assert!(after(&ack(1, 0, 500), [520, 699]));
        assert!(!after(&PathEvent::PathDown, [530, 530]));
    }
}
