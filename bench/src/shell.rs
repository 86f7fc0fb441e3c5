//! Command lines, and the folders of the workspace and of the release build.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable when it runs this program; the compiled-in value serves one that is started by hand.
    let bench = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    PathBuf::from(bench).parent().expect("bench lies within the workspace").to_owned()
}

/// The folder of this program, where cargo also puts the programs that it measures.
pub(crate) fn release_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(program.parent().expect("a program lies in a folder").to_owned())
}

/// Runs a command line and returns its standard output.
pub(crate) fn output(line: &str) -> Result<String, String> {
    let output =
        command(line).stderr(Stdio::inherit()).output().map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("`{line}` printed no text: {error}"))
}

/// Whether a command line succeeds; its output is discarded.
pub(crate) fn succeeds(line: &str) -> bool {
    command(line).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A command line, split at blanks.
fn command(line: &str) -> Command {
    let mut tokens = line.split_whitespace();
    let mut command = Command::new(tokens.next().expect("a command line has a first word"));
    command.args(tokens).current_dir(root());
    command
}

/// Writes to standard output; a reader that has gone away is not a failure.
pub(crate) fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
