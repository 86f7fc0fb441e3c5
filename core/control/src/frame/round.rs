//! Packet-timed round trips.

use crate::Feedback;

/// Counts round trips by packet numbers: one ends when what was next at its start is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    end: u64,
}

impl Round {
    /// True if this acknowledgement ends a round; the next one then begins.
    pub fn ends(&mut self, feedback: &Feedback) -> bool {
        let over = feedback.una > self.end;
        if over {
            self.end = feedback.next;
        }
        over
    }

    /// Begins a round now.
    pub fn restart(&mut self, feedback: &Feedback) {
        self.end = feedback.next;
    }
}
