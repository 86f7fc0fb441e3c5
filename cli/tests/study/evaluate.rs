//! `ropewalk evaluate`.

use crate::program::{folder, ropewalk};

/// In full, as the runs of `--quick` are too short to decide it.
#[test]
fn paths_of_a_tunnel_under_lia_take_one_share_of_a_bottleneck() {
    let dir = folder("evaluate").join("results").display().to_string();
    let outcome = ropewalk(&["evaluate", "lia", "--case", "tunnel-shared", "--quiet", "--out", &dir]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("The questions of RFC 9743 to lia\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("Claims: 1 holds"), "{}", outcome.stdout);
}

#[test]
fn the_verdicts_on_several_algorithms_stand_side_by_side() {
    let dir = folder("evaluate-several");
    let out = dir.join("results").display().to_string();
    let cases = ["--case", "tunnel-shared", "--case", "no-feedback"];
    let outcome =
        ropewalk(&[&["evaluate", "bbr-path", "cubic", "--quick", "--quiet", "--out", &out], &cases[..]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let row = |start: &str| outcome.stdout.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert_eq!(row("| claim"), "| claim | bbr-path | cubic |");
    // Paths that know nothing of each other take two shares, or all; a short run of CUBIC's does not decide it.
    let shared = row("| Two paths of a tunnel");
    assert!(shared.contains("| 0.0") && shared.contains(" - | 0."), "{shared}");
    assert_eq!(row("| hold (+)"), "| hold (+) | 1 | 1 |", "{}", outcome.stdout);
    assert!(dir.join("results/bbr-path/report.html").is_file() && dir.join("results/cubic/report.html").is_file());
    let outcome = ropewalk(&["evaluate", "cubic", "reno", "--json"]);
    assert!(outcome.code == Some(2) && outcome.stderr.contains("--json takes one algorithm"), "{}", outcome.stderr);
    let outcome = ropewalk(&["evaluate", "cubic", "--case", "reorder", "--quick"]);
    assert!(outcome.code == Some(3) && outcome.stderr.contains("reordering"), "{}", outcome.stderr);
}

/// Where the question compares with CUBIC, CUBIC's ratio is 1.
#[test]
fn what_the_others_are_compared_with_is_compared_with_itself() {
    let outcome = ropewalk(&["evaluate", "cubic", "--quick", "--quiet", "--no-store", "--case", "longer-route"]);
    assert!(outcome.code == Some(0) && outcome.stdout.contains("ratio 1,"), "{}{}", outcome.stdout, outcome.stderr);
}

#[test]
fn what_is_no_algorithm_and_no_policy_is_refused_by_its_name() {
    let outcome = ropewalk(&["evaluate", "bbr33"]);
    assert!(outcome.code == Some(2) && outcome.stderr.contains("did you mean `bbr3`?"), "{}", outcome.stderr);
    let outcome = ropewalk(&["evaluate", "missing.onnx"]);
    assert!(outcome.code == Some(4) && outcome.stderr.contains("missing.onnx"), "{}", outcome.stderr);
}

/// The table is the same whether the folder is filled at once or in two parts.
#[test]
fn worlds_are_judged_and_resumed_and_one_that_is_shown_runs_by_itself() {
    let dir = folder("worlds");
    let judge = |name: &str, seeds: &str| {
        let out = dir.join(name).display().to_string();
        let outcome = ropewalk(&["evaluate", "reno", "--worlds", seeds, "--out", &out, "--quiet", "--worst", "1"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        outcome.stdout
    };
    let once = judge("once", "0..4");
    assert!(once.starts_with("reno against CUBIC in 4 drawn worlds: "), "{once}");
    judge("twice", "2..4");
    assert_eq!(judge("twice", "0..4"), once);
    let world = ropewalk(&["evaluate", "reno", "--show", "0"]).stdout;
    let file = dir.join("world.toml");
    std::fs::write(&file, world).unwrap();
    let outcome = ropewalk(&["run", &file.display().to_string(), "--no-store", "--quiet"]);
    assert!(outcome.code == Some(0) && outcome.stdout.contains("cubic"), "{}{}", outcome.stdout, outcome.stderr);
}

#[test]
fn worlds_of_what_is_no_range_or_no_algorithm_are_refused() {
    for (arguments, phrase) in [
        (["evaluate", "reno", "--worlds", "5..5"], "FROM..TO"),
        (["evaluate", "renno", "--worlds", "0..2"], "did you mean `reno`?"),
        (["evaluate", "{ name = \"cubic\", bta = 3 }", "--worlds", "0..2"], "no parameter `bta`"),
        (["evaluate", "reno", "--part", "tune"], "--worlds"),
    ] {
        let outcome = ropewalk(&arguments);
        assert!(matches!(outcome.code, Some(2 | 3)) && outcome.stderr.contains(phrase), "{}", outcome.stderr);
    }
}
