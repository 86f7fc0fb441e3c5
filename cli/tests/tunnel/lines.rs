//! Uplinks of other shapes than one device with one gateway and one version of IP, networks that overlap, clocks that are
//! behind, and servers with several uplinks: what a user expects of a setup on them.

use crate::causes::{LINKS, run};
use crate::internet::{CLIENT, INTERNET, Internet, ROUTER, SERVER, SERVER_ADDRESS, WEB, WEB_ADDRESS};
use crate::live::check;
use crate::nat64::{Resolver, Translator};
use crate::setup::client_command;
use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::status::{PathState, PathStatus, TunnelStatus};
use lab::testbed::{LEFT, RIGHT};
use std::process::Command;
use testing::{Reason, eventually, skip};

/// Runs commands on hosts.
pub(crate) fn on(internet: &Internet, commands: &[(usize, &str)]) {
    for (host, line) in commands {
        internet.run(*host, &line.split(' ').collect::<Vec<_>>());
    }
}

/// Another link between two hosts, whose devices have one name.
pub(crate) fn join(internet: &Internet, [one, other]: [usize; 2], device: &str) {
    let command = internet.testbed.command(other, "ip");
    let namespace =
        command.get_args().find_map(|word| word.to_str()?.strip_prefix("--net=/run/netns/").map(str::to_owned));
    let namespace = namespace.unwrap_or_else(|| panic!("{command:?} names no namespace"));
    let line = format!("ip link add {device} type veth peer name {device} netns {namespace}");
    internet.testbed.run(one, &line).unwrap();
    [one, other]
        .iter()
        .for_each(|host| drop(internet.testbed.run(*host, &format!("ip link set {device} up")).unwrap()));
}

pub(crate) fn status(internet: &Internet, host: usize) -> TunnelStatus {
    serde_json::from_str(&internet.ropewalk(host, "show rw0 --json")).unwrap()
}

/// The paths of a host's first peer that are up, by their names.
pub(crate) fn up(internet: &Internet, host: usize) -> Vec<PathStatus> {
    let paths = status(internet, host).peers.remove(0).paths;
    let mut up: Vec<_> = paths.into_iter().filter(|path| path.state == PathState::Up).collect();
    up.sort_by(|one, other| one.name.cmp(&other.name));
    up
}

#[track_caller]
pub(crate) fn wait_for_paths(internet: &Internet, names: &[&str]) {
    let are_up = || up(internet, CLIENT).iter().map(|path| path.name.clone()).collect::<Vec<_>>() == names;
    assert!(eventually(are_up), "{names:?}: {}", internet.ropewalk(CLIENT, "show rw0"));
}

pub(crate) fn check_live(internet: &Internet, host: usize) -> String {
    let words = [&crate::tunnel_pair::program(), "check", "--live", "/etc/ropewalk/rw0.toml"];
    String::from_utf8(internet.output(host, &words).stdout).unwrap()
}

/// Whether a host's packets to anywhere go into the tunnel.
fn has_taken_traffic(internet: &Internet, host: usize) -> bool {
    internet.run(host, &["ip", "route"]).contains("0.0.0.0/1 dev rw0")
}

#[test]
fn both_next_hops_of_one_default_route_are_paths_and_a_device_that_is_left_out_is_told() {
    let Some(internet) = Internet::new() else { return };
    on(
        &internet,
        &[
            (CLIENT, "ip route del default"),
            (CLIENT, "ip route del default"),
            (CLIENT, "ip route add default nexthop via 192.168.1.1 dev p3 nexthop via 100.64.0.1 dev p4"),
            (CLIENT, "ip link add wg9 type veth peer name wg8"),
            (CLIENT, "ip link set wg8 up"),
            (CLIENT, "ip link set wg9 up"),
            (CLIENT, "ip route add default dev wg9 metric 900"),
        ],
    );
    let output = internet.ropewalk(SERVER, "setup server --yes");
    let output = internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    assert!(output.contains("over 2 of 2 paths"), "{output}");
    let left_out = "wg9 has a default route, but is not a path: its name is on the list";
    let shown = internet.ropewalk(CLIENT, "show rw0");
    for text in [output, shown, check_live(&internet, CLIENT)] {
        assert!(text.contains(left_out) && text.contains("a [[path]] with `interface = \"wg9\"` adds it"), "{text}");
    }
    assert!(internet.ask(CLIENT, WEB, WEB_ADDRESS).is_ok());
}

