//! Lines as people have them: login pages, carriers that forget, modems that look the same, small MTUs, networks that change,
//! a closed lid.

use crate::conversation::Conversation;
use crate::internet::{CLIENT, Internet, LAN, OFFICE, ROUTER, SERVER, WEB_ADDRESS};
use crate::lines::{check_live, join, on, renumber, up, wait_for_paths};
use std::process::Command;
use testing::{Reason, eventually, skip};

/// The remote addresses of the client's paths, as the server knows them.
fn remotes(internet: &Internet) -> Vec<String> {
    up(internet, SERVER).into_iter().filter_map(|path| path.remote).collect()
}

#[test]
fn a_line_with_a_captive_portal_is_told_as_one_that_may_have_it_and_used_after_the_login() {
    let Some(internet) = Internet::new() else { return };
    let portal = "add table ip portal; add chain ip portal f { type filter hook forward priority 0; }; \
                  add rule ip portal f iifname p4 meta l4proto tcp tcp dport 80 accept; \
                  add rule ip portal f iifname p4 udp dport 53 accept; add rule ip portal f iifname p4 drop";
    internet.run(ROUTER, &["nft", portal]);
    internet.set_up("", "");
    let texts = || [internet.ropewalk(CLIENT, "show rw0"), check_live(&internet, CLIENT)];
    let is_told = |text: &String| text.contains("captive portal") && text.contains("`ropewalk portal`");
    assert!(eventually(|| texts().iter().all(is_told)), "{:?}", texts());
    internet.run(ROUTER, &["nft", "delete table ip portal"]);
    wait_for_paths(&internet, &["p3", "p4"]);
    assert!(up(&internet, CLIENT).iter().all(|path| path.cause.is_none()), "{:?}", texts());
}

#[test]
fn a_carrier_that_forgets_all_mappings_breaks_no_connection() {
    if Command::new("conntrack").arg("--version").output().is_err() {
        return skip(Reason::Missing, "conntrack is not installed");
    }
    let Some(internet) = Internet::with_sites() else { return };
    internet.run(ROUTER, &["nft", "flush chain ip nat post; add rule ip nat post oifname p2 masquerade fully-random"]);
    internet.set_up("", "--lan p5");
    wait_for_paths(&internet, &["p3", "p4"]);
    let mut conversation = Conversation::new(&internet, LAN);
    for _ in 0..2 {
        assert!(conversation.goes_on());
        let before = remotes(&internet);
        internet.run(ROUTER, &["conntrack", "-F"]);
        assert!(conversation.goes_on());
        let have_moved = || {
            let now = remotes(&internet);
            now.len() == 2 && now.iter().all(|remote| !before.contains(remote))
        };
        assert!(eventually(have_moved), "{before:?}: {}", internet.ropewalk(SERVER, "show rw0"));
    }
    assert!(conversation.goes_on());
}

#[test]
fn a_line_that_returns_in_another_network_is_used_again_and_breaks_no_connection() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    wait_for_paths(&internet, &["p3", "p4"]);
    let mut conversation = Conversation::new(&internet, LAN);
    assert!(conversation.goes_on());
    on(&internet, &[(CLIENT, "ip link set p3 down")]);
    wait_for_paths(&internet, &["p4"]);
    assert!(conversation.goes_on());
    on(&internet, &[(CLIENT, "ip link set p3 up")]);
    renumber(&internet, "192.168.77.1/24", "192.168.77.50/24");
    wait_for_paths(&internet, &["p3", "p4"]);
    // The other one's carrier gives another address.
    on(
        &internet,
        &[
            (ROUTER, "ip address add 100.64.9.1/24 dev p4"),
            (CLIENT, "ip address flush dev p4 scope global"),
            (CLIENT, "ip address add 100.64.9.23/24 dev p4"),
            (CLIENT, "ip route add default via 100.64.9.1 dev p4 metric 200"),
        ],
    );
    on(&internet, &[(CLIENT, "ip link set p3 down")]);
    assert!(conversation.goes_on());
    wait_for_paths(&internet, &["p4"]);
}

#[test]
fn a_closed_lid_costs_nothing_when_it_opens_in_another_network() {
    let Some(internet) = Internet::new() else { return };
    internet.set_up("", "");
    wait_for_paths(&internet, &["p3", "p4"]);
    let signal = |name: &str| internet.processes(CLIENT, &format!("pkill {name}"), "up /etc/ropewalk/rw0.toml");
    assert!(signal("-STOP"));
    // The server has forgotten the session by then.
    internet.restart_after(SERVER, || {});
    renumber(&internet, "172.20.10.1/28", "172.20.10.3/28");
    on(&internet, &[(CLIENT, "ip link set p4 down")]);
    assert!(signal("-CONT"));
    assert!(eventually(|| internet.pings(CLIENT, WEB_ADDRESS)), "{}", internet.ropewalk(CLIENT, "show rw0"));
    wait_for_paths(&internet, &["p3"]);
}

