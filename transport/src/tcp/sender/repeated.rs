//! Loss recovery without SACK: duplicate acknowledgements are counted (RFC 5681, NewReno RFC 6582).
//!
//! Each duplicate acknowledgement stands for one packet that has arrived, nobody knows which: the scoreboard counts it
//! as SACKed, so that the pipe, the phases and the controllers see what they see with SACK.

use super::Sender;
use super::ack::News;

impl Sender {
    /// One more packet has arrived somewhere above the hole.
    pub(super) fn count_repeated(&mut self, news: &News) {
        if self.config.sack || !news.repeated {
            return;
        }
        if self.board.count_repeated() {
            self.rate.count(1);
        } else {
            // More arrivals than packets: the network reorders.
            self.rack.on_reordering(0, u64::from(self.board.counts().out));
        }
    }

    /// Data was acknowledged: one packet filled the hole, the others had been counted when they arrived.
    pub(super) fn release_unsacked(&mut self, news: &mut News) {
        let counted = self.board.counts().sacked;
        self.rate.count(news.released.saturating_sub(counted).max(1));
        self.board.release_repeated(news.released - 1);
        if news.retransmission_acked {
            news.original_delivered = false;
        }
    }

    /// The head is lost after enough duplicates (RFC 6582 section 3.2 step 2), and at each partial acknowledgement
    /// (step 3).
    pub(super) fn mark_head(&mut self, advanced: bool) {
        let in_recovery = self.phase == control::Phase::Recovery;
        let enough = self.board.counts().sacked >= self.rack.reordering();
        if (self.phase < control::Phase::Recovery && enough) || (in_recovery && advanced) {
            let head = self.board.una();
            if !self.board.record(head).is_lost() {
                self.counters.lost += u64::from(self.board.mark_lost(head));
            }
        }
    }

    /// Duplicates of retransmissions would look like a new loss: hold the phase until more than its end is acknowledged
    /// (RFC 6582 section 3.2 step 3 and section 4.1's "careful" variant).
    pub(super) fn must_not_reopen(&mut self) -> bool {
        let hold = !self.config.sack && self.board.una() == self.high;
        if hold && !self.board.any_retransmitted() {
            self.undo.first_retransmission = 0;
        }
        hold
    }
}