#[test]
fn a_bridge_a_vlan_and_a_second_gateway_of_one_device_are_paths() {
    let Some(internet) = Internet::new() else { return };
    // Not every kernel has VLANs: to the daemon one is a device with such a name.
    join(&internet, [CLIENT, ROUTER], "p4.7");
    on(
        &internet,
        &[
            (CLIENT, "ip address flush dev p3 scope global"),
            (CLIENT, "ip link add br-wan type bridge"),
            (CLIENT, "ip link set p3 master br-wan"),
            (CLIENT, "ip link set br-wan up"),
            (CLIENT, "ip address add 192.168.1.23/24 dev br-wan"),
            (CLIENT, "ip address add 192.168.9.23/24 dev br-wan"),
            (ROUTER, "ip address add 192.168.9.1/24 dev p3"),
            (CLIENT, "ip route add default via 192.168.1.1 dev br-wan metric 100"),
            (CLIENT, "ip route add default via 192.168.9.1 dev br-wan metric 300"),
            (CLIENT, "ip address flush dev p4 scope global"),
            (ROUTER, "ip address flush dev p4 scope global"),
            (ROUTER, "ip address add 100.64.0.1/24 dev p4.7"),
            (CLIENT, "ip address add 100.64.0.23/24 dev p4.7"),
            (CLIENT, "ip route add default via 100.64.0.1 dev p4.7 metric 200"),
        ],
    );
    let output = internet.ropewalk(SERVER, "setup server --yes");
    let output = internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    assert!(output.contains("over 3 of 3 paths"), "{output}");
    wait_for_paths(&internet, &["br-wan", "br-wan-192.168.9.1", "p4.7"]);
    // Each of the two leaves by its own gateway.
    let routed = internet.run(CLIENT, &["ip", "route", "get", SERVER_ADDRESS, "from", "192.168.9.23", "oif", "br-wan"]);
    assert!(routed.contains("via 192.168.9.1 "), "{routed}");
    assert!(internet.ask(CLIENT, WEB, WEB_ADDRESS).is_ok());
}

#[test]
fn traffic_that_is_taken_on_trial_goes_back_by_itself_and_stays_once_it_is_confirmed() {
    let Some(internet) = Internet::new() else { return };
    let before = internet.traces(CLIENT);
    let output = internet.ropewalk(SERVER, "setup server --yes");
    let command = client_command(&output);
    let login = "SSH_CONNECTION=198.51.100.7 50022 192.168.1.23 22";
    let program = crate::tunnel_pair::program();
    let with_login = |options: &str| {
        let words: Vec<_> = command.split(' ').chain(options.split(' ')).collect();
        internet.run(CLIENT, &[&["env", login, &program], &*words].concat())
    };
    let plan = with_login("--dry-run");
    assert!(plan.contains("comes from 198.51.100.7 (SSH)") && plan.contains("within 180 s"), "{plan}");
    assert!(with_login("--dry-run --yes").contains("--yes assumes"));
    // A neighbour's login does not go through the tunnel.
    let words: Vec<_> = command.split(' ').chain(["--dry-run"]).collect();
    let neighbour = "SSH_CONNECTION=192.168.1.77 50022 192.168.1.23 22";
    let plan = internet.run(CLIENT, &[&["env", neighbour, &program], &*words].concat());
    assert!(!plan.contains("(SSH)"), "{plan}");

    let output = with_login("--yes --confirm-within 1");
    assert!(output.contains("ropewalk setup confirm --name rw0"), "{output}");
    assert!(eventually(|| !has_taken_traffic(&internet, CLIENT)), "{}", internet.run(CLIENT, &["ip", "route"]));
    wait_for_paths(&internet, &["p3", "p4"]);
    assert_eq!(internet.ropewalk(CLIENT, "setup confirm"), "rw0: confirmed\n");
    assert!(has_taken_traffic(&internet, CLIENT));
    assert!(internet.ask(CLIENT, WEB, WEB_ADDRESS).is_ok());
    // Also after a restart: the file has it.
    assert!(internet.run(CLIENT, &["cat", "/etc/ropewalk/rw0.toml"]).contains("\"0.0.0.0/0\""));
    internet.ropewalk(CLIENT, "setup remove --yes");
    assert_eq!(internet.traces(CLIENT), before);
}

