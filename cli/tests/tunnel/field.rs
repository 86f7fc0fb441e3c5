//! What people use a tunnel for, and what others do to its host: networks behind clients, forwarded ports, sites, names; a
//! firewall that is loaded again, forwarding that is switched off.

use crate::internet::{
    CLIENT, Internet, LAN, OFFICE, OFFICE_LAN, SERVER, SERVER_ADDRESS, SERVER_ADDRESS_V6, WEB, WEB_ADDRESS,
    WEB_ADDRESS_V6,
};
use crate::setup::client_command;
use crate::tunnel_pair::program;
use std::net::IpAddr;
use testing::eventually;

const LAN_ADDRESS: &str = "192.168.50.10";
const OFFICE_LAN_ADDRESS: &str = "192.168.60.10";

/// Where a host's programs that a test starts write.
const STARTED_LOG: &str = "/var/log/started.log";

impl Internet {
    /// Sets a server and the client up, with options.
    pub(crate) fn set_up(&self, server: &str, client: &str) {
        let output = self.ropewalk(SERVER, &format!("setup server --yes {server}"));
        self.ropewalk(CLIENT, &format!("{} --yes {client}", client_command(&output)));
    }

    /// Whose address a connection has at the host that it reaches.
    fn source(&self, from: usize, host: usize, address: &str) -> Result<IpAddr, String> {
        self.ask(from, host, address).map(|(source, _)| source)
    }

    /// Whether one echo request is answered.
    pub(crate) fn pings(&self, host: usize, address: &str) -> bool {
        self.output(host, &["ping", "-c1", "-W2", address]).status.success()
    }

    /// What `check --live` says.
    pub(crate) fn checked(&self, host: usize) -> String {
        let output = self.output(host, &[&program(), "check", "--live", "rw0"]);
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Starts the daemon of a setup again, after `change`.
    pub(crate) fn restart_after(&self, host: usize, change: impl FnOnce()) {
        self.ropewalk(host, "down rw0");
        change();
        self.start(host, "up /etc/ropewalk/rw0.toml");
        let shows = || self.output(host, &[&program(), "show", "rw0"]).status.success();
        assert!(eventually(shows), "{}", self.run(host, &["cat", STARTED_LOG]));
    }

    /// Starts the program in the background.
    pub(crate) fn start(&self, host: usize, line: &str) {
        self.run(host, &["sh", "-c", &format!("setsid {} {line} >> {STARTED_LOG} 2>&1 &", program())]);
    }

    /// Kills the processes of a host that run the program with this line, as a crash would, and waits until they have
    /// closed what they had open: a process without a command line may still have to.
    pub(crate) fn kill(&self, host: usize, line: &str) {
        // The brackets keep the pattern from finding the script itself.
        let (first, rest) = line.split_at(1);
        let script = format!(
            "pids=$(pgrep --ns $$ --nslist net -f '[{first}]{rest}') && kill -9 $pids && \
             while kill -0 $pids 2> /dev/null; do sleep 0.01; done"
        );
        self.run(host, &["sh", "-c", &script]);
    }
}

fn address(text: &str) -> IpAddr {
    text.trim_matches(['[', ']']).parse().unwrap()
}

#[test]
fn a_network_behind_a_client_has_internet_and_a_forwarded_port_keeps_the_address_of_its_sender() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    let server = Ok(address(SERVER_ADDRESS));
    assert_eq!(internet.source(LAN, WEB, WEB_ADDRESS), server);
    assert_eq!(internet.source(LAN, WEB, WEB_ADDRESS_V6), Ok(address(SERVER_ADDRESS_V6)));
    assert_eq!(internet.source(CLIENT, WEB, WEB_ADDRESS), server);
    let checked = internet.checked(CLIENT);
    for line in [
        "IPv4 beyond the server: 9.9.9.9 answers 10.77.0.2\n",
        "IPv4 beyond the server: 9.9.9.9 answers 192.168.50.1\n",
        "IPv6 beyond the server: 2620:fe::fe answers fd50::1\n",
        "no problem found\n",
    ] {
        assert!(checked.contains(line), "{line}: {checked}");
    }

