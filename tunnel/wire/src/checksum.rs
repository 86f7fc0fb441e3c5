//! The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of 16-bit words.
//!
//! The sum does not care for byte order (RFC 1071, section 2 (B)), so it is made of the machine's own words and swapped at
//! the end; and it may be made of wider words and folded late (section 2 (C)), so 32 bits at a time go into 64-bit lanes,
//! which the compiler turns into vector instructions.

/// A ones' complement sum that is not folded yet. Data that is added begins at an even distance from the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of `bytes`; an odd last byte counts as if a zero byte followed.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut lanes = [0; LANES];
        let (blocks, rest) = bytes.as_chunks::<{ 4 * LANES }>();
        for block in blocks {
            let (words, _) = block.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let (words, rest) = rest.as_chunks::<4>();
        let words: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(narrow(lanes.iter().sum::<u64>() + words + u64::from(u32::from_ne_bytes(last))))
    }

    /// This and one more word.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// This and what another sum has.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// This, as it goes on after an odd number of bytes: what was high is low (RFC 1071, section 2 (B)).
    #[must_use]
    pub fn swapped(self) -> Self {
        Self(u64::from(self.folded().swap_bytes().to_be()))
    }

    /// The sum as one word. 0 only if nothing but zeros was added.
    #[must_use]
    pub fn folded(self) -> u16 {
        let sum = narrow(self.0);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        u16::from_be(sum as u16)
    }

    /// The checksum: the complement of the sum. Over data with its checksum inside it is 0 if that is right.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// 32-bit words that are added side by side.
const LANES: usize = 16;

/// At most 32 bits and a carry, so that many such sums can be added.
fn narrow(sum: u64) -> u64 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    (sum >> 32) + (sum & 0xffff_ffff)
}

/// The checksum after one word of the data has changed (RFC 1624, equation 3): equal to a new one over data that is not
/// all zeros.
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::default().word(!checksum).word(!old).word(new).checksum()
}

/// The sum of the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1) but for its length: `addresses` are source
/// and destination as they stand in the header.
#[must_use]
pub(crate) fn pseudo(addresses: &[u8], protocol: u8) -> Sum {
    Sum::of(addresses).word(u16::from(protocol))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::slow_sum as slow;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071_section_3_sums_up() {
        assert_eq!(Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).folded(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_section_4_has_its_zero() {
        // RFC 1141 would give 0xffff here.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn the_longest_packet_of_all_ones_does_not_overflow() {
        assert_eq!(Sum::of(&[0xff; 65_536]).folded(), 0xffff);
        let many = (0..100_000).fold(Sum::default(), |sum, _| sum.plus(Sum::of(&[0xff; 64])));
        assert_eq!(many.folded(), 0xffff);
    }

    proptest! {
        #[test]
        fn the_fast_sum_is_the_slow_sum(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert_eq!(Sum::of(&bytes).folded(), slow(&bytes));
        }

        #[test]
        fn a_sum_may_be_made_of_two_parts(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0..200_usize) {
            let (left, right) = bytes.split_at(at.min(bytes.len()));
            let right = Sum::of(right);
            let right = if left.len() % 2 == 1 { right.swapped() } else { right };
            prop_assert_eq!(Sum::of(left).plus(right).folded(), slow(&bytes));
        }

        #[test]
        fn an_update_is_a_new_sum(first in 1..=u16::MAX, words in proptest::collection::vec(any::<u16>(), 1..20),
                                  at in 0..20_usize, new in prop_oneof![Just(0), Just(0xffff), any::<u16>()]) {
            let mut words = words;
            let at = at % words.len();
            let sum = |words: &[u16]| words.iter().fold(Sum::default().word(first), |sum, word| sum.word(*word)).checksum();
            let before = sum(&words);
            let old = core::mem::replace(&mut words[at], new);
            prop_assert_eq!(update(before, old, new), sum(&words));
        }
    }
}
