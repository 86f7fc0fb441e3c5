//! What goes through a tunnel between hosts of the Internet: datagrams, frames, names, another bond; and a second host that has
//! the client's key.

use crate::conversation::Conversation;
use crate::internet::{CLIENT, Internet, LAN, OFFICE, ROUTER, SERVER, WEB, WEB_ADDRESS};
use crate::lines::{check_live, join, on, status, up};
use crate::nat64::Resolver;
use crate::setup::client_command;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use testing::{Reason, eventually, skip};

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
        // Each of them wants a session for itself.
        [CLIENT, OFFICE].iter().for_each(|host| _ = internet.pings(*host, WEB_ADDRESS));
        internet.events(SERVER).iter().any(|event| event.message.starts_with(&text))
            && internet.ropewalk(SERVER, "show rw0").contains(&text)
    };
    assert!(eventually(is_told), "{:#?}\n{}", internet.events(SERVER), internet.ropewalk(SERVER, "show rw0"));
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
