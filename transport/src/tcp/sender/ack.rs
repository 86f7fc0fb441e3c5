//! Processing of one acknowledgement: SACK blocks, cumulative progress, RTT, delivery rate; then the recovery state
//! machine, the timers, and the controller. The order is Linux's (`tcp_ack`), because several algorithms depend on it.

use super::Sender;
use crate::path::{AckedPackets, ControllerHandle, PriorState};
use crate::recovery::{PacketCounts, SentPacket};
use crate::tcp::segment::ACE_CYCLE;
use crate::tcp::{Ack, timestamp};
use control::{CaState, Cause, LinuxRelease};
use units::{Instant, Span};

/// Milliseconds by which a timestamp may be older than the latest one (Linux `TCP_PAWS_WINDOW`).
const TIMESTAMP_GRANULARITY: u32 = 1;
/// Minimum time between two answers to discarded acknowledgements (`tcp_invalid_ratelimit`).
const ANSWER_INTERVAL: Span = Span::from_millis(500);

/// Results of one acknowledgement (Linux `FLAG_*` and `tcp_sacktag_state`).
#[derive(Debug, Default)]
pub(super) struct AckOutcome {
    /// Packets acknowledged, for the controller.
    pub acked: AckedPackets,
    /// Whether anything was newly SACKed.
    pub newly_sacked: bool,
    /// Packets that SACK blocks report as delivered, duplicates included.
    sack_delivered: u32,
    /// Whether a duplicate was reported (DSACK).
    pub dsack: bool,
    /// Whether the DSACK reports the tail-loss probe.
    pub dsack_of_tlp: bool,
    /// Whether the receive window is updated.
    pub updates_window: bool,
    /// Whether it is a duplicate acknowledgement in the sense of RFC 5681.
    pub is_dupack: bool,
    /// Whether the retransmission and probe timers must be restarted (Linux `FLAG_SET_XMIT_TIMER`).
    pub set_timers: bool,
    /// Whether never-retransmitted data below `high_seq` was delivered: F-RTO's proof (Linux `FLAG_ORIG_SACK_ACKED`).
    pub orig_sack_acked: bool,
    /// Whether retransmitted data was cumulatively acknowledged (Karn: no RTT sample).
    pub retransmission_acked: bool,
    /// Whether an outstanding retransmission was found lost.
    pub lost_retransmission: bool,
    /// ECN echo, or with accurate ECN new marks.
    pub ece: bool,
    /// With accurate ECN: newly counted marks.
    pub marks: u32,
    /// Echoed timestamp, milliseconds.
    pub tsecr: u32,
    one_way_delay: Span,
    /// The lowest packet that was delivered after later ones.
    reordered: Option<u64>,
    acked_times: Option<(Instant, Instant)>,
    sacked_times: Option<(Instant, Instant)>,
}

/// State of the scoreboard before the acknowledgement.
#[derive(Debug)]
pub(super) struct PriorScoreboard {
    pub una: u64,
    pub counts: PacketCounts,
    pub sacked_end: u64,
}

/// Extends a (first, last) pair of send times.
fn extend_times(times: &mut Option<(Instant, Instant)>, sent: Instant) {
    *times = Some((times.map_or(sent, |(first, _)| first), sent));
}

