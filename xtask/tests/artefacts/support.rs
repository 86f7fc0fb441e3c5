//! What these tests share: the chores, and programs of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use testing::{Reason, skip};

/// The profile of the tests: it takes a third of the time of one that is released.
const PROFILE: &str = "dev";
/// The chores build without symbols, which would be most of the program.
const DEBUG: (&str, &str) = ("CARGO_PROFILE_DEV_DEBUG", "0");

/// The static program; none, and the test is skipped, where it cannot be built.
pub(crate) fn static_program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    // The last two lines of what the chore prints are the program with its size, and the archive.
    let program = |text: &String| text.lines().rev().nth(1).and_then(|line| line.split(" (").next()).map(PathBuf::from);
    let built = printed_of("static")?;
    PROGRAM.get_or_init(|| program(built)).as_deref()
}

/// The version that the static program says it is.
pub(crate) fn version() -> String {
    let printed = run(static_program().expect("it is built").to_str().unwrap(), &["--version"]);
    printed.trim().strip_prefix("ropewalk ").expect("its name comes first").to_owned()
}

/// The file that a chore makes of the static program: the last line of what it prints.
pub(crate) fn artefact(name: &'static str) -> Option<PathBuf> {
    static_program()?;
    printed_of(name).map(|text| last_line(text))
}

/// What a chore has printed, which is run once for all tests; none, and the test is skipped, where it cannot be run.
fn printed_of(name: &'static str) -> Option<&'static String> {
    static PRINTED: Mutex<BTreeMap<&str, &Result<String, String>>> = Mutex::new(BTreeMap::new());
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    let printed = *printed.entry(name).or_insert_with(|| Box::leak(Box::new(chore(name))));
    printed.as_ref().map_err(|message| skip(Reason::Toolchain, message)).ok()
}

/// The file that the last line names.
pub(crate) fn last_line(text: &str) -> PathBuf {
    text.lines().next_back().map(PathBuf::from).expect("it names a file")
}

/// Runs `cargo xtask NAME`; returns what it prints.
fn chore(name: &str) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args([name, "--profile", PROFILE])
        .env(DEBUG.0, DEBUG.1)
        .output()
        .unwrap();
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
