//! Which segments have arrived: everything below `next`, and a bitmap of what lies above.

use std::collections::VecDeque;

/// The out-of-order queue as a bitmap: striping leaves hundreds of one-segment holes, and each costs one bit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    next: u64,
    /// Bit `i` of word `w` stands for segment `(base + w) * 64 + i`.
    words: VecDeque<u64>,
    base: u64,
    waiting: u64,
}

impl Reassembly {
    /// The next segment in order.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Segments that wait for an earlier one.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// True if no segment is out of order.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a segment. False if it is a duplicate.
    pub(crate) fn insert(&mut self, seq: u64) -> bool {
        if seq == self.next && self.waiting == 0 {
            self.next += 1;
            return true;
        }
        if seq < self.next {
            return false;
        }
        if self.waiting == 0 {
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
        self.waiting += 1;
        if seq == self.next {
            self.advance();
        }
        true
    }

    /// Moves `next` over everything contiguous.
    fn advance(&mut self) {
        while self.waiting > 0 {
            let word = self.words[(self.next / 64 - self.base) as usize];
            let run = u64::from((!(word >> (self.next % 64))).trailing_zeros()).min(64 - self.next % 64);
            self.next += run;
            self.waiting -= run;
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
    fn agrees_with_a_set_under_any_order() {
        let mut stream = units::RngStream::named(3, "reassembly");
        let mut reassembly = Reassembly::default();
        let (mut seen, mut next) = (std::collections::BTreeSet::new(), 0);
        for _ in 0..20_000 {
            let seq = next + stream.below(300);
            assert_eq!(reassembly.insert(seq), seen.insert(seq));
            while seen.contains(&next) {
                next += 1;
            }
            assert_eq!(reassembly.next(), next);
            assert_eq!(reassembly.waiting(), seen.range(next..).count() as u64);
        }
        assert!(next > 1000, "the test must make progress");
    }
}
