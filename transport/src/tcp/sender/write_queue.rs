//! The write queue (Linux 6.1 `tcp_sendmsg_locked`). The application writes into buffers of up to 64 KiB, each of which
//! leaves as one super-segment or several. It writes until the send buffer is full, and continues when a third of it is
//! free. The send buffer grows with the congestion window (`tcp_sndbuf_expand`).

use super::Sender;
use crate::path::ControllerHandle;
use std::collections::VecDeque;
use units::{Instant, Span};

/// Bytes of a full buffer with the memory for its headers (`tcp_xmit_size_goal`).
const SIZE_GOAL: u64 = 65_535;
/// Average memory of a sent segment in addition to its payload, bytes: its share of the memory of a super-segment.
/// Measured: with 1388 bytes per segment, 4 MiB hold 1981 segments.
pub const SENT_OVERHEAD: u64 = 729;
/// Bytes that an application with more data writes at once, like iperf3. Each write checks whether there was nothing to
/// send (`tcp_rate_check_app_limited`).
const WRITE_BYTES: u64 = 128 << 10;
/// Bytes that `tcp_sndbuf_expand` adds to payload and headers before it rounds up (`skb_shared_info`).
pub(super) const SHARED_INFO: u64 = 320;
/// Bytes of the timestamps, which the negotiated MSS includes.
const TIMESTAMPS: u64 = 12;
/// Bytes that it adds afterwards: `sk_buff`.
const SK_BUFF: u64 = 256;

/// A buffer that is not completely sent.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// The first segment beyond the buffer.
    end: u64,
    /// Whether its last segment has PSH.
    psh: bool,
}

/// Time from the acknowledgement that makes room until the application writes. All other events of the same instant
/// come first.
const WAKE_UP: Span = Span::from_micros(1);

/// The part of the written data that may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Push {
    /// As much as the windows allow (`tcp_push_pending_frames`).
    #[default]
    Pending,
    /// One super-segment, which does not wait (`tcp_push_one`).
    One,
    /// Nothing: the application fills another buffer first.
    Nothing,
}

/// The buffers of written and unsent data, and the limit of data that may be written.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteQueue {
    buffers: VecDeque<Buffer>,
    /// The first segment of the latest buffer of a subflow.
    tail_start: u64,
    /// The first segment that is not yet written.
    written: u64,
    /// The first segment of the write in progress.
    write_start: u64,
    /// The ends of the current and future writes, except the last one. Each write begins when the previous one is
    /// complete.
    write_ends: VecDeque<u64>,
    /// The ends of segments that carry less than one MSS, as far as they are not acknowledged, and the bytes that each
    /// lacks.
    small: VecDeque<(u64, u32)>,
    /// The end of the written data when PSH was last set (`pushed_seq`).
    pushed: u64,
    /// Size of the send buffer, bytes (`sk_sndbuf`).
    size: u64,
    /// The largest window that the receiver has offered, bytes.
    max_window: u64,
    /// Set while the application waits for memory: [`Instant::NEVER`] while there is too little, or the time at which
    /// it runs again.
    blocked_until: Option<Instant>,
    /// Whether the application waits for memory of the connection to which this subflow belongs.
    pub is_connection_full: bool,
    /// The data that may be sent now.
    pub push: Push,
    /// Whether the application has begun a buffer, which may end an idle time.
    has_begun_buffer: bool,
    /// Whether an acknowledgement has arrived since the application checked for memory.
    is_space_due: bool,
}

impl WriteQueue {
    /// Time at which the application continues to write.
    pub(super) fn deadline(&self) -> Instant {
        self.blocked_until.unwrap_or(Instant::NEVER)
    }

    /// Whether the application waits for memory (Linux `SOCK_NOSPACE`).
    pub(super) fn is_waiting(&self) -> bool {
        self.blocked_until.is_some()
    }

    /// Records the window of an acknowledgement, bytes.
    pub(super) fn on_window(&mut self, window: u64) {
        self.max_window = self.max_window.max(window);
    }

    /// Handles an acknowledgement, even an old one: written data may be sent, and then the application checks for
    /// memory (`tcp_data_snd_check`).
    pub(super) fn on_ack(&mut self) {
        self.push = Push::Pending;
        self.is_space_due = true;
    }

