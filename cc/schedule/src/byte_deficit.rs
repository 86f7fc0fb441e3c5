//! Weighted byte deficit: bytes in proportion to the weights. The path with the largest deficit carries the next
//! packet.
//!
//! Unlike packet round robin, this keeps the shares right if small packets (acknowledgements) and large ones are mixed.
//! Source: deficit counters of Shreedhar and Varghese, SIGCOMM 1995, kept per path instead of per flow.

use crate::{Constructor, Fill, Needs, Pick, Scheduler, SchedulerEntry, SchedulerView};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "byte-deficit",
    aliases: &["deficit"],
    title: "weighted sharing that counts bytes",
    source: "Shreedhar and Varghese, SIGCOMM 1995",
    code_version: None,
    needs: Needs::Nothing,
    fill: Fill::Cwnd,
    parameters: &[],
    constructor: Constructor::Function(|setup| Box::new(ByteDeficit::new(setup.weights, setup.first))),
};

/// Maximum deficit of a path, bytes over weight. It keeps a path that was down from catching up.
const MAX_DEFICIT: u64 = (u16::MAX as u64) << FRACTION;
/// Bits after the binary point in the byte counts.
const FRACTION: u32 = 20;

/// State of the byte deficit.
#[derive(Clone, Debug)]
pub struct ByteDeficit {
    weights: Vec<u64>,
    /// Bytes over weight in excess of those of the path with the largest deficit; fixed point.
    virtual_bytes: Vec<u64>,
    first: usize,
}

impl ByteDeficit {
    /// Paths with these weights (0 or none counts as 1); ties go to path `first` and the ones after it.
    #[must_use]
    pub fn new(weights: &[u32], first: u32) -> Self {
        let weights: Vec<u64> = weights.iter().map(|weight| u64::from((*weight).max(1))).collect();
        Self { virtual_bytes: vec![0; weights.len()], first: first as usize % weights.len().max(1), weights }
    }

    /// Subtracts the common part, as only differences matter, and bounds the deficits.
    fn normalise(&mut self) {
        let min_kept = self.virtual_bytes.iter().max().map_or(0, |max| max.saturating_sub(MAX_DEFICIT));
        self.virtual_bytes.iter_mut().for_each(|bytes| *bytes = min_kept.max(*bytes));
        let min = self.virtual_bytes.iter().min().copied().unwrap_or(0);
        self.virtual_bytes.iter_mut().for_each(|bytes| *bytes -= min);
    }
}

impl Scheduler for ByteDeficit {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let paths = view.paths.len();
        self.weights.resize(paths, 1);
        self.virtual_bytes.resize(paths, 0);
        let cost = |path: usize| (u64::from(view.packet_bytes) << FRACTION) / self.weights[path];
        let turn = |path: usize| (path + paths - self.first) % paths;
        let finish = |path: usize| (self.virtual_bytes[path] + cost(path), turn(path));
        let (chosen, _) = view
            .paths_with_room()
            .filter(|_| view.sendable_packets() > 0)
            .min_by_key(|(path, _)| finish(path.index()))?;
        self.virtual_bytes[chosen.index()] += cost(chosen.index());
        self.normalise();
        Some(Pick::next(chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::picks;

    #[test]
    fn bytes_follow_the_weights_whatever_the_packet_sizes() {
        let mut deficit = ByteDeficit::new(&[3, 1], 0);
        let mut rng = units::RngStream::named(1, "sizes");
        let mut carried = [0u64; 2];
        for _ in 0..40_000 {
            let bytes = if rng.chance(0.5) { 40 } else { 1500 };
            let path = picks(&mut deficit, 1, bytes, [true; 2])[0];
            carried[usize::from(path)] += u64::from(bytes);
        }
        let share = carried[0] as f64 / (carried[0] + carried[1]) as f64;
        assert!((share - 0.75).abs() < 1e-3, "{share}");
    }

    #[test]
    fn a_path_that_was_down_catches_up_by_64_kib_only() {
        let mut deficit = ByteDeficit::new(&[1, 1], 0);
        assert_eq!(picks(&mut deficit, 10_000, 1500, [true, false]), [0; 10_000]);
        let until_even = (0..).take_while(|_| picks(&mut deficit, 1, 1500, [true; 2]) == [1]).count();
        assert_eq!(until_even, 65_535_usize.div_ceil(1500), "it goes next while it is behind: by 64 KiB, not by 15 MB");
        assert_eq!(picks(&mut deficit, 1, 1500, [false; 2]), []);
    }

    #[test]
    fn equal_packets_alternate_from_the_first_path() {
        assert_eq!(picks(&mut ByteDeficit::new(&[1, 1], 1), 4, 1500, [true; 2]), [1, 0, 1, 0]);
    }
}
