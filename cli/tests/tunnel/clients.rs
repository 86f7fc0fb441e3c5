//! The clients of a server: changed by tables, with ends, other keys and another server; who changed what; backups.

use crate::conversation::Conversation;
use crate::internet::{CLIENT, Internet, OFFICE, SERVER, WEB, WEB_ADDRESS};
use crate::setup::client_command;
use daemon::status::{PathState, TunnelStatus};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testing::eventually;

const PEERS: &str = "/var/lib/ropewalk/rw0.peers.toml";

/// Writes a file of a host.
fn write(internet: &Internet, host: usize, file: &str, text: &str) {
    internet.run(host, &["sh", "-c", &format!("printf '%s' '{text}' > {file}")]);
}

fn json(internet: &Internet, line: &str) -> Vec<Value> {
    serde_json::from_str(&internet.ropewalk(SERVER, line)).unwrap()
}

/// The clients as `--list` has them.
fn clients(internet: &Internet) -> Vec<Value> {
    json(internet, "setup server --list --json")
}

/// What a client has in a column of the list.
fn of_client(internet: &Internet, name: &str, key: &str) -> Value {
    let clients = clients(internet);
    clients.iter().find(|client| client["name"] == name).map(|client| client[key].clone()).unwrap_or_default()
}

/// Options, tables that they refuse, and what is said of them.
const WRONG_TABLES: &[(&str, &str, &[&str])] = &[
    ("--add-from", "name,lan\nok,\nshort\n", &[":3: 1 fields, where the heading has 2"]),
    (
        "--add-from",
        "name;lan;expires\nok;;\nlan2;fast;\nday;;2020-01-01\nd;;soon\n",
        &[":3: ", ":4: `2020-01-01` is over", ":5: `soon` is no time"],
    ),
    (
        "--add-from",
        "name,lan\nok,\nclient1,\nok,\n../x,\n\u{1b}[1m,\nlan,10.77.0.0/16\nlan3,192.168.9.0/24\nlan4,192.168.9.0/25\n",
        &[
            ":3: there is a client `client1` already",
            ":4: there is a client `ok` already",
            ":5: `../x` is not a name",
            ":6: `\\u{1b}[1m` is not a name",
            ":7: --lan 10.77.0.0/16 overlaps",
            ":9: --lan 192.168.9.0/25 overlaps 192.168.9.0/24",
        ],
    ),
    (
        "--revoke-from",
        "name\nclient1\nnobody\nclient1\n",
        &[":3: there is no client `nobody`", ":4: `client1` stands twice"],
    ),
    ("--rename-from", "name,new-name\nclient1,a=b\n", &[":2: `a=b` is not a name"]),
    ("--expire-from", "name,expires\nclient1,yesterday\nnobody,1d\n", &[":2: `yesterday` is no time"]),
    ("--expire-from", "name\nclient1\n", &[":1: the column `expires` is missing"]),
];

#[test]
fn a_table_with_errors_changes_nothing_and_each_error_has_its_line() {
    let Some(internet) = Internet::new() else { return };
    internet.ropewalk(SERVER, "setup server --yes");
    let before = internet.run(SERVER, &["cat", PEERS]);
    let table = "/run/clients.csv";
    for (option, text, phrases) in WRONG_TABLES {
        write(&internet, SERVER, table, text);
        let (code, stderr) = internet.refusal(SERVER, &format!("setup server {option} {table}"));
        assert!(code == 2 && stderr.contains("nothing is changed"), "{option}: {code} {stderr}");
        phrases.iter().for_each(|phrase| assert!(stderr.contains(&format!("{table}{phrase}")), "{phrase}: {stderr}"));
        assert_eq!(internet.run(SERVER, &["cat", PEERS]), before, "{option}");
    }
}

