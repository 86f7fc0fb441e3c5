//! Equal shares: each of n paths has an n-th of a Reno window.
//!
//! - Increase: `1 / (n^2 w)` packets per packet acknowledged. Decrease: half.
//!
//! Where `1 / (n^2 w) = p w / 2`, at loss probability p, the window is `sqrt(2 / p) / n`: an n-th of Reno's.
//!
//! Source: Honda et al., "Multipath congestion control for shared bottleneck" (PFLDNeT 2009).

use ropewalk_control::common::{CoupledController, Coupling, SubflowGroup};
use ropewalk_control::{AlgorithmEntry, Constructor, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "equal-shares",
    aliases: &[],
    title: "each of n paths an n-th of Reno",
    source: "Honda et al., PFLDNeT 2009",
    parameters: &[],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|_| Box::new(CoupledController::new(EqualShares))),
};

/// Implements the increase only: the decrease is a half by default.
#[derive(Debug)]
pub struct EqualShares;

impl Coupling for EqualShares {
    type PathState = (); // no state of a path

    fn increase(&mut self, group: &SubflowGroup<'_, ()>) -> f64 {
        let n = group.active().count() as f64;
        1.0 / (n * n * group.own_subflow().cwnd)
    }
}
