//! CoDel: drop or mark when the minimum delay of an interval was above target, and then increasingly often.
//!
//! RFC 8289, section 5. The sojourn time is measured when a packet leaves the queue. When it has been above `target`
//! for a whole `interval`, the packet at the head is dropped, and the next one `interval / sqrt(count)` later. Dropping
//! ends when the sojourn time falls below `target`, or when at most one packet's worth of bytes is left. A dropping
//! state that begins within 16 intervals of the previous one continues with its drop rate.
//!
//! A packet that can be marked is marked instead of dropped, and leaves as the head, so that at most one is marked at a
//! time. In addition, each packet that waited for longer than `ce_threshold` is marked. The RFC's pseudo-code only
//! drops; marking is as in Linux. With several flow queues, bytes left in any of them count as left in the queue, again
//! as in Linux.

use super::aqm::{HeadDropAqm, SharedBacklog};
use super::egress::Egress;
use super::packet::Packet;
use super::packet_queue::{PacketQueue, QueuedPacket};
use crate::config::CoDelConfig;
use units::{Instant, Span};

/// CoDel at the head of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoDel {
    state: CoDelState,
    ecn: bool,
    ce_threshold: Option<Span>,
}

impl CoDel {
    pub(super) fn new(config: CoDelConfig, ecn: bool) -> Self {
        let CoDelConfig { target, interval, ce_threshold } = config;
        Self { state: CoDelState::new(target, interval), ecn, ce_threshold }
    }

    /// Removes the head and returns whether it may be dropped \[`dodequeue`\].
    fn pop<P>(
        &mut self,
        now: Instant,
        queue: &mut PacketQueue<P>,
        shared: SharedBacklog,
    ) -> Option<(QueuedPacket<P>, bool)> {
        let Some(head) = queue.pop() else {
            self.state.on_empty();
            return None;
        };
        let nearly_empty = shared.other_bytes + queue.bytes() <= shared.max_packet;
        let ok_to_drop = self.state.ok_to_drop(now, now.since(head.arrived), nearly_empty);
        Some((head, ok_to_drop))
    }

    fn is_above_threshold(&self, sojourn: Span) -> bool {
        self.ce_threshold.is_some_and(|threshold| sojourn > threshold)
    }

    fn reschedule(&mut self, action: CoDelAction) {
        if action == CoDelAction::Drop {
            self.state.schedule_next_drop();
        }
    }
}

impl HeadDropAqm for CoDel {
    fn dequeue<P: Packet>(
        &mut self,
        now: Instant,
        queue: &mut PacketQueue<P>,
        shared: SharedBacklog,
        egress: &mut Egress<P>,
    ) -> Option<QueuedPacket<P>> {
        let (mut head, mut ok_to_drop) = self.pop(now, queue, shared)?;
        let mut marked = false;
        loop {
            let action = self.state.next_action(now, ok_to_drop);
            if action == CoDelAction::Pass {
                break;
            }
            if self.ecn && head.packet.ecn_capable() {
                self.reschedule(action);
                marked = true;
                break;
            }
            egress.discard_dropped(head.packet);
            (head, ok_to_drop) = self.pop(now, queue, shared)?;
            if ok_to_drop {
                self.reschedule(action);
            }
        }
        if marked || (self.is_above_threshold(now.since(head.arrived)) && head.packet.ecn_capable()) {
            egress.mark(&mut head.packet);
        }
        Some(head)
    }

    fn on_overflow(&mut self, _now: Instant, packets: u32) {
        self.state.on_overflow(packets);
    }
}

/// CoDel's parameters and state, also for queues outside this crate. Names in brackets are the RFC's.
///
/// For each packet taken from the head, the caller calls [`ok_to_drop`](Self::ok_to_drop), then
/// [`next_action`](Self::next_action) with its result. On [`CoDelAction::Pass`] the packet leaves. Otherwise the caller
/// marks or drops it. A marked packet leaves; if the action was [`CoDelAction::Drop`], the caller first calls
/// [`schedule_next_drop`](Self::schedule_next_drop). After a dropped packet, the caller calls `ok_to_drop` for the next
/// packet; if the action was `Drop` and the result is true, it calls `schedule_next_drop`, and then in any case
/// `next_action`.
#[derive(Clone, Copy, Debug)]
pub struct CoDelState {
    target: Span,
    interval: Span,
    /// Time at which the sojourn time will have been above target for an interval \[`first_above_time_`\].
    first_above_time: Option<Instant>,
    dropping: bool,
    /// Time at which the next packet is dropped \[`drop_next_`\].
    drop_next: Instant,
    /// Drops in the current dropping state \[`count_`\], and at its beginning \[`lastcount_`\].
    count: u32,
    last_count: u32,
}

/// Action for the packet at the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoDelAction {
    /// The packet leaves.
    Pass,
    /// The packet is dropped or marked, and the dropping state begins.
    EnterDropping,
    /// The packet is dropped or marked, as scheduled; [`CoDelState::schedule_next_drop`] follows.
    Drop,
}

