//! Lines as people have them: login pages, carriers that forget, modems that look the same, small MTUs, networks that change,
//! a closed lid, one bond behind another; and what goes through the tunnel over them.

use crate::internet::{CLIENT, Internet, LAN, OFFICE, ROUTER, SERVER, WEB, WEB_ADDRESS};
use crate::lines::{check_live, join, on, renumber, status, up, wait_for_paths};
use crate::nat64::Resolver;
use crate::setup::client_command;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread::{self, JoinHandle};
use testing::{MINUTE, Reason, eventually, skip};

/// A TCP connection from a host to the web host, which sends everything back.
struct Conversation {
    stream: TcpStream,
    server: Option<JoinHandle<()>>,
    rounds: u8,
}

impl Conversation {
    fn new(internet: &Internet, from: usize) -> Self {
        let address: SocketAddr = format!("{WEB_ADDRESS}:7000").parse().unwrap();
        let listener = internet.testbed.within(WEB, move || Ok(TcpListener::bind(address)?)).unwrap();
        let connect = move || Ok(TcpStream::connect_timeout(&address, MINUTE)?);
        let stream = internet.testbed.within(from, connect).unwrap();
        stream.set_read_timeout(Some(MINUTE)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let echo = move || drop(std::io::copy(&mut &accepted, &mut &accepted));
        Self { stream, server: Some(thread::spawn(echo)), rounds: 0 }
    }

    /// Whether 64 kB more come back as they were sent.
    fn goes_on(&mut self) -> bool {
        self.rounds += 1;
        let (sent, mut received) = (vec![self.rounds; 64_000], vec![0; 64_000]);
        self.stream.write_all(&sent).and_then(|()| self.stream.read_exact(&mut received)).is_ok() && received == sent
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.server.take().map(JoinHandle::join);
    }
}

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
    let signal = |name: &str| internet.run(CLIENT, &["pkill", name, "-f", "up /etc/ropewalk/rw0.toml"]);
    signal("-STOP");
    // The server has forgotten the session by then.
    internet.restart_after(SERVER, || {});
    renumber(&internet, "172.20.10.1/28", "172.20.10.3/28");
    on(&internet, &[(CLIENT, "ip link set p4 down")]);
    signal("-CONT");
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
    let found = || up(&internet, CLIENT).into_iter().map(|path| path.pmtu_bytes).collect::<Vec<_>>();
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
fn datagrams_of_every_size_and_their_dscp_pass_and_multicast_is_dropped_by_its_name() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    let address: SocketAddr = format!("{WEB_ADDRESS}:7000").parse().unwrap();
    let server = internet.testbed.within(WEB, move || Ok(UdpSocket::bind(address)?)).unwrap();
    let echo = thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((len @ 1.., from)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&buffer[..len], from);
        }
    });
    let client = internet.testbed.within(LAN, || Ok(UdpSocket::bind("192.168.50.10:0")?)).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let mut buffer = vec![0; 65_536];
    for size in [1400, 1472, 1473, 4000, 8000, 20_000, 65_000] {
        let sent: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
        let mut comes_back = || {
            client.send_to(&sent, address).is_ok() && client.recv(&mut buffer).is_ok_and(|len| buffer[..len] == sent)
        };
        assert!(eventually(&mut comes_back), "{size} bytes");
    }
    client.send_to(&[], address).unwrap();
    echo.join().unwrap();

    let count = "add table ip seen; add chain ip seen c { type filter hook prerouting priority 0; }; \
                 add rule ip seen c udp dport 4754 ip dscp ef counter";
    internet.run(ROUTER, &["nft", count]);
    let marked = || !internet.run(ROUTER, &["nft", "list", "chain", "ip", "seen", "c"]).contains("packets 0 ");
    assert!(!marked());
    assert!(internet.output(LAN, &["ping", "-c1", "-W5", "-Q", "0xb8", WEB_ADDRESS]).status.success());
    assert!(marked(), "the outer header has the inner one's DSCP");

    let dropped = || {
        status(&internet, SERVER)
            .drops
            .iter()
            .filter(|drop| drop.reason == "no-peer")
            .map(|drop| drop.packets)
            .sum::<u64>()
    };
    let before = dropped();
    internet.output(SERVER, &["ping", "-c2", "-W1", "-I", "rw0", "-t", "8", "239.1.2.3"]);
    assert!(dropped() >= before + 2, "{}", internet.ropewalk(SERVER, "show rw0"));
}

