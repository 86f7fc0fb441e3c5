//! Which paths a tunnel has, what is its default, and which nuisances are refused.

use crate::bad_inputs::{FLOW, HEAD, PATH, check};
use crate::good_inputs::{SMALL, experiment};
use ropewalk_scenario::model::{Relay, Route};
use units::{Rate, Span};

#[test]
fn a_path_without_a_tunnel_must_not_be_guessed_but_a_tunnel_has_all_paths() {
    let two = format!("{SMALL}[[path]]\nname = \"other\"\nrate = \"1mbit\"\n[tunnel]\nkind = \"mpt-gre\"\n");
    let e = experiment(&two, &[]);
    let tunnel = e.tunnel.unwrap();
    assert_eq!((e.flows[0].route, tunnel.paths, tunnel.weights), (Route::Tunnel, vec![0, 1], vec![1, 1]));
    assert_eq!((tunnel.mtu, tunnel.overhead), (1440, 36));
    assert_eq!((tunnel.resequence, tunnel.device), (None, None));
    assert_eq!(tunnel.ropewalk, None, "MPT's is the default");
    let zero = experiment(&two, &["tunnel.resequence={ window = \"0p\", timeout = \"300ms\" }"]);
    assert_eq!(zero.tunnel.unwrap().resequence, None);
    let ropewalk = format!(
        "{SMALL}[[path]]\nname = \"other\"\nrate = \"1mbit\"\n[tunnel]\nmode = \"ropewalk\"\nbackup = [\"other\"]\n"
    );
    let whole = |sets: &[&str]| experiment(&ropewalk, sets).tunnel.unwrap().has_offload();
    assert_eq!((whole(&[]), whole(&["tunnel.offload=false"])), (true, false), "as the daemon's device by default");
    let ropewalk = experiment(&ropewalk, &["tunnel.max_reorder_timeout=20ms", "path.other.mtu=1400b"]).tunnel.unwrap();
    assert_eq!((ropewalk.mtu, ropewalk.overhead), (1400 - 28 - 34, 28), "what the smaller path's datagrams hold");
    assert_eq!(ropewalk.relay(), None, "TCP runs end to end by default");
    let settings = ropewalk.ropewalk.unwrap();
    assert_eq!((settings.options.max_reorder_timeout, settings.backup), (Span::from_millis(20), vec![1]));
    let relayed = |sets: &[&str]| {
        let table = "[tunnel]\nmode = \"ropewalk\"\nrelay = \"tcp\"\n";
        experiment(&format!("{SMALL}{table}"), sets).tunnel.unwrap().relay().cloned()
    };
    assert_eq!((relayed(&["tunnel.relay=off"]), relayed(&[])), (None, Some(Relay::default())));
    let sets = ["tunnel.relay_congestion=bbr", "tunnel.relay_rate=10gbit", "tunnel.relay_delay=10us"];
    let relay = Relay { congestion: "bbr".into(), rate: Rate::from_mbit(10_000), delay: Span::from_micros(10) };
    assert_eq!(relayed(&sets), Some(relay));
    let over_ipv6 = experiment(&two, &["host.ip=6"]).tunnel.unwrap();
    assert_eq!((over_ipv6.mtu, over_ipv6.overhead), (1440, 56), "an IPv6 header has 40 bytes");
}

#[test]
fn the_paths_have_the_congestion_control_of_a_flow_that_a_sweep_may_vary() {
    let text = format!("{SMALL}[tunnel]\nmode = \"ropewalk\"\ncongestion_of = \"tcp\"\n");
    let of = |sets: &[&str]| experiment(&text, sets).tunnel.unwrap().ropewalk.unwrap().options.congestion;
    assert_eq!(of(&[]), "cubic".into(), "the flow's default");
    assert_eq!(of(&["flow.tcp.congestion=vegas"]), "vegas".into());
    let tunnel = |lines: &str| format!("{HEAD}{PATH}[tunnel]\nmode = \"ropewalk\"\n{lines}\n{FLOW}");
    check(&tunnel("congestion_of = \"tpc\""), 9, "tunnel.congestion_of", "unknown flow `tpc`");
    let both = "congestion = \"bbr\"\ncongestion_of = \"tcp\"";
    check(&tunnel(both), 10, "tunnel.congestion_of", "say the same thing");
    check(&format!("{HEAD}{PATH}[tunnel]\ncongestion_of = \"tcp\"\n{FLOW}"), 8, "tunnel.congestion_of", "set mode");
}

#[test]
fn a_nuisance_that_cannot_be_is_refused_at_its_key() {
    let tunnel = |lines: &str| format!("{HEAD}{PATH}[tunnel]\n{lines}\n{FLOW}");
    let bad = |lines: &str, line, key: &str, phrase| check(&tunnel(lines), line, &format!("tunnel.{key}"), phrase);
    bad("nuisances = { draw_first = true }\nfirst = 0", 9, "first", "leave out one of the two");
    bad("nuisances = { stray_interval = \"0s\" }", 8, "nuisances.stray_interval", "more than zero");
    let wake_up = "nuisances = { wake_up = { least = \"3us\", mean = \"10us\" } }";
    bad(wake_up, 8, "nuisances.wake_up", "add device =");
    bad(
        "nuisances = { wake_up = { least = \"3us\", mean = \"2us\" } }",
        8,
        "nuisances.wake_up",
        "below the minimum latency",
    );
    let reader = "nuisances = { reader = { least = \"3us\", mean = \"2us\" } }";
    bad(reader, 8, "nuisances.reader", "below the minimum latency");
    let both = "nuisances = { reader = { least = \"3us\", mean = \"4us\" }, preemption = 3400 }";
    bad(both, 8, "nuisances.preemption", "leave out one of the two");
    bad("nuisances = { wake_up = { least = \"3us\" } }", 8, "nuisances.wake_up.mean", "missing key `mean`");
    bad(&format!("mode = \"ropewalk\"\n{wake_up}"), 9, "nuisances", "set mode = \"mpt\"");
}
