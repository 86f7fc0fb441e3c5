//! Completions and manual pages, from the table of the command line.

use crate::arguments::Arguments;
use crate::{Failure, output};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ropewalk", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes `ropewalk.1`, and a page for each verb, `ropewalk-VERB.1`.
pub(crate) fn pages(dir: &Path) -> Result<(), Failure> {
    clap_mangen::generate_to(Arguments::command(), dir)
        .map_err(|error| Failure::Environment(format!("{}: {error}", dir.display())))
}
