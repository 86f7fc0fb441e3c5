//! The out-of-order queue: all segments below `next` have arrived, and a bitmap marks those above that have arrived.

use std::collections::VecDeque;

/// The out-of-order queue as a bitmap, which holds hundreds of one-segment holes at one bit each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    next: u64,
    /// Bit `i` of word `w` stands for segment `(base + w) * 64 + i`.
    words: VecDeque<u64>,
    base: u64,
    out_of_order: u64,
}

impl Reassembly {
    /// The next segment in order.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Segments above a hole.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// True if no segment is out of order.
    pub(crate) fn is_empty(&self) -> bool {
        self.out_of_order == 0
    }

    /// Adds a segment. False if it is a duplicate.
    #[inline(always)]
    pub(crate) fn insert(&mut self, seq: u64) -> bool {
        if seq == self.next && self.out_of_order == 0 {
            self.next += 1;
            return true;
        }
        self.insert_out_of_order(seq)
    }

    #[inline(never)]
    fn insert_out_of_order(&mut self, seq: u64) -> bool {
        if seq < self.next {
            return false;
        }
        if self.out_of_order == 0 {
            self.words.clear();
            self.base = self.next / 64;
        }
        let word = (seq / 64 - self.base) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (seq % 64);
        if self.words[word] & bit != 0 {
            return false;
        }
        self.words[word] |= bit;
        self.out_of_order += 1;
        if seq == self.next {
            self.advance();
        }
        true
    }

    /// Moves `next` past all contiguous segments.
    fn advance(&mut self) {
        while self.out_of_order > 0 {
            let word = self.words[(self.next / 64 - self.base) as usize];
            let run = u64::from((!(word >> (self.next % 64))).trailing_zeros()).min(64 - self.next % 64);
            self.next += run;
            self.out_of_order -= run;
            if run == 0 || !self.next.is_multiple_of(64) {
                break;
            }
        }
        while self.base < self.next / 64 && !self.words.is_empty() {
            self.words.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitmap_agrees_with_a_set_in_any_order_of_arrival() {
        let mut rng = units::RngStream::named(3, "reassembly");
        let mut reassembly = Reassembly::default();
        let (mut inserted, mut next) = (std::collections::BTreeSet::new(), 0);
        for _ in 0..20_000 {
            let seq = next + rng.below(300);
            assert_eq!(reassembly.insert(seq), inserted.insert(seq));
            while inserted.contains(&next) {
                next += 1;
            }
            assert_eq!(reassembly.next(), next);
            assert_eq!(reassembly.out_of_order(), inserted.range(next..).count() as u64);
        }
        assert!(next > 1000, "the test must make progress");
    }
}
