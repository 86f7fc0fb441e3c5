//! Loading again, replacing, and what tells one load from another.

use super::access::{Namespace, ip};
use super::{CONNECTION, Process, free, json, listed, turn, with};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A file of this test, which goes when it is dropped.
struct StateFile(PathBuf);

impl StateFile {
    fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("rw-kernel-state-{}-{test}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The id that `list` says of a program.
fn id(name: &str) -> u64 {
    let list = json(&["kernel", "list", "--json"]);
    let entry = list.as_array().unwrap().iter().find(|entry| entry["kernel_name"] == name).unwrap();
    assert_eq!(entry["this_version"], true, "{entry}");
    entry["id"].as_u64().unwrap()
}

#[test]
fn a_unit_unloads_what_it_has_loaded_and_nothing_else() {
    let Some(_turn) = turn() else { return };
    let [by_hand, by_unit, ..] = free()[..] else { return };
    let state = StateFile::new("unit");
    assert_eq!(with("load", &[by_hand]).code, Some(0));
    let before = id(by_hand);
    for _ in 0..2 {
        let load = with("load", &["--ensure", "--state", state.path(), by_hand, by_unit]);
        assert_eq!((load.code, load.stderr.as_str()), (Some(0), ""), "{load:?}");
        assert!(load.stdout.starts_with(&format!("{by_hand} is already loaded, id {before}\n")), "{load:?}");
        assert_eq!(fs::read_to_string(&state.0).unwrap(), format!("{by_unit} {}\n", id(by_unit)));
    }
    // Another list of programs, as after a change of the unit's file: the first one's is not forgotten.
    assert_eq!(with("load", &["--ensure", "--state", state.path(), by_hand]).code, Some(0));
    let unload = with("unload", &["--state", state.path()]);
    assert_eq!((unload.code, unload.stdout), (Some(0), format!("{by_unit} is unloaded\n")), "{}", unload.stderr);
    assert!(listed().contains(by_hand) && !listed().contains(by_unit) && !state.0.exists());
    let again = with("unload", &["--state", state.path()]);
    assert_eq!((again.code, again.stdout), (Some(0), format!("{}: nothing was loaded\n", state.path())));
    assert_eq!(with("unload", &[by_hand]).code, Some(0));
}

#[test]
fn what_somebody_else_has_loaded_since_stays() {
    let Some(_turn) = turn() else { return };
    let Some(name) = free().first().copied() else { return };
    let state = StateFile::new("other");
    assert_eq!(with("load", &["--state", state.path(), name]).code, Some(0));
    assert_eq!((with("unload", &[name]).code, with("load", &[name]).code), (Some(0), Some(0)));
    let unload = with("unload", &["--state", state.path()]);
    assert_eq!((unload.code, unload.stdout), (Some(0), format!("{name} stays: id {} is not ours\n", id(name))));
    assert_eq!(with("unload", &[name]).code, Some(0));
}

#[test]
fn a_state_file_that_is_none_is_refused_with_its_line() {
    let state = StateFile::new("wrong");
    for (text, line) in
        [("rw_lia 12\nrw_none 4\n", "2: not a program with its id: `rw_none 4`"), ("rw_lia x\n", "1: not")]
    {
        fs::write(&state.0, text).unwrap();
        let unload = with("unload", &["--state", state.path()]);
        assert_eq!(unload.code, Some(4));
        assert!(unload.stderr.starts_with(&format!("error: {}:{line}", state.path())), "{unload:?}");
        assert!(unload.stderr.ends_with("help: a line is `rw_lia 12`\n") && state.0.exists());
    }
}

#[test]
fn a_replaced_program_is_kept_by_its_sockets_and_no_longer_by_a_namespaces_default() {
    let Some(_turn) = turn() else { return };
    if !free().contains(&"rw_lia") {
        return;
    }
    let namespace = Namespace::new("replace");
    assert_eq!(with("load", &["lia"]).code, Some(0));
    let old = id("rw_lia");
    assert!(ip(&format!("netns exec {} sysctl -qw net.ipv4.tcp_congestion_control=rw_lia", namespace.name())));
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace.name(), "python3", "-c", CONNECTION, "rw_lia"]);
    let mut python = Process(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ip starts"));
    let mut line = String::new();
    BufReader::new(python.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();

    let replaced = with("load", &["--replace", "lia"]);
    let status = json(&["kernel", "status", "--json", "lia"]);
    drop(python);
    let released = testing::eventually(|| kernel::kept().iter().all(|kept| u64::from(kept.id) != old));
    let unloaded = with("unload", &["lia"]);

    let place = format!("/run/netns/{}", namespace.name());
    let new = status["programs"][0]["id"].as_u64().unwrap();
    let said = format!("rw_lia is loaded, id {new} instead of {old}\n  it is the default of {place}: set again\n");
    assert_eq!((line.as_str(), replaced.code, replaced.stdout), ("ready\n", Some(0), said));
    assert!(new != old && status["programs"][0]["kept_ids"] == serde_json::json!([old]), "{status:#}");
    // Both ends: the namespace's default is the program.
    let connections = status["connections"].as_array().unwrap();
    let is_there =
        |connection: &serde_json::Value| connection["namespace"] == place && connection["same_algorithm"] == true;
    assert!(connections.len() == 2 && connections.iter().all(is_there), "{status:#}");
    assert!(released, "the default is the new one, so nothing keeps the old one");
    let text = format!("rw_lia is unloaded\n  it is still the default of {place}, for new sockets too: ");
    assert!(unloaded.stdout.starts_with(&text), "{unloaded:?}");
}

#[test]
fn a_program_of_other_functions_is_of_another_version() {
    let Some(_turn) = turn() else { return };
    let [first, second, ..] = free()[..] else { return };
    assert_eq!(with("load", &[first, second]).code, Some(0));
    let loaded = kernel::loaded();
    let find = |name: &str| *loaded.iter().find(|loaded| loaded.program.kernel_name == name).unwrap();
    let own = find(first).is_of_this_version();
    let other = kernel::Loaded { id: find(second).id, ..find(first) }.is_of_this_version();
    assert_eq!(with("unload", &[first, second]).code, Some(0));
    assert_eq!((own, other), (Some(true), Some(false)));
}

#[test]
fn check_says_the_same_in_every_network_namespace() {
    let Some(_turn) = turn() else { return };
    let namespace = Namespace::new("check");
    let program = env!("CARGO_BIN_EXE_ropewalk");
    let check =
        Command::new("ip").args(["netns", "exec", namespace.name(), program, "kernel", "check"]).output().unwrap();
    let text = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.status.code(), Some(0), "{text}");
    assert!(
        text.contains("yes  BPF JIT       unknown: ") && text.contains("yes  attempt       the kernel accepts"),
        "{text}"
    );
}

/// A kernel that leaves programs out is named when it matters.
#[test]
fn load_warns_of_a_kernel_that_leaves_programs_out() {
    let Some(_turn) = turn() else { return };
    let Some(name) = free().first().copied() else { return };
    let load = super::ropewalk(&["kernel", "load", name]);
    assert_eq!((load.code, with("unload", &[name]).code), (Some(0), Some(0)));
    assert_eq!(load.stderr.starts_with("warning: this kernel leaves programs out"), kernel::leaves_programs_out());
}
