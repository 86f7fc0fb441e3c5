//! Scenarios by name, the first scenario, and what the command line says of wrong values.

use crate::program::{command, folder, ropewalk, write};

#[test]
fn the_program_carries_its_scenarios_with_their_traces() {
    let dir = folder("built-in");
    let run = |arguments: &[&str]| command(arguments).current_dir(&dir).output().unwrap();
    let list = String::from_utf8(run(&["list", "scenarios"]).stdout).unwrap();
    assert!(list.contains("lte-trace") && list.contains("(built in)") && !list.contains("cannot be read"), "{list}");
    let output = run(&["run", "lte-trace", "--set", "duration=1s", "--seed", "1", "--out", "out"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && stderr.starts_with("running the built-in lte-trace.toml"), "{stderr}");
    // A file on disk goes before the built-in scenario of its name.
    let scenarios = folder("built-in/scenarios");
    write(
        &scenarios,
        "lte-trace.toml",
        "name = \"lte-trace\"\nduration = \"1s\"\n[[path]]\nname = \"a\"\n[[flow]]\nname = \"tcp\"\nsize = \"1kB\"\n",
    );
    let output = run(&["run", "lte-trace", "--out", "own"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && stderr.starts_with("running scenarios/lte-trace.toml"), "{stderr}");
}

#[test]
fn without_a_word_the_program_and_its_lists_say_what_there_is() {
    let first = ropewalk(&[]);
    assert_eq!((first.code, first.stdout.as_str()), (Some(2), ""));
    assert!(first.stderr.contains("ropewalk run one-link"), "{}", first.stderr);
    let lists = ropewalk(&["list"]).stdout;
    assert!(["algorithms", "schedulers", "scenarios"].iter().all(|list| lists.contains(list)), "{lists}");
    let names: serde_json::Value = serde_json::from_str(&ropewalk(&["list", "--json"]).stdout).expect("JSON");
    assert!(names["algorithms"].as_array().is_some_and(|names| names.contains(&"cubic".into())), "{names}");
    let help = ropewalk(&["--help"]).stdout;
    assert!(["Simulate and measure:", "Results:", "Exit codes:"].iter().all(|part| help.contains(part)), "{help}");
}

/// A short run shows neither published values nor verdicts, which are of the full length, and says so first. Without a
/// short form a scenario runs in full.
#[test]
fn a_short_run_says_so_and_judges_nothing() {
    let dir = folder("short-form");
    let base = "name = \"short\"\nduration = \"2s\"\n[[path]]\nname = \"a\"\nrate = \"10mbit\"\n[[flow]]\nname = \"tcp\"\n\
                [sweep]\n\"path.a.delay\" = [\"1ms\"]\n";
    write(&dir, "short.toml", &format!("{base}[quick]\nduration = \"1s\"\n"));
    write(&dir, "full.toml", base);
    let run = |arguments: &[&str]| command(arguments).current_dir(&dir).output().unwrap();
    let short = run(&["run", "short.toml", "--quick", "--out", "short"]);
    let page = std::fs::read_to_string(dir.join("short/report.html")).unwrap();
    let note = "Short run (--quick): duration 1s.";
    assert!(String::from_utf8_lossy(&short.stdout).contains(note) && page.contains(note), "{short:?}");
    let full = run(&["run", "full.toml", "--quick", "--no-store"]);
    assert!(full.status.success() && String::from_utf8_lossy(&full.stderr).contains("runs in full"), "{full:?}");
    assert!(!String::from_utf8_lossy(&full.stdout).contains("Short run"), "{full:?}");
}

#[test]
fn a_new_scenario_runs_and_is_not_overwritten() {
    let dir = folder("new");
    let run = |arguments: &[&str]| command(arguments).current_dir(&dir).output().unwrap();
    assert!(run(&["new", "first"]).status.success());
    for quick in [&["--quick"][..], &[]] {
        let output = run(&[&["run", "first.toml", "--seed", "1", "--set", "sample=1s"], quick].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let again = run(&["new", "first"]);
    assert_eq!(again.status.code(), Some(4), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(run(&["new", "../x"]).status.code(), Some(2));
}

#[test]
fn profiles_become_the_paths_of_a_new_scenario() {
    let dir = folder("new-ibox");
    let run = |arguments: &[&str]| command(arguments).current_dir(&dir).output().unwrap();
    let profile = r#"{"data_flow_direction": "upload", "config": {
        "uplink": {"bottleneck_bandwidth": 6000, "buffer_size_packets": 20, "propagation_delay": 24,
            "cross_traffic_pattern": [2000, 0, 2000]},
        "downlink": {"bottleneck_bandwidth": 100000, "buffer_size_packets": 10000, "propagation_delay": 0,
            "cross_traffic_pattern": []}}}"#;
    std::fs::write(dir.join("profile.json"), profile).unwrap();
    assert!(run(&["new", "two", "--ibox", "profile.json", "--ibox", "lte=profile.json"]).status.success());
    let output = run(&["run", "two.toml", "--no-store", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (arguments, code, words) in [
        (&["--ibox", "profile.json", "--ibox", "profile.json"][..], 2, "two paths are called `profile`"),
        (&["--ibox", "a b=profile.json"], 2, "`a b` is not a name"),
        (&["--ibox", "two.toml"], 3, "two.toml: expected value at line 1"),
        (&["--ibox", "missing.json"], 3, "missing.json: No such file"),
    ] {
        let output = run(&[&["new", "three"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && error.contains(words), "{error}");
        assert!(!dir.join("three.toml").exists());
    }
}

#[test]
fn a_wrong_value_is_told_with_what_would_be_right() {
    let head = "name = \"x\"\nduration = \"1s\"\n";
    let path = |name: &str| format!("[[path]]\nname = \"{name}\"\nrate = \"10mbit\"\ndelay = \"5ms\"\n");
    let flow = "[[flow]]\nname = \"tcp\"\n";
    let one = path("a");
    let bdp = "[[path]]\nname = \"a\"\nrate = \"1bit\"\ndelay = \"5ms\"\nqueue = { limit = \"1bdp\" }\n";
    let table =
        "[sweep]\n\"path.a.delay\" = [\"1ms\", \"2ms\"]\n[[table]]\nrows = \"path.a.delay\"\nvalue = [\"goodput\"]\n";
    let dir = folder("wrong-values");
    for (text, words) in [
        (format!("{head}{bdp}{flow}"), "is less than a byte: 1 bit/s for an RTT of 10 ms"),
        (format!("{head}{one}[flow]\nname = \"tcp\"\n"), "write `[[flow]]`"),
        (format!("repetitions = -1\n{head}{one}{flow}"), "a whole number, 0 or more"),
        (format!("{head}{one}{flow}{table}"), "did you mean `goodput_mbps`?"),
        (format!("{head}{one}{}{flow}", path("b")), "`kind = \"mptcp\"` for all of them"),
        (format!("title = 20\n{head}{one}{flow}"), "needs its unit, such as \"20mbit\""),
    ] {
        write(&dir, "x.toml", &text);
        let outcome = ropewalk(&["run", &dir.join("x.toml").display().to_string()]);
        assert!(outcome.code == Some(3) && outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let seed = ropewalk(&["run", "x.toml", "--seed", "-1"]);
    assert!(seed.stderr.contains("expected a whole number from 0 to 18446744073709551615"), "{}", seed.stderr);
}

#[test]
fn the_docs_name_every_option_of_the_verbs_of_studies() {
    let docs = include_str!("../../../docs/reference/cli.md");
    for verb in ["run", "evaluate", "list", "report", "merge", "compare", "claims", "new", "schema"] {
        let (_, section) = docs.split_once(&format!("\n## {verb}\n")).unwrap_or_else(|| panic!("no section on {verb}"));
        let section = section.split("\n## ").next().unwrap();
        let help = ropewalk(&[verb, "--help"]).stdout;
        let options = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
        let options = options.map(|option| option.trim_end_matches([',', '.', ':', '`']));
        for option in options.filter(|option| !["--help", "--version"].contains(option)) {
            assert!(section.contains(option), "docs/reference/cli.md, {verb}: {option}");
        }
    }
}

#[test]
fn folders_of_unrelated_studies_are_not_compared() {
    let dir = folder("unrelated");
    let scenario = |name: &str, flow: &str| {
        let text = format!(
            "name = \"{name}\"\nduration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\n[[flow]]\nname = \"{flow}\"\nsize = \"1kB\"\n"
        );
        write(&dir, &format!("{name}.toml"), &text);
        let [file, out] = [format!("{name}.toml"), name.to_owned()].map(|path| dir.join(path).display().to_string());
        assert_eq!(ropewalk(&["run", &file, "--out", &out, "--quiet"]).code, Some(0));
        out
    };
    let [first, second] = [scenario("first", "web"), scenario("second", "bulk")];
    let outcome = ropewalk(&["compare", &first, &second]);
    assert_eq!(outcome.code, Some(4), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("scenario first") && outcome.stderr.contains("flows: bulk"), "{}", outcome.stderr);
    assert!(!dir.join("first/compare.html").exists());
}