    /// Stops the application: nothing more is written than has been sent, and nothing waits for memory.
    pub(super) fn stop(&mut self, snd_nxt: u64) {
        self.blocked_until = None;
        self.buffers.clear();
        self.write_ends.clear();
        self.written = self.written.min(snd_nxt);
    }

    /// Segments of the buffer that begins or continues with segment `snd_nxt`, and whether it is the last one.
    pub(super) fn head(&self, snd_nxt: u64) -> (u64, bool) {
        let end = self.buffers.front().map_or(self.written, |buffer| buffer.end);
        (end - snd_nxt, self.buffers.len() <= 1)
    }

    /// Cuts the head at segment `end`; the rest becomes a separate buffer (`tso_fragment`).
    pub(super) fn cut_head(&mut self, end: u64) {
        if self.buffers.front().is_some_and(|head| head.end > end) {
            self.buffers.push_front(Buffer { end, psh: false });
        }
    }

    /// Moves segments of the second buffer to the head, up to `segments` in it (`tcp_grow_skb`, since Linux 6.10).
    pub(super) fn grow_head(&mut self, snd_nxt: u64, segments: u64) {
        let Some(&Buffer { end, psh }) = self.buffers.get(1) else { return };
        let head = &mut self.buffers[0];
        head.end = head.end.max((snd_nxt + segments).min(end));
        if head.end == end {
            head.psh |= psh;
            self.buffers.remove(1);
        }
    }

    /// Records that everything below `snd_nxt` is sent. Returns whether its last segment has PSH.
    pub(super) fn on_sent(&mut self, snd_nxt: u64) -> bool {
        match self.buffers.front() {
            Some(buffer) if buffer.end == snd_nxt => self.buffers.pop_front().is_some_and(|buffer| buffer.psh),
            _ => false,
        }
    }

    /// Notes that the segment before `end` lacks bytes; those before `snd_una` no longer matter.
    pub(super) fn add_small(&mut self, end: u64, lacking: u32, snd_una: u64) {
        while self.small.front().is_some_and(|(end, _)| *end <= snd_una) {
            self.small.pop_front();
        }
        self.small.push_back((end, lacking));
    }

    /// Payload of the segments from `start` to `end`, bytes.
    pub(super) fn payload(&self, start: u64, end: u64, mss: u32) -> u64 {
        let full = end.saturating_sub(start).saturating_mul(u64::from(mss));
        let small = self.small.iter().filter(|(small_end, _)| start < *small_end && *small_end <= end);
        full - small.map(|(_, lacking)| u64::from(*lacking)).sum::<u64>()
    }

    /// Segments for which the latest buffer has room; `snd_nxt` may be its first unsent segment.
    fn tail_room(&self, snd_nxt: u64, goal: u64) -> u64 {
        let Some(tail) = self.buffers.back() else { return 0 };
        let before = self.buffers.len().checked_sub(2).map_or(0, |index| self.buffers[index].end);
        goal.saturating_sub(tail.end - before.max(snd_nxt))
    }

    /// Half of the largest window, bytes.
    fn half_window(&self) -> u64 {
        self.max_window / 2
    }

    /// Sets PSH on the last written segment; the written data may be sent.
    fn push(&mut self) {
        if let Some(tail) = self.buffers.back_mut() {
            tail.psh = true;
        }
        self.pushed = self.written;
        self.push = Push::Pending;
    }
}

impl Sender {
    /// The first segment that cannot be sent, because the application has not written it.
    pub(super) fn write_end(&self) -> u64 {
        self.write_queue.written
    }

    /// Lets the application write up to segment `end`, after its earlier writes.
    pub(super) fn add_write(&mut self, end: u64) {
        self.write_queue.push = Push::Nothing;
        if self.write_queue.written == self.write_seq {
            self.begin_write();
        } else {
            self.write_queue.write_ends.push_back(self.write_seq);
        }
        self.write_seq = end;
    }

    /// Begins a write: the data in the latest buffer is no longer the end.
    fn begin_write(&mut self) {
        if self.scoreboard.snd_nxt() >= self.write_queue.written {
            self.check_app_limited();
        }
        let queue = &mut self.write_queue;
        queue.write_start = queue.written;
        if let Some(tail) = queue.buffers.back_mut() {
            tail.psh = false;
        }
    }

