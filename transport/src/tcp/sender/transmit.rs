//! The next segment to send (Linux `tcp_output.c`): a probe, a retransmission, or new data, as the congestion window, the
//! receive window and the pacer allow.

use super::{Output, Sender, SenderConfig, timers::Timer};
use crate::path::{ControllerHandle, SendLimit};
use crate::tcp::{Ack, Segment, SegmentKind, timestamp};
use control::{CaState, Cause, PathEvent};
use units::Instant;

/// State of [`Sender::poll`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transmit {
    tlp: TlpState,
    /// Whether retransmissions wait, because an undo is likely (F-RTO step 2b, partial undo).
    pub frto_new_data: bool,
    /// Whether F-RTO has not yet decided if the timeout was spurious (Linux `tp->frto`).
    pub frto: bool,
    /// Whether the next new segment carries CWR.
    pub cwr_pending: bool,
    /// Whether the host's own queue dropped a segment, so that nothing more is sent until the next input.
    local_drop: bool,
    /// Whether a retransmission beyond the receive window has been tried since the latest input.
    pub has_tried_retransmission: bool,
    /// Whether new data was sent since the congestion window was validated.
    has_sent_new: bool,
    /// Whether the latest input allows no new data, although there may be room: a discarded acknowledgement, or the
    /// probe timer, except for the probe.
    pub holds_new_data: bool,
    /// Whether the closed receive window must be probed.
    pub is_window_probe_due: bool,
    pub tso: super::tso::Tso,
}

/// A tail-loss probe (RFC 8985 section 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TlpState {
    #[default]
    None,
    Requested,
    Outstanding {
        tlp_high_seq: u64,
        retransmission: Option<u64>,
    },
}

impl Transmit {
    pub(super) fn request_tlp(&mut self) {
        self.tlp = TlpState::Requested;
    }

    pub(super) fn clear_tlp(&mut self) {
        self.tlp = TlpState::None;
    }

    pub(super) fn tlp_outstanding(&self) -> bool {
        matches!(self.tlp, TlpState::Outstanding { .. })
    }

    pub(super) fn tlp_retransmitted(&self) -> bool {
        matches!(self.tlp, TlpState::Outstanding { retransmission: Some(_), .. })
    }
}

impl Sender {
    /// Returns the next segment, or the deadline of the next poll if there is nothing to send now.
    pub fn poll(&mut self, now: Instant, controller: &mut ControllerHandle) -> Output {
        if !self.is_established() {
            return self.poll_unestablished(now);
        }
        loop {
            if self.has_begun_buffer() {
                self.restart_after_idle(now, controller);
            }
            if let Some(segment) = self.next_segment(now, controller) {
                return Output::Transmit(segment);
            }
            if !self.fill_buffer(now) {
                return Output::WaitUntil(self.finish_transmit(now, controller));
            }
        }
    }

    fn next_segment(&mut self, now: Instant, controller: &mut ControllerHandle) -> Option<Segment> {
        if self.transmit.tlp == TlpState::Requested {
            let probe = self.send_tlp(now, controller);
            self.on_tlp(now, probe.is_some());
            return probe;
        }
        if std::mem::take(&mut self.transmit.is_window_probe_due) && self.is_window_closed() {
            self.restart_persist_timer(now);
            return Some(self.window_probe(now));
        }
        // At a timeout the head is sent again whatever the pacer allows (Linux `tcp_retransmit_timer`).
        let must_wait = self.path.pacer.next_send_time() > now
            && !self.transmit.tso.is_under_way()
            && self.timers.expired != Some(Timer::Retransmission);
        if must_wait {
            self.end_frto_sending();
        }
        if !self.path.has_room(self.in_flight()) || self.transmit.local_drop || must_wait {
            return None;
        }
        let counts = self.scoreboard.counts();
        if self.path.ca_state >= CaState::Recovery
            && !self.transmit.frto_new_data
            && counts.retrans_out < counts.lost_out
            && let Some(seq) = self.scoreboard.next_lost()
        {
            if seq < self.snd_wnd_end || seq == self.scoreboard.snd_una() {
                return self.small_queue_allows_retransmission(now).then(|| self.retransmit(now, seq, controller));
            }
            self.count_failed_retransmission(now, seq);
        }
        let holds_new_data = self.transmit.holds_new_data && !self.transmit.tso.is_under_way();
        (!holds_new_data && self.can_send_new() && self.tso_allows_new(now)).then(|| self.send_new(now, controller))
    }

