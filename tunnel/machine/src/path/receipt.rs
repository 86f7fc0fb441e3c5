//! What has arrived on a path, and when to tell the peer.
//!
//! As in QUIC (RFC 9000, section 13.2), but for links of any speed: at once when a number is missing, so that the loss can be
//! repaired while later pieces are still on their way; else soon after the first, or when many have come.

use std::collections::VecDeque;
use units::{Instant, Span};
use wire::frame::{Ack, AckRanges, MAX_ACK_RANGES};

/// The longest that an arrival goes untold.
pub(super) const MOST_DELAY: Span = Span::from_micros(500);
/// So many arrivals are told at once.
const BATCH: u32 = 128;

/// A longer run is told as if it were so long.
const LONGEST_RUN: u64 = 1 << 24;

/// Arrivals on one path.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    /// Runs of numbers, oldest first: (first, one past the last).
    runs: VecDeque<(u64, u64)>,
    largest_at: Instant,
    marked: u32,
    untold: u32,
    due: Instant,
}

impl Default for Receipt {
    fn default() -> Self {
        Self { runs: VecDeque::new(), largest_at: Instant::ZERO, marked: 0, untold: 0, due: Instant::NEVER }
    }
}

impl Receipt {
    /// A datagram arrived; `eliciting` if the peer waits to be told.
    pub(crate) fn add(&mut self, now: Instant, number: u64, marked: bool, eliciting: bool) {
        let end = self.runs.back().map_or(0, |run| run.1);
        self.marked = self.marked.wrapping_add(u32::from(marked));
        if number >= end {
            self.largest_at = now;
        }
        self.insert(number);
        if !eliciting {
            return;
        }
        self.untold += 1;
        let news = number != end && !self.runs.is_empty() || self.untold >= BATCH;
        self.due = if news { now } else { self.due.min(now + MOST_DELAY) };
    }

    fn insert(&mut self, number: u64) {
        match self.runs.back_mut() {
            Some(run) if run.1 == number => run.1 += 1,
            Some(run) if run.1 > number => self.insert_below(number),
            _ => self.runs.push_back((number, number + 1)),
        }
        if self.runs.len() > MAX_ACK_RANGES {
            self.runs.pop_front();
        }
    }

    /// It had been missing, or it is told already.
    fn insert_below(&mut self, number: u64) {
        let after = self.runs.partition_point(|run| run.0 <= number);
        let before = after.checked_sub(1);
        if before.is_some_and(|before| number < self.runs[before].1) {
            return;
        }
        let joins_before = before.filter(|before| self.runs[*before].1 == number);
        let joins_after = self.runs.get(after).is_some_and(|run| run.0 == number + 1);
        match (joins_before, joins_after) {
            (Some(before), true) => {
                self.runs[before].1 = self.runs[after].1;
                self.runs.remove(after);
            }
            (Some(before), false) => self.runs[before].1 += 1,
            (None, true) => self.runs[after].0 = number,
            (None, false) => self.runs.insert(after, (number, number + 1)),
        }
    }

    /// When the peer is to be told.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// The same is to be told by another path as well.
    pub(crate) fn tell_again(&mut self, due: Instant) {
        self.due = due;
    }

    /// What the peer is told, if anything has arrived; `path` is its number on the wire.
    pub(crate) fn tell(&mut self, now: Instant, path: u8) -> Option<Ack> {
        (self.untold, self.due) = (0, Instant::NEVER);
        let largest = self.runs.back()?.1 - 1;
        let mut ranges = AckRanges::default();
        let mut newer = None;
        for (first, end) in self.runs.iter().rev() {
            let missing = newer.map_or(0, |newer: u64| newer - end);
            let length = (end - first).min(LONGEST_RUN);
            if !ranges.push(missing as u32, length as u32) || length == LONGEST_RUN {
                break; // what is older than that the peer has long known
            }
            newer = Some(*first);
        }
        Some(Ack {
            path,
            largest: largest as u32,
            ack_delay_us: now.since(self.largest_at).as_micros() as u32,
            receive_timestamp_us: (self.largest_at.0 / 1000) as u32,
            ce_count: self.marked,
            ranges,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(numbers: &[u64]) -> Vec<(u32, u32)> {
        let mut receipt = Receipt::default();
        numbers.iter().for_each(|number| receipt.add(Instant::ZERO, *number, false, true));
        receipt.tell(Instant::ZERO, 0).expect("something arrived").ranges.iter().collect()
    }

    #[test]
    fn runs_grow_join_and_tell_what_is_missing() {
        assert_eq!(told(&[0, 1, 2]), [(3, 0)]);
        assert_eq!(told(&[0, 1, 4, 5, 7]), [(1, 1), (2, 2), (2, 0)]);
        assert_eq!(told(&[0, 4, 2, 3, 1]), [(5, 0)]);
        assert_eq!(told(&[5, 3, 3, 5, 2]), [(1, 1), (2, 0)]);
    }

    #[test]
    fn the_oldest_runs_are_forgotten_when_there_are_too_many() {
        let gaps: Vec<u64> = (0..100).map(|k| 2 * k).collect();
        assert_eq!(told(&gaps).len(), MAX_ACK_RANGES);
        assert_eq!(told(&gaps)[0], (1, 1));
    }

    #[test]
    fn a_hole_is_told_at_once_and_an_ordinary_arrival_soon() {
        let mut receipt = Receipt::default();
        let at = |us: u64| Instant::ZERO + Span::from_micros(us);
        receipt.add(at(0), 0, false, true);
        assert_eq!(receipt.due(), at(500));
        receipt.add(at(100), 1, false, true);
        assert_eq!(receipt.due(), at(500));
        receipt.add(at(200), 3, true, true);
        assert_eq!(receipt.due(), at(200));
        let ack = receipt.tell(at(250), 7).expect("told");
        assert_eq!((ack.path, ack.largest, ack.ack_delay_us, ack.ce_count), (7, 3, 50, 1));
        assert_eq!(receipt.due(), Instant::NEVER);
        receipt.add(at(300), 4, false, false);
        assert_eq!(receipt.due(), Instant::NEVER, "control alone needs no answer");
    }
}
