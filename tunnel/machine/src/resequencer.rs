//! MPT's resequencer: a window of packets and a timer (draft-lencse-tsvwg-mpt section 6, and the published behaviour
//! of its implementation).
//!
//! - The expected packet goes up with everything contiguous behind it.
//! - A later one within the window is held.
//! - One beyond the window flushes everything held, in order, and the window jumps to it.
//! - An earlier one came too late: it is dropped (or, by choice, goes up out of order).
//! - A packet held longer than the timeout goes up with everything before it; a thread looks once a millisecond.

use std::collections::VecDeque;
use units::{Instant, Span};

/// The far end's thread looks for overdue packets this often.
const POLL: Span = Span::from_millis(1);

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets handed up.
    pub delivered: u64,
    /// Packets that had to wait.
    pub held: u64,
    /// Packets that came after their turn, or twice.
    pub late: u64,
    /// Times the timeout released packets.
    pub timeouts: u64,
    /// Times a packet beyond the window flushed everything.
    pub overflows: u64,
    /// The most packets held at once.
    pub most_held: u64,
}

/// A packet that goes up, and how long it was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release<P> {
    /// The packet.
    pub packet: P,
    /// How long it waited for earlier ones.
    pub held: Span,
}

#[derive(Clone, Debug)]
struct Held<P> {
    since: Instant,
    packet: P,
}

/// Puts packets back into the order of their sequence numbers.
#[derive(Clone, Debug)]
pub struct Resequencer<P> {
    window: u64,
    timeout: Span,
    deliver_late: bool,
    expected: u64,
    /// Slot `i` belongs to packet `expected + i`.
    slots: VecDeque<Option<Held<P>>>,
    held: u64,
    /// The earliest look at which something may be overdue.
    deadline: Instant,
    counters: Counters,
}

impl<P> Resequencer<P> {
    /// Holds packets for at most `timeout` and at most `window` packets ahead; late ones are dropped or delivered.
    #[must_use]
    pub fn new(window: u32, timeout: Span, deliver_late: bool) -> Self {
        Self {
            window: u64::from(window),
            timeout,
            deliver_late,
            expected: 0,
            slots: VecDeque::new(),
            held: 0,
            deadline: Instant::NEVER,
            counters: Counters::default(),
        }
    }

    /// Packet `seq` arrived. What may go up is handed to `up`, in order.
    pub fn handle(&mut self, now: Instant, seq: u64, packet: P, mut up: impl FnMut(Release<P>)) {
        if seq < self.expected {
            self.counters.late += 1;
            if self.deliver_late {
                self.counters.delivered += 1;
                up(Release { packet, held: Span::ZERO });
            }
            return;
        }
        let ahead = seq - self.expected;
        if ahead == 0 {
            self.pass(packet, &mut up);
            self.release_contiguous(now, &mut up);
        } else if ahead < self.window {
            self.hold(now, ahead as usize, packet);
        } else {
            self.counters.overflows += 1;
            self.release(now, self.slots.len(), &mut up);
            self.expected = seq;
            self.pass(packet, &mut up);
        }
        if self.held == 0 {
            self.deadline = Instant::NEVER;
        }
    }

    /// The sender counts anew: everything held goes up, and `expected` is the next number.
    pub fn restart(&mut self, now: Instant, expected: u64, mut up: impl FnMut(Release<P>)) {
        self.release(now, self.slots.len(), &mut up);
        (self.expected, self.deadline) = (expected, Instant::NEVER);
    }

