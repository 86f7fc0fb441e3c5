//! The echo of CE marks (RFC 3168, RFC 8257, RFC 9768).

use super::Receiver;
use super::ack_policy::{MARKS_PER_ACK, QUICKACKS_AFTER_MARK};
use crate::tcp::segment::ACE_CYCLE;
use crate::tcp::{Ack, Segment};
use control::Ecn;
use units::Instant;

impl Receiver {
    /// Updates the ECN echo. Per packet (RFC 8257 section 3.2), a change is acknowledged at once, and a delayed
    /// acknowledgement is first sent with the old state. Otherwise the echo lasts until CWR arrives (RFC 3168
    /// section 6.1.3), or marks are counted. Marks of refused data and of duplicates do not count, as in Linux.
    #[inline(always)]
    pub(super) fn update_ecn_echo(&mut self, now: Instant, segment: &Segment, ece: bool) -> Option<Ack> {
        if self.config.ecn == Ecn::L4s {
            self.count_mark(ece);
            return None;
        }
        let (cwr, is_old) = (segment.cwr, segment.seq < self.reassembly.next());
        let is_refused = self.is_beyond_window(segment.seq) || segment.seq + 1 < self.last_ack_sent;
        if is_refused || is_old && !cwr {
            return None;
        }
        if cwr {
            self.ack_policy.hurry();
        }
        match self.config.ecn {
            Ecn::PerPacket if ece != self.ece && !is_old => {
                let prior_ack = self.ack_policy.is_pending().then(|| self.acknowledge(now));
                self.ece = ece;
                self.ack_policy.hurry();
                return prior_ack;
            }
            Ecn::PerPacket | Ecn::L4s => {}
            Ecn::Classic => {
                self.ece &= !cwr;
                if ece && !is_old && !self.ece {
                    self.ece = true;
                    self.enter_quickack_mode(QUICKACKS_AFTER_MARK);
                }
            }
        }
        None
    }

    /// Accurate ECN: the first mark after none and every second mark are acknowledged at once (RFC 9768
    /// section 3.2.2.5.1).
    pub(super) fn count_mark(&mut self, is_marked: bool) {
        let was_marked = std::mem::replace(&mut self.ece, is_marked);
        if is_marked {
            self.ace = (self.ace + 1) % ACE_CYCLE;
            self.marks_since_ack += 1;
            if !was_marked || self.marks_since_ack >= MARKS_PER_ACK {
                self.ack_policy.hurry();
            }
        }
    }
}
