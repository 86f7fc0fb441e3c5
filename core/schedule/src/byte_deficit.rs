//! Weighted byte deficit: each path is owed bytes in proportion to its weight, and the one owed most goes next.
//!
//! Unlike packet round robin it keeps the shares right when small packets (acknowledgements) and large ones are mixed.
//! Source: deficit counters of Shreedhar and Varghese, SIGCOMM 1995, kept per path instead of per flow.

use crate::{Entry, Scheduler};
use units::PathId;

/// The registry's line.
pub(crate) const ENTRY: Entry = Entry {
    name: "byte-deficit",
    aliases: &["deficit"],
    title: "weighted sharing that counts bytes",
    source: "Shreedhar and Varghese, SIGCOMM 1995",
    make: |weights, first| Box::new(ByteDeficit::new(weights, first)),
};

/// What each path has carried, in bytes over its weight.
#[derive(Clone, Debug)]
pub struct ByteDeficit {
    weights: Vec<u64>,
    /// Bytes carried times the other weights' product is avoided: 2^20 fixed point per unit of weight.
    carried: Vec<u64>,
    first: usize,
}

impl ByteDeficit {
    /// Paths with these weights (0 counts as 1); ties go to path `first` and the ones after it.
    #[must_use]
    pub fn new(weights: &[u32], first: u32) -> Self {
        let weights: Vec<u64> = weights.iter().map(|weight| u64::from((*weight).max(1))).collect();
        Self { carried: vec![0; weights.len()], first: first as usize % weights.len().max(1), weights }
    }
}

impl Scheduler for ByteDeficit {
    fn pick(&mut self, bytes: u32, usable: &dyn Fn(PathId) -> bool) -> Option<PathId> {
        let paths = self.weights.len();
        let charge = |path: usize| (u64::from(bytes) << 20) / self.weights[path];
        let chosen = (0..paths)
            .map(|step| (self.first + step) % paths)
            .filter(|path| usable(PathId(*path as u16)))
            .min_by_key(|path| self.carried[*path] + charge(*path))?;
        self.carried[chosen] += charge(chosen);
        // A path that was down must not be owed its absence: nobody lags by more than a burst.
        let most = self.carried.iter().copied().max().unwrap_or(0);
        let floor = most.saturating_sub(u64::from(u16::MAX) << 20);
        let least = self.carried.iter_mut().map(|carried| {
            *carried = (*carried).max(floor);
            *carried
        });
        let least = least.min().unwrap_or(0);
        self.carried.iter_mut().for_each(|carried| *carried -= least);
        Some(PathId(chosen as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_the_weights_whatever_the_packet_sizes() {
        let mut deficit = ByteDeficit::new(&[3, 1], 0);
        let mut random = units::Stream::named(1, "sizes");
        let mut carried = [0u64; 2];
        for _ in 0..40_000 {
            let bytes = if random.chance(0.5) { 40 } else { 1500 };
            let path = deficit.pick(bytes, &|_| true).expect("both are usable");
            carried[path.index()] += u64::from(bytes);
        }
        let share = carried[0] as f64 / (carried[0] + carried[1]) as f64;
        assert!((share - 0.75).abs() < 1e-3, "{share}");
    }

    #[test]
    fn equal_packets_alternate_from_the_first_path() {
        let mut deficit = ByteDeficit::new(&[1, 1], 1);
        let picks: Vec<u16> = (0..4).filter_map(|_| deficit.pick(1500, &|_| true).map(|path| path.0)).collect();
        assert_eq!(picks, [1, 0, 1, 0]);
    }
}