#[test]
fn a_table_changes_all_of_its_clients_and_it_is_noted_who_did_it() {
    let Some(internet) = Internet::new() else { return };
    internet.ropewalk(SERVER, "setup server --yes");
    let table = "/run/clients.csv";
    write(&internet, SERVER, table, "name,lan,expires\nsite-1,192.168.8.0/24,90d\nsite-2,,never\nsite-3,,\n");
    let tokens = json(&internet, &format!("setup server --add-from {table} --json"));
    assert!(tokens.iter().all(|token| token["token"].as_str().unwrap().starts_with("rw1-")), "{tokens:?}");
    let names = |internet: &Internet| {
        clients(internet).iter().map(|client| client["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&internet), ["client1", "site-1", "site-2", "site-3"]);
    assert_eq!(of_client(&internet, "site-1", "state"), "token-not-used");
    assert!(of_client(&internet, "site-1", "expires_unix_s").is_u64());
    // Two clients exchange their names; a third one gets an end.
    write(&internet, SERVER, table, "name,new-name\nsite-1,site-2\nsite-2,site-1\n");
    internet.ropewalk(SERVER, &format!("setup server --rename-from {table}"));
    assert!(of_client(&internet, "site-2", "expires_unix_s").is_u64(), "{:?}", clients(&internet));
    write(&internet, SERVER, table, "name,expires\nsite-3,12h\nsite-2,never\n");
    internet.ropewalk(SERVER, &format!("setup server --expire-from {table}"));
    assert!(of_client(&internet, "site-3", "expires_unix_s").is_u64());
    assert!(of_client(&internet, "site-2", "expires_unix_s").is_null());
    write(&internet, SERVER, table, "name\nsite-1\nsite-2\n");
    internet.ropewalk(SERVER, &format!("setup server --revoke-from {table}"));
    assert_eq!(names(&internet), ["client1", "site-3"]);
    is_noted(&internet);
}

/// The changes of the test before are in the list of changes.
fn is_noted(internet: &Internet) {
    // Who did that.
    let script = format!(
        "SUDO_UID=0 SUDO_USER=root {} setup server --rename site-3=last && stat -c %a /var/lib/ropewalk-setup/rw0.audit",
        crate::tunnel_pair::program()
    );
    assert!(internet.run(SERVER, &["sh", "-c", &script]).ends_with("600\n"));
    let changes = json(internet, "setup audit --json");
    let words: Vec<_> = changes
        .iter()
        .map(|change| format!("{} {}", change["action"].as_str().unwrap(), change["object"].as_str().unwrap()))
        .collect();
    let expected = [
        "set-up rw0",
        "add client1",
        "add site-1",
        "add site-2",
        "add site-3",
        "rename site-1",
        "rename site-2",
        "expire site-3",
        "expire site-2",
        "revoke site-1",
        "revoke site-2",
        "rename site-3",
    ];
    assert_eq!(words, expected);
    assert!(changes.iter().all(|change| change["user"] == "root" && change["unix_s"].is_u64()), "{changes:?}");
}

#[test]
fn a_list_says_who_is_connected_and_a_revoked_or_expired_client_has_no_session() {
    let Some(internet) = Internet::new() else { return };
    let output = internet.ropewalk(SERVER, "setup server --yes");
    internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    let version = internet.ropewalk(CLIENT, "--version");
    let version = version.trim().strip_prefix("ropewalk ").unwrap();
    let says_hello = || of_client(&internet, "client1", "version") == version.split(' ').next().unwrap();
    assert!(eventually(says_hello), "{version}: {:?}", clients(&internet));
    let client = clients(&internet).remove(0);
    assert_eq!((&client["state"], &client["paths_up"]), (&Value::from("connected"), &Value::from(2)), "{client}");
    assert!(client["last_seen_unix_s"].is_u64() && client["received_bytes"].as_u64() > Some(0), "{client}");
    let listed = internet.ropewalk(SERVER, "setup server --list");
    assert!(listed.contains("enrolled, connected by 2 of 2 paths, version "), "{listed}");

    // A dashboard, and none again; with a token where others reach it.
    let served = internet.ropewalk(SERVER, "setup dashboard 0.0.0.0:9780");
    assert!(served.contains("/etc/ropewalk/rw0.dashboard-token"), "{served}");
    let status = |token: &str| {
        let script = format!(
            "curl -s -o /dev/null -w '%{{http_code}}' -H \"Authorization: Bearer {token}\" http://127.0.0.1:9780/v1/status"
        );
        internet.run(SERVER, &["sh", "-c", &script])
    };
    assert_eq!((status("$(cat /etc/ropewalk/rw0.dashboard-token)"), status("x")), ("200".into(), "401".into()));
    internet.ropewalk(SERVER, "setup dashboard --off");
    assert!(!internet.run(SERVER, &["cat", "/etc/ropewalk/rw0.toml"]).contains("dashboard"));
    assert!(eventually(|| of_client(&internet, "client1", "state") == "connected"), "{:?}", clients(&internet));

    // Its time ends while it is connected; the client's clock has no say in it.
    internet.ropewalk(SERVER, "setup server --expire client1=12h");
    let is_warned = || internet.ropewalk(SERVER, "show rw0 --json").contains("its time ends in 12 h");
    assert!(eventually(is_warned), "{}", internet.ropewalk(SERVER, "show rw0 --json"));
    internet.run(SERVER, &["sed", "-i", "s/^expires = .*/expires = 1700000000/", PEERS]);
    internet.ropewalk(SERVER, "reload rw0");
    assert_eq!(of_client(&internet, "client1", "state"), "expired");
    let has_ended = || {
        let status: TunnelStatus = serde_json::from_str(&internet.ropewalk(CLIENT, "show rw0 --json")).unwrap();
        status.paths().all(|(_, path)| path.state != PathState::Up)
    };
    assert!(eventually(has_ended), "{}", internet.ropewalk(CLIENT, "show rw0"));

    // More time, and it is back by itself.
    internet.ropewalk(SERVER, "setup server --expire client1=never");
    let is_back = || of_client(&internet, "client1", "state") == "connected";
    assert!(eventually(is_back), "{:?}", clients(&internet));
    internet.ropewalk(SERVER, "setup server --revoke client1");
    assert!(eventually(has_ended), "{}", internet.ropewalk(CLIENT, "show rw0"));
    assert_eq!(clients(&internet), [] as [Value; 0]);
}

#[test]
fn keys_change_at_both_ends_and_a_connection_lives() {
    let Some(internet) = Internet::new() else { return };
    let output = internet.ropewalk(SERVER, "setup server --yes");
    internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    let mut conversation = Conversation::new(&internet, CLIENT);
    assert!(conversation.goes_on());
    let key_of = |host| {
        let status: Value = serde_json::from_str(&internet.ropewalk(host, "show rw0 --json")).unwrap();
        status["interface"]["public_key"].as_str().unwrap().to_owned()
    };

    let before = key_of(CLIENT);
    internet.ropewalk(CLIENT, "setup rotate-key");
    assert_ne!(key_of(CLIENT), before);
    assert!(conversation.goes_on(), "the client has another key");
    let changed = || internet.run(SERVER, &["cat", PEERS]).contains(&key_of(CLIENT));
    assert!(eventually(changed));

    let before = key_of(SERVER);
    let (code, stderr) = internet.refusal(SERVER, "setup rotate-key --now");
    assert!(code == 2 && stderr.contains("no next key"), "{stderr}");
    internet.ropewalk(SERVER, "setup rotate-key");
    let next = internet.ropewalk(SERVER, "setup rotate-key");
    let (code, stderr) = internet.refusal(SERVER, "setup rotate-key --now");
    assert!(code == 4 && stderr.contains("client1 do not know"), "{stderr}");
    let fetched = internet.ropewalk(CLIENT, "setup follow");
    let key = fetched.split("next key: ").nth(1).unwrap().trim();
    assert!(next.contains(key), "{next} {fetched}");
    assert_eq!(of_client(&internet, "client1", "has_announcement"), true);
    internet.ropewalk(SERVER, "setup rotate-key --now");
    assert!(key_of(SERVER) == key && key != before);
    assert!(conversation.goes_on(), "{}", internet.run(CLIENT, &["cat", "/var/log/ropewalk-keep-rw0.log"]));
    let config = internet.run(CLIENT, &["cat", "/etc/ropewalk/rw0.toml"]);
    assert!(config.contains(key), "{config}");
    for host in [CLIENT, SERVER] {
        internet.ropewalk(host, "setup remove --yes");
        let left = internet
            .run(host, &["sh", "-c", "ls /etc/ropewalk /var/lib/ropewalk /var/lib/ropewalk-setup 2>/dev/null; true"]);
        assert_eq!(left, "", "host {host}");
    }
}

#[test]
fn a_server_moves_under_load_and_its_clients_follow() {
    let Some(internet) = Internet::with_second_server() else { return };
    let output = internet.ropewalk(SERVER, "setup server --between-clients yes --yes");
    internet.ropewalk(CLIENT, &format!("{} --yes", client_command(&output)));
    let output = internet.ropewalk(SERVER, "setup server --add office");
    internet.ropewalk(OFFICE, &format!("{} --yes", client_command(&output)));
    let mut conversation = Conversation::between(&internet, CLIENT, OFFICE, "10.77.0.3");
    assert!(conversation.goes_on());

    internet.ropewalk(SERVER, &format!("setup server --move-to {WEB_ADDRESS}"));
    for (host, name) in [(CLIENT, "client1"), (OFFICE, "office")] {
        let fetched = internet.ropewalk(host, "setup follow");
        assert!(fetched.contains(&format!("{WEB_ADDRESS}:4754")), "{fetched}");
        assert_eq!(of_client(&internet, name, "has_announcement"), true);
    }
    let file = "/run/server.backup";
    internet.ropewalk(SERVER, &format!("setup server --backup {file}"));
    assert_eq!(internet.run(SERVER, &["stat", "-c", "%a", file]), "600\n");
    let backup = internet.run(SERVER, &["cat", file]);
    refuses_other_backups(&internet, &backup);

    write(&internet, WEB, file, &backup);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut rounds = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert!(conversation.goes_on(), "after {rounds} rounds");
                rounds += 1;
            }
            // Some after the move.
            assert!((0..3).all(|_| conversation.goes_on()));
            rounds
        });
        internet.ropewalk(SERVER, "setup remove --yes");
        let restored = internet.ropewalk(WEB, &format!("setup server --restore {file} --yes"));
        assert!(restored.contains(WEB_ADDRESS), "{restored}");
        let both_follow = || {
            let list: Vec<Value> = serde_json::from_str(&internet.ropewalk(WEB, "setup server --list --json")).unwrap();
            list.len() == 2 && list.iter().all(|client| client["state"] == "connected")
        };
        let follow = eventually(both_follow);
        is_over.store(true, Ordering::Relaxed);
        assert!(follow, "{}", internet.run(CLIENT, &["cat", "/var/log/ropewalk-keep-rw0.log"]));
        println!("{} rounds", load.join().unwrap());
    });
    let changes = internet.ropewalk(WEB, "setup audit");
    assert!(
        changes.contains("add office") && changes.contains("move rw0  to") && changes.contains("restore rw0"),
        "{changes}"
    );
    // A new client gets the new address.
    let output = internet.ropewalk(WEB, "setup server --add third --json");
    assert!(output.contains("rw1-"), "{output}");
    let (code, stderr) = internet.refusal(WEB, &format!("setup server --restore {file} --yes"));
    assert!(code == 4 && stderr.contains("set up here already"), "{stderr}");
}

/// Half a backup, one of a later version, and a full file system.
fn refuses_other_backups(internet: &Internet, backup: &str) {
    let file = "/run/other.backup";
    for (text, phrase) in [
        (&backup[..backup.len() / 2], "incomplete or damaged"),
        (&backup.replacen("backup 1 ", "backup 9 ", 1), "version 9"),
        ("[interface]\n", "not a backup"),
        ("", "not a backup"),
    ] {
        write(internet, WEB, file, text);
        let (code, stderr) = internet.refusal(WEB, &format!("setup server --restore {file} --yes"));
        assert!(code == 2 && stderr.contains(phrase), "{phrase}: {stderr}");
    }
    let script =
        "mkdir -p /run/full && mount -t tmpfs -o size=4k tmpfs /run/full && head -c 4096 /dev/zero > /run/full/x";
    internet.run(SERVER, &["sh", "-c", script]);
    let (code, stderr) = internet.refusal(SERVER, "setup server --backup /run/full/server.backup");
    assert!(code == 4 && stderr.contains("/run/full/server.backup: "), "{stderr}");
    assert_eq!(internet.run(SERVER, &["ls", "/run/full"]), "x\n");
}
