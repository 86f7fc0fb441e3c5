//! The program with valid input: one digest, whatever the threads; folders that resume; one JSON document.

use crate::program::{command, folder, ropewalk, write};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const SWEEP: &str = r#"
name = "small"
title = "A small sweep"
duration = "2s"
seeds = [1, 2]

[[path]]
name = "one"
rate = "10mbit"
delay = "5ms"
loss = "0.5%"

[[flow]]
name = "tcp"
congestion = "reno"

[sweep]
"flow.tcp.congestion" = ["reno", "cubic"]
"path.one.delay" = ["5ms", "10ms"]
"#;

/// A folder with the sweep in it, and the file's path.
fn sweep(name: &str) -> (PathBuf, String) {
    let dir = folder(name);
    write(&dir, "small.toml", SWEEP);
    let file = dir.join("small.toml").display().to_string();
    (dir, file)
}

fn json(arguments: &[&str]) -> Value {
    let outcome = ropewalk(arguments);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).expect("exactly one JSON document")
}

fn run(file: &str, out: &Path, options: &[&str]) -> Value {
    json(&[&["run", file, "--json", "--quiet", "--out", &out.display().to_string()], options].concat())
}

#[test]
fn the_number_of_threads_changes_no_digit() {
    let (dir, file) = sweep("threads");
    let one = run(&file, &dir.join("one"), &["--jobs", "1"]);
    let four = run(&file, &dir.join("four"), &["--jobs", "4"]);
    assert_eq!(one["runs"].as_array().unwrap().len(), 8);
    assert_eq!(one, four);
}

#[test]
fn another_seed_is_another_run() {
    let (dir, file) = sweep("seed");
    let [three, four] = ["3", "4"].map(|seed| run(&file, &dir.join(seed), &["--seed", seed]));
    assert_eq!(three["runs"].as_array().unwrap().len(), 4);
    assert_eq!(three["runs"][0]["seed"], 3);
    assert_ne!(three["digest"], four["digest"]);
}

#[test]
fn a_set_fixes_a_swept_key() {
    let (dir, file) = sweep("set");
    let document = run(&file, &dir.join("out"), &["--set", "flow.tcp.congestion=cubic"]);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run["flows"][0]["congestion_control"] == "cubic"));
}

#[test]
fn a_parameter_that_is_on_or_off_may_be_true_or_false() {
    let (dir, file) = sweep("boolean");
    let congestion = |value: &str| format!("flow.tcp.congestion={{name=\"cubic\",hystart={value}}}");
    let [off, no, yes] = ["\"off\"", "false", "true"]
        .map(|value| run(&file, &dir.join(value.trim_matches('"')), &["--set", &congestion(value)])["digest"].clone());
    assert!(off == no && no != yes, "{off} {no} {yes}");
}

