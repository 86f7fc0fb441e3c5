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
const SECOND: &str = "[[path]]\nname = \"b\"\nrate = \"10mbit\"\n";
const MPTCP: &str = "flow.tcp.kind=mptcp";

fn experiment(addition: &str, sets: &[&str]) -> Experiment {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let text = format!("{SCENARIO}{addition}");
    let scenario = scenario::parse("test", &text, Path::new(""), &Overrides { sets, quick: false });
    scenario.unwrap_or_else(|error| panic!("{addition}\n{error}")).cells[0].experiment.clone()
}

/// A kernel that has everything.
fn able() -> Abilities {
    Abilities {
        congestion: ["bbr", "cubic", "reno"].map(str::to_owned).to_vec(),
        defaults: ["cubic", "reno"].map(str::to_owned).to_vec(),
        mptcp: true,
        netem: true,
        disciplines: DISCIPLINES.iter().map(|(name, ..)| *name).collect(),
        tun: true,
        v6: true,
        tick: Some(Span::from_millis(10)),
    }
}

/// The key that is refused; none if all of it can be done.
fn refused(addition: &str, sets: &[&str], abilities: &Abilities) -> String {
    match check(&experiment(addition, sets), abilities) {
        Ok(()) => String::new(),
        Err(Error::Unsupported { key, .. }) => key,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_a_kernel_can_do_is_accepted() {
    let rival = "[[flow]]\nname = \"rival\"\nstart = \"500ms\"\ncongestion = \"bbr\"\n";
    let events = "[[event]]\nat = \"500ms\"\npath = \"wire\"\nrate = \"2mbit\"\ndelay = \"5ms\"\nloss = \"1%\"\n\
                  [[event]]\nat = \"600ms\"\npath = \"wire\"\nup = false\n";
    let queue = "path.wire.queue={ limit = \"20ms\", discipline = \"codel\" }";
    let wire = ["path.wire.overhead=38b", "path.wire.loss=1%", "path.wire.jitter=1ms", queue];
    let host =
        ["host.ecn=true", "host.pacing=true", "host.mss=1000b", "host.ip=6", "host.tick=4ms", "flow.tcp.size=1MB"];
    assert_eq!(refused(&format!("{rival}{events}"), &[&wire[..], &host].concat(), &able()), "");
    let tunnel = "[tunnel]\nmode = \"ropewalk\"\n";
    assert_eq!(refused(&format!("{SECOND}{tunnel}"), &[], &able()), "");
    let udp = "[[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"36b\"\n";
    for sets in [&["flow.tcp.rate=1mbit", "flow.tcp.write=100b"][..], &["flow.tcp.requests={ size = \"20kB\" }"]] {
        assert_eq!(refused(udp, sets, &able()), "", "{sets:?}");
    }
    assert_eq!(refused(udp, &["host.ip=6"], &able()), "flow.u.packet", "with IPv6's longer header");
    let local = ["path.wire.local=true", "flow.rival.path=b"];
    assert_eq!(refused(&format!("{SECOND}{tunnel}{rival}"), &[], &able()), "", "two in the tunnel");
    assert_eq!(refused(&format!("{SECOND}{tunnel}{rival}"), &local, &able()), "", "one at the local queue");
    assert_eq!(refused(SECOND, &[MPTCP], &able()), "");
}

#[test]
fn what_no_kernel_can_do_is_refused_by_its_key() {
    let udp = "[[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"35b\"\n";
    let rival = "[[flow]]\nname = \"rival\"\n";
    let endless = "[[path]]\nname = \"b\"\nqueue = { limit = \"20ms\" }\n";
    let faster = "[[path]]\nname = \"b\"\n[[event]]\nat = \"500ms\"\npath = \"b\"\nrate = \"2mbit\"\n";
    let cake = "path.wire.queue={ discipline = \"cake\", ecn = false }";
    let tunnel = format!("{SECOND}[tunnel]\nmode = \"ropewalk\"\n");
    let beside = format!("{tunnel}{rival}path = \"wire\"\n");
    let inside = format!("{tunnel}{rival}[flow.host]\nmss = \"1000b\"\n");
    let subflows = |second: &str| format!("flow.tcp.subflow=[{{ path = \"wire\" }}, {{ path = \"b\", {second} }}]");
    let first = "flow.tcp.subflow=[{ path = \"wire\", backup = true }, { path = \"b\" }]";
    let (join, leave) = (subflows("join = \"200ms\""), subflows("leave = \"500ms\""));
    let cases: &[(&str, &[&str], &str)] = &[
        (udp, &[], "flow.u.packet"),
        (rival, &["path.wire.local=true"], "path.wire.local"),
        (&beside, &["path.wire.local=true"], "path.wire.local"),
        (&inside, &[], "flow.tcp.host"),
        ("", &["path.wire.local=true", "host.pacing=true"], "host.pacing"),
        (endless, &["flow.tcp.path=wire"], "path.b.queue.limit"),
        (faster, &["flow.tcp.path=wire"], "path.b.rate"),
        ("", &[cake], "path.wire.queue.ecn"),
        ("", &["path.wire.mtu=1400b"], "path.wire.mtu"),
        ("", &["flow.tcp.video={ kind = \"live\", ladder = [\"1mbit\"] }"], "flow.tcp.video"),
        ("", &["flow.tcp.congestion=copa"], "flow.tcp.congestion"),
        ("", &["flow.tcp.congestion={ name = \"cubic\", beta = 0.5 }"], "flow.tcp.congestion"),
        (SECOND, &[MPTCP, &join], "flow.tcp.subflows"),
        (SECOND, &[MPTCP, &leave], "flow.tcp.subflows"),
        (SECOND, &[MPTCP, first], "flow.tcp.subflows"),
        (&tunnel, &["tunnel.codel_target=5ms"], "tunnel.codel_target"),
        (&tunnel, &["tunnel.memory=1MB"], "tunnel.memory"),
        ("", &["host.gro=8"], "host.gro"),
        ("", &["host.recovery=fack"], "host.recovery"),
        ("", &["host.handshake=false"], "host.handshake"),
        ("", &["host.initial_rto=3s"], "host.initial_rto"),
        ("", &["host.window=20p"], "host.window"),
    ];
    for (addition, sets, expected) in cases {
        assert_eq!(&refused(addition, sets, &able()), expected, "{sets:?} {addition}");
    }
}

/// For each claim an example, in its order.
#[test]
fn what_is_said_to_be_the_simulators_alone_is_refused() {
    let subflow = "flow.tcp.subflow=[{ path = \"wire\" }, { path = \"b\", leave = \"500ms\" }]";
    let examples: [(&str, &[&str]); 6] = [
        ("", &["flow.tcp.video={ kind = \"live\", ladder = [\"1mbit\"] }"]),
        ("[[path]]\nname = \"b\"\ntrace = \"{trace}\"\n", &["flow.tcp.path=wire"]),
        ("", &["path.wire.mtu=9000b"]),
        ("", &["flow.tcp.congestion={ name = \"cubic\", beta = 0.5 }"]),
        (SECOND, &[MPTCP, subflow]),
        ("", &["host.profile=ns-2"]),
    ];
    assert_eq!(examples.len(), SIMULATOR_ONLY.len());
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/traces/4g-made.trace");
    for ((addition, sets), claim) in examples.iter().zip(SIMULATOR_ONLY) {
        assert!(!refused(&addition.replace("{trace}", trace), sets, &able()).is_empty(), "{claim}");
    }
}

#[test]
fn what_a_lesser_kernel_lacks_is_refused_by_its_key() {
    let bursts = "path.wire.loss={ to_bad = \"1%\", to_good = \"10%\" }";
    let tunnel = format!("{SECOND}[tunnel]\nkind = \"mpt-gre\"\n");
    let lesser = |change: fn(&mut Abilities)| {
        let mut abilities = able();
        change(&mut abilities);
        abilities
    };
    let red = "path.wire.queue={ discipline = \"red\", min = \"5kB\", max = \"15kB\" }";
    let cake = "path.wire.queue={ discipline = \"cake\" }";
    let cases: [(&str, &[&str], Abilities, &str); 8] = [
        ("", &[red], lesser(|it| it.disciplines.retain(|it| *it != "red")), "path.wire.queue.discipline"),
        ("", &[cake], lesser(|it| it.disciplines.retain(|it| *it != "cake")), "path.wire.queue.discipline"),
        ("", &["host.pacing=true"], lesser(|it| it.disciplines.clear()), "host.pacing"),
        (&tunnel, &[], lesser(|it| it.tun = false), "tunnel"),
        (SECOND, &[MPTCP], lesser(|it| it.mptcp = false), "flow.tcp.kind"),
        ("", &["host.ip=6"], lesser(|it| it.v6 = false), "host.ip"),
        ("", &[bursts], lesser(|it| it.netem = false), "path.wire.loss"),
        ("", &["flow.tcp.congestion=bbr"], lesser(|it| it.congestion.retain(|it| it != "bbr")), "flow.tcp.congestion"),
    ];
    for (addition, sets, abilities, expected) in &cases {
        assert_eq!(&refused(addition, sets, abilities), expected, "{sets:?} {addition}");
    }
    for (addition, sets, ..) in &cases {
        assert_eq!(refused(addition, sets, &able()), "", "{sets:?} {addition}");
    }
}

#[test]
fn programs_for_traffic_are_asked_for_nothing_that_they_cannot_do() {
    let refused = |generator: Generator, sets: &[&str]| match generator.check(&experiment("", sets), &able()) {
        Err(Error::Unsupported { key, .. }) => key,
        other => format!("{other:?}"),
    };
    assert_eq!(refused(Generator::Ftp, &[]), "flow.tcp.size");
    assert_eq!(refused(Generator::Ftp, &["flow.tcp.size=1MB", "flow.tcp.congestion=bbr"]), "flow.tcp.congestion");
    assert_eq!(refused(Generator::Ftp, &["flow.tcp.size=1MB"]), "Ok(())");
    let half = ["duration=20s", "flow.tcp.start=2s", "flow.tcp.stop=4500ms"];
    assert_eq!(refused(Generator::Iperf3, &half), "flow.tcp.stop");
    assert_eq!(refused(Generator::Iperf3, &["duration=20s", "flow.tcp.start=2s", "flow.tcp.stop=4s"]), "Ok(())");
    assert_eq!(refused(Generator::Agent, &half), "Ok(())");
    for program in [Generator::Iperf3, Generator::Ftp] {
        assert_eq!(refused(program, &["flow.tcp.rate=1mbit"]), "flow.tcp.rate");
        assert_eq!(refused(program, &["flow.tcp.requests={ size = \"20kB\" }"]), "flow.tcp.requests");
    }
    let all = |generator: Generator, addition: &str| {
        let size = ["flow.tcp.size=1MB"];
        generator.check(&experiment(addition, &size), &able()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let udp = "[[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"1000b\"\n";
    assert!(all(Generator::Iperf3, udp).starts_with("flow.u.kind: ") && all(Generator::Agent, udp).is_empty());
    let both = format!("{SECOND}[tunnel]\nmode = \"ropewalk\"\n[[flow]]\nname = \"rival\"\nsize = \"1MB\"\n");
    assert!(all(Generator::Ftp, &both).starts_with("flow: ") && all(Generator::Iperf3, &both).is_empty());
}

#[test]
fn what_a_kernel_does_in_its_own_way_is_noted_once() {
    let noted = |addition: &str, sets: &[&str]| notes(&experiment(addition, sets), &able());
    assert!(noted("[[flow]]\nname = \"rival\"\n", &[]).is_empty());
    let tick = noted("[[flow]]\nname = \"rival\"\n", &["host.tick=4ms"]);
    assert!(matches!(&tick[..], [one] if one.contains("10 ms") && one.contains("(4 ms)")), "{tick:?}");
    let unknown = Abilities { tick: None, ..able() };
    assert!(notes(&experiment("", &["host.tick=4ms"]), &unknown).is_empty(), "nobody knows that kernel's tick");
    let keys =
        |notes: Vec<String>| notes.iter().filter_map(|it| it.split(':').next().map(str::to_owned)).collect::<Vec<_>>();
    assert_eq!(keys(noted(SECOND, &[MPTCP])), ["mptcp"]);
    let tunnel = format!("{SECOND}[tunnel]\nkind = \"mpt-gre\"\n");
    let both = format!("{tunnel}[[flow]]\nname = \"rival\"\n");
    assert_eq!(keys(noted(&both, &[])), ["tunnel"]);
    let device = |socket: u32| format!("tunnel.device={{ ring = \"1500p\", socket = \"{socket}p\" }}");
    let [own, other] = [92, 40].map(device);
    assert_eq!(keys(noted(&tunnel, &["tunnel.first=1", &own])), ["tunnel.first and stray_packets"]);
    assert_eq!(keys(noted(&tunnel, &[&other])), ["tunnel.device.socket"]);
}
