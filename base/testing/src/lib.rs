//! For tests only: skips, which are counted; waits for conditions; campaigns of seeds; saved inputs of fuzzing; a counting
//! allocator; JSON against its schema.
//!
//! No test asserts a real-time duration, which depends on the machine; tests assert the order and number of events, and
//! durations in virtual time.

mod allocator;
mod campaign;
mod corpus;
mod schema;

pub use allocator::{CountingAllocator, allocations, bytes_in_use};
pub use campaign::{SEEDS, Seeds, campaign};
pub use corpus::saved_inputs;
pub use schema::violations;

use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of [`eventually`] and of the sockets of tests.
pub const MINUTE: Duration = Duration::from_secs(60);

/// Environment variable that names the file in which `cargo xtask test` collects the skips.
pub const SKIPS: &str = "ROPEWALK_SKIPS";

/// Reason for a skipped test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Root, or a program that `cargo xtask setup` installs, is missing. In continuous integration this is a failure.
    Missing,
    /// The kernel lacks a feature.
    Kernel,
    /// The kernel does not run on this processor.
    Processor,
    /// The toolchain has no library for another target, and it cannot be fetched.
    Toolchain,
    /// Other load on the machine disturbed a run in real time.
    Disturbed,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Kernel => "kernel",
            Self::Processor => "processor",
            Self::Toolchain => "toolchain",
            Self::Disturbed => "disturbed",
        }
    }
}

/// Reports that the running test is skipped: one line, `REASON PROGRAM::TEST: DETAILS`, on standard error past the
/// test's capture, and in the file that [`SKIPS`] names. The caller then returns.
///
/// # Panics
/// If the file that [`SKIPS`] names cannot be written.
pub fn skip(reason: Reason, details: &str) {
    let program = std::env::current_exe().ok();
    let program =
        program.as_ref().and_then(|path| path.file_stem()).map_or_else(Default::default, |stem| stem.to_string_lossy());
    let program = program.rsplit_once('-').map_or(&*program, |(name, _hash)| name);
    let thread = thread::current();
    let test = thread.name().unwrap_or("?");
    let line = format!("{} {program}::{test}: {}\n", reason.as_str(), details.trim().replace('\n', "; "));
    // Not with `eprint!`, which is captured in tests.
    let _ = write!(std::io::stderr(), "skipped: {line}");
    if let Some(file) = std::env::var_os(SKIPS) {
        let result = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        result.expect("the runner's list of skips can be written");
    }
}

/// Whether the condition becomes true within a [`MINUTE`].
pub fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() > MINUTE {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
