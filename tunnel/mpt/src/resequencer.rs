//! MPT's resequencer: a window of packets and a timer (draft-lencse-tsvwg-mpt, section 6, and the published behaviour
//! of its implementation).
//!
//! - The expected packet is delivered with everything contiguous after it.
//! - A later one within the window is buffered.
//! - One beyond the window flushes the buffer, in order, and the window moves to it.
//! - An earlier one is late: it is dropped, or delivered out of order if so configured.
//! - A packet buffered longer than the timeout is delivered with everything before it; a thread checks once a
//!   millisecond.

use crate::config::ReorderConfig;
use std::collections::VecDeque;
use units::{Instant, Span};

/// Interval at which the thread checks for timeouts.
const CHECK_INTERVAL: Span = Span::from_millis(1);

/// Counters of a resequencer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResequencerCounters {
    /// Packets delivered.
    pub delivered: u64,
    /// Packets that were buffered.
    pub buffered: u64,
    /// Packets that were late, or duplicates.
    pub late: u64,
    /// Timeouts that released packets.
    pub timeouts: u64,
    /// Packets beyond the window, which flushed it.
    pub overflows: u64,
    /// Maximum number of buffered packets.
    pub max_buffered: u64,
}

/// A packet that is delivered, and its time in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The packet.
    pub packet: P,
    /// Time since its arrival.
    pub wait: Span,
}

#[derive(Clone, Debug)]
struct BufferedPacket<P> {
    arrival: Instant,
    packet: P,
}

/// Puts packets back into the order of their sequence numbers.
#[derive(Clone, Debug)]
pub struct Resequencer<P> {
    config: ReorderConfig,
    expected: u64,
    /// Slot `i` belongs to packet `expected + i`.
    slots: VecDeque<Option<BufferedPacket<P>>>,
    buffered: u64,
    /// The earliest check at which a packet may be overdue.
    deadline: Instant,
    counters: ResequencerCounters,
}

impl<P> Resequencer<P> {
    /// A resequencer that expects the number 0.
    #[must_use]
    pub fn new(config: ReorderConfig) -> Self {
        Self {
            config,
            expected: 0,
            slots: VecDeque::new(),
            buffered: 0,
            deadline: Instant::NEVER,
            counters: ResequencerCounters::default(),
        }
    }

    /// Packet `seq` arrived. The packets that are in order now are passed to `deliver`.
    pub fn handle(&mut self, now: Instant, seq: u64, packet: P, mut deliver: impl FnMut(Delivery<P>)) {
        if seq < self.expected {
            self.counters.late += 1;
            if self.config.deliver_late {
                self.counters.delivered += 1;
                deliver(Delivery { packet, wait: Span::ZERO });
            }
            return;
        }
        let distance = seq - self.expected;
        if distance == 0 {
            self.deliver_expected(packet, &mut deliver);
            self.release_contiguous(now, &mut deliver);
        } else if distance < u64::from(self.config.window) {
            self.insert(now, distance as usize, packet);
        } else {
            self.counters.overflows += 1;
            self.release(now, self.slots.len(), &mut deliver);
            self.expected = seq;
            self.deliver_expected(packet, &mut deliver);
        }
        if self.buffered == 0 {
            self.deadline = Instant::NEVER;
        }
    }

    /// The sender restarted: all buffered packets are delivered, and `expected` is the next number.
    pub fn restart(&mut self, now: Instant, expected: u64, mut deliver: impl FnMut(Delivery<P>)) {
        self.release(now, self.slots.len(), &mut deliver);
        (self.expected, self.deadline) = (expected, Instant::NEVER);
    }

