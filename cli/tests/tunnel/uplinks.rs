//! `uplinks = "auto"` and `routing = "auto"`: paths that come and go with the host's default routes, and routes for paths
//! that lack one.

use crate::causes::{DISTANT, LINKS, events, make_distant, run};
use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::event::{Event, EventKind};
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
    let are_up = || {
        let paths = paths(pair);
        paths.len() == names.len()
            && names.iter().all(|name| paths.iter().any(|path| path.name == *name && path.state == PathState::Up))
    };
    assert!(eventually(are_up), "{names:?}: {:#?}", pair.status(LEFT));
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
    run(&pair, LEFT, "ip link set p0 up");
    add_default_route(&pair, 0, "");
    wait_for_paths(&pair, &["p0", "p1"]);
    assert_eq!(pair.reload(LEFT).unwrap(), "nothing changed\n");
    let kinds = |kind: EventKind| {
        let is_kind = |event: &Event| event.kind == kind;
        events(&pair, LEFT, 0).into_iter().filter(is_kind).filter_map(|event| event.path).collect::<Vec<_>>()
    };
    assert_eq!(kinds(EventKind::UplinkAdded), ["p0", "p1", "p0"]);
    assert_eq!(kinds(EventKind::UplinkRemoved), ["p0"]);
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
