//! Results folders: damaged parts, two processes on one folder, and interrupts.

use crate::program::{command, folder, ropewalk, write};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use testing::eventually;

const SCENARIO: &str = r#"
name = "small"
duration = "1s"
seeds = [1, 2, 3]

[[path]]
name = "one"
rate = "10mbit"
delay = "5ms"

[[flow]]
name = "tcp"

[sweep]
"duration" = [{ label = "first", value = "1s" }, { label = "endless", value = "1000000s" }]
"#;

/// A study of three short runs, then one that lasts for hours; and its process, which has stored the short ones.
fn under_way(name: &str) -> (PathBuf, String, Child) {
    let dir = folder(name);
    write(&dir, "small.toml", SCENARIO);
    let file = dir.join("small.toml").display().to_string();
    let child = study(&dir, &file).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| parts(&dir).len() == 3), "no run was stored in time");
    (dir, file, child)
}

fn study(dir: &Path, file: &str) -> std::process::Command {
    command(&["run", file, "--jobs", "1", "--out", &dir.join("out").display().to_string()])
}

fn parts(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("out/parts")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut parts: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    parts.sort();
    parts
}

fn interrupt(child: &mut Child, signal: Signal) -> (Option<i32>, String) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap().code(), stderr)
}

#[test]
fn an_interrupted_study_says_what_is_kept_and_how_to_go_on() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let (dir, file, mut child) = under_way(&format!("interrupted-{signal}"));
        let (code, stderr) = interrupt(&mut child, signal);
        let out = dir.join("out").display().to_string();
        assert_eq!(code, Some(130), "{stderr}");
        assert!(stderr.contains(&format!("interrupted: 3 of 6 runs are kept in {out}\n")), "{stderr}");
        assert!(stderr.contains("continue with: ") && stderr.contains(&format!(" run {file} --jobs 1 --out {out}\n")));
    }
}

#[test]
fn a_second_process_on_a_folder_is_refused_and_a_killed_one_holds_nothing() {
    let (dir, file, mut child) = under_way("locked");
    let second = ropewalk(&["run", &file, "--out", &dir.join("out").display().to_string()]);
    assert_eq!(second.code, Some(4), "{}", second.stderr);
    assert!(second.stderr.contains("another process is filling"), "{}", second.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut third = study(&dir, &file).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(third.stderr.take().unwrap()), &mut line).unwrap();
    assert!(line.starts_with("reusing 3 of 6 runs"), "{line}");
    third.kill().unwrap();
    third.wait().unwrap();
}

#[test]
fn every_part_that_something_has_changed_is_named_at_once() {
    let (dir, file, mut child) = under_way("damaged");
    interrupt(&mut child, Signal::SIGINT);
    let [first, second, third] = parts(&dir).try_into().unwrap();
    let text = fs::read_to_string(&first).unwrap();
    let (before, after) = text.split_once("\"goodput_mbps\":").unwrap();
    let (_, after) = after.split_once(',').unwrap();
    write(&dir, "out/parts/00000-1.json", &format!("{before}\"goodput_mbps\":999.0,{after}"));
    let text = fs::read_to_string(&second).unwrap();
    fs::write(&second, &text[..text.len() / 2]).unwrap();
    let outcome = ropewalk(&["run", &file, "--out", &dir.join("out").display().to_string()]);
    assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
    let words = [
        "2 stored runs in ",
        "00000-1.json: its digest is not that of its contents",
        "00000-2.json: it has no digest, or is cut off",
        &format!("rm {} {}", first.display(), second.display()),
    ];
    words.iter().for_each(|words| assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr));
    assert!(!outcome.stderr.contains(third.file_name().unwrap().to_str().unwrap()), "{}", outcome.stderr);
}
