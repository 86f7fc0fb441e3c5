//! Schedulers that are registered at run time.

use params::RegisterError;
use ropewalk_schedule::{Constructor, Fill, MinRtt, Needs, REGISTRY, SchedulerEntry, entries, find, names, register};
use std::collections::BTreeMap;
use std::sync::Arc;

fn entry(name: &'static str) -> SchedulerEntry {
    SchedulerEntry {
        name,
        aliases: &[],
        title: "a test's",
        source: "a test",
        code_version: Some("1"),
        needs: Needs::Measurements,
        fill: Fill::Cwnd,
        parameters: &[],
        constructor: Constructor::Dyn(Arc::new(|_| Box::new(MinRtt))),
    }
}

#[test]
fn a_registered_scheduler_is_found_listed_last_built_and_replaced() {
    register(entry("mine")).expect("right");
    let newer = register(SchedulerEntry { title: "newer", ..entry("mine") }).expect("right");
    assert!(std::ptr::eq(find("mine").expect("registered"), newer));
    assert!(newer.scheduler(&[], 0, &BTreeMap::new()).is_ok());
    let position = entries().iter().position(|entry| entry.name == "mine").expect("listed");
    assert!(position >= REGISTRY.len());
    assert_eq!(names().filter(|name| *name == "mine").count(), 1);
}

#[test]
fn built_in_names_and_a_missing_code_version_are_refused() {
    assert_eq!(register(entry("minrtt")).expect_err("refused"), RegisterError::BuiltInName("minrtt"));
    let no_version = SchedulerEntry { code_version: None, ..entry("no-version") };
    assert_eq!(register(no_version).expect_err("refused"), RegisterError::NoCodeVersion("no-version"));
}