    /// Data that F-RTO may send after an acknowledgement is sent at once or not at all. Once the pacer has caused a
    /// wait, lost packets come first (Linux `tcp_xmit_recovery`, `tcp_tsq_handler`).
    fn end_frto_sending(&mut self) {
        let is_tested = self.scoreboard.snd_nxt() > self.path.high_seq;
        if std::mem::take(&mut self.transmit.frto_new_data) && !is_tested {
            self.transmit.frto = false;
        }
    }

    /// True if there is unsent data for which the receive window and the send buffer have room.
    pub(super) fn can_send_new(&self) -> bool {
        self.scoreboard.snd_nxt() < self.write_end() && self.send_limit().is_none()
    }

    /// True if there is unsent data, nothing is outstanding, and the receive window has no room.
    fn is_window_closed(&self) -> bool {
        self.scoreboard.counts().packets_out == 0
            && self.scoreboard.snd_nxt() < self.write_seq
            && self.scoreboard.snd_nxt() >= self.snd_wnd_end
    }

    fn window_probe(&mut self, now: Instant) -> Segment {
        self.path.pacer.on_pure_ack(now);
        let (kind, seq) = (SegmentKind::WindowProbe, self.scoreboard.snd_nxt());
        Segment {
            kind,
            seq,
            tsval: timestamp(now),
            tsecr: self.ts_recent,
            cwr: false,
            retransmission: false,
            psh: false,
        }
    }

    fn send_limit(&self) -> Option<SendLimit> {
        let packets_out = self.scoreboard.counts().packets_out;
        if self.scoreboard.snd_nxt() >= self.snd_wnd_end || packets_out >= self.config.window_clamp {
            Some(SendLimit::ReceiveWindow)
        } else {
            let has_more = self.write_end() < self.write_seq || self.write_queue.is_connection_full;
            let is_full = self.scoreboard.snd_nxt() == self.write_end() && has_more;
            is_full.then_some(SendLimit::SendBuffer)
        }
    }

    #[inline]
    fn send_new(&mut self, now: Instant, controller: &mut ControllerHandle) -> Segment {
        let counts = self.scoreboard.counts();
        self.path.begin_sending(now, counts.in_flight(), counts.packets_out > 0, controller);
        self.pace_super_segment(now);
        let snapshot = self.path.on_sent(now, counts.packets_out > 0, counts.in_flight() + 1, 1);
        let seq = self.scoreboard.push(now, snapshot);
        self.on_new_data(now, counts.packets_out == 0);
        self.transmit.has_sent_new = true;
        self.counters.sent += 1;
        let segment = self.segment(now, seq, false);
        Segment { psh: self.tso_on_sent(now), ..segment }
    }

    /// Nothing is sent again beyond a window that has shrunk. But Linux counts the attempt, once per input, as one more
    /// retransmission that a DSACK must report before an undo (`tcp_retransmit_skb`).
    fn count_failed_retransmission(&mut self, now: Instant, seq: u64) {
        if !std::mem::replace(&mut self.transmit.has_tried_retransmission, true) {
            self.undo.on_retransmission(timestamp(now), self.scoreboard.buffer_segments(seq));
        }
    }

    fn retransmit(&mut self, now: Instant, seq: u64, controller: &mut ControllerHandle) -> Segment {
        self.path.begin_sending(now, self.in_flight(), true, controller);
        let room = self.path.decision.cwnd.saturating_sub(self.in_flight()).min(self.burst()).max(1);
        self.scoreboard.split_retransmission(seq, u64::from(room));
        let snapshot = self.path.on_sent(now, true, self.in_flight() + 1, 1);
        self.scoreboard.retransmit(seq, now, snapshot);
        self.undo.on_retransmission(timestamp(now), 1);
        self.counters.sent += 1;
        self.counters.retransmitted += 1;
        let segment = self.segment(now, seq, true);
        if seq == self.scoreboard.snd_una() {
            self.on_head_retransmitted(now);
        }
        segment
    }

