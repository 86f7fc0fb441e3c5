//! `ropewalk check --live`, of tunnels that are up and of such that are not.

use crate::causes::{DISTANT, LINKS, make_distant, run};
use crate::tunnel_pair::{IPV4, PORT, TunnelPair, program};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use std::net::UdpSocket;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testing::eventually;
use testnet::HostilePeer;

/// Exit code and standard output on a host.
pub(crate) fn check(pair: &TunnelPair, host: usize) -> (Option<i32>, String) {
    let file = pair.folder(host).join("rw0.toml");
    // /sys shows the devices of the host that mounted it.
    let script = "mount -t sysfs sysfs /sys && exec \"$@\"";
    let mut command = pair.testbed.command(host, "unshare");
    command.args(["--mount", "sh", "-c", script, "sh", &program(), "check", "--live"]).arg(file);
    let output = command.env("ROPEWALK_RUN", pair.folder(host)).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn problems_of_a_tunnel_that_is_not_up_are_found_with_remedies() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    make_distant(&pair);
    let [own, peer] = [LEFT, RIGHT].map(|host| pair.testbed.v4(0, host).to_string());
    pair.edit(LEFT, |text| {
        let text = text.replace(&format!("endpoint = \"{peer}\""), &format!("endpoint = \"{own}\""));
        text.replace(&format!("\"{}\"", pair.testbed.v4(1, RIGHT)), &format!("\"{DISTANT}\""))
    });
    let (code, text) = check(&pair, LEFT);
    assert_eq!(code, Some(4), "{text}");
    let p0 = format!("problem: path p0: `endpoint` is an address of this host itself: {own}\n  remedy: ");
    let p1 = format!("problem: path p1: no route to {DISTANT} from {} by p1\n", pair.testbed.v4(1, LEFT));
    assert!(text.contains(&p0) && text.contains(&p1), "{text}");
    // The right host waits for its peer, behind a firewall.
    run(&pair, RIGHT, "nft add table inet t");
    run(&pair, RIGHT, "nft add chain inet t c { type filter hook input priority 0 ; }");
    let (code, text) = check(&pair, RIGHT);
    assert!(code == Some(0) && text.ends_with("no problem found before its start\n"), "{text}");
    run(&pair, RIGHT, "nft add rule inet t c udp dport 4754 drop");
    let (code, text) = check(&pair, RIGHT);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("problem: the firewall lets no UDP 4754 in: `udp dport 4754 drop`"), "{text}");
    run(&pair, RIGHT, "nft delete table inet t");
    // Nothing listens at the peer, whose host says so.
    pair.edit(LEFT, |text| text.replace(&format!("\"{DISTANT}\""), &format!("\"{}\"", pair.testbed.v4(1, RIGHT))));
    let is_refused = |text: &str| text.contains("problem: path p1: ") && text.contains("(ICMP port unreachable)");
    assert!(eventually(|| is_refused(&check(&pair, LEFT).1)), "{}", check(&pair, LEFT).1);
    // Then something does.
    pair.start(RIGHT);
    pair.wait_until_started(RIGHT);
    assert!(check(&pair, LEFT).1.contains("path p1: a datagram leaves, and is not refused\n"));
}

