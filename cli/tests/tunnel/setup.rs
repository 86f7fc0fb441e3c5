//! `ropewalk setup`: a server and a client by one command each, tokens, and what is left after `setup remove`.

use crate::internet::{
    CLIENT, INTERNET, Internet, ROUTER, SERVER, SERVER_ADDRESS, SERVER_ADDRESS_V6, WEB, WEB_ADDRESS, WEB_ADDRESS_V6,
};
use daemon::status::{PathState, TunnelStatus};
use std::net::IpAddr;
use std::time::Instant;
use testing::eventually;

/// The command for the client with the token that `setup server` printed in it.
pub(crate) fn client_command(output: &str) -> String {
    assert!(output.contains("ropewalk setup client -\n"), "{output}");
    format!("setup client {}", token(output))
}

/// The token that `setup server` printed.
fn token(output: &str) -> &str {
    output.lines().find(|line| line.starts_with("rw1-")).unwrap_or_else(|| panic!("no token in {output}"))
}

/// The lines that one of two texts has and the other has not.
fn changes(before: &str, after: &str) -> String {
    let only = |one: &str, other: &str, sign: &str| -> String {
        one.lines().filter(|line| !other.lines().any(|l| l == *line)).map(|line| format!("{sign} {line}\n")).collect()
    };
    only(before, after, "-") + &only(after, before, "+")
}

#[test]
fn two_commands_bond_the_uplinks_behind_a_nat_and_remove_leaves_nothing() {
    let Some(internet) = Internet::new() else { return };
    let before = [SERVER, CLIENT].map(|host| internet.traces(host));
    let dry = internet.ropewalk(SERVER, "setup server --dry-run");
    assert!(dry.contains("net.ipv4.ip_forward = 1") && dry.contains("masquerade"), "{dry}");
    assert_eq!(changes(&before[0], &internet.traces(SERVER)), "", "a dry run changes nothing");

    let start = Instant::now();
    let output = internet.ropewalk(SERVER, "setup server --yes");
    // As the output says: the token is in no list of processes.
    let output = internet.ropewalk_reading(CLIENT, "setup client - --yes", &format!("{}\n", token(&output)));
    println!("two commands: {:.1} s", start.elapsed().as_secs_f64());
    assert!(output.contains("over 2 of 2 paths"), "{output}");

    // Nothing is wrong, however early that is asked.
    for host in [CLIENT, SERVER] {
        let checked = internet.ropewalk(host, "check --live /etc/ropewalk/rw0.toml");
        assert!(checked.ends_with("no problem found\n"), "{checked}");
    }
    let shown = internet.ropewalk(SERVER, "show rw0");
    assert!(shown.contains("  name: client1\n"), "{shown}");

    // The host behind the server has no route to the inner network: only translation brings the answer back.
    let server: IpAddr = SERVER_ADDRESS.parse().unwrap();
    assert_eq!(internet.ask(CLIENT, WEB, WEB_ADDRESS), Ok((server, "question\n".into())));
    // The client has no IPv6 but the tunnel's.
    let server: IpAddr = SERVER_ADDRESS_V6.parse().unwrap();
    assert_eq!(internet.ask(CLIENT, WEB, WEB_ADDRESS_V6), Ok((server, "question\n".into())));
    let clients = internet.ropewalk(SERVER, "setup server --list");
    assert!(clients.contains("client1") && clients.contains("enrolled"), "{clients}");

    for host in [CLIENT, SERVER] {
        internet.ropewalk(host, "setup remove --yes");
    }
    for (host, before) in [SERVER, CLIENT].into_iter().zip(&before) {
        assert_eq!(changes(before, &internet.traces(host)), "", "host {host}");
    }
}

