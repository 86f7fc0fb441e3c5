//! Undo of window reductions that prove spurious. There are two proofs: every retransmission was reported as a
//! duplicate (DSACK, RFC 3708), or an acknowledgement echoes a timestamp from before the first retransmission (Eifel,
//! RFC 3522/4015).

use super::Sender;
use crate::path::ControllerHandle;
use control::{CaState, PathEvent};
use units::Instant;

/// Undo state of a recovery episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `snd_una` at the episode's start; `None` if nothing can be undone.
    pub undo_marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; `None` if there were none at the start.
    pub undo_retrans: Option<u32>,
    /// Timestamp of the first retransmission, milliseconds; 0 if there was none.
    pub retrans_stamp: u32,
    /// Whether an ECN echo arrived since the episode began: the window stays as it is (Linux: `prior_ssthresh` is 0), and the
    /// echo must be answered.
    pub ece: bool,
}

impl Undo {
    /// Begins an episode with `retransmitted` retransmissions outstanding (Linux `tcp_init_undo`).
    pub(super) fn begin(&mut self, una: u64, retransmitted: u32) {
        self.undo_marker = Some(una);
        self.undo_retrans = (retransmitted > 0).then_some(retransmitted);
        self.ece = false;
    }

    pub(super) fn on_retransmission(&mut self, timestamp: u32, segments: u32) {
        if self.retrans_stamp == 0 {
            self.retrans_stamp = timestamp.max(1);
        }
        self.undo_retrans = Some(self.undo_retrans.unwrap_or(0) + segments);
    }

    pub(super) fn on_dsack(&mut self, block: (u64, u64), count: u32) {
        if let (Some(marker), Some(pending)) = (self.undo_marker, self.undo_retrans.as_mut())
            && block.1 > marker
        {
            *pending = pending.saturating_sub(count);
        }
    }
}

impl Sender {
    /// Begins an episode with `retransmitted` retransmissions outstanding. FACK has no undo.
    pub(super) fn init_undo(&mut self, una: u64, retransmitted: u32) {
        if self.fack.is_none() {
            self.undo.begin(una, retransmitted);
        }
    }

    /// True if the echoed timestamp is older than the first retransmission, or nothing was retransmitted (Linux
    /// `tcp_packet_delayed`). Without SACK the state outlives the episode. Its retransmissions are then acknowledged
    /// and forgotten, which is no proof (Linux since 6.1.142).
    pub(super) fn packet_delayed(&self, tsecr: u32) -> bool {
        match self.undo.retrans_stamp {
            0 => self.config.sack || self.scoreboard.snd_una() < self.path.high_seq,
            first_stamp => self.config.timestamps && tsecr != 0 && tsecr < first_stamp,
        }
    }

    pub(super) fn may_undo(&self, tsecr: u32) -> bool {
        self.undo.undo_marker.is_some() && (self.undo.undo_retrans == Some(0) || self.packet_delayed(tsecr))
    }

    /// Undoes the window reduction (Linux `tcp_undo_cwnd_reduction`).
    pub(super) fn undo_reduction(&mut self, now: Instant, unmark_lost: bool, controller: &mut ControllerHandle) {
        if unmark_lost {
            self.scoreboard.unmark_lost();
        }
        let reduced = self.path.decision.ssthresh;
        let is_past = self.path.ca_state <= CaState::Disorder;
        if !(is_past && self.undo.ece) {
            self.path.notify(now, &PathEvent::SpuriousLoss, controller);
        }
        // A reduction that is not completely withdrawn must still be announced.
        let is_withdrawn = !self.undo.ece && self.path.decision.ssthresh > reduced;
        self.transmit.cwr_pending &= !is_withdrawn;
        self.undo.undo_marker = None;
        self.rack.advance();
        self.counters.undone += 1;
    }

    /// Undoes the reduction if every retransmission was reported as a duplicate (Linux `tcp_try_undo_dsack`). Returns
    /// whether it was undone.
    pub(super) fn try_undo_dsack(&mut self, now: Instant, controller: &mut ControllerHandle) -> bool {
        let is_proven = self.undo.undo_marker.is_some() && self.undo.undo_retrans == Some(0);
        if is_proven {
            self.rack.on_recovered(true);
            self.undo_reduction(now, false, controller);
        }
        is_proven
    }

    /// Undoes the reduction at the end of an episode if it proved spurious (Linux `tcp_try_undo_recovery`).
    pub(super) fn try_undo_recovery(&mut self, now: Instant, tsecr: u32, controller: &mut ControllerHandle) {
        if self.may_undo(tsecr) {
            self.undo_reduction(now, false, controller);
        } else {
            self.rack.on_recovered(false);
        }
    }
}
