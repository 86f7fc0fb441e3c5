//! Fully coupled (COUPLED): all windows behave as one.
//!
//! - Increase: `1 / sum(w)` per packet acknowledged. Decrease: `sum(w) / 2`, down to the minimum window.
//!
//! The total is Reno's for any number of paths, and all of it is on the least congested path. It flaps between equal
//! paths, and hardly probes a path that it has left.
//!
//! Source: Kelly and Voice, "Stability of end-to-end algorithms for joint routing and rate control" (CCR 2005), and Han
//! et al. (ToN 2006), as a baseline of Wischik et al. (NSDI 2011).

use super::{PATH, boxed};
use crate::common::{Coupling, SubflowGroup};
use crate::{AlgorithmEntry, Constructor, Properties};
use units::Instant;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "fully-coupled",
    aliases: &[],
    title: "all windows as one: all traffic moves to the least congested path",
    source: "Kelly and Voice, CCR 2005; Wischik et al., NSDI 2011",
    parameters: &[PATH],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|params| boxed(params, FullyCoupled)),
};

/// Fully coupled congestion control.
#[derive(Debug)]
pub struct FullyCoupled;

impl Coupling for FullyCoupled {
    type PathState = ();

    fn increase(&mut self, group: &SubflowGroup<'_, ()>) -> f64 {
        1.0 / group.total_cwnd()
    }

    fn decrease(&mut self, group: &SubflowGroup<'_, ()>, _now: Instant) -> f64 {
        group.total_cwnd() / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::{for_each_path, siblings};

    #[test]
    fn a_loss_reduces_by_half_of_the_total() {
        let step = |group: &mut SubflowGroup<'_, ()>| {
            (FullyCoupled.increase(group), FullyCoupled.decrease(group, Instant::ZERO))
        };
        assert_eq!(for_each_path(&mut siblings(&[(10.0, 0.1), (30.0, 0.5)]), step), [(0.025, 20.0); 2]);
    }
}