#[test]
fn a_finished_folder_is_reused_reported_and_compared() {
    let (dir, file) = sweep("reused");
    let out = dir.join("out").display().to_string();
    let first = ropewalk(&["run", &file, "--out", &out]);
    assert_eq!(first.code, Some(0));
    assert!(first.stderr.starts_with("8 runs in "), "{}", first.stderr);
    let closing: Vec<_> = first.stdout.lines().rev().take(2).collect();
    assert!(closing[0].starts_with("digest  ") && closing[1].ends_with("report.html"), "{closing:?}");
    let second = ropewalk(&["run", &file, "--out", &out]);
    assert!(
        second.stderr.starts_with("reusing 8 of 8 runs") && second.stderr.lines().count() == 1,
        "{}",
        second.stderr
    );
    assert_eq!(ropewalk(&["run", &file, "--out", &out, "--quiet"]).stderr, "");
    assert_eq!(first.stdout.matches(closing[0].trim_start_matches("digest  ")).count(), 1, "said once");
    assert_eq!(second.stdout, first.stdout);
    std::fs::remove_file(dir.join("out/report.html")).unwrap();
    assert_eq!(ropewalk(&["report", &out]).stdout, first.stdout);
    assert!(dir.join("out/report.html").exists());
    assert_eq!(json(&["report", &out, "--json"])["digest"], closing[0].trim_start_matches("digest  "));
    let compared = ropewalk(&["compare", &out, &out]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(compared.contains("4 common cells, median |error| 0.0 %"), "{compared}");
    assert!(std::fs::read_to_string(dir.join("out/compare.html")).unwrap().contains("4 common cells"));
    let page = dir.join("page.html").display().to_string();
    assert!(ropewalk(&["compare", &out, &out, "--out", &page]).stdout.ends_with(&format!("page    {page}\n")));
    assert!(std::fs::exists(&page).unwrap());
    let folder = ropewalk(&["compare", &out, &out, "--out", &out]);
    assert!(folder.code == Some(4) && folder.stderr.contains("it is a folder"), "{}", folder.stderr);
    assert_eq!(json(&["compare", &out, &out, "--json"])["first"]["runs"].as_array().unwrap().len(), 8);
    let pairs = ["compare", &out, &out, &out, &out, "--out", &page];
    let together = ropewalk(&pairs).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(together.contains("Goodput in 2 comparisons: 8 values in 8 common cells"), "{together}");
    assert_eq!(json(&[&pairs[..], &["--json"]].concat()).as_array().unwrap().len(), 2);
}

#[test]
fn a_baseline_is_kept_with_the_results_and_reported_again_without_its_folder() {
    let (dir, file) = sweep("baseline");
    let shown = "[[table]]\nrows = \"path.one.delay\"\nvalue = [\"goodput_mbps\", \"cwnd_trajectory_error_percent\"]\n";
    let [theirs, ours] = ["kernel-6.1", "ours"].map(|name| dir.join(name));
    let sampled = format!("sample = \"50ms\"\n{SWEEP}");
    write(&dir, "small.toml", &sampled);
    run(&file, &theirs, &["--set", "flow.tcp.congestion=reno", "--seed", "7"]);
    write(&dir, "small.toml", &format!("baseline = \"kernel-6.1\"\n{sampled}{shown}"));
    let first = ropewalk(&["run", &file, "--out", ours.to_str().unwrap()]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stdout.contains("kernel-6.1 (baseline): of 2 values"), "{}", first.stdout);
    assert!(first.stdout.contains("kernel-6.1: median |cwnd trajectory error|"), "{}", first.stdout);
    std::fs::remove_dir_all(&theirs).unwrap();
    assert_eq!(ropewalk(&["report", ours.to_str().unwrap()]).stdout, first.stdout);
}

#[test]
fn an_edited_scenario_goes_to_a_folder_of_its_own() {
    let (dir, file) = sweep("edited");
    let run_in_dir = |arguments: &[&str]| {
        let output = command(arguments).current_dir(&dir).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run_in_dir(&["run", &file]).contains("results/small/report.html"));
    write(&dir, "small.toml", &SWEEP.replace("0.5%", "1%"));
    assert!(run_in_dir(&["run", &file]).contains("results/small-2/report.html"));
    assert!(
        run_in_dir(&["run", &file]).contains("results/small-2/report.html"),
        "the same study finds its folder again"
    );
}

#[test]
fn a_sweep_that_was_killed_goes_on_where_it_was() {
    let (dir, file) = sweep("killed");
    let long = ["--set", "duration=600s"];
    let out = dir.join("out");
    let arguments = [&["run", &file, "--quiet", "--jobs", "1", "--out", out.to_str().unwrap()], &long[..]].concat();
    let mut child = command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_dir(out.join("parts")).map_or(0, Iterator::count) < 2 {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "no run was stored in time");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = ropewalk(&[&["run", &file, "--json", "--out", out.to_str().unwrap()], &long[..]].concat());
    assert!(resumed.stderr.contains("of 8 runs"), "{}", resumed.stderr);
    let resumed: Value = serde_json::from_str(&resumed.stdout).unwrap();
    assert_eq!(resumed, run(&file, &dir.join("whole"), &long));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = command(&["schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn lists_name_what_the_registries_hold() {
    let algorithms = json(&["list", "algorithms", "--json"]);
    assert_eq!(algorithms.as_array().unwrap().len(), control::registry::REGISTRY.len() + 1, "and `policy`");
    let short = ropewalk(&["list", "algorithms"]).stdout;
    assert!(["also: hstcp", "RFC 3649", "parameters: beta"].iter().all(|words| short.contains(words)), "{short}");
    let coupled = |name: &str| ropewalk(&["list", "algorithms", name]).stdout.contains("(coupled)");
    assert!(coupled("lia") && !coupled("reno"));
    let full = ropewalk(&["list", "algorithms", "cubic"]).stdout;
    assert!(full.contains("beta") && full.contains("RFC"), "{full}");
    let schedulers = json(&["list", "schedulers", "--json"]);
    assert_eq!(schedulers.as_array().unwrap().len(), schedule::REGISTRY.len() + 1, "and `policy`");
    let full = ropewalk(&["list", "schedulers", "default"]).stdout;
    assert!(["minrtt (also default", "needs: measurements", "fills: windows"].iter().all(|text| full.contains(text)));
    assert!(ropewalk(&["list", "schedulers", "blest"]).stdout.contains("lambda = 1.2   (0 to 100)"));
    let (dir, _) = sweep("listed/scenarios");
    let output = command(&["list", "scenarios"]).current_dir(dir.parent().unwrap()).output().unwrap();
    let list = String::from_utf8_lossy(&output.stdout);
    assert!(list.lines().next().is_some_and(|line| line.ends_with("  A small sweep (scenarios/small.toml)")), "{list}");
    assert!(list.contains("(built in)"), "{list}");
}

#[test]
fn every_verb_tells_the_exit_codes() {
    for verb in ["run", "list", "report", "compare", "schema"] {
        assert!(ropewalk(&[verb, "--help"]).stdout.contains("3  the scenario or the configuration is wrong"), "{verb}");
    }
}

/// A policy of `cc/policy/tests/models`, as `--set` takes it.
fn policy(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/policy/tests/models").join(name);
    format!("{{ name = \"policy\", file = \"{}\" }}", file.display())
}

#[test]
fn a_policy_that_fails_is_replaced_by_cubic_and_the_report_says_so() {
    let (dir, file) = sweep("policy");
    let out = dir.join("out").display().to_string();
    let set =
        format!("sweep.flow.tcp.congestion=[\"cubic\", {}, {}]", policy("steady.onnx"), policy("nan-answer.onnx"));
    let arguments = ["run", &file, "--set", &set, "--out", &out];
    let outcome = ropewalk(&arguments);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // Two delays, two seeds.
    let note = "In 4 of 12 runs a policy failed, on 4 connections, and a classical algorithm took its place: the policy \
                answered NaN.";
    let text = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(note), "{}", outcome.stdout);
    let page = std::fs::read_to_string(dir.join("out/report.html")).unwrap();
    assert!(page.contains("the policy answered NaN"));
    let again = json(&["report", &out, "--json"]);
    let failures = again["runs"].as_array().unwrap().iter().map(|run| run["controller_failures"].as_u64().unwrap());
    assert_eq!(failures.sum::<u64>(), 4);
}

#[test]
fn a_policy_controls_and_schedules_tcp_mptcp_and_the_paths_of_a_tunnel() {
    let dir = folder("policy-everywhere");
    let head = "name = \"x\"\nduration = \"2s\"\n";
    let path = |name: &str| format!("[[path]]\nname = \"{name}\"\nrate = \"10mbit\"\ndelay = \"5ms\"\n");
    let paths = path("one") + &path("two");
    let congestion = |file: &str| format!("congestion = {}\n", policy(file));
    let flow = "[[flow]]\nname = \"tcp\"\n";
    let tunnel = |file: &str| format!("[tunnel]\nmode = \"ropewalk\"\n{}{flow}", congestion(file));
    let scheduled = |file: &str| format!("[tunnel]\nmode = \"ropewalk\"\nscheduler = {}\n{flow}", policy(file));
    let mptcp = |file: &str| {
        format!("[[flow]]\nname = \"tcp\"\nkind = \"mptcp\"\npaths = [\"one\", \"two\"]\n{}", congestion(file))
    };
    for (name, text) in [
        ("tcp", format!("{head}{}{flow}{}", path("one"), congestion("steady.onnx"))),
        ("mptcp", format!("{head}{paths}{}", mptcp("steady.onnx"))),
        ("mptcp-group", format!("{head}{paths}{}", mptcp("group.onnx"))),
        ("tunnel", format!("{head}{paths}{}", tunnel("steady.onnx"))),
        ("tunnel-group", format!("{head}{paths}{}", tunnel("group.onnx"))),
        ("mptcp-packets", format!("{head}{paths}{}scheduler = {}\n", mptcp("steady.onnx"), policy("by-packet.onnx"))),
        ("tunnel-packets", format!("{head}{paths}{}", scheduled("by-packet.onnx"))),
        ("tunnel-path", format!("{head}{paths}{}", scheduled("by-path.onnx"))),
        ("tunnel-weights", format!("{head}{paths}{}", scheduled("by-weights.onnx"))),
    ] {
        write(&dir, &format!("{name}.toml"), &text);
        let file = dir.join(format!("{name}.toml")).display().to_string();
        let [run, again] = [(); 2].map(|()| json(&["run", &file, "--json"])["runs"][0].clone());
        assert_eq!(run["controller_failures"], 0, "{name}: {run}");
        assert!(run["flows"][0]["delivered_bytes"].as_u64().unwrap() > 0, "{name}: {run}");
        assert_eq!(run["digest"], again["digest"], "{name}");
    }
}
