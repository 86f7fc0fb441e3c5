//! The most recent SACK blocks (RFC 2018 section 4: the newest first, older ones repeated).

/// Up to four blocks, the most recently changed first.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentBlocks {
    blocks: Vec<(u64, u64)>,
}

/// Linux keeps four blocks.
const MAX_BLOCKS: usize = 4;

impl RecentBlocks {
    /// The position of the block that `seq` would extend, or one past the last.
    pub(super) fn position(&self, seq: u64) -> usize {
        let is_adjacent = |block: &(u64, u64)| block.0 <= seq + 1 && seq <= block.1;
        self.blocks.iter().position(is_adjacent).unwrap_or(self.blocks.len())
    }

    /// Adds a segment that arrived out of order.
    pub(super) fn add(&mut self, seq: u64) {
        let mut block = (seq, seq + 1);
        self.blocks.retain(|known| {
            let is_adjacent = known.0 <= block.1 && block.0 <= known.1;
            if is_adjacent {
                block = (known.0.min(block.0), known.1.max(block.1));
            }
            !is_adjacent
        });
        self.blocks.truncate(MAX_BLOCKS - 1);
        self.blocks.insert(0, block);
    }

    /// Removes the blocks below `next`, which are cumulatively acknowledged.
    #[inline]
    pub(super) fn remove_below(&mut self, next: u64) {
        if !self.blocks.is_empty() {
            self.blocks.retain(|block| block.1 > next);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_comes_first_and_neighbours_merge() {
        let mut blocks = RecentBlocks::default();
        [5, 9, 7, 8, 20, 30, 40].iter().for_each(|seq| blocks.add(*seq));
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [(40, 41), (30, 31), (20, 21), (7, 10)]);
        blocks.remove_below(30);
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [(40, 41), (30, 31)]);
    }
}
