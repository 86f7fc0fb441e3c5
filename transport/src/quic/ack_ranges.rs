//! Ranges of packet numbers: those of a PATH_ACK frame, and those that a receiver remembers.

use std::collections::VecDeque;

/// Maximum number of ranges in an acknowledgement (RFC 9000, section 13.2.3). quinn and quic-go have 64, quiche 68.
pub const MAX_ACK_RANGES: usize = 64;
/// Maximum number of ranges that a receiver remembers, so that packets that fill a gap late are still acknowledged.
const MAX_REMEMBERED_RANGES: usize = 1024;

/// Number of 4-bit digits that hold the ranges.
const DIGITS: usize = 128;
const DIGITS_OF_WORD: usize = 16;

/// The ranges of an acknowledgement, with the largest packet numbers first. They are stored as gaps and lengths, as in
/// the frame (RFC 9000, section 19.3.1), so that a packet of the simulator stays small. Each number takes as many
/// digits of 3 bits as it needs, and a fourth bit of a digit is set if another one follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckRanges {
    largest: u64,
    smallest: u64,
    digits: [u64; DIGITS / DIGITS_OF_WORD],
    used: u8,
    count: u8,
}

impl AckRanges {
    /// Adds the next lower range of packet numbers, both ends inclusive. At least one packet must be missing in
    /// between. The first range that does not fit, and all lower ones, are left out.
    pub fn push(&mut self, start: u64, end: u64) {
        let gap = if self.is_empty() { None } else { Some(self.smallest - end - 2) };
        let numbers = gap.into_iter().chain([end - start]);
        let needed: usize = numbers.clone().map(digits_of).sum();
        if self.len() == MAX_ACK_RANGES || usize::from(self.used) + needed > DIGITS {
            self.used = DIGITS as u8;
            return;
        }
        numbers.for_each(|number| self.write(number));
        self.largest = if self.is_empty() { end } else { self.largest };
        self.smallest = start;
        self.count += 1;
    }

    fn write(&mut self, mut number: u64) {
        loop {
            let (digit, rest) = (number & 7, number >> 3);
            let (word, shift) = place(self.used);
            self.digits[word] |= (digit | u64::from(rest > 0) << 3) << shift;
            self.used += 1;
            if rest == 0 {
                return;
            }
            number = rest;
        }
    }

    /// The largest packet number.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// True if there are no ranges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ranges `(first, last)`, in descending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let mut numbers = self.numbers();
        let mut end = self.largest;
        (0..self.len()).map(move |index| {
            if index > 0 {
                end -= numbers.next().expect("a gap before each further range") + 2;
            }
            let range = (end - numbers.next().expect("each range has a length"), end);
            end = range.0;
            range
        })
    }

    /// Number of packets in the first range.
    pub(super) fn first_length(&self) -> u64 {
        self.numbers().next().map_or(0, |length| length + 1)
    }

    /// Gap and ACK Range Length of every further range as in the frame (RFC 9000, section 19.3.1): the number of
    /// packets between two ranges minus 1, and the number in the range minus 1.
    pub(super) fn gaps_and_lengths(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let mut numbers = self.numbers().skip(1);
        std::iter::from_fn(move || Some((numbers.next()?, numbers.next()?))).take(self.len().saturating_sub(1))
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { digits, used, .. } = *self;
        let mut next = 0;
        std::iter::from_fn(move || {
            let (mut number, mut bits) = (0, 0);
            while next < used {
                let (word, shift) = place(next);
                let digit = digits[word] >> shift;
                (number, bits, next) = (number | (digit & 7) << bits, bits + 3, next + 1);
                if digit & 8 == 0 {
                    return Some(number);
                }
            }
            None
        })
    }
}

/// Word and shift of a digit.
fn place(digit: u8) -> (usize, u32) {
    (usize::from(digit) / DIGITS_OF_WORD, u32::from(digit) % DIGITS_OF_WORD as u32 * 4)
}

/// Number of digits that a number takes.
fn digits_of(number: u64) -> usize {
    (64 - number.leading_zeros()).div_ceil(3).max(1) as usize
}

/// The packet numbers that a receiver has received: the highest ranges, none of which touches another.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedRanges {
    /// In descending order, both ends inclusive.
    ranges: VecDeque<(u64, u64)>,
    /// Everything below has been received or forgotten.
    floor: u64,
    /// The packet number received last.
    latest: u64,
}

impl ReceivedRanges {
    /// The largest packet number received.
    pub(super) fn largest(&self) -> Option<u64> {
        self.ranges.front().map(|range| range.1)
    }

