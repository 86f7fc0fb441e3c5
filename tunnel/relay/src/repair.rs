//! What of a byte stream is sent again: gaps that the peer tells, each once in five quarters of a round trip, and what was sent
//! before something that has arrived (as RFC 6675 and RFC 8985 have it for TCP).

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use units::{Instant, Span};

/// Maximum number of ranges. A peer keeps no more later chunks, so that it has no more gaps.
const MAX_RANGES: usize = 4096;
/// Bytes sent again at a timeout. Their acknowledgement tells what else is lost.
const TIMEOUT_BYTES: u64 = 64 * 1024;

/// A range that is sent again.
#[derive(Clone, Copy, Debug)]
struct Again {
    end: u64,
    /// When its last byte was sent, and the end of what had been sent for the first time then; `None` while it waits.
    sent: Option<(Instant, u64)>,
    /// Whether the peer has not told that it is missing.
    is_probe: bool,
}

/// The ranges of a byte stream that are sent again and not acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    /// By their first offset; they do not overlap.
    ranges: BTreeMap<u64, Again>,
    /// What of them waits.
    waiting: VecDeque<Range<u64>>,
}

impl Repair {
    /// Whether nothing that was sent again is unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether something waits to be sent again.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The range that waits first.
    pub(crate) fn next(&self) -> Option<Range<u64>> {
        self.waiting.front().cloned()
    }

    /// The next range was sent before `end`, after all before `next` had been sent for the first time.
    pub(crate) fn on_sent(&mut self, now: Instant, end: u64, next: u64) {
        let Some(front) = self.waiting.front_mut() else { return };
        front.start = end;
        if front.is_empty() {
            self.waiting.pop_front();
            if let Some((_, again)) = self.ranges.range_mut(..end).next_back() {
                again.sent = Some((now, next));
            }
        }
    }

    /// The peer misses a range. What was sent again is sent once more if it had `interval` to be acknowledged.
    pub(crate) fn on_gap(&mut self, now: Instant, gap: Range<u64>, interval: Span) {
        let mut start = gap.start;
        while start < gap.end {
            let covering = self.ranges.range(..=start).next_back().filter(|(_, again)| again.end > start);
            match covering.map(|(first, again)| (*first, *again)) {
                Some((first, Again { sent: Some((sent, _)), .. })) if now.since(sent) >= interval => {
                    self.ranges.remove(&first);
                }
                Some((_, again)) => start = again.end,
                None => {
                    let end = self.ranges.range(start..).next().map_or(gap.end, |(next, _)| gap.end.min(*next));
                    self.add(start..end, false);
                    start = end;
                }
            }
        }
    }

    fn add(&mut self, range: Range<u64>, is_probe: bool) {
        if self.ranges.len() < MAX_RANGES {
            self.ranges.insert(range.start, Again { end: range.end, sent: None, is_probe });
            self.waiting.push_back(range);
        }
    }

    /// The end of the gap that begins at `acknowledged`, and when it was sent again; `None` if it was not, or waits.
    pub(crate) fn first(&self, acknowledged: u64) -> Option<(u64, Instant)> {
        let (_, again) = self.ranges.range(..=acknowledged).next_back().filter(|(_, again)| !again.is_probe)?;
        again.sent.map(|(sent, _)| (again.end, sent))
    }

    /// Nothing was acknowledged for long, of these bytes that were sent.
    pub(crate) fn on_timeout(&mut self, sent: Range<u64>) {
        *self = Self::default();
        if !sent.is_empty() {
            self.add(sent.start..sent.end.min(sent.start + TIMEOUT_BYTES), true);
        }
    }

    /// All before `acknowledged` has arrived. Returns the end of what was sent before something of it: if nothing later has
    /// arrived, it is lost up to there.
    pub(crate) fn on_ack(&mut self, acknowledged: u64) -> u64 {
        let mut sent_before = 0;
        while let Some(first) = self.ranges.first_entry().filter(|first| first.get().end <= acknowledged) {
            let again = first.remove();
            // If more than a probe has arrived, the timeout was too early, and the rest may still come.
            if let Some((_, next)) = again.sent.filter(|_| !again.is_probe || again.end == acknowledged) {
                sent_before = sent_before.max(next);
            }
        }
        while let Some(next) = self.waiting.front_mut().filter(|next| next.start < acknowledged) {
            next.start = acknowledged;
            if next.start >= next.end {
                self.waiting.pop_front();
            }
        }
        sent_before
    }
}
