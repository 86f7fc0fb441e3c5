//! Shards: what `run --shard` and `merge` make together is, byte for byte, what one machine makes.

use crate::program::{folder, ropewalk, write};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const STUDY: &str = r#"
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
flow.tcp.congestion = ["reno", "cubic"]
path.one.rate = ["1mbit", "2mbit"]
"#;

/// A folder with the study in it.
fn study(name: &str) -> PathBuf {
    let dir = folder(name);
    write(&dir, "small.toml", STUDY);
    dir
}

/// Runs one shard of the study into `dir/OUT`, and gives what is printed.
fn run_shard(dir: &Path, shard: &str, out: &str, options: &[&str]) -> String {
    let [file, out] = [dir.join("small.toml"), dir.join(out)].map(|path| path.display().to_string());
    let outcome = ropewalk(&[&["run", &file, "--shard", shard, "--out", &out, "--quiet"], options].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout
}

/// Runs all shards into `dir/1`, `dir/2` and so on, and gives their folders.
fn run_shards(dir: &Path, count: usize) -> Vec<String> {
    let names = (1..=count).map(|index| index.to_string());
    names.inspect(|name| drop(run_shard(dir, &format!("{name}/{count}"), name, &[]))).collect()
}

/// `ropewalk merge` of folders in `dir` into `dir/OUT`: exit code, and what is on both outputs.
fn merge(dir: &Path, shards: &[String], out: &str) -> (Option<i32>, String) {
    let path = |name: &str| dir.join(name).display().to_string();
    let (shards, out): (Vec<String>, _) = (shards.iter().map(|name| path(name)).collect(), path(out));
    let shards: Vec<&str> = shards.iter().map(String::as_str).collect();
    let outcome = ropewalk(&[&["merge"], shards.as_slice(), &["--out", &out]].concat());
    (outcome.code, outcome.stdout + &outcome.stderr)
}

/// Every file of a folder with its bytes.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())).collect()
}

fn run_whole(dir: &Path, out: &str) {
    let [file, out] = [dir.join("small.toml"), dir.join(out)].map(|path| path.display().to_string());
    assert_eq!(ropewalk(&["run", &file, "--out", &out, "--jobs", "1", "--quiet"]).code, Some(0));
}

/// Changes the text of a shard's manifest.
fn edit_manifest(dir: &Path, shard: &str, from: &str, to: &str) {
    let path = dir.join(shard).join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn merged_shards_are_byte_for_byte_the_folder_of_one_machine() {
    let dir = study("shards-merge");
    run_whole(&dir, "whole");
    let whole = files(&dir.join("whole"));
    assert!(["manifest.json", "report.html", "series.parquet"].iter().all(|name| whole.contains_key(*name)));
    for count in [1, 3, 11] {
        let mut shards = run_shards(&dir, count); // with 11, some of the 8 runs' shards are empty
        shards.reverse(); // in any order
        let (code, text) = merge(&dir, &shards, &format!("merged-{count}"));
        assert_eq!(code, Some(0), "{text}");
        let merged = files(&dir.join(format!("merged-{count}")));
        assert_eq!(merged.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
        whole.iter().for_each(|(name, bytes)| assert!(merged[name] == *bytes, "{name} of {count} shards differs"));
        shards.iter().for_each(|shard| fs::remove_dir_all(dir.join(shard)).unwrap());
    }
}

#[test]
fn shards_divide_the_runs_evenly_and_say_which_they_are() {
    let dir = study("shards-divide");
    let printed: Vec<String> = (1..=4).map(|i| run_shard(&dir, &format!("{i}/4"), &i.to_string(), &[])).collect();
    for (index, text) in printed.iter().enumerate() {
        assert!(text.contains(&format!("shard   {}/4, 2 of 8 runs\n", index + 1)), "{text}");
    }
}

#[test]
fn a_shard_that_is_done_is_not_run_again_and_merging_again_changes_nothing() {
    let dir = study("shards-again");
    let shards = run_shards(&dir, 2);
    let before = files(&dir.join("1"));
    run_shard(&dir, "1/2", "1", &[]);
    assert!(before == files(&dir.join("1")));
    let twice = [shards.clone(), shards].concat(); // a shard that is there twice is there once
    assert_eq!(merge(&dir, &twice, "out").0, Some(0));
    let merged = files(&dir.join("out"));
    assert_eq!(merge(&dir, &twice, "out").0, Some(0));
    assert!(merged == files(&dir.join("out")));
}

#[test]
fn missing_and_unfinished_shards_are_named() {
    let dir = study("shards-missing");
    let shards = run_shards(&dir, 4);
    let (code, text) = merge(&dir, &shards[..1], "out");
    assert!(code == Some(4) && text.contains("shards 2/4, 3/4, 4/4 are missing"), "{text}");
    edit_manifest(&dir, "3", "\"complete\": true", "\"complete\": false");
    let (code, text) = merge(&dir, &shards, "out");
    assert!(code == Some(4) && text.contains("/3 are not complete: run the scenario again"), "{text}");
    run_shard(&dir, "3/4", "3", &[]);
    assert_eq!(merge(&dir, &shards, "out").0, Some(0));
}

#[test]
fn shards_of_different_studies_are_not_merged() {
    let dir = study("shards-study");
    let shards = run_shards(&dir, 2);
    run_shard(&dir, "2/2", "other-scenario", &["--set", "duration=2s"]);
    run_shard(&dir, "2/3", "other-count", &[]);
    let refused = |second: &str, phrase: &str| {
        let (code, text) = merge(&dir, &[shards[0].clone(), second.to_owned()], "out");
        assert!(code == Some(4) && text.contains(phrase), "{second}: {text}");
        assert!(!dir.join("out").exists());
    };
    refused("other-scenario", "not of one study");
    refused("other-count", "/1 is one of 2 shards");
    run_whole(&dir, "whole");
    refused("whole", "holds a whole study, not a shard");
    refused("none", "not a results folder");
    edit_manifest(&dir, "2", "\"commit\": \"", "\"commit\": \"0");
    refused("2", "has commit ");
}

#[test]
fn a_table_that_changed_on_its_way_is_refused() {
    let dir = study("shards-damage");
    let shards = run_shards(&dir, 2);
    let path = dir.join("2/flows.parquet");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (code, text) = merge(&dir, &shards, "out");
    assert!(code == Some(4) && text.contains("flows.parquet is damaged"), "{text}");
    fs::remove_file(&path).unwrap();
    let (code, text) = merge(&dir, &shards, "out");
    assert!(code == Some(4) && text.contains("flows.parquet is damaged"), "{text}");
}

#[test]
fn a_shard_is_neither_reported_nor_mixed_with_another() {
    let dir = study("shards-report");
    run_shards(&dir, 2);
    let [file, one] = [dir.join("small.toml"), dir.join("1")].map(|path| path.display().to_string());
    let outcome = ropewalk(&["report", &one]);
    assert!(outcome.code == Some(4) && outcome.stderr.contains("`ropewalk merge`"), "{}", outcome.stderr);
    for options in [["--shard", "2/2"].as_slice(), &[]] {
        let outcome = ropewalk(&[&["run", &file, "--out", &one], options].concat());
        assert!(outcome.code == Some(4) && outcome.stderr.contains("results of shard 1/2"), "{}", outcome.stderr);
    }
    for shard in ["0/2", "3/2", "2", "1/0", "a/b", "1/200000"] {
        let outcome = ropewalk(&["run", &file, "--shard", shard]);
        assert!(outcome.code == Some(2) && outcome.stderr.contains("I from 1 to N"), "{}", outcome.stderr);
    }
}
