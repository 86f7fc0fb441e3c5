//! The documents keep up with the program.

use crate::program::{folder, ropewalk, write};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const SCENARIO: &str = include_str!("../../../docs/reference/scenario.md");

/// Every property of a schema and of its definitions.
fn keys(schema: &Value) -> BTreeSet<String> {
    let properties = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys().cloned());
    let children = schema.as_object().into_iter().flat_map(|map| map.values());
    properties.chain(children.flat_map(keys)).collect()
}

/// The pages of the scenario file: the first, and those of its tables.
fn scenario_pages() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/scenario");
    let pages = std::fs::read_dir(folder).expect("the folder is there").map(|page| page.expect("a page").path());
    let pages = pages.map(|page| std::fs::read_to_string(page).expect("a page is text"));
    std::iter::once(SCENARIO.to_owned()).chain(pages).collect()
}

/// The words of all code, in line or in a block.
fn code_words(markdown: &str) -> BTreeSet<&str> {
    let code = markdown.split('`').skip(1).step_by(2);
    code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect()
}

#[test]
fn every_key_of_the_schema_is_explained() {
    let schema: Value = serde_json::from_str(&ropewalk(&["schema"]).stdout).expect("the schema is JSON");
    let pages = scenario_pages();
    let (keys, words) = (keys(&schema), code_words(&pages));
    assert!(keys.len() > 60, "that cannot be all: {keys:?}");
    let missing: Vec<_> = keys.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "docs/reference/scenario does not say what {missing:?} are");
}

#[test]
fn the_smallest_scenario_runs() {
    let (_, rest) = SCENARIO.split_once("```toml\n").expect("there is an example");
    let (example, _) = rest.split_once("```").expect("it ends");
    let dir = folder("smallest");
    write(&dir, "small.toml", example);
    let [file, out] = ["small.toml", "out"].map(|name| dir.join(name).display().to_string());
    let outcome = ropewalk(&["run", &file, "--out", &out, "--set", "duration=1s"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!dir.join("out/series.parquet").exists(), "no series were asked for");
}

#[test]
fn every_algorithm_of_the_matrix_meets_every_other() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/coexistence.toml");
    let overrides = scenario::Overrides { sets: Vec::new(), quick: false };
    let matrix = scenario::load(&file, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let swept = |flow: usize| matrix.cells.iter().map(move |cell| cell.parameters[flow].1.as_str());
    let names: BTreeSet<&str> = swept(0).collect();
    assert_eq!(swept(1).collect::<BTreeSet<_>>(), names);
    assert_eq!(matrix.cells.len(), names.len() * names.len());
    let is_single = |name: &&str| control::registry::find(name).is_some_and(|entry| !entry.is_coupled());
    assert!(names.len() > 20 && names.iter().all(is_single), "{names:?}");
}
