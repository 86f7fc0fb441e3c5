//! The effective scenario: the text that makes, without options, the runs that a file makes with them.

use super::common::{check_effective_text, try_read};
use super::shipped::{files, folder};
use ropewalk_scenario::{Overrides, Scenario, load};

fn effective(text: &str, sets: &[&str], quick: bool) -> String {
    let scenario = try_read(text, sets, quick).unwrap_or_else(|error| panic!("{error}"));
    scenario.effective_text.unwrap_or_else(|| panic!("no text for {sets:?} over\n{text}"))
}

const FILE: &str = r#"# Two paths.
name = "two"
duration = "10s" # long enough
repetitions = 3

[[path]]
name = "a"
rate = "100mbit" # of the first
delay = "10ms"

[[path]]
name = "b"
rate = "50mbit"
delay = "10ms"

[[flow]]
name = "tcp"
path = "a"
congestion = "cubic"

[sweep]
"path.a.delay" = ["10ms", "20ms"]
"flow.tcp.congestion" = ["cubic", { label = "slow", value = { name = "reno" } }]

[case.lossy]
path = [{ name = "b", rate = "20mbit", loss = "1%" }]

[case.late]
flow = [{ name = "tcp", start = "1s" }]

[quick]
duration = "1s"
sweep = { "path.a.delay" = ["10ms"], case = ["lossy"] }
"#;

#[test]
fn a_set_stands_in_the_place_of_the_value_that_it_replaces_and_comments_stay() {
    let text = effective(FILE, &["path.a.rate=10mbit", "seeds=[7]"], false);
    assert!(text.contains("rate = \"10mbit\" # of the first"), "{text}");
    assert!(text.starts_with("# Two paths.\n") && text.contains("seeds = [7]"), "{text}");
    assert!(!text.contains("100mbit") && !text.contains("repetitions"), "{text}");
    assert!(text.contains("with = [\"--set path.a.rate=10mbit\", \"--set seeds=[7]\"]"), "{text}");
}

#[test]
fn every_kind_of_option_has_a_text_that_makes_the_same_runs() {
    let sets: [&[&str]; 14] = [
        &["path.a.rate=10mbit"],
        &["path.a.delay=20ms"],
        &["path.a.delay=5ms", "flow.tcp.congestion=slow"],
        &["flow.tcp.congestion.beta=0.5"],
        &["path.b.rate=7mbit"],
        &["path.b.loss=2%"],
        &["path.*.rate=30mbit"],
        &["flow.t*.start=2s"],
        &["sweep.flow.tcp.congestion=[{ label = \"slow\", value = \"vegas\" }, \"reno\"]"],
        &["case=lossy"],
        &["sweep.case=[\"late\"]"],
        &["sweep.path.b.delay=[\"1ms\", \"2ms\"]"],
        &["path.a={ name = \"a\", rate = \"1mbit\", delay = \"3ms\" }"],
        &["repetitions=2", "host.ip=6"],
    ];
    for set in sets {
        for quick in [false, true] {
            effective(FILE, set, quick);
        }
    }
    effective(FILE, &[], true);
}

#[test]
fn a_file_without_options_is_its_own_effective_text() {
    assert_eq!(try_read(FILE, &[], false).unwrap().effective_text, None);
}

#[test]
fn the_shipped_scenarios_have_effective_texts() {
    for file in files(&folder()) {
        let text = std::fs::read_to_string(&file).unwrap();
        let quick = text.contains("[quick]").then(|| Overrides { sets: Vec::new(), quick: true });
        let seeds = Overrides { sets: vec!["seeds=[5]".to_owned(), "duration=7s".to_owned()], quick: false };
        for overrides in quick.into_iter().chain([seeds]) {
            // Events after the end of a shorter run are refused.
            let Ok(scenario) = load(&file, &overrides) else { continue };
            let Scenario { effective_text, .. } = &scenario;
            assert!(effective_text.is_some(), "{} with {:?}", file.display(), overrides.options());
            check_effective_text(&scenario, file.parent().unwrap(), &text);
        }
    }
}
