//! Runs studies: every cell of a scenario with every seed, on several threads, in memory or into a results folder.
//!
//! ```text
//! check    names and parameters of algorithms, the size of the time series
//! plan     the runs that a driver makes of a scenario
//! run      runs of a plan, on threads, reported to an observer, which can cancel them
//! Study    all of it: checked, planned, with the manifest of its results
//! Folder   a results folder that a study fills, resumed where it was interrupted
//! Gather   a results folder that gets its runs from shards as they arrive
//! merge    the folders of all shards become that of the study
//! ```
//!
//! Runs are independent of each other, so neither the number of threads nor the order of runs changes a result of the
//! simulator. On a kernel the state of the machine drifts, so the runs are made in [random
//! order](Driver::is_in_random_order).

mod baseline;
mod checks;
mod code;
mod cost;
mod driver;
mod error;
mod execute;
mod gather;
mod merge;
mod order;
mod page;
mod plan;
mod save;
mod study;

pub use baseline::LoadedBaseline;
pub use checks::{check, suggestion};
pub use code::versions as code_versions;
pub use driver::{Checked, Driver, Job, Simulator, available_cores, is_kernel};
pub use error::Error;
pub use execute::{Observer, Running, run};
pub use gather::Gather;
pub use merge::merge;
pub use page::{layout, to_report, with_study, write_page};
pub use plan::{Plan, plan};
pub use save::save;
pub use study::{Folder, Study};

/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit that the program is built from; a digest of the sources follows a `+` if they differ from that commit.
pub const COMMIT: &str = env!("ROPEWALK_COMMIT");
