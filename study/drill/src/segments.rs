//! Bytes of a script and segments of the machines: every segment is full except the last one of a write.

use std::collections::BTreeMap;

/// The written data as segments. Bytes count from 1, as in scripts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    mss: u64,
    /// The writes by their first segment: first byte and the byte after the last.
    writes: BTreeMap<u64, (u64, u64)>,
    /// The segments written, and the byte after the last.
    end: (u64, u64),
}

impl Segments {
    pub(crate) fn new(mss: u64) -> Self {
        Self { mss, writes: BTreeMap::new(), end: (0, 1) }
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn mss(&self) -> u64 {
        self.mss
    }

    /// The application writes. Returns the number of segments, and whether the last is not full.
    pub(crate) fn write(&mut self, bytes: u64) -> (u64, u32) {
        let (segment, byte) = self.end;
        let segments = bytes.div_ceil(self.mss);
        self.writes.insert(segment, (byte, byte + bytes));
        self.end = (segment + segments, byte + bytes);
        (segments, (segments * self.mss - bytes) as u32)
    }

    /// The first byte of a segment; for a segment that is not written, the byte after the last one.
    pub(crate) fn start(&self, segment: u64) -> u64 {
        let Some((first, (start, end))) = self.writes.range(..=segment).next_back() else { return 1 };
        (start + (segment - first) * self.mss).min(*end)
    }

    /// The segment that begins at a byte, if there is one; at the end of the data, the next segment.
    pub(crate) fn at(&self, byte: u64) -> Option<u64> {
        let (segment, end) = self.end;
        if byte == end {
            return Some(segment);
        }
        let (first, (start, end)) = self.writes.iter().rev().find(|(_, (start, _))| *start <= byte)?;
        (byte < *end && (byte - start).is_multiple_of(self.mss)).then(|| first + (byte - start) / self.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_segments_correspond() {
        let mut segments = Segments::new(1000);
        assert_eq!((segments.at(1), segments.at(2)), (Some(0), None));
        assert_eq!([2500, 1000].map(|bytes| segments.write(bytes)), [(3, 500), (1, 0)]);
        assert_eq!([0, 1, 2, 3, 4, 9].map(|segment| segments.start(segment)), [1, 1001, 2001, 2501, 3501, 3501]);
        assert_eq!([1, 1001, 2501, 3501].map(|byte| segments.at(byte)), [Some(0), Some(1), Some(3), Some(4)]);
        assert_eq!([500, 3001, 4501].map(|byte| segments.at(byte)), [None; 3]);
    }
}
