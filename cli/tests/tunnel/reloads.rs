//! Changes while the tunnel runs: of paths, peers and preshared keys by `ropewalk reload`, and of network devices.

use crate::traffic::Transfer;
use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use daemon::keys;
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use std::time::{Duration, Instant};
use testing::eventually;

/// Slow enough for any machine: otherwise one path may carry all.
const LINKS: [&str; 2] = ["rate=10mbit delay=10ms", "rate=10mbit delay=20ms"];

/// Removes the table of a path; returns the text without it, and the table.
fn remove_path(text: &str, device: &str) -> (String, String) {
    let start = text.find(&format!("\n[[path]]\nname = \"{device}\"")).expect("the path is there");
    let end = text[start + 1..].find("\n[[").map_or(text.len(), |offset| start + 1 + offset);
    (format!("{}{}", &text[..start], &text[end..]), text[start..end].to_owned())
}

/// Bytes that the left host has sent on a path.
fn sent_bytes(pair: &TunnelPair, device: &str) -> u64 {
    let status = pair.status(LEFT);
    status.peers[0].paths.iter().find(|path| path.name == device).map_or(0, |path| path.sent.bytes)
}

fn carries_data(pair: &TunnelPair, device: &str) -> bool {
    let prior_bytes = sent_bytes(pair, device);
    eventually(|| sent_bytes(pair, device) > prior_bytes + (256 << 10))
}

#[test]
fn transfers_continue_when_a_reload_removes_a_path_and_use_one_that_it_adds() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let path_count = |host| pair.status(host).peers[0].paths.len();
    let transfer = Transfer::endless(&pair, LEFT);
    let reverse_transfer = Transfer::endless(&pair, RIGHT);
    transfer.wait_for(1 << 20);
    for removed in ["p1", "p0", "p1"] {
        let mut table = String::new();
        pair.edit(LEFT, |text| {
            let (remaining, removed_table) = remove_path(&text, removed);
            table = removed_table;
            remaining
        });
        assert_eq!(pair.reload(LEFT).unwrap(), format!("path {removed}: removed\n"));
        assert_eq!(path_count(LEFT), 1);
        assert!(eventually(|| path_count(RIGHT) == 1), "{:#?}", pair.status(RIGHT).peers[0].paths);
        transfer.wait_for(1 << 20);
        reverse_transfer.wait_for(1 << 20);
        pair.edit(LEFT, |text| text + &table);
        assert_eq!(pair.reload(LEFT).unwrap(), format!("path {removed}: added\n"));
        assert!(carries_data(&pair, removed), "{:#?}", pair.status(LEFT).peers[0].paths);
        assert!(eventually(|| path_count(RIGHT) == 2));
    }
    assert_eq!(pair.reload(LEFT).unwrap(), "nothing changed\n");
    assert!(transfer.stop() > 0 && reverse_transfer.stop() > 0);
}

