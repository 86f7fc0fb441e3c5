//! Entries of the registry: names, parameters, and what each scheduler needs.

use ropewalk_schedule::{Fill, Needs, REGISTRY};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn names_and_aliases_are_unique_and_found() {
    let mut names = BTreeSet::new();
    for entry in REGISTRY {
        for name in std::iter::once(&entry.name).chain(entry.aliases) {
            assert!(names.insert(*name), "`{name}` twice");
            assert_eq!(ropewalk_schedule::find(name).map(|entry| entry.name), Some(entry.name));
        }
    }
    assert_eq!(REGISTRY[0].name, "minrtt", "the default comes first");
}

#[test]
fn every_scheduler_has_defaults_and_refuses_unknown_parameters() {
    for entry in REGISTRY {
        assert!(entry.scheduler(&[], 0, &BTreeMap::new()).is_ok(), "{}", entry.name);
        let unknown = BTreeMap::from([("colour".to_owned(), params::ParamValue::Number(1.0))]);
        assert_eq!(entry.scheduler(&[], 0, &unknown).expect_err("refused").key, "colour");
    }
}

#[test]
fn every_scheduler_keeps_every_rule() {
    for entry in REGISTRY {
        assert_eq!(conformance::scheduler::check(entry), [], "{}", entry.name);
    }
}

#[test]
fn the_page_of_schedulers_has_a_row_for_each_with_its_facts() {
    let page = include_str!("../../../../docs/reference/schedulers.md");
    for entry in REGISTRY {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}`", entry.name))).expect(entry.name);
        let needs = if entry.needs == Needs::Nothing { "nothing" } else { "measurements" };
        let fills = if entry.fill == Fill::Cwnd { "windows" } else { "buffers" };
        assert!(row.ends_with(&format!("| {needs} | {fills} |")), "{row}");
    }
}