    /// Bytes of a full buffer.
    fn size_goal(&self) -> u64 {
        SIZE_GOAL - u64::from(self.config.max_header)
    }

    /// Number of segments in a full buffer.
    pub(super) fn full_buffer(&self) -> u64 {
        (self.size_goal() / u64::from(self.config.mss)).max(1)
    }

    /// Assigns a segment to a subflow; `continues` if its data follows that of the latest one.
    pub(super) fn append_to_buffer(&mut self, continues: bool) {
        let has_room = continues && !self.begins_buffer();
        let (psh, queue) = (self.config.tso, &mut self.write_queue);
        let start = queue.written;
        queue.written += 1;
        let end = queue.written;
        match queue.buffers.back_mut() {
            Some(tail) if has_room => tail.end = end,
            tail => {
                if let Some(tail) = tail {
                    tail.psh = false;
                }
                queue.buffers.push_back(Buffer { end, psh });
                queue.tail_start = start;
                queue.has_begun_buffer = true;
            }
        }
    }

    /// Restarts the window after an idle time. Linux looks when the application begins a buffer (`tcp_skb_entail`), whether
    /// or not the receive window lets it leave now, and when the receive window changes while data waits
    /// (`tcp_ack_update_window`).
    pub(super) fn restart_after_idle(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if self.scoreboard.counts().packets_out == 0 {
            self.path.restart_after_idle(now, self.rto_with_backoff(), controller);
        }
    }

    /// Whether the application has begun a buffer since the last call.
    #[inline]
    pub(super) fn has_begun_buffer(&mut self) -> bool {
        std::mem::take(&mut self.write_queue.has_begun_buffer)
    }

    /// True if the next segment assigned to a subflow begins a buffer even if its data continues the latest one. Nothing is
    /// added to a buffer that has begun to leave: the far end knows the length of its mapping. (1163 mappings in a capture
    /// of Linux 6.1 have one length each.)
    pub(crate) fn begins_buffer(&self) -> bool {
        let (queue, snd_nxt) = (&self.write_queue, self.scoreboard.snd_nxt());
        snd_nxt > queue.tail_start || queue.tail_room(snd_nxt, self.buffer_goal()) == 0
    }

    /// Segments to which a buffer is filled: one without super-segments, otherwise at most half of the window
    /// (`tcp_bound_to_half_wnd`).
    fn buffer_goal(&self) -> u64 {
        if !self.config.tso {
            return 1;
        }
        (self.size_goal().min(self.write_queue.half_window()) / u64::from(self.config.mss)).max(1)
    }

    /// The application fills a buffer, or begins to wait for memory. False if it waits, or has nothing to write.
    pub(super) fn fill_buffer(&mut self, now: Instant) -> bool {
        if self.write_queue.written >= self.write_seq || self.is_blocked(now) {
            return false;
        }
        let written = self.write_queue.written;
        if self.write_queue.write_ends.front() == Some(&written) {
            self.write_queue.write_ends.pop_front();
            self.begin_write();
        }
        let write_end = self.write_queue.write_ends.front().copied().unwrap_or(self.write_seq);
        let (snd_nxt, mss) = (self.scoreboard.snd_nxt(), u64::from(self.config.mss));
        let goal = self.buffer_goal();
        let tail_room = self.write_queue.tail_room(snd_nxt, goal);
        if tail_room == 0 {
            if self.queued_bytes() >= self.write_queue.size || self.notsent_bytes() >= self.config.notsent_lowat {
                self.write_queue.blocked_until = Some(Instant::NEVER);
                let has_written = written > self.write_queue.write_start;
                if has_written {
                    self.write_queue.push();
                }
                return has_written;
            }
            self.write_queue.buffers.push_back(Buffer { end: self.write_queue.written, psh: false });
            self.write_queue.has_begun_buffer = true;
        }
        let room = if tail_room == 0 { goal } else { tail_room };
        let (start, end) = (written, (written + room).min(write_end));
        // Data that the previous write has put into this buffer leaves at that write's end, unless the pacer holds it
        // back.
        let next_write = (start * mss / WRITE_BYTES + 1) * WRITE_BYTES;
        let is_held_back = next_write / mss > start && self.is_paced() && !self.path.pacer.allows_burst(now);
        if start == snd_nxt && next_write <= end * mss && !is_held_back {
            self.check_app_limited();
        }
        let is_last = end == write_end;
        let queue = &mut self.write_queue;
        queue.written = end;
        queue.buffers.back_mut().expect("there is one").end = end;
        // Half a window is pushed even if more follows (`forced_push`).
        if is_last || (end - queue.pushed) * mss > queue.half_window() {
            queue.push();
        } else {
            queue.push = if queue.buffers.len() == 1 { Push::One } else { Push::Nothing };
        }
        true
    }

