//! Import of MPT's configuration files.

use ropewalk_daemon::config::{self, Mode};
use std::path::Path;
use units::Span;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mpt"))
}

#[test]
fn the_imported_example_is_a_valid_configuration_with_its_numbers() {
    let import = mpt::import::import(folder(), None).unwrap();
    let config = config::parse("tun0.toml", &import.toml, Path::new("tun0.toml")).unwrap();
    let Mode::Mpt(options) = config.mode else { panic!("{:?}", config.mode) };
    assert_eq!((options.reorder_window, config.options.max_reorder_timeout), (1600, Span::from_millis(300)));
    assert_eq!((options.keepalive_time, options.dead_time), (Some(Span::from_secs(5)), Span::from_secs(11)));
    assert_eq!(
        (config.interface.name.as_str(), config.interface.mtu, config.interface.listen_port),
        ("tun0", Some(1440), 23456)
    );
    assert_eq!(config.paths.iter().map(|path| path.weight).collect::<Vec<_>>(), [100, 50]);
    assert_eq!(config.paths[0].source, Some("10.1.1.1".parse().unwrap()));
    assert_eq!((config.paths[1].source, config.paths[1].interface.as_deref()), (None, Some("eno3")));
    assert_eq!(config.paths[1].endpoint.as_ref().unwrap().to_string(), "10.2.2.2:23456");
    let allowed: Vec<_> = config.peers[0].allowed_ips.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["10.0.0.2/32", "192.168.7.0/24"]);
    assert_eq!(config.options.congestion, machine::OFF.into());
}

#[test]
fn keys_without_a_counterpart_are_noted_and_the_secret_is_not_shown() {
    let import = mpt::import::import(folder(), Some("c1")).unwrap();
    let notes = import.notes.join("\n");
    for key in ["accept_remote", "gw_ipaddr", "ip route add 10.1.1.2 via 10.1.1.254 dev eno2", "auth_key", "src_addr"] {
        assert!(notes.contains(key), "{key}:\n{notes}");
    }
    assert!(!notes.contains("001122") && !import.toml.contains("001122"));
}

#[test]
fn errors_are_reported_at_their_line() {
    let copy = std::env::temp_dir().join(format!("ropewalk-import-{}", std::process::id()));
    std::fs::create_dir_all(copy.join("conf/connections")).unwrap();
    std::fs::copy(folder().join("interface.conf"), copy.join("conf/interface.conf")).unwrap();
    let valid = std::fs::read_to_string(folder().join("connections/c1.conf")).unwrap();
    let error = |old: &str, new: &str| {
        assert!(valid.contains(old), "{old}");
        std::fs::write(copy.join("conf/connections/c1.conf"), valid.replacen(old, new, 1)).unwrap();
        mpt::import::import(&copy, None).unwrap_err().to_string()
    };
    let [paths, address, line] = [
        error("path_count = 2", "path_count = 3"),
        error("remote_ipaddr = 10.2.2.2", "remote_ipaddr = 10.2.2"),
        error("[path_0]", "path 0"),
    ];
    assert!(paths.contains("c1.conf:10:1") && paths.contains("no [path_2]"), "{paths}");
    assert!(address.contains("c1.conf:36:1") && address.contains("cannot be `10.2.2`"), "{address}");
    assert!(line.contains("c1.conf:18:1") && line.contains("neither a [section]"), "{line}");
    assert!(mpt::import::import(&copy, Some("c2")).unwrap_err().to_string().contains("neither"));
    std::fs::remove_dir_all(copy).unwrap();
}
