//! A results folder says what was run: its command, and a scenario that gives the same digest without options.

use crate::program::{folder, ropewalk, write};
use std::path::Path;

const SCENARIO: &str = r#"
name = "small"
duration = "2s"
seeds = [1, 2]

[[path]]
name = "one"
rate = "10mbit" # of the link
delay = "5ms"
loss = "0.5%"

[[flow]]
name = "tcp"

[sweep]
"flow.tcp.congestion" = ["reno", "cubic"]

[[table]]
value = "goodput_mbps"
rows = "flow.tcp.congestion"

[[claim]]
says = "CUBIC is the faster one"
value = "goodput_mbps"
of = "flow.tcp.congestion"
highest = ["cubic"]

[quick]
duration = "1s"
"#;

/// The digest that a run prints.
fn digest(file: &Path, out: &Path, options: &[&str]) -> String {
    let [file, out] = [file, out].map(|path| path.display().to_string());
    let outcome = ropewalk(&[&["run", &file, "--out", &out, "--quiet"], options].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout.lines().find_map(|line| line.strip_prefix("digest  ")).expect("a digest").to_owned()
}

#[test]
fn the_scenario_of_a_results_folder_gives_its_digest_without_options() {
    let dir = folder("provenance");
    write(&dir, "small.toml", SCENARIO);
    let file = dir.join("small.toml");
    let plain = digest(&file, &dir.join("plain"), &[]);
    let options: [&[&str]; 4] = [
        &["--set", "path.one.rate=5mbit"],
        &["--quick", "--seed", "9"],
        &["--set", "flow.tcp.congestion=reno", "--set", "flow.tcp.start=0.5s"],
        &["--set", "sweep.path.one.delay=[\"5ms\", \"9ms\"]", "--quick"],
    ];
    for (index, options) in options.iter().enumerate() {
        let [changed, again] = ["changed", "again"].map(|name| dir.join(format!("{name}-{index}")));
        let first = digest(&file, &changed, options);
        assert_ne!(first, plain, "{options:?}");
        assert_eq!(digest(&changed.join("scenario.toml"), &again, &[]), first, "{options:?}");
    }
}

#[test]
fn the_page_shows_the_command_what_was_run_and_what_the_options_changed() {
    let dir = folder("provenance-page");
    write(&dir, "small.toml", SCENARIO);
    digest(&dir.join("small.toml"), &dir.join("out"), &["--set", "path.one.rate=5mbit", "--quick"]);
    let page = std::fs::read_to_string(dir.join("out/report.html")).unwrap();
    let command = format!("ropewalk run {} --set path.one.rate=5mbit --quick", dir.join("small.toml").display());
    assert!(page.contains(&format!("<pre><code>{command}</code></pre>")), "{command}");
    assert!(page.contains("<del>-rate = &quot;10mbit&quot; # of the link</del>"));
    assert!(page.contains("<ins>+rate = &quot;5mbit&quot; # of the link</ins>"));
    let text = std::fs::read_to_string(dir.join("out/scenario.toml")).unwrap();
    assert!(text.contains("duration = \"1s\"") && !text.contains("[quick]"), "{text}");
    assert!(page.contains("This text, without any option, with the program named above, gives these numbers again"));
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("out/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["effective_text"], text);
    assert_eq!(manifest["scenario_text"], SCENARIO);
}