    internet.ropewalk(
        SERVER,
        &format!("setup server --forward tcp:8080={LAN_ADDRESS}:7777 --forward tcp:8081=client1:7777"),
    );
    let ask = |port: u16, host, listen: &str| {
        let [outside, listen] = [(SERVER_ADDRESS, port), (listen, 7777)].map(|(ip, port)| (address(ip), port).into());
        internet.ask_at(WEB, outside, host, listen).map(|(source, _)| source)
    };
    assert_eq!(ask(8080, LAN, LAN_ADDRESS), Ok(address(WEB_ADDRESS)), "the sender's own address");
    assert_eq!(ask(8081, CLIENT, "10.77.0.2"), Ok(address(WEB_ADDRESS)));
    internet.ropewalk(SERVER, "setup server --remove-forward tcp:8080");
    assert!(ask(8080, LAN, LAN_ADDRESS).is_err());
    for (line, phrase) in [
        ("setup server --forward tcp:80=192.168.99.9:80", "behind no client"),
        ("setup server --forward tcp:80=nobody", "no client `nobody`"),
        ("setup server --forward udp:4754=client1", "own port"),
        ("setup server --add two --lan 192.168.50.128/25", "the client client1 has"),
        ("setup server --lan 192.168.99.0/24", "--client NAME"),
    ] {
        let (code, stderr) = internet.refusal(SERVER, line);
        assert!(code == 2 && stderr.contains(phrase), "{line}: {stderr}");
    }
}

#[test]
fn sites_that_the_server_names_reach_each_other_and_other_clients_do_not() {
    let Some(internet) = Internet::with_sites() else { return };
    let output = internet.ropewalk(SERVER, "setup server --yes --client home --lan 192.168.50.0/24");
    internet.ropewalk(CLIENT, &format!("{} --yes --networks 192.168.60.0/24", client_command(&output)));
    let output = internet.ropewalk(SERVER, "setup server --add office --lan 192.168.60.0/24");
    internet.ropewalk(OFFICE, &format!("{} --yes", client_command(&output)));
    assert_eq!(internet.source(LAN, OFFICE_LAN, OFFICE_LAN_ADDRESS), Ok(address(LAN_ADDRESS)));
    assert_eq!(internet.source(OFFICE_LAN, LAN, LAN_ADDRESS), Ok(address(OFFICE_LAN_ADDRESS)));

    // A token that was not used in time leaves no site behind.
    internet.ropewalk(SERVER, "setup server --add late --lan 192.168.70.0/24");
    let rules = || internet.run(SERVER, &["nft", "list", "table", "inet", "ropewalk_rw0"]);
    assert!(rules().contains("192.168.70.0/24"), "{}", rules());
    let expire = "sed -i 's/^token-expires = .*/token-expires = 1/' /var/lib/ropewalk/rw0.peers.toml";
    internet.run(SERVER, &["sh", "-c", expire]);
    internet.ropewalk(SERVER, "setup server --add late");
    assert!(!rules().contains("192.168.70.0/24"), "{}", rules());

    // A client without a network of its own reaches neither, until an option allows it.
    internet.ropewalk(OFFICE, "setup remove --yes");
    let output = internet.ropewalk(SERVER, "setup server --add guest");
    internet.ropewalk(OFFICE, &format!("{} --yes --lan none", client_command(&output)));
    assert!(
        internet.pings(OFFICE, "10.77.0.1")
            && !internet.pings(OFFICE, LAN_ADDRESS)
            && !internet.pings(OFFICE, "10.77.0.2")
    );
    internet.ropewalk(SERVER, "setup server --between-clients yes");
    assert!(internet.pings(OFFICE, "10.77.0.2"));
}

#[test]
fn a_network_that_another_client_has_too_is_translated_by_its_own() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    for line in [
        "ip address flush dev p7 scope global",
        "ip address add 192.168.50.1/24 dev p7",
        "sysctl -qw net.ipv4.ip_forward=1",
    ] {
        internet.run(OFFICE, &line.split(' ').collect::<Vec<_>>());
    }
    for line in ["ip address add 192.168.50.77/24 dev p7", "ip route replace default via 192.168.50.1"] {
        internet.run(OFFICE_LAN, &line.split(' ').collect::<Vec<_>>());
    }
    let output = internet.ropewalk(SERVER, "setup server --add office");
    internet.ropewalk(OFFICE, &format!("{} --yes", client_command(&output)));
    let peers = internet.run(SERVER, &["cat", "/var/lib/ropewalk/rw0.peers.toml"]);
    assert_eq!(peers.matches("192.168.50.0/24").count(), 1, "that of client1: {peers}");
    assert_eq!(internet.source(OFFICE_LAN, WEB, WEB_ADDRESS), Ok(address(SERVER_ADDRESS)));
}

