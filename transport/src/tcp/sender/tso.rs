//! TSO autosizing and deferral (Linux 6.1.192 `tcp_tso_autosize`, `tcp_tso_should_defer`). New data leaves in
//! super-segments, even if the device offloads nothing. Less than one waits for the next acknowledgement if that is
//! near: within half of the smoothed RTT, and since the stable kernels of October 2025 within a millisecond.

use super::{Sender, write_queue::Push};
use crate::path::SendLimit;
use crate::tcp::{Segment, SegmentKind};
use control::{CaState, LinuxRelease};
use units::{Instant, Rate, Span};

/// Data is deferred only if the latest packet left this recently, and the next acknowledgement is expected this soon.
const MAX_DEFERRAL: Span = Span::from_millis(1);
/// Rate from which a controller that paces sends at least two segments.
const MIN_TSO_RATE: Rate = Rate::from_bits(1_200_000);
/// Data is not deferred if it is at least a third of the window (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// The super-segment in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tso {
    /// Its number of segments, and of those still to be sent.
    segments: u64,
    left: u64,
    /// The window that has room for less than a super-segment, which therefore waits.
    deferred: Option<SendLimit>,
}

impl Tso {
    /// Whether segments of a super-segment must still be sent.
    pub(super) fn is_under_way(&self) -> bool {
        self.left > 0
    }

    /// Called when nothing more is sent now. Returns the window for which data is deferred, if any.
    pub(super) fn finish(&mut self) -> Option<SendLimit> {
        std::mem::take(self).deferred
    }
}

impl Sender {
    /// True if the next new segment may leave: it continues a super-segment, or begins one that need not wait.
    pub(super) fn tso_allows_new(&mut self, now: Instant) -> bool {
        let is_paced = self.is_paced();
        if !self.config.tso {
            return self.small_queue_allows(now, |sender| if is_paced { u64::from(sender.burst()) } else { 1 });
        }
        if self.transmit.tso.left == 0 {
            let push = self.write_queue.push;
            if push == Push::Nothing || is_paced && !self.path.pacer.allows_burst(now) {
                return false;
            }
            let snd_nxt = self.scoreboard.snd_nxt();
            let cwnd = u64::from(self.path.decision.cwnd);
            let (cwnd_room, snd_wnd_room) = (cwnd - u64::from(self.in_flight()), self.snd_wnd_end - snd_nxt);
            let room = cwnd_room.min(snd_wnd_room);
            if self.config.release >= LinuxRelease::V6_12 && !self.is_subflow() {
                let segments = cwnd_room.min((cwnd / 2).max(1)).min(u64::from(self.burst()));
                self.write_queue.grow_head(snd_nxt, segments);
            }
            let (in_buffer, is_tail) = self.write_queue.head(snd_nxt);
            // A super-segment usually has two segments or more; their number matters only if there is room for them.
            let goal = u64::from(if room < 2 { self.least_burst() } else { self.burst() });
            // The latest buffer may get more data.
            let may_wait = in_buffer > 1 && room < goal && (is_tail || room < in_buffer);
            self.transmit.tso.deferred = None;
            if may_wait && push == Push::Pending && self.may_defer(now, room, is_paced) {
                let is_cwnd = cwnd_room < snd_wnd_room;
                let limit = if is_cwnd { SendLimit::CongestionWindow } else { SendLimit::ReceiveWindow };
                self.transmit.tso.deferred = (room <= in_buffer).then_some(limit);
                return false;
            }
            let segments = room.min((cwnd / 2).max(1)).min(goal).min(in_buffer);
            if !self.small_queue_allows(now, |_| segments) {
                self.write_queue.cut_head(snd_nxt + segments); // Linux cuts before it looks
                return false;
            }
            if push == Push::One {
                self.write_queue.push = Push::Nothing;
            }
            self.begin_super_segment(segments);
        }
        self.transmit.tso.left -= 1;
        true
    }

    /// Begins the super-segment of a tail-loss probe. It does not wait, and is one segment if the window has no room.
    /// Returns its number of segments.
    pub(super) fn begin_probe(&mut self) -> u64 {
        if !self.config.tso {
            return 1;
        }
        let snd_nxt = self.scoreboard.snd_nxt();
        let cwnd = u64::from(self.path.decision.cwnd);
        let cwnd_room = cwnd.saturating_sub(u64::from(self.in_flight())).min(cwnd / 2).max(1);
        let (in_buffer, _) = self.write_queue.head(snd_nxt);
        let segments = cwnd_room.min(self.snd_wnd_end - snd_nxt).min(u64::from(self.burst())).min(in_buffer);
        self.begin_super_segment(segments);
        self.transmit.tso.left -= 1;
        segments
    }

    fn begin_super_segment(&mut self, segments: u64) {
        (self.transmit.tso.segments, self.transmit.tso.left) = (segments, segments);
    }

    /// Called when a new segment is sent. Returns whether it has PSH: it ends a super-segment of several (Linux
    /// `__tcp_transmit_skb`), or a buffer that is pushed.
    pub(super) fn tso_on_sent(&mut self, now: Instant) -> bool {
        let Tso { segments, left, .. } = self.transmit.tso;
        let is_pushed = self.write_queue.on_sent(self.scoreboard.snd_nxt());
        if left == 0 {
            self.scoreboard.end_super_segment();
            // The window may have room for another one at this point (Linux `tcp_event_new_data_sent`).
            self.check_space(now);
        }
        is_pushed || segments > 1 && left == 0
    }

    /// Charges the pacer for a super-segment whose first segment is sent now, at the rate that the controller has set at
    /// the end of an idle time.
    pub(super) fn pace_super_segment(&mut self, now: Instant) {
        let Tso { segments, left, .. } = self.transmit.tso;
        if self.config.tso && left + 1 == segments && self.is_paced() {
            let bytes = self.paced_bytes(self.scoreboard.snd_nxt(), segments);
            self.path.pacer.on_super_segment(now, segments, bytes, self.pacing_rate());
        }
    }

    /// Whether the segment just polled, the last one so far of a super-segment of `segments`, would be followed by one
    /// of the same super-segment if another one were polled now.
    #[must_use]
    pub fn continues_super_segment(&self, segment: &Segment, segments: u32) -> bool {
        if segment.kind != SegmentKind::Data {
            return false;
        }
        if !segment.retransmission {
            return self.transmit.tso.is_under_way();
        }
        segments < self.burst() && !(segment.seq + 1).is_multiple_of(self.full_buffer())
    }

    /// Number of segments of a super-segment, or of a burst (Linux `tcp_tso_autosize`).
    pub(super) fn burst(&self) -> u32 {
        self.path.burst_of_at_least(self.least_burst(), self.pacing_rate(), self.config.mss)
    }

    /// Minimum number of segments of a super-segment: one for a slow sender whose controller paces
    /// (`bbr_min_tso_segs`).
    fn least_burst(&self) -> u32 {
        if self.path.decision.pacing_rate.is_some_and(|rate| rate < MIN_TSO_RATE) { 1 } else { 2 }
    }

    /// True if data may wait for the next acknowledgement when `room` segments have room.
    #[inline]
    fn may_defer(&self, now: Instant, room: u64, is_paced: bool) -> bool {
        let window = u64::from(self.path.decision.cwnd).min(self.snd_wnd_end - self.scoreboard.snd_una());
        let last_sent = if is_paced { self.path.pacer.next_send_time() } else { self.path.last_sent() };
        let last_departure = self.answered_discarded.map_or(last_sent, |answered| answered.max(last_sent));
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