#[test]
fn a_changed_endpoint_a_backup_and_a_rate_are_applied_while_data_flow() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    pair.edit(LEFT, |text| text + "backup = true\n");
    assert_eq!(pair.reload(LEFT).unwrap(), "path p1: changed\n");
    let is_idle = || {
        let prior_bytes = sent_bytes(&pair, "p1");
        transfer.wait_for(1 << 20);
        sent_bytes(&pair, "p1") < prior_bytes + (64 << 10)
    };
    assert!(eventually(is_idle), "a backup carries data although the other path works");
    // The endpoint of the other path becomes another address of the same host.
    let [address, new_address] = [pair.testbed.v4(0, RIGHT), "10.88.0.77".parse().unwrap()];
    pair.testbed.run(RIGHT, &format!("ip address add {new_address}/24 dev {}", pair.testbed.device(0))).unwrap();
    pair.edit(LEFT, |text| {
        text.replace(&format!("endpoint = \"{address}\""), &format!("endpoint = \"{new_address}\""))
    });
    assert_eq!(pair.reload(LEFT).unwrap(), "path p0: removed\npath p0: added\n");
    let is_redirected = || pair.path(LEFT, 1).remote.is_some_and(|remote| remote.starts_with(&new_address.to_string()));
    assert!(eventually(is_redirected) && carries_data(&pair, "p0"), "{:#?}", pair.status(LEFT).peers[0]);
    pair.edit(LEFT, |text| text.replace("backup = true\n", "rate = \"8mbit\"\n"));
    assert_eq!(pair.reload(LEFT).unwrap(), "path p1: changed\n");
    assert!(carries_data(&pair, "p1"), "{:#?}", pair.status(LEFT).peers[0].paths);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_changed_preshared_key_interrupts_no_flow() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS[..1]) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    // Bounds of the instant of the latest handshake.
    let handshake = || {
        let start = Instant::now();
        let age = Duration::from_secs_f64(pair.status(LEFT).peers[0].handshake_age_ms.expect("a session") / 1e3);
        [start - age, Instant::now() - age]
    };
    let secret = keys::genpsk();
    let set_preshared_key = |host: usize| {
        pair.edit(host, |text| text.replace("allowed-ips", &format!("preshared-key = \"{}\"\nallowed-ips", *secret)));
        let stdout = pair.reload(host).unwrap();
        assert!(stdout.ends_with("peer.preshared-key changed\n"), "{stdout}");
    };
    let [_, first_handshake] = handshake();
    set_preshared_key(LEFT);
    transfer.wait_for(1 << 20);
    assert!(handshake()[0] <= first_handshake, "the old session stays: a new one needs the key at both ends");
    set_preshared_key(RIGHT);
    assert!(eventually(|| handshake()[0] > first_handshake), "no new session");
    transfer.wait_for(1 << 20);
    assert!(transfer.stop() > 0);
}

#[test]
fn peers_are_added_and_removed_and_a_network_that_moves_between_them_keeps_its_route() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS[..1]) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    let routes = || pair.testbed.run(LEFT, &format!("ip route show dev {DEVICE}")).unwrap();
    let has = |network: &str| routes().lines().any(|line| line.split(' ').next() == Some(network));
    let other = keys::pubkey(&keys::genkey()).unwrap();
    let first = format!("allowed-ips = \"{}/32\"", IPV4.inner_address(RIGHT));
    let shared = format!("allowed-ips = [\"{}/32\", \"10.99.0.0/24\"]", IPV4.inner_address(RIGHT));
    let table = |networks: &str| format!("\n[[peer]]\npublic-key = \"{other}\"\nallowed-ips = [{networks}]\n");
    pair.edit(LEFT, |text| {
        // With two peers the endpoint of a path would be ambiguous.
        let line = text.lines().find(|line| line.starts_with("endpoint")).unwrap().to_owned();
        text.replace(&line, "").replace(&first, &format!("{first}\n{line}")) + &table("\"10.99.0.0/24\"")
    });
    let stdout = pair.reload(LEFT).unwrap();
    assert!(stdout.ends_with(&format!("peer {other}: added\n")), "{stdout}");
    assert!(has("10.99.0.0/24"), "{}", routes());
    // The network moves from the second peer to the first, and back.
    pair.edit(LEFT, |text| text.replace(&first, &shared).replace(&table("\"10.99.0.0/24\""), &table("")));
    pair.reload(LEFT).unwrap();
    assert!(has("10.99.0.0/24"), "{}", routes());
    pair.edit(LEFT, |text| text.replace(&shared, &first).replace(&table(""), &table("\"10.99.0.0/24\"")));
    pair.reload(LEFT).unwrap();
    assert!(has("10.99.0.0/24"), "{}", routes());
    let owned: Vec<_> = pair.status(LEFT).peers.iter().map(|peer| peer.allowed_ips.clone()).collect();
    assert_eq!(owned, [vec!["10.77.0.2/32"], vec!["10.99.0.0/24"]]);
    pair.edit(LEFT, |text| text.replace(&table("\"10.99.0.0/24\""), ""));
    assert_eq!(pair.reload(LEFT).unwrap(), format!("peer {other}: removed\n"));
    assert!(!has("10.99.0.0/24") && has("10.77.0.2"), "{}", routes());
    transfer.wait_for(1 << 20);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_reload_that_cannot_be_applied_is_refused_with_its_reason_and_changes_nothing() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS[..1]) else { return };
    let path_count = pair.status(LEFT).peers[0].paths.len();
    let two_networks = format!("allowed-ips = [\"{}/32\", \"10.99.0.0/24\"]", IPV4.inner_address(RIGHT));
    let with_network =
        |text: String| text.replace(&format!("allowed-ips = \"{}/32\"", IPV4.inner_address(RIGHT)), &two_networks);
    let valid = std::cell::RefCell::new(String::new());
    let assert_refused = |change: &dyn Fn(String) -> String, phrases: &[&str]| {
        pair.edit(LEFT, |text| {
            valid.replace(text.clone());
            change(with_network(text))
        });
        let stderr = pair.reload(LEFT).unwrap_err();
        assert!(phrases.iter().all(|phrase| stderr.contains(phrase)), "{phrases:?} in {stderr}");
        let routes = pair.testbed.run(LEFT, &format!("ip route show dev {DEVICE}")).unwrap();
        let status = pair.status(LEFT);
        assert!(!routes.contains("10.99.0.0/24"), "{routes}");
        assert_eq!((status.peers[0].paths.len(), status.peers[0].allowed_ips.len()), (path_count, 1));
        pair.edit(LEFT, |_| valid.borrow().clone());
    };
    let fixed = |text: String| {
        text.replace("address = ", "metrics = \"127.0.0.1:9754\"\naddress = ") + "\n[tunnel]\nin-order = false\n"
    };
    assert_refused(&fixed, &["interface.metrics", "tunnel.in-order", "needs a restart"]);
    // The port is taken.
    let taken = |text: String| {
        let (_, table) = remove_path(&text, "p0");
        text + &table.replace("name = \"p0\"", "name = \"again\"")
    };
    assert_refused(&taken, &["again", "cannot be bound"]);
    assert_refused(&|text| text.replace("[[path]]", "[[paht]]"), &["did you mean `path`?"]);
    assert_eq!(Transfer::start(&pair, LEFT, 1 << 20).finish(), 1 << 20);
}

