//! Advice: which algorithm, scheduler and mode carries most, or waits least, over an ensemble of links.

mod candidate;
mod choice;
mod outcome;
mod run;
mod words;

pub use candidate::{Candidate, Mode, candidates};
pub use choice::{Advice, Goal, Ranked};
pub use outcome::{Outcome, Trial, outcomes};
pub use run::{AdviseOptions, advise};
