//! Reading of the configuration file, and the errors of bad files.

use ropewalk_daemon::config::{self, Mode, TunnelConfig};
use std::path::Path;
use units::{Rate, Span};

/// Keys of the tests. The private key must not be shown.
const PRIVATE: &str = "IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM=";
const PUBLIC: &str = "R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y=";

const MINIMAL_CONFIG: &str = "
[interface]
address = '10.77.0.1/24'
private-key = 'PRIVATE'

[[peer]]
public-key = 'PUBLIC'
allowed-ips = ['10.77.0.2/32']
endpoint = 'vpn.example.org'
";

fn parse(text: &str) -> Result<TunnelConfig, String> {
    let text = text.replace("PRIVATE", PRIVATE).replace("PUBLIC", PUBLIC);
    config::parse("rw0.toml", &text, Path::new("rw0.toml")).map_err(|errors| errors.to_string())
}

#[test]
fn six_lines_are_enough_and_other_keys_have_defaults() {
    let config = parse(MINIMAL_CONFIG).unwrap();
    assert_eq!((config.interface.name.as_str(), config.interface.mtu, config.interface.listen_port), ("rw0", None, 0));
    assert!(config.interface.routes && config.options.retransmit && config.options.in_order);
    assert_eq!(config.options, config::TunnelOptions::default());
    assert_eq!(config.paths.len(), 1);
    assert_eq!(config.peers[0].endpoint.as_ref().unwrap().to_string(), "vpn.example.org:4754");
    assert!(matches!(config.mode, Mode::Ropewalk { private_key } if private_key.to_text().as_str() == PRIVATE));
}

#[test]
fn a_peer_without_an_endpoint_is_awaited_on_the_port_of_gre_in_udp() {
    let config = parse(&MINIMAL_CONFIG.replace("endpoint = 'vpn.example.org'\n", "")).unwrap();
    assert_eq!((config.interface.listen_port, config.paths[0].listen_port), (4754, 4754));
}

#[test]
fn all_keys_of_a_path_and_of_the_tunnel_are_read() {
    let text = format!(
        "{MINIMAL_CONFIG}
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
retransmit = false
in-order = false
late = 'deliver'
max-reorder-timeout = '80ms'
"
    );
    let config = parse(&text).unwrap();
    let path = &config.paths[0];
    assert_eq!((path.name.as_str(), path.interface.as_deref()), ("lte", Some("wwan0")));
    assert_eq!(path.source, Some("2001:db8::7".parse().unwrap()));
    assert_eq!((path.listen_port, path.weight, path.rate), (5000, 3, Some(Rate::from_mbit(20))));
    assert!(path.backup && path.metered && !config.options.retransmit && !config.options.in_order);
    assert!(config.options.deliver_late);
    assert_eq!(config.options.max_reorder_timeout, Span::from_millis(80));
    assert_eq!(config.options.congestion.parameters["beta"], control::ParamValue::Number(0.8));
}

#[test]
fn a_file_of_an_algorithm_that_cannot_be_read_is_named_with_its_line() {
    let text = format!("{MINIMAL_CONFIG}[tunnel]\ncongestion = {{ name = 'cubic', file = 'missing.onnx' }}\n");
    let error = parse(&text).unwrap_err();
    for phrase in ["rw0.toml:", "`file`: cannot read", "missing.onnx: No such file", "tunnel.congestion"] {
        assert!(error.contains(phrase), "{error}");
    }
    let error = parse(&text.replace("missing.onnx", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))).unwrap_err();
    assert!(error.contains("no parameter `file`"), "the file is read, and CUBIC takes none: {error}");
    let error = parse(&text.replace("missing.onnx", "/dev/zero")).unwrap_err();
    assert!(error.contains("regular file"), "{error}");
}