    fn segment(&mut self, now: Instant, seq: u64, retransmission: bool) -> Segment {
        // A super-segment was paced at its beginning.
        if retransmission && self.is_paced() {
            let segments = self.scoreboard.buffer_segments(seq);
            let (bytes, rate) = (self.paced_bytes(seq, u64::from(segments)), self.pacing_rate());
            self.path.pacer.on_retransmission(now, segments, bytes, rate);
        } else if self.is_paced() && !self.config.tso {
            let burst = if self.paces_single_segments { 1 } else { self.burst() };
            self.path.pace_burst_of(burst, now, self.paced_bytes(seq, 1) as u32, self.pacing_rate());
        }
        let cwr = !retransmission && std::mem::take(&mut self.transmit.cwr_pending);
        Segment {
            kind: SegmentKind::Data,
            seq,
            tsval: timestamp(now),
            tsecr: self.ts_recent,
            cwr,
            retransmission,
            psh: false,
        }
    }

    /// True if segments are paced: the controller requests it, or the host paces every algorithm.
    pub(super) fn is_paced(&self) -> bool {
        self.path.decision.pacing_rate.is_some() || self.config.pacing
    }

    /// Bytes of these segments that are paced. TCP's own pacing counts payload (Linux `tcp_update_skb_after_send`), the fq
    /// discipline whole packets.
    pub(super) fn paced_bytes(&self, seq: u64, segments: u64) -> u64 {
        let SenderConfig { mss, packet_bytes, pacing, .. } = self.config;
        let payload = self.write_queue.payload(seq, seq + segments, mss);
        if pacing { payload + segments * u64::from(packet_bytes - mss) } else { payload }
    }

    /// Handles a full queue of the host: the packet stays unsent and the window is reduced at once, as in Linux.
    pub(super) fn on_local_drop(&mut self, now: Instant, segment: Segment, controller: &mut ControllerHandle) {
        if segment.kind != SegmentKind::Data {
            return;
        }
        self.path.sent_since_sample = self.path.sent_since_sample.saturating_sub(1);
        self.counters.sent -= 1;
        if segment.retransmission {
            self.counters.retransmitted -= 1;
            self.scoreboard.clear_retransmission(segment.seq);
            self.scoreboard.mark_lost(segment.seq);
        } else {
            self.scoreboard.remove_newest();
        }
        self.transmit.local_drop = true;
        self.enter_cwr(now, Cause::LocalDrop, controller);
    }

    /// Called when nothing more can be sent. Records the limit, and returns the deadline of the next poll.
    fn finish_transmit(&mut self, now: Instant, controller: &mut ControllerHandle) -> Instant {
        let counts = self.scoreboard.counts();
        let host_queue_room_at = self.small_queue.finish();
        let host_queue_limit = host_queue_room_at.map(|_| SendLimit::HostQueue);
        let limit = self.transmit.tso.finish().or(host_queue_limit).or_else(|| self.send_limit());
        // A full send buffer is the host's limit, not the application's lack of data.
        let cwnd_full = self.validate_cwnd(now, limit, controller);
        let limit = if cwnd_full { None } else { limit };
        self.set_persist_timer(now, self.is_window_closed());
        if limit == Some(SendLimit::SendBuffer) && !self.config.tso {
            self.check_app_limited();
        }
        let local_drop = std::mem::take(&mut self.transmit.local_drop);
        // Retransmissions are a burst, which new data does not continue.
        self.path.pacer.end_burst();
        let send_time = self.path.pacer.next_send_time();
        let has_more = || self.can_send_new() || counts.lost_out > counts.retrans_out;
        let is_pacing = send_time > now && !cwnd_full && !local_drop && has_more();
        self.account_limit(now, limit, cwnd_full, send_time > now || host_queue_room_at.is_some() || local_drop);
        let send_time = if is_pacing { send_time } else { Instant::NEVER };
        self.finish_timers(now);
        let deadline = self.deadline().min(self.write_queue.deadline()).min(send_time);
        deadline.min(host_queue_room_at.unwrap_or(Instant::NEVER))
    }

    /// Validates the congestion window if there was new data to send (Linux `tcp_write_xmit`), because retransmissions
    /// alone show nothing. Returns whether the window limits the sender now.
    fn validate_cwnd(&mut self, now: Instant, limit: Option<SendLimit>, controller: &mut ControllerHandle) -> bool {
        let cwnd_full = limit == Some(SendLimit::CongestionWindow) || !self.path.has_room(self.in_flight());
        let has_unsent = self.scoreboard.snd_nxt() < self.write_end() && self.timers.expired.is_none();
        if std::mem::take(&mut self.transmit.has_sent_new) || has_unsent && cwnd_full {
            // An application that waits for memory does have data to send, whatever the receiver's window.
            let is_waiting = limit == Some(SendLimit::ReceiveWindow) && self.write_queue.is_waiting();
            let limit = if is_waiting { Some(SendLimit::SendBuffer) } else { limit };
            self.path.validate_cwnd(now, &self.outstanding(), limit, controller);
        }
        cwnd_full
    }

