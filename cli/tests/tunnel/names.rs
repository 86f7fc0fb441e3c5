//! What an operator sees of paths at both ends: their names, and that one became slow.

use crate::causes::events;
use crate::traffic::Transfer;
use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::event::{CauseKind, Event, EventKind};
use daemon::status::{Condition, schema};
use lab::testbed::{LEFT, RIGHT};
use std::collections::BTreeMap;
use testing::eventually;

/// Little, so that a busy machine can fill them.
const LINKS: [&str; 2] = ["rate=4mbit delay=10ms", "rate=2mbit delay=20ms"];

/// The addresses of the left host by the names that the right one has for its paths.
fn remotes(pair: &TunnelPair) -> BTreeMap<String, String> {
    let status = pair.status(RIGHT);
    let paths = status.peers[0].paths.iter();
    paths.filter_map(|path| Some((path.name.clone(), path.remote.as_ref()?.split(':').next()?.to_owned()))).collect()
}

#[test]
fn both_ends_call_a_path_by_its_openers_name_also_after_a_restart_in_another_order() {
    let Some(mut pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let expected: BTreeMap<String, String> =
        [0, 1].map(|link| (pair.testbed.device(link).to_owned(), pair.testbed.v4(link, LEFT).to_string())).into();
    assert!(eventually(|| remotes(&pair) == expected), "{:?}, not {expected:?}", remotes(&pair));
    pair.stop(LEFT);
    pair.edit(LEFT, |text| {
        let parts: Vec<&str> = text.split("\n[[path]]").collect();
        let [rest, first, second] = parts[..] else { panic!("two paths: {text}") };
        format!("{rest}\n[[path]]{second}\n[[path]]{first}")
    });
    pair.start(LEFT);
    pair.wait_until_up(LEFT);
    assert!(eventually(|| remotes(&pair) == expected), "{:?}, not {expected:?}", remotes(&pair));
    let named = |event: &Event| event.path.as_ref().is_none_or(|path| expected.contains_key(path));
    assert!(events(&pair, RIGHT, 0).iter().all(named), "{:#?}", events(&pair, RIGHT, 0));
}

#[test]
fn a_link_whose_rate_drops_to_a_tenth_is_degraded_with_its_rates_and_real_statuses_keep_to_the_schema() {
    let Some(mut pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let name = pair.testbed.device(0).to_owned();
    let transfer = Transfer::endless(&pair, LEFT);
    let path = |pair: &TunnelPair| pair.path(LEFT, 0);
    assert!(eventually(|| path(&pair).capacity_bps > Some(2_000_000)), "{:#?}", path(&pair));
    assert_eq!((path(&pair).condition, path(&pair).cause), (Condition::Up, None));
    pair.testbed.change(0, "both rate=400kbit").unwrap();
    assert!(eventually(|| path(&pair).condition == Condition::Degraded), "{:#?}", path(&pair));
    let cause = path(&pair).cause.unwrap();
    assert!(cause.kind == CauseKind::Slow && cause.text.starts_with("carries "), "{cause:?}");
    let is_told = |event: &Event| event.kind == EventKind::PathDegraded && event.path.as_ref() == Some(&name);
    assert!(events(&pair, LEFT, 0).iter().any(is_told), "{:#?}", events(&pair, LEFT, 0));
    let check = |of_events: bool, path: &str| {
        let text = pair.client(LEFT).request("GET", path, "").unwrap();
        let schema = serde_json::to_value(schema(of_events)).unwrap();
        assert_eq!(testing::violations(&schema, &serde_json::from_str(&text).unwrap()), Vec::<String>::new());
    };
    check(false, "/v1/status");
    check(true, "/v1/events?since=0");
    pair.testbed.change(0, "both rate=4mbit").unwrap();
    assert!(eventually(|| path(&pair).condition == Condition::Up), "{:#?}", path(&pair));
    assert!(transfer.stop() > 0);
}
