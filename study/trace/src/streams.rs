//! Byte numbers: the simulator counts segments, and packets count bytes.

/// The segments of a stream of bytes, by their ends.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The byte after each segment, from the first one.
    ends: Vec<u64>,
}

impl Stream {
    /// The first byte of a segment.
    pub(crate) fn start(&self, segment: u64) -> u64 {
        let known = (segment as usize).min(self.ends.len());
        let end = known.checked_sub(1).map_or(0, |last| self.ends[last]);
        end + (segment - known as u64) * self.last_length()
    }

    /// The byte after the last segment that was sent.
    pub(crate) fn end(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Notes a segment that is sent. One that was sent before keeps its place.
    pub(crate) fn on_sent(&mut self, segment: u64, payload: u64) {
        while (self.ends.len() as u64) < segment {
            self.ends.push(self.start(self.ends.len() as u64) + payload);
        }
        if self.ends.len() as u64 == segment {
            self.ends.push(self.start(segment) + payload);
        }
    }

    /// The assumed length of a segment that has not been sent.
    fn last_length(&self) -> u64 {
        match self.ends.as_slice() {
            [] => 0,
            [only] => *only,
            [.., before, last] => last - before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_segment_moves_those_that_follow() {
        let mut stream = Stream::default();
        for (segment, payload) in [(0, 1000), (1, 400), (2, 1000), (1, 400)] {
            stream.on_sent(segment, payload);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|segment| stream.start(segment)), [0, 1000, 1400, 2400, 3400]);
    }
}
