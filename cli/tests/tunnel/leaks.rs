//! An exclusive tunnel: nothing but the tunnel leaves by an uplink, whatever becomes of its daemon and of the routes.

use crate::internet::{CLIENT, Internet, LAN, ROUTER, SERVER_ADDRESS, WEB, WEB_ADDRESS};
use std::net::IpAddr;
use testing::eventually;

/// Counts in the router what comes from the client's uplinks and is neither the tunnel's, nor DHCP, nor neighbour discovery.
const WATCH: &str = "add table inet watch; add chain inet watch c { type filter hook prerouting priority -300; }; \
                     add rule inet watch c iifname != { p3, p4 } accept; add rule inet watch c udp dport { 4754, 67, 547 } accept; \
                     add rule inet watch c icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert, mld2-listener-report } accept; \
                     add rule inet watch c counter";

fn leaked(internet: &Internet) -> u64 {
    let text = internet.run(ROUTER, &["nft", "list", "chain", "inet", "watch", "c"]);
    let count = text.split("counter packets ").nth(1).and_then(|rest| rest.split(' ').next());
    count.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// Whether a connection to the web host is made, and not refused at once.
fn reaches(internet: &Internet, host: usize) -> Result<IpAddr, String> {
    internet.ask(host, WEB, WEB_ADDRESS).map(|(source, _)| source)
}

/// Ends the daemon as the kernel would, for want of memory say.
fn kill_daemon(internet: &Internet) {
    internet.kill(CLIENT, "up /etc/ropewalk/rw0.toml");
    wait_for_the_end(internet);
}

fn wait_for_the_end(internet: &Internet) {
    assert!(eventually(|| !internet.output(CLIENT, &["ip", "link", "show", "rw0"]).status.success()));
}

fn start_daemon(internet: &Internet) {
    internet.start(CLIENT, "up /etc/ropewalk/rw0.toml");
    assert!(eventually(|| internet.output(CLIENT, &["ping", "-c1", "-W1", "10.77.0.1"]).status.success()));
}

#[test]
fn nothing_leaves_beside_an_exclusive_tunnel_when_its_daemon_is_killed_or_a_route_leads_around_it() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    internet.run(ROUTER, &["nft", WATCH]);
    let server: IpAddr = SERVER_ADDRESS.parse().unwrap();
    let check = |situation: &str, is_open: bool| {
        for host in [CLIENT, LAN] {
            let reached = reaches(&internet, host);
            if is_open {
                assert_eq!(reached, Ok(server), "{situation}, host {host}");
            } else {
                assert!(reached.is_err(), "{situation}, host {host}: {reached:?}");
            }
        }
        assert_eq!(leaked(&internet), 0, "{situation}");
    };
    check("set up", true);
    kill_daemon(&internet);
    check("killed", false);
    start_daemon(&internet);
    check("started again", true);
    for (situation, add, delete) in [
        // A hostile network that claims to be the one that somebody asks for, and a route of DHCP's option 121.
        ("a local network", "address add 198.51.100.77/24 dev p3", "address del 198.51.100.77/24 dev p3"),
        ("option 121", "route add 198.51.100.0/24 via 192.168.1.1 dev p3", "route del 198.51.100.0/24 dev p3"),
        ("a host route", "route add 198.51.100.7 via 100.64.0.1 dev p4", "route del 198.51.100.7 dev p4"),
    ] {
        internet.run(CLIENT, &[&["ip"], &*add.split(' ').collect::<Vec<_>>()].concat());
        check(situation, false);
        internet.run(CLIENT, &[&["ip"], &*delete.split(' ').collect::<Vec<_>>()].concat());
        check("as before", true);
    }
    // An uplink gets another address.
    for line in [
        "address flush dev p3 scope global",
        "address add 192.168.1.57/24 dev p3",
        "route add default via 192.168.1.1 dev p3 metric 100",
    ] {
        internet.run(CLIENT, &[&["ip"], &*line.split(' ').collect::<Vec<_>>()].concat());
    }
    check("roamed", true);
    // The server has no IPv6 beyond the tunnel's, the uplink has.
    internet.run(ROUTER, &["ip", "address", "add", "2001:db8:9::1/64", "dev", "p3", "nodad"]);
    internet.run(CLIENT, &["ip", "address", "add", "2001:db8:9::2/64", "dev", "p3", "nodad"]);
    assert!(!internet.output(CLIENT, &["ping", "-6", "-c1", "-W1", "2001:db8:9::1"]).status.success());
    assert_eq!(leaked(&internet), 0, "IPv6");
    internet.ropewalk(CLIENT, "down rw0");
    wait_for_the_end(&internet);
    check("down", false);
    internet.ropewalk(CLIENT, "setup remove --yes");
    assert_eq!(reaches(&internet, CLIENT), Ok("192.0.2.2".parse().unwrap()), "removed");
}

#[test]
fn a_portal_is_reached_for_a_while_by_its_command_and_logins_are_answered() {
    let Some(internet) = Internet::new() else { return };
    internet.set_up("", "");
    internet.run(ROUTER, &["nft", WATCH]);
    let at = |port: u16| format!("192.168.1.1:{port}").parse().unwrap();
    let asks = |port: u16| internet.ask_at(CLIENT, at(port), ROUTER, at(port)).is_ok();
    assert!(!asks(80) && leaked(&internet) == 0);
    internet.ropewalk(CLIENT, "portal 5");
    assert!(asks(80) && !asks(8080));
    // Somebody logs in by the uplink; other ports are not answered.
    let login = |port: u16| {
        let at = format!("192.168.1.23:{port}").parse().unwrap();
        internet.ask_at(ROUTER, at, CLIENT, at).is_ok()
    };
    assert!(login(22));
    let (code, stderr) = internet.refusal(CLIENT, "portal 90");
    assert!(code == 2 && stderr.contains("60"), "{stderr}");
}

#[test]
fn a_tunnel_that_is_not_exclusive_leaves_the_rest_alone() {
    let Some(internet) = Internet::new() else { return };
    internet.set_up("", "--exclusive no");
    kill_daemon(&internet);
    assert_eq!(reaches(&internet, CLIENT), Ok("192.0.2.2".parse().unwrap()));
    let (code, stderr) = internet.refusal(CLIENT, "portal");
    assert!(code == 4 && stderr.contains("not exclusive"), "{stderr}");
}
