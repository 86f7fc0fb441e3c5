//! Worlds drawn by seed that judge a congestion control against CUBIC.
//!
//! ```text
//! draw     makes a world from a seed: a scenario file, and its elements
//! driver   runs the algorithm under test in the world of the seed
//! outcome  the results of a run: few numbers for each kind of flow
//! judge    two outcomes of one world become four measures, each with its bound
//! folder   outcomes on disk, one file per algorithm, filled up world by world
//! study    makes the runs that a folder lacks
//! tally    the distribution over many worlds, and the worst of them
//! ```

mod draw;
mod driver;
mod folder;
mod judge;
mod outcome;
mod study;
mod tally;

pub use draw::{BOUNDS, Bounds, KINDS, Rival, RivalKind, World, draw};
pub use driver::Worlds;
pub use folder::{Error, Folder};
pub use judge::{Judgement, MEASURES, Measure, judge};
pub use outcome::{Group, Outcome, Rtt};
pub use study::{Algorithm, Part, outcomes};
pub use tally::{Row, Tally, Verdict};
