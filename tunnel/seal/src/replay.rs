//! The replay window of one path: decodes truncated packet numbers and detects replays.
//!
//! A ring of bits that never shifts (RFC 6479): a number's block is the number divided by 64, modulo the ring; when the
//! largest number advances, the blocks that it passes are cleared. One block of the ring is not part of the window, so
//! that the window always has its full size, whatever the position of the largest number in its block.
//!
//! The ring begins small and grows when a block in which numbers were received would leave it: the window of an idle
//! path, as most of a server's are, takes 32 bytes. Numbers in the window for which the ring has no block were not
//! received.

/// Maximum number of blocks of 64 bits: 16 KiB per path.
const BLOCKS: usize = 2048;
/// Number of blocks at first.
const INITIAL_BLOCKS: usize = 4;

/// Size of the window, packet numbers. At 500 000 datagrams per second it allows 260 ms of reordering *within* one
/// path.
pub const REPLAY_WINDOW: u64 = (BLOCKS as u64 - 1) * 64;

const _: () = assert!(REPLAY_WINDOW >= 65_536);

/// Packet numbers are less than this (RFC 9000, section 12.3).
pub(crate) const PACKET_NUMBER_LIMIT: u64 = 1 << 62;

/// The packet numbers received on a path.
pub(crate) struct ReplayWindow {
    /// The expected packet number: one more than the largest received.
    expected: u64,
    /// The blocks; their number is a power of two.
    blocks: Box<[u64]>,
}

/// Why a packet number is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayError {
    /// The packet number was received before.
    Duplicate,
    /// The packet number is behind the window.
    TooOld,
}

impl ReplayWindow {
    /// An empty window that expects the number `expected`.
    pub(crate) fn new(expected: u64) -> Self {
        Self { expected, blocks: [0; INITIAL_BLOCKS].into() }
    }

    /// The expected packet number: one more than the largest received.
    pub(crate) const fn expected(&self) -> u64 {
        self.expected
    }

    /// Decodes a packet number from its low 32 bits: the full number nearest to the expected one (RFC 9000, appendix
    /// A.3).
    pub(crate) const fn decode(&self, truncated: u32) -> u64 {
        const HALF: u64 = 1 << 31;
        const WHOLE: u64 = 1 << 32;
        let candidate = self.expected & !(WHOLE - 1) | truncated as u64;
        if candidate.saturating_add(HALF) <= self.expected && candidate < PACKET_NUMBER_LIMIT - WHOLE {
            candidate + WHOLE
        } else if candidate > self.expected.saturating_add(HALF) && candidate >= WHOLE {
            candidate - WHOLE
        } else {
            candidate
        }
    }

    /// Checks that `packet_number` is new, before the datagram is authenticated.
    pub(crate) fn check(&self, packet_number: u64) -> Result<(), ReplayError> {
        if packet_number >= self.expected {
            return Ok(());
        }
        if self.expected - packet_number > REPLAY_WINDOW {
            return Err(ReplayError::TooOld);
        }
        let is_new = !self.has_block(packet_number) || self.blocks[self.index(packet_number)] & bit(packet_number) == 0;
        if is_new { Ok(()) } else { Err(ReplayError::Duplicate) }
    }

    /// Records `packet_number`, which passed [`check`](Self::check) and was authenticated.
    pub(crate) fn insert(&mut self, packet_number: u64) {
        if packet_number >= self.expected {
            self.advance(packet_number);
        }
        while !self.has_block(packet_number) && self.blocks.len() < BLOCKS {
            self.grow();
        }
        let index = self.index(packet_number);
        self.blocks[index] |= bit(packet_number);
    }

    /// The block of the largest number.
    const fn last_block(&self) -> u64 {
        self.expected.saturating_sub(1) / 64
    }

    /// Whether the ring has the block of a number, which is less than the expected one.
    const fn has_block(&self, packet_number: u64) -> bool {
        self.last_block() - packet_number / 64 < self.blocks.len() as u64
    }

    const fn index(&self, packet_number: u64) -> usize {
        (packet_number / 64) as usize % self.blocks.len()
    }

    /// Clears the blocks between the expected number and `packet_number`.
    fn advance(&mut self, packet_number: u64) {
        let last = packet_number / 64;
        while self.blocks.len() < BLOCKS
            && self.first_block().is_some_and(|first| last - first >= self.blocks.len() as u64)
        {
            self.grow();
        }
        let first = self.expected.div_ceil(64);
        let count = (last + 1).saturating_sub(first).min(self.blocks.len() as u64);
        for block in 0..count {
            let index = (last - block) as usize % self.blocks.len();
            self.blocks[index] = 0;
        }
        self.expected = packet_number + 1;
    }

