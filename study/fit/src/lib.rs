//! Links fitted to measurements of them, and advice by them.
//!
//! ```text
//! probe     the measurement, made again in the simulator: the same probes as flows of a scenario
//! observe   observables of a measurement, measured or simulated, and how far two of them are apart
//! unknown   an unknown key of the links, with its range
//! model     links with unknowns: those of a measurement, or those of a scenario; the naive links
//! cma       the search of a minimum
//! surrogate observables as quadratic functions of the unknowns
//! search    the search for the links of a measurement, and the ensemble of resampled measurements
//! fitting   the ensemble next to its noise floor, the naive links and what was held out
//! folder    a fit on disk: a document, the members as scenario files, and a page
//! advise    the contest of all candidates over the ensemble, and what to recommend
//! ```

mod advise;
mod cma;
mod error;
mod fitting;
mod folder;
mod interval;
mod links;
mod model;
mod observe;
mod page;
mod parallel;
mod probe;
mod random;
mod search;
mod surrogate;
mod text;
mod unknown;

pub use advise::{Advice, AdviseOptions, Candidate, Goal, Mode, Outcome, Ranked, Trial, advise, candidates, outcomes};
pub use cma::Cma;
pub use error::Error;
pub use fitting::{Compared, Fit, Member, ModelError, Parameter, fit};
pub use interval::{Interval, interval, median};
pub use links::Links;
pub use model::{Model, naive_links};
pub use observe::Distance;
pub use search::{Options, Progress, measurement, simulated_measurement};
pub use unknown::Unknown;
