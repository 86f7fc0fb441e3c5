//! What has arrived on one path: which packet number a datagram means, and whether it came before.
//!
//! A ring of bits that never shifts, as RFC 6479: a number's block is its place divided by 64, modulo the ring; when the
//! largest number moves on, the blocks it passes are cleared. One block of the ring is not part of the window, which so
//! is full whatever the largest's place within its own block.

/// Blocks of 64 bits: 16 KiB a path.
const BLOCKS: usize = 2048;

/// Numbers up to the largest that are told apart. At 500 000 datagrams a second this is 260 ms of reordering *within* one
/// path.
pub const WINDOW: u64 = (BLOCKS as u64 - 1) * 64;

const _: () = assert!(WINDOW >= 65_536);

/// Numbers end here, as in RFC 9000 section 12.3: 2^62.
pub(crate) const END: u64 = 1 << 62;

/// The packet numbers that arrived on a path.
pub(crate) struct Window {
    /// One more than the largest that arrived.
    next: u64,
    blocks: Box<[u64; BLOCKS]>,
}

/// Why a number cannot be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It has arrived.
    Seen,
    /// It lies behind the window: nobody remembers.
    TooOld,
}

impl Window {
    /// Nothing has arrived; `next` is the number to expect.
    pub(crate) fn new(next: u64) -> Self {
        Self { next, blocks: Box::new([0; BLOCKS]) }
    }

    /// One more than the largest that arrived.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// The number whose low half is `low` and which is nearest to the expected one (RFC 9000, appendix A.3).
    pub(crate) const fn expand(&self, low: u32) -> u64 {
        const HALF: u64 = 1 << 31;
        const WHOLE: u64 = 1 << 32;
        let candidate = self.next & !(WHOLE - 1) | low as u64;
        if candidate.saturating_add(HALF) <= self.next && candidate < END - WHOLE {
            candidate + WHOLE
        } else if candidate > self.next.saturating_add(HALF) && candidate >= WHOLE {
            candidate - WHOLE
        } else {
            candidate
        }
    }

    /// Whether `number` may be new. Costs no cryptography, and says nothing about who sent it.
    pub(crate) const fn check(&self, number: u64) -> Result<(), Stale> {
        if number >= self.next {
            return Ok(());
        }
        if self.next - number > WINDOW {
            return Err(Stale::TooOld);
        }
        let (block, bit) = place(number);
        if self.blocks[block] & bit == 0 { Ok(()) } else { Err(Stale::Seen) }
    }

    /// `number`, which [`check`](Self::check) let pass, has proved true.
    pub(crate) fn insert(&mut self, number: u64) {
        if number >= self.next {
            self.advance(number);
        }
        let (block, bit) = place(number);
        self.blocks[block] |= bit;
    }

    /// Clears the blocks from the expected number's to `number`'s, without the former unless it begins there.
    fn advance(&mut self, number: u64) {
        let first = self.next.div_ceil(64);
        let last = number / 64;
        let count = (last + 1).saturating_sub(first).min(BLOCKS as u64);
        for block in 0..count {
            self.blocks[(last - block) as usize % BLOCKS] = 0;
        }
        self.next = number + 1;
    }
}

const fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize % BLOCKS, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// What a window does, without a ring: all numbers, and the largest.
    #[derive(Default)]
    struct Naive {
        seen: BTreeSet<u64>,
    }

    impl Naive {
        fn check(&self, number: u64) -> Result<(), Stale> {
            let next = self.seen.last().map_or(0, |largest| largest + 1);
            if next > number && next - number > WINDOW {
                return Err(Stale::TooOld);
            }
            if self.seen.contains(&number) { Err(Stale::Seen) } else { Ok(()) }
        }
    }

    #[test]
    fn the_example_of_rfc_9000_appendix_a_3_with_four_bytes() {
        // There: largest 0xa82f30ea, 16 bits 0x9b32 give 0xa82f9b32. Here the same digits, 16 bits further up.
        let window = Window::new(0xa82f_30ea_0000 + 1);
        assert_eq!(window.expand(0x9b32_0000), 0xa82f_9b32_0000);
    }

    #[test]
    fn a_number_wraps_forwards_and_backwards_at_the_half() {
        let window = Window::new(0x1_0000_0000);
        assert_eq!(window.expand(5), 0x1_0000_0005);
        assert_eq!(window.expand(0xffff_fffe), 0xffff_fffe, "late, from before the low half wrapped");
        assert_eq!(Window::new(0xffff_ffff).expand(2), 0x1_0000_0002, "early, from after it");
        assert_eq!(Window::new(0).expand(0xffff_ffff), 0xffff_ffff, "there is nothing below zero");
        assert!(Window::new(END - 1).expand(0) < END, "nothing reaches beyond the end");
    }

    #[test]
    fn the_window_is_full_and_ends_where_it_says() {
        let mut window = Window::new(0);
        window.insert(WINDOW + 62);
        assert_eq!(window.check(63), Ok(()));
        assert_eq!(window.check(62), Err(Stale::TooOld));
    }

    #[test]
    fn every_number_is_new_once_over_three_rounds_of_the_ring() {
        let mut window = Window::new(0);
        for place in 0..BLOCKS as u64 * 64 * 3 {
            let number = place ^ 1; // each second one comes too late by one
            assert_eq!(window.check(number), Ok(()), "number {number}");
            window.insert(number);
            assert_eq!(window.check(number), Err(Stale::Seen), "number {number}");
        }
    }

    proptest! {
        #[test]
        fn the_ring_answers_as_a_set_of_all_numbers_does(
            steps in prop::collection::vec((0u8..4, 0u64..3 * WINDOW), 1..400),
        ) {
            let (mut window, mut naive) = (Window::new(0), Naive::default());
            for (kind, amount) in steps {
                let number = match kind {
                    0 => window.next() + amount % 70,
                    1 => window.next() + amount,
                    2 => window.next().saturating_sub(amount % 200),
                    _ => window.next().saturating_sub(amount),
                };
                prop_assert_eq!(window.check(number), naive.check(number), "number {}", number);
                if naive.check(number).is_ok() {
                    window.insert(number);
                    naive.seen.insert(number);
                }
            }
        }
    }
}
