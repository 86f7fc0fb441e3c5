//! `ropewalk run --no-store`: the runs are printed, and the disk stays as it is.

use crate::program::{Outcome, command, folder, write};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use testing::eventually;

const SCENARIO: &str = r#"
name = "small"
title = "A small sweep"
duration = "1s"
sample = "100ms"
seeds = [1, 2]

[[path]]
name = "one"
rate = "10mbit"
delay = "5ms"

[[flow]]
name = "tcp"

[sweep]
"flow.tcp.congestion" = ["reno", "cubic"]

[[table]]
rows = "flow.tcp.congestion"
value = "goodput_mbps"
"#;

/// Runs the scenario `file` in the folder `dir`, which is its home and its place for temporary files, too.
fn run(dir: &Path, file: &Path, options: &[&str]) -> Outcome {
    let file = file.display().to_string();
    let mut command = command(&[&["run", &file, "--quiet"], options].concat());
    command.current_dir(dir).env("HOME", dir).env("TMPDIR", dir);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Every file and folder below `dir`, a file with its bytes.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true => std::iter::once((path.clone(), None)).chain(tree(&path)).collect(),
        false => BTreeMap::from([(path.clone(), Some(std::fs::read(&path).unwrap()))]),
    };
    entries.flat_map(below).collect()
}

#[test]
fn nothing_is_written_and_the_document_is_that_of_a_stored_study() {
    let (dir, empty) = (folder("no-store"), folder("no-store-empty"));
    write(&dir, "small.toml", SCENARIO);
    let (file, before) = (dir.join("small.toml"), tree(&dir));
    let outcome = run(&empty, &file, &["--no-store", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!((tree(&dir), tree(&empty)), (before, BTreeMap::new()));
    let stored = run(&dir, &file, &["--json"]);
    assert_eq!(outcome.stdout, stored.stdout);
    assert!(dir.join("results/small/manifest.json").exists(), "without the option there is a folder");
}

#[test]
fn the_tables_are_those_of_a_stored_study_without_the_place_of_its_page() {
    let (dir, empty) = (folder("no-store-tables"), folder("no-store-tables-empty"));
    write(&dir, "small.toml", SCENARIO);
    let file = dir.join("small.toml");
    let [printed, stored] = [run(&empty, &file, &["--no-store"]), run(&dir, &file, &[])];
    let without_page: Vec<&str> = stored.stdout.lines().filter(|line| !line.starts_with("report  ")).collect();
    assert_eq!(printed.stdout.lines().collect::<Vec<_>>(), without_page);
    assert!(printed.stdout.contains("\ndigest  ") && tree(&empty).is_empty(), "{}", printed.stdout);
}

/// Nobody, root included, can create a folder in /proc.
#[test]
fn it_runs_where_nothing_can_be_written() {
    let dir = folder("no-store-read-only");
    write(&dir, "small.toml", SCENARIO);
    let file = dir.join("small.toml");
    assert_eq!(run(Path::new("/proc"), &file, &[]).code, Some(4), "the folder cannot be created");
    let outcome = run(Path::new("/proc"), &file, &["--no-store", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(4));
}

/// Whether the process has a handler for SIGINT, from the kernel's mask of caught signals.
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 << (Signal::SIGINT as u32 - 1) != 0
}

#[test]
fn an_interrupt_says_that_nothing_is_kept() {
    let dir = folder("no-store-interrupted");
    write(&dir, "small.toml", SCENARIO);
    let arguments = ["run", "small.toml", "--no-store", "--set", "duration=1000000s", "--set", "sample=1000s"];
    let mut child = command(&arguments).current_dir(&dir).stderr(Stdio::piped()).spawn().unwrap();
    assert!(eventually(|| catches_interrupts(child.id())));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted: nothing is kept"), "{stderr}");
}
