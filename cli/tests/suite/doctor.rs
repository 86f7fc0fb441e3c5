//! `ropewalk doctor` says what this machine can run, and never fails.

use crate::program::{command, folder, ropewalk, write};
use serde_json::Value;

#[test]
fn the_table_and_the_json_document_tell_the_same() {
    let [table, json] = [ropewalk(&["doctor"]), ropewalk(&["doctor", "--json"])];
    assert_eq!((table.code, json.code), (Some(0), Some(0)), "{}{}", table.stderr, json.stderr);
    let diagnosis: Value = serde_json::from_str(&json.stdout).unwrap();
    for backend in diagnosis["backends"].as_array().unwrap() {
        assert!(table.stdout.contains(&format!("--on {}", backend["name"].as_str().unwrap())));
        if let Some(release) = backend["release"].as_str() {
            assert!(table.stdout.contains(release), "{}", table.stdout);
        }
    }
    let own_release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(diagnosis["backends"][1]["release"], own_release.trim(), "this machine's kernel");
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 80), "{}", table.stdout);
}

#[test]
fn where_a_kernel_runs_the_doctor_has_said_so() {
    let diagnosis: Value = serde_json::from_str(&ropewalk(&["doctor", "--json"]).stdout).unwrap();
    let dir = folder("doctor");
    let scenario = "name = \"none\"\nduration = \"1s\"\n[[path]]\nname = \"one\"\n[[flow]]\nname = \"v\"\n\
                    video = { kind = \"live\", ladder = [\"1mbit\"] }\n";
    write(&dir, "video.toml", scenario);
    let file = dir.join("video.toml").display().to_string();
    for backend in diagnosis["backends"].as_array().unwrap() {
        let outcome = ropewalk(&["run", &file, "--on", backend["name"].as_str().unwrap()]);
        // Video is refused (3) by a kernel that is there; without one there is nobody to refuse it (4).
        let expected = if backend["release"].is_null() || !may_run(backend) { 4 } else { 3 };
        assert_eq!(outcome.code, Some(expected), "{backend}: {}", outcome.stderr);
        let helps =
            expected == 4 || ["flow.v", "video.toml:", "--on sim"].iter().all(|text| outcome.stderr.contains(text));
        assert!(helps, "{}", outcome.stderr);
    }
}

/// A guest that does not boot is detected only by its first run.
fn may_run(backend: &Value) -> bool {
    backend["name"] == "uml" || backend["fault"].is_null()
}

#[test]
fn a_kernel_that_is_not_there_is_told_and_is_no_failure() {
    let empty = folder("doctor-empty");
    let output = command(&["doctor"]).env("ROPEWALK_LINUX", empty.join("linux")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("no: cannot run") && text.contains("--on sim runs every scenario"), "{text}");
}
