//! Running other programs, and the location of the workspace.

use crate::test::binaries::UNSTABLE;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A chore builds each crate once, so the data that cargo keeps for the next build of it would be wasted.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

thread_local! {
    /// What [`cpu_s`] returns.
    static CPU_S: Cell<f64> = const { Cell::new(0.0) };
}

/// CPU seconds, user and system, of the programs that this thread has run to their end, including those for which they
/// waited.
pub(crate) fn cpu_s() -> f64 {
    CPU_S.get()
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable when it runs this program; the compiled-in value serves a binary that is started by hand.
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
    succeeded(line, command(line).current_dir(folder).spawn().and_then(wait))
}

/// As [`run`], with additional variables in its environment.
pub(crate) fn run_with(variables: &[(&str, &str)], line: &str) -> Result<(), String> {
    eprintln!("\n$ {line}");
    succeeded(line, command(line).envs(variables.iter().copied()).spawn().and_then(wait))
}

/// Runs a command line as [`watch`] does, with additional variables in its environment.
pub(crate) fn run_watched(
    name: &str,
    variables: &[(&str, &Path)],
    line: &str,
    observe: impl FnMut(&str),
) -> Result<(), String> {
    watch(name, line, command(line).envs(variables.iter().copied()), observe)
}

/// Shows the title of a command, and runs it. Each line that it prints, on either stream, is passed to `observe` and shown
/// after `name`, since other programs may print at the same time.
pub(crate) fn watch(
    name: &str,
    title: &str,
    command: &mut Command,
    mut observe: impl FnMut(&str),
) -> Result<(), String> {
    eprintln!("\n$ {title}");
    let failed = |error: std::io::Error| format!("cannot run `{title}`: {error}");
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let child = command.stderr(writer.try_clone().map_err(failed)?).stdout(writer).spawn();
    // The command keeps ends for writing, and the reader would wait for them.
    command.stderr(Stdio::null()).stdout(Stdio::null());
    let child = child.map_err(failed)?;
    let mut lines = BufReader::new(reader).split(b'\n');
    while let Some(text) = lines.next().transpose().map_err(failed)? {
        let text = String::from_utf8_lossy(&text);
        observe(&text);
        print(&format!("{name} | {text}\n"))?;
    }
    succeeded(title, wait(child))
}

/// As [`run`], with a text as its standard input.
pub(crate) fn run_with_input(line: &str, input: &str) -> Result<(), String> {
    eprintln!("\n$ {line}");
    let failed = |error: std::io::Error| format!("cannot run `{line}`: {error}");
    let mut child = command(line).stdin(Stdio::piped()).spawn().map_err(failed)?;
    let mut pipe = child.stdin.take().expect("it is piped");
    pipe.write_all(input.as_bytes()).map_err(failed)?;
    drop(pipe); // the end of the input
    succeeded(line, wait(child))
}

/// Waits for a program's end, and counts its CPU time.
fn wait(mut child: Child) -> std::io::Result<ExitStatus> {
    let id = Pid::from_raw(child.id().cast_signed());
    waitid(Id::Pid(id), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    // The program has ended; its times can be read until the parent waits for it.
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    CPU_S.set(cpu_s() + ticks(&stat) as f64 / sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100) as f64);
    child.wait()
}

/// Clock ticks of `utime`, `stime`, `cutime` and `cstime` in a line of proc_pid_stat(5).
fn ticks(stat: &str) -> u64 {
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after_name.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
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
    let failed = |error: std::io::Error| format!("cannot run `{line}`: {error}");
    let mut child = command(line).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut printed = Vec::new();
    child.stdout.take().expect("it is piped").read_to_end(&mut printed).map_err(failed)?;
    succeeded(line, wait(child))?;
    String::from_utf8(printed).map_err(|error| format!("`{line}` printed no text: {error}"))
}

/// Runs a command line with these variables and returns its standard output and its standard error, whatever its exit code.
pub(crate) fn output_and_errors(variables: &[(&str, &str)], line: &str) -> Result<(String, String), String> {
    let output = command(line).envs(variables.iter().copied()).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run `{line}`: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr)))
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
    // `cargo run` describes this package in the environment. Build scripts that look there, such as ring's, would run again, and all
    // that depends on them be compiled again, whenever cargo was called by hand in between.
    let of_package = |name: &String| ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|start| name.starts_with(start));
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(of_package) {
        command.env_remove(name);
    }
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

/// Writes to standard output; a reader that has gone away is not a failure.
pub(crate) fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_follow_a_name_with_blanks_and_parentheses() {
        let stat = "17 (a) b (c) Z 1 17 17 0 -1 4194560 901 88 0 0 100 20 3 4 20 0 1 0 554 0 0";
        assert_eq!(ticks(stat), 127);
    }

    #[test]
    fn each_thread_has_the_cpu_time_of_its_programs() {
        let busy = || output("seq -f %g 1000000").map(|_| cpu_s()).unwrap();
        let before = cpu_s();
        assert!(std::thread::spawn(busy).join().unwrap() > 0.0);
        assert!(cpu_s() == before, "of another thread");
        assert!(busy() > before);
    }
}
