//! Calls of the program from a test.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The outcome of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code; none after a signal.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// The program, to be run in a folder of the tests.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
    command.args(arguments).current_dir(env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub(crate) fn ropewalk(arguments: &[&str]) -> Outcome {
    let output = command(arguments).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// An empty folder of this name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the tests' folder can be written");
    path
}

/// Writes a file into a folder.
pub(crate) fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).expect("the tests' folder can be written");
}
