//! Entries of the registry: names, parameters, and what each scheduler needs.

use schedule::{Fill, Needs, PathView, REGISTRY, SchedulerView};
use std::collections::{BTreeMap, BTreeSet};
use units::Instant;

#[test]
fn names_and_aliases_are_unique_and_found() {
    let mut names = BTreeSet::new();
    for entry in REGISTRY {
        for name in std::iter::once(&entry.name).chain(entry.aliases) {
            assert!(names.insert(*name), "`{name}` twice");
            assert_eq!(schedule::find(name).map(|entry| entry.name), Some(entry.name));
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
fn a_scheduler_that_needs_nothing_uses_every_path_of_a_tunnel() {
    for entry in REGISTRY.iter().filter(|entry| entry.needs == Needs::Nothing) {
        for weights in [[1, 1, 1].as_slice(), &[]] {
            let mut scheduler = entry.scheduler(weights, 0, &BTreeMap::new()).expect("defaults");
            let now = Instant::ZERO;
            let paths = [PathView::without_measurements(); 3];
            let view = SchedulerView {
                now,
                packet_bytes: 1500,
                paths: &paths,
                snd_nxt: 0,
                snd_una: 0,
                unsent_packets: 1,
                rwnd_left_packets: u64::MAX,
                rwnd_stalls: 0,
            };
            let used: BTreeSet<_> = (0..30).map(|_| scheduler.pick(&view).expect("has room").path.0).collect();
            assert_eq!(used.len(), 3, "{} with weights {weights:?}", entry.name);
        }
    }
}

#[test]
fn the_page_of_schedulers_has_a_row_for_each_with_its_facts() {
    let page = include_str!("../../../../docs/schedulers.md");
    for entry in REGISTRY {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}`", entry.name))).expect(entry.name);
        let needs = if entry.needs == Needs::Nothing { "nothing" } else { "measurements" };
        let fills = if entry.fill == Fill::Cwnd { "windows" } else { "buffers" };
        assert!(row.ends_with(&format!("| {needs} | {fills} |")), "{row}");
    }
}
