//! What changes while the tunnel runs: paths, peers and secrets by `ropewalk reload`, paths with their devices by themselves.

use crate::ends::{DEVICE, Ends, USUAL};
use crate::traffic::Transfer;
use daemon::keys;
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use std::time::{Duration, Instant};
use testing::eventually;

/// Slow enough for any machine: else one path may carry all.
const LINKS: [&str; 2] = ["rate=10mbit delay=10ms", "rate=10mbit delay=20ms"];

/// A file's text without the table of a path, and that table.
fn without(text: &str, device: &str) -> (String, String) {
    let start = text.find(&format!("\n[[path]]\nname = \"{device}\"")).expect("the path is there");
    let end = text[start + 1..].find("\n[[").map_or(text.len(), |at| start + 1 + at);
    (format!("{}{}", &text[..start], &text[end..]), text[start..end].to_owned())
}

/// Bytes that a path has brought to a host, by the path's name at the left one.
fn brought(ends: &Ends, device: &str) -> u64 {
    let status = ends.status(LEFT);
    status.peers[0].paths.iter().find(|path| path.name == device).map_or(0, |path| path.sent.bytes)
}

fn carries(ends: &Ends, device: &str) -> bool {
    let before = brought(ends, device);
    eventually(|| brought(ends, device) > before + (256 << 10))
}

#[test]
fn a_path_that_a_reload_removes_is_not_missed_and_one_that_it_adds_carries() {
    let Some(ends) = Ends::up(USUAL, &LINKS) else { return };
    let there = |host| ends.status(host).peers[0].paths.len();
    let transfer = Transfer::endless(&ends, LEFT);
    let back = Transfer::endless(&ends, RIGHT);
    transfer.wait_for(1 << 20);
    for removed in ["p1", "p0", "p1"] {
        let mut table = String::new();
        ends.edit(LEFT, |text| {
            let (rest, cut) = without(&text, removed);
            table = cut;
            rest
        });
        assert_eq!(ends.reload(LEFT).unwrap(), format!("path {removed}: removed\n"));
        assert_eq!(there(LEFT), 1);
        assert!(eventually(|| there(RIGHT) == 1), "{:#?}", ends.status(RIGHT).peers[0].paths);
        transfer.wait_for(1 << 20);
        back.wait_for(1 << 20);
        ends.edit(LEFT, |text| text + &table);
        assert_eq!(ends.reload(LEFT).unwrap(), format!("path {removed}: added\n"));
        assert!(carries(&ends, removed), "{:#?}", ends.status(LEFT).peers[0].paths);
        assert!(eventually(|| there(RIGHT) == 2));
    }
    assert_eq!(ends.reload(LEFT).unwrap(), "nothing changed\n");
    assert!(transfer.stop() > 0 && back.stop() > 0);
}

