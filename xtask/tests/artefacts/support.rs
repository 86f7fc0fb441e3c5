//! What these tests share: the chores, and programs of this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use testing::{Reason, skip};

/// A build without much optimisation, which is done sooner.
const PROFILE: &str = "release";

/// The static program; none, and the test is skipped, where it cannot be built.
pub(crate) fn static_program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    // The last two lines of what it prints are the program with its size, and the archive.
    let program = |text: String| text.lines().rev().nth(1).and_then(|line| line.split(" (").next()).map(PathBuf::from);
    let build = || chore("static").map(|text| program(text).expect("it names the program"));
    match PROGRAM.get_or_init(build) {
        Ok(program) => Some(program),
        Err(message) => {
            skip(Reason::Toolchain, message);
            None
        }
    }
}

/// The version that the static program says it is.
pub(crate) fn version() -> String {
    let printed = run(static_program().expect("it is built").to_str().unwrap(), &["--version"]);
    printed.trim().strip_prefix("ropewalk ").expect("its name comes first").to_owned()
}

/// The file that a chore makes of the static program: the last line of what it prints.
pub(crate) fn artefact(name: &str) -> Option<PathBuf> {
    static_program()?;
    chore(name).map_err(|message| skip(Reason::Toolchain, &message)).ok().map(|text| last_line(&text))
}

/// The file that the last line names.
pub(crate) fn last_line(text: &str) -> PathBuf {
    text.lines().next_back().map(PathBuf::from).expect("it names a file")
}

/// Runs `cargo xtask NAME`; returns what it prints.
fn chore(name: &str) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args([name, "--profile", PROFILE]).output().unwrap();
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).unwrap());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    // Without a network neither zig nor Rust's library for the target is to be had. The last line names what failed.
    let failed = message.lines().next_back().unwrap_or_default();
    let causes = ["/pip install", "`rustup target add", "`apt-get download"];
    assert!(causes.iter().any(|cause| failed.contains(cause)), "{message}");
    Err(failed.to_owned())
}

/// An empty folder of this name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Whether a program is on the path; otherwise the test is skipped.
pub(crate) fn is_there(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_there {
        skip(Reason::Missing, &format!("{program}: apt-get install {program}"));
    }
    is_there
}

/// Runs a program to its end, which has to be a success; returns what it prints.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