#[test]
fn vxlan_carries_frames_of_1500_bytes_between_the_ends() {
    let Some(internet) = Internet::new() else { return };
    internet.set_up("", "--local-networks");
    internet.ropewalk(SERVER, "setup server --lan 10.77.0.1/32");
    for (host, own, other) in [(SERVER, 1, 2), (CLIENT, 2, 1)] {
        internet.run(host, &["sed", "-i", "s/^\\[interface\\]/[interface]\\nmtu = 1550/", "/etc/ropewalk/rw0.toml"]);
        internet.ropewalk(host, "reload rw0");
        let add = format!(
            "ip link add vx0 mtu 1500 type vxlan id 5 local 10.77.0.{own} remote 10.77.0.{other} dstport 4789 dev rw0"
        );
        if !internet.output(host, &add.split(' ').collect::<Vec<_>>()).status.success() {
            return skip(Reason::Kernel, "no VXLAN");
        }
        on(&internet, &[(host, &format!("ip address add 172.30.0.{own}/24 dev vx0")), (host, "ip link set vx0 up")]);
    }
    let pings = |from: usize, to: &str| {
        let words = ["ping", "-n", "-c1", "-W2", "-M", "do", "-s", "1472", to];
        internet.output(from, &words).status.success()
    };
    assert!(eventually(|| pings(CLIENT, "172.30.0.1")), "{}", internet.ropewalk(CLIENT, "show rw0"));
    assert!(eventually(|| pings(SERVER, "172.30.0.2")), "{}", internet.ropewalk(SERVER, "show rw0"));
}

#[test]
fn a_bond_is_a_line_of_another_bond_to_the_same_server() {
    let Some(internet) = Internet::with_sites() else { return };
    join(&internet, [CLIENT, OFFICE], "inner");
    on(
        &internet,
        &[
            (CLIENT, "ip address add 192.168.51.1/24 dev inner"),
            (OFFICE, "ip address add 192.168.51.2/24 dev inner"),
            (OFFICE, "ip route add default via 192.168.51.1 dev inner metric 300"),
        ],
    );
    internet.set_up("", "--lan inner");
    let output = internet.ropewalk(SERVER, "setup server --add office");
    internet.ropewalk(OFFICE, &format!("{} --yes --lan none", client_command(&output)));
    let names = || up(&internet, OFFICE).into_iter().map(|path| path.name).collect::<Vec<_>>();
    assert!(eventually(|| names() == ["inner", "p6"]), "{}", internet.ropewalk(OFFICE, "show rw0"));
    let mut conversation = Conversation::new(&internet, OFFICE);
    assert!(conversation.goes_on());
    on(&internet, &[(OFFICE, "ip link set p6 down")]);
    assert!(conversation.goes_on(), "over the other bond alone");
}

#[test]
fn two_hosts_with_one_key_are_told_at_the_server_with_the_key() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan none --exclusive no");
    // The office's host is a copy of the client.
    internet.run(OFFICE, &["mkdir", "/etc/ropewalk"]);
    for name in ["rw0.toml", "rw0.key", "rw0.psk"] {
        let text = internet.run(CLIENT, &["sed", "/^user = /d", &format!("/etc/ropewalk/{name}")]);
        let write = format!("umask 077; echo '{}' > /etc/ropewalk/{name}", text.trim());
        internet.run(OFFICE, &["sh", "-c", &write]);
    }
    internet.start(OFFICE, "up /etc/ropewalk/rw0.toml");
    let key = status(&internet, SERVER).peers[0].public_key.clone().unwrap();
    let text = format!("two hosts use the key {key} (client1)");
    let is_told = || {
        // Each of them wants a session of its own.
        [CLIENT, OFFICE].iter().for_each(|host| _ = internet.pings(*host, WEB_ADDRESS));
        internet.ropewalk(SERVER, "show rw0").matches(&text).count() == 2
    };
    assert!(eventually(is_told), "by the peer and in the events: {}", internet.ropewalk(SERVER, "show rw0"));
    let checked = check_live(&internet, SERVER);
    assert!(checked.contains(&format!("problem: {text}")) && checked.contains("--revoke"), "{checked}");
}

#[test]
fn names_resolve_when_the_line_is_gone_whose_router_was_the_resolver() {
    let Some(internet) = Internet::new() else { return };
    internet.run(CLIENT, &["sh", "-c", "echo nameserver 192.168.1.1 > /etc/resolv.conf"]);
    let web: IpAddr = WEB_ADDRESS.parse().unwrap();
    let _resolver = Resolver::at(&internet, WEB, &SocketAddr::new(web, 53).to_string(), "2001:db8:64::");
    internet.set_up(&format!("--dns {WEB_ADDRESS}"), "");
    on(&internet, &[(ROUTER, "ip link set p3 down")]);
    let resolves = || internet.output(CLIENT, &["getent", "ahostsv6", "shop.example"]);
    let answer = || String::from_utf8(resolves().stdout).unwrap();
    assert!(eventually(|| answer().starts_with("2001:db8:64::c000:aa ")), "{}", answer());
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