impl Sender {
    #[inline(never)]
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack, controller: &mut ControllerHandle) {
        (self.last_rtt, self.last_delivery) = (None, None);
        if ack.ack > self.scoreboard.snd_nxt() {
            return; // acknowledges what was never sent
        }
        if self.is_discarded_by_paws(ack) {
            self.transmit.holds_new_data = true;
            self.answer_discarded(now);
            return;
        }
        self.write_queue.on_ack();
        let prior_state = self.path.prior_state(self.in_flight());
        let prior = self.prior_scoreboard();
        let mut outcome = AckOutcome {
            ece: ack.ece && self.config.ecn,
            tsecr: ack.tsecr,
            one_way_delay: Span::from_millis(u64::from(ack.one_way_delay_ms)),
            ..AckOutcome::default()
        };
        if ack.ack < prior.una {
            return self.on_old_ack(now, ack, &mut outcome, &prior, controller);
        }
        outcome.acked.advanced = ack.ack > prior.una;
        if outcome.acked.advanced {
            self.timers.retransmits = 0;
        }
        if self.config.accurate_ecn {
            outcome.marks = self.new_marks(ack, outcome.acked.advanced);
            outcome.ece = outcome.marks > 0;
        }
        outcome.acked.is_predicted = ack.tsval >= self.ts_recent
            && ack.receive_window == self.predicted_wnd
            && ack.sack_blocks.is_empty()
            && !outcome.ece;
        self.ts_recent = self.ts_recent.max(ack.tsval);
        outcome.updates_window = self.read_window(now, ack, outcome.acked.advanced, controller);
        self.read_sack_blocks(now, ack, &mut outcome);
        self.path.rate.count(outcome.sack_delivered);
        outcome.is_dupack = !(outcome.acked.advanced || outcome.dsack || outcome.updates_window);
        if prior.counts.packets_out == 0 {
            self.timers.restart_persist();
            let outstanding = self.outstanding();
            self.path.report_progress(now, &prior_state, &outcome.acked, &outstanding, controller);
            if outcome.dsack {
                self.fast_retransmit_alert(now, &mut outcome, &prior, controller);
            }
            return self.process_tlp_ack(now, ack, &outcome, controller);
        }
        self.clean_rtx_queue(now, ack.ack, &mut outcome, &prior);
        outcome.acked.rtt = self.update_rtt(now, &mut outcome, &prior);
        self.check_sack_reordering(&mut outcome);
        self.rack.update_reo_wnd(outcome.acked.rate_sample.prior_delivered(), self.path.rate.delivered());
        if self.is_dubious(&outcome) || self.transmit.tlp_outstanding() {
            outcome.acked.marked = self.newly_marked(&outcome, &prior_state);
            outcome.acked.one_way_delay = self.one_way_delay(&outcome, &prior_state);
            let outstanding = self.outstanding();
            self.path.report_progress(now, &prior_state, &outcome.acked, &outstanding, controller);
        }
        self.process_tlp_ack(now, ack, &outcome, controller);
        // Checked again, because a loss repaired by the probe changes the congestion state.
        if self.is_dubious(&outcome) {
            self.fast_retransmit_alert(now, &mut outcome, &prior, controller);
        }
        if outcome.set_timers {
            self.set_timer_after_ack(now);
        }
        self.finish_ack(now, &mut outcome, &prior, &prior_state, controller);
    }

    /// PAWS (RFC 7323 section 5.3): a later acknowledgement has overtaken this one by more than the clock's
    /// granularity. Linux still accepts some duplicates (`tcp_disordered_ack`): of the oldest outstanding segment,
    /// without a new window, and no older than the retransmission timeout.
    fn is_discarded_by_paws(&self, ack: &Ack) -> bool {
        let age = self.ts_recent.saturating_sub(ack.tsval);
        self.config.timestamps && age > TIMESTAMP_GRANULARITY && {
            let updates_window = self.window_edge(ack) > self.snd_wnd_edge;
            let is_recent = Span::from_millis(u64::from(age)) <= self.rto_with_backoff();
            !(ack.ack == self.scoreboard.snd_una() && !updates_window && is_recent)
        }
    }

    /// Answers a discarded acknowledgement with a separate one, at most once per half second (`tcp_send_dupack`,
    /// `tcp_invalid_ratelimit`). The receiver has no use for the answer, so it is not sent, but it counts as a
    /// departure.
    fn answer_discarded(&mut self, now: Instant) {
        if self.answered_discarded.is_none_or(|prior| now.since(prior) >= ANSWER_INTERVAL) {
            self.answered_discarded = Some(now);
            self.path.pacer.on_pure_ack(now);
        }
    }

    /// New marks by the ACE field since the latest acknowledgement (RFC 9768 section 3.2.2). They are fewer than eight,
    /// as the receiver acknowledges every second one. An acknowledgement that another one may have overtaken counts
    /// none.
    fn new_marks(&mut self, ack: &Ack, advanced: bool) -> u32 {
        if !advanced && (ack.sack_blocks.is_empty() || ack.tsval < self.ts_recent) {
            return 0;
        }
        let marks = (ack.ace % ACE_CYCLE + ACE_CYCLE - self.ace) % ACE_CYCLE;
        self.ace = ack.ace % ACE_CYCLE;
        u32::from(marks)
    }

    fn prior_scoreboard(&self) -> PriorScoreboard {
        PriorScoreboard {
            una: self.scoreboard.snd_una(),
            counts: self.scoreboard.counts(),
            sacked_end: self.scoreboard.sacked_end(),
        }
    }

    /// Handles an acknowledgement older than `snd_una`: only its SACK blocks count, not an echo of congestion. What they
    /// report does not count as delivered (Linux `tcp_ack`, `old_ack`).
    fn on_old_ack(
        &mut self,
        now: Instant,
        ack: &Ack,
        outcome: &mut AckOutcome,
        prior: &PriorScoreboard,
        controller: &mut ControllerHandle,
    ) {
        if ack.sack_blocks.is_empty() {
            return;
        }
        outcome.ece = false;
        self.read_sack_blocks(now, ack, outcome);
        self.fast_retransmit_alert(now, outcome, prior, controller);
    }

    /// Updates the receive window; a change while data waits restarts an idle congestion window, as a write does. Returns
    /// whether the acknowledgement's window counts.
    fn read_window(&mut self, now: Instant, ack: &Ack, advanced: bool, controller: &mut ControllerHandle) -> bool {
        let prior_wnd = self.snd_wnd;
        let updates = self.update_window(ack, advanced);
        if self.snd_wnd != prior_wnd && self.scoreboard.snd_nxt() < self.write_end() {
            self.restart_after_idle(now, controller);
        }
        updates
    }

    /// Updates the receive window, whose right edge may move back (RFC 9293 section 3.8.6). An acknowledgement that
    /// advances has the latest window. Any other one may have been overtaken. It counts if its window is larger or the
    /// first, or, since Linux 6.6, closed (`tcp_may_update_window`). Returns whether it counts.
    fn update_window(&mut self, ack: &Ack, advanced: bool) -> bool {
        self.write_queue.on_window(ack.receive_window);
        if self.is_subflow() {
            self.set_window(ack.receive_window);
            return false;
        }
        let edge = self.window_edge(ack);
        let closes = ack.receive_window == 0 && self.config.release > LinuxRelease::V6_1;
        let is_first = std::mem::take(&mut self.snd_wnd_is_syns);
        let updates = advanced || edge > self.snd_wnd_edge || closes || is_first;
        if updates {
            self.set_window(ack.receive_window);
            self.snd_wnd_edge = edge;
            self.snd_wnd_end = edge / u64::from(self.config.mss);
        }
        updates
    }

    /// Header prediction expects a window different from that of the answer to the SYN (Linux `tcp_fast_path_on`).
    fn set_window(&mut self, window: u64) {
        if window != self.snd_wnd {
            self.predicted_wnd = window;
        }
        self.snd_wnd = window;
    }

    /// The right edge of the receive window of an acknowledgement, bytes.
    fn window_edge(&self, ack: &Ack) -> u64 {
        ack.ack.saturating_mul(u64::from(self.config.mss)).saturating_add(ack.receive_window)
    }

    fn finish_ack(
        &mut self,
        now: Instant,
        outcome: &mut AckOutcome,
        prior: &PriorScoreboard,
        prior_state: &PriorState,
        controller: &mut ControllerHandle,
    ) {
        outcome.acked.marked = self.newly_marked(outcome, prior_state);
        let has_reordering = self.rack.reordering() > self.config.reordering;
        outcome.acked.one_way_delay = self.one_way_delay(outcome, prior_state);
        outcome.acked.ack_delayed = self.is_ack_delayed(outcome, prior);
        let acked = &mut outcome.acked;
        acked.newest_lost = self.scoreboard.take_last_lost();
        acked.may_raise_cwnd = acked.pkts_acked > 0 || has_reordering && outcome.newly_sacked;
        let outstanding = self.outstanding();
        self.last_delivery = self.path.finish_ack(now, prior_state, acked, &outstanding, controller);
        if self.path.is_asked_to_reduce(controller) {
            self.enter_cwr(now, Cause::Requested, controller);
        }
        self.update_pacing_rate();
    }

    fn one_way_delay(&self, outcome: &AckOutcome, prior_state: &PriorState) -> Option<Span> {
        let has_delivered = self.path.delivered_since(prior_state) > 0;
        (has_delivered && self.config.timestamps).then_some(outcome.one_way_delay)
    }

    /// Packets newly reported as CE-marked. With ECN echoes, these are all packets that an acknowledgement with the
    /// echo delivers.
    #[inline]
    fn newly_marked(&self, outcome: &AckOutcome, prior_state: &PriorState) -> u32 {
        match outcome.ece {
            true if self.config.accurate_ecn => outcome.marks,
            true => self.path.delivered_since(prior_state),
            false => 0,
        }
    }

    /// Marks the packets that the SACK blocks newly cover (Linux `tcp_sacktag_write_queue`).
    #[inline(always)]
    fn read_sack_blocks(&mut self, now: Instant, ack: &Ack, outcome: &mut AckOutcome) {
        if ack.sack_blocks.is_empty() {
            self.recv_sack_cache.truncate(0);
        } else if self.config.sack {
            self.mark_sacked(now, ack, outcome);
        }
    }

    #[inline(never)]
    fn mark_sacked(&mut self, now: Instant, ack: &Ack, outcome: &mut AckOutcome) {
        let mut blocks = ack.sack_blocks.iter();
        let Some(first) = blocks.next() else { return };
        let is_duplicate =
            first.0 < ack.ack || blocks.next().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
        if is_duplicate {
            self.on_dsack(first, outcome);
        }
        // A block of anything but outstanding data above the acknowledgement is ignored as a whole (Linux
        // `tcp_is_sackblock_valid`).
        let (una, nxt) = (self.scoreboard.snd_una().max(ack.ack), self.scoreboard.snd_nxt());
        let is_valid = |block: &(u64, u64)| una < block.0 && block.0 < block.1 && block.1 <= nxt;
        let prior_blocks = std::mem::take(&mut self.recv_sack_cache);
        ack.sack_blocks.iter().filter(is_valid).for_each(|block| self.recv_sack_cache.push(block));
        // In the order of the data (Linux sorts them, too): a packet below another new block of the same
        // acknowledgement is not reordered.
        for block in ack.sack_blocks.sorted(usize::from(is_duplicate)).filter(is_valid) {
            let (mut start, mut end) = block;
            // Only the new part of a block that grew at one end is walked.
            for prior_block in prior_blocks.iter() {
                if prior_block.0 <= start && start < prior_block.1 {
                    start = prior_block.1;
                } else if start < prior_block.0 && end <= prior_block.1 && prior_block.0 < end {
                    end = prior_block.0;
                }
            }
            // What an older report did not cover is walked again, from the buffer on that holds its end.
            if start < end && self.scoreboard.packet(start).is_sacked() {
                start = self.scoreboard.buffer_start(start).max(block.0);
            }
            (start..end).for_each(|seq| self.sack(now, seq, outcome));
        }
        // After a timeout that cannot be undone, late packets do not show reordering.
        if self.path.ca_state != CaState::Loss || self.undo.undo_marker.is_some() {
            self.check_sack_reordering(outcome);
        }
        outcome.reordered = None;
    }

    fn sack(&mut self, now: Instant, seq: u64, outcome: &mut AckOutcome) {
        let end = self.scoreboard.sacked_end();
        let packet = self.scoreboard.sack(seq);
        if packet.is_sacked() {
            return;
        }
        outcome.newly_sacked = true;
        outcome.sack_delivered += 1;
        self.path.rate.on_delivered(&mut outcome.acked.rate_sample, seq, packet.sent, &packet.snapshot);
        self.on_packet_delivered(now, seq, &packet);
        if !packet.was_retransmitted() {
            if seq < end {
                outcome.reordered = Some(outcome.reordered.map_or(seq, |lowest| lowest.min(seq)));
            }
            outcome.orig_sack_acked |= seq < self.path.high_seq;
            extend_times(&mut outcome.sacked_times, packet.sent);
        }
    }

    /// Updates loss detection with a delivered packet.
    fn on_packet_delivered(&mut self, now: Instant, seq: u64, packet: &SentPacket) {
        match &mut self.fack {
            Some(fack) => fack.on_delivered(seq, packet.sent),
            None => self.rack.on_delivered(now, seq, packet.sent, packet.was_retransmitted(), self.path.min_rtt()),
        }
    }

    /// Handles a DSACK block (RFC 2883): a retransmission was spurious (Linux `tcp_check_dsack`).
    fn on_dsack(&mut self, block: (u64, u64), outcome: &mut AckOutcome) {
        let count = (block.1.saturating_sub(block.0)).min(u64::from(u32::MAX)) as u32;
        if count == 0 || block.1 > self.scoreboard.snd_nxt() {
            return;
        }
        outcome.dsack_of_tlp = self.dsack_reports_tlp(block);
        self.counters.duplicates += u64::from(count);
        // More duplicates than retransmissions: the network duplicates packets.
        if self.counters.duplicates > self.counters.retransmitted {
            return;
        }
        outcome.dsack = true;
        outcome.sack_delivered += count;
        if !outcome.dsack_of_tlp {
            self.rack.on_dsack();
        }
        self.undo.on_dsack(block, self.repeated_by_us(block, count));
        for seq in block.0.max(self.scoreboard.snd_una())..block.1 {
            let packet = *self.scoreboard.packet(seq);
            if packet.was_retransmitted() && packet.is_sacked() {
                outcome.reordered = Some(outcome.reordered.map_or(seq, |lowest| lowest.min(seq)));
            }
            self.scoreboard.clear_retransmission(seq);
        }
    }

    /// Packets of a DSACK block of `count` packets that were retransmitted. For outstanding packets this is known.
    /// Packets that were acknowledged before all count as retransmitted (Linux `tcp_sacktag_one`, `tcp_check_dsack`).
    /// The network may duplicate the others.
    fn repeated_by_us(&self, block: (u64, u64), count: u32) -> u32 {
        let una = self.scoreboard.snd_una();
        if block.1 <= una {
            return count;
        }
        (block.0.max(una)..block.1).filter(|seq| self.scoreboard.packet(*seq).was_retransmitted()).count() as u32
    }

    /// Removes cumulatively acknowledged packets (Linux `tcp_clean_rtx_queue`).
    fn clean_rtx_queue(&mut self, now: Instant, ack: u64, outcome: &mut AckOutcome, prior: &PriorScoreboard) {
        while self.scoreboard.snd_una() < ack {
            let seq = self.scoreboard.snd_una();
            let packet = self.scoreboard.pop();
            outcome.acked.pkts_acked += 1;
            if packet.was_retransmitted() {
                outcome.retransmission_acked = true;
            } else if !packet.is_sacked() {
                extend_times(&mut outcome.acked_times, packet.sent);
                if seq < prior.sacked_end {
                    outcome.reordered = Some(outcome.reordered.map_or(seq, |lowest| lowest.min(seq)));
                }
                outcome.orig_sack_acked |= seq < self.path.high_seq;
            }
            if !packet.is_sacked() {
                self.path.rate.on_delivered(&mut outcome.acked.rate_sample, seq, packet.sent, &packet.snapshot);
                if self.config.sack {
                    self.path.rate.count(1);
                    if !self.is_original_delivery(&packet, outcome.tsecr) {
                        self.on_packet_delivered(now, seq, &packet);
                    }
                }
            }
        }
        outcome.set_timers = outcome.acked.pkts_acked > 0;
        if !self.config.sack && outcome.acked.pkts_acked > 0 {
            self.count_delivered_without_sack(outcome);
        }
    }

    /// True if the acknowledgement echoes a timestamp older than the retransmission, so that the original has arrived.
    fn is_original_delivery(&self, packet: &SentPacket, tsecr: u32) -> bool {
        packet.was_retransmitted() && self.config.timestamps && tsecr != 0 && tsecr < timestamp(packet.sent)
    }

    /// Takes the RTT samples (Linux `tcp_ack_update_rtt`): of the oldest newly acknowledged packet for SRTT, and of the
    /// newest for the controller and the minimum RTT.
    fn update_rtt(&mut self, now: Instant, outcome: &mut AckOutcome, prior: &PriorScoreboard) -> Option<Span> {
        let mut times = if outcome.retransmission_acked { None } else { outcome.acked_times };
        let mut newest = times.map(|(_, last)| last);
        if let Some((_, last)) = outcome.sacked_times {
            newest = Some(last);
        }
        times = times.or(outcome.sacked_times);
        let (oldest, newest) = match (times, newest) {
            (Some((first, _)), Some(last)) => (now.since(first), now.since(last)),
            _ if self.config.timestamps && outcome.acked.advanced && outcome.tsecr != 0 => {
                let rtt = Span::from_millis(u64::from(timestamp(now).saturating_sub(outcome.tsecr)).max(1));
                (rtt, rtt)
            }
            _ => return None,
        };
        // A delayed acknowledgement must not enter the minimum filter's next generation.
        if !(self.is_ack_delayed(outcome, prior) && newest > self.path.min_rtt()) {
            self.path.update_min_rtt(now, newest.max(Span::from_micros(1)));
        }
        self.path.rtt.update(oldest, self.scoreboard.snd_una(), self.scoreboard.snd_nxt());
        self.timers.backoff = 0;
        // A SACKed packet that was sent before the head was last sent is no evidence about the head.
        if let Some((first, _)) = outcome.sacked_times
            && self.scoreboard.counts().packets_out > 0
            && first < self.scoreboard.packet(self.scoreboard.snd_una()).sent
        {
            outcome.set_timers = true;
        }
        self.last_rtt = Some(newest);
        Some(newest)
    }

    /// True if the receiver probably delayed the acknowledgement: it acknowledges one small packet that was delivered
    /// alone since it was sent (Linux `FLAG_ACK_MAYBE_DELAYED`).
    fn is_ack_delayed(&self, outcome: &AckOutcome, prior: &PriorScoreboard) -> bool {
        outcome.acked.pkts_acked == 1
            && prior.counts.sacked_out == 0
            && self.scoreboard.snd_una() == prior.una + 1
            && Some(self.scoreboard.snd_una()) == self.snd_sml
            && outcome.acked.rate_sample.prior_delivered() + 1 == self.path.rate.delivered()
            && !outcome.newly_sacked
            && !outcome.dsack
            && !outcome.ece
    }

    /// Raises the reordering degree: the distance in bytes from the lowest packet that was delivered after later ones to
    /// the end of these, in full segments (Linux `tcp_check_sack_reordering`). What is SACKed counts before what is
    /// acknowledged.
    fn check_sack_reordering(&mut self, outcome: &mut AckOutcome) {
        if let Some(lowest) = outcome.reordered.take() {
            let (end, mss) = (self.scoreboard.sacked_end(), self.config.mss);
            self.rack.on_reordering(self.write_queue.payload(lowest, end, mss).div_ceil(u64::from(mss)));
        }
    }

    fn is_dubious(&self, outcome: &AckOutcome) -> bool {
        !(outcome.acked.advanced || outcome.updates_window)
            || outcome.newly_sacked
            || outcome.dsack
            || outcome.ece
            || self.path.ca_state != CaState::Open
    }
}
