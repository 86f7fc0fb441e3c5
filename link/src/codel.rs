//! CoDel's control law: signal when the least delay of an interval was too long, and then ever more often.
//!
//! RFC 8289, section 5. The sojourn time is measured when a packet leaves the queue. When it has been above `target`
//! for a whole `interval`, the packet at the head is dropped, and the next one `interval / sqrt(count)` later, until
//! the sojourn time falls below `target`, or no more than one packet's worth of bytes is left. A dropping state that
//! begins soon after the last one (16 intervals) goes on with the drop rate that was needed then.
//!
//! A packet that can be marked is marked instead of dropped, and leaves as the head, so that at most one is marked at
//! a time. Besides, whatever waited for longer than `ce_threshold` is marked. The RFC's pseudo-code only drops; this is
//! what Linux does. Where there are several lanes, bytes left in any of them count as left in the queue, again as in
//! Linux.

use super::Packet;
use super::head::{Around, Head};
use super::lane::{Lane, Waiting};
use super::outlet::Outlet;
use scenario::model;
use units::{Instant, Span};

/// CoDel at the head of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoDel {
    law: Law,
    marks: bool,
    ce_threshold: Option<Span>,
}

impl CoDel {
    pub(super) fn new(config: model::CoDel, marks: bool) -> Self {
        let model::CoDel { target, interval, ce_threshold } = config;
        Self { law: Law::new(target, interval), marks, ce_threshold }
    }

    /// Takes the head off, and tells whether it is late.
    fn pull<P>(&mut self, now: Instant, lane: &mut Lane<P>, around: Around) -> Option<(Waiting<P>, bool)> {
        let Some(head) = lane.pop() else {
            self.law.calm_down();
            return None;
        };
        let nearly_empty = around.others + lane.bytes() <= around.largest;
        let late = self.law.is_late(now, now.since(head.arrived), nearly_empty);
        Some((head, late))
    }

    fn is_above_threshold(&self, sojourn: Span) -> bool {
        self.ce_threshold.is_some_and(|threshold| sojourn > threshold)
    }

    fn reschedule(&mut self, strike: Strike) {
        if strike == Strike::Again {
            self.law.go_on();
        }
    }
}

impl Head for CoDel {
    fn leave<P: Packet>(
        &mut self,
        now: Instant,
        lane: &mut Lane<P>,
        around: Around,
        outlet: &mut Outlet<P>,
    ) -> Option<Waiting<P>> {
        let (mut head, mut late) = self.pull(now, lane, around)?;
        let mut marked = false;
        loop {
            let strike = self.law.strike(now, late);
            if strike == Strike::No {
                break;
            }
            if self.marks && head.packet.ecn_capable() {
                self.reschedule(strike);
                marked = true;
                break;
            }
            outlet.drop_packet(head.packet);
            (head, late) = self.pull(now, lane, around)?;
            if late {
                self.reschedule(strike);
            }
        }
        if marked || (self.is_above_threshold(now.since(head.arrived)) && head.packet.ecn_capable()) {
            outlet.mark(&mut head.packet);
        }
        Some(head)
    }

    fn on_overflow(&mut self, _now: Instant, packets: u32) {
        self.law.overflowed(packets);
    }
}

/// The control law's parameters and state; names in brackets are the RFC's.
///
/// For each packet taken from the head: [`is_late`](Self::is_late), then [`strike`](Self::strike) with its answer. On
/// [`Strike::No`] the packet leaves. Otherwise it is marked and leaves, after [`go_on`](Self::go_on) if it was
/// [`Strike::Again`]; or it is dropped, `go_on` follows `Again` if the next packet is late too, and that one is
/// judged by `strike` in its turn.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    target: Span,
    interval: Span,
    /// When the sojourn time will have been above target for an interval \[`first_above_time_`\].
    patience: Option<Instant>,
    dropping: bool,
    /// When the next packet is to be dropped \[`drop_next_`\].
    next_drop: Instant,
    /// Drops in this dropping state \[`count_`\], and at the beginning of it \[`lastcount_`\].
    count: u32,
    first_count: u32,
}

/// Is the packet at the head to be dropped?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// No.
    No,
    /// Yes, and the dropping state begins.
    First,
    /// Yes, as scheduled; if the next packet is late too, [`Law::go_on`].
    Again,
}

impl Law {
    /// Calm, with RFC 8289's `TARGET` and `INTERVAL` (section 4: 5 ms, 100 ms).
    #[must_use]
    pub fn new(target: Span, interval: Span) -> Self {
        let never = Instant::ZERO;
        Self { target, interval, patience: None, dropping: false, next_drop: never, count: 0, first_count: 0 }
    }

