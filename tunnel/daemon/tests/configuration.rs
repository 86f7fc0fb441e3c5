//! The configuration file: what is read from good ones, and what is said of bad ones.

use ropewalk_daemon::config::{self, Config, Late, Mode};
use std::path::Path;
use units::{Rate, Span};

/// Keys of tests; the private one must not be shown.
const PRIVATE: &str = "IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM=";
const PUBLIC: &str = "R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y=";

const SMALLEST: &str = "
[interface]
address = '10.77.0.1/24'
private-key = 'PRIVATE'

[[peer]]
public-key = 'PUBLIC'
allowed-ips = ['10.77.0.2/32']
endpoint = 'vpn.example.org'
";

fn read(text: &str) -> Result<Config, String> {
    let text = text.replace("PRIVATE", PRIVATE).replace("PUBLIC", PUBLIC);
    config::parse("rw0.toml", &text, Path::new("rw0.toml")).map_err(|faults| faults.to_string())
}

#[test]
fn six_lines_are_enough_and_the_rest_has_defaults() {
    let config = read(SMALLEST).unwrap();
    assert_eq!((config.interface.name.as_str(), config.interface.mtu, config.interface.listen_port), ("rw0", None, 0));
    assert!(config.interface.routes && config.carriage.repair && config.carriage.order);
    assert_eq!(config.carriage.late, Late::Drop);
    assert_eq!(config.carriage.scheduler.name, "overflow");
    assert_eq!(config.carriage.congestion.unwrap().name, "bbr");
    assert_eq!(config.paths.len(), 1);
    assert_eq!(config.peers[0].endpoint.as_ref().unwrap().to_string(), "vpn.example.org:4754");
    assert!(matches!(config.mode, Mode::Ropewalk { private_key } if private_key.to_text().as_str() == PRIVATE));
}

#[test]
fn who_is_called_listens_on_the_port_of_gre_in_udp() {
    let config = read(&SMALLEST.replace("endpoint = 'vpn.example.org'\n", "")).unwrap();
    assert_eq!((config.interface.listen_port, config.paths[0].listen_port), (4754, 4754));
}

#[test]
fn every_key_of_a_path_arrives() {
    let text = format!(
        "{SMALLEST}
[[path]]
name = 'lte'
interface = 'wwan0'
source = '2001:db8::7'
listen-port = 5000
backup = true
metered = true
weight = 3
rate = '20mbit'

[tunnel]
congestion = {{ name = 'cubic', beta = 0.8 }}
scheduler = 'minrtt'
repair = false
order = false
late = 'deliver'
max-hold = '80ms'
"
    );
    let config = read(&text).unwrap();
    let path = &config.paths[0];
    assert_eq!((path.name.as_str(), path.interface.as_deref()), ("lte", Some("wwan0")));
    assert_eq!(path.source, Some("2001:db8::7".parse().unwrap()));
    assert_eq!((path.listen_port, path.weight, path.rate), (5000, 3, Some(Rate::from_mbit(20))));
    assert!(path.backup && path.metered && !config.carriage.repair && !config.carriage.order);
    assert_eq!((config.carriage.late, config.carriage.max_hold), (Late::Deliver, Some(Span::from_millis(80))));
    assert_eq!(config.carriage.congestion.unwrap().parameters["beta"], control::ParamValue::Number(0.8));
}

#[test]
fn host_bits_of_allowed_ips_do_not_count_and_those_of_an_address_do() {
    let config = read(&SMALLEST.replace("10.77.0.2/32", "10.77.0.2/24")).unwrap();
    assert_eq!(config.peers[0].allowed_ips[0].to_string(), "10.77.0.0/24");
    assert_eq!(config.interface.addresses[0].to_string(), "10.77.0.1/24");
}

#[test]
fn all_faults_are_told_at_once_each_at_its_line() {
    let told = read(
        "
[interface]
adress = '10.77.0.1/24'
private-key = 'PRIVATE-'
mtu = 'large'

[[peer]]
public-key = 'PUBLIC'
allowed-ips = ['10.77.0.2/32', '10.77.0.300']
endpoint = 'vpn.example.org:port'

[[path]]
interface = 'wwan0'
rate = '20mbps'
backup = 1

[tunnel]
congestion = 'cubik'
",
    )
    .unwrap_err();
    assert_eq!(told, include_str!("told/all-at-once.txt").trim_end(), "\n{told}");
}

