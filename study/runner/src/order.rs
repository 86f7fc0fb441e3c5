//! The order of runs in real time: the machine's state drifts, and the drift must not be mistaken for an effect of the cell.
//!
//! Randomised blocks (R. A. Fisher, The Design of Experiments, 1935): a block is one run of every cell, all with the same
//! seed, in random order. So the repetitions of a cell are spread over the whole study. A block's order depends on the
//! study's seed and the block's alone: a shard or a resumed study makes its runs in the order of the whole.

use std::collections::BTreeMap;
use store::Key;
use units::RngStream;

/// The runs `keys` of a study with this many cells, in the order in which they are made: block by block, by seed.
pub(crate) fn in_blocks(order_seed: u64, cells: usize, keys: &[Key]) -> Vec<Key> {
    let mut ranks = BTreeMap::new();
    let mut order = keys.to_vec();
    order.sort_by_cached_key(|(cell, seed)| {
        let ranks = ranks.entry(*seed).or_insert_with(|| block_ranks(order_seed, *seed, cells));
        (*seed, ranks[*cell])
    });
    order
}

/// Random numbers by which a block's cells are sorted: 64 bits, so that two of them are never equal.
fn block_ranks(order_seed: u64, seed: u64, cells: usize) -> Vec<u64> {
    let mut stream = RngStream::named(order_seed, &format!("order of seed {seed}"));
    (0..cells).map(|_| stream.bits()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: usize = 6;

    fn keys() -> Vec<Key> {
        (0..CELLS).flat_map(|cell| [1, 2, 3, 4].map(|seed| (cell, seed))).collect()
    }

    #[test]
    fn each_block_has_every_cell_once_and_an_order_of_its_own() {
        let order = in_blocks(7, CELLS, &keys());
        let blocks: Vec<Vec<usize>> =
            order.chunks(CELLS).map(|block| block.iter().map(|(cell, _)| *cell).collect()).collect();
        for (block, runs) in blocks.iter().zip(order.chunks(CELLS)) {
            assert!(runs.iter().all(|run| run.1 == runs[0].1), "one seed: {runs:?}");
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..CELLS).collect::<Vec<_>>());
        }
        // Two of 720 orders are equal with probability 1/720; these are not.
        assert!(blocks.iter().zip(&blocks[1..]).all(|(one, next)| one != next), "{blocks:?}");
        assert_ne!(in_blocks(8, CELLS, &keys()), order, "another study has another order");
    }

    #[test]
    fn a_part_of_the_runs_keeps_the_order_of_the_whole() {
        let whole = in_blocks(7, CELLS, &keys());
        let is_left = |key: &Key| !(key.0 + key.1 as usize).is_multiple_of(3);
        let part: Vec<Key> = keys().into_iter().filter(is_left).collect();
        let expected: Vec<Key> = whole.into_iter().filter(is_left).collect();
        assert_eq!(in_blocks(7, CELLS, &part), expected);
    }

    /// 6000 draws of a cell's place: each of six places about 1000 times, with a standard deviation of 29.
    #[test]
    fn each_place_is_as_likely_for_each_cell() {
        let mut counts = [[0_i32; CELLS]; CELLS];
        for draw in 0..6000 {
            let order = in_blocks(draw, CELLS, &(0..CELLS).map(|cell| (cell, 1)).collect::<Vec<_>>());
            order.iter().enumerate().for_each(|(place, (cell, _))| counts[*cell][place] += 1);
        }
        assert!(counts.iter().flatten().all(|count| (count - 1000).abs() < 150), "five deviations: {counts:?}");
    }
}