    /// Marks delivery-rate samples as application-limited if there is nothing to send although the congestion window
    /// has room (Linux `tcp_rate_check_app_limited`, called at each write).
    pub(super) fn check_app_limited(&mut self) {
        let counts = self.scoreboard.counts();
        if self.path.has_room(counts.in_flight()) && counts.lost_out <= counts.retrans_out {
            self.path.rate.mark_app_limited(counts.in_flight());
        }
    }

    /// Sends a tail-loss probe (Linux `tcp_send_loss_probe`): new data if there is any, otherwise the last segment
    /// again.
    #[cold]
    fn send_tlp(&mut self, now: Instant, controller: &mut ControllerHandle) -> Option<Segment> {
        self.transmit.tlp = TlpState::None;
        if self.scoreboard.counts().packets_out == 0 {
            return None;
        }
        self.counters.tlp_probes += 1;
        if self.can_send_new() {
            let tlp_high_seq = self.scoreboard.snd_nxt() + self.begin_probe();
            self.transmit.tlp = TlpState::Outstanding { tlp_high_seq, retransmission: None };
            return Some(self.send_new(now, controller));
        }
        let last = self.scoreboard.snd_nxt() - 1;
        let packet = self.scoreboard.packet(last);
        // Beyond a window that has shrunk, only the head is sent again (Linux `__tcp_retransmit_skb`).
        let is_beyond_window = last >= self.snd_wnd_end && last != self.scoreboard.snd_una();
        if packet.is_sacked() || packet.is_retransmitted() || is_beyond_window {
            return None;
        }
        let snapshot = self.path.on_sent(now, true, self.in_flight() + 1, 1);
        self.scoreboard.split_last(last);
        self.scoreboard.retransmit_as_tlp(last, now, snapshot);
        self.counters.sent += 1;
        self.counters.retransmitted += 1;
        // PRR does not count it as sent (Linux: only `tcp_write_xmit` and `tcp_xmit_retransmit_queue` raise `prr_out`).
        self.path.sent_since_sample -= 1;
        let segment = self.segment(now, last, true);
        self.transmit.tlp =
            TlpState::Outstanding { tlp_high_seq: self.scoreboard.snd_nxt(), retransmission: Some(last) };
        Some(segment)
    }

    /// True if a DSACK block reports the tail-loss probe and nothing else.
    pub(super) fn dsack_reports_tlp(&self, block: (u64, u64)) -> bool {
        matches!(self.transmit.tlp, TlpState::Outstanding { retransmission: Some(seq), .. } if block == (seq, seq + 1))
    }

    /// Determines whether a tail-loss probe repaired a loss (RFC 8985 section 7.4.2, Linux `tcp_process_tlp_ack`).
    #[inline(always)]
    pub(super) fn process_tlp_ack(
        &mut self,
        now: Instant,
        ack: &Ack,
        outcome: &super::ack::AckOutcome,
        controller: &mut ControllerHandle,
    ) {
        if self.transmit.tlp_outstanding() {
            self.process_outstanding_tlp(now, ack, outcome, controller);
        }
    }

    #[inline(never)]
    fn process_outstanding_tlp(
        &mut self,
        now: Instant,
        ack: &Ack,
        outcome: &super::ack::AckOutcome,
        controller: &mut ControllerHandle,
    ) {
        let TlpState::Outstanding { tlp_high_seq, retransmission } = self.transmit.tlp else { return };
        if ack.ack < tlp_high_seq {
            return;
        }
        if retransmission.is_none() || outcome.dsack_of_tlp {
            self.transmit.clear_tlp();
        } else if ack.ack > tlp_high_seq {
            self.transmit.clear_tlp();
            if self.path.ca_state < CaState::Cwr {
                self.counters.tlp_recoveries += 1;
                self.transmit.cwr_pending = self.config.ecn;
                let in_flight = self.in_flight();
                let (cause, by_timer) = (Cause::TlpRecovery, false);
                let event = PathEvent::Congestion { cause, reduce_cwnd: true, in_flight, by_timer };
                self.path.notify(now, &event, controller);
                self.try_keep_open();
            }
        } else if outcome.is_dupack && !outcome.newly_sacked {
            self.transmit.clear_tlp();
        }
    }
}
