//! Ranges of packet numbers: those of a PATH_ACK frame, and those that a receiver remembers.

use std::collections::VecDeque;

/// Most ranges of an acknowledgement, and most that a receiver remembers: it may limit them (RFC 9000, section 13.2.3).
pub const MAX_ACK_RANGES: usize = 10;

/// The ranges of an acknowledgement, the one with the largest packet number first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckRanges {
    largest: u64,
    /// Distances below the largest: the last and the first packet number of each range.
    ends: [u16; MAX_ACK_RANGES],
    starts: [u16; MAX_ACK_RANGES],
    count: u8,
}

impl AckRanges {
    /// Adds the next lower range of packet numbers, both ends included. What does not fit is left out, as are packet
    /// numbers 65 536 and more below the largest.
    pub fn push(&mut self, start: u64, end: u64) {
        if self.count == 0 {
            self.largest = end;
        }
        let index = usize::from(self.count);
        if let Ok(end) = u16::try_from(self.largest - end)
            && index < MAX_ACK_RANGES
        {
            let start = u16::try_from(self.largest - start).unwrap_or(u16::MAX);
            (self.ends[index], self.starts[index]) = (end, start);
            self.count += 1;
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

    /// True without a range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ranges `(first, last)`, from the largest down.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let Self { largest, ends, starts, .. } = *self;
        let ranges = starts.into_iter().zip(ends).take(self.len());
        ranges.map(move |(start, end)| (largest - u64::from(start), largest - u64::from(end)))
    }

    /// Packets of the first range.
    pub(super) fn first_length(&self) -> u64 {
        u64::from(self.starts[0]) + 1
    }

    /// Gap and ACK Range Length of every further range as the frame has them (RFC 9000, section 19.3.1): the packets
    /// between two ranges, and of the range, each less one.
    pub(super) fn gaps_and_lengths(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let Self { ends, starts, .. } = *self;
        (1..self.len()).map(move |index| {
            let gap = ends[index] - starts[index - 1] - 2;
            (u64::from(gap), u64::from(starts[index] - ends[index]))
        })
    }
}

/// The packet numbers that a receiver has got: the highest ranges, of which none touches another.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedRanges {
    /// From the highest down, both ends included.
    ranges: VecDeque<(u64, u64)>,
    /// Everything below was received or is forgotten.
    floor: u64,
}

impl ReceivedRanges {
    /// The largest packet number received.
    pub(super) fn largest(&self) -> Option<u64> {
        self.ranges.front().map(|range| range.1)
    }

    /// Adds a packet number. False if it was there before, or is too old to tell.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if number < self.floor {
            return false;
        }
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
        if self.ranges.len() > MAX_ACK_RANGES
            && let Some(lowest) = self.ranges.pop_back()
        {
            self.floor = lowest.1 + 1;
        }
        true
    }

    /// The ranges as an acknowledgement has them.
    pub(super) fn ack_ranges(&self) -> AckRanges {
        let mut ranges = AckRanges::default();
        self.ranges.iter().for_each(|range| ranges.push(range.0, range.1));
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
    fn the_lowest_ranges_are_forgotten() {
        let mut received = ReceivedRanges::default();
        (0..20).for_each(|number| assert!(received.insert(2 * number)));
        assert_eq!(received.ack_ranges().len(), MAX_ACK_RANGES);
        assert!(!received.insert(3), "too old to tell");
        assert_eq!(received.largest(), Some(38));
    }
}
