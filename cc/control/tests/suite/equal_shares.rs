//! Equal shares: each of n paths is an n-th of a Reno, whatever the others do.
//!
//! - Increase: `1 / (n^2 w)` packets per packet acknowledged. Decrease: half.
//!
//! Where `1 / (n^2 w) = p w / 2`, at loss probability p, the window is `sqrt(2 / p) / n`: an n-th of Reno's.
//!
//! Source: Honda et al., "Multipath congestion control for shared bottleneck" (PFLDNeT 2009).

use control::frame::{Coupled, Coupling, SubflowGroup};
use control::{AlgorithmEntry, Constructor};

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "equal-shares",
    aliases: &[],
    title: "each of n paths an n-th of Reno",
    source: "Honda et al., PFLDNeT 2009",
    parameters: &[],
    make: Constructor::Group(|_| Box::new(Coupled::new(EqualShares))),
};

/// Its own part: how fast it grows. It halves by default; slow start, one cut a round and undo are the frame's.
#[derive(Debug)]
pub struct EqualShares;

impl Coupling for EqualShares {
    type PathState = (); // nothing to remember of a path

    fn increase(&mut self, paths: &SubflowGroup<'_, ()>) -> f64 {
        let n = paths.active().count() as f64;
        1.0 / (n * n * paths.own().cwnd)
    }
}