#[test]
fn a_changed_endpoint_a_backup_and_a_rate_are_taken_over_while_data_flow() {
    let Some(ends) = Ends::up(USUAL, &LINKS) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(1 << 20);
    ends.edit(LEFT, |text| text + "backup = true\n");
    assert_eq!(ends.reload(LEFT).unwrap(), "path p1: changed\n");
    let rests = || {
        let before = brought(&ends, "p1");
        transfer.wait_for(1 << 20);
        brought(&ends, "p1") < before + (64 << 10)
    };
    assert!(eventually(rests), "a backup carries while the other path works");
    // The other path calls another address of the server: both are the same host's.
    let [old, new] = [ends.testbed.v4(0, RIGHT), "10.88.0.77".parse().unwrap()];
    ends.testbed.run(RIGHT, &format!("ip address add {new}/24 dev {}", ends.testbed.device(0))).unwrap();
    ends.edit(LEFT, |text| text.replace(&format!("endpoint = \"{old}\""), &format!("endpoint = \"{new}\"")));
    assert_eq!(ends.reload(LEFT).unwrap(), "path p0: removed\npath p0: added\n");
    let led = || ends.path(LEFT, 1).remote.is_some_and(|remote| remote.starts_with(&new.to_string()));
    assert!(eventually(led) && carries(&ends, "p0"), "{:#?}", ends.status(LEFT).peers[0]);
    ends.edit(LEFT, |text| text.replace("backup = true\n", "rate = \"8mbit\"\n"));
    assert_eq!(ends.reload(LEFT).unwrap(), "path p1: changed\n");
    assert!(carries(&ends, "p1"), "{:#?}", ends.status(LEFT).peers[0].paths);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_preshared_key_that_both_ends_change_costs_no_flow_anything() {
    let Some(ends) = Ends::up(USUAL, &LINKS[..1]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(1 << 20);
    // The handshake was not before the one instant and not after the other.
    let handshake = || {
        let asked = Instant::now();
        let age = Duration::from_secs_f64(ends.status(LEFT).peers[0].handshake_age_ms.expect("a session") / 1e3);
        [asked - age, Instant::now() - age]
    };
    let secret = keys::genpsk();
    let share = |host: usize| {
        ends.edit(host, |text| text.replace("allowed-ips", &format!("preshared-key = \"{secret}\"\nallowed-ips")));
        let said = ends.reload(host).unwrap();
        assert!(said.ends_with("peer.preshared-key changed\n"), "{said}");
    };
    let [_, old] = handshake();
    share(LEFT);
    transfer.wait_for(1 << 20);
    assert!(handshake()[0] <= old, "the old session goes on: both ends have to have the secret for a new one");
    share(RIGHT);
    assert!(eventually(|| handshake()[0] > old), "no new session");
    transfer.wait_for(1 << 20);
    assert!(transfer.stop() > 0);
}

#[test]
fn peers_come_and_go_and_a_network_that_moves_between_them_keeps_its_route() {
    let Some(ends) = Ends::up(USUAL, &LINKS[..1]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    let routes = || ends.testbed.run(LEFT, &format!("ip route show dev {DEVICE}")).unwrap();
    let has = |network: &str| routes().lines().any(|line| line.split(' ').next() == Some(network));
    let other = keys::pubkey(&keys::genkey()).unwrap();
    let first = format!("allowed-ips = \"{}/32\"", USUAL.inside(RIGHT));
    let shared = format!("allowed-ips = [\"{}/32\", \"10.99.0.0/24\"]", USUAL.inside(RIGHT));
    let table = |networks: &str| format!("\n[[peer]]\npublic-key = \"{other}\"\nallowed-ips = [{networks}]\n");
    ends.edit(LEFT, |text| {
        // The path's endpoint would be nobody's in particular with two peers.
        let line = text.lines().find(|line| line.starts_with("endpoint")).unwrap().to_owned();
        text.replace(&line, "").replace(&first, &format!("{first}\n{line}")) + &table("\"10.99.0.0/24\"")
    });
    let said = ends.reload(LEFT).unwrap();
    assert!(said.ends_with(&format!("peer {other}: added\n")), "{said}");
    assert!(has("10.99.0.0/24"), "{}", routes());
    // From the second to the first, which is looked at first; and back.
    ends.edit(LEFT, |text| text.replace(&first, &shared).replace(&table("\"10.99.0.0/24\""), &table("")));
    ends.reload(LEFT).unwrap();
    assert!(has("10.99.0.0/24"), "{}", routes());
    ends.edit(LEFT, |text| text.replace(&shared, &first).replace(&table(""), &table("\"10.99.0.0/24\"")));
    ends.reload(LEFT).unwrap();
    assert!(has("10.99.0.0/24"), "{}", routes());
    let owned: Vec<_> = ends.status(LEFT).peers.iter().map(|peer| peer.allowed_ips.clone()).collect();
    assert_eq!(owned, [vec!["10.77.0.2/32"], vec!["10.99.0.0/24"]]);
    ends.edit(LEFT, |text| text.replace(&table("\"10.99.0.0/24\""), ""));
    assert_eq!(ends.reload(LEFT).unwrap(), format!("peer {other}: removed\n"));
    assert!(!has("10.99.0.0/24") && has("10.77.0.2"), "{}", routes());
    transfer.wait_for(1 << 20);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_reload_that_cannot_be_is_refused_with_its_reason_and_changes_nothing() {
    let Some(ends) = Ends::up(USUAL, &LINKS[..1]) else { return };
    let before = ends.status(LEFT).peers[0].paths.len();
    let more = format!("allowed-ips = [\"{}/32\", \"10.99.0.0/24\"]", USUAL.inside(RIGHT));
    let wanted = |text: String| text.replace(&format!("allowed-ips = \"{}/32\"", USUAL.inside(RIGHT)), &more);
    let good = std::cell::RefCell::new(String::new());
    let refused = |change: &dyn Fn(String) -> String, phrases: &[&str]| {
        ends.edit(LEFT, |text| {
            good.replace(text.clone());
            change(wanted(text))
        });
        let told = ends.reload(LEFT).unwrap_err();
        assert!(phrases.iter().all(|phrase| told.contains(phrase)), "{phrases:?} in {told}");
        let routes = ends.testbed.run(LEFT, &format!("ip route show dev {DEVICE}")).unwrap();
        let status = ends.status(LEFT);
        assert!(!routes.contains("10.99.0.0/24"), "{routes}");
        assert_eq!((status.peers[0].paths.len(), status.peers[0].allowed_ips.len()), (before, 1));
        ends.edit(LEFT, |_| good.borrow().clone());
    };
    let fixed = |text: String| {
        text.replace("address = ", "metrics = \"127.0.0.1:9754\"\naddress = ") + "\n[tunnel]\nin-order = false\n"
    };
    refused(&fixed, &["interface.metrics", "tunnel.in-order", "needs a restart"]);
    // The port is taken.
    let taken = |text: String| {
        let (_, table) = without(&text, "p0");
        text + &table.replace("name = \"p0\"", "name = \"again\"")
    };
    refused(&taken, &["again", "cannot be bound"]);
    refused(&|text| text.replace("[[path]]", "[[paht]]"), &["did you mean `path`?"]);
    assert_eq!(Transfer::start(&ends, LEFT, 1 << 20).finish(), 1 << 20);
}

#[test]
fn the_devices_addresses_and_mtu_change_while_data_flow() {
    let Some(ends) = Ends::up(USUAL, &LINKS[..1]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(1 << 20);
    let [own, more] = ["10.77.0.1/24", "10.78.0.1/24"];
    let both = format!("address = [\"{own}\", \"{more}\"]\nmtu = 1400");
    ends.edit(LEFT, |text| text.replace(&format!("address = \"{own}\""), &both));
    assert_eq!(ends.reload(LEFT).unwrap(), "interface.address, interface.mtu changed\n");
    let shown = || ends.testbed.run(LEFT, &format!("ip address show dev {DEVICE}")).unwrap();
    assert!(shown().contains("10.78.0.1/24") && shown().contains("mtu 1400"), "{}", shown());
    ends.edit(LEFT, |text| text.replace(&both, &format!("address = \"{own}\"")));
    assert_eq!(ends.reload(LEFT).unwrap(), "interface.address, interface.mtu changed\n");
    assert!(!shown().contains("10.78.0.1") && shown().contains("10.77.0.1/24") && shown().contains("mtu 1500"));
    transfer.wait_for(1 << 20);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_device_that_is_pulled_takes_its_path_along_and_brings_it_back_when_it_is_put_in_again() {
    let Some(ends) = Ends::up(USUAL, &[LINKS[0], "rate=10mbit"]) else { return };
    let transfer = Transfer::endless(&ends, LEFT);
    transfer.wait_for(1 << 20);
    ends.testbed.run(LEFT, "ip link delete p1").unwrap();
    assert!(eventually(|| ends.path(LEFT, 1).state == PathState::Down), "{:#?}", ends.path(LEFT, 1));
    transfer.wait_for(1 << 20);
    let far = ends.testbed.namespace(RIGHT);
    ends.testbed.run(LEFT, &format!("ip link add p1 type veth peer name p1 netns {far}")).unwrap();
    for host in [RIGHT, LEFT] {
        ends.testbed.run(host, "ip link set p1 up").unwrap();
        // As a modem does: the device is there before its address is.
        std::thread::sleep(Duration::from_millis(200));
        ends.testbed.run(host, &format!("ip address add {}/24 dev p1", ends.testbed.v4(1, host))).unwrap();
    }
    assert!(
        eventually(|| ends.path(LEFT, 1).state == PathState::Up) && carries(&ends, "p1"),
        "{:#?}",
        ends.path(LEFT, 1)
    );
    assert!(transfer.stop() > 0);
}
