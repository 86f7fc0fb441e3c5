//! TSO autosizing and deferral (Linux 6.1.192 `tcp_tso_autosize`, `tcp_tso_should_defer`). New data leaves in
//! super-segments, also where the device offloads nothing; less than one waits for the next acknowledgement if that is
//! near: within half of the smoothed RTT, and since the stable kernels of October 2025 within a millisecond.

use super::Sender;
use crate::path::SendLimit;
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
        if self.is_paced() {
            let burst = |sender: &Self| u64::from(sender.path.burst(sender.pacing_rate(), sender.config.mss));
            return self.small_queue_allows(now, burst);
        }
        if self.transmit.tso.left == 0 {
            let snd_nxt = self.scoreboard.snd_nxt();
            let cwnd = u64::from(self.path.decision.cwnd);
            let (cwnd_room, snd_wnd_room) = (cwnd - u64::from(self.in_flight()), self.snd_wnd_end - snd_nxt);
            let room = cwnd_room.min(snd_wnd_room);
            let buffer = u64::from((SIZE_GOAL / self.config.mss).max(1));
            let in_buffer = (buffer - snd_nxt % buffer).min(self.write_seq - snd_nxt);
            let goal = u64::from(self.path.burst(self.pacing_rate(), self.config.mss));
            if in_buffer > 1 && room < goal && room < in_buffer && self.may_defer(now, room) {
                let is_cwnd = cwnd_room < snd_wnd_room;
                self.transmit.tso.deferred =
                    Some(if is_cwnd { SendLimit::CongestionWindow } else { SendLimit::ReceiveWindow });
                return false;
            }
            let segments = room.min((cwnd / 2).max(1)).min(goal).min(in_buffer);
            if !self.small_queue_allows(now, |_| segments) {
                return false;
            }
            self.transmit.tso.left = segments;
        }
        self.transmit.tso.left -= 1;
        true
    }

    /// True if data for a room of `room` segments may wait for the next acknowledgement.
    fn may_defer(&self, now: Instant, room: u64) -> bool {
        let window = u64::from(self.path.decision.cwnd).min(self.snd_wnd_end - self.scoreboard.snd_una());
        if self.path.ca_state >= CaState::Recovery
            || now.since(self.path.last_sent()) > MAX_DEFERRAL
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