#[test]
fn a_set_up_through_which_the_server_does_not_answer_takes_no_traffic() {
    let Some(internet) = Internet::new() else { return };
    let output = internet.ropewalk(SERVER, "setup server --yes");
    // The first connection enrols; the one that tests the tunnel is dropped.
    for line in [
        "add table inet drops",
        "add chain inet drops output { type filter hook output priority 0 ; }",
        "add rule inet drops output tcp dport 4754 tcp flags syn limit rate over 1/day burst 1 packets drop",
    ] {
        internet.run(CLIENT, &["nft", line]);
    }
    let (code, stderr) = internet.refusal(CLIENT, &format!("{} --yes", client_command(&output)));
    assert!(code == 4 && stderr.contains("`ropewalk setup remove` undoes"), "{stderr}");
    assert!(!has_taken_traffic(&internet, CLIENT));
    internet.run(CLIENT, &["nft", "delete table inet drops"]);
    let output = internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    assert!(output.contains("over 2 of 2 paths") && has_taken_traffic(&internet, CLIENT), "{output}");
}

/// The home network of the client becomes another one, in which it has an address.
pub(crate) fn renumber(internet: &Internet, router: &str, client: &str) {
    let gateway = router.split('/').next().unwrap();
    on(
        internet,
        &[
            (ROUTER, "ip address flush dev p3 scope global"),
            (CLIENT, "ip address flush dev p3 scope global"),
            (ROUTER, &format!("ip address add {router} dev p3")),
            (CLIENT, &format!("ip address add {client} dev p3")),
            (CLIENT, &format!("ip route add default via {gateway} dev p3 metric 100")),
        ],
    );
}

#[test]
fn an_uplink_with_the_tunnels_own_network_works_or_is_refused_with_the_remedy() {
    let Some(internet) = Internet::new() else { return };
    let output = internet.ropewalk(SERVER, "setup server --yes");
    let command = format!("{} --yes", client_command(&output));
    renumber(&internet, "10.77.0.254/24", "10.77.0.1/24");
    let (code, stderr) = internet.refusal(CLIENT, &command);
    assert!(code == 4 && stderr.contains("p3 has the address 10.77.0.1") && stderr.contains("--subnet"), "{stderr}");
    renumber(&internet, "10.77.0.254/24", "10.77.0.50/24");
    let output = internet.ropewalk(CLIENT, &command);
    let overlap = "p3 has the network 10.77.0.0/24, which is the tunnel's, too";
    assert!(output.contains(overlap) && output.contains("over 2 of 2 paths"), "{output}");
    assert!(internet.ask(CLIENT, WEB, WEB_ADDRESS).is_ok());
    let server = internet.output(CLIENT, &["ping", "-c1", "-W5", "10.77.0.1"]);
    assert!(server.status.success(), "the server itself, too");
    let checked = check_live(&internet, CLIENT);
    assert!(checked.contains(overlap) && checked.contains("--subnet"), "{checked}");
    // It roams into another network and back.
    renumber(&internet, "192.168.1.1/24", "192.168.1.23/24");
    let is_told = || internet.ropewalk(CLIENT, "show rw0").contains(&format!("  {overlap}"));
    assert!(eventually(|| !is_told()), "{}", internet.ropewalk(CLIENT, "show rw0"));
    renumber(&internet, "10.77.0.254/24", "10.77.0.2/24");
    assert!(eventually(is_told), "{}", internet.ropewalk(CLIENT, "show rw0"));
    wait_for_paths(&internet, &["p3", "p4"]);
    assert!(internet.ask(CLIENT, WEB, WEB_ADDRESS).is_ok());
}

