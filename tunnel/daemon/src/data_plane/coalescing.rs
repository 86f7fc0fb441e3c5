//! Coalescing of wake-ups, as network cards coalesce interrupts: at 100 Mbit/s packets come one by one, 0.1 ms apart, and
//! waking for each costs more than all that is done with it.

use super::event_loop::BUDGET;
use units::{Instant, Span};

/// Reads a second from which wake-ups are coalesced: below it the traffic is no bulk transfer.
const MIN_READS_PER_SECOND: u64 = 2000;
/// Time over which reads are counted.
const INTERVAL: Span = Span::from_millis(10);
/// The pause: what bulk traffic delays other packets at most.
const PAUSE: Span = Span::from_micros(500);
/// With this many bytes, read and written, in one iteration there are packets enough to work on.
const MIN_BATCH_BYTES: u64 = 32 * 1024;

/// The reads of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    count: usize,
    /// Whether a descriptor was read as often as one iteration may, so that it probably has more.
    has_more: bool,
}

impl Reads {
    /// Adds the reads of one descriptor.
    pub(super) fn add(&mut self, count: usize) {
        self.count += count;
        self.has_more |= count >= BUDGET;
    }
}

/// Decides how long the event loop pauses between two iterations.
#[derive(Debug, Default)]
pub(super) struct Coalescing {
    /// Start of the present interval, and the reads since.
    interval_start: Instant,
    reads: u64,
    /// Whether the reads of the last interval were many.
    is_busy: bool,
}

impl Coalescing {
    /// The pause after an iteration with these reads, in which so many bytes were read and written. There is none while a
    /// descriptor has more to read: small packets would not get on.
    pub(super) fn pause(&mut self, now: Instant, reads: &Reads, bytes: u64) -> Span {
        self.reads += reads.count as u64;
        let elapsed = now.since(self.interval_start);
        if elapsed >= INTERVAL {
            self.is_busy = self.reads * 1_000_000_000 >= MIN_READS_PER_SECOND * elapsed.as_nanos();
            (self.interval_start, self.reads) = (now, 0);
        }
        if self.is_busy && bytes < MIN_BATCH_BYTES && !reads.has_more { PAUSE } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause after the second interval of iterations with `count` reads of 100 bytes each from one descriptor, a
    /// millisecond apart.
    fn pause_after(count: usize) -> Span {
        let mut coalescing = Coalescing::default();
        let mut reads = Reads::default();
        reads.add(count);
        let pauses = (0..=20).map(|ms| coalescing.pause(Instant(ms * 1_000_000), &reads, count as u64 * 100));
        pauses.last().unwrap_or(Span::ZERO)
    }

    #[test]
    fn bulk_packets_that_come_one_by_one_are_waited_for_and_packets_that_are_there_are_not() {
        assert_eq!(pause_after(1), Span::ZERO, "1000 reads a second are no bulk transfer");
        assert_eq!(pause_after(4), PAUSE);
        assert_eq!(pause_after(BUDGET), Span::ZERO, "there is more to read");
    }
}
