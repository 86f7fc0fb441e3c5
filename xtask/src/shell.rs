//! Running other programs, and where the workspace is.

use crate::test::binaries::UNSTABLE;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// A chore builds each crate once, so that what cargo keeps for the next build of it is wasted.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable when it runs us; the compiled-in value serves a binary that is started by hand.
    let xtask = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    PathBuf::from(xtask).parent().expect("xtask lies within the workspace").to_owned()
}

/// The folder in which cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Shows and runs a command line in the workspace's folder; its output goes straight to the terminal.
pub(crate) fn run(line: &str) -> Result<(), String> {
    run_with(&[], line)
}

/// As [`run`], in a folder.
pub(crate) fn run_in(folder: &Path, line: &str) -> Result<(), String> {
    eprintln!("\n$ {line}");
    let status = command(line).current_dir(folder).status();
    succeeded(line, status)
}

/// As [`run`], with additional variables in its environment.
pub(crate) fn run_with(variables: &[(&str, &str)], line: &str) -> Result<(), String> {
    eprintln!("\n$ {line}");
    let status = command(line).envs(variables.iter().copied()).status();
    succeeded(line, status)
}

/// As [`run_with`], but every line that it prints, on either stream, passes by `observe` on its way to the terminal.
pub(crate) fn run_watched(variables: &[(&str, &Path)], line: &str, observe: impl FnMut(&str)) -> Result<(), String> {
    watch(line, command(line).envs(variables.iter().copied()), observe)
}

/// Shows the title of a command, and runs it as [`run_watched`] does.
pub(crate) fn watch(title: &str, command: &mut Command, mut observe: impl FnMut(&str)) -> Result<(), String> {
    eprintln!("\n$ {title}");
    let failed = |error: std::io::Error| format!("cannot run `{title}`: {error}");
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let child = command.stderr(writer.try_clone().map_err(failed)?).stdout(writer).spawn();
    // The command keeps ends for writing, and the reader would wait for them.
    command.stderr(Stdio::null()).stdout(Stdio::null());
    let mut child = child.map_err(failed)?;
    let mut lines = BufReader::new(reader).split(b'\n');
    while let Some(text) = lines.next().transpose().map_err(failed)? {
        let text = String::from_utf8_lossy(&text);
        observe(&text);
        print(&format!("{text}\n"))?;
    }
    succeeded(title, child.wait())
}

/// As [`run`], with a text as its standard input.
pub(crate) fn run_with_input(line: &str, input: &str) -> Result<(), String> {
    eprintln!("\n$ {line}");
    let failed = |error: std::io::Error| format!("cannot run `{line}`: {error}");
    let mut child = command(line).stdin(Stdio::piped()).spawn().map_err(failed)?;
    let mut pipe = child.stdin.take().expect("it is piped");
    pipe.write_all(input.as_bytes()).map_err(failed)?;
    drop(pipe); // the end of the input
    succeeded(line, child.wait())
}

fn succeeded(line: &str, status: std::io::Result<ExitStatus>) -> Result<(), String> {
    let status = status.map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed ({status})")) }
}

/// Shows and runs a command line, and returns its standard output.
pub(crate) fn output_shown(line: &str) -> Result<String, String> {
    eprintln!("\n$ {line}");
    output(line)
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

/// A command from a line that is split at blanks; there is no quoting.
fn command(line: &str) -> Command {
    let mut tokens = line.split_whitespace();
    let mut command = Command::new(tokens.next().expect("a command line has a first word"));
    command.args(tokens).current_dir(root()).env_remove(UNSTABLE);
    if std::env::var_os(INCREMENTAL).is_none() {
        command.env(INCREMENTAL, "0");
    }
    command
}

/// Runs `cargo metadata` with an option: `--no-deps` limits it to the packages of the workspace.
pub(crate) fn metadata(option: &str) -> Result<serde_json::Value, String> {
    let text = output(&format!("cargo metadata --format-version 1 {option}"))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// The version of a program that is built now, as its `--version` prints it.
pub(crate) fn version() -> Result<String, String> {
    let base = package_field("version")?.ok_or("cargo metadata names no version of `ropewalk`")?;
    Ok(crate::version::version(&root(), &base))
}

/// A field of the package `ropewalk`'s manifest, if it has it.
pub(crate) fn package_field(name: &str) -> Result<Option<String>, String> {
    let metadata = metadata("--no-deps")?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == "ropewalk");
    Ok(package.and_then(|package| package[name].as_str()).map(str::to_owned))
}

/// Writes to standard output; a reader that has gone away is no failure.
pub(crate) fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
