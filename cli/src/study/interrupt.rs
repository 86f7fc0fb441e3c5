//! Ctrl-C, SIGTERM and SIGHUP while a study runs: what is kept, and the command that goes on.

use crate::{Failure, output};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The exit code of a program that Ctrl-C ended: 128 and the signal's number, as shells have it.
const EXIT_CODE: i32 = 130;

/// What is said of the study that runs: its folder, its number of runs, and the command that goes on.
type Study = (Option<PathBuf>, usize, String);

/// The study that runs.
static STUDY: Mutex<Option<Study>> = Mutex::new(None);

/// From now on an interrupt says what `dir` keeps of `planned` runs, without one that nothing is kept, and ends the
/// program. Runs are stored whole or not at all, so it may end at any moment.
pub(crate) fn tell(dir: Option<PathBuf>, planned: usize, command: String) -> Result<(), Failure> {
    let earlier = STUDY.lock().unwrap_or_else(PoisonError::into_inner).replace((dir, planned, command));
    if earlier.is_some() {
        return Ok(()); // One handler serves every study of the program.
    }
    ctrlc::set_handler(end).map_err(|error| Failure::Environment(format!("cannot watch for Ctrl-C: {error}")))
}

fn end() {
    let study = STUDY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((dir, planned, command)) = &*study {
        // Ends a line that the progress bar began.
        output::warn(&format!("\ninterrupted: {}", kept(dir.as_deref(), *planned, command)));
    }
    std::process::exit(EXIT_CODE);
}

fn kept(dir: Option<&Path>, planned: usize, command: &str) -> String {
    let Some(dir) = dir else { return "nothing is kept, as --no-store asks".to_owned() };
    let kept = store::Results::stored(dir);
    format!("{kept} of {planned} runs are kept in {}\ngo on with: {command}", dir.display())
}