#[test]
fn the_devices_addresses_and_mtu_change_while_data_flow() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS[..1]) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    let [first, second] = ["10.77.0.1/24", "10.78.0.1/24"];
    let both = format!("address = [\"{first}\", \"{second}\"]\nmtu = 1400");
    pair.edit(LEFT, |text| text.replace(&format!("address = \"{first}\""), &both));
    assert_eq!(pair.reload(LEFT).unwrap(), "interface.address, interface.mtu changed\n");
    let address_output = || pair.testbed.run(LEFT, &format!("ip address show dev {DEVICE}")).unwrap();
    assert!(address_output().contains("10.78.0.1/24") && address_output().contains("mtu 1400"), "{}", address_output());
    pair.edit(LEFT, |text| text.replace(&both, &format!("address = \"{first}\"")));
    assert_eq!(pair.reload(LEFT).unwrap(), "interface.address, interface.mtu changed\n");
    assert!(
        !address_output().contains("10.78.0.1")
            && address_output().contains("10.77.0.1/24")
            && address_output().contains("mtu 1500")
    );
    transfer.wait_for(1 << 20);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_path_goes_down_with_its_device_and_comes_up_when_the_device_is_back() {
    let Some(pair) = TunnelPair::up(IPV4, &[LINKS[0], "rate=10mbit"]) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    pair.testbed.run(LEFT, "ip link delete p1").unwrap();
    assert!(eventually(|| pair.path(LEFT, 1).state == PathState::Down), "{:#?}", pair.path(LEFT, 1));
    transfer.wait_for(1 << 20);
    let namespace = pair.testbed.namespace(RIGHT);
    pair.testbed.run(LEFT, &format!("ip link add p1 type veth peer name p1 netns {namespace}")).unwrap();
    for host in [RIGHT, LEFT] {
        pair.testbed.run(host, "ip link set p1 up").unwrap();
        // As with a modem, the device exists before its address does.
        std::thread::sleep(Duration::from_millis(200));
        pair.testbed.run(host, &format!("ip address add {}/24 dev p1", pair.testbed.v4(1, host))).unwrap();
    }
    assert!(
        eventually(|| pair.path(LEFT, 1).state == PathState::Up) && carries_data(&pair, "p1"),
        "{:#?}",
        pair.path(LEFT, 1)
    );
    assert!(transfer.stop() > 0);
}
