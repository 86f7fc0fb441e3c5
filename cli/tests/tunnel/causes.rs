//! Events with causes: why a path carries no data, as `show`, the JSON, the socket and the journal tell it.

use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::event::{CauseKind, Event, EventKind};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

pub(crate) const LINKS: [&str; 2] = ["", ""];

/// Runs a command on a host.
pub(crate) fn run(pair: &TunnelPair, host: usize, command: &str) {
    let mut words = command.split_whitespace();
    let mut command = pair.testbed.command(host, words.next().unwrap());
    assert!(command.args(words).status().unwrap().success(), "{command:?}");
}

/// Waits until the left host tells this cause for its path over `link`; returns its text and remedy.
fn wait_for_cause(pair: &TunnelPair, link: usize, kind: CauseKind) -> [String; 2] {
    let mut found = None;
    let is_told = || {
        found = pair.path(LEFT, link).cause.filter(|cause| cause.kind == kind);
        found.is_some()
    };
    assert!(eventually(is_told), "{kind}: {:#?}", pair.status(LEFT));
    let cause = found.expect("it is told");
    [cause.text, cause.remedy]
}

pub(crate) fn events(pair: &TunnelPair, host: usize, since: u64) -> Vec<Event> {
    serde_json::from_str(&pair.client(host).request("GET", &format!("/v1/events?since={since}"), "").unwrap()).unwrap()
}

#[test]
fn a_link_that_is_set_down_and_a_lost_address_are_events_with_causes() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let has = |kind: EventKind| eventually(|| events(&pair, LEFT, 0).iter().any(|event| event.kind == kind));
    for kind in [EventKind::Start, EventKind::Handshake, EventKind::PeerUp, EventKind::PathUp] {
        assert!(has(kind), "{:#?}", events(&pair, LEFT, 0));
    }
    let seen = events(&pair, LEFT, 0).last().unwrap().sequence;
    let device = pair.testbed.device(1).to_owned();
    run(&pair, LEFT, &format!("ip link set {device} down"));
    let [text, remedy] = wait_for_cause(&pair, 1, CauseKind::LinkDown);
    assert_eq!(
        [text.as_str(), remedy.as_str()],
        [format!("{device} is set down"), format!("`ip link set {device} up`")]
    );
    let is_down = |event: &Event| event.kind == EventKind::PathDown && event.path.as_deref() == Some(&device);
    assert!(eventually(|| events(&pair, LEFT, seen).iter().any(is_down)), "{:#?}", events(&pair, LEFT, seen));
    let address = pair.testbed.v4(1, LEFT);
    run(&pair, LEFT, &format!("ip address del {address}/24 dev {device}"));
    run(&pair, LEFT, &format!("ip link set {device} up"));
    let [text, remedy] = wait_for_cause(&pair, 1, CauseKind::NoAddress);
    assert_eq!(text, format!("no device has the address {address}"));
    let shown = pair.command(LEFT).arg("show").output().unwrap().stdout;
    assert!(String::from_utf8(shown).unwrap().contains(&format!("  {device}: {text}\n    remedy: {remedy}\n")));
}

/// An address of the right host that is on no link.
pub(crate) const DISTANT: &str = "203.0.113.1";

/// Gives the right host the address, which the left one reaches by a router only.
pub(crate) fn make_distant(pair: &TunnelPair) {
    run(pair, RIGHT, &format!("ip address add {DISTANT}/32 dev lo"));
    // A host answers ARP for all of its addresses otherwise, and a device-bound datagram needs no route then.
    run(pair, RIGHT, "sysctl -qw net.ipv4.conf.all.arp_ignore=1");
}

#[test]
fn a_path_without_a_route_to_a_distant_peer_names_the_command_that_adds_it() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    make_distant(&pair);
    let [gateway, device] = [pair.testbed.v4(0, RIGHT).to_string(), pair.testbed.device(0)];
    run(&pair, LEFT, &format!("ip route add default via {gateway} dev {device}"));
    for link in 0..LINKS.len() {
        let address = pair.testbed.v4(link, RIGHT).to_string();
        pair.edit(LEFT, |text| {
            text.replace(&format!("endpoint = \"{address}\""), &format!("endpoint = \"{DISTANT}\""))
        });
    }
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    pair.wait_until_started(LEFT);
    let [text, remedy] = wait_for_cause(&pair, 1, CauseKind::NoRoute);
    let [own, device] = [pair.testbed.v4(1, LEFT).to_string(), pair.testbed.device(1)];
    assert_eq!(text, format!("no route to {DISTANT} from {own} by {device}"));
    assert_eq!(remedy, format!("`ip route add default via GATEWAY dev {device} metric 700`"));
    let shown = pair.command(LEFT).arg("show").output().unwrap().stdout;
    assert!(String::from_utf8(shown).unwrap().contains(&format!("  {device}: {text}\n    remedy: {remedy}\n")));
    // The remedy works.
    let command = remedy.trim_matches('`').replace("GATEWAY", &pair.testbed.v4(1, RIGHT).to_string());
    run(&pair, LEFT, &command);
    pair.wait_until_up(LEFT);
    assert_eq!(pair.path(LEFT, 1).cause, None);
}

