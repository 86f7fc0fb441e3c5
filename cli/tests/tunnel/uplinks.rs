//! `uplinks = "auto"` and `routing = "auto"`: paths that come and go with the host's default routes, and routes for paths
//! that lack one.

use crate::causes::{DISTANT, LINKS, events, make_distant, run};
use crate::live::check;
use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::event::{Cause, CauseKind, Event, EventKind};
use daemon::status::{PathState, PathStatus};
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

/// A pair whose left host has these keys in [interface], no [[path]], and a peer that only routes lead to.
fn without_paths(keys: &str) -> Option<TunnelPair> {
    let pair = TunnelPair::configured(IPV4, &LINKS)?;
    make_distant(&pair);
    pair.edit(LEFT, |text| {
        let text = text[..text.find("\n[[path]]").expect("it has paths")].to_owned();
        text.replacen("\n\n[[peer]]\n", &format!("\n{keys}\n\n[[peer]]\nendpoint = \"{DISTANT}\"\n"), 1)
    });
    Some(pair)
}

/// `ip route add default` by a link, with further words.
fn add_default_route(pair: &TunnelPair, link: usize, words: &str) {
    let [gateway, device] = [pair.testbed.v4(link, RIGHT).to_string(), pair.testbed.device(link)];
    run(pair, LEFT, &format!("ip route add default via {gateway} dev {device} {words}"));
}

fn paths(pair: &TunnelPair) -> Vec<PathStatus> {
    pair.status(LEFT).peers[0].paths.clone()
}

/// Waits until the paths that are up on the left host are these.
fn wait_for_paths(pair: &TunnelPair, names: &[&str]) {
    let up = || {
        let mut up: Vec<_> = paths(pair).into_iter().filter(|path| path.state == PathState::Up).collect();
        up.sort_by(|a, b| a.name.cmp(&b.name));
        up.into_iter().map(|path| path.name).collect::<Vec<_>>()
    };
    assert!(eventually(|| up() == names), "{names:?}: {:#?}", pair.status(LEFT));
}

