//! An exclusive tunnel: nothing but the tunnel leaves by an uplink, whatever becomes of its daemon and of the routes.

use crate::internet::{CLIENT, Internet, LAN, ROUTER, SERVER_ADDRESS, WEB, WEB_ADDRESS};
use crate::uplink_capture::Capture;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;
use testing::eventually;

/// Where programs of the client and of a host behind it send, all the time: resolvers, a time server, web hosts, the uplinks'
/// routers, the server itself at the tunnel's port.
const TARGETS: [&str; 9] = [
    "9.9.9.9:53",
    "[2620:fe::fe]:53",
    "198.51.100.7:123",
    "198.51.100.7:443",
    "[2001:db8:2::7]:443",
    "[2001:db8:9::1]:53",
    "192.168.1.1:53",
    "100.64.0.1:80",
    "203.0.113.1:4754",
];

/// Captures what leaves the client's two uplinks.
fn capture(internet: &Internet) -> [Capture; 2] {
    ["p3", "p4"].map(|device| {
        let capture = || Ok(Capture::start(device, SERVER_ADDRESS.parse()?)?);
        internet.testbed.within(ROUTER, capture).unwrap()
    })
}

/// What has left besides the tunnel.
fn leaked(captures: &[Capture; 2]) -> Vec<String> {
    captures.iter().flat_map(Capture::others).collect()
}

/// Tries, until `is_over`, what programs of a host do: look names up, ask for the time, open connections.
fn talk(targets: &[SocketAddr], is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        for target in targets {
            let unspecified: SocketAddr = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().unwrap();
            // Most of this fails, and is to fail.
            let _ = UdpSocket::bind(unspecified).and_then(|socket| socket.send_to(b"leak", target));
            let _ = TcpStream::connect_timeout(target, Duration::from_millis(10));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Ends the talk of hosts when a test ends, also when it fails.
struct Talk<'a>(&'a AtomicBool);

impl<'a> Talk<'a> {
    fn start<'scope>(scope: &'scope Scope<'scope, '_>, internet: &'scope Internet, is_over: &'a AtomicBool) -> Self
    where
        'a: 'scope,
    {
        for host in [CLIENT, LAN] {
            scope.spawn(move || {
                let targets: Vec<SocketAddr> = TARGETS.iter().map(|text| text.parse().unwrap()).collect();
                internet.testbed.within(host, move || {
                    talk(&targets, is_over);
                    Ok(())
                })
            });
        }
        Self(is_over)
    }
}

impl Drop for Talk<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a connection to the web host is made, and not refused at once.
fn reaches(internet: &Internet, host: usize) -> Result<IpAddr, String> {
    internet.ask(host, WEB, WEB_ADDRESS).map(|(source, _)| source)
}

/// Kills the daemon, as the kernel does when memory is short.
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
fn nothing_leaves_outside_an_exclusive_tunnel_when_its_daemon_is_killed_or_a_route_leads_around_it() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    // The talk would use up the ICMP errors that end connections at once.
    internet.run(CLIENT, &["sysctl", "-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"]);
    let captures = capture(&internet);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _talk = Talk::start(scope, &internet, &is_over);
        whatever_happens(&internet, &captures);
    });
    internet.ropewalk(CLIENT, "down rw0");
    wait_for_the_end(&internet);
    assert_eq!(leaked(&captures), [""; 0], "down");
    internet.ropewalk(CLIENT, "setup remove --yes");
    assert_eq!(reaches(&internet, CLIENT), Ok("192.0.2.2".parse().unwrap()), "removed");
    assert_ne!(leaked(&captures), [""; 0], "the capture sees what leaves");
}

/// What befalls a daemon and its uplinks. The tunnel carries traffic or nothing does, and nothing else leaves.
fn whatever_happens(internet: &Internet, captures: &[Capture; 2]) {
    let server: IpAddr = SERVER_ADDRESS.parse().unwrap();
    let check = |situation: &str, is_open: bool| {
        for host in [CLIENT, LAN] {
            let reached = reaches(internet, host);
            if is_open {
                assert_eq!(reached, Ok(server), "{situation}, host {host}");
            } else {
                assert!(reached.is_err(), "{situation}, host {host}: {reached:?}");
            }
        }
        assert_eq!(leaked(captures), [""; 0], "{situation}");
    };
    let ip = |line: &str| drop(internet.run(CLIENT, &[&["ip"], &*line.split(' ').collect::<Vec<_>>()].concat()));
    check("set up", true);
    kill_daemon(internet);
    check("killed", false);
    start_daemon(internet);
    check("started again", true);
    for (situation, add, delete) in [
        // A hostile network that claims to be the one that somebody asks for, and a route of DHCP's option 121.
        ("a local network", "address add 198.51.100.77/24 dev p3", "address del 198.51.100.77/24 dev p3"),
        ("option 121", "route add 198.51.100.0/24 via 192.168.1.1 dev p3", "route del 198.51.100.0/24 dev p3"),
        ("a host route", "route add 198.51.100.7 via 100.64.0.1 dev p4", "route del 198.51.100.7 dev p4"),
    ] {
        ip(add);
        check(situation, false);
        if add.contains(" via ") {
            let told = internet.checked(CLIENT);
            assert!(told.contains("problem: a route leads 198.51.100."), "{situation}: {told}");
        }
        ip(delete);
        check("as before", true);
    }
    // A line goes away, and comes back in another network.
    internet.run(ROUTER, &["ip", "address", "add", "192.168.7.1/24", "dev", "p3"]);
    ip("link set p3 down");
    check("a line is away", true);
    ip("address flush dev p3 scope global");
    ip("link set p3 up");
    ip("address add 192.168.7.57/24 dev p3");
    ip("route add default via 192.168.7.1 dev p3 metric 100");
    let before = captures[0].tunnel_datagrams();
    assert!(eventually(|| captures[0].tunnel_datagrams() > before + 10), "the line is used again");
    check("roamed", true);
    // The server has no IPv6 outside, the uplink has.
    internet.run(ROUTER, &["ip", "address", "add", "2001:db8:9::1/64", "dev", "p3", "nodad"]);
    ip("address add 2001:db8:9::2/64 dev p3 nodad");
    ip("route add default via 2001:db8:9::1 dev p3");
    assert!(!internet.output(CLIENT, &["ping", "-6", "-c1", "-W1", "2001:db8:9::1"]).status.success());
    check("IPv6", true);
}

#[test]
fn a_portal_is_reached_for_a_while_by_its_command_and_logins_are_answered() {
    let Some(internet) = Internet::new() else { return };
    internet.set_up("", "");
    let captures = capture(&internet);
    let at = |port: u16| format!("192.168.1.1:{port}").parse().unwrap();
    let asks = |port: u16| internet.ask_at(CLIENT, at(port), ROUTER, at(port)).is_ok();
    assert!(!asks(80));
    assert_eq!(leaked(&captures), [""; 0]);
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
