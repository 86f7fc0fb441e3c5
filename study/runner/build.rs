//! Tells programs which commit they are built from: seed + commit = the run.
//!
//! `ROPEWALK_COMMIT` is git's short hash. If the sources differ from the commit, or there is no git, a digest of the sources
//! follows a `+`, so that results of two different builds are never taken for the same.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources that a run depends on, relative to this folder.
const SOURCES: [&str; 10] = [
    "../../base",
    "../../cc",
    "../../lab",
    "../../link",
    "../../sim",
    "../../study",
    "../../transport",
    "../../tunnel",
    "../../Cargo.toml",
    "../../Cargo.lock",
];

fn main() {
    for path in SOURCES {
        assert!(
            Path::new(path).exists(),
            "{path} does not exist: SOURCES in study/runner/build.rs lists the sources that a run depends on"
        );
        println!("cargo:rerun-if-changed={path}");
    }
    // Git appends to this file when a commit is made or another one is checked out.
    if Path::new("../../.git/logs/HEAD").exists() {
        println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    }
    println!("cargo:rustc-env=ROPEWALK_COMMIT={}", commit());
}

fn commit() -> String {
    let hash = git(&["rev-parse", "--short=10", "HEAD"]);
    let changes = git(&[["status", "--porcelain", "--"].as_slice(), SOURCES.as_slice()].concat());
    match (hash, changes) {
        (Some(hash), Some(changes)) if changes.is_empty() => hash,
        (hash, _) => format!("{}+{:016x}", hash.unwrap_or_default(), digest()),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// FNV-1a over all source files, in the order of their names.
fn digest() -> u64 {
    let mut files: Vec<PathBuf> = Vec::new();
    SOURCES.iter().for_each(|path| collect(Path::new(path), &mut files));
    files.sort();
    let bytes = files.iter().flat_map(|file| std::fs::read(file).unwrap_or_default());
    strings::fnv1a(bytes)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) => files.push(path.to_owned()),
    }
}
