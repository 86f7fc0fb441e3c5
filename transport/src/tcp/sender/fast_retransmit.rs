//! The recovery state machine (Linux `tcp_fastretrans_alert`), run for every dubious acknowledgement.

use super::Sender;
use super::ack::{AckOutcome, PriorScoreboard};
use crate::path::ControllerHandle;
use control::{CaState, Cause, PathEvent};
use units::Instant;

impl Sender {
    pub(super) fn fast_retransmit_alert(
        &mut self,
        now: Instant,
        outcome: &mut AckOutcome,
        prior: &PriorScoreboard,
        controller: &mut ControllerHandle,
    ) {
        self.transmit.frto_new_data = false;
        if outcome.ece && self.undo.undo_marker.is_some() {
            self.on_ece_in_episode(now, controller);
        }
        if self.detect_sack_reneging(now, outcome) {
            return;
        }
        if self.try_end_episode(now, outcome, controller) {
            return;
        }
        match self.path.ca_state {
            CaState::Recovery => {
                if !outcome.acked.advanced {
                    self.add_reno_sack(outcome);
                } else if self.try_undo_partial(now, outcome.tsecr, prior.una, controller) {
                    return;
                }
                if self.try_undo_dsack(now, controller) {
                    self.try_to_open(now, outcome.ece, controller);
                }
                self.identify_loss(now, outcome);
                if self.path.ca_state != CaState::Recovery && self.scoreboard.counts().lost_out > 0 {
                    self.enter_recovery(now, false, outcome.ece, controller);
                }
                return;
            }
            CaState::Loss => {
                self.process_loss(now, outcome, controller);
                self.identify_loss(now, outcome);
                if !(self.path.ca_state == CaState::Open || outcome.lost_retransmission) {
                    return;
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {}
        }
        if !self.config.sack && outcome.acked.advanced {
            self.scoreboard.reset_reno_sack();
        }
        self.add_reno_sack(outcome);
        if self.path.ca_state <= CaState::Disorder {
            self.try_undo_dsack(now, controller);
        }
        self.identify_loss(now, outcome);
        if self.scoreboard.counts().lost_out == 0 {
            self.try_to_open(now, outcome.ece, controller);
        } else {
            self.enter_recovery(now, false, outcome.ece, controller);
        }
    }

    /// Ends the episode if everything up to `high_seq` is acknowledged. Returns whether there is nothing else to do.
    fn try_end_episode(&mut self, now: Instant, outcome: &AckOutcome, controller: &mut ControllerHandle) -> bool {
        if self.path.ca_state == CaState::Open {
            self.undo.retrans_stamp = 0;
            return false;
        }
        if self.scoreboard.snd_una() < self.path.high_seq {
            return false;
        }
        match self.path.ca_state {
            // One more packet must be acknowledged, so that an ECN echo at the edge does not count twice.
            CaState::Cwr if self.scoreboard.snd_una() > self.path.high_seq => {
                self.path.leave_reduction(now, true, controller);
                false
            }
            CaState::Recovery => {
                if !self.config.sack {
                    self.scoreboard.reset_reno_sack();
                }
                self.try_undo_recovery(now, outcome.tsecr, controller);
                if self.is_non_sack_preventing_reopen() {
                    return true;
                }
                let to_ssthresh = self.undo.undo_marker.is_some() || self.fack.is_some();
                self.path.leave_reduction(now, to_ssthresh, controller);
                false
            }
            _ => false,
        }
    }

    /// Begins fast recovery, `by_timer` or by an acknowledgement, which echoes a mark if `ece`.
    pub(super) fn enter_recovery(
        &mut self,
        now: Instant,
        by_timer: bool,
        ece: bool,
        controller: &mut ControllerHandle,
    ) {
        if self.path.ca_state == CaState::Recovery {
            return;
        }
        self.counters.recoveries += 1;
        if !self.scoreboard.any_retrans_done() {
            self.undo.retrans_stamp = 0;
        }
        let outstanding = self.scoreboard.counts().retrans_out + u32::from(self.transmit.tlp_retransmitted());
        self.init_undo(self.scoreboard.snd_una(), outstanding);
        self.enter_reduction(now, Cause::Loss, by_timer, CaState::Recovery, controller);
        if ece {
            self.on_ece_in_episode(now, controller);
        }
    }

    /// Reduces the window without loss: after an ECN echo or a local drop.
    pub(super) fn enter_cwr(&mut self, now: Instant, cause: Cause, controller: &mut ControllerHandle) {
        if self.path.ca_state >= CaState::Cwr {
            return;
        }
        self.undo.undo_marker = None;
        self.enter_reduction(now, cause, false, CaState::Cwr, controller);
    }

    fn enter_reduction(
        &mut self,
        now: Instant,
        cause: Cause,
        by_timer: bool,
        state: CaState,
        controller: &mut ControllerHandle,
    ) {
        if self.path.ca_state != CaState::Cwr {
            self.transmit.clear_tlp();
            self.transmit.cwr_pending = self.config.ecn;
        }
        let outstanding = self.outstanding();
        self.path.enter_reduction(now, cause, by_timer, state, &outstanding, controller);
    }

    /// Handles an ECN echo in an episode that can be undone: it prevents that. A reduction that lasts is not repeated.
    fn on_ece_in_episode(&mut self, now: Instant, controller: &mut ControllerHandle) {
        self.undo.ece = true;
        if self.path.ca_state < CaState::Recovery {
            return;
        }
        let in_flight = self.in_flight();
        let event = PathEvent::Congestion { cause: Cause::EcnMark, reduce_cwnd: false, in_flight, by_timer: false };
        self.path.notify(now, &event, controller);
    }

    fn try_to_open(&mut self, now: Instant, ece: bool, controller: &mut ControllerHandle) {
        if !self.scoreboard.any_retrans_done() {
            self.undo.retrans_stamp = 0;
        }
        if ece {
            self.enter_cwr(now, Cause::EcnMark, controller);
        }
        if self.path.ca_state != CaState::Cwr {
            self.try_keep_open();
        }
    }

    pub(super) fn try_keep_open(&mut self) {
        let counts = self.scoreboard.counts();
        let is_clean = counts.sacked_out + counts.lost_out == 0 && !self.scoreboard.any_retrans_done();
        let ca_state = if is_clean { CaState::Open } else { CaState::Disorder };
        if ca_state != self.path.ca_state {
            self.path.ca_state = ca_state;
            self.path.high_seq = self.scoreboard.snd_nxt();
        }
    }

    /// Undoes a recovery whose head was filled by a delayed original (Linux `tcp_try_undo_partial`). True if nothing
    /// may be retransmitted now.
    fn try_undo_partial(
        &mut self,
        now: Instant,
        tsecr: u32,
        prior_una: u64,
        controller: &mut ControllerHandle,
    ) -> bool {
        if self.undo.undo_marker.is_none() || !self.packet_delayed(tsecr) {
            return false;
        }
        self.rack.on_reordering(self.scoreboard.sacked_end().saturating_sub(prior_una));
        // Outstanding retransmissions may be spurious, too. The sender waits for them and sends no more.
        if self.scoreboard.counts().retrans_out > 0 {
            self.transmit.frto_new_data = true;
            return true;
        }
        if !self.scoreboard.any_retrans_done() {
            self.undo.retrans_stamp = 0;
        }
        self.undo_reduction(now, true, controller);
        self.try_keep_open();
        false
    }

    fn identify_loss(&mut self, now: Instant, outcome: &mut AckOutcome) {
        if self.scoreboard.counts().packets_out == 0 {
            return;
        }
        if !self.config.sack {
            return self.mark_head_lost(outcome.acked.advanced);
        }
        let retransmitted = self.scoreboard.counts().retrans_out;
        let reo_wnd = self.reo_wnd();
        let (lost, timeout) = match &self.fack {
            Some(fack) => (fack.mark_lost(&mut self.scoreboard), None),
            None => self.rack.mark_lost(now, &mut self.scoreboard, reo_wnd),
        };
        self.path.count_lost(lost);
        if self.timers.set_reordering(now, timeout, self.rto_with_backoff()) {
            outcome.set_timers = false;
        }
        let lost_retransmissions = retransmitted.saturating_sub(self.scoreboard.counts().retrans_out);
        self.counters.lost_retransmissions += u64::from(lost_retransmissions);
        outcome.lost_retransmission |= lost_retransmissions > 0;
    }

    /// Handles acknowledgements after a timeout (Linux `tcp_process_loss`): F-RTO (RFC 5682) first determines whether
    /// it was spurious.
    fn process_loss(&mut self, now: Instant, outcome: &AckOutcome, controller: &mut ControllerHandle) {
        let is_recovered = self.scoreboard.snd_una() >= self.path.high_seq;
        if outcome.acked.advanced && self.may_undo(outcome.tsecr) {
            return self.undo_loss(now, false, controller);
        }
        if self.transmit.frto {
            if outcome.orig_sack_acked {
                self.counters.spurious_timeouts += 1;
                return self.undo_loss(now, true, controller);
            }
            if self.scoreboard.snd_nxt() > self.path.high_seq {
                if outcome.newly_sacked || outcome.is_dupack {
                    self.transmit.frto = false;
                }
            } else if outcome.acked.advanced && !is_recovered {
                self.path.high_seq = self.scoreboard.snd_nxt();
                if self.can_send_new() {
                    self.transmit.frto_new_data = true;
                    return;
                }
                self.transmit.frto = false;
            }
        }
        if is_recovered {
            self.try_undo_recovery(now, outcome.tsecr, controller);
            if !self.is_non_sack_preventing_reopen() {
                self.path.leave_loss();
            }
        } else if !self.config.sack {
            // Without SACK, a duplicate acknowledgement shows that F-RTO's new data has arrived.
            if self.scoreboard.snd_nxt() > self.path.high_seq && outcome.is_dupack {
                self.add_reno_sack(outcome);
            } else if outcome.acked.advanced {
                self.scoreboard.reset_reno_sack();
            }
        }
    }

    fn undo_loss(&mut self, now: Instant, by_orig_ack: bool, controller: &mut ControllerHandle) {
        self.undo_reduction(now, true, controller);
        self.timers.retransmits = 0;
        if !self.is_non_sack_preventing_reopen() && (by_orig_ack || self.config.sack) {
            self.path.leave_loss();
        }
    }

    /// SACK reneging (RFC 2018 section 8): the head is SACKed but not acknowledged. That may be a mere delay, so only
    /// the retransmission timer, shortened here, decides.
    fn detect_sack_reneging(&mut self, now: Instant, outcome: &mut AckOutcome) -> bool {
        let has_reneged = outcome.acked.advanced && self.scoreboard.head_is_sacked();
        if has_reneged {
            let delay = self.path.rtt.srtt() / 2;
            self.timers.set_reneging_timer(now, delay);
            outcome.set_timers = false;
        }
        has_reneged
    }
}