#[test]
fn addresses_that_change_as_by_dhcp_cost_no_set_up_and_a_routed_prefix_is_not_translated() {
    let Some(internet) = Internet::new() else { return };
    let prefix = "2001:db8:77::/64";
    internet.run(INTERNET, &["ip", "route", "add", prefix, "via", SERVER_ADDRESS_V6]);
    let output = internet.ropewalk(SERVER, &format!("setup server --prefix {prefix} --yes"));
    internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    let [server, client]: [IpAddr; 2] = [SERVER_ADDRESS, "2001:db8:77::2"].map(|text| text.parse().unwrap());
    let question = || "question\n".to_owned();
    assert_eq!(internet.ask(CLIENT, WEB, WEB_ADDRESS_V6), Ok((client, question())));
    let web: IpAddr = "2001:db8:2::7".parse().unwrap();
    assert_eq!(internet.ask(WEB, CLIENT, "[2001:db8:77::2]"), Ok((web, question())), "it can be a server");

    // The home network gets another lease, the mobile one another network, and the router another public address.
    for (host, line) in [
        (CLIENT, "ip address flush dev p3 scope global"),
        (CLIENT, "ip address add 192.168.1.57/24 dev p3"),
        (CLIENT, "ip route add default via 192.168.1.1 dev p3 metric 100"),
        (ROUTER, "ip address add 100.65.0.1/24 dev p4"),
        (CLIENT, "ip address flush dev p4 scope global"),
        (CLIENT, "ip address add 100.65.0.9/24 dev p4"),
        (CLIENT, "ip route add default via 100.65.0.1 dev p4 metric 200"),
        (ROUTER, "ip address add 192.0.2.77/24 dev p2"),
        (ROUTER, "ip address del 192.0.2.2/24 dev p2"),
        (ROUTER, "ip address add 192.0.2.77/24 dev p2"),
        (ROUTER, "ip route add default via 192.0.2.254"),
    ] {
        // What the first removal took along is added once more.
        let _ = internet.output(host, &line.split(' ').collect::<Vec<_>>());
    }
    assert!(internet.run(ROUTER, &["ip", "-4", "address", "show", "p2"]).contains("192.0.2.77"));
    let both_are_up = || {
        let status = internet.ropewalk(CLIENT, "show rw0 --json");
        let status: TunnelStatus = serde_json::from_str(&status).unwrap();
        status.paths().filter(|(_, path)| path.state == PathState::Up).count() == 2
    };
    assert!(eventually(both_are_up), "{}", internet.ropewalk(CLIENT, "show rw0"));
    assert_eq!(internet.ask(CLIENT, WEB, WEB_ADDRESS), Ok((server, question())));
}

#[test]
fn of_two_routers_that_translate_one_behind_the_other_check_tells() {
    let Some(internet) = Internet::new() else { return };
    let output = internet.ropewalk(SERVER, "setup server --yes");
    internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    let checked = internet.ropewalk(CLIENT, "check --live /etc/ropewalk/rw0.toml");
    assert!(!checked.contains("double NAT"), "{checked}");

    // The provider translates, too.
    for (host, line) in [
        (ROUTER, "ip address flush dev p2 scope global"),
        (ROUTER, "ip address add 100.66.0.2/24 dev p2"),
        (ROUTER, "ip route add default via 100.66.0.254"),
        (INTERNET, "ip address add 100.66.0.254/24 dev p2"),
        (INTERNET, "nft add table ip nat"),
        (INTERNET, "nft add chain ip nat post { type nat hook postrouting priority srcnat ; }"),
        (INTERNET, "nft add rule ip nat post ip saddr 100.66.0.0/24 masquerade"),
    ] {
        internet.run(host, &line.split(' ').collect::<Vec<_>>());
    }
    let line = "path p3: probably double NAT: behind the router 192.168.1.1 is another one without a public address, 100.66.0.254";
    // The routers' answers may come too late on a busy machine.
    let mut checked = String::new();
    let is_told = || {
        checked = internet.ropewalk(CLIENT, "check --live /etc/ropewalk/rw0.toml");
        checked.contains(line) && checked.ends_with("no problem found\n")
    };
    assert!(eventually(is_told), "{checked}");
}