    /// True if the application waits for memory. After an acknowledgement, it checks again once everything possible is
    /// sent.
    fn is_blocked(&mut self, now: Instant) -> bool {
        if self.write_queue.size == 0 {
            self.expand_send_buffer();
        }
        if std::mem::take(&mut self.write_queue.is_space_due) {
            self.check_space(now);
        }
        self.write_queue.blocked_until.take_if(|time| *time <= now);
        self.write_queue.blocked_until.is_some()
    }

    /// Wakes the application that waits for memory, if there is enough. First the send buffer grows, if the congestion
    /// window has room (`tcp_check_space`).
    pub(super) fn check_space(&mut self, now: Instant) {
        if self.write_queue.blocked_until != Some(Instant::NEVER) {
            return;
        }
        if self.path.has_room(self.in_flight()) {
            self.expand_send_buffer();
        }
        let has_sent = self.notsent_bytes() < self.config.notsent_lowat.div_ceil(2);
        let queued = self.queued_bytes();
        if has_sent && queued + queued / 2 <= self.write_queue.size {
            self.write_queue.blocked_until = Some(now + WAKE_UP);
        }
    }

    /// Memory of the write queue, bytes (`sk_wmem_queued`).
    #[inline]
    pub(crate) fn queued_bytes(&self) -> u64 {
        let buffers = u64::from(self.scoreboard.super_segments()) + self.write_queue.buffers.len() as u64;
        let payload = self.write_queue.payload(self.scoreboard.snd_una(), self.write_end(), self.config.mss);
        payload + buffers * self.config.buffer_overhead()
    }

    /// Bytes that the application has written and that have not been sent (Linux `tcpi_notsent_bytes`).
    #[must_use]
    pub fn notsent_bytes(&self) -> u64 {
        self.write_queue.payload(self.scoreboard.snd_nxt(), self.write_end(), self.config.mss)
    }

    /// True if a subflow's own send buffer has room; it may be filled beyond its size (`sk_stream_memory_free`).
    pub(crate) fn has_memory(&self) -> bool {
        self.queued_bytes() < self.write_queue.size
    }

    /// Size of a subflow's own send buffer, bytes.
    pub(crate) fn send_buffer_bytes(&self) -> u64 {
        self.write_queue.size
    }

    /// Enlarges a subflow's send buffer after an acknowledgement, once everything possible is sent, if the congestion
    /// window has room (`tcp_should_expand_sndbuf`).
    pub(crate) fn enlarge_send_buffer(&mut self) {
        if self.write_queue.size == 0 || self.path.has_room(self.in_flight()) {
            self.expand_send_buffer();
        }
    }

    /// Sets it to twice the congestion window, or three times if the controller paces (`bbr_sndbuf_expand`).
    fn expand_send_buffer(&mut self) {
        let mss = u64::from(self.config.mss);
        let options = if self.config.timestamps { TIMESTAMPS } else { 0 };
        let segment = (mss + options + u64::from(self.config.max_header) + SHARED_INFO).next_power_of_two() + SK_BUFF;
        let windows = if self.path.decision.pacing_rate.is_some() { 3 } else { 2 };
        let segments = self.path.decision.cwnd.max(self.config.initial_window).max(self.rack.reordering() + 1);
        let size = (windows * u64::from(segments) * segment).max(self.config.initial_send_buffer);
        let size = size.min(self.config.send_buffer);
        self.write_queue.size = self.write_queue.size.max(size);
    }
}