#[test]
fn the_keys_of_the_relay_are_read_and_it_is_off_without_them() {
    assert_eq!(parse(MINIMAL_CONFIG).unwrap().relay, None);
    let with = |keys: &str| parse(&format!("{MINIMAL_CONFIG}[tunnel]\n{keys}\n")).map(|config| config.relay);
    assert_eq!(with("relay = 'off'").unwrap(), None);
    let relay = with("relay = 'tcp'").unwrap().unwrap();
    assert_eq!((relay.networks, relay.exclude), (config::RelayOptions::default_networks("rw0"), Vec::new()));
    let keys = "relay = 'tcp'\nrelay-connections = 7\nrelay-exclude = ['tcp/22', 'tcp/80-90', '10.0.0.0/8']
relay-networks = ['198.18.0.2/31', 'fd00::2/127']";
    let relay = with(keys).unwrap().unwrap();
    let network = |text: &str| config::RelayNetwork::new(text.parse().unwrap()).unwrap();
    assert_eq!(relay.networks, [network("198.18.0.2/31"), network("fd00::2/127")]);
    let [ports, range, excluded] = &relay.exclude[..] else { panic!("{:?}", relay.exclude) };
    assert_eq!((ports, range), (&config::RelayExclusion::Ports(22..=22), &config::RelayExclusion::Ports(80..=90)));
    assert_eq!(*excluded, config::RelayExclusion::Network("10.0.0.0/8".parse().unwrap()));
    assert_eq!(relay.max_connections, 7);
}

#[test]
fn the_real_time_class_is_off_without_its_table_and_an_empty_one_has_defaults() {
    let without = parse(MINIMAL_CONFIG).unwrap();
    assert_eq!((without.realtime, without.options.realtime), (None, None));
    let with = |keys: &str| parse(&format!("{MINIMAL_CONFIG}[class.realtime]\n{keys}\n"));
    let config = with("").unwrap();
    assert_eq!(config.realtime, Some(config::RealtimeRules::default()));
    assert_eq!(config.options.realtime, Some(machine::RealtimeOptions::default()));
    let keys =
        "dscp = 'CS5'\nports = ['udp/5060', 'tcp/1-9']\ncopy-budget = '2.5%'\ncopy-on-metered = true\nshare = '20%'";
    let config = with(keys).unwrap();
    let ports = |protocol, ports| config::RealtimePorts { protocol, ports };
    let rules = config::RealtimeRules { dscp: vec![40], ports: vec![ports(17, 5060..=5060), ports(6, 1..=9)] };
    assert_eq!(config.realtime, Some(rules));
    let options = machine::RealtimeOptions { copy_permille: 25, copy_on_metered: true, share_permille: 200 };
    assert_eq!(config.options.realtime, Some(options));
    for (keys, message) in [
        ("dscp = 'AF44'", "a name such as \"EF\""),
        ("ports = '5060'", "`5060` names no ports"),
        ("ports = ['sctp/1']", "udp/16384-32767"),
        ("copy-budget = '5'", "5"),
        ("budget = '5%'", "copy-budget"),
    ] {
        let error = with(keys).unwrap_err();
        assert!(error.contains(message) && error.contains("rw0.toml:"), "{keys}: {error}");
    }
}

/// The minimal file with these keys of a path, and a real-time class.
fn with_path(keys: &str) -> Result<TunnelConfig, String> {
    parse(&format!("{MINIMAL_CONFIG}[[path]]\ninterface = 'wwan0'\n{keys}\n[class.realtime]\n"))
}

#[test]
fn a_quota_has_a_size_and_a_day_and_wrong_ones_are_named_with_what_would_be_right() {
    let quota = |keys: &str| with_path(keys).map(|config| config.paths[0].quota);
    assert_eq!(quota("").unwrap(), None);
    assert_eq!(quota("quota = '50GB'").unwrap(), Some(config::Quota { bytes: 50_000_000_000, reset_day: 1 }));
    let keys = "quota = '1.5GiB'\nquota-reset-day = 31";
    assert_eq!(quota(keys).unwrap(), Some(config::Quota { bytes: 3 << 29, reset_day: 31 }));
    for (keys, message) in [
        ("quota = '50'", "such as \"50GB\""),
        ("quota = '50GB/month'", "such as \"50GB\""),
        ("quota = '10kB'", "at least \"1MB\""),
        ("quota = '50GB'\nquota-reset-day = 0", "1 to 31"),
        ("quota = '50GB'\nquota-reset-day = 32", "1 to 31"),
        ("quota-reset-day = 3", "`quota = \"50GB\"` beside it"),
        ("quota = 50", "quota"),
    ] {
        let error = quota(keys).unwrap_err();
        assert!(error.contains(message) && error.contains("rw0.toml:"), "{keys}: {error}");
    }
}

