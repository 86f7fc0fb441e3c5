//! Coalescing of wake-ups, as network cards coalesce interrupts: at 100 Mbit/s packets come one by one, 0.1 ms apart, and
//! waking for each costs more than all that is done with it.

use units::{Instant, Span};

/// Reads a second from which wake-ups are coalesced: below it the traffic is no bulk transfer.
const MIN_READS_PER_SECOND: u64 = 2000;
/// Time over which reads are counted.
const INTERVAL: Span = Span::from_millis(10);
/// The pause: what bulk traffic delays other packets at most.
const PAUSE: Span = Span::from_micros(500);
/// With this many bytes, read and written, in one iteration there are packets enough to work on.
const MIN_BATCH_BYTES: u64 = 32 * 1024;

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
    /// The pause after an iteration with so many reads, in which so many bytes were read and written.
    pub(super) fn pause(&mut self, now: Instant, reads: usize, bytes: u64) -> Span {
        self.reads += reads as u64;
        let elapsed = now.since(self.interval_start);
        if elapsed >= INTERVAL {
            self.is_busy = self.reads * 1_000_000_000 >= MIN_READS_PER_SECOND * elapsed.as_nanos();
            (self.interval_start, self.reads) = (now, 0);
        }
        if self.is_busy && bytes < MIN_BATCH_BYTES { PAUSE } else { Span::ZERO }
    }
}