    /// Adds a packet number. False if it was already there, or is too old to tell.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if number < self.floor {
            return false;
        }
        self.latest = number;
        // The first range that does not lie wholly above the number.
        let index = self.ranges.partition_point(|range| range.0 > number);
        let touches_upper = index > 0 && self.ranges[index - 1].0 == number + 1;
        let (contains, touches_lower) =
            self.ranges.get(index).map_or((false, false), |range| (range.1 >= number, range.1 + 1 == number));
        match (contains, touches_upper, touches_lower) {
            (true, ..) => return false,
            (_, true, true) => {
                self.ranges[index - 1].0 = self.ranges[index].0;
                self.ranges.remove(index);
            }
            (_, true, false) => self.ranges[index - 1].0 = number,
            (_, false, true) => self.ranges[index].1 = number,
            (_, false, false) => self.ranges.insert(index, (number, number)),
        }
        if self.ranges.len() > MAX_REMEMBERED_RANGES
            && let Some(lowest) = self.ranges.pop_back()
        {
            self.floor = lowest.1 + 1;
        }
        true
    }

    /// The ranges for an acknowledgement: the highest ones, including that of the last received packet (RFC 9000,
    /// section 13.2.3: an acknowledgement should have the most recently received packets). If that range is too low, it
    /// and those below it take half of the places.
    pub(super) fn ack_ranges(&self) -> AckRanges {
        let latest = self.ranges.partition_point(|range| range.0 > self.latest);
        let highest = if latest < MAX_ACK_RANGES / 2 { MAX_ACK_RANGES } else { MAX_ACK_RANGES / 2 };
        let lower = self.ranges.iter().skip(latest.max(highest));
        let mut ranges = AckRanges::default();
        self.ranges
            .iter()
            .take(highest)
            .chain(lower)
            .take(MAX_ACK_RANGES)
            .for_each(|range| ranges.push(range.0, range.1));
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The ranges of a set, from the highest down.
    fn ranges_of(set: &BTreeSet<u64>) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &number in set.iter().rev() {
            match ranges.last_mut() {
                Some(range) if range.0 == number + 1 => range.0 = number,
                _ => ranges.push((number, number)),
            }
        }
        ranges
    }

    #[test]
    fn the_ranges_are_those_of_the_set_of_what_arrived_in_any_order() {
        let mut rng = units::RngStream::named(1, "ranges");
        for _ in 0..200 {
            let (mut received, mut set) = (ReceivedRanges::default(), BTreeSet::new());
            for base in 0..100 {
                let number = base + rng.below(12);
                if number >= received.floor {
                    assert_eq!(received.insert(number), set.insert(number), "{number}");
                }
                // What lies below the ranges that it remembers is forgotten.
                set = set.split_off(&received.floor);
                assert_eq!(received.ack_ranges().iter().collect::<Vec<_>>(), ranges_of(&set));
                assert!(received.ack_ranges().len() <= MAX_ACK_RANGES);
            }
        }
    }

    #[test]
    fn gaps_and_lengths_are_those_of_rfc_9000_section_19_3_1() {
        let mut ranges = AckRanges::default();
        [(8, 10), (4, 5), (1, 1)].into_iter().for_each(|(start, end)| ranges.push(start, end));
        // Missing: 6 and 7 (two packets, encoded as 1), 2 and 3.
        assert_eq!(ranges.first_length(), 3);
        assert_eq!(ranges.gaps_and_lengths().collect::<Vec<_>>(), [(1, 1), (1, 0)]);
    }

    #[test]
    fn ranges_of_any_size_are_read_as_they_were_written_as_far_as_they_fit() {
        let mut rng = units::RngStream::named(1, "digits");
        for _ in 0..200 {
            let (mut ranges, mut written, mut next) = (AckRanges::default(), Vec::new(), u64::MAX);
            let bits = 1 + rng.below(58);
            while let Some(end) = next.checked_sub(rng.below(1 << bits)) {
                let start = end.saturating_sub(rng.below(1 << bits));
                ranges.push(start, end);
                written.push((start, end));
                let Some(below) = start.checked_sub(2) else { break };
                if written.len() > MAX_ACK_RANGES {
                    break;
                }
                next = below;
            }
            let read: Vec<_> = ranges.iter().collect();
            assert_eq!(read, written[..read.len()]);
            assert!(read.len() == written.len() || read.len() >= DIGITS / 2 / bits.div_ceil(3) as usize);
        }
    }

    /// RFC 9000, section 13.2.3.
    #[test]
    fn an_acknowledgement_has_the_largest_and_the_latest_packet_however_many_ranges_are_between() {
        let mut received = ReceivedRanges::default();
        (0..500).for_each(|number| assert!(received.insert(2 * number)));
        assert!(received.insert(401));
        let ranges: Vec<_> = received.ack_ranges().iter().collect();
        assert_eq!((ranges[0], ranges[32], ranges.len()), ((998, 998), (400, 402), MAX_ACK_RANGES - 1));
    }

    #[test]
    fn the_lowest_ranges_are_forgotten() {
        let mut received = ReceivedRanges::default();
        (0..1100).for_each(|number| assert!(received.insert(2 * number)));
        assert_eq!((received.ack_ranges().len(), received.ranges.len()), (MAX_ACK_RANGES, MAX_REMEMBERED_RANGES));
        assert!(!received.insert(3), "too old to tell");
        assert!(received.insert(999), "below what the acknowledgement has");
        assert_eq!(received.largest(), Some(2198));
    }
}
