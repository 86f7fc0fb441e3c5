//! An algorithm's registration.

use crate::{Controller, Ecn, ParamError, ParamValue, Parameter, Params, PathController, Uncoupled};
use params::Entry;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One algorithm. Its file declares it; [`crate::registry::REGISTRY`] lists it, or [`crate::registry::register`] adds
/// it.
#[derive(Debug)]
pub struct AlgorithmEntry {
    /// Name, as in `net.ipv4.tcp_congestion_control`.
    pub name: &'static str,
    /// Names used in papers.
    pub aliases: &'static [&'static str],
    /// One line that says what the algorithm is.
    pub title: &'static str,
    /// The source: RFC, paper or kernel file.
    pub source: &'static str,
    /// Declared parameters.
    pub parameters: &'static [Parameter],
    /// The algorithm's requirements, and its deviations from other algorithms.
    pub properties: Properties,
    /// Builds an instance.
    pub constructor: Constructor,
}

/// The requirements of an algorithm, and its deviations from other algorithms.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// The ECN that the algorithm needs with these parameters.
    pub ecn: fn(&Params) -> Ecn,
    /// Minimum congestion window outside a reduction, packets.
    pub min_cwnd: u32,
    /// Deviations from the common behaviour, each with its reason, for the tests over the registry.
    pub deviations: &'static [(Deviation, &'static str)],
    /// For a coupled algorithm: the single-path algorithm to which it is equal on a single path, if any.
    pub single_path: Option<&'static str>,
    /// Checks parameters beyond their ranges, such as the contents of a file.
    pub check: fn(&Params) -> Result<(), ParamError>,
    /// Notes on these (checked) parameters for the user, one sentence each.
    pub notes: fn(&Params) -> Vec<String>,
    /// The version of the code of an algorithm that is registered at run time, such as a hash of its source. A results
    /// folder records it, so that it never mixes runs of different code. For built-in algorithms, the program's version
    /// and commit identify the code.
    pub code_version: Option<&'static str>,
}

impl Properties {
    /// Classic ECN, two packets, no deviations, Reno on a single path, built in.
    pub const DEFAULT: Self = Self {
        ecn: |_| Ecn::Classic,
        min_cwnd: 2,
        deviations: &[],
        check: |_| Ok(()),
        notes: |_| Vec::new(),
        single_path: Some("reno"),
        code_version: None,
    };
}

/// A deviation from the common behaviour of controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// Raises a congestion window that the sender does not fill.
    RaisesUnfilledCwnd,
    /// Does not return to the earlier window and threshold when a loss proves spurious.
    KeepsCwndOnUndo,
    /// Sets window and threshold at the end of an episode, whether undone or not.
    SetsCwndOnRecovered,
    /// Reduces again on a loss in a window that was reduced because of a mark.
    ReducesOnLossAfterMark,
}

/// How an algorithm is built.
#[derive(Clone)]
pub enum Constructor {
    /// One instance per path.
    PerPath(fn(&Params) -> Box<dyn PathController>),
    /// One instance for all paths of a connection, which it couples.
    Coupled(fn(&Params) -> Box<dyn Controller>),
    /// [`PerPath`](Self::PerPath), built by a value: for algorithms that are registered at run time.
    PerPathDyn(Arc<PerPathConstructor>),
    /// [`Coupled`](Self::Coupled), built by a value.
    CoupledDyn(Arc<CoupledConstructor>),
}

/// A value that builds one instance per path.
pub type PerPathConstructor = dyn Fn(&Params) -> Box<dyn PathController> + Send + Sync;
/// A value that builds one instance for all paths of a connection.
pub type CoupledConstructor = dyn Fn(&Params) -> Box<dyn Controller> + Send + Sync;

impl fmt::Debug for Constructor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerPath(_) => "PerPath",
            Self::Coupled(_) => "Coupled",
            Self::PerPathDyn(_) => "PerPathDyn",
            Self::CoupledDyn(_) => "CoupledDyn",
        })
    }
}

impl Entry for AlgorithmEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    fn code_version(&self) -> Option<&'static str> {
        self.properties.code_version
    }
}

impl AlgorithmEntry {
    /// Whether the algorithm couples the paths of a connection.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        matches!(self.constructor, Constructor::Coupled(_) | Constructor::CoupledDyn(_))
    }

    /// Whether the algorithm deviates from the others in this respect.
    #[must_use]
    pub fn deviates(&self, deviation: Deviation) -> bool {
        self.properties.deviations.iter().any(|(listed, _)| *listed == deviation)
    }

    /// The ECN that the algorithm needs with the parameters `given`.
    ///
    /// # Errors
    /// A parameter that the algorithm does not have, or a value outside its range.
    pub fn ecn(&self, given: &BTreeMap<String, ParamValue>) -> Result<Ecn, ParamError> {
        Ok((self.properties.ecn)(&Params::new(self.parameters, given)?))
    }

    /// Notes on the parameters `given` for the user; none if they are wrong.
    #[must_use]
    pub fn notes(&self, given: &BTreeMap<String, ParamValue>) -> Vec<String> {
        Params::new(self.parameters, given).map_or_else(|_| Vec::new(), |params| (self.properties.notes)(&params))
    }

    /// A controller for a group of paths with the parameters `given`.
    ///
    /// # Errors
    /// A parameter that the algorithm does not have, a value outside its range, or one that [`Properties::check`] refuses.
    pub fn controller(&self, given: &BTreeMap<String, ParamValue>) -> Result<Box<dyn Controller>, ParamError> {
        let params = Params::new(self.parameters, given)?;
        (self.properties.check)(&params)?;
        Ok(match &self.constructor {
            &Constructor::PerPath(construct) => Box::new(Uncoupled::new(move || construct(&params))),
            Constructor::Coupled(construct) => construct(&params),
            Constructor::PerPathDyn(construct) => {
                let construct = Arc::clone(construct);
                Box::new(Uncoupled::new(move || construct(&params)))
            }
            Constructor::CoupledDyn(construct) => construct(&params),
        })
    }
}
