//! The sender's episode of congestion, as far as it decides what both versions of BBR save and undo in Linux: the hook that
//! saves is called once per reduction, and the one that undoes only if there is a threshold to restore.

use crate::{CaState, Cause};

/// The episode that the sender is in.
#[derive(Debug)]
pub(in crate::single) struct Episode {
    /// The sender's state now, of which the episode of a mark and that of a loss differ.
    ca_state: CaState,
    /// The threshold that an undo restores; 0 if the episode cannot be undone (Linux `prior_ssthresh`).
    prior_ssthresh: u32,
}

impl Default for Episode {
    fn default() -> Self {
        Self { ca_state: CaState::Open, prior_ssthresh: 0 }
    }
}

impl Episode {
    /// The state changes without congestion.
    pub(in crate::single) fn set_ca_state(&mut self, ca_state: CaState) {
        self.ca_state = ca_state;
    }

    /// Congestion, at this window and threshold. Returns whether a reduction begins: a loss within one continues it.
    pub(in crate::single) fn on_congestion(
        &mut self,
        cause: Cause,
        reduce_cwnd: bool,
        cwnd: u32,
        ssthresh: u32,
    ) -> bool {
        let in_reduction = matches!(self.ca_state, CaState::Cwr | CaState::Recovery);
        self.prior_ssthresh = match cause {
            Cause::Timeout if !reduce_cwnd => self.prior_ssthresh,
            Cause::Timeout if in_reduction => ssthresh,
            Cause::Loss | Cause::Timeout if !in_reduction => ssthresh.max(cwnd / 2 + cwnd / 4),
            _ => 0,
        };
        self.ca_state = match cause {
            Cause::Loss => CaState::Recovery,
            Cause::Timeout => CaState::Loss,
            Cause::TlpRecovery => CaState::Open,
            Cause::EcnMark | Cause::LocalDrop | Cause::Requested if reduce_cwnd => CaState::Cwr,
            Cause::EcnMark | Cause::LocalDrop | Cause::Requested => self.ca_state,
        };
        reduce_cwnd && !(in_reduction && cause == Cause::Loss)
    }

    /// The episode was spurious. Returns the threshold to restore; what began with a mark, or had one since, is not undone.
    pub(in crate::single) fn on_spurious_loss(&mut self) -> Option<u32> {
        self.ca_state = CaState::Open;
        (self.prior_ssthresh > 0).then_some(self.prior_ssthresh)
    }
}
