//! The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of 16-bit words.
//!
//! The sum is independent of byte order (RFC 1071, section 2 (B)): it is computed over words of the machine's order,
//! and swapped at the end. It may be computed over wider words and folded later (section 2 (C)): 32 bits at a time are
//! added in 64-bit lanes, which the compiler vectorises.

/// An unfolded ones' complement sum. Added data begins at an even offset.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of `bytes`; an odd last byte counts as if a zero byte followed.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut lanes = [0; LANES];
        let (blocks, remainder) = bytes.as_chunks::<{ 4 * LANES }>();
        for block in blocks {
            let (words, _) = block.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let (words, last_bytes) = remainder.as_chunks::<4>();
        let words: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        let mut last = [0; 4];
        last[..last_bytes.len()].copy_from_slice(last_bytes);
        Self(fold_to_32(lanes.iter().sum::<u64>() + words + u64::from(u32::from_ne_bytes(last))))
    }

    /// Adds one word.
    #[must_use]
    pub fn add_word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// Adds another sum.
    #[must_use]
    pub fn add_sum(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The folded sum; 0 only if all words are 0.
    #[must_use]
    pub fn folded(self) -> u16 {
        let sum = fold_to_32(self.0);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        u16::from_be(sum as u16)
    }

    /// The checksum: the complement of the sum; 0 over data that includes its correct checksum.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Number of lanes.
const LANES: usize = 16;

/// Folds to 32 bits and a carry, so that many sums can be added.
fn fold_to_32(sum: u64) -> u64 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    (sum >> 32) + (sum & 0xffff_ffff)
}

/// Updates a checksum after one word of the data has changed (RFC 1624, equation 3).
#[must_use]
pub fn update(checksum: u16, old_word: u16, new_word: u16) -> u16 {
    Sum::default().add_word(!checksum).add_word(!old_word).add_word(new_word).checksum()
}

/// The sum of the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1) without its length; `addresses` are
/// source and destination as in the IP header.
#[must_use]
pub(crate) fn pseudo_header_sum(addresses: &[u8], protocol: u8) -> Sum {
    Sum::of(addresses).add_word(u16::from(protocol))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::reference_sum;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        assert_eq!(Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).folded(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_section_4() {
        // RFC 1141 would give 0xffff here.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn the_sum_of_the_longest_packet_does_not_overflow() {
        assert_eq!(Sum::of(&[0xff; 65_536]).folded(), 0xffff);
        let sum = (0..100_000).fold(Sum::default(), |sum, _| sum.add_sum(Sum::of(&[0xff; 64])));
        assert_eq!(sum.folded(), 0xffff);
    }

    proptest! {
        #[test]
        fn the_sum_equals_a_plain_loop(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert_eq!(Sum::of(&bytes).folded(), reference_sum(&bytes));
        }

        #[test]
        fn the_sum_of_two_parts_is_that_of_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..200), split in 0..200_usize) {
            let (left, right) = bytes.split_at(split.min(bytes.len()) & !1);
            let right = Sum::of(right);
            prop_assert_eq!(Sum::of(left).add_sum(right).folded(), reference_sum(&bytes));
        }

        #[test]
        fn an_updated_checksum_equals_a_new_one(first in 1..=u16::MAX, words in proptest::collection::vec(any::<u16>(), 1..20),
                                  index in 0..20_usize, new_word in prop_oneof![Just(0), Just(0xffff), any::<u16>()]) {
            let mut words = words;
            let index = index % words.len();
            let sum = |words: &[u16]| words.iter().fold(Sum::default().add_word(first), |sum, word| sum.add_word(*word)).checksum();
            let checksum = sum(&words);
            let old_word = core::mem::replace(&mut words[index], new_word);
            prop_assert_eq!(update(checksum, old_word, new_word), sum(&words));
        }
    }
}
