//! Counters of a pipe.

use units::Span;

/// Totals of one pipe since the beginning of the run.
///
/// Conservation: `offered + duplicated = delivered + dropped + lost +`
/// [`Pipe::packets_inside`](super::Pipe::packets_inside), at every moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets delivered at the far end.
    pub delivered: u64,
    /// Packets dropped by the policer, by the queue (full or early), or because the delay stage was full.
    pub dropped: u64,
    /// Packets lost on the wire, or because the link was down.
    pub lost: u64,
    /// Copies that the wire made, each counted when it is delivered.
    pub duplicated: u64,
    /// Number of delivered packets with a flipped bit.
    pub corrupted: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Bytes delivered at the far end, without the link's overhead.
    pub bytes_delivered: u64,
    /// Start of transmission minus arrival at the queue, summed over the packets that the queue did not drop, ns.
    /// Counted when the start is decided: on arrival, or for CoDel at the start itself.
    pub queue_delay_total_ns: u64,
    /// Time of the transmissions decided so far, ns. [`Pipe::busy_time`](super::Pipe::busy_time) leaves out their
    /// future part.
    pub busy_ns: u64,
}

impl LinkCounters {
    /// Counts a transmission whose start has been decided.
    #[inline]
    pub(super) fn count_transmission(&mut self, queue_delay: Span, serialisation_time: Span) {
        self.queue_delay_total_ns += queue_delay.0;
        self.busy_ns += serialisation_time.0;
    }
}
