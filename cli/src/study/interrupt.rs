//! Ctrl-C, SIGTERM and SIGHUP while a study runs: reports the runs that are kept, and the command that continues.

use crate::{Failure, output};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The exit code of a program that Ctrl-C ended: 128 and the signal's number, as shells have it.
const EXIT_CODE: i32 = 130;

/// Reports which runs of the study are kept.
type Kept = Box<dyn Fn() -> String + Send>;

/// The report for the current study.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// From now on an interrupt reports how many of the `planned` runs are kept in `dir` (none without a folder), and ends the
/// program. Runs are stored whole or not at all, so it may end at any moment.
pub(crate) fn tell(dir: Option<PathBuf>, planned: usize, command: String) -> Result<(), Failure> {
    tell_with(move || kept(dir.as_deref(), planned, &command))
}

/// From now on an interrupt reports the runs that are kept, and ends the program.
pub(crate) fn tell_with(kept: impl Fn() -> String + Send + 'static) -> Result<(), Failure> {
    let earlier = KEPT.lock().unwrap_or_else(PoisonError::into_inner).replace(Box::new(kept));
    if earlier.is_some() {
        return Ok(()); // One handler serves every study of the program.
    }
    ctrlc::set_handler(end).map_err(|error| Failure::Environment(format!("cannot watch for Ctrl-C: {error}")))
}

fn end() {
    if let Some(kept) = &*KEPT.lock().unwrap_or_else(PoisonError::into_inner) {
        // Ends a line that the progress bar began.
        output::warn(&format!("\ninterrupted: {}", kept()));
    }
    std::process::exit(EXIT_CODE);
}

fn kept(dir: Option<&Path>, planned: usize, command: &str) -> String {
    let Some(dir) = dir else { return "nothing is kept, as --no-store asks".to_owned() };
    let kept = store::Results::stored(dir);
    format!("{kept} of {planned} runs are kept in {}\ncontinue with: {command}", dir.display())
}
