//! EWTCP: equally weighted paths, each with 1/n of a Reno window.
//!
//! - Increase: `1 / (n^2 w)` per packet acknowledged, n the number of paths. Decrease: half.
//!
//! At loss probability p the window settles where `a / w = p w / 2`, that is at `sqrt(2 a / p)`. With a = 1 / n^2, each
//! path gets 1 / n of a Reno window, and on a shared bottleneck all paths together get one. No traffic is shifted
//! between paths.
//!
//! Source: Honda, Nishida, Eggert, Sarolahti and Tokuda, "Multipath congestion control for shared bottleneck" (PFLDNeT
//! 2009), as a baseline of Wischik et al. (NSDI 2011). The weight is derived from the formula above, not taken from the
//! paper.

use super::{PATH, boxed};
use crate::common::{Coupling, SubflowGroup};
use crate::{AlgorithmEntry, Constructor, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "ewtcp",
    aliases: &[],
    title: "equally weighted: each of n paths gets 1/n of a Reno flow; the paths are not linked",
    source: "Honda et al., PFLDNeT 2009",
    parameters: &[PATH],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|params| boxed(params, Ewtcp)),
};

/// EWTCP.
#[derive(Debug)]
pub struct Ewtcp;

impl Coupling for Ewtcp {
    type PathState = ();

    fn increase(&mut self, group: &SubflowGroup<'_, ()>) -> f64 {
        let share = 1.0 / group.active().count() as f64;
        share * share / group.own_subflow().cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::{for_each_path, siblings};

    #[test]
    fn each_of_n_paths_grows_n_squared_times_slower_than_reno() {
        let increases = for_each_path(&mut siblings(&[(10.0, 0.1), (20.0, 0.5)]), |group| Ewtcp.increase(group));
        assert_eq!(increases, [1.0 / 40.0, 1.0 / 80.0]);
    }
}
