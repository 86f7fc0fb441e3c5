//! Completions and manual pages, from the table of the command line.

use crate::{Failure, output};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::io;
use std::path::Path;

/// Prints the completions of a program for a shell.
pub(crate) fn completions(mut program: Command, shell: Shell) -> Result<(), Failure> {
    let (mut script, name) = (Vec::new(), program.get_name().to_owned());
    clap_complete::generate(shell, &mut program, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes the program's page into a section of the manual, and one page per command, `PROGRAM-VERB.SECTION`.
pub(crate) fn pages(program: Command, dir: &Path, section: &str) -> Result<(), Failure> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    page(&program, dir, section).map_err(|error| Failure::Environment(format!("{}: {error}", dir.display())))
}

fn page(command: &Command, dir: &Path, section: &str) -> io::Result<()> {
    let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    verbs.try_for_each(|verb| page(verb, dir, section))?;
    Man::new(command.clone()).section(section).generate_to(dir).map(drop)
}
