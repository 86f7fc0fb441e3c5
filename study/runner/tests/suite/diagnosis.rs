//! The report says why MPTCP carries less than its best path alone would, and nothing where it does not.

use ropewalk_runner::{Simulator, Study, to_report};
use scenario::Overrides;
use std::path::Path;

/// LIA over a fixed line and a lossy LTE link.
const TEXT: &str = r#"
name = "harm"
duration = "10s"

[[path]]
name = "fibre"
rate = "50mbit"
delay = "10ms"
queue = { limit = "1bdp" }

[[path]]
name = "lte"
rate = "20mbit"
delay = "30ms"
jitter = "5ms"
loss = "1%"
queue = { limit = "200p" }

[[flow]]
name = "f"
kind = "mptcp"
congestion = "lia"
"#;

/// What the terminal shows of the scenario with these changes, in one line.
fn shown(sets: &[&str]) -> String {
    let overrides = Overrides { sets: sets.iter().map(|set| (*set).to_owned()).collect(), ..Overrides::default() };
    let scenario = scenario::parse("harm.toml", TEXT, Path::new(""), &overrides).unwrap();
    let (manifest, runs) = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap().run(Some(1), &mut ()).unwrap();
    let runs: Vec<record::Run> = runs.into_iter().map(|(_, run)| run).collect();
    let text = report::terminal(&to_report(&manifest, report::Layout::default(), &runs), 80, false);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_flow_that_waits_for_its_lossy_path_is_diagnosed_and_one_that_fills_its_best_path_is_not() {
    let upstream = shown(&[]);
    assert!(
        upstream.contains("% of the time the full send buffer had no data for fibre, while fibre was used to"),
        "{upstream}"
    );
    assert!(upstream.contains("Data waited for lte: the mean head-of-line delay was"), "{upstream}");
    assert!(upstream.contains("fibre alone would carry about "), "{upstream}");
    for set in ["flow.f.mptcp={ stack = \"out-of-tree\" }", "flow.f.paths=[\"fibre\"]"] {
        let other = shown(&[set]);
        assert!(!other.contains("Data waited for"), "{set}: {other}");
    }
}
