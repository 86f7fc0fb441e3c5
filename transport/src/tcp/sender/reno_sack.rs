//! Loss recovery without SACK: duplicate acknowledgements are counted (RFC 5681, NewReno RFC 6582).
//!
//! Each duplicate acknowledgement stands for one arrived packet; which one is unknown. The scoreboard counts it as
//! SACKed (Linux `tcp_add_reno_sack`), so that states and controllers see the same as with SACK.

use super::Sender;
use super::ack::AckOutcome;

impl Sender {
    /// Counts a duplicate acknowledgement: one more packet has arrived above the hole.
    pub(super) fn add_reno_sack(&mut self, outcome: &AckOutcome) {
        if self.config.sack || !outcome.is_dupack {
            return;
        }
        if self.scoreboard.add_reno_sack() {
            self.path.rate.count(1);
        } else {
            self.rack.on_reno_reordering(self.scoreboard.counts().packets_out);
        }
    }

    /// Handles cumulatively acknowledged data: one packet filled the hole, and the others were counted at their
    /// duplicate acknowledgements.
    pub(super) fn count_delivered_without_sack(&mut self, outcome: &mut AckOutcome) {
        let counted = self.scoreboard.counts().sacked_out;
        self.path.rate.count(outcome.acked.pkts_acked.saturating_sub(counted).max(1));
        if !self.scoreboard.remove_reno_sacks(outcome.acked.pkts_acked - 1) {
            self.rack.on_reno_reordering(self.scoreboard.counts().packets_out + outcome.acked.pkts_acked);
        }
        if outcome.retransmission_acked {
            outcome.orig_sack_acked = false;
        }
    }

    /// Marks the head lost after enough duplicate acknowledgements (RFC 6582 section 3.2 step 2) and at each partial
    /// acknowledgement (step 3); Linux `tcp_newreno_mark_lost`.
    pub(super) fn mark_head_lost(&mut self, advanced: bool) {
        let in_recovery = self.path.ca_state == control::CaState::Recovery;
        let has_enough_dupacks = self.scoreboard.counts().sacked_out >= self.rack.reordering();
        if (self.path.ca_state < control::CaState::Recovery && has_enough_dupacks) || (in_recovery && advanced) {
            let head = self.scoreboard.snd_una();
            if !self.scoreboard.packet(head).is_lost() {
                self.path.count_lost(u32::from(self.scoreboard.mark_lost(head)));
            }
        }
    }

    /// True if the state must continue until more than `high_seq` is acknowledged, because duplicates of
    /// retransmissions would look like a new loss (RFC 6582 section 4.1, the "careful" variant; Linux
    /// `tcp_is_non_sack_preventing_reopen`).
    pub(super) fn is_non_sack_preventing_reopen(&mut self) -> bool {
        let is_preventing = !self.config.sack && self.scoreboard.snd_una() == self.path.high_seq;
        if is_preventing && !self.scoreboard.any_retrans_done() {
            self.undo.retrans_stamp = 0;
        }
        is_preventing
    }
}
