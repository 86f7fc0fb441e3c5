//! SEMICOUPLED: a linked increase, Reno's decrease.
//!
//! - Increase: `a / sum(w)` per packet acknowledged. Decrease: half.
//!
//! Traffic prefers the less congested paths (at equilibrium, windows are proportional to 1 / p), but some stays on
//! each. With n equal paths, the total is `sqrt(2 a n / p)`; with `a = 1 / n` it is that of one Reno flow. The default
//! is 1.
//!
//! Source: Wischik, Raiciu, Greenhalgh and Handley, NSDI 2011, where LIA is derived from it.

use super::{PATH, boxed};
use crate::common::{Coupling, SubflowGroup};
use crate::{AlgorithmEntry, Constructor, ParamKind, Parameter, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "semicoupled",
    aliases: &[],
    title: "linked increase, plain halving: the textbook step towards LIA",
    source: "Wischik et al., NSDI 2011",
    parameters: &[
        Parameter {
            name: "a",
            description: "packets by which all windows together grow per total window acknowledged",
            kind: ParamKind::Number { default: 1.0, min: 0.001, max: 100.0 },
        },
        PATH,
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|params| boxed(params, Semicoupled { a: params.number("a") })),
};

/// SEMICOUPLED.
#[derive(Debug)]
pub struct Semicoupled {
    a: f64,
}

impl Coupling for Semicoupled {
    type PathState = ();

    fn increase(&mut self, group: &SubflowGroup<'_, ()>) -> f64 {
        self.a / group.total_cwnd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::{for_each_path, siblings};

    #[test]
    fn all_windows_grow_by_the_same() {
        let increases =
            for_each_path(&mut siblings(&[(10.0, 0.1), (30.0, 0.5)]), |group| Semicoupled { a: 1.0 }.increase(group));
        assert_eq!(increases, [0.025, 0.025]);
    }
}