    /// When [`Resequencer::on_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// A deadline passed: what is overdue goes up, with everything before it. Early calls are harmless.
    pub fn on_timeout(&mut self, now: Instant, mut up: impl FnMut(Release<P>)) {
        if now < self.deadline {
            return;
        }
        let is_overdue =
            |slot: &Option<Held<P>>| slot.as_ref().is_some_and(|held| now.since(held.since) >= self.timeout);
        if let Some(last) = self.slots.iter().rposition(is_overdue) {
            self.counters.timeouts += 1;
            self.release(now, last + 1, &mut up);
            self.release_contiguous(now, &mut up);
        }
        let oldest = self.slots.iter().flatten().map(|held| held.since).min();
        self.deadline = oldest.map_or(Instant::NEVER, |oldest| self.look_at(oldest + self.timeout));
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets held now.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The thread's first look at or after `due`.
    fn look_at(&self, due: Instant) -> Instant {
        Instant(due.0.div_ceil(POLL.0) * POLL.0)
    }

    fn hold(&mut self, now: Instant, ahead: usize, packet: P) {
        if self.slots.len() <= ahead {
            self.slots.resize_with(ahead + 1, || None);
        }
        if self.slots[ahead].is_some() {
            self.counters.late += 1;
            return;
        }
        self.slots[ahead] = Some(Held { since: now, packet });
        self.held += 1;
        self.counters.held += 1;
        self.counters.most_held = self.counters.most_held.max(self.held);
        if self.deadline == Instant::NEVER {
            self.deadline = self.look_at(now + self.timeout);
        }
    }

    /// The expected packet goes up without waiting.
    fn pass(&mut self, packet: P, up: &mut impl FnMut(Release<P>)) {
        self.expected += 1;
        self.slots.pop_front();
        self.counters.delivered += 1;
        up(Release { packet, held: Span::ZERO });
    }

    fn release_contiguous(&mut self, now: Instant, up: &mut impl FnMut(Release<P>)) {
        while let Some(Some(_)) = self.slots.front() {
            self.release(now, 1, up);
        }
    }

    /// Everything in the first `count` slots goes up; the holes among them are given up.
    fn release(&mut self, now: Instant, count: usize, up: &mut impl FnMut(Release<P>)) {
        for held in self.slots.drain(..count) {
            self.expected += 1;
            if let Some(held) = held {
                self.held -= 1;
                self.counters.delivered += 1;
                up(Release { packet: held.packet, held: now.since(held.since) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant(n * 1_000_000)
    }

    fn feed(resequencer: &mut Resequencer<u64>, at: u64, packets: &[u64]) -> Vec<u64> {
        let mut up = Vec::new();
        packets.iter().for_each(|seq| resequencer.handle(ms(at), *seq, *seq, |release| up.push(release.packet)));
        up
    }

    #[test]
    fn restores_the_order_within_the_window() {
        let mut resequencer = Resequencer::new(10, Span::from_millis(300), false);
        assert_eq!(feed(&mut resequencer, 0, &[0, 2, 3, 1, 4]), [0, 1, 2, 3, 4]);
        assert_eq!(resequencer.deadline(), Instant::NEVER);
    }

    #[test]
    fn a_packet_beyond_the_window_flushes_and_the_late_ones_are_dropped() {
        let mut resequencer = Resequencer::new(4, Span::from_millis(300), false);
        assert_eq!(feed(&mut resequencer, 0, &[1, 3, 4]), [1, 3, 4]);
        assert_eq!(feed(&mut resequencer, 1, &[0, 2, 5]), [5]);
        assert_eq!((resequencer.counters().late, resequencer.counters().overflows), (2, 1));
    }

    #[test]
    fn a_sender_that_counts_anew_is_followed() {
        let mut resequencer = Resequencer::new(100, Span::from_millis(300), false);
        feed(&mut resequencer, 0, &[0, 1, 5]);
        let mut up = Vec::new();
        resequencer.restart(ms(1), 0, |release| up.push(release.packet));
        assert_eq!((up, resequencer.held(), resequencer.deadline()), (vec![5], 0, Instant::NEVER));
        assert_eq!(feed(&mut resequencer, 2, &[0, 2, 1]), [0, 1, 2]);
    }

    #[test]
    fn the_timeout_gives_up_the_hole_and_what_came_later_waits_for_its_own() {
        let mut resequencer = Resequencer::new(100, Span::from_millis(300), false);
        feed(&mut resequencer, 0, &[0, 2]);
        feed(&mut resequencer, 5, &[4]);
        let mut up = Vec::new();
        assert_eq!(resequencer.deadline(), ms(300));
        resequencer.on_timeout(ms(300), |release| up.push((release.packet, release.held.as_millis())));
        assert_eq!(up, [(2, 300)]);
        assert_eq!(resequencer.deadline(), ms(305));
        assert_eq!(feed(&mut resequencer, 301, &[3]), [3, 4]);
    }
}
