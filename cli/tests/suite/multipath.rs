//! The shipped scenarios of multipath topologies run in their short form, and show what the papers say of them.

use crate::program::{folder, ropewalk};
use std::path::Path;

/// What the short form of a scenario prints.
fn quick(name: &str) -> String {
    quick_with(name, &[])
}

fn quick_with(name: &str, arguments: &[&str]) -> String {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../scenarios/multipath/{name}.toml"));
    let out = folder(&format!("multipath-{name}")).join("out").display().to_string();
    let run = ["run", &scenario.display().to_string(), "--quick", "-q", "--out", &out];
    let run = ropewalk(&[&run[..], arguments].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout
}

/// The numbers of a table's row, without what stands in other tables: the `nth` row that begins with this word.
fn row(text: &str, word: &str, nth: usize) -> Vec<f64> {
    let mut rows = text.lines().filter(|line| line.split_whitespace().next() == Some(word));
    let line = rows.nth(nth).unwrap_or_else(|| panic!("no row {word} in:\n{text}"));
    line.split_whitespace().skip(1).filter_map(|word| word.trim_end_matches('‡').parse().ok()).collect()
}

/// Wischik et al. 2011, section 2.2: one hop to two as 1 to 0.71 without coupling, 2 to 1 with LIA, all to none with
/// full balance, which the sender's minimum window prevents. Of twenty seeds, as OLIA's are a third apart.
#[test]
fn in_the_ring_coupling_keeps_to_the_short_ways() {
    let text = quick_with("ring", &["--set", "repetitions=20"]);
    let split = |algorithm: &str| {
        let row = row(&text, algorithm, 0);
        row[2] / row[1]
    };
    let [reno, lia, olia] = ["reno", "lia", "olia"].map(split);
    assert!(reno > 0.45 && reno < 0.85, "{text}");
    assert!(lia < 0.75 * reno && olia < 0.75 * lia, "{text}");
}

/// A link with a quarter of the rate: without coupling flows share it evenly and a loses a sixteenth of what c loses.
#[test]
fn in_the_torus_coupling_spreads_the_weak_links_congestion() {
    let text = quick("torus");
    let ratio = |algorithm: &str| {
        let row = row(&text, algorithm, 1);
        row[0] / row[1]
    };
    let [reno, lia, olia] = ["reno", "lia", "olia"].map(ratio);
    assert!(reno < 0.25 && lia > 2.0 * reno && olia > 2.0 * reno, "{text}");
}

#[test]
fn a_fully_coupled_window_flaps_more_than_linked_increases_and_these_more_than_separate_flows() {
    let text = quick("flappiness");
    let [deviation, swings] = [0, 1].map(|table| move |text: &str, name: &str| row(text, name, table));
    for case in [0, 1] {
        let [fully, lia, reno] = ["fully-coupled", "lia", "reno"].map(|name| deviation(&text, name)[case]);
        assert!(fully > lia && lia > reno, "{text}");
    }
    assert!(swings(&text, "fully-coupled")[0] > swings(&text, "lia")[0], "{text}");
}

/// Means of five seeds: how soon it comes back differs by seconds between them.
#[test]
fn load_that_a_worse_path_has_lost_comes_back_later_with_coupling_than_without() {
    let algorithms = r#"sweep.flow.mptcp.congestion=["reno","lia","olia","balia"]"#;
    let text = quick_with("responsiveness", &["--set", "repetitions=5", "--set", algorithms]);
    let [back, good, bad] = [1, 2, 3].map(|table| move |text: &str, name: &str| row(text, name, table));
    for algorithm in ["lia", "olia", "balia"] {
        assert!(bad(&text, algorithm)[0] < bad(&text, "reno")[0], "{algorithm}: {text}");
        assert!(back(&text, algorithm)[0] >= back(&text, "reno")[0], "{algorithm}: {text}");
    }
    assert!((good(&text, "reno")[0] - 50.0).abs() < 5.0, "{text}");
    // 5 Mbit/s shared with one, beside 20 shared with one: 2.5 of 12.5.
    assert!((bad(&text, "reno")[0] - 20.0).abs() < 3.0, "{text}");
}
