//! Coalescing of a driver's wake-ups, as network cards coalesce interrupts: at 100 Mbit/s packets arrive one by one,
//! 0.1 ms apart, and waking up for a packet costs more than processing it.

use units::{Instant, Span};

/// Reads per second above which wake-ups are coalesced: with fewer, the traffic is not a bulk transfer.
const MIN_READS_PER_SECOND: u64 = 2000;
/// Time over which reads are counted.
const INTERVAL: Span = Span::from_millis(10);
/// The pause: the maximum delay that bulk traffic adds to other packets.
const PAUSE: Span = Span::from_micros(500);
/// Bytes, read and written, from which one iteration has enough packets to work on.
const MIN_BATCH_BYTES: u64 = 32 * 1024;

/// The reads of one iteration of a driver's event loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    count: usize,
    has_more: bool,
}

impl Reads {
    /// Adds the `count` reads of one descriptor. It probably has more if it was read `budget` times, the maximum per
    /// iteration.
    pub fn add(&mut self, count: usize, budget: usize) {
        self.count += count;
        self.has_more |= count >= budget;
    }
}

/// Decides how long a driver's event loop pauses between two iterations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coalescing {
    /// Start of the current interval, and the reads since.
    interval_start: Instant,
    reads: u64,
    /// Whether there were many reads in the last interval.
    is_busy: bool,
    /// Bytes of the iterations since the last one after which no descriptor had more.
    bytes: u64,
}

impl Coalescing {
    /// The pause after an iteration with these reads, in which `bytes` bytes were read and written. There is no pause
    /// while a descriptor has more: packets that have arrived do not wait.
    pub fn pause(&mut self, now: Instant, reads: &Reads, bytes: u64) -> Span {
        self.reads += reads.count as u64;
        let elapsed = now.since(self.interval_start);
        if elapsed >= INTERVAL {
            self.is_busy = self.reads * 1_000_000_000 >= MIN_READS_PER_SECOND * elapsed.as_nanos();
            (self.interval_start, self.reads) = (now, 0);
        }
        self.bytes += bytes;
        if reads.has_more {
            return Span::ZERO;
        }
        let bytes = std::mem::take(&mut self.bytes);
        if self.is_busy && bytes < MIN_BATCH_BYTES { PAUSE } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause after each of the iterations of 100 ms, `gap` apart, each with one packet of `bytes`.
    fn pauses(gap: Span, bytes: u64) -> Vec<Span> {
        let mut coalescing = Coalescing::default();
        let times = (1..=Span::from_millis(100).as_nanos() / gap.as_nanos()).map(|k| Instant::ZERO + gap * k);
        times.map(|now| coalescing.pause(now, &Reads { count: 1, has_more: false }, bytes)).collect()
    }

    #[test]
    fn it_pauses_from_two_thousand_packets_a_second_on_unless_there_is_much_to_do() {
        let busy = pauses(Span::from_micros(500), 1500);
        assert_eq!((busy[18], busy[19], busy[199]), (Span::ZERO, PAUSE, PAUSE), "from the end of the first 10 ms on");
        assert_eq!(pauses(Span::from_micros(501), 1500).iter().max(), Some(&Span::ZERO), "1996 a second");
        assert_eq!(pauses(Span::from_micros(500), MIN_BATCH_BYTES).iter().max(), Some(&Span::ZERO));
    }

    #[test]
    fn it_does_not_pause_while_a_descriptor_has_more_to_read() {
        const BUDGET: usize = 8;
        let mut coalescing = Coalescing::default();
        let mut pause_after = |count: usize, bytes: u64| {
            let mut reads = Reads::default();
            reads.add(count, BUDGET);
            coalescing.pause(Instant::ZERO + INTERVAL, &reads, bytes)
        };
        pause_after(40, 0); // 4000 reads a second
        assert_eq!(pause_after(BUDGET - 1, 10_000), PAUSE);
        assert_eq!(pause_after(BUDGET, 10_000), Span::ZERO, "there is more");
        assert_eq!(pause_after(BUDGET - 1, 10_000), PAUSE, "20 000 bytes in all");
        assert_eq!(
            (pause_after(BUDGET, 30_000), pause_after(0, 3000)),
            (Span::ZERO, Span::ZERO),
            "33 000 bytes in all"
        );
    }
}