#[test]
fn what_is_there_already_is_kept_and_odd_names_are_refused() {
    let Some(internet) = Internet::new() else { return };
    let file = "/etc/ropewalk/rw0.toml";
    internet.run(SERVER, &["sh", "-c", &format!("mkdir /etc/ropewalk; echo mine > {file}")]);
    let before = internet.traces(SERVER);
    let (code, stderr) = internet.refusal(SERVER, "setup server --yes");
    assert!(code == 4 && stderr.contains(file) && stderr.contains("--name"), "{stderr}");
    for (line, code, phrase) in [
        ("setup server --name rw1", 2, "--yes"),
        ("setup server --endpoint a;b --yes", 2, "--endpoint"),
        ("setup server --endpoint 203.0.113.1:99 --yes", 2, "--port"),
        ("setup server --subnet 203.0.113.0/28 --name rw1 --yes", 2, "overlaps"),
        ("setup server --subnet 10.9.0.0/31 --name rw1 --yes", 2, "no room"),
        ("setup server --name ../rw --yes", 2, "letters"),
        ("setup server --client ../x --name rw1 --yes", 2, "letters"),
        ("setup server --add laptop", 4, "no server rw0 is set up"),
        ("setup server --list --name rw9", 4, "no server rw9 is set up"),
        ("setup client rw1-AAAA --yes", 2, "damaged"),
        ("setup client wg1-AAAA --yes", 2, "not a token"),
        ("setup client - --yes", 2, "not a token"),
        ("setup remove --yes", 4, "no tunnel rw0 was set up"),
    ] {
        let refusal = internet.refusal(SERVER, line);
        assert!(refusal.0 == code && refusal.1.contains(phrase), "{line}: {refusal:?}");
    }
    assert_eq!(changes(&before, &internet.traces(SERVER)), "");
}