    /// Another target from now on.
    pub fn aim(&mut self, target: Span, interval: Span) {
        (self.target, self.interval) = (target, interval);
    }

    /// The packet taken from the head at `now` has waited so long; is it late, and the queue not nearly empty, for a
    /// whole interval \[`dodequeue`\]?
    pub fn is_late(&mut self, now: Instant, sojourn: Span, nearly_empty: bool) -> bool {
        if sojourn < self.target || nearly_empty {
            self.patience = None;
            return false;
        }
        now >= *self.patience.get_or_insert(now + self.interval)
    }

    /// What to do with this packet \[`deque`\].
    pub fn strike(&mut self, now: Instant, late: bool) -> Strike {
        match (late, self.dropping) {
            (false, _) => self.dropping = false,
            (true, false) => {
                self.enter(now);
                return Strike::First;
            }
            (true, true) if now >= self.next_drop => return Strike::Again,
            (true, true) => {}
        }
        Strike::No
    }

    /// Schedules the next drop after one that was due.
    pub fn go_on(&mut self) {
        self.count += 1;
        self.next_drop += self.gap();
    }

    /// No packet is left.
    pub fn calm_down(&mut self) {
        self.patience = None;
        self.dropping = false;
    }

    /// So many packets had to be dropped because the queue was full: a stronger signal next time (Linux; the RFC says
    /// nothing).
    pub fn overflowed(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    fn enter(&mut self, now: Instant) {
        let needed = self.count - self.first_count;
        let soon = now.since(self.next_drop) < self.interval * 16;
        self.count = if needed > 1 && soon { needed } else { 1 };
        self.first_count = self.count;
        self.dropping = true;
        self.next_drop = now + self.gap();
    }

    /// \[`control_law`\]; a square root and a quotient are the same on every machine (IEEE 754).
    fn gap(&self) -> Span {
        Span((self.interval.0 as f64 / f64::from(self.count).sqrt()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn law() -> Law {
        Law::new(Span::from_millis(5), Span::from_millis(100))
    }

    /// Feeds one packet a millisecond with this sojourn time from `from` to `to` ms; when drops were due, ms.
    fn drops(law: &mut Law, from: u64, to: u64, sojourn: Span) -> Vec<u64> {
        let due = |ms: &u64| {
            let late = law.is_late(Instant(ms * MS), sojourn, false);
            let strike = law.strike(Instant(ms * MS), late);
            if strike == Strike::Again {
                law.go_on();
            }
            strike != Strike::No
        };
        (from..to).filter(due).collect()
    }

    #[test]
    fn a_delay_just_below_target_is_never_punished_and_one_at_target_after_an_interval() {
        assert_eq!(drops(&mut law(), 0, 10_000, Span(5 * MS - 1)), [0; 0]);
        assert_eq!(drops(&mut law(), 0, 102, Span(5 * MS)), [100]);
    }

    #[test]
    fn a_nearly_empty_queue_is_not_late() {
        let mut law = law();
        assert!((0..1000).all(|ms| !law.is_late(Instant(ms * MS), Span::from_millis(50), true)));
    }

    #[test]
    fn gaps_between_drops_shrink_with_the_square_root_of_their_number() {
        let mut at = 100.0;
        let expected = (1..8).map(|count| {
            at += 100.0 / f64::from(count).sqrt();
            at.ceil() as u64
        });
        let expected: Vec<u64> = std::iter::once(100).chain(expected).collect();
        assert_eq!(drops(&mut law(), 0, 530, Span::from_millis(20)), expected);
    }

    #[test]
    fn a_dropping_state_soon_after_another_begins_with_the_drop_rate_of_the_last() {
        let mut law = law();
        assert_eq!(drops(&mut law, 0, 530, Span::from_millis(20)).len(), 8);
        assert_eq!(drops(&mut law, 530, 600, Span::ZERO), [0; 0]);
        // Eight drops, one of them the first: count begins at 7, and the second drop follows 100 / sqrt(7) ms later.
        assert_eq!(drops(&mut law, 600, 740, Span::from_millis(20)), [700, 738]);
        assert_eq!(drops(&mut law, 740, 5_000, Span::ZERO), [0; 0]);
        assert_eq!(drops(&mut law, 5_000, 5_201, Span::from_millis(20)), [5_100, 5_200], "16 intervals forget");
    }
}
