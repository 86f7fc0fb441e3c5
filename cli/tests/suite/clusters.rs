//! The recipes of docs/clusters make what one machine makes.

use crate::program::{folder, ropewalk, write};
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::{Reason, skip};

const STUDY: &str = r#"
name = "small"
duration = "1s"
seeds = [1, 2]

[[path]]
name = "one"
rate = "10mbit"
delay = "5ms"

[[flow]]
name = "tcp"

[sweep]
flow.tcp.congestion = ["reno", "cubic"]
"#;

/// A folder with the study, and with its results of one machine in `whole`.
fn study(name: &str) -> PathBuf {
    let dir = folder(name);
    write(&dir, "scenario.toml", STUDY);
    let [file, out] = ["scenario.toml", "whole"].map(|name| dir.join(name).display().to_string());
    assert_eq!(ropewalk(&["run", &file, "--out", &out, "--quiet"]).code, Some(0));
    dir
}

fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/how-to/clusters").join(name)
}

/// Runs a command with the program on its path.
fn run(command: &mut Command) {
    let program = Path::new(env!("CARGO_BIN_EXE_ropewalk")).parent().unwrap().display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    let output = command.env("PATH", path).output().expect("the shell starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compares the digest of `dir/results` with that of one machine.
fn check(dir: &Path) {
    let manifest = |name: &str| std::fs::read_to_string(dir.join(name).join("manifest.json")).unwrap();
    let digest = |name: &str| manifest(name).lines().find(|line| line.contains("\"digest\"")).map(str::to_owned);
    assert!(digest("whole").is_some());
    assert_eq!(digest("results"), digest("whole"));
}

fn merge(dir: &Path, count: usize) {
    let shards = (1..=count).map(|index| dir.join(format!("shards/{index}")).display().to_string());
    let out = dir.join("results").display().to_string();
    let words = ["merge".to_owned()].into_iter().chain(shards).chain(["--out".to_owned(), out]);
    let words: Vec<String> = words.collect();
    let outcome = ropewalk(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

#[test]
fn the_script_of_a_slurm_array_makes_its_tasks_shards() {
    let dir = study("clusters-slurm");
    for task in 1..=3 {
        let mut script = Command::new("sh");
        script.arg(recipe("slurm.sh")).arg(dir.join("scenario.toml")).arg(&dir).args(["3", "--set", "duration=1s"]);
        run(script.env("SLURM_ARRAY_TASK_ID", task.to_string()).env("SLURM_CPUS_PER_TASK", "2"));
    }
    merge(&dir, 3);
    check(&dir);
}

#[test]
fn gnu_parallel_makes_and_merges_shards_and_goes_on_where_it_was() {
    if !Command::new("parallel").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip(Reason::Missing, "parallel");
    }
    let dir = study("clusters-parallel");
    for _ in 0..2 {
        run(Command::new("sh").arg(recipe("parallel.sh")).arg(dir.join("scenario.toml")).arg(&dir).arg("3"));
        check(&dir);
        std::fs::remove_dir_all(dir.join("results")).unwrap();
    }
}

#[test]
fn the_pods_of_the_kubernetes_job_make_its_shards() {
    let dir = study("clusters-kubernetes");
    let text = std::fs::read_to_string(recipe("kubernetes.yaml")).unwrap();
    let (_, script) = text.split_once("- |\n").unwrap();
    let (script, _) = script.split_once("          env:").unwrap();
    let script = script.replace("/study", &dir.display().to_string());
    for index in 0..3 {
        let mut shell = Command::new("sh");
        shell.args(["-euc", &script]).env("SCENARIO", dir.join("scenario.toml")).env("SHARDS", "3");
        run(shell.env("JOB_COMPLETION_INDEX", index.to_string()));
    }
    merge(&dir, 3);
    check(&dir);
}