#[test]
fn a_line_with_ipv6_only_reaches_a_server_with_ipv4_only_by_the_prefix_of_its_network() {
    let Some(internet) = Internet::new() else { return };
    on(
        &internet,
        &[
            (CLIENT, "ip address flush dev p4 scope global"),
            (ROUTER, "ip address flush dev p4 scope global"),
            (ROUTER, "sysctl -qw net.ipv6.conf.all.forwarding=1"),
            (ROUTER, "ip address add 2001:db8:8::1/64 dev p4 nodad"),
            (ROUTER, "ip address add 64:ff9b::203.0.113.1/128 dev lo"),
            (ROUTER, "ip address add 2001:db8:64::203.0.113.1/128 dev lo"),
            (CLIENT, "ip address add 2001:db8:8::2/64 dev p4 nodad"),
            (CLIENT, "ip route add default via 2001:db8:8::1 dev p4 metric 200"),
        ],
    );
    let output = internet.ropewalk(SERVER, &format!("setup server --endpoint {SERVER_ADDRESS} --yes"));
    internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    let p4 = || status(&internet, CLIENT).peers[0].paths.iter().find(|path| path.name == "p4").cloned().unwrap();
    let text = "p4 has IPv6 only, the endpoint is IPv4: 203.0.113.1";
    let is_told = || p4().cause.is_some_and(|cause| cause.text.starts_with(text) && cause.remedy.contains("NAT64"));
    assert!(eventually(is_told), "{}", internet.ropewalk(CLIENT, "show rw0"));
    // The well-known prefix, which nobody tells.
    let well_known = Translator::new(&internet, "[64:ff9b::203.0.113.1]:4754");
    wait_for_paths(&internet, &["p3", "p4"]);
    assert_eq!(p4().remote.as_deref(), Some("[64:ff9b::cb00:7101]:4754"));
    // Another prefix, of which the line's resolver tells.
    drop(well_known);
    let _translator = Translator::new(&internet, "[2001:db8:64::203.0.113.1]:4754");
    let _resolver = Resolver::new(&internet, "[2001:db8:8::1]:53", "2001:db8:64::");
    let has_moved = || p4().state == PathState::Up && p4().remote.as_deref() == Some("[2001:db8:64::cb00:7101]:4754");
    assert!(eventually(has_moved), "{}", internet.ropewalk(CLIENT, "show rw0"));
}

#[test]
fn a_client_whose_clock_is_an_hour_or_400_days_behind_has_a_session_and_is_told() {
    if Command::new("faketime").arg("--version").output().is_err() {
        return skip(Reason::Missing, "faketime is not installed");
    }
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS[..1]) else { return };
    pair.start(RIGHT);
    pair.start_with_state(LEFT);
    pair.wait_until_up(LEFT);
    let file = pair.folder(LEFT).join("rw0.toml").display().to_string();
    for (offset, behind) in [("-1h", " min behind"), ("-400d", " days behind")] {
        pair.stop(LEFT);
        pair.start_at_another_time(LEFT, offset);
        pair.wait_until_up(LEFT);
        let mut command = pair.testbed.command(LEFT, "faketime");
        command.env("STATE_DIRECTORY", pair.folder(LEFT)).env("ROPEWALK_RUN", pair.folder(LEFT));
        command.args(["-f", offset, &crate::tunnel_pair::program(), "check", "--live", &file]);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(text.contains(behind) && text.contains("problem: the clock is wrong: it is "), "{text}");
    }
    // Back at the right time, too.
    pair.stop(LEFT);
    pair.start_with_state(LEFT);
    pair.wait_until_up(LEFT);
    assert!(!check(&pair, LEFT).1.contains("clock"));
}

/// The server gets a second uplink with an address of its own, and providers that drop the addresses of others.
fn add_uplink_of_server(internet: &Internet) {
    join(internet, [SERVER, INTERNET], "p0.9");
    on(
        internet,
        &[
            (SERVER, "ip address add 203.0.114.1/24 dev p0.9"),
            (INTERNET, "ip address add 203.0.114.254/24 dev p0.9"),
            (SERVER, "ip route add default via 203.0.114.254 dev p0.9 metric 500"),
            (INTERNET, "nft add table ip bcp38"),
        ],
    );
    for line in [
        "add chain ip bcp38 forward { type filter hook forward priority 0 ; }",
        "add rule ip bcp38 forward iifname p0 ip saddr != 203.0.113.0/24 drop",
        "add rule ip bcp38 forward iifname p0.9 ip saddr != 203.0.114.0/24 drop",
    ] {
        internet.run(INTERNET, &["nft", line]);
    }
}