#[test]
fn roles_and_classes_that_contradict_each_other_are_refused() {
    let config = with_path("secondary = true\nclasses = 'realtime'\n[[path]]\ninterface = 'eth0'").unwrap();
    assert!(config.paths[0].secondary && !config.paths[0].is_backup() && !config.paths[1].secondary);
    assert_eq!(config.paths[0].classes, machine::PathClasses::Realtime);
    let both = with_path("classes = ['bulk', 'realtime']").unwrap();
    assert_eq!(both.paths[0].classes, machine::PathClasses::All);
    for (keys, message) in [
        ("secondary = true\nbackup = true", "`secondary` and `backup` exclude each other"),
        ("secondary = true\nmetered = true", "`secondary` and `metered` exclude each other"),
        ("classes = []", "a path without a class carries nothing"),
        ("classes = 'calls'", "unknown class `calls`"),
        ("classes = 'realtime'", "no path is left for the class `bulk`"),
        ("classes = 'bulk'", "no path is left for the class `realtime`"),
    ] {
        let error = with_path(keys).unwrap_err();
        assert!(error.contains(message) && error.contains("rw0.toml:"), "{keys}: {error}");
    }
    let without_class = format!("{MINIMAL_CONFIG}[[path]]\ninterface = 'wwan0'\nclasses = 'bulk'\n");
    assert!(parse(&without_class).unwrap_err().contains("add the table [class.realtime]"));
}

#[test]
fn uplinks_that_are_found_may_be_secondary_and_have_quotas() {
    let with =
        |table: &str| parse(&MINIMAL_CONFIG.replacen("\n[[peer]]", &format!("uplinks = {table}\n\n[[peer]]"), 1));
    let table = "{ secondary = ['eth1'], quota = { 'wwan*' = '20GB' }, quota-reset-day = 15 }";
    let options = with(table).unwrap().interface.uplinks.unwrap();
    let quota = config::Quota { bytes: 20_000_000_000, reset_day: 15 };
    assert_eq!((options.secondary, options.quotas), (vec!["eth1".to_owned()], vec![("wwan*".to_owned(), quota)]));
    for (table, message) in [
        ("{ quota = { 'wwan*' = 'much' } }", "such as \"50GB\""),
        ("{ quota = { 'wwan*' = '20GB' }, quota-reset-day = 40 }", "1 to 31"),
        ("{ quota-reset-day = 4 }", "beside it"),
    ] {
        let error = with(table).unwrap_err();
        assert!(error.contains(message) && error.contains("rw0.toml:"), "{table}: {error}");
    }
}

#[test]
fn wrong_values_of_the_relay_are_named_with_what_would_be_right() {
    for (keys, message) in [
        ("relay = 'udp'", "unknown value `udp`"),
        ("relay-exclude = 'tcp/90-80'", "`tcp/90-80` is neither a port nor a range of ports"),
        ("relay-exclude = 'tcp/70000'", "such as `tcp/22` or `tcp/5000-5100`"),
        ("relay-exclude = 'udp/53'", "`udp/53` is not an address with a prefix length"),
        ("relay-networks = '198.18.0.0/24'", "`198.18.0.0/24` is not a network of two addresses"),
        ("relay-networks = ['198.18.0.0/31', '198.18.0.2/31']", "more than one network of a family"),
        ("relay-connections = 0", "1 to 30000"),
    ] {
        let error = parse(&format!("{MINIMAL_CONFIG}[tunnel]\n{keys}\n")).unwrap_err();
        assert!(error.contains(message), "{keys}: {error}");
        assert!(error.contains("rw0.toml:"), "{error}");
    }
}

#[test]
fn host_bits_are_cleared_in_allowed_ips_and_kept_in_addresses() {
    let config = parse(&MINIMAL_CONFIG.replace("10.77.0.2/32", "10.77.0.2/24")).unwrap();
    assert_eq!(config.peers[0].allowed_ips[0].to_string(), "10.77.0.0/24");
    assert_eq!(config.interface.addresses[0].to_string(), "10.77.0.1/24");
}