#[test]
fn a_small_mtu_a_strict_rp_filter_and_a_clock_that_is_behind_are_found_on_automatic_uplinks_too() {
    let Some(pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    let with_paths = std::fs::read_to_string(pair.folder(LEFT).join("rw0.toml")).unwrap();
    let without_paths = {
        let text = with_paths[..with_paths.find("\n[[path]]").unwrap()].to_owned();
        let endpoint = format!("uplinks = \"auto\"\n\n[[peer]]\nendpoint = \"{}\"\n", pair.testbed.v4(0, RIGHT));
        text.replacen("\n[[peer]]\n", &endpoint, 1)
    };
    for link in 0..LINKS.len() {
        let [gateway, device] = [pair.testbed.v4(link, RIGHT).to_string(), pair.testbed.device(link)];
        run(&pair, LEFT, &format!("ip route add default via {gateway} dev {device} metric {}", link + 1));
    }
    for file in [with_paths, without_paths] {
        pair.edit(LEFT, |_| file);
        for (mistake, cure, problem) in [
            ("ip link set p1 mtu 1200", "ip link set p1 mtu 1500", "p1 has an MTU of 1200 bytes, less than 1280\n"),
            (
                "sysctl -qw net.ipv4.conf.p1.rp_filter=1",
                "sysctl -qw net.ipv4.conf.p1.rp_filter=0",
                "rp_filter = 1 on p1 drops replies on all uplinks but one\n  remedy: `sysctl net.ipv4.conf.p1.rp_filter=2`\n",
            ),
            ("touch -d 2099-01-01 FILE", "touch FILE", "the clock is wrong: "),
        ] {
            let path = pair.folder(LEFT).join("rw0.toml");
            let [mistake, cure] = [mistake, cure].map(|line| line.replace("FILE", path.to_str().unwrap()));
            run(&pair, LEFT, &mistake);
            let (code, text) = check(&pair, LEFT);
            assert!(code == Some(4) && text.contains(&format!("problem: {problem}")), "{problem}: {text}");
            run(&pair, LEFT, &cure);
            assert!(!check(&pair, LEFT).1.contains(problem), "{problem}");
        }
    }
}

#[test]
fn a_peer_whose_clock_was_set_back_is_told_of_where_its_handshakes_are_refused() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS[..1]) else { return };
    pair.start(RIGHT);
    pair.wait_until_started(RIGHT);
    let [left, right] = [LEFT, RIGHT].map(|host| pair.private_key(host).to_owned());
    // The left host's earlier run, an hour later by its clock.
    let mut earlier = HostilePeer::new(left.parse().unwrap(), keys::pubkey(&right).unwrap().parse().unwrap());
    let socket = pair.testbed.within(LEFT, || Ok(UdpSocket::bind((pair.testbed.v4(0, LEFT), 7777))?)).unwrap();
    socket.connect((pair.testbed.v4(0, RIGHT), PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let start = Instant::now();
    let has_session = || {
        let now = units::Instant(start.elapsed().as_nanos() as u64);
        let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(3600);
        if let Some(initiation) = earlier.initiation(now, wall_clock.as_nanos() as u64) {
            socket.send(initiation.as_bytes()).unwrap();
        }
        let mut buffer = [0; 65_536];
        if let Ok(len) = socket.recv(&mut buffer) {
            earlier.receive(now, &mut buffer[..len]);
        }
        earlier.has_session()
    };
    assert!(eventually(has_session));
    pair.start(LEFT);
    let text = || check(&pair, RIGHT).1;
    assert!(eventually(|| text().contains("problem: a handshake arrived whose time is not later")), "{}", text());
    assert!(text().contains("  remedy: set the clock of the other end"), "{}", text());
    let is_told = |(code, text): (_, String)| code == Some(4) && text.contains("the clock here was set back");
    assert!(eventually(|| is_told(check(&pair, LEFT))), "{}", check(&pair, LEFT).1);
}

#[test]
fn right_after_its_start_it_waits_until_the_daemon_knows() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS[..1]) else { return };
    pair.start(LEFT);
    pair.wait_until_started(LEFT);
    // The peer, which starts later, refuses the first handshakes.
    let checks = std::thread::scope(|scope| {
        let check = scope.spawn(|| check(&pair, LEFT));
        let mut right = pair.command(RIGHT).arg("up").arg(pair.folder(RIGHT).join("rw0.toml")).spawn().unwrap();
        let result = check.join().unwrap();
        pair.client(RIGHT).request("POST", "/v1/down", "").unwrap();
        right.wait().unwrap();
        result
    });
    assert_eq!(checks.0, Some(0), "{}", checks.1);
}

#[test]
fn of_a_tunnel_that_is_up_it_tells_what_the_daemon_knows() {
    let Some(mut pair) = TunnelPair::up(IPV4, &LINKS[..1]) else { return };
    let (code, text) = check(&pair, LEFT);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("path p0: up, RTT ") && text.ends_with("no problem found\n"), "{text}");
    pair.stop(RIGHT);
    assert!(eventually(|| check(&pair, LEFT).0 == Some(4)), "{:?}", check(&pair, LEFT));
}