/// The rules of a host's routing policy, but for the three that every host has.
fn rules(pair: &TunnelPair, host: usize) -> String {
    let output = pair.testbed.command(host, "ip").args(["rule", "show"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| line.starts_with("32000:")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn paths_come_and_go_with_the_default_routes_of_their_uplinks() {
    let Some(mut pair) = without_paths("uplinks = { metered = [\"p1\"], exclude = [\"dummy*\"] }") else { return };
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    pair.wait_until_started(LEFT);
    assert!(paths(&pair).is_empty(), "there is no default route yet");
    add_default_route(&pair, 0, "");
    wait_for_paths(&pair, &["p0"]);
    add_default_route(&pair, 1, "metric 700");
    wait_for_paths(&pair, &["p0", "p1"]);
    let metered: Vec<_> = paths(&pair).into_iter().map(|path| (path.name, path.metered)).collect();
    assert!(metered.contains(&("p0".into(), false)) && metered.contains(&("p1".into(), true)), "{metered:?}");
    // An excluded device, and the tunnel's own.
    for command in [
        "ip link add dummy7 type veth peer name other7",
        "ip link set dummy7 up",
        "ip route add default dev dummy7 metric 900",
    ] {
        run(&pair, LEFT, command);
    }
    run(&pair, LEFT, "ip route add default dev rw0 metric 901");
    run(&pair, LEFT, "ip link set p0 down");
    wait_for_paths(&pair, &["p1"]);
    // It has no route for long enough to be seen.
    let is_lost = |path: &PathStatus| path.cause.as_ref().is_some_and(|cause| cause.text.contains("no default route"));
    assert!(eventually(|| paths(&pair).iter().any(is_lost)), "{:#?}", pair.status(LEFT));
    run(&pair, LEFT, "ip link set p0 up");
    add_default_route(&pair, 0, "");
    wait_for_paths(&pair, &["p0", "p1"]);
    assert_eq!(pair.reload(LEFT).unwrap(), "nothing changed\n");
    let kinds = |kind: EventKind| {
        let is_kind = |event: &Event| event.kind == kind;
        events(&pair, LEFT, 0).into_iter().filter(is_kind).filter_map(|event| event.path).collect::<Vec<_>>()
    };
    assert_eq!(kinds(EventKind::UplinkAdded), ["p0", "p1", "p0"]);
    assert!(kinds(EventKind::UplinkRemoved).is_empty(), "it was in view all the time");
}

#[test]
fn a_lost_default_route_stays_in_view_with_the_command_that_brings_it_back() {
    let Some(mut pair) = without_paths("uplinks = \"auto\"") else { return };
    add_default_route(&pair, 0, "");
    add_default_route(&pair, 1, "metric 700");
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    pair.wait_until_started(LEFT);
    wait_for_paths(&pair, &["p0", "p1"]);
    let seen = events(&pair, LEFT, 0).last().unwrap().sequence;
    run(&pair, LEFT, "ip route del default dev p1");
    let p1 = || paths(&pair).into_iter().find(|path| path.name == "p1");
    let lost = |kind: CauseKind, text: &str| {
        let is_it = |cause: &Cause| cause.kind == kind && cause.text.starts_with(text);
        p1().filter(|path| path.state == PathState::Down)?.cause.filter(is_it)
    };
    let is_lost = |kind: CauseKind, text: &str| eventually(|| lost(kind, text).is_some());
    assert!(is_lost(CauseKind::NoRoute, "no default route since "), "{:#?}", pair.status(LEFT));
    let cause = p1().unwrap().cause.unwrap();
    let gateway = pair.testbed.v4(1, RIGHT);
    assert_eq!(cause.remedy, format!("`ip route add default via {gateway} dev p1 metric 700`"));
    let (code, text) = check(&pair, LEFT);
    let line = format!("problem: path p1: {}\n  remedy: {}\n", cause.text, cause.remedy);
    assert!(code == Some(4) && text.contains(&line), "{text}");
    let shown = String::from_utf8(pair.command(LEFT).arg("show").output().unwrap().stdout).unwrap();
    assert!(shown.contains(&format!("  p1: {}\n    remedy: {}\n", cause.text, cause.remedy)), "{shown}");
    let of_p1 = || events(&pair, LEFT, seen).into_iter().filter(|event| event.path.as_deref() == Some("p1"));
    let down = of_p1().map(|event| (event.kind, event.message, event.remedy)).collect::<Vec<_>>();
    assert_eq!(down, [(EventKind::PathDown, format!("down: {}", cause.text), Some(cause.remedy.clone()))]);
    wait_for_paths(&pair, &["p0"]);

    // The remedy works.
    run(&pair, LEFT, cause.remedy.trim_matches('`'));
    wait_for_paths(&pair, &["p0", "p1"]);
    assert_eq!(check(&pair, LEFT).0, Some(0));

    run(&pair, LEFT, "ip link set p1 down");
    assert!(is_lost(CauseKind::LinkDown, ""), "{:#?}", pair.status(LEFT));
    // One that is really gone.
    run(&pair, LEFT, "ip link set p1 netns 1");
    let is_removed = |event: &Event| event.kind == EventKind::UplinkRemoved && event.path.as_deref() == Some("p1");
    assert!(eventually(|| events(&pair, LEFT, seen).iter().any(is_removed)), "{:#?}", events(&pair, LEFT, seen));
    assert!(eventually(|| p1().is_none()), "{:#?}", pair.status(LEFT));
}

#[test]
fn without_any_default_route_check_names_the_device_that_lacks_one() {
    let Some(pair) = without_paths("uplinks = \"auto\"") else { return };
    let (code, text) = check(&pair, LEFT);
    let remedy = "  remedy: `ip route add default via GATEWAY dev p0 metric 700`\n";
    assert!(code == Some(4) && text.contains("problem: there is no path: ") && text.contains(remedy), "{text}");
    add_default_route(&pair, 0, "");
    let (_, text) = check(&pair, LEFT);
    assert!(!text.contains("there is no path") && text.contains("p1 has an address and no default route"), "{text}");
}

#[test]
fn a_path_without_a_route_gets_one_which_goes_with_the_daemon_or_its_next_start() {
    let Some(mut pair) = without_paths("uplinks = \"auto\"\nrouting = \"auto\"") else { return };
    add_default_route(&pair, 0, "");
    // As a DHCP client with a table for each uplink has it, without a rule that leads there.
    add_default_route(&pair, 1, "table 100");
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    pair.wait_until_started(LEFT);
    wait_for_paths(&pair, &["p0", "p1"]);
    let made = rules(&pair, LEFT);
    assert!(made.lines().count() == 1 && made.contains("oif p1"), "{made}");
    pair.kill(LEFT);
    assert_eq!(rules(&pair, LEFT), made, "nobody was there to remove it");
    pair.start(LEFT);
    pair.wait_until_started(LEFT);
    wait_for_paths(&pair, &["p0", "p1"]);
    assert_eq!(rules(&pair, LEFT), made);
    pair.stop(LEFT);
    assert_eq!(rules(&pair, LEFT), "");
    let routes = pair.testbed.command(LEFT, "ip").args(["route", "show", "table", "all", "default"]).output().unwrap();
    let routes = String::from_utf8(routes.stdout).unwrap();
    let defaults = routes.lines().filter(|line| line.starts_with("default via"));
    assert_eq!(defaults.count(), 2, "{routes}");
}
