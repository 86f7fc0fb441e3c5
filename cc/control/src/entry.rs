//! An algorithm's registration.

use crate::{Controller, Ecn, ParamError, ParamValue, Parameter, Params, PathController, Uncoupled};
use std::collections::BTreeMap;

/// One algorithm: its file declares it, [`crate::registry::REGISTRY`] lists it.
#[derive(Debug)]
pub struct AlgorithmEntry {
    /// Name, as in `net.ipv4.tcp_congestion_control`.
    pub name: &'static str,
    /// Names that papers use.
    pub aliases: &'static [&'static str],
    /// One line: what it is.
    pub title: &'static str,
    /// RFC, paper, kernel file.
    pub source: &'static str,
    /// Declared parameters.
    pub parameters: &'static [Parameter],
    /// What the algorithm requires, and where it deviates from the others.
    pub properties: Properties,
    /// Builds an instance.
    pub constructor: Constructor,
}

/// What an algorithm requires, and where it deviates from the others.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// ECN that it needs with these parameters.
    pub ecn: fn(&Params) -> Ecn,
    /// Minimum congestion window outside a reduction, packets.
    pub min_cwnd: u32,
    /// Deviations from the common behaviour, each with its reason, for the tests over the registry.
    pub deviations: &'static [(Deviation, &'static str)],
    /// Of a coupled algorithm: the single-path algorithm that it equals on a single path, if any.
    pub single_path: Option<&'static str>,
    /// Its colour in reports, `#rrggbb` on a white and on a black page; without one, a colour of the palette.
    pub colour: Option<[&'static str; 2]>,
}

impl Properties {
    /// Classic ECN, two packets, no deviations, Reno on a path alone, no colour.
    pub const DEFAULT: Self =
        Self { ecn: |_| Ecn::Classic, min_cwnd: 2, deviations: &[], single_path: Some("reno"), colour: None };
}

/// A deviation from the common behaviour of controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// Raises a congestion window that the sender does not fill.
    RaisesUnfilledCwnd,
    /// Does not return to the earlier window and threshold when a loss proved spurious.
    KeepsCwndOnUndo,
    /// Sets window and threshold when an episode ends, undone or not.
    SetsCwndOnRecovered,
    /// Reduces again on a loss in a window that was reduced because of a mark.
    ReducesOnLossAfterMark,
}

/// How an algorithm is built.
#[derive(Clone, Copy, Debug)]
pub enum Constructor {
    /// One instance a path.
    PerPath(fn(&Params) -> Box<dyn PathController>),
    /// One instance for all paths of a connection, which it couples.
    Coupled(fn(&Params) -> Box<dyn Controller>),
}

impl AlgorithmEntry {
    /// Whether the algorithm couples the paths of a connection.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        matches!(self.constructor, Constructor::Coupled(_))
    }

    /// Whether the algorithm deviates from the others in this respect.
    #[must_use]
    pub fn deviates(&self, deviation: Deviation) -> bool {
        self.properties.deviations.iter().any(|(listed, _)| *listed == deviation)
    }

    /// ECN that the algorithm needs with the parameters `given`.
    ///
    /// # Errors
    /// A parameter that the algorithm does not have, or a value outside its range.
    pub fn ecn(&self, given: &BTreeMap<String, ParamValue>) -> Result<Ecn, ParamError> {
        Ok((self.properties.ecn)(&Params::new(self.parameters, given)?))
    }

    /// A controller for a group of paths with the parameters `given`.
    ///
    /// # Errors
    /// A parameter that the algorithm does not have, or a value outside its range.
    pub fn controller(&self, given: &BTreeMap<String, ParamValue>) -> Result<Box<dyn Controller>, ParamError> {
        let params = Params::new(self.parameters, given)?;
        Ok(match self.constructor {
            Constructor::PerPath(construct) => Box::new(Uncoupled::new(move || construct(&params))),
            Constructor::Coupled(construct) => construct(&params),
        })
    }
}
