//! For tests only: skips that are counted, and waits that no slow machine breaks.
//!
//! No test asserts how long something took. What is about real time is asserted by what happened in which order and by what
//! was counted; numbers belong to virtual time or to a benchmark.

use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// How long [`eventually`] waits, and how long a socket of a test may wait. No promise is measured by it.
pub const MINUTE: Duration = Duration::from_secs(60);

/// The environment variable that names the file in which `cargo xtask test` collects the skips.
pub const SKIPS: &str = "ROPEWALK_SKIPS";

/// Why a test cannot be carried out on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Root is missing, or what `cargo xtask setup` installs. A failure in continuous integration.
    Missing,
    /// The kernel lacks a feature that no package brings.
    Kernel,
    /// Other load of the machine disturbed a run in real time.
    Disturbed,
}

impl Reason {
    const fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Kernel => "kernel",
            Self::Disturbed => "disturbed",
        }
    }
}

/// Notes that the running test is skipped: one line, `REASON PROGRAM::TEST: WHY`, on standard error past the test's capture,
/// and in the file that [`SKIPS`] names. The caller returns then.
///
/// # Panics
/// If that file cannot be written.
pub fn skip(reason: Reason, why: &str) {
    let program = std::env::current_exe().ok();
    let program =
        program.as_ref().and_then(|path| path.file_stem()).map_or_else(Default::default, |it| it.to_string_lossy());
    let program = program.rsplit_once('-').map_or(&*program, |(name, _hash)| name);
    let thread = thread::current();
    let test = thread.name().unwrap_or("?");
    let line = format!("{} {program}::{test}: {}\n", reason.word(), why.trim().replace('\n', "; "));
    // Not by `eprint!`, which a test's capture would keep.
    let _ = write!(std::io::stderr(), "skipped: {line}");
    if let Some(file) = std::env::var_os(SKIPS) {
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the runner's list of skips can be written");
    }
}

/// Whether the condition becomes true: at once, or at last after a [`MINUTE`].
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
