//! Whether a path is steady enough for a call that is not copied, and how long its packets take.

use super::TunnelPath;
use units::{Instant, Span};

/// Time for which a path counts as unsteady after a loss or a suspected failure.
const UNSTEADY_TIME: Span = Span::from_secs(2);
/// Mean deviation of the one-way delay from which on a path is unsteady.
const MAX_STEADY_JITTER: Span = Span::from_millis(10);
/// Minimum excess of the round trip over its minimum from which on a path is unsteady.
const MAX_STEADY_QUEUE: Span = Span::from_millis(30);
/// Time beyond the round trip and its deviation after which a packet that is not acknowledged makes its path suspect: the
/// peer acknowledges at intervals, and an acknowledgement that is sent on a dark path comes with the next one.
const SUSPICION_SLACK: Span = Span::from_millis(25);

/// Time after which losses and deliveries count half.
const LOSS_HALF_TIME: Span = Span::from_secs(1);

/// Packets that were lost and delivered lately. A policer shows itself by losses alone, without any delay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentLosses {
    since: Instant,
    lost: u64,
    delivered: u64,
}

impl RecentLosses {
    fn count(&mut self, now: Instant, lost: u64, delivered: u64) {
        if now.since(self.since) >= LOSS_HALF_TIME {
            *self = Self { since: now, lost: self.lost / 2, delivered: self.delivered / 2 };
        }
        (self.lost, self.delivered) = (self.lost + lost, self.delivered + delivered);
    }
}

impl TunnelPath {
    /// Packets were lost and delivered.
    pub(super) fn count_losses(&mut self, now: Instant, lost: u64, delivered: u64) {
        if lost > 0 {
            self.mark_unsteady(now);
        }
        self.recent_losses.count(now, lost, delivered);
    }

    /// What losses cost a packet on average if a lost one comes this much later.
    pub(crate) fn loss_cost(&self, of_a_loss: Span) -> Span {
        let RecentLosses { lost, delivered, .. } = self.recent_losses;
        of_a_loss * lost / (lost + delivered).max(1)
    }

    /// The path lost something, or is suspected to have failed.
    pub(crate) fn mark_unsteady(&mut self, now: Instant) {
        self.unsteady_until = now + UNSTEADY_TIME;
    }

    /// Whether packets on the path may soon be lost or late.
    pub(crate) fn is_unsteady(&self, now: Instant) -> bool {
        let min_rtt = self.sender.min_rtt();
        let queue_delay = self.sender.rtt().srtt().saturating_sub(min_rtt);
        now < self.unsteady_until
            || self.jitter() > MAX_STEADY_JITTER
            || queue_delay > MAX_STEADY_QUEUE.max(min_rtt / 2)
            || self.validation.has_missed_ping()
    }

    /// Time after which a packet that was not acknowledged makes the path suspect.
    pub(crate) fn suspicion_delay(&self) -> Span {
        self.srtt() + self.sender.rtt().mdev() * 2 + SUSPICION_SLACK
    }

    /// The latest round trip: of data if the path has lately carried some, else of a probe.
    pub(crate) fn latest_rtt(&self, now: Instant) -> Span {
        match self.validation.latest_rtt {
            Some(rtt) if !self.has_recent_delay(now) => rtt,
            _ => self.srtt(),
        }
    }

    /// Whether data has lately been acknowledged, so that its one-way delay is that of now.
    pub(crate) fn has_recent_delay(&self, now: Instant) -> bool {
        self.sent.one_way_delay.is_some() && self.validation.is_delivering(now)
    }

    /// What the path carries: the delivery rate that was measured, or else an initial window each round trip, which any
    /// sender may send (RFC 6928).
    pub(crate) fn capacity(&self) -> units::Rate {
        let rtt = self.srtt().max(Span::from_millis(1));
        let initial = units::Rate::of(u64::from(super::INITIAL_WINDOW * self.full_packet_bytes()), rtt);
        let capacity = self.bandwidth().max(initial);
        self.config.max_rate.map_or(capacity, |max| capacity.min(max))
    }
}
