//! The packet numbers received on a path, and when to acknowledge them.
//!
//! As in QUIC (RFC 9000, section 13.2), but for links of any speed: at once when a packet number is missing, so that
//! the fragment can be retransmitted while later ones are still in flight; else soon after the first, or after many, and
//! less often where they would take too much of a slow path that data waits for.

use std::collections::VecDeque;
use units::{Instant, Span};
use wire::frame::{Ack, AckRanges, MAX_ACK_RANGES};

/// Maximum delay of an acknowledgement (RFC 9000: `max_ack_delay`) where no data waits for the path.
pub(crate) const MAX_ACK_DELAY: Span = Span::from_micros(500);
/// Packets that are acknowledged at once.
const MAX_UNACKNOWLEDGED: u32 = 128;

/// Maximum length of an acknowledged range; a longer one is cut to it.
const MAX_RANGE_LENGTH: u64 = 1 << 24;

/// Packets received on one path.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedPackets {
    /// Ranges of packet numbers, oldest first: (first, one past the last).
    ranges: VecDeque<(u64, u64)>,
    largest_received_at: Instant,
    ce_count: u32,
    unacknowledged: u32,
    /// Maximum delay of an acknowledgement now.
    pub(crate) max_ack_delay: Span,
    /// When an acknowledgement is due. Set again, the same acknowledgement is sent on another path as well.
    pub(crate) deadline: Instant,
}

impl Default for ReceivedPackets {
    fn default() -> Self {
        Self {
            ranges: VecDeque::new(),
            largest_received_at: Instant::ZERO,
            ce_count: 0,
            unacknowledged: 0,
            max_ack_delay: MAX_ACK_DELAY,
            deadline: Instant::NEVER,
        }
    }
}

impl ReceivedPackets {
    /// A datagram arrived; `ack_eliciting` if it is to be acknowledged (RFC 9000, section 13.2.1).
    pub(crate) fn add(&mut self, now: Instant, number: u64, ce: bool, ack_eliciting: bool) {
        let end = self.ranges.back().map_or(0, |range| range.1);
        self.ce_count = self.ce_count.wrapping_add(u32::from(ce));
        if number >= end {
            self.largest_received_at = now;
        }
        self.insert(number);
        if !ack_eliciting {
            return;
        }
        self.unacknowledged += 1;
        let is_immediate = number != end && !self.ranges.is_empty() || self.unacknowledged >= MAX_UNACKNOWLEDGED;
        self.deadline = if is_immediate { now } else { self.deadline.min(now + self.max_ack_delay) };
    }

    fn insert(&mut self, number: u64) {
        match self.ranges.back_mut() {
            Some(range) if range.1 == number => range.1 += 1,
            Some(range) if range.1 > number => self.insert_below(number),
            _ => self.ranges.push_back((number, number + 1)),
        }
        if self.ranges.len() > MAX_ACK_RANGES {
            self.ranges.pop_front();
        }
    }

    /// Inserts a packet number that is not the newest; duplicates are ignored.
    fn insert_below(&mut self, number: u64) {
        let next = self.ranges.partition_point(|range| range.0 <= number);
        let previous = next.checked_sub(1);
        if previous.is_some_and(|previous| number < self.ranges[previous].1) {
            return;
        }
        let joins_previous = previous.filter(|previous| self.ranges[*previous].1 == number);
        let joins_next = self.ranges.get(next).is_some_and(|range| range.0 == number + 1);
        match (joins_previous, joins_next) {
            (Some(previous), true) => {
                self.ranges[previous].1 = self.ranges[next].1;
                self.ranges.remove(next);
            }
            (Some(previous), false) => self.ranges[previous].1 += 1,
            (None, true) => self.ranges[next].0 = number,
            (None, false) => self.ranges.insert(next, (number, number + 1)),
        }
    }

    /// The acknowledgement frame, if anything has arrived; `path` is the path's number on the wire.
    pub(crate) fn ack_frame(&mut self, now: Instant, path: u8) -> Option<Ack> {
        (self.unacknowledged, self.deadline) = (0, Instant::NEVER);
        let largest = self.ranges.back()?.1 - 1;
        let mut ranges = AckRanges::default();
        let mut newer_first = None;
        for (first, end) in self.ranges.iter().rev() {
            let gap = newer_first.map_or(0, |newer_first: u64| newer_first - end);
            let length = (end - first).min(MAX_RANGE_LENGTH);
            if !ranges.push(gap as u32, length as u32) || length == MAX_RANGE_LENGTH {
                break; // older packets were acknowledged long ago
            }
            newer_first = Some(*first);
        }
        Some(Ack {
            path,
            largest: largest as u32,
            ack_delay_us: now.since(self.largest_received_at).as_micros() as u32,
            receive_timestamp_us: (self.largest_received_at.0 / 1000) as u32,
            ce_count: self.ce_count,
            ranges,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(numbers: &[u64]) -> Vec<(u32, u32)> {
        let mut received = ReceivedPackets::default();
        numbers.iter().for_each(|number| received.add(Instant::ZERO, *number, false, true));
        received.ack_frame(Instant::ZERO, 0).expect("something arrived").ranges.iter().collect()
    }

    #[test]
    fn ranges_grow_and_join_and_gaps_are_reported() {
        assert_eq!(acknowledged(&[0, 1, 2]), [(3, 0)]);
        assert_eq!(acknowledged(&[0, 1, 4, 5, 7]), [(1, 1), (2, 2), (2, 0)]);
        assert_eq!(acknowledged(&[0, 4, 2, 3, 1]), [(5, 0)]);
        assert_eq!(acknowledged(&[5, 3, 3, 5, 2]), [(1, 1), (2, 0)]);
    }

    #[test]
    fn the_oldest_ranges_are_dropped_when_there_are_too_many() {
        let numbers: Vec<u64> = (0..100).map(|index| 2 * index).collect();
        assert_eq!(acknowledged(&numbers).len(), MAX_ACK_RANGES);
        assert_eq!(acknowledged(&numbers)[0], (1, 1));
    }

    #[test]
    fn a_gap_is_acknowledged_at_once_and_an_ordinary_packet_soon() {
        let mut received = ReceivedPackets::default();
        let micros = |us: u64| Instant::ZERO + Span::from_micros(us);
        received.add(micros(0), 0, false, true);
        assert_eq!(received.deadline, micros(500));
        received.add(micros(100), 1, false, true);
        assert_eq!(received.deadline, micros(500));
        received.add(micros(200), 3, true, true);
        assert_eq!(received.deadline, micros(200));
        let ack = received.ack_frame(micros(250), 7).expect("something arrived");
        assert_eq!((ack.path, ack.largest, ack.ack_delay_us, ack.ce_count), (7, 3, 50, 1));
        assert_eq!(received.deadline, Instant::NEVER);
        received.add(micros(300), 4, false, false);
        assert_eq!(received.deadline, Instant::NEVER, "frames alone are not acknowledged");
    }
}