#[test]
fn a_server_with_two_uplinks_answers_by_the_one_that_was_asked_and_tells_if_it_cannot() {
    let Some(internet) = Internet::new() else { return };
    add_uplink_of_server(&internet);
    let output =
        internet.ropewalk(SERVER, &format!("setup server --endpoint {SERVER_ADDRESS} --endpoint 203.0.114.1 --yes"));
    internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    let paths = "s/^uplinks = .*//; $ a\\\n[[path]]\\\ninterface = \"p3\"\\\nendpoint = \"203.0.113.1\"\\\n[[path]]\\\n\
                 interface = \"p4\"\\\nendpoint = \"203.0.114.1\"";
    internet.run(CLIENT, &["sed", "-i", paths, "/etc/ropewalk/rw0.toml"]);
    internet.ropewalk(CLIENT, "reload rw0");
    let remotes = || up(&internet, CLIENT).into_iter().map(|path| path.remote.unwrap()).collect::<Vec<_>>();
    let both = ["203.0.113.1:4754", "203.0.114.1:4754"];
    assert!(eventually(|| remotes() == both), "{}", internet.ropewalk(CLIENT, "show rw0"));
    // What belongs to the tunnel's clients and to neighbours is not sent to a provider.
    let inner = internet
        .run(SERVER, &["ip", "route", "get", "10.77.0.2", "from", "203.0.114.1", "ipproto", "17", "sport", "4754"]);
    assert!(inner.contains("dev rw0"), "{inner}");

    // Without the rules: by the first uplink, whose provider drops it.
    let has_rules = || internet.run(SERVER, &["ip", "rule"]).contains("sport 4754");
    assert!(has_rules());
    internet.run(SERVER, &["sed", "-i", "/^routing/d", "/etc/ropewalk/rw0.toml"]);
    internet.ropewalk(SERVER, "down rw0");
    let program = crate::tunnel_pair::program();
    let start = format!("{program} up rw0 >/dev/null 2>&1 &");
    assert!(eventually(|| !internet.run(SERVER, &["ip", "link"]).contains("rw0")));
    assert!(!has_rules(), "they end with the daemon");
    internet.run(SERVER, &["sh", "-c", &start]);
    let text = "datagrams for 203.0.114.1 come in by p0.9, answers leave by p0";
    let causes = || {
        let output = internet.output(SERVER, &[&program, "show", "rw0"]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(eventually(|| causes().contains(text)), "{}", causes());
    internet.run(SERVER, &["sysctl", "-qw", "net.ipv4.conf.p0/9.rp_filter=1"]);
    let checked = check_live(&internet, SERVER);
    assert!(checked.contains("rp_filter = 1 on p0.9") && checked.contains(text), "{checked}");
}

#[test]
fn of_twenty_uplinks_sixteen_are_paths_and_the_others_are_named_and_follow_when_one_goes() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS[..1]) else { return };
    let remote = pair.testbed.v4(0, RIGHT);
    pair.edit(LEFT, |text| {
        let text = text[..text.find("\n[[path]]").expect("it has paths")].to_owned();
        text.replacen("\n\n[[peer]]\n", &format!("\nuplinks = \"auto\"\n\n[[peer]]\nendpoint = \"{remote}\"\n"), 1)
    });
    run(&pair, LEFT, &format!("ip route add default via {remote} dev p0"));
    for number in 1..20 {
        run(&pair, LEFT, &format!("ip link add up{number} type veth peer name veth{number}"));
        run(&pair, LEFT, &format!("ip link set veth{number} up"));
        run(&pair, LEFT, &format!("ip link set up{number} up"));
        run(&pair, LEFT, &format!("ip route add default dev up{number} metric {}", 100 + number));
    }
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    pair.wait_until_started(LEFT);
    let names = || pair.status(LEFT).peers[0].paths.iter().map(|path| path.name.clone()).collect::<Vec<_>>();
    let is_up = || pair.status(LEFT).paths().any(|(_, path)| path.name == "p0" && path.state == PathState::Up);
    assert!(eventually(is_up), "{:#?}", pair.status(LEFT));
    let rest = "a peer has at most 16 paths: these uplinks are not used: up16, up17, up18, up19";
    let is_told = |text: &str| pair.status(LEFT).notices.iter().any(|notice| notice.text == text);
    assert!(eventually(|| is_told(rest)), "{:#?}", pair.status(LEFT).notices);
    assert_eq!(names().len(), 16, "{:?}", names());
    assert!(check(&pair, LEFT).1.contains(rest));
    run(&pair, LEFT, "ip link del up1");
    assert!(eventually(|| names().contains(&"up16".into()) && !names().contains(&"up1".into())), "{:?}", names());
    assert!(eventually(|| is_told(&rest.replace("up16, ", ""))), "{:#?}", pair.status(LEFT).notices);
}