    /// When [`Resequencer::on_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Delivers overdue packets, with everything before them. Early calls do nothing.
    pub fn on_timeout(&mut self, now: Instant, mut deliver: impl FnMut(Delivery<P>)) {
        if now < self.deadline {
            return;
        }
        let is_overdue = |slot: &Option<BufferedPacket<P>>| {
            slot.as_ref().is_some_and(|buffered| now.since(buffered.arrival) >= self.config.timeout)
        };
        if let Some(last) = self.slots.iter().rposition(is_overdue) {
            self.counters.timeouts += 1;
            self.release(now, last + 1, &mut deliver);
            self.release_contiguous(now, &mut deliver);
        }
        let oldest = self.slots.iter().flatten().map(|buffered| buffered.arrival).min();
        self.deadline = oldest.map_or(Instant::NEVER, |oldest| self.next_check(oldest + self.config.timeout));
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &ResequencerCounters {
        &self.counters
    }

    /// Packets in the buffer.
    #[must_use]
    pub fn buffered_packets(&self) -> u64 {
        self.buffered
    }

    /// The first check at or after `time`.
    fn next_check(&self, time: Instant) -> Instant {
        Instant(time.0.div_ceil(CHECK_INTERVAL.0) * CHECK_INTERVAL.0)
    }

    fn insert(&mut self, now: Instant, distance: usize, packet: P) {
        if self.slots.len() <= distance {
            self.slots.resize_with(distance + 1, || None);
        }
        if self.slots[distance].is_some() {
            self.counters.late += 1;
            return;
        }
        self.slots[distance] = Some(BufferedPacket { arrival: now, packet });
        self.buffered += 1;
        self.counters.buffered += 1;
        self.counters.max_buffered = self.counters.max_buffered.max(self.buffered);
        if self.deadline == Instant::NEVER {
            self.deadline = self.next_check(now + self.config.timeout);
        }
    }

    /// Delivers the expected packet.
    fn deliver_expected(&mut self, packet: P, deliver: &mut impl FnMut(Delivery<P>)) {
        self.expected += 1;
        self.slots.pop_front();
        self.counters.delivered += 1;
        deliver(Delivery { packet, wait: Span::ZERO });
    }

    fn release_contiguous(&mut self, now: Instant, deliver: &mut impl FnMut(Delivery<P>)) {
        while let Some(Some(_)) = self.slots.front() {
            self.release(now, 1, deliver);
        }
    }

    /// Delivers the packets in the first `count` slots; the missing packets among them are given up.
    fn release(&mut self, now: Instant, count: usize, deliver: &mut impl FnMut(Delivery<P>)) {
        for slot in self.slots.drain(..count) {
            self.expected += 1;
            if let Some(buffered) = slot {
                self.buffered -= 1;
                self.counters.delivered += 1;
                deliver(Delivery { packet: buffered.packet, wait: now.since(buffered.arrival) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant(millis * 1_000_000)
    }

    fn resequencer(window: u32) -> Resequencer<u64> {
        Resequencer::new(ReorderConfig { window, timeout: Span::from_millis(300), deliver_late: false })
    }

    fn handle_all(resequencer: &mut Resequencer<u64>, now_ms: u64, packets: &[u64]) -> Vec<u64> {
        let mut delivered = Vec::new();
        packets
            .iter()
            .for_each(|seq| resequencer.handle(ms(now_ms), *seq, *seq, |delivery| delivered.push(delivery.packet)));
        delivered
    }

    #[test]
    fn restores_the_order_within_the_window() {
        let mut resequencer = resequencer(10);
        assert_eq!(handle_all(&mut resequencer, 0, &[0, 2, 3, 1, 4]), [0, 1, 2, 3, 4]);
        assert_eq!(resequencer.deadline(), Instant::NEVER);
    }

    #[test]
    fn a_packet_beyond_the_window_flushes_it_and_late_ones_are_dropped() {
        let mut resequencer = resequencer(4);
        assert_eq!(handle_all(&mut resequencer, 0, &[1, 3, 4]), [1, 3, 4]);
        assert_eq!(handle_all(&mut resequencer, 1, &[0, 2, 5]), [5]);
        assert_eq!((resequencer.counters().late, resequencer.counters().overflows), (2, 1));
    }

    #[test]
    fn a_restarted_sender_is_followed() {
        let mut resequencer = resequencer(100);
        handle_all(&mut resequencer, 0, &[0, 1, 5]);
        let mut delivered = Vec::new();
        resequencer.restart(ms(1), 0, |delivery| delivered.push(delivery.packet));
        assert_eq!((delivered, resequencer.buffered_packets(), resequencer.deadline()), (vec![5], 0, Instant::NEVER));
        assert_eq!(handle_all(&mut resequencer, 2, &[0, 2, 1]), [0, 1, 2]);
    }

    #[test]
    fn the_timeout_gives_up_the_gap_and_a_later_packet_waits_for_its_own() {
        let mut resequencer = resequencer(100);
        handle_all(&mut resequencer, 0, &[0, 2]);
        handle_all(&mut resequencer, 5, &[4]);
        let mut delivered = Vec::new();
        assert_eq!(resequencer.deadline(), ms(300));
        resequencer.on_timeout(ms(300), |delivery| delivered.push((delivery.packet, delivery.wait.as_millis())));
        assert_eq!(delivered, [(2, 300)]);
        assert_eq!(resequencer.deadline(), ms(305));
        assert_eq!(handle_all(&mut resequencer, 301, &[3]), [3, 4]);
    }
}
