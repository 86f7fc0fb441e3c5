//! Bytes of a stream as numbers of segments: packets count bytes, and the table of events counts segments.

use std::collections::{BTreeMap, VecDeque};

/// Runs of segments that are remembered, and ranges of bytes.
const KEPT: usize = 1 << 16;

/// Consecutive segments of one length.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first byte.
    byte: u64,
    /// The number of the first segment.
    segment: u64,
    /// The length of each, bytes.
    length: u64,
    count: u64,
}

/// The segments of a stream, from byte 0. Memory is bounded: of segments of many lengths only the latest are kept.
#[derive(Debug, Default)]
pub(super) struct Segments {
    runs: VecDeque<Run>,
    /// The first byte after all segments.
    end: u64,
    /// The number of segments.
    count: u64,
    /// The length of the latest full segment, bytes.
    full: u64,
}

impl Segments {
    /// The first byte that has not been seen.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds what is new of these bytes, in segments of `piece` bytes. Bytes that the capture lacks before them count as full
    /// segments.
    pub(super) fn add(&mut self, start: u64, len: u64, piece: u64) {
        self.full = piece.min(len).max(1);
        if start > self.end {
            self.push(start - self.end, self.full);
        }
        let new = (start + len).saturating_sub(self.end);
        self.push(new, piece.max(1));
    }

    fn push(&mut self, len: u64, piece: u64) {
        self.push_run(piece, len / piece);
        self.push_run(len % piece, 1);
    }

    fn push_run(&mut self, length: u64, count: u64) {
        if length == 0 || count == 0 {
            return;
        }
        match self.runs.back_mut() {
            Some(run) if run.length == length => run.count += count,
            _ => self.runs.push_back(Run { byte: self.end, segment: self.count, length, count }),
        }
        (self.end, self.count) = (self.end + length * count, self.count + count);
        if self.runs.len() > KEPT {
            self.runs.pop_front();
        }
    }

    /// The number of the segment with this byte. Bytes after the end are in full segments. None if it is forgotten, or if
    /// the length of a segment is not known.
    pub(super) fn number(&self, byte: u64) -> Option<u64> {
        if byte >= self.end {
            let beyond = byte - self.end;
            return if beyond == 0 { Some(self.count) } else { Some(self.count + beyond.checked_div(self.full)?) };
        }
        let index = self.runs.partition_point(|run| run.byte <= byte).checked_sub(1)?;
        let run = self.runs[index];
        Some(run.segment + (byte - run.byte) / run.length)
    }

    /// The number of the first segment of which not all bytes are below this one: that of an acknowledgement.
    pub(super) fn acknowledged(&self, byte: u64) -> Option<u64> {
        // The FIN, after the end, is no segment.
        self.number(if byte == self.end + 1 { self.end } else { byte })
    }
}

/// Ranges of bytes that were seen, each from its first byte to the one after its last.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Whether any of these bytes was seen.
    pub(super) fn has_any(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, seen)| *seen > start)
    }

    /// Adds bytes. Of too many ranges the lowest two become one.
    pub(super) fn add(&mut self, mut start: u64, mut end: u64) {
        while let Some((first, last)) = self.0.range(..=end).next_back().map(|(first, last)| (*first, *last))
            && last >= start
        {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
        if self.0.len() > KEPT
            && let Some((first, _)) = self.0.pop_first()
            && let Some((_, last)) = self.0.pop_first()
        {
            self.0.insert(first, last);
        }
    }
}

/// The number among those equal modulo 2^32 that is nearest to another one; none if that is below zero.
pub(super) fn nearest(number: u32, to: u64) -> Option<u64> {
    let distance = number.wrapping_sub(to as u32).cast_signed();
    to.checked_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_the_segments_that_were_sent() {
        let mut segments = Segments::default();
        // A super-segment whose last segment is short, a retransmission, and a segment after a gap of one and a half.
        for (start, len) in [(0, 2500), (1000, 1000), (4000, 1000), (4500, 1000)] {
            segments.add(start, len, 1000);
        }
        let numbers = [0, 999, 1000, 2000, 2499, 2500, 3499, 3500, 4000, 5000, 5499, 5500, 6499, 6500];
        let expected = [0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 7, 8];
        assert_eq!(numbers.map(|byte| segments.number(byte).unwrap()), expected);
        assert_eq!((segments.end(), Segments::default().number(1)), (5500, None));
        assert_eq!([2499, 2500, 5500, 5501, 7500].map(|byte| segments.acknowledged(byte).unwrap()), [2, 3, 7, 7, 9]);
    }

    #[test]
    fn segments_of_one_length_take_no_memory_and_others_are_forgotten() {
        let mut segments = Segments::default();
        (0..1000).for_each(|index| segments.add(index * 1000, 1000, 1000));
        assert_eq!((segments.runs.len(), segments.number(999_000)), (1, Some(999)));
        let lengths = (0..2 * KEPT as u64).map(|index| 1 + index % 2);
        for len in lengths {
            segments.add(segments.end(), len, 1000);
        }
        assert_eq!((segments.runs.len(), segments.number(0)), (KEPT, None));
        assert_eq!(segments.number(segments.end()), Some(1000 + 2 * KEPT as u64));
    }

    #[test]
    fn ranges_join_and_are_bounded() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (30, 40), (20, 25)] {
            assert!(!ranges.has_any(start, end));
            ranges.add(start, end);
            assert!(ranges.has_any(start, end));
        }
        assert_eq!(ranges.0, [(10, 25), (30, 40)].into());
        assert!(!ranges.has_any(25, 30) && ranges.has_any(24, 26) && ranges.has_any(0, 100) && !ranges.has_any(40, 50));
        ranges.add(0, 35);
        assert_eq!(ranges.0, [(0, 40)].into());
        (0..2 * KEPT as u64).for_each(|index| ranges.add(100 + index * 2, 101 + index * 2));
        assert_eq!(ranges.0.len(), KEPT);
    }

    #[test]
    fn numbers_that_wrap_go_on() {
        let whole = 1 << 32;
        assert_eq!(nearest(5, whole - 10), Some(whole + 5));
        assert_eq!(nearest(u32::MAX, whole + 3), Some(whole - 1));
        assert_eq!(nearest(7, 3 * whole), Some(3 * whole + 7));
        assert_eq!(nearest(u32::MAX, 0), None);
    }
}