#[test]
fn a_token_works_once_and_a_revoked_client_has_no_session() {
    let Some(internet) = Internet::new() else { return };
    let output = internet.ropewalk(SERVER, "setup server --client laptop --yes");
    let command = client_command(&output);
    let psk_of_laptop = || {
        let peers = internet.run(SERVER, &["cat", "/var/lib/ropewalk/rw0.peers.toml"]);
        peers.split("preshared-key = \"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let of_token = psk_of_laptop();
    internet.ropewalk(CLIENT, &format!("{command} --yes"));
    assert_ne!(psk_of_laptop(), of_token, "the token's preshared key is not in use any more");
    assert_eq!(internet.run(CLIENT, &["cat", "/etc/ropewalk/rw0.psk"]).trim(), psk_of_laptop());
    let (_, stderr) = internet.refusal(SERVER, "setup server --add laptop");
    assert!(stderr.contains("--revoke laptop"), "{stderr}");

    // The token again, as somebody would who has found it.
    internet.ropewalk(CLIENT, "setup remove --yes");
    let (code, stderr) = internet.refusal(CLIENT, &format!("{command} --yes"));
    let phrase = "no answer from 203.0.113.1:4754 for this token: the token was already used";
    assert!(code == 4 && stderr.contains(phrase) && stderr.contains("setup server --list"), "{stderr}");
    internet.ropewalk(CLIENT, "setup remove --yes");
    // A closed port that says so: the token has nothing to do with it.
    for line in [
        "add table inet closed",
        "add chain inet closed input { type filter hook input priority 0 ; }",
        "add rule inet closed input udp dport 4754 reject",
    ] {
        internet.run(SERVER, &["nft", line]);
    }
    let (code, stderr) = internet.refusal(CLIENT, &format!("{command} --yes"));
    assert!(code == 4 && stderr.contains("nothing listens there") && !stderr.contains("was used"), "{stderr}");
    internet.ropewalk(CLIENT, "setup remove --yes");
    internet.run(SERVER, &["nft", "delete table inet closed"]);

    let output = internet.ropewalk(SERVER, "setup server --add phone");
    internet.ropewalk(CLIENT, &format!("{} --yes --networks 198.51.100.0/24", client_command(&output)));
    assert!(internet.ask(CLIENT, WEB, WEB_ADDRESS).is_ok());
    // The folder's lock is anybody's who may read it, and the file's own that of the daemon's user.
    let folder = "/var/lib/ropewalk";
    let lock = |file: &str| internet.command(SERVER, &["flock", file, "sleep", "infinity"]).spawn().unwrap();
    let mut holders = [folder.to_owned(), format!("{folder}/rw0.peers.toml"), format!("{folder}/rw0.peers.toml.lock")]
        .map(|file| lock(&file));
    let is_locked = || {
        !internet.output(SERVER, &["flock", "-n", &format!("{folder}/rw0.peers.toml.lock"), "true"]).status.success()
    };
    assert!(eventually(is_locked));
    assert_eq!(internet.ropewalk(SERVER, "setup server --revoke phone"), "phone: removed\n");
    let has_session = || internet.ropewalk(SERVER, "show rw0").contains("name: phone");
    assert!(eventually(|| !has_session()), "its session ends");
    for holder in &mut holders {
        holder.kill().and_then(|()| holder.wait()).unwrap();
    }
    let clients = internet.ropewalk(SERVER, "setup server --list");
    assert!(clients.starts_with("laptop ") && !clients.contains("phone"), "{clients}");

    // What a record says is carried out as root.
    internet.run(SERVER, &["chmod", "0666", "/var/lib/ropewalk-setup/rw0.json"]);
    let (code, stderr) = internet.refusal(SERVER, "setup remove --yes");
    assert!(code == 4 && stderr.contains("users other than root"), "{stderr}");
}

#[test]
fn a_set_up_that_is_killed_while_it_enrols_leaves_no_daemon_and_continues() {
    let Some(internet) = Internet::new() else { return };
    let command = client_command(&internet.ropewalk(SERVER, "setup server --yes"));
    let silence =
        ["table inet silent", "chain inet silent input { type filter hook input priority -1 ; policy drop ; }"];
    silence.iter().for_each(|line| drop(internet.run(SERVER, &["nft", &format!("add {line}")])));
    let words: Vec<_> = command.split(' ').collect();
    let program = crate::tunnel_pair::program();
    // The process itself, not the one that enters its namespaces.
    let script = "echo $$ > /run/setup.pid; exec \"$@\"";
    let mut child = internet.command(CLIENT, &[&["sh", "-c", script, "sh", &program], &words[..], &["--yes"]].concat());
    let mut child = child.spawn().unwrap();
    let daemon = || internet.processes(CLIENT, "pgrep", "rw0.enrol.toml");
    assert!(eventually(daemon), "it enrols");
    internet.run(CLIENT, &["sh", "-c", "kill -9 $(cat /run/setup.pid)"]);
    child.wait().unwrap();
    assert!(eventually(|| !daemon()), "the daemon ends with the setup");
    internet.run(SERVER, &["nft", "delete table inet silent"]);
    let output = internet.ropewalk(CLIENT, &format!("{command} --yes"));
    assert!(output.contains("over 2 of 2 paths"), "{output}");
}

#[test]
fn a_state_folder_that_is_there_gets_the_daemons_access_and_its_own_back() {
    let Some(internet) = Internet::new() else { return };
    let folder = "/var/lib/ropewalk";
    internet.run(SERVER, &["mkdir", "-m", "755", folder]);
    let access = || internet.run(SERVER, &["stat", "-c", "%a %U:%G", folder]);
    let plan = internet.ropewalk(SERVER, "setup server --dry-run");
    assert!(plan.contains("/var/lib/ropewalk (0750, ropewalk), now 0755, root\n"), "{plan}");
    let command = client_command(&internet.ropewalk(SERVER, "setup server --yes"));
    assert_eq!(access(), "750 ropewalk:ropewalk\n");
    internet.ropewalk(CLIENT, &format!("{command} --yes"));
    internet.ropewalk(SERVER, "setup remove --yes");
    assert_eq!(access(), "755 root:root\n");
    internet.run(SERVER, &["chown", "nobody", folder]);
    let (code, stderr) = internet.refusal(SERVER, "setup server --yes");
    assert!(code == 4 && stderr.contains("belongs to") && stderr.contains("chown root"), "{stderr}");
}

#[test]
fn interrupted_set_ups_are_repeated_behind_a_firewall_that_drops() {
    let Some(internet) = Internet::new() else { return };
    for line in [
        "add table inet filter",
        "add chain inet filter input { type filter hook input priority 0 ; policy drop ; }",
        "add rule inet filter input ct state established,related accept",
        "add chain inet filter forward { type filter hook forward priority 0 ; policy drop ; }",
        // Neighbour discovery.
        "add rule inet filter input meta l4proto 58 accept",
    ] {
        internet.run(SERVER, &["nft", line]);
    }
    internet.run(CLIENT, &["ln", "-s", "/run/systemd/resolve/stub-resolv.conf", "/etc/resolv.conf"]);
    let before = [SERVER, CLIENT].map(|host| internet.traces(host));

    // Killed when the rules are loaded, by a process of the setup's.
    let kill = "#!/bin/sh\ncase \"$*\" in *list*) exit 1;; esac\nkill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID\n";
    assert!(!internet.succeeds_with(SERVER, "nft", kill, "setup server --yes"));
    let output = internet.ropewalk(SERVER, "setup server --yes");
    let command = client_command(&output);

    // Killed after the server has the client's key: the last step is that of the resolver.
    let kill = "#!/bin/sh\n[ $1 = status ] || kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)\n";
    assert!(!internet.succeeds_with(CLIENT, "resolvectl", kill, &format!("{command} --yes")));
    assert!(internet.ropewalk(SERVER, "setup server --list").contains("enrolled"));
    let output = internet.ropewalk(CLIENT, &format!("{command} --yes"));
    assert!(output.contains("over 2 of 2 paths"), "{output}");
    assert!(internet.ask(CLIENT, WEB, WEB_ADDRESS).is_ok());
    let rules = internet.run(SERVER, &["nft", "list", "chain", "inet", "filter", "input"]);
    assert!(rules.contains("tcp dport 4754-4755") && rules.contains("udp dport 4755"), "{rules}");

    for host in [CLIENT, SERVER] {
        internet.ropewalk(host, "setup remove --yes");
    }
    for (host, before) in [SERVER, CLIENT].into_iter().zip(&before) {
        assert_eq!(changes(before, &internet.traces(host)), "", "host {host}");
    }
}

/// `systemctl` that writes its arguments down, and does for the tunnel what the unit would.
const SYSTEMCTL: &str = "#!/bin/sh
echo \"$*\" >> /run/systemctl.log
case \"$*\" in
    'enable --now ropewalk-keep@rw0')
        setsid $(sed -n 's/^ExecStart=//p' /etc/systemd/system/ropewalk-keep@.service | sed 's/%i/rw0/') > /dev/null 2>&1 &
        echo $! > /run/keep.pid
        timeout 60 sh -c 'while ! [ -e /run/ropewalk-setup/rw0.tables ]; do sleep 0.05; done' ;;
    'disable --now ropewalk-keep@rw0')
        kill $(cat /run/keep.pid)
        rm /run/keep.pid ;;
    'enable --now ropewalk@rw0')
        setsid $(sed -n 's/^ExecStart=//p' /etc/systemd/system/ropewalk@.service | sed 's/%i/rw0/') > /dev/null 2>&1 & ;;
    'disable --now ropewalk@rw0')
        PROGRAM down rw0
        while ip link show rw0 > /dev/null 2>&1; do sleep 0.05; done
        rm -r /run/ropewalk ;;
    is-active*) exit 3 ;;
