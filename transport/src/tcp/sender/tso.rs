//! TSO autosizing and deferral (Linux 6.1.192 `tcp_tso_autosize`, `tcp_tso_should_defer`). New data leaves in
//! super-segments, also where the device offloads nothing; less than one waits for the next acknowledgement if that is
//! near: within half of the smoothed RTT, and since the stable kernels of October 2025 within a millisecond.

use super::Sender;
use crate::path::SendLimit;
use crate::tcp::{Segment, SegmentKind};
use control::CaState;
use units::{Instant, Span};

/// Bytes of a full buffer of the write queue (`tcp_xmit_size_goal`): 64 KiB without `MAX_TCP_HEADER`.
const SIZE_GOAL: u32 = 65_215;
/// Data is deferred only if the latest packet left this recently, and the next acknowledgement is expected this soon.
const MAX_DEFERRAL: Span = Span::from_millis(1);
/// A third of the window or more is not deferred (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// The super-segment under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tso {
    /// Segments of it that are still to be sent.
    left: u64,
    /// The window that has room for less than a super-segment, which waits.
    deferred: Option<SendLimit>,
}

impl Tso {
    /// Whether segments of a super-segment are still to be sent.
    pub(super) fn is_under_way(&self) -> bool {
        self.left > 0
    }

    /// Nothing more is sent now. Returns the window for which data is deferred, if it is.
    pub(super) fn finish(&mut self) -> Option<SendLimit> {
        std::mem::take(self).deferred
    }
}

impl Sender {
    /// True if the next new segment may leave: it continues a super-segment, or begins one that need not wait.
    pub(super) fn tso_allows_new(&mut self, now: Instant) -> bool {
        if !self.config.tso {
            return self.small_queue_allows(now, |_| 1);
        }
        let is_paced = self.is_paced();
        if is_paced && !self.config.offload {
            let burst = |sender: &Self| u64::from(sender.path.burst(sender.pacing_rate(), sender.config.mss));
            return self.small_queue_allows(now, burst);
        }
        if self.transmit.tso.left == 0 {
            if is_paced && !self.path.pacer.allows_burst(now) {
                return false;
            }
            let snd_nxt = self.scoreboard.snd_nxt();
            let cwnd = u64::from(self.path.decision.cwnd);
            let (cwnd_room, snd_wnd_room) = (cwnd - u64::from(self.in_flight()), self.snd_wnd_end - snd_nxt);
            let room = cwnd_room.min(snd_wnd_room);
            let in_buffer = (self.buffer() - snd_nxt % self.buffer()).min(self.write_seq - snd_nxt);
            let goal = u64::from(self.path.burst(self.pacing_rate(), self.config.mss));
            if in_buffer > 1 && room < goal && room < in_buffer && self.may_defer(now, room, is_paced) {
                let is_cwnd = cwnd_room < snd_wnd_room;
                self.transmit.tso.deferred =
                    Some(if is_cwnd { SendLimit::CongestionWindow } else { SendLimit::ReceiveWindow });
                return false;
            }
            let segments = room.min((cwnd / 2).max(1)).min(goal).min(in_buffer);
            if self.config.offload && self.awaits_write_space(segments) {
                self.transmit.tso.deferred = Some(SendLimit::SendBuffer);
                return false;
            }
            if !self.small_queue_allows(now, |_| segments) {
                return false;
            }
            self.transmit.tso.left = segments;
            if is_paced {
                self.pace_super_segment(now);
            }
        }
        self.transmit.tso.left -= 1;
        true
    }

    /// True if the application waits for room in the send buffer to write so many segments: it writes no fewer at once.
    fn awaits_write_space(&self, segments: u64) -> bool {
        let packets_out = u64::from(self.scoreboard.counts().packets_out);
        packets_out > 0 && packets_out + segments > self.config.send_buffer
    }

    /// Charges the pacer for the super-segment that begins.
    fn pace_super_segment(&mut self, now: Instant) {
        let segments = self.transmit.tso.left;
        let bytes = segments * u64::from(self.paced_bytes());
        self.path.pacer.on_super_segment(now, segments, bytes, self.pacing_rate());
    }

    /// Whether the segment that was just polled, the last so far of a super-segment of `segments`, is followed by one of the
    /// same super-segment, if another one is polled now.
    #[must_use]
    pub fn continues_super_segment(&self, segment: &Segment, segments: u32) -> bool {
        if segment.kind != SegmentKind::Data {
            return false;
        }
        if !segment.retransmission {
            return self.transmit.tso.is_under_way();
        }
        let goal = self.path.burst(self.pacing_rate(), self.config.mss);
        segments < goal && !(segment.seq + 1).is_multiple_of(self.buffer())
    }

    /// Segments of a full buffer of the write queue.
    fn buffer(&self) -> u64 {
        u64::from((SIZE_GOAL / self.config.mss).max(1))
    }

    /// True if data for a room of `room` segments may wait for the next acknowledgement.
    fn may_defer(&self, now: Instant, room: u64, is_paced: bool) -> bool {
        let window = u64::from(self.path.decision.cwnd).min(self.snd_wnd_end - self.scoreboard.snd_una());
        let last_departure = if is_paced { self.path.pacer.next_send_time() } else { self.path.last_sent() };
        if self.path.ca_state >= CaState::Recovery
            || now.since(last_departure) > MAX_DEFERRAL
            || room * WINDOW_DIVISOR >= window
            || self.scoreboard.counts().packets_out == 0
        {
            return false;
        }
        let srtt = self.path.rtt.srtt();
        let expected = self.scoreboard.packet(self.scoreboard.snd_una()).sent + srtt;
        expected.since(now) <= MAX_DEFERRAL.min(srtt / 2)
    }
}
