//! `ropewalk evaluate`.

use crate::program::{folder, ropewalk};

/// One seed, with which two subflows leave 0.49 of the link to a flow of CUBIC, where 0.45 are claimed.
#[test]
fn lia_meets_the_goals_of_rfc_6356_and_nothing_of_rfc_9743_is_open() {
    let dir = folder("evaluate").join("results").display().to_string();
    let outcome = ropewalk(&["evaluate", "lia", "--quick", "--quiet", "--out", &dir]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("The questions of RFC 9743 to lia\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("Claims: 11 hold (1 run per cell)\n"), "{}", outcome.stdout);
}

#[test]
fn what_is_no_algorithm_and_no_policy_is_refused_by_its_name() {
    let outcome = ropewalk(&["evaluate", "bbr33"]);
    assert!(outcome.code == Some(2) && outcome.stderr.contains("did you mean `bbr3`?"), "{}", outcome.stderr);
    let outcome = ropewalk(&["evaluate", "missing.onnx"]);
    assert!(outcome.code == Some(4) && outcome.stderr.contains("missing.onnx"), "{}", outcome.stderr);
}
