//! `ropewalk fit`: constants whose right value is known.

use crate::program::{Outcome, folder, ropewalk, write};
use std::path::Path;

/// A TCP flow that its application limits to its rate: goodput is the constant itself.
fn fit(name: &str, chosen: &str, target: &str) -> Outcome {
    let dir = folder(name);
    let text = format!(
        r#"
name = "small"
duration = "2s"
seeds = [1, 2]
[[path]]
name = "one"
rate = "10mbit"
delay = "5ms"
[[flow]]
name = "tcp"
start_within = "10ms"
rate = "4mbit"
[[fit]]
says = "the application sends what was measured"
source = "a ruler"
key = "flow.tcp.rate"
chosen = "{chosen}"
between = ["1mbit", "8mbit"]
value = "goodput_mbps"
target = {target}
within = "2%"
"#
    );
    write(&dir, "small.toml", &text);
    ropewalk(&["fit", &dir.join("small.toml").display().to_string()])
}

#[test]
fn a_constant_that_meets_its_target_holds() {
    let outcome = fit("fit-holds", "4mbit", "4");
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("(a ruler)") && outcome.stdout.contains("holds: goodput"), "{}", outcome.stdout);
}

#[test]
fn a_stale_constant_is_told_with_the_one_that_would_do() {
    let outcome = fit("fit-stale", "4mbit", "6");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("stale: goodput"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("1 of 1 fits of "), "{}", outcome.stderr);
    let (_, constant) = outcome.stdout.trim_end().rsplit_once("flow.tcp.rate = ").unwrap();
    let rate: f64 = constant.strip_suffix("mbit").unwrap().parse().unwrap();
    // Goodput is within 1 % of the target, and the rate itself but for what is under way when the run ends.
    assert!((5.9..6.2).contains(&rate), "{}", outcome.stdout);
}

#[test]
fn a_target_that_no_constant_meets_is_told() {
    let outcome = fit("fit-beyond", "4mbit", "9.9");
    assert!(
        outcome.code == Some(1) && outcome.stdout.contains("no constant from 1mbit to 8mbit"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_chosen_constant_that_is_not_the_files_is_refused_at_its_line() {
    let outcome = fit("fit-other", "5mbit", "4");
    assert_eq!(outcome.code, Some(3), "{}", outcome.stdout);
    let phrases = ["small.toml:17", "fit.0.chosen", "do not have flow.tcp.rate = 5mbit"];
    phrases.iter().for_each(|phrase| assert!(outcome.stderr.contains(phrase), "{phrase}: {}", outcome.stderr));
}

/// Virtual time: the same on every machine, so the constant goes stale only by a change of the simulator.
#[test]
fn the_delays_that_vegas_was_fitted_to_still_give_the_published_rate() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/papers/szilagyi-2020.toml");
    let outcome = ropewalk(&["fit", &scenario.display().to_string()]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
}