    /// The first block of the ring in which a number was received.
    fn first_block(&self) -> Option<u64> {
        let last = self.last_block();
        let first = (last + 1).saturating_sub(self.blocks.len() as u64);
        (first..=last).find(|block| self.blocks[*block as usize % self.blocks.len()] != 0)
    }

    /// Doubles the ring.
    fn grow(&mut self) {
        let (len, last) = (self.blocks.len(), self.last_block());
        let mut blocks = vec![0; 2 * len].into_boxed_slice();
        for block in (last + 1).saturating_sub(len as u64)..=last {
            blocks[block as usize % (2 * len)] = self.blocks[block as usize % len];
        }
        self.blocks = blocks;
    }
}

const fn bit(packet_number: u64) -> u64 {
    1 << (packet_number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A replay window as a set of all received numbers.
    #[derive(Default)]
    struct NumberSet {
        received: BTreeSet<u64>,
    }

    impl NumberSet {
        fn check(&self, packet_number: u64) -> Result<(), ReplayError> {
            let expected = self.received.last().map_or(0, |largest| largest + 1);
            if expected > packet_number && expected - packet_number > REPLAY_WINDOW {
                return Err(ReplayError::TooOld);
            }
            if self.received.contains(&packet_number) { Err(ReplayError::Duplicate) } else { Ok(()) }
        }
    }

    #[test]
    fn the_example_of_rfc_9000_appendix_a_3_with_four_bytes() {
        // There: largest 0xa82f30ea, 16 bits 0x9b32 give 0xa82f9b32. Here the same digits, 16 bits further up.
        let window = ReplayWindow::new(0xa82f_30ea_0000 + 1);
        assert_eq!(window.decode(0x9b32_0000), 0xa82f_9b32_0000);
    }

    #[test]
    fn a_number_wraps_forwards_and_backwards_at_the_half() {
        let window = ReplayWindow::new(0x1_0000_0000);
        assert_eq!(window.decode(5), 0x1_0000_0005);
        assert_eq!(window.decode(0xffff_fffe), 0xffff_fffe, "late, from before the low 32 bits wrapped");
        assert_eq!(ReplayWindow::new(0xffff_ffff).decode(2), 0x1_0000_0002, "early, from after it");
        assert_eq!(ReplayWindow::new(0).decode(0xffff_ffff), 0xffff_ffff, "there is nothing below zero");
        assert!(
            ReplayWindow::new(PACKET_NUMBER_LIMIT - 1).decode(0) < PACKET_NUMBER_LIMIT,
            "nothing reaches beyond the end"
        );
    }

    #[test]
    fn the_window_has_its_full_size() {
        let mut window = ReplayWindow::new(0);
        window.insert(REPLAY_WINDOW + 62);
        assert_eq!(window.check(63), Ok(()));
        assert_eq!(window.check(62), Err(ReplayError::TooOld));
    }

    #[test]
    fn every_number_is_accepted_once_over_three_rounds_of_the_ring() {
        let mut window = ReplayWindow::new(0);
        for step in 0..BLOCKS as u64 * 64 * 3 {
            let packet_number = step ^ 1; // neighbours are swapped
            assert_eq!(window.check(packet_number), Ok(()), "number {packet_number}");
            window.insert(packet_number);
            assert_eq!(window.check(packet_number), Err(ReplayError::Duplicate), "number {packet_number}");
        }
    }

    proptest! {
        #[test]
        fn the_ring_equals_a_set_of_all_numbers(
            steps in prop::collection::vec((0u8..4, 0u64..3 * REPLAY_WINDOW), 1..400),
        ) {
            let (mut window, mut number_set) = (ReplayWindow::new(0), NumberSet::default());
            for (kind, amount) in steps {
                let packet_number = match kind {
                    0 => window.expected() + amount % 70,
                    1 => window.expected() + amount,
                    2 => window.expected().saturating_sub(amount % 200),
                    _ => window.expected().saturating_sub(amount),
                };
                prop_assert_eq!(window.check(packet_number), number_set.check(packet_number), "number {}", packet_number);
                if number_set.check(packet_number).is_ok() {
                    window.insert(packet_number);
                    number_set.received.insert(packet_number);
                }
            }
        }
    }
}