#[test]
fn what_others_do_to_nftables_and_forwarding_is_put_back_and_told() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    let drop = "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }";
    let refuse = "add table inet fw; add chain inet fw f { type filter hook forward priority 9; }; add rule inet fw f counter reject";
    for host in [SERVER, CLIENT] {
        for (words, told) in [
            (&["nft", "flush", "ruleset"][..], "is missing (something flushed the ruleset)"),
            (&["nft", "delete", "table", "inet", "ropewalk_rw0"], "is missing"),
            (&["nft", "flush", "chain", "inet", "ropewalk_rw0", "forward"], "was changed"),
            (&["sysctl", "-qw", "net.ipv4.ip_forward=0"], "net.ipv4.ip_forward is 0"),
            (&["nft", drop], "chain ip filter FORWARD drops"),
            (&["nft", refuse], "chain inet fw f drops"),
        ] {
            internet.run(host, words);
            let events = || internet.ropewalk(host, "show rw0");
            assert!(eventually(|| events().contains(told)), "{words:?}: {}", events());
            let is_back = || internet.output(host, &["nft", "list", "chain", "inet", "ropewalk_rw0", "forward"]);
            assert!(eventually(|| is_back().status.success()), "{words:?} at {host}");
            assert!(eventually(|| internet.pings(LAN, WEB_ADDRESS)), "{words:?} at {host}");
        }
    }
    for host in [SERVER, CLIENT] {
        assert!(internet.checked(host).ends_with("no problem found\n"), "{}", internet.checked(host));
    }
    // Rules and settings of the administrator's stay, and nothing of ours does.
    for host in [CLIENT, SERVER] {
        internet.ropewalk(host, "setup remove --yes");
        let rules = internet.run(host, &["nft", "list", "ruleset"]);
        assert!(rules.contains("chain FORWARD") && !rules.contains("rw0"), "{rules}");
    }
}

#[test]
fn a_firewall_that_is_moved_before_a_start_does_not_keep_the_daemon_from_starting() {
    let Some(internet) = Internet::new() else { return };
    let firewall = |table: &str| {
        format!(
            "add table inet {table}; add chain inet {table} input {{ type filter hook input priority 0; policy drop; }}; \
             add rule inet {table} input ct state established,related accept; add rule inet {table} input meta l4proto 58 accept"
        )
    };
    internet.run(SERVER, &["nft", &firewall("fw")]);
    internet.set_up("", "");
    internet.restart_after(SERVER, || {
        internet.run(SERVER, &["nft", &format!("delete table inet fw; {}", firewall("firewall"))]);
    });
    assert!(eventually(|| internet.pings(CLIENT, WEB_ADDRESS)));
}

#[test]
fn check_tells_at_which_end_packets_are_lost_and_whose() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", "--lan p5");
    // Nobody puts anything back.
    [SERVER, CLIENT].iter().for_each(|host| internet.kill(*host, "setup keep rw0"));
    internet.run(SERVER, &["nft", "flush", "ruleset"]);
    let [client, server] = [CLIENT, SERVER].map(|host| internet.checked(host));
    assert!(
        client.contains("problem: the tunnel works, but no packet returns from beyond the server (IPv4)\n"),
        "{client}"
    );
    assert!(server.contains("problem: the nftables table ropewalk_rw0 is missing"), "{server}");
    assert!(server.contains("problem: `ropewalk setup keep rw0` does not run"), "{server}");
    internet.start(SERVER, "setup keep rw0");
    assert!(eventually(|| internet.checked(SERVER).ends_with("no problem found\n")), "{}", internet.checked(SERVER));

    // The server does not know the network any more.
    let edit = "sed -i 's#, \"192.168.50.0/24\"##' /var/lib/ropewalk/rw0.peers.toml";
    internet.run(SERVER, &["sh", "-c", edit]);
    internet.ropewalk(SERVER, "reload rw0");
    assert!(!internet.pings(LAN, WEB_ADDRESS));
    let [client, server] = [CLIENT, SERVER].map(|host| internet.checked(host));
    assert!(
        client.contains("problem: 192.168.50.1, this machine in the network behind p5, gets no answer"),
        "{client}"
    );
    let problem = format!("problem: {LAN_ADDRESS} is not in client1's allowed-ips: ");
    assert!(server.contains(&problem) && server.contains("--client client1 --lan 192.168.50.0/24"), "{server}");
    internet.ropewalk(SERVER, "setup server --client client1 --lan 192.168.50.0/24");
    assert!(eventually(|| internet.pings(LAN, WEB_ADDRESS)));
    assert!(internet.checked(SERVER).ends_with("no problem found\n"), "{}", internet.checked(SERVER));

    internet.run(CLIENT, &["sysctl", "-qw", "net.ipv4.conf.p5.forwarding=0"]);
    let client = internet.checked(CLIENT);
    assert!(
        client.contains("problem: packets of the network behind p5 do not go into the tunnel: the kernel"),
        "{client}"
    );
    internet.run(CLIENT, &["sysctl", "-qw", "net.ipv4.ip_forward=0"]);
    let client = internet.checked(CLIENT);
    assert!(client.contains("problem: net.ipv4.ip_forward is 0"), "{client}");
}