#[test]
fn packets_of_every_size_pass_two_lines_of_1492_and_1358_bytes_that_say_nothing() {
    let Some(internet) = Internet::with_sites() else { return };
    let mut rules = "add table ip narrow; add chain ip narrow in { type filter hook prerouting priority -300; }; \
                     add chain ip narrow out { type filter hook postrouting priority 300; }"
        .to_owned();
    for (device, mtu) in [("p3", 1492), ("p4", 1358)] {
        rules += &format!("; add rule ip narrow in iifname {device} ip length > {mtu} drop");
        rules += &format!("; add rule ip narrow out oifname {device} ip length > {mtu} drop");
    }
    internet.run(ROUTER, &["nft", &rules]);
    // One IP packet for each datagram: a rule sees what a wire would.
    for (host, device) in
        [(CLIENT, "p3"), (CLIENT, "p4"), (SERVER, "p0"), (ROUTER, "p2"), (ROUTER, "p3"), (ROUTER, "p4")]
    {
        on(&internet, &[(host, &format!("ethtool -K {device} tx off tso off gso off gro off"))]);
    }
    internet.set_up("", "--lan p5");
    wait_for_paths(&internet, &["p3", "p4"]);
    let pings = |from: usize, to: &str, bytes: usize| {
        let line = format!("ping -n -c1 -W2 -M do -s {} {to}", bytes - 28);
        internet.output(from, &line.split(' ').collect::<Vec<_>>()).status.success()
    };
    for bytes in (1284..=1500).step_by(24) {
        assert!(eventually(|| pings(LAN, WEB_ADDRESS, bytes)), "{bytes} bytes up");
        assert!(eventually(|| pings(SERVER, "10.77.0.2", bytes)), "{bytes} bytes down");
    }
    let found = || up(&internet, CLIENT).into_iter().filter_map(|path| path.pmtu_bytes).collect::<Vec<_>>();
    // The search goes in steps: it finds at most one step less than passes.
    let are_right = |found: &[u32]| matches!(found, [1472..=1492, 1338..=1358]);
    assert!(eventually(|| are_right(&found())), "{:?}", found());
    assert!(Conversation::new(&internet, LAN).goes_on());
}

#[test]
fn two_modems_with_one_network_one_address_and_one_mac_are_two_paths() {
    let Some(internet) = Internet::with_sites() else { return };
    // The office's host is the second modem.
    join(&internet, [CLIENT, OFFICE], "stick");
    let mac = |host, device: &str, last: u8| {
        internet.run(host, &["ip", "link", "set", device, "address", &format!("02:0c:e7:0b:01:{last:02}")])
    };
    for (host, device, last) in [(CLIENT, "p3", 64), (CLIENT, "stick", 64), (ROUTER, "p3", 2), (OFFICE, "stick", 2)] {
        mac(host, device, last);
    }
    renumber(&internet, "192.168.8.1/24", "192.168.8.100/24");
    on(
        &internet,
        &[
            (CLIENT, "ip link set p4 down"),
            (OFFICE, "ip address add 192.168.8.1/24 dev stick"),
            (OFFICE, "sysctl -qw net.ipv4.ip_forward=1"),
            (OFFICE, "nft add table ip nat"),
            (OFFICE, "nft add chain ip nat post { type nat hook postrouting priority srcnat ; }"),
            (OFFICE, "nft add rule ip nat post oifname p6 masquerade"),
            (CLIENT, "ip address add 192.168.8.100/24 dev stick"),
            (CLIENT, "ip route add default via 192.168.8.1 dev stick metric 200"),
        ],
    );
    internet.set_up("", "--lan p5");
    wait_for_paths(&internet, &["p3", "stick"]);
    let mut conversation = Conversation::new(&internet, LAN);
    assert!(conversation.goes_on());
    for (goes, stays) in [("p3", "stick"), ("stick", "p3")] {
        on(&internet, &[(CLIENT, &format!("ip link set {goes} down"))]);
        assert!(conversation.goes_on(), "without {goes}");
        wait_for_paths(&internet, &[stays]);
        on(&internet, &[(CLIENT, &format!("ip link set {goes} up"))]);
        let metric = if goes == "p3" { 100 } else { 200 };
        on(&internet, &[(CLIENT, &format!("ip route replace default via 192.168.8.1 dev {goes} metric {metric}"))]);
        wait_for_paths(&internet, &["p3", "stick"]);
    }
}

#[test]
fn an_uplink_that_is_renamed_is_shown_by_its_new_name() {
    let Some(internet) = Internet::new() else { return };
    internet.set_up("", "");
    wait_for_paths(&internet, &["p3", "p4"]);
    on(
        &internet,
        &[
            (CLIENT, "ip link set p4 down"),
            (CLIENT, "ip link set p4 name lte0"),
            (CLIENT, "ip link set lte0 up"),
            (CLIENT, "ip route add default via 100.64.0.1 dev lte0 metric 200"),
        ],
    );
    wait_for_paths(&internet, &["lte0", "p3"]);
    on(&internet, &[(CLIENT, "ip link set p3 down")]);
    assert!(eventually(|| internet.pings(CLIENT, WEB_ADDRESS)));
}