esac
";

#[test]
fn with_systemd_the_unit_runs_the_daemon_and_its_rules_come_and_go_with_it() {
    let Some(internet) = Internet::new() else { return };
    internet.run(SERVER, &["mkdir", "-p", "/run/systemd/system", "/etc/systemd/system"]);
    let before = internet.traces(SERVER);
    let systemctl = SYSTEMCTL.replace("PROGRAM", &crate::tunnel_pair::program());
    assert!(internet.succeeds_with(SERVER, "systemctl", &systemctl, "setup server --yes"));
    let rules = internet.run(SERVER, &["nft", "list", "table", "inet", "ropewalk_rw0"]);
    assert!(rules.contains("iifname \"rw0\" oifname != \"rw0\" masquerade"), "{rules}");
    let unit = internet.run(SERVER, &["cat", "/etc/systemd/system/ropewalk@.service"]);
    assert!(unit.contains(&format!("ExecStart={} up ", crate::tunnel_pair::program())), "{unit}");
    assert!(internet.succeeds_with(SERVER, "systemctl", &systemctl, "setup remove --yes"));
    let log = internet.run(SERVER, &["cat", "/run/systemctl.log"]);
    let calls: Vec<_> = log.lines().filter(|line| !line.starts_with("is-active")).collect();
    let expected = [
        "daemon-reload",
        "enable --now ropewalk-keep@rw0",
        "enable --now ropewalk@rw0",
        "disable --now ropewalk@rw0",
        "disable --now ropewalk-keep@rw0",
        "daemon-reload",
    ];
    assert_eq!(calls, expected);
    internet.run(SERVER, &["rm", "/run/systemctl.log"]);
    assert_eq!(changes(&before, &internet.traces(SERVER)), "");
}
