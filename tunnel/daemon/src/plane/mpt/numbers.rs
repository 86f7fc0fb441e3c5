//! The 32-bit sequence numbers of packets as 64-bit ones, and the guess that a peer has started again.
//!
//! A number is taken to be the one nearest to the largest so far (RFC 2890, section 2.2: modulo 2^32), which MPT does not
//! do. MPT tells nobody that its counter began again. The published guess is: a number up to 50 that is too low. Here
//! such a number must also be further back than reordering reaches; and if the first ones were lost, a row of packets
//! that far back means the same.

/// MPT's own bound for the first numbers after a start.
const FIRST: u32 = 50;
/// So many packets in a row beyond the reach of reordering are a new start.
const ROW: u32 = 16;

/// The largest number so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    largest: Option<u64>,
    reach: u64,
    stale_in_a_row: u32,
}

/// What a packet's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// Its number.
    Is(u64),
    /// The peer counts from the beginning again; its number.
    Restart(u64),
    /// From before the beginning.
    Stale,
}

impl Numbers {
    /// Reordering reaches back this many packets.
    pub(super) fn new(reach: u32) -> Self {
        Self { largest: None, reach: u64::from(reach.max(FIRST)), stale_in_a_row: 0 }
    }

    /// The whole number of a packet that carries `low`.
    pub(super) fn expand(&mut self, low: u32) -> Number {
        let Some(largest) = self.largest else {
            self.largest = Some(u64::from(low));
            return Number::Is(u64::from(low));
        };
        let ahead = low.wrapping_sub(largest as u32) as i32;
        let number = largest.checked_add_signed(i64::from(ahead));
        let is_far_back = ahead < 0 && u64::from(ahead.unsigned_abs()) > self.reach;
        self.stale_in_a_row = if is_far_back { self.stale_in_a_row + 1 } else { 0 };
        if is_far_back && (low <= FIRST || self.stale_in_a_row == ROW) {
            *self = Self { largest: Some(u64::from(low)), stale_in_a_row: 0, ..*self };
            return Number::Restart(u64::from(low));
        }
        let Some(number) = number else { return Number::Stale };
        self.largest = Some(largest.max(number));
        Number::Is(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_on_over_2_to_the_32_and_back_over_it() {
        let mut numbers = Numbers::new(1000);
        let mut expand = |low: u32| numbers.expand(low);
        assert_eq!(expand(u32::MAX - 1), Number::Is(u64::from(u32::MAX - 1)));
        assert_eq!(expand(1), Number::Is((1 << 32) + 1));
        assert_eq!(expand(u32::MAX), Number::Is(u64::from(u32::MAX)));
    }

    #[test]
    fn a_new_start_is_known_by_its_first_numbers_or_by_a_row_of_low_ones() {
        let mut numbers = Numbers::new(1000);
        numbers.expand(0);
        assert_eq!(numbers.expand(u32::MAX), Number::Stale);
        numbers.expand(900);
        assert_eq!(numbers.expand(3), Number::Is(3), "reordering reaches that far");
        numbers.expand(100_000);
        assert_eq!(numbers.expand(3), Number::Restart(3));
        numbers.expand(100_000);
        assert!((60..75).all(|low| numbers.expand(low) == Number::Is(u64::from(low))), "perhaps they are only late");
        assert_eq!(numbers.expand(75), Number::Restart(75));
    }
}