impl CoDelState {
    /// The state outside of dropping, with RFC 8289's `TARGET` and `INTERVAL` (section 4: 5 ms, 100 ms).
    #[must_use]
    pub fn new(target: Span, interval: Span) -> Self {
        let never = Instant::ZERO;
        Self { target, interval, first_above_time: None, dropping: false, drop_next: never, count: 0, last_count: 0 }
    }

    /// Changes target and interval.
    pub fn set_params(&mut self, target: Span, interval: Span) {
        (self.target, self.interval) = (target, interval);
    }

    /// Whether the packet taken from the head at `now` may be dropped: sojourn times have been above target, and the
    /// queue not nearly empty, for a whole interval \[`dodequeue`\].
    pub fn ok_to_drop(&mut self, now: Instant, sojourn: Span, nearly_empty: bool) -> bool {
        if sojourn < self.target || nearly_empty {
            self.first_above_time = None;
            return false;
        }
        now >= *self.first_above_time.get_or_insert(now + self.interval)
    }

    /// The action for the packet taken from the head \[`deque`\].
    pub fn next_action(&mut self, now: Instant, ok_to_drop: bool) -> CoDelAction {
        match (ok_to_drop, self.dropping) {
            (false, _) => self.dropping = false,
            (true, false) => {
                self.enter_dropping(now);
                return CoDelAction::EnterDropping;
            }
            (true, true) if now >= self.drop_next => return CoDelAction::Drop,
            (true, true) => {}
        }
        CoDelAction::Pass
    }

    /// Schedules the next drop after one that was due.
    pub fn schedule_next_drop(&mut self) {
        self.count += 1;
        self.drop_next += self.control_law();
    }

    /// Leaves the dropping state, because no packet is left.
    pub fn on_empty(&mut self) {
        self.first_above_time = None;
        self.dropping = false;
    }

    /// Counts packets dropped because the queue was full, so that the next signal is stronger (Linux; the RFC does not
    /// specify it).
    pub fn on_overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    fn enter_dropping(&mut self, now: Instant) {
        let delta = self.count - self.last_count;
        let recently_dropping = now.since(self.drop_next) < self.interval * 16;
        self.count = if delta > 1 && recently_dropping { delta } else { 1 };
        self.last_count = self.count;
        self.dropping = true;
        self.drop_next = now + self.control_law();
    }

    /// The control law \[`control_law`\]. A square root and a quotient are the same on every machine (IEEE 754).
    fn control_law(&self) -> Span {
        Span((self.interval.0 as f64 / f64::from(self.count).sqrt()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn codel() -> CoDelState {
        CoDelState::new(Span::from_millis(5), Span::from_millis(100))
    }

    /// Times of the drops, ms, with one packet per millisecond with this sojourn time from `from` to `to` ms.
    fn drops(codel: &mut CoDelState, from: u64, to: u64, sojourn: Span) -> Vec<u64> {
        let is_signal = |ms: &u64| {
            let ok_to_drop = codel.ok_to_drop(Instant(ms * MS), sojourn, false);
            let action = codel.next_action(Instant(ms * MS), ok_to_drop);
            if action == CoDelAction::Drop {
                codel.schedule_next_drop();
            }
            action != CoDelAction::Pass
        };
        (from..to).filter(is_signal).collect()
    }

    #[test]
    fn a_delay_just_below_target_never_costs_a_packet_and_one_at_target_does_after_an_interval() {
        assert_eq!(drops(&mut codel(), 0, 10_000, Span(5 * MS - 1)), [0; 0]);
        assert_eq!(drops(&mut codel(), 0, 102, Span(5 * MS)), [100]);
    }

    #[test]
    fn nothing_is_dropped_from_a_nearly_empty_queue() {
        let mut codel = codel();
        assert!((0..1000).all(|ms| !codel.ok_to_drop(Instant(ms * MS), Span::from_millis(50), true)));
    }

    #[test]
    fn gaps_between_drops_shrink_with_the_square_root_of_their_number() {
        let mut time = 100.0;
        let expected = (1..8).map(|count| {
            time += 100.0 / f64::from(count).sqrt();
            time.ceil() as u64
        });
        let expected: Vec<u64> = std::iter::once(100).chain(expected).collect();
        assert_eq!(drops(&mut codel(), 0, 530, Span::from_millis(20)), expected);
    }

    #[test]
    fn a_dropping_state_soon_after_another_begins_with_the_drop_rate_of_the_last() {
        let mut codel = codel();
        assert_eq!(drops(&mut codel, 0, 530, Span::from_millis(20)).len(), 8);
        assert_eq!(drops(&mut codel, 530, 600, Span::ZERO), [0; 0]);
        // Eight drops, one of them the first: count begins at 7, and the second drop follows 100 / sqrt(7) ms later.
        assert_eq!(drops(&mut codel, 600, 740, Span::from_millis(20)), [700, 738]);
        assert_eq!(drops(&mut codel, 740, 5_000, Span::ZERO), [0; 0]);
        assert_eq!(drops(&mut codel, 5_000, 5_201, Span::from_millis(20)), [5_100, 5_200], "16 intervals forget");
    }
}
