//! Every entry: names, parameters, reductions and undo.

use ropewalk_control::registry::{REGISTRY, find};
use ropewalk_control::{AlgorithmEntry, Ecn, ParamKind, ParamValue, Params};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn names_and_aliases_are_unique() {
    let mut names = BTreeSet::new();
    for entry in REGISTRY {
        for name in [entry.name].iter().chain(entry.aliases) {
            assert!(names.insert(*name), "`{name}` is the name of two algorithms");
            assert_eq!(find(name).map(|entry| entry.name), Some(entry.name));
        }
    }
    assert!(find("no such algorithm").is_none());
}

#[test]
fn every_entry_has_title_source_and_descriptions() {
    assert!(REGISTRY.iter().all(|entry| conformance::controller::check_description(entry).is_empty()));
}

#[test]
fn algorithms_with_per_packet_ecn() {
    let needs_per_packet = |entry: &AlgorithmEntry, given| entry.ecn(&given).expect("allowed") == Ecn::PerPacket;
    let by_default: Vec<&str> =
        REGISTRY.iter().filter(|entry| needs_per_packet(entry, BTreeMap::new())).map(|entry| entry.name).collect();
    assert_eq!(by_default, ["dctcp"]);
    let bbr3 = find("bbr3").expect("registered");
    assert!(needs_per_packet(bbr3, BTreeMap::from([("ecn".to_owned(), ParamValue::Choice("on".to_owned()))])));
}

#[test]
fn defaults_are_allowed_and_values_out_of_range_are_not() {
    for entry in REGISTRY {
        for parameter in entry.parameters {
            let given = |value| BTreeMap::from([(parameter.name.to_owned(), value)]);
            let label = format!("{} of {}", parameter.name, entry.name);
            let default = parameter.default_value().expect(&label);
            assert!(Params::new(entry.parameters, &given(default)).is_ok(), "{label}");
            let value = match parameter.kind {
                ParamKind::Number { max, .. } => ParamValue::Number(max + 1.0),
                ParamKind::Choice(_) | ParamKind::File => ParamValue::Choice("no such word".to_owned()),
            };
            let error = entry.controller(&given(value)).expect_err(&label);
            assert!(error.to_string().contains(&parameter.range()), "{error}");
        }
    }
}

#[test]
fn the_error_of_an_unknown_parameter_lists_the_parameters() {
    for entry in REGISTRY {
        let given = BTreeMap::from([("no_such_key".to_owned(), ParamValue::Number(1.0))]);
        let error = entry.controller(&given).expect_err(entry.name).to_string();
        assert!(error.contains("no_such_key"), "{error}");
        assert!(entry.parameters.iter().all(|parameter| error.contains(parameter.name)), "{error}");
    }
}

#[test]
fn every_algorithm_reacts_to_congestion_as_the_worked_episodes_say() {
    for entry in REGISTRY {
        assert_eq!(conformance::controller::check_episodes(entry), [], "{}", entry.name);
    }
}