#[test]
fn names_are_asked_through_the_tunnel_while_it_is_up_and_as_before_afterwards() {
    let Some(internet) = Internet::new() else { return };
    let before = "# by hand\nnameserver 192.168.1.1\nsearch example.org\n";
    internet.run(CLIENT, &["sh", "-c", &format!("printf '{}' > /etc/resolv.conf", before.replace('\n', "\\n"))]);
    internet.set_up(&format!("--dns {WEB_ADDRESS}"), "");
    let file = || internet.run(CLIENT, &["cat", "/etc/resolv.conf"]);
    // The other uplink's router is not private; the first one's was there before.
    let set = format!("nameserver {WEB_ADDRESS}\nnameserver 192.168.1.1\nsearch example.org\n");
    assert!(file().ends_with(&set), "{}", file());
    // Nobody answers there.
    let checked = internet.checked(CLIENT);
    assert!(
        checked.contains(&format!("problem: the tunnel's resolver {WEB_ADDRESS} does not answer 10.77.0.2: ")),
        "{checked}"
    );
    // A DHCP client writes it, as for a new lease.
    internet.run(CLIENT, &["sh", "-c", "echo nameserver 100.64.0.1 > /etc/resolv.conf"]);
    assert!(
        eventually(|| file().contains(&format!("nameserver {WEB_ADDRESS}\nnameserver 100.64.0.1\n"))),
        "{}",
        file()
    );
    internet.ropewalk(CLIENT, "down rw0");
    assert!(eventually(|| file() == "nameserver 100.64.0.1\n"), "{}", file());
    internet.ropewalk(CLIENT, "setup remove --yes");
    assert_eq!(file(), "nameserver 100.64.0.1\n");
}

#[test]
fn what_bypasses_the_tunnel_leaves_by_an_uplink_and_nothing_else_does() {
    let Some(internet) = Internet::with_sites() else { return };
    internet.set_up("", &format!("--lan p5 --bypass tcp:7777 --bypass {WEB_ADDRESS}/32"));
    let [router, server] = ["192.0.2.2", SERVER_ADDRESS].map(address);
    assert_eq!(internet.source(CLIENT, WEB, WEB_ADDRESS), Ok(router));
    assert_eq!(internet.source(LAN, WEB, WEB_ADDRESS), Ok(router));
    // Another address and port of that host, which the tunnel carries.
    internet.run(WEB, &["ip", "address", "add", "198.51.100.8/24", "dev", "p1"]);
    let other = "198.51.100.8:7778".parse().unwrap();
    assert_eq!(internet.ask_at(LAN, other, WEB, other).map(|(source, _)| source), Ok(server));
    internet.ropewalk(CLIENT, "setup remove --yes");
    let rules = internet.run(CLIENT, &["ip", "rule"]);
    assert_eq!(rules.lines().count(), 3, "{rules}");
}

#[test]
fn a_client_reaches_the_internet_and_nothing_of_the_server_unless_it_is_told() {
    let Some(internet) = Internet::with_sites() else { return };
    // What a server on a cloud has: a metadata service, and a private network.
    for line in [
        "ip link add priv0 type veth peer name priv1",
        "ip link set priv0 up",
        "ip address add 172.20.0.1/24 dev priv0",
        "ip address add 192.0.2.129/28 dev priv0",
        "ip address add 169.254.169.254/32 dev priv0",
    ] {
        internet.run(SERVER, &line.split(' ').collect::<Vec<_>>());
    }
    for relay in [false, true] {
        internet.set_up("", "");
        if relay {
            for host in [SERVER, CLIENT] {
                let add = r#"printf '\n[tunnel]\nrelay = "tcp"\n' >> /etc/ropewalk/rw0.toml"#;
                internet.restart_after(host, || drop(internet.run(host, &["sh", "-c", add])));
            }
        }
        assert!(eventually(|| internet.pings(CLIENT, "10.77.0.1")));
        assert_eq!(internet.source(CLIENT, WEB, WEB_ADDRESS), Ok(address(SERVER_ADDRESS)), "relay: {relay}");
        for target in ["169.254.169.254", "172.20.0.1", "192.0.2.129", SERVER_ADDRESS, "10.77.0.1"] {
            let answer = internet.ask(CLIENT, SERVER, target);
            assert!(answer.is_err(), "relay: {relay}: {target}: {answer:?}");
        }
        internet.ropewalk(SERVER, "setup server --lan 172.20.0.0/24 --lan 10.77.0.1/32");
        for target in ["172.20.0.1", "10.77.0.1"] {
            assert!(internet.ask(CLIENT, SERVER, target).is_ok(), "relay: {relay}: {target}");
        }
        [CLIENT, SERVER].iter().for_each(|host| drop(internet.ropewalk(*host, "setup remove --yes")));
    }
}
