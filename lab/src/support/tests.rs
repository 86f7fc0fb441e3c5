use super::*;
use crate::Generator;
use scenario::Overrides;
use std::path::Path;

const SCENARIO: &str = r#"
name = "small"
duration = "1s"

[host]
tick = "10ms"

[[path]]
name = "wire"
rate = "10mbit"
queue = { limit = "40p" }

[[flow]]
name = "tcp"
"#;
const SECOND_PATH: &str = "[[path]]\nname = \"b\"\nrate = \"10mbit\"\n";
const MPTCP: &str = "flow.tcp.kind=mptcp";

fn experiment(addition: &str, sets: &[&str]) -> Experiment {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let text = format!("{SCENARIO}{addition}");
    let scenario = scenario::parse("test", &text, Path::new(""), &Overrides { sets, quick: false });
    scenario.unwrap_or_else(|error| panic!("{addition}\n{error}")).cells[0].experiment.clone()
}

/// The capabilities of a kernel with every feature.
fn full_capabilities() -> Capabilities {
    Capabilities {
        congestion_controls: ["bbr", "cubic", "reno"].map(str::to_owned).to_vec(),
        default_congestion_controls: ["cubic", "reno"].map(str::to_owned).to_vec(),
        programs: Programs::default(),
        mptcp: true,
        netem: true,
        policer: true,
        qdiscs: QDISCS.iter().map(|(name, ..)| *name).collect(),
        tun: true,
        ipv6: true,
        jiffy: Some(Span::from_millis(10)),
    }
}