#[test]
fn all_errors_are_reported_at_once_each_at_its_line() {
    let errors = parse(
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
    assert_eq!(errors, include_str!("expected/all-errors.txt").trim_end(), "\n{errors}");
}

/// Text of a good file, its replacement, and a phrase of the error.
const CASES: &[(&str, &str, &str)] = &[
    ("[interface]", "[interfaces]", "did you mean `interface`?"),
    ("address = '10.77.0.1/24'\n", "", "missing key `address`"),
    ("'10.77.0.1/24'", "'10.77.0.1/33'", "such as `10.77.0.1/24`"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nuplinks = 'all'", "unknown value `all`"),
    (
        "private-key = 'PRIVATE'",
        "private-key = 'PRIVATE'\nuplinks = { exlude = [] }",
        "`exclude`, `metered`, `unmetered`, `secondary`",
    ),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nrouting = 'aut'", "did you mean `auto`?"),
    ("'10.77.0.1/24'", "'10.77.0.1'", "`10.77.0.1/24`, or `10.77.0.1/32` for this host alone"),
    ("[[peer]]", "[[path]]\ninterface = 'a'\nrate = 20\n[[peer]]", "such as `\"20mbit\"`"),
    ("[[peer]]", "[tunnel]\nmax-reorder-timeout = 5\n[[peer]]", "such as `\"300ms\"`"),
    ("private-key = 'PRIVATE'\n", "", "ropewalk genkey"),
    ("private-key = 'PRIVATE'", "private-key-file = 'none.key'", "cannot read none.key"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nprivate-key-file = 'x'", "both give the key"),
    ("private-key = 'PRIVATE'", "private-key = 'short'", "44 characters of base64"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nname = 'a-name-too-long-for-linux'", "1 to 15 letters"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmtu = 100", "576 to 65000"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmode = 'mtp'", "did you mean `mpt`?"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmetrics = 'localhost'", "such as `127.0.0.1:9754`"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmetrics = '0.0.0.0:9754'", "without a token"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmetrics = '[::]:9754'", "dashboard-token-file"),
    ("public-key = 'PUBLIC'\n", "", "missing key `public-key`"),
    ("allowed-ips = ['10.77.0.2/32']\n", "", "missing key `allowed-ips`"),
    ("'10.77.0.2/32'", "'0.0.0.0/0'", "`interface = ...` binds the path"),
    ("'vpn.example.org'", "'vpn.example.org:0'", "port 0 is not a destination port"),
    ("'10.77.0.2/32'", "'10.77.0.2/32', 5", "expected a string"),
    ("'vpn.example.org'", "'x'\n[[path]]\nweight = 1", "the uplink, such as"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'rw0'", "cannot use the tunnel's own device"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'a'\n[[path]]\ninterface = 'a'", "another path has the name `a`"),
    ("'vpn.example.org'", "'x'\n[[path]]\nsource = '192.0.2.1'\nendpoint = '2001:db8::1'", "cannot send to"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'a'\nrate = '0mbit'", "carries nothing"),
    ("'vpn.example.org'", "'x'\n[[path]]\ninterface = 'a'\nweight = 0", "1 to 10000"),
    ("'vpn.example.org'", "'x'\n[tunnel]\nscheduler = 'minrrt'", "did you mean `minrtt`?"),
    ("'vpn.example.org'", "'x'\n[tunnel]\ncongestion = { name = 'cubic', beta = 7 }", "cannot be 7"),
    ("'vpn.example.org'", "'x'\n[tunnel]\nlate = 'dorp'", "did you mean `drop`?"),
    ("'vpn.example.org'", "'x'\n[tunnel]\nmax-reorder-timeout = '80'", "write \"80ms\"?"),
    ("'vpn.example.org'", "'x'\n[mpt]\ndead-time = '11s'", "only with mode = \"mpt\""),
    ("'vpn.example.org'", "'x'\naddress = '10.77.0.2'", "only with mode = \"mpt\""),
    ("[[peer]]", "[[peer]]\npublic-key = 'PUBLIC'\nallowed-ips = []\n[[peer]]", "another peer has this key"),
    ("[[peer]]", "[[peer", "not TOML"),
    ("private-key = 'PRIVATE'", "private-key = 'PRIVATE'\nmode = 'mpt'", "`mpt` mode has no keys"),
];

#[test]
fn every_invalid_file_is_refused_with_a_remedy_and_without_the_secret() {
    for (valid, invalid, phrase) in CASES {
        assert!(MINIMAL_CONFIG.contains(valid), "{valid}");
        let error = parse(&MINIMAL_CONFIG.replacen(valid, invalid, 1)).unwrap_err();
        assert!(error.contains(phrase) && error.contains("rw0.toml"), "{invalid}: not \"{phrase}\":\n{error}");
        assert!(!error.contains(PRIVATE), "{error}");
    }
}

#[test]
fn uplinks_take_the_place_of_paths_and_need_a_peer_to_reach() {
    let text = MINIMAL_CONFIG
        .replace("[[peer]]", "uplinks = { exclude = ['eth7'], metered = ['lte*'] }\nrouting = 'auto'\n[[peer]]");
    let config = parse(&text).unwrap();
    let options = config.interface.uplinks.unwrap();
    assert_eq!((options.exclude, options.metered), (vec!["eth7".to_owned()], vec!["lte*".to_owned()]));
    assert!(config.paths.is_empty() && config.interface.policy_routing);
    let error = parse(&text.replace("endpoint = 'vpn.example.org'\n", "")).unwrap_err();
    assert!(error.contains("automatic uplinks need a peer with an `endpoint`"), "{error}");
}

#[test]
fn keys_and_addresses_of_the_wrong_end_are_named() {
    let own_key = ropewalk_daemon::keys::pubkey(PRIVATE).unwrap();
    let error = parse(&MINIMAL_CONFIG.replace("PUBLIC", &own_key)).unwrap_err();
    assert!(
        error.contains("this is the public key of this end itself") && error.contains("peer.0.public-key"),
        "{error}"
    );
    let error = parse(&MINIMAL_CONFIG.replace("10.77.0.2/32", "10.77.0.1/32")).unwrap_err();
    assert!(error.contains("`10.77.0.1/32` is the address of this end itself"), "{error}");
    assert!(parse(&MINIMAL_CONFIG.replace("10.77.0.2/32", "10.77.0.0/24")).is_ok(), "a network around both ends");
    let error = parse(&MINIMAL_CONFIG.replace("'PRIVATE'", "'PUBLIC'")).unwrap_err();
    assert!(error.contains("a peer's public key: the two were swapped"), "{error}");
    let another_public_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let config = parse(&MINIMAL_CONFIG.replace("'PRIVATE'", &format!("'{another_public_key}'"))).unwrap();
    assert!(
        matches!(&config.warnings[..], [warning] if warning.contains("is it a public key?")),
        "{:?}",
        config.warnings
    );
}

#[test]
fn keys_of_the_use_of_paths_are_warned_of_at_an_end_that_opens_none() {
    let path = "[[path]]\nsource = '192.0.2.1'\nquota = '5GB'\nsecondary = true\n";
    let opens = format!("{MINIMAL_CONFIG}{path}");
    assert_eq!(parse(&opens).unwrap().warnings, [""; 0]);
    let warnings = parse(&opens.replace("endpoint = 'vpn.example.org'\n", "")).unwrap().warnings;
    for (warning, key) in warnings.iter().zip(["secondary", "quota"]) {
        assert!(warning.starts_with(&format!("`{key}` of path 192.0.2.1 has no effect")), "{warning}");
    }
    assert_eq!(warnings.len(), 2);
}

/// Results of reading a configuration with `text`, and with a key file `key`, when both have these modes.
fn load_with_modes(name: &str, text: &str, config_mode: u32, key_mode: u32) -> Result<TunnelConfig, String> {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("ropewalk-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = text.replace("PRIVATE", PRIVATE).replace("PUBLIC", PUBLIC);
    for (file, text, mode) in [("rw0.toml", text, config_mode), ("key", format!("{PRIVATE}\n"), key_mode)] {
        std::fs::write(folder.join(file), text).unwrap();
        std::fs::set_permissions(folder.join(file), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let result = config::load(&folder.join("rw0.toml")).map_err(|errors| errors.to_string());
    std::fs::remove_dir_all(folder).unwrap();
    result
}

#[test]
fn a_key_file_that_group_or_others_may_read_is_refused() {
    let text = MINIMAL_CONFIG.replace("private-key = 'PRIVATE'", "private-key-file = 'key'");
    for mode in [0o640, 0o604, 0o644, 0o666] {
        let error = load_with_modes("key-file", &text, 0o644, mode).unwrap_err();
        let expected =
            [format!("(mode {mode:04o})"), "/key; or".to_owned(), "chmod 600 ".to_owned(), "rw0.toml:4".to_owned()];
        assert!(expected.iter().all(|part| error.contains(part)) && !error.contains(PRIVATE), "{error}");
    }
    for mode in [0o600, 0o400] {
        assert_eq!(load_with_modes("key-file", &text, 0o644, mode).unwrap().warnings, [""; 0]);
    }
    let preshared = MINIMAL_CONFIG.replace("allowed-ips", "preshared-key-file = 'key'\nallowed-ips");
    assert!(load_with_modes("key-file", &preshared, 0o600, 0o640).unwrap_err().contains("preshared-key-file"));
}

#[test]
fn a_configuration_with_a_key_that_group_or_others_may_read_is_refused() {
    let error = load_with_modes("config", MINIMAL_CONFIG, 0o644, 0o600).unwrap_err();
    assert!(error.contains("rw0.toml:4") && error.contains("(mode 0644)") && error.contains("chmod 600"), "{error}");
    assert!(!error.contains(PRIVATE), "{error}");
    assert_eq!(load_with_modes("config", MINIMAL_CONFIG, 0o600, 0o644).unwrap().warnings, [""; 0]);
}

#[test]
fn readable_keys_can_be_allowed_and_then_cause_a_warning() {
    let text =
        MINIMAL_CONFIG.replace("private-key = 'PRIVATE'", "private-key-file = 'key'\nallow-readable-keys = true");
    let warnings = load_with_modes("allowed", &text, 0o644, 0o644).unwrap().warnings;
    assert!(
        matches!(&warnings[..], [warning] if warning.contains("key holds a secret and is readable by others: chmod 600")),
        "{warnings:?}"
    );
    let text = MINIMAL_CONFIG.replace("[[peer]]", "allow-readable-keys = true\n[[peer]]\npreshared-key = 'PRIVATE'");
    let warnings = load_with_modes("allowed", &text, 0o644, 0o600).unwrap().warnings;
    assert!(
        matches!(&warnings[..], [warning] if warning.contains("rw0.toml holds a secret and is readable")),
        "{warnings:?}"
    );
}

#[test]
fn a_reload_is_the_difference_of_two_files() {
    use ropewalk_daemon::config::{ConfigChange, diff};
    let path = |name: &str, keys: &str| format!("\n[[path]]\nname = '{name}'\ninterface = '{name}'\n{keys}");
    let old = parse(&format!("{MINIMAL_CONFIG}{}{}", path("a", ""), path("b", ""))).unwrap();
    assert_eq!(diff(&old, &old), []);
    let new = parse(&format!("{MINIMAL_CONFIG}{}{}", path("a", "backup = true\n"), path("c", ""))).unwrap();
    let changes = diff(&old, &new);
    let names: Vec<_> =
        changes.iter().map(|change| format!("{change:?}").chars().take(18).collect::<String>()).collect();
    assert_eq!(names, ["RemovePath(\"b\")", "SetPath(Configured", "AddPath(Configured"]);
    // Another source is another socket.
    let new_source =
        parse(&format!("{MINIMAL_CONFIG}{}{}", path("a", "source = '192.0.2.1'\n"), path("b", ""))).unwrap();
    let changes = diff(&old, &new_source);
    assert!(matches!(&changes[..], [ConfigChange::RemovePath(_), ConfigChange::AddPath(_)]), "{changes:?}");
    let new_allowed_ips =
        parse(&format!("{}{}{}", MINIMAL_CONFIG.replace("/32'", "/32', '10.9.0.0/16'"), path("a", ""), path("b", "")))
            .unwrap();
    assert!(
        matches!(&diff(&old, &new_allowed_ips)[..], [ConfigChange::SetPeer(_, keys)] if keys == &["peer.allowed-ips"])
    );
    let new_order =
        parse(&format!("{MINIMAL_CONFIG}{}{}\n[tunnel]\nin-order = false\n", path("a", ""), path("b", ""))).unwrap();
    assert_eq!(diff(&old, &new_order), [ConfigChange::NeedsRestart(vec!["tunnel.in-order"])]);
}