#[test]
fn firewalls_on_either_host_and_a_silent_path_are_told_apart() {
    let Some(mut pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let drop_on = |host, chain: &str, rule: &str| {
        let table = "nft add table inet t";
        let hook = format!("nft add chain inet t c {{ type filter hook {chain} priority 0 ; }}");
        [table, &hook, &format!("nft add rule inet t c {rule}")].iter().for_each(|command| run(&pair, host, command));
    };
    let device = pair.testbed.device(1);
    drop_on(LEFT, "output", &format!("oifname {device} udp dport 4754 drop"));
    let [text, _] = wait_for_cause(&pair, 1, CauseKind::LocalFirewall);
    assert!(text.starts_with("this host's firewall refuses UDP to"), "{text}");
    run(&pair, LEFT, "nft delete table inet t");
    pair.wait_until_up(LEFT);
    drop_on(RIGHT, "input", &format!("iifname {device} udp dport 4754 drop"));
    let [text, _] = wait_for_cause(&pair, 1, CauseKind::SilentPath);
    assert!(text.contains(" answers on another path, but not on this one: "), "{text}");
    run(&pair, LEFT, &format!("sysctl -qw net.ipv4.conf.{device}.rp_filter=1"));
    let [_, remedy] = wait_for_cause(&pair, 1, CauseKind::ReversePath);
    assert_eq!(remedy, format!("`sysctl net.ipv4.conf.{device}.rp_filter=2`"));
    // Nothing listens on the right host any more.
    run(&pair, RIGHT, "nft delete table inet t");
    pair.stop(RIGHT);
    wait_for_cause(&pair, 0, CauseKind::Refused);
    let is_lost = |event: &Event| event.kind == EventKind::PeerLost;
    assert!(eventually(|| events(&pair, LEFT, 0).iter().any(is_lost)), "{:#?}", events(&pair, LEFT, 0));
}

#[test]
fn a_wrong_key_is_told_at_both_ends() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS[..1]) else { return };
    let [right, stranger] = [pair.private_key(LEFT).to_owned(), keys::genkey().to_string()];
    let [right, stranger] = [&right, &stranger].map(|key| keys::pubkey(key).unwrap());
    pair.edit(RIGHT, |text| text.replace(&right, &stranger));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_started(host));
    let [_, remedy] = wait_for_cause(&pair, 0, CauseKind::NoHandshake);
    assert!(remedy.contains("a key differs"), "{remedy}");
    let is_refusal = |event: &Event| event.kind == EventKind::HandshakeRefused && event.message.contains("public key");
    assert!(eventually(|| events(&pair, RIGHT, 0).iter().any(is_refusal)), "{:#?}", events(&pair, RIGHT, 0));
}

#[test]
fn a_name_without_an_address_is_resolved_until_it_has_one() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS[..1]) else { return };
    let address = pair.testbed.v4(0, RIGHT).to_string();
    let name = "peer.ropewalk.invalid";
    pair.edit(LEFT, |text| text.replace(&format!("endpoint = \"{address}\""), &format!("endpoint = \"{name}\"")));
    let hosts = pair.folder(LEFT).join("hosts");
    std::fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
    pair.start(RIGHT);
    pair.start_with_hosts(LEFT, &hosts);
    pair.wait_until_started(LEFT);
    let [text, _] = wait_for_cause(&pair, 0, CauseKind::Unresolved);
    assert!(text.starts_with(&format!("`endpoint = \"{name}:4754\"` has no address: ")), "{text}");
    std::fs::write(&hosts, format!("127.0.0.1 localhost\n{address} {name}\n")).unwrap();
    pair.wait_until_up(LEFT);
    let found = format!("path {}: endpoint {name}:4754 is {address}:4754", pair.testbed.device(0));
    let is_found = |event: &Event| event.message == found;
    assert!(eventually(|| events(&pair, LEFT, 0).iter().any(is_found)), "{:#?}", events(&pair, LEFT, 0));
}

#[test]
fn a_reload_with_a_mistake_prints_it_once_and_exits_as_check_does() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS[..1]) else { return };
    pair.edit(LEFT, |text| text.replace("listen-port", "listen-prot"));
    let output = pair.command(LEFT).args(["reload", "rw0"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.starts_with("error: unknown key `listen-prot`"), "{error}");
    let is_refusal = |event: &Event| event.kind == EventKind::Reload && event.message.starts_with("not reloaded");
    assert!(events(&pair, LEFT, 0).iter().any(is_refusal));
}
