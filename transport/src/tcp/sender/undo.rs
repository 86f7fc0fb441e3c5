//! Was the latest episode needless? Two proofs: every retransmission was reported as a duplicate (DSACK, RFC 3708), or
//! an acknowledgement echoes a timestamp from before the first retransmission (Eifel, RFC 3522/4015).

use super::Sender;
use control::Event;
use units::Instant;

/// The evidence gathered in an episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `una` at the episode's start; `None` if nothing can be undone.
    pub marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; `None` if there were none to begin with.
    pub pending: Option<u32>,
    /// Timestamp of the first retransmission, milliseconds; 0 if there was none.
    pub first_retransmission: u32,
    /// A mark came in the episode: whatever becomes of the losses, it has to be answered.
    pub marked: bool,
}

impl Undo {
    /// An episode begins with so many retransmissions already outstanding.
    pub(super) fn begin(&mut self, una: u64, retransmitted: u32) {
        self.marker = Some(una);
        self.pending = (retransmitted > 0).then_some(retransmitted);
        self.marked = false;
    }

    pub(super) fn on_retransmission(&mut self, timestamp: u32) {
        if self.first_retransmission == 0 {
            self.first_retransmission = timestamp.max(1);
        }
        self.pending = Some(self.pending.unwrap_or(0) + 1);
    }

    pub(super) fn on_duplicate(&mut self, block: (u64, u64), count: u32) {
        if let (Some(marker), Some(pending)) = (self.marker, self.pending.as_mut())
            && block.1 > marker
        {
            *pending = pending.saturating_sub(count);
        }
    }
}

impl Sender {
    /// An episode begins with so many retransmissions already outstanding; forward acknowledgement never looks back.
    pub(super) fn begin_episode(&mut self, una: u64, retransmitted: u32) {
        if self.fack.is_none() {
            self.undo.begin(una, retransmitted);
        }
    }

    /// The echoed timestamp is older than the first retransmission, or nothing was retransmitted at all.
    pub(super) fn original_was_late(&self, echo: u32) -> bool {
        let first = self.undo.first_retransmission;
        first == 0 || (self.config.timestamps && echo != 0 && echo < first)
    }

    pub(super) fn may_undo(&self, echo: u32) -> bool {
        self.undo.marker.is_some() && (self.undo.pending == Some(0) || self.original_was_late(echo))
    }

    /// Takes the reduction back.
    pub(super) fn undo_reduction(&mut self, now: Instant, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        self.notify(now, &Event::SpuriousLoss);
        self.transmit.reduced &= self.undo.marked;
        self.undo.marker = None;
        self.rack.reconsider();
        self.counters.undone += 1;
    }

    /// Every retransmission was reported as a duplicate: undo. True if so.
    pub(super) fn try_undo_by_duplicates(&mut self, now: Instant) -> bool {
        let proven = self.undo.marker.is_some() && self.undo.pending == Some(0);
        if proven {
            self.rack.on_recovered(true);
            self.undo_reduction(now, false);
        }
        proven
    }

    /// At the end of an episode: undo it if it proved needless.
    pub(super) fn try_undo_at_end(&mut self, now: Instant, echo: u32) {
        if self.may_undo(echo) {
            self.undo_reduction(now, false);
        } else {
            self.rack.on_recovered(false);
        }
    }
}
