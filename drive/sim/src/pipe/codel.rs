//! CoDel's control law: signal when the least delay of an interval was too long, and then ever more often.
//!
//! RFC 8289, section 5. The sojourn time is measured when a packet leaves the queue. When it has been above `target`
//! for a whole `interval`, the packet at the head is dropped, and the next one `interval / sqrt(count)` later, until
//! the sojourn time falls below `target`, or no more than one packet's worth of bytes is left. A dropping state that
//! begins soon after the last one (16 intervals) goes on with the drop rate that was needed then.
//!
//! A packet that can be marked is marked instead of dropped, and leaves as the head, so that at most one is marked at
//! a time. The RFC's pseudo-code only drops; this is what Linux does.

use units::{Instant, Span};

/// The control law's parameters and state; names in brackets are the RFC's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
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
pub(super) enum Strike {
    No,
    /// Yes, and the dropping state begins.
    First,
    /// Yes, as scheduled; if the next packet is late too, [`Law::go_on`].
    Again,
}

impl Law {
    pub(super) fn new(target: Span, interval: Span) -> Self {
        let never = Instant::ZERO;
        Self { target, interval, patience: None, dropping: false, next_drop: never, count: 0, first_count: 0 }
    }

    /// The packet taken from the head at `now` has waited so long; is it late, and the queue not nearly empty, for a
    /// whole interval \[`dodequeue`\]?
    pub(super) fn is_late(&mut self, now: Instant, sojourn: Span, nearly_empty: bool) -> bool {
        if sojourn < self.target || nearly_empty {
            self.patience = None;
            return false;
        }
        now >= *self.patience.get_or_insert(now + self.interval)
    }

    /// What to do with this packet \[`deque`\].
    pub(super) fn strike(&mut self, now: Instant, late: bool) -> Strike {
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
    pub(super) fn go_on(&mut self) {
        self.count += 1;
        self.next_drop += self.gap();
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
