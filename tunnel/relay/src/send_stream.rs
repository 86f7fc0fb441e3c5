//! The byte stream that an end sends: bytes are kept until they are acknowledged.

use crate::chunks::Chunks;
use crate::event::Chunk;
use crate::memory::{INITIAL_WINDOW, Memory};
use crate::repair::Repair;
use std::ops::Range;
use units::{Instant, Span};

/// Maximum amount of data that waits to be sent for the first time, bytes: enough between two iterations of an event
/// loop.
const MAX_UNSENT: u64 = 512 * 1024;
/// With more unsent bytes than this there is no capacity, so that a driver reads a socket rarely and in large pieces.
const MIN_UNSENT: u64 = 64 * 1024;
/// Minimum time between two retransmissions of a gap: the first may still be in flight. With a longer RTT it is five quarters
/// of that.
const MIN_RETRANSMISSION_INTERVAL: Span = Span::from_millis(300);
/// Time without an acknowledgement after which bytes are sent again. It is longer than the endpoint retransmits
/// fragments and waits for them. With a longer RTT it is twice that.
const MIN_TIMEOUT: Span = Span::from_millis(1500);
/// Maximum number of times that the timeout is doubled.
const MAX_BACKOFF: u32 = 3;

/// A part of the byte stream, to be sent.
#[derive(Debug)]
pub(crate) struct Segment<C> {
    pub(crate) offset: u64,
    pub(crate) chunk: Option<C>,
    pub(crate) fin: bool,
}

/// One direction's sending end.
#[derive(Debug)]
pub(crate) struct SendStream<C> {
    /// The chunks from `acknowledged` on.
    chunks: Chunks<C>,
    pub(crate) acknowledged: u64,
    /// The next offset to be sent for the first time.
    next: u64,
    /// The end of what was written.
    pub(crate) end: u64,
    /// Whether nothing more will be written.
    is_finished: bool,
    is_fin_sent: bool,
    is_fin_acknowledged: bool,
    /// The first offset that the peer does not accept yet.
    window_end: u64,
    is_fin_lost: bool,
    repair: Repair,
    /// An offset, and when all before it was first sent: the acknowledgement, or the first
    /// one of later bytes, gives the RTT.
    timed: Option<(u64, Instant)>,
    /// Zero before the first sample.
    rtt: Span,
    /// Whether the peer is to be asked for its window.
    is_probe_due: bool,
    /// When the oldest unacknowledged byte was sent, or an acknowledgement arrived, whichever is later.
    last_progress: Instant,
    backoff: u32,
    /// Bytes charged for the chunks.
    pub(crate) held: u64,
    /// Whether the driver waits for capacity.
    pub(crate) is_blocked: bool,
}

