//! The lines that install the command from a clone, as README.md and docs/ have them.

use crate::support::{folder, run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The beginning of such a line.
const LINE: &str = "cargo install --path cli";

/// The lines of README.md and docs/.
fn lines() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        let entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let (inner, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_dir());
        folders.extend(inner);
        pages.extend(files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    }
    let texts: Vec<String> = pages.iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let from_there = |text: &str| {
        let starts = text.match_indices(LINE).map(|(at, _)| at).collect::<Vec<_>>();
        starts.into_iter().map(|at| text[at..].split(['`', '\n']).next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    texts.iter().flat_map(|text| from_there(text)).collect()
}

/// Without optimisation and symbols, which takes a third of the time; in a target folder for itself, because the program that
/// other tests run has more features.
#[test]
fn the_line_of_the_readme_installs_a_command_that_runs_a_study() {
    let readme = include_str!("../../../README.md");
    let line = format!("{LINE} --features lab");
    assert!(readme.contains(&format!("| `{line}` | `ropewalk run one-link` |")));
    let folder = folder("install");
    let root = folder.to_str().unwrap();
    let arguments: Vec<&str> = line.split(' ').skip(1).chain(["--debug", "--locked", "--root", root]).collect();
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let output = Command::new("cargo")
        .args(arguments)
        .current_dir(repository)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let study = Command::new(folder.join("bin/ropewalk")).args(["run", "one-link"]).current_dir(&folder).output();
    let study = study.unwrap();
    assert!(study.status.success(), "{}", String::from_utf8_lossy(&study.stderr));
    assert!(folder.join("results/one-link/report.html").is_file());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_line_names_features_that_there_are() {
    let metadata = run("cargo", &["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let command = packages.iter().find(|package| package["name"] == "ropewalk").expect("it is a member");
    let lines = lines();
    assert!(lines.len() > 1, "{lines:?}");
    for line in lines {
        let rest = line[LINE.len()..].trim();
        let features = rest.strip_prefix("--features ").or(rest.is_empty().then_some("")).expect(&line);
        for feature in features.split(',').filter(|feature| !feature.is_empty()) {
            assert!(command["features"].get(feature).is_some(), "`{line}`: no feature `{feature}`");
        }
    }
}
