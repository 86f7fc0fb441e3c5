//! The plug-in keeps the rules of congestion control, and its program runs it as a built-in algorithm.

use serde_json::Value;
use std::process::Command;

/// What the plug-in's program prints as JSON.
fn program(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_ropewalk-example")).args(arguments).output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

#[test]
fn it_keeps_every_rule() {
    assert_eq!(conformance::controller::check(&plugin_example::entry()), []);
}

#[test]
fn its_program_lists_it_after_the_built_in_ones() {
    let list = program(&["list", "algorithms", "--json"]);
    let names: Vec<&str> = list.as_array().expect("a list").iter().filter_map(|entry| entry["name"].as_str()).collect();
    let position = |name| names.iter().position(|listed| *listed == name).expect(name);
    assert!(position("gaimd") > position("reno"), "{names:?}");
}

#[test]
fn with_its_defaults_it_is_reno_and_with_others_it_is_not() {
    let digest = |congestion: &str| {
        let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/one-link.toml");
        let (duration, set) = ("duration=2s", format!("flow.tcp.congestion={congestion}"));
        let out = tempfile::tempdir().expect("a folder");
        let folder = out.path().join("results").display().to_string();
        let run = program(&["run", scenario, "--json", "--set", duration, "--set", &set, "--out", &folder]);
        run["digest"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned()
    };
    assert_eq!(digest("gaimd"), digest("reno"));
    assert_ne!(digest(r#"{ name = "gaimd", decrease = 0.3 }"#), digest("reno"));
}
