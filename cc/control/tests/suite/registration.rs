//! Algorithms that are registered at run time.

use ropewalk_control::registry::{REGISTRY, entries, find, names, register};
use ropewalk_control::{AlgorithmEntry, Constructor, ParamKind, Parameter, Properties, RegisterError};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::PathId;

fn entry(name: &'static str) -> AlgorithmEntry {
    let reno = find("reno").expect("built in");
    AlgorithmEntry {
        name,
        aliases: &[],
        title: "a test's",
        source: "a test",
        parameters: &[],
        properties: Properties { code_version: Some("1"), ..Properties::DEFAULT },
        constructor: Constructor::CoupledDyn(Arc::new(move |_| {
            reno.controller(&BTreeMap::new()).expect("no parameters")
        })),
    }
}

#[test]
fn a_registered_algorithm_is_found_listed_last_and_built() {
    let registered = register(AlgorithmEntry { aliases: &["another-mine"], ..entry("mine") }).expect("right");
    assert!(std::ptr::eq(find("mine").expect("registered"), registered));
    assert!(std::ptr::eq(find("another-mine").expect("registered"), registered));
    let entries = entries();
    let (built_in, others) = entries.split_at(REGISTRY.len());
    assert!(built_in.iter().zip(REGISTRY).all(|(entry, known)| entry.name == known.name));
    assert!(others.iter().any(|entry| entry.name == "mine"));
    assert!(names().any(|name| name == "another-mine"));
    let mut controller = registered.controller(&BTreeMap::new()).expect("no parameters");
    let mut rng = units::RngStream::named(1, "test");
    let info = ropewalk_control::PathInfo {
        mss: 1448,
        initial_window: 7,
        rtt: None,
        tick: units::Span::from_millis(4),
        cwnd_clamp: 1000,
        reduction: ropewalk_control::Reduction::Proportional,
        release: ropewalk_control::LinuxRelease::default(),
    };
    let mut context = ropewalk_control::Context { now: units::Instant::ZERO, rng: &mut rng };
    controller.on_event(PathId(0), &ropewalk_control::PathEvent::PathUp(info), &mut context);
    assert_eq!(controller.decision(PathId(0)).cwnd, 7);
}

#[test]
fn a_name_that_was_registered_may_be_registered_again() {
    let first = register(entry("again")).expect("right");
    let second = register(AlgorithmEntry { title: "newer", ..entry("again") }).expect("right");
    assert_eq!((first.title, second.title, find("again").expect("registered").title), ("a test's", "newer", "newer"));
    assert_eq!(entries().iter().filter(|entry| entry.name == "again").count(), 1);
}

#[test]
fn names_that_are_built_in_taken_or_no_keys_are_refused() {
    let refused = |entry| register(entry).expect_err("refused");
    assert_eq!(refused(entry("cubic")), RegisterError::BuiltInName("cubic"));
    assert_eq!(refused(entry("off")), RegisterError::BuiltInName("off"));
    assert_eq!(refused(AlgorithmEntry { aliases: &["bbr"], ..entry("x") }), RegisterError::BuiltInName("bbr"));
    for name in ["", "Big", "with space", "3rd", "a.b"] {
        assert_eq!(refused(entry(name)), RegisterError::BadName(name));
    }
    register(AlgorithmEntry { aliases: &["taken"], ..entry("owner") }).expect("right");
    assert_eq!(refused(entry("taken")), RegisterError::TakenName { name: "taken", by: "owner" });
    assert!(find("x").is_none());
}

#[test]
fn wrong_parameters_and_a_missing_code_version_are_refused() {
    const BAD: &[&[Parameter]] = &[
        &[parameter("a", 0.0), parameter("a", 0.0)],
        &[parameter("name", 0.0)],
        &[parameter("two words", 0.0)],
        &[parameter("a", 2.0)],
        &[Parameter { name: "a", description: "a", kind: ParamKind::Choice(&[]) }],
        &[Parameter { name: "a", description: "a", kind: ParamKind::File }],
        &[parameter("file", 0.0)],
    ];
    for parameters in BAD {
        let error = register(AlgorithmEntry { parameters, ..entry("bad-parameters") }).expect_err("refused");
        assert!(matches!(error, RegisterError::BadParameter { entry: "bad-parameters", .. }), "{error}");
    }
    for code_version in [None, Some("")] {
        let properties = Properties { code_version, ..Properties::DEFAULT };
        let error = register(AlgorithmEntry { properties, ..entry("no-version") }).expect_err("refused");
        assert_eq!(error, RegisterError::NoCodeVersion("no-version"));
    }
}

const fn parameter(name: &'static str, default: f64) -> Parameter {
    Parameter { name, description: "a", kind: ParamKind::Number { default, min: 0.0, max: 1.0 } }
}
