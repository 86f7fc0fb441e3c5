//! The replay window of one path: expands truncated packet numbers and detects replays.
//!
//! A ring of bits that never shifts (RFC 6479): a number's block is the number divided by 64, modulo the ring; when the largest
//! number advances, the blocks that it passes are cleared. One block of the ring is not part of the window, so that the window
//! has its full size wherever the largest number lies in its block.

/// Blocks of 64 bits: 16 KiB per path.
const BLOCKS: usize = 2048;

/// Size of the window, packet numbers. At 500 000 datagrams a second it allows 260 ms of reordering *within* one path.
pub const REPLAY_WINDOW: u64 = (BLOCKS as u64 - 1) * 64;

const _: () = assert!(REPLAY_WINDOW >= 65_536);

/// Packet numbers are less than this (RFC 9000, section 12.3).
pub(crate) const PACKET_NUMBER_LIMIT: u64 = 1 << 62;

/// The packet numbers received on a path.
pub(crate) struct ReplayWindow {
    /// One more than the largest received number.
    next: u64,
    blocks: Box<[u64; BLOCKS]>,
}

/// Why a packet number is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// It was received before.
    Duplicate,
    /// It is behind the window.
    TooOld,
}

impl ReplayWindow {
    /// An empty window that expects the number `next`.
    pub(crate) fn new(next: u64) -> Self {
        Self { next, blocks: Box::new([0; BLOCKS]) }
    }

    /// One more than the largest received number.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Expands the low half of a packet number to the full number nearest to the expected one (RFC 9000, appendix A.3).
    pub(crate) const fn expand(&self, low: u32) -> u64 {
        const HALF: u64 = 1 << 31;
        const WHOLE: u64 = 1 << 32;
        let candidate = self.next & !(WHOLE - 1) | low as u64;
        if candidate.saturating_add(HALF) <= self.next && candidate < PACKET_NUMBER_LIMIT - WHOLE {
            candidate + WHOLE
        } else if candidate > self.next.saturating_add(HALF) && candidate >= WHOLE {
            candidate - WHOLE
        } else {
            candidate
        }
    }

    /// Checks that `number` is new, before the datagram is authenticated.
    pub(crate) const fn check(&self, number: u64) -> Result<(), Replay> {
        if number >= self.next {
            return Ok(());
        }
        if self.next - number > REPLAY_WINDOW {
            return Err(Replay::TooOld);
        }
        let (block, bit) = block_and_bit(number);
        if self.blocks[block] & bit == 0 { Ok(()) } else { Err(Replay::Duplicate) }
    }

    /// Records `number`, which passed [`check`](Self::check) and was authenticated.
    pub(crate) fn insert(&mut self, number: u64) {
        if number >= self.next {
            self.advance(number);
        }
        let (block, bit) = block_and_bit(number);
        self.blocks[block] |= bit;
    }

    /// Clears the blocks between the expected number and `number`.
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

const fn block_and_bit(number: u64) -> (usize, u64) {
    ((number / 64) as usize % BLOCKS, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A replay window as a set of all received numbers.
    #[derive(Default)]
    struct Naive {
        seen: BTreeSet<u64>,
    }

    impl Naive {
        fn check(&self, number: u64) -> Result<(), Replay> {
            let next = self.seen.last().map_or(0, |largest| largest + 1);
            if next > number && next - number > REPLAY_WINDOW {
                return Err(Replay::TooOld);
            }
            if self.seen.contains(&number) { Err(Replay::Duplicate) } else { Ok(()) }
        }
    }

    #[test]
    fn the_example_of_rfc_9000_appendix_a_3_with_four_bytes() {
        // There: largest 0xa82f30ea, 16 bits 0x9b32 give 0xa82f9b32. Here the same digits, 16 bits further up.
        let window = ReplayWindow::new(0xa82f_30ea_0000 + 1);
        assert_eq!(window.expand(0x9b32_0000), 0xa82f_9b32_0000);
    }

    #[test]
    fn a_number_wraps_forwards_and_backwards_at_the_half() {
        let window = ReplayWindow::new(0x1_0000_0000);
        assert_eq!(window.expand(5), 0x1_0000_0005);
        assert_eq!(window.expand(0xffff_fffe), 0xffff_fffe, "late, from before the low half wrapped");
        assert_eq!(ReplayWindow::new(0xffff_ffff).expand(2), 0x1_0000_0002, "early, from after it");
        assert_eq!(ReplayWindow::new(0).expand(0xffff_ffff), 0xffff_ffff, "there is nothing below zero");
        assert!(
            ReplayWindow::new(PACKET_NUMBER_LIMIT - 1).expand(0) < PACKET_NUMBER_LIMIT,
            "nothing reaches beyond the end"
        );
    }

    #[test]
    fn the_window_has_its_full_size() {
        let mut window = ReplayWindow::new(0);
        window.insert(REPLAY_WINDOW + 62);
        assert_eq!(window.check(63), Ok(()));
        assert_eq!(window.check(62), Err(Replay::TooOld));
    }

    #[test]
    fn every_number_is_accepted_once_over_three_rounds_of_the_ring() {
        let mut window = ReplayWindow::new(0);
        for step in 0..BLOCKS as u64 * 64 * 3 {
            let number = step ^ 1; // neighbours are swapped
            assert_eq!(window.check(number), Ok(()), "number {number}");
            window.insert(number);
            assert_eq!(window.check(number), Err(Replay::Duplicate), "number {number}");
        }
    }

    proptest! {
        #[test]
        fn the_ring_equals_a_set_of_all_numbers(
            steps in prop::collection::vec((0u8..4, 0u64..3 * REPLAY_WINDOW), 1..400),
        ) {
            let (mut window, mut naive) = (ReplayWindow::new(0), Naive::default());
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