/// The key that [`check`] rejects; empty if it accepts the experiment.
fn rejected_key(addition: &str, sets: &[&str], capabilities: &Capabilities) -> String {
    match check(&experiment(addition, sets), capabilities) {
        Ok(()) => String::new(),
        Err(Error::Unsupported { key, .. }) => key,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn supported_features_are_accepted() {
    let rival = "[[flow]]\nname = \"rival\"\nstart = \"500ms\"\ncongestion = \"bbr\"\n";
    let events = "[[event]]\nat = \"500ms\"\npath = \"wire\"\nrate = \"2mbit\"\ndelay = \"5ms\"\nloss = \"1%\"\n\
                  [[event]]\nat = \"600ms\"\npath = \"wire\"\nup = false\n";
    let queue = "path.wire.queue={ limit = \"20ms\", discipline = \"codel\" }";
    let wire = [
        "path.wire.overhead=38b",
        "path.wire.loss=1%",
        "path.wire.jitter=1ms",
        queue,
        "path.wire.duplicate=1%",
        "path.wire.corrupt=1%",
    ];
    let host =
        ["host.ecn=true", "host.pacing=true", "host.mss=1000b", "host.ip=6", "host.tick=4ms", "flow.tcp.size=1MB"];
    assert_eq!(rejected_key(&format!("{rival}{events}"), &[&wire[..], &host].concat(), &full_capabilities()), "");
    let tunnel = "[tunnel]\nmode = \"ropewalk\"\n";
    assert_eq!(rejected_key(&format!("{SECOND_PATH}{tunnel}"), &[], &full_capabilities()), "");
    let udp = "[[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"36b\"\n";
    for sets in [&["flow.tcp.rate=1mbit", "flow.tcp.write=100b"][..], &["flow.tcp.requests={ size = \"20kB\" }"]] {
        assert_eq!(rejected_key(udp, sets, &full_capabilities()), "", "{sets:?}");
    }
    assert_eq!(rejected_key(udp, &["host.ip=6"], &full_capabilities()), "flow.u.packet", "with IPv6's longer header");
    let local = ["path.wire.local=true", "flow.rival.path=b"];
    assert_eq!(
        rejected_key(&format!("{SECOND_PATH}{tunnel}{rival}"), &[], &full_capabilities()),
        "",
        "two in the tunnel"
    );
    assert_eq!(
        rejected_key(&format!("{SECOND_PATH}{tunnel}{rival}"), &local, &full_capabilities()),
        "",
        "one at the local queue"
    );
    assert_eq!(rejected_key(SECOND_PATH, &[MPTCP], &full_capabilities()), "");
    let endless = "[[path]]\nname = \"b\"\nqueue = { limit = \"20ms\" }\n";
    assert_eq!(rejected_key(endless, &["flow.tcp.path=wire"], &full_capabilities()), "", "no flow uses the other path");
    let red = "path.wire.queue={ discipline = \"red\", min = \"5kB\", max = \"15kB\" }";
    let emulated = Capabilities { netem: false, qdiscs: Vec::new(), ..full_capabilities() };
    assert_eq!(rejected_key("", &[red], &emulated), "", "the emulator of links has RED");
}

#[test]
fn features_of_no_kernel_are_rejected_with_their_key() {
    let udp = "[[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"35b\"\n";
    let rival = "[[flow]]\nname = \"rival\"\n";
    let endless = "[[path]]\nname = \"b\"\nqueue = { limit = \"20ms\" }\n";
    let faster = "[[path]]\nname = \"b\"\n[[event]]\nat = \"500ms\"\npath = \"b\"\nrate = \"2mbit\"\n";
    let outage = "[[event]]\nat = \"500ms\"\npath = \"wire\"\nrate = \"0mbit\"\n";
    let cake = "path.wire.queue={ discipline = \"cake\", ecn = false }";
    let tunnel = format!("{SECOND_PATH}[tunnel]\nmode = \"ropewalk\"\n");
    let outside_tunnel = format!("{tunnel}{rival}path = \"wire\"\n");
    let different_hosts = format!("{tunnel}{rival}[flow.host]\nmss = \"1000b\"\n");
    let subflows = |second: &str| format!("flow.tcp.subflow=[{{ path = \"wire\" }}, {{ path = \"b\", {second} }}]");
    let first = "flow.tcp.subflow=[{ path = \"wire\", backup = true }, { path = \"b\" }]";
    let (join, leave) = (subflows("join = \"200ms\""), subflows("leave = \"500ms\""));
    let cubic_beta = "tunnel.relay_congestion={ name = \"cubic\", beta = 0.5 }";
    let cases: &[(&str, &[&str], &str)] = &[
        (udp, &[], "flow.u.packet"),
        (rival, &["path.wire.local=true"], "path.wire.local"),
        (&outside_tunnel, &["path.wire.local=true"], "path.wire.local"),
        (&different_hosts, &[], "flow.tcp.host"),
        ("", &["path.wire.local=true", "host.pacing=true"], "host.pacing"),
        (endless, &["flow.tcp.path=b"], "path.b.queue.limit"),
        (faster, &["flow.tcp.path=b"], "path.b.rate"),
        (outage, &[], "path.wire.rate"),
        ("", &[cake], "path.wire.queue.ecn"),
        ("", &["path.wire.mtu=1400b"], "path.wire.mtu"),
        (&tunnel, &["tunnel.offload=false"], "tunnel.offload"),
        (&tunnel, &["tunnel.bundles=false"], "tunnel.bundles"),
        ("", &["path.wire.grants={ period = \"5ms\", request = \"8ms\" }"], "path.wire.grants"),
        ("", &["flow.tcp.video={ kind = \"live\", ladder = [\"1mbit\"] }"], "flow.tcp.video"),
        ("", &["flow.tcp.congestion=copa"], "flow.tcp.congestion"),
        ("", &["flow.tcp.congestion={ name = \"cubic\", beta = 0.5 }"], "flow.tcp.congestion"),
        (SECOND_PATH, &[MPTCP, &join], "flow.tcp.subflows"),
        (SECOND_PATH, &[MPTCP, &leave], "flow.tcp.subflows"),
        (SECOND_PATH, &[MPTCP, first], "flow.tcp.subflows"),
        (SECOND_PATH, &["flow.tcp.kind=mpquic"], "flow.tcp.kind"),
        (SECOND_PATH, &[MPTCP, "flow.tcp.requests={ size = \"20kB\" }"], "flow.tcp.requests"),
        (&tunnel, &["tunnel.codel_target=5ms"], "tunnel.codel_target"),
        (&tunnel, &["tunnel.memory=1MB"], "tunnel.memory"),
        (&tunnel, &["tunnel.relay=tcp", "tunnel.relay_congestion=vegas"], "tunnel.relay_congestion"),
        (&tunnel, &["tunnel.relay=tcp", cubic_beta], "tunnel.relay_congestion"),
        ("", &["host.gro=8"], "host.gro"),
        ("", &["host.recovery=fack"], "host.recovery"),
        ("", &["host.handshake=false"], "host.handshake"),
        ("", &["host.initial_rto=3s"], "host.initial_rto"),
        ("", &["host.window=20p"], "host.window"),
    ];
    for (addition, sets, expected) in cases {
        assert_eq!(&rejected_key(addition, sets, &full_capabilities()), expected, "{sets:?} {addition}");
    }
}

/// One example for each entry of [`SIMULATOR_ONLY`], in the same order.
#[test]
fn every_simulator_only_feature_is_rejected() {
    let subflow = "flow.tcp.subflow=[{ path = \"wire\" }, { path = \"b\", leave = \"500ms\" }]";
    let examples: [(&str, &[&str]); 11] = [
        ("", &["flow.tcp.video={ kind = \"live\", ladder = [\"1mbit\"] }"]),
        ("", &["path.wire.queue={ discipline = \"dualpi2\" }"]),
        ("[[path]]\nname = \"b\"\ntrace = \"{trace}\"\n", &["flow.tcp.path=b"]),
        ("", &["path.wire.grants={ period = \"5ms\", request = \"8ms\" }"]),
        ("", &["path.wire.mtu=9000b"]),
        ("", &["flow.tcp.congestion={ name = \"cubic\", beta = 0.5 }"]),
        (SECOND_PATH, &[MPTCP, subflow]),
        (SECOND_PATH, &[MPTCP, "flow.tcp.requests={ size = \"20kB\" }"]),
        ("", &["flow.tcp.direction=reverse"]),
        ("", &["host.profile=ns-2"]),
        ("[[flow]]\nname = \"h\"\nkind = \"hosted\"\nstack = \"noq\"\npath = \"wire\"\n", &[]),
    ];
    let (last, others) = SIMULATOR_ONLY.split_last().unwrap();
    assert_eq!(examples.len(), others.len());
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/traces/4g-made.trace");
    for ((addition, sets), claim) in examples.iter().zip(others) {
        assert!(!rejected_key(&addition.replace("{trace}", trace), sets, &full_capabilities()).is_empty(), "{claim}");
    }
    // A fat tree is the whole network.
    let tree = SCENARIO.split("[[path]]").next().unwrap().to_owned() + "[fat_tree]\nk = 2\n[[flow]]\nname = \"tcp\"\n";
    let tree = scenario::parse("test", &tree, Path::new(""), &Overrides::default()).unwrap();
    let refusal = check(&tree.cells[0].experiment, &full_capabilities());
    assert!(matches!(refusal, Err(Error::Unsupported { key, .. }) if key == "fat_tree"), "{last}");
}

#[test]
fn features_that_a_kernel_lacks_are_rejected_with_their_key() {
    let bursts = "path.wire.loss={ to_bad = \"1%\", to_good = \"10%\" }";
    let tunnel = format!("{SECOND_PATH}[tunnel]\nkind = \"mpt-gre\"\n");
    let capabilities_without = |change: fn(&mut Capabilities)| {
        let mut capabilities = full_capabilities();
        change(&mut capabilities);
        capabilities
    };
    let red = "path.wire.queue={ discipline = \"red\", min = \"5kB\", max = \"15kB\" }";
    let cake = "path.wire.queue={ discipline = \"cake\" }";
    let policer = "path.wire.policer={ rate = \"1mbit\", burst = \"10kB\" }";
    let cases: [(&str, &[&str], Capabilities, &str); 9] = [
        ("", &[policer], capabilities_without(|kernel| kernel.policer = false), "path.wire.policer"),
        (
            "",
            &[red],
            capabilities_without(|kernel| kernel.qdiscs.retain(|name| *name != "red")),
            "path.wire.queue.discipline",
        ),
        (
            "",
            &[cake],
            capabilities_without(|kernel| kernel.qdiscs.retain(|name| *name != "cake")),
            "path.wire.queue.discipline",
        ),
        ("", &["host.pacing=true"], capabilities_without(|kernel| kernel.qdiscs.clear()), "host.pacing"),
        (&tunnel, &[], capabilities_without(|kernel| kernel.tun = false), "tunnel"),
        (SECOND_PATH, &[MPTCP], capabilities_without(|kernel| kernel.mptcp = false), "flow.tcp.kind"),
        ("", &["host.ip=6"], capabilities_without(|kernel| kernel.ipv6 = false), "host.ip"),
        ("", &[bursts], capabilities_without(|kernel| kernel.netem = false), "path.wire.loss"),
        (
            "",
            &["flow.tcp.congestion=bbr"],
            capabilities_without(|kernel| kernel.congestion_controls.retain(|name| name != "bbr")),
            "flow.tcp.congestion",
        ),
    ];
    for (addition, sets, capabilities, expected) in &cases {
        assert_eq!(&rejected_key(addition, sets, capabilities), expected, "{sets:?} {addition}");
    }
    for (addition, sets, ..) in &cases {
        assert_eq!(rejected_key(addition, sets, &full_capabilities()), "", "{sets:?} {addition}");
    }
}

#[test]
fn features_that_a_traffic_generator_lacks_are_rejected() {
    let rejected_key =
        |generator: Generator, sets: &[&str]| match generator.check(&experiment("", sets), &full_capabilities()) {
            Err(Error::Unsupported { key, .. }) => key,
            result => format!("{result:?}"),
        };
    assert_eq!(rejected_key(Generator::Ftp, &[]), "flow.tcp.size");
    assert_eq!(rejected_key(Generator::Ftp, &["flow.tcp.size=1MB", "flow.tcp.congestion=bbr"]), "flow.tcp.congestion");
    assert_eq!(rejected_key(Generator::Ftp, &["flow.tcp.size=1MB"]), "Ok(())");
    let fractional_seconds = ["duration=20s", "flow.tcp.start=2s", "flow.tcp.stop=4500ms"];
    assert_eq!(rejected_key(Generator::Iperf3, &fractional_seconds), "flow.tcp.stop");
    assert_eq!(rejected_key(Generator::Iperf3, &["duration=20s", "flow.tcp.start=2s", "flow.tcp.stop=4s"]), "Ok(())");
    assert_eq!(rejected_key(Generator::Agent, &fractional_seconds), "Ok(())");
    for program in [Generator::Iperf3, Generator::Ftp] {
        assert_eq!(rejected_key(program, &["flow.tcp.rate=1mbit"]), "flow.tcp.rate");
        assert_eq!(rejected_key(program, &["flow.tcp.requests={ size = \"20kB\" }"]), "flow.tcp.requests");
    }
    let error = |generator: Generator, addition: &str| {
        let size = ["flow.tcp.size=1MB"];
        generator
            .check(&experiment(addition, &size), &full_capabilities())
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let udp = "[[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"1000b\"\n";
    assert!(error(Generator::Iperf3, udp).starts_with("flow.u.kind: ") && error(Generator::Agent, udp).is_empty());
    let two_flows = format!("{SECOND_PATH}[tunnel]\nmode = \"ropewalk\"\n[[flow]]\nname = \"rival\"\nsize = \"1MB\"\n");
    assert!(error(Generator::Ftp, &two_flows).starts_with("flow: ") && error(Generator::Iperf3, &two_flows).is_empty());
}

#[test]
fn settings_that_the_kernel_overrides_are_noted_once() {
    let notes_of = |addition: &str, sets: &[&str]| notes(&experiment(addition, sets), &full_capabilities());
    assert!(notes_of("[[flow]]\nname = \"rival\"\n", &[]).is_empty());
    let tick = notes_of("[[flow]]\nname = \"rival\"\n", &["host.tick=4ms"]);
    assert!(matches!(&tick[..], [note] if note.contains("every 10 ms, not every 4 ms")), "{tick:?}");
    let unknown = Capabilities { jiffy: None, ..full_capabilities() };
    assert!(notes(&experiment("", &["host.tick=4ms"]), &unknown).is_empty(), "that kernel's tick is unknown");
    let keys = |notes: Vec<String>| {
        notes.iter().filter_map(|note| note.split(':').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(keys(notes_of(SECOND_PATH, &[MPTCP])), ["mptcp"]);
    assert_eq!(keys(notes_of("", &["path.wire.reorder=1%", "path.wire.delay=1ms"])), ["reorder"]);
    let small_queues = "host.small_queues=false";
    assert!(notes_of("", &[small_queues]).is_empty(), "the queue is not the host's");
    assert_eq!(keys(notes_of("", &[small_queues, "path.wire.local=true"])), ["host.small_queues"]);
    assert_eq!(keys(notes_of("", &["host.profile=linux-6.18"])), ["host.profile"]);
    let policer = "path.wire.policer={ rate = \"1mbit\", burst = \"10kB\" }";
    assert_eq!(keys(notes_of("", &[policer])), ["policer"]);
    assert!(notes_of("", &[policer, "path.wire.overhead=14b"]).is_empty(), "the overhead is an Ethernet header");
    let relayed = format!("{SECOND_PATH}[tunnel]\nmode = \"ropewalk\"\nrelay = \"tcp\"\n");
    assert_eq!(keys(notes_of(&relayed, &[])), ["tunnel.relay_rate and relay_delay"]);
    let tunnel = format!("{SECOND_PATH}[tunnel]\nkind = \"mpt-gre\"\n");
    let two_flows = format!("{tunnel}[[flow]]\nname = \"rival\"\n");
    assert_eq!(keys(notes_of(&two_flows, &[])), ["tunnel"]);
    let device = |socket: u32| format!("tunnel.device={{ ring = \"1500p\", socket = \"{socket}p\" }}");
    let [default, smaller] = [92, 40].map(device);
    assert_eq!(keys(notes_of(&tunnel, &["tunnel.first=1", &default])), ["tunnel.first and stray_packets"]);
    assert_eq!(keys(notes_of(&tunnel, &["tunnel.nuisances={ draw_first = true }"])), ["tunnel.nuisances"]);
    assert_eq!(keys(notes_of(&tunnel, &[&smaller])), ["tunnel.device.socket"]);
}
