//! Expansion of 32-bit sequence numbers to 64 bits, and detection of a restarted peer.
//!
//! A number expands to the one nearest to the largest so far (RFC 2890, section 2.2: modulo 2^32), which MPT does not do.
//! MPT does not signal that its counter restarted. Its published heuristic is: a number up to 50 that is too low. Here
//! such a number must also be further back than the reorder window; and if the first ones were lost, several packets in a
//! row that far back mean the same.

/// MPT's bound of the first numbers after a start.
const MAX_FIRST: u32 = 50;
/// Packets in a row behind the reorder window that mean a restart.
const RESTART_PACKETS: u32 = 16;

/// Expands sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceExpander {
    largest: Option<u64>,
    window: u64,
    stale_in_a_row: u32,
}

/// An expanded sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// The packet's number.
    Number(u64),
    /// The peer restarted; the packet's number.
    Restart(u64),
    /// Older than the first packet.
    Stale,
}

impl SequenceExpander {
    /// An expander for a reorder window of this many packets.
    pub(crate) fn new(window: u32) -> Self {
        Self { largest: None, window: u64::from(window.max(MAX_FIRST)), stale_in_a_row: 0 }
    }

    /// Expands the low 32 bits of a packet's number.
    pub(crate) fn expand(&mut self, low: u32) -> Sequence {
        let Some(largest) = self.largest else {
            self.largest = Some(u64::from(low));
            return Sequence::Number(u64::from(low));
        };
        let ahead = low.wrapping_sub(largest as u32) as i32;
        let number = largest.checked_add_signed(i64::from(ahead));
        let is_far_back = ahead < 0 && u64::from(ahead.unsigned_abs()) > self.window;
        self.stale_in_a_row = if is_far_back { self.stale_in_a_row + 1 } else { 0 };
        if is_far_back && (low <= MAX_FIRST || self.stale_in_a_row == RESTART_PACKETS) {
            *self = Self { largest: Some(u64::from(low)), stale_in_a_row: 0, ..*self };
            return Sequence::Restart(u64::from(low));
        }
        let Some(number) = number else { return Sequence::Stale };
        self.largest = Some(largest.max(number));
        Sequence::Number(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_at_2_to_the_32_in_both_directions() {
        let mut expander = SequenceExpander::new(1000);
        let mut expand = |low: u32| expander.expand(low);
        assert_eq!(expand(u32::MAX - 1), Sequence::Number(u64::from(u32::MAX - 1)));
        assert_eq!(expand(1), Sequence::Number((1 << 32) + 1));
        assert_eq!(expand(u32::MAX), Sequence::Number(u64::from(u32::MAX)));
    }

    #[test]
    fn a_restart_is_detected_by_its_first_numbers_or_by_several_low_ones() {
        let mut expander = SequenceExpander::new(1000);
        expander.expand(0);
        assert_eq!(expander.expand(u32::MAX), Sequence::Stale);
        expander.expand(900);
        assert_eq!(expander.expand(3), Sequence::Number(3), "within the reorder window");
        expander.expand(100_000);
        assert_eq!(expander.expand(3), Sequence::Restart(3));
        expander.expand(100_000);
        assert!((60..75).all(|low| expander.expand(low) == Sequence::Number(u64::from(low))), "they may only be late");
        assert_eq!(expander.expand(75), Sequence::Restart(75));
    }
}