impl<C: Chunk> SendStream<C> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Chunks::new(),
            acknowledged: 0,
            next: 0,
            end: 0,
            is_finished: false,
            is_fin_sent: false,
            is_fin_acknowledged: false,
            window_end: INITIAL_WINDOW,
            is_fin_lost: false,
            repair: Repair::default(),
            timed: None,
            rtt: Span::ZERO,
            is_probe_due: false,
            last_progress: Instant::ZERO,
            backoff: 0,
            held: 0,
            is_blocked: true,
        }
    }

    /// Bytes that may be written now.
    pub(crate) fn capacity(&self, memory: &Memory) -> u64 {
        if self.is_finished {
            return 0;
        }
        let window = self.window_end.saturating_sub(self.end);
        let unsent = self.end - self.next;
        if unsent > MIN_UNSENT {
            return 0;
        }
        window.min(MAX_UNSENT - unsent).min(memory.limit(self.held).saturating_sub(self.held))
    }

    pub(crate) fn write(&mut self, chunk: C, memory: &mut Memory) {
        let length = u64::from(chunk.len());
        if length == 0 || self.is_finished {
            return;
        }
        self.end += length;
        self.held += Memory::charge(length);
        memory.used += Memory::charge(length);
        self.chunks.push(chunk);
    }

    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Whether everything has been acknowledged, the end included.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_fin_acknowledged
    }

    pub(crate) fn open_window(&mut self, window_end: u64) {
        self.window_end = self.window_end.max(window_end);
    }

    fn is_fin_due(&self) -> bool {
        self.is_finished && self.next == self.end && (!self.is_fin_sent || self.is_fin_lost)
    }

    /// Whether [`poll`](Self::poll) has something.
    pub(crate) fn is_sendable(&self) -> bool {
        self.repair.is_waiting() || self.next < self.end.min(self.window_end) || self.is_fin_due() || self.is_probe_due
    }

    /// The next segment, of at most `max_bytes`.
    pub(crate) fn poll(&mut self, now: Instant, max_bytes: u32) -> Option<Segment<C>> {
        if !self.has_outstanding() {
            self.last_progress = now;
        }
        if let Some(Range { start, end }) = self.repair.next() {
            let chunk = self.chunks.part(start, end, max_bytes)?;
            self.repair.on_sent(now, start + u64::from(chunk.len()), self.next);
            return Some(self.segment(start, Some(chunk)));
        }
        let end = self.end.min(self.window_end);
        if self.next < end {
            let part = self.chunks.part(self.next, end, max_bytes)?;
            let offset = self.next;
            self.next += u64::from(part.len());
            if self.timed.is_none() && self.repair.is_empty() {
                self.timed = Some((self.next, now));
            }
            return Some(self.segment(offset, Some(part)));
        }
        if std::mem::take(&mut self.is_probe_due) {
            return Some(Segment { offset: self.next, chunk: None, fin: false });
        }
        self.is_fin_due().then(|| self.segment(self.end, None))
    }

    /// A segment that has the FIN if it is the last one.
    fn segment(&mut self, offset: u64, chunk: Option<C>) -> Segment<C> {
        let segment_end = offset + chunk.as_ref().map_or(0, |chunk| u64::from(chunk.len()));
        let fin = self.is_finished && segment_end == self.end;
        if fin {
            (self.is_fin_sent, self.is_fin_lost) = (true, false);
        }
        Segment { offset, chunk, fin }
    }

    /// Whether something was sent that is not acknowledged.
    fn has_outstanding(&self) -> bool {
        self.acknowledged < self.next || self.is_fin_sent && !self.is_fin_acknowledged
    }

    /// An acknowledgement of all before `offset`, of which those up to `gap_end` are missing at the peer.
    pub(crate) fn on_ack(&mut self, now: Instant, offset: u64, gap_end: u64, memory: &mut Memory) {
        let acknowledges_fin = self.is_fin_sent && offset == self.end + 1;
        if offset > self.next && !acknowledges_fin {
            return; // not sent
        }
        if acknowledges_fin {
            self.is_fin_acknowledged = true;
        }
        let has_progress = offset > self.acknowledged;
        if has_progress {
            self.release(offset.min(self.end), memory);
            (self.last_progress, self.backoff) = (now, 0);
        }
        if let Some((_, sent)) = self.timed.take_if(|(timed, _)| *timed <= offset.max(gap_end)) {
            self.rtt = now.since(sent);
        }
        if offset == self.acknowledged {
            let sent_before = self.repair.on_ack(offset);
            self.on_gap(now, offset..if gap_end > offset { gap_end } else { sent_before });
        }
    }

    /// A range is missing at the peer although later bytes have arrived.
    pub(crate) fn on_gap(&mut self, now: Instant, gap: Range<u64>) {
        let gap = gap.start.max(self.acknowledged)..gap.end.min(self.next);
        if !gap.is_empty() {
            self.timed = None;
            self.repair.on_gap(now, gap, self.retransmission_interval());
        }
    }

    /// The time in which what was sent again is acknowledged, if it arrives.
    fn retransmission_interval(&self) -> Span {
        match self.rtt {
            Span::ZERO => MIN_TIMEOUT,
            rtt => MIN_RETRANSMISSION_INTERVAL.max(rtt + rtt / 4),
        }
    }

    /// Forgets the bytes before `offset`.
    fn release(&mut self, offset: u64, memory: &mut Memory) {
        self.chunks.release(offset - self.acknowledged, &mut self.held, memory);
        self.acknowledged = offset;
    }

    /// Whether the driver waits for the peer's window, and no data is outstanding whose acknowledgement would carry it.
    fn waits_for_window(&self) -> bool {
        self.is_blocked && !self.is_finished && self.window_end <= self.end
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(crate) fn deadline(&self) -> Instant {
        if !self.has_outstanding() && !self.waits_for_window() {
            return Instant::NEVER;
        }
        let (since, timeout) = match self.repair.first(self.acknowledged) {
            Some((_, sent)) => (sent, self.retransmission_interval()),
            None => (self.last_progress, MIN_TIMEOUT.max(self.rtt * 2)),
        };
        since + timeout * (1 << self.backoff)
    }

    /// Sends the oldest bytes again if no acknowledgement has arrived for long, or asks for the window (a zero-window
    /// probe, RFC 9293, section 3.8.6.1). Of several gaps it is the first one: what answers it tells the others.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if now < self.deadline() {
            return;
        }
        self.last_progress = now;
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.timed = None;
        match self.repair.first(self.acknowledged) {
            Some((end, _)) => self.repair.on_gap(now, self.acknowledged..end, Span::ZERO),
            None => self.repair.on_timeout(self.acknowledged..self.next),
        }
        self.is_fin_lost = self.is_fin_sent && !self.is_fin_acknowledged;
        self.is_probe_due = !self.has_outstanding();
    }
}
