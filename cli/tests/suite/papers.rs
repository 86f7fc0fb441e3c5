//! The shipped studies of papers, of L4S, and two of the tunnel, run in their short form, and each claim has the verdict
//! that it had when the study was written.

use crate::program::{folder, ropewalk};
use std::path::Path;

/// What the short form of a study of a paper prints.
fn quick(name: &str) -> String {
    quick_of(&format!("papers/{name}"))
}

/// What the short form of a shipped scenario prints.
fn quick_of(name: &str) -> String {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../scenarios/{name}.toml"));
    let out = folder(&name.replace('/', "-")).join("out").display().to_string();
    let run = ropewalk(&["run", &scenario.display().to_string(), "--quick", "-q", "--out", &out]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout
}

/// The verdicts in the order of the claims: `+` holds, `-` does not, in groups of a claim.
fn verdicts(text: &str) -> String {
    let start = text.find("Claims: ").unwrap_or_else(|| panic!("no claims in:\n{text}"));
    let paragraphs = text[start..].split("\n\n");
    let marks = paragraphs.map(|claim| claim.lines().filter_map(mark).collect::<String>());
    marks.filter(|marks| !marks.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The verdict that stands at the end of a line of the claims' table.
fn mark(line: &str) -> Option<char> {
    match line.rsplit("  ").next()?.trim() {
        "holds" => Some('+'),
        "does not hold" => Some('-'),
        _ => None,
    }
}

#[test]
fn han_2019_keeps_its_verdicts() {
    assert_eq!(verdicts(&quick("han-2019")), "+ + + + - + +++ +++ +++ +++ + + --- -- ++ -- + + + + -+ -- +");
}

#[test]
fn luczak_2023_keeps_its_verdicts() {
    assert_eq!(verdicts(&quick("luczak-2023")), "- - - - - - - - - - - - - - - - + + + + - -");
}

#[test]
fn szilagyi_2020_keeps_its_verdicts() {
    assert_eq!(verdicts(&quick("szilagyi-2020")), "++ ++ -+");
}

/// Hosts of a fat tree that send to one another: half of what is possible with one path, five sixths with eight.
#[test]
fn the_fat_tree_keeps_its_verdicts() {
    assert_eq!(verdicts(&quick_of("fat-tree")), "+ + +");
}

/// One seed with the real-time class.
#[test]
fn the_field_keeps_its_verdicts() {
    assert_eq!(verdicts(&quick_of("studies/field")), "+ + + + + + + + + + + + + + + + + + + + + + + + + + + + +");
}

/// With acknowledgements paced by their own rate the bulk flow had 73 Mbit/s over DSL and satellite, which can carry 183.
#[test]
fn over_the_wide_area_the_tunnel_is_faster_than_its_faster_path() {
    assert_eq!(verdicts(&quick_of("studies/wide-area")), "++ ++ ++ ++");
}

/// Rates within a factor of two, 2 ms of queue for Prague and 15 ms for CUBIC, no loss of Prague's: what RFC 9332 and its
/// authors' evaluation say. With a coupling of 1 instead of 2 Prague has three times CUBIC's rate.
#[test]
fn prague_and_cubic_share_a_dualpi2_queue() {
    assert_eq!(verdicts(&quick_of("l4s")), "++ + + +");
}