/// What stands in a good file, what stands there instead, and a phrase of what is said.
const CASES: &[(&str, &str, &str)] = &[
    ("[interface]", "[interfaces]", "did you mean `interface`?"),
    ("address = '10.77.0.1/24'\n", "", "missing key `address`"),
    ("'10.77.0.1/24'", "'10.77.0.1/33'", "such as `10.77.0.1/24`"),
    ("private-key = 'PRIVATE'\n", "", "ropewalk genkey"),
    ("private-key = 'PRIVATE'", "private-key-file = 'none.key'", "cannot read none.key"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nprivate-key-file = 'x'", "both give the key"),
    ("private-key = 'PRIVATE'", "private-key = 'short'", "44 characters of base64"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nname = 'a-name-too-long-for-linux'", "1 to 15 letters"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmtu = 100", "576 to 65000"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmode = 'mtp'", "did you mean `mpt`?"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmetrics = 'localhost'", "such as `127.0.0.1:9754`"),
    ("public-key = 'PUBLIC'\n", "", "missing key `public-key`"),
    ("allowed-ips = ['10.77.0.2/32']\n", "", "missing key `allowed-ips`"),
    ("'10.77.0.2/32'", "'0.0.0.0/0'", "`interface = ...` binds the path"),
    ("'vpn.example.org'", "'vpn.example.org:0'", "port 0 cannot be reached"),
    ("'10.77.0.2/32'", "'10.77.0.2/32', 5", "expected a string"),
    ("'vpn.example.org'", "'x'\n[[path]]\nweight = 1", "the uplink, such as"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'rw0'", "cannot lead through the tunnel itself"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'a'\n[[path]]\ninterface = 'a'", "another path is called `a`"),
    ("'vpn.example.org'", "'x'\n[[path]]\nsource = '192.0.2.1'\nendpoint = '2001:db8::1'", "cannot send to"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'a'\nrate = '0mbit'", "carries nothing"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'a'\nweight = 0", "1 to 10000"),
    ("'vpn.example.org'", "'x'\n[tunnel]\nscheduler = 'minrrt'", "did you mean `minrtt`?"),
    ("'vpn.example.org'", "'x'\n[tunnel]\ncongestion = { name = 'cubic', beta = 7 }", "cannot be 7"),
    ("'vpn.example.org'", "'x'\n[tunnel]\nlate = 'dorp'", "did you mean `drop`?"),
    ("'vpn.example.org'", "'x'\n[tunnel]\nmax-hold = '80'", "write \"80ms\"?"),
    ("'vpn.example.org'", "'x'\n[mpt]\ndead = '11s'", "only with mode = \"mpt\""),
    ("'vpn.example.org'", "'x'\naddress = '10.77.0.2'", "only with mode = \"mpt\""),
    ("[[peer]]", "[[peer]]\npublic-key = 'PUBLIC'\nallowed-ips = []\n[[peer]]", "another peer has this key"),
    ("[[peer]]", "[[peer", "not TOML"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmode = 'mpt'", "`mpt` mode knows no keys"),
];

#[test]
fn every_bad_file_is_refused_with_what_would_be_right_and_without_the_secret() {
    for (good, bad, phrase) in CASES {
        assert!(SMALLEST.contains(good), "{good}");
        let told = read(&SMALLEST.replacen(good, bad, 1)).unwrap_err();
        assert!(told.contains(phrase) && told.contains("rw0.toml"), "{bad}: not \"{phrase}\":\n{told}");
        assert!(!told.contains(PRIVATE), "{told}");
    }
}

#[test]
fn a_key_file_that_others_may_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("ropewalk-key-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("key"), format!("{PRIVATE}\n")).unwrap();
    let text = SMALLEST.replace("private-key = 'PRIVATE'", "private-key-file = 'key'").replace("PUBLIC", PUBLIC);
    std::fs::write(folder.join("rw0.toml"), text).unwrap();
    let warnings = |mode| {
        std::fs::set_permissions(folder.join("key"), std::fs::Permissions::from_mode(mode)).unwrap();
        config::load(&folder.join("rw0.toml")).unwrap().warnings.join("\n")
    };
    assert!(warnings(0o644).contains("chmod 600"));
    assert_eq!(warnings(0o600), "");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_reload_is_the_steps_between_two_files_and_nothing_else() {
    use ropewalk_daemon::config::{Change, changes};
    let path = |name: &str, rest: &str| format!("\n[[path]]\nname = '{name}'\ninterface = '{name}'\n{rest}");
    let old = read(&format!("{SMALLEST}{}{}", path("a", ""), path("b", ""))).unwrap();
    assert_eq!(changes(&old, &old), []);
    let new = read(&format!("{SMALLEST}{}{}", path("a", "backup = true\n"), path("c", ""))).unwrap();
    let steps = changes(&old, &new);
    let words: Vec<_> = steps.iter().map(|step| format!("{step:?}").chars().take(18).collect::<String>()).collect();
    assert_eq!(words, ["RemovePath(\"b\")", "SetPath(Path { nam", "AddPath(Path { nam"]);
    // Another device is another socket.
    let moved = read(&format!("{SMALLEST}{}{}", path("a", "source = '192.0.2.1'\n"), path("b", ""))).unwrap();
    let steps = changes(&old, &moved);
    assert!(matches!(&steps[..], [Change::RemovePath(_), Change::AddPath(_)]), "{steps:?}");
    let more = read(&format!("{}{}{}", SMALLEST.replace("/32'", "/32', '10.9.0.0/16'"), path("a", ""), path("b", "")))
        .unwrap();
    assert!(matches!(&changes(&old, &more)[..], [Change::SetPeer(_, keys)] if keys == &["peer.allowed-ips"]));
    let order = read(&format!("{SMALLEST}{}{}\n[tunnel]\norder = false\n", path("a", ""), path("b", ""))).unwrap();
    assert_eq!(changes(&old, &order), [Change::NeedsRestart(vec!["tunnel.order"])]);
}
