//! What the lab lacks is said by its key before anything boots.

use ropewalk_lab::{Error, check};
use scenario::Overrides;
use scenario::model::Experiment;
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

fn experiment(addition: &str, sets: &[&str]) -> Experiment {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario =
        scenario::parse("test", &format!("{SCENARIO}{addition}"), Path::new(""), &Overrides { sets, quick: false });
    scenario.unwrap_or_else(|error| panic!("{error}")).cells[0].experiment.clone()
}

#[test]
fn what_a_test_bed_can_do_is_accepted() {
    let addition = "[[flow]]\nname = \"rival\"\nstart = \"500ms\"\ncongestion = \"bbr\"\n\
                    [[event]]\nat = \"500ms\"\npath = \"wire\"\nrate = \"2mbit\"\ndelay = \"5ms\"\nloss = \"1%\"\n";
    let sets = ["path.wire.overhead=38b", "path.wire.loss=1%", "host.ecn=true", "host.pacing=true", "host.mss=1000b"];
    check(&experiment(addition, &sets)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_it_cannot_do_is_refused_by_its_key() {
    let tunnel = "[tunnel]\nkind = \"mpt-gre\"\n";
    let second = "[[path]]\nname = \"b\"\n[[flow]]\nname = \"other\"\npath = \"b\"\n";
    let udp = "[[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"1000b\"\n";
    let rival = "[[flow]]\nname = \"rival\"\n";
    let down = "[[event]]\nat = \"500ms\"\npath = \"wire\"\nup = false\n";
    let faster = "[[event]]\nat = \"500ms\"\npath = \"wire\"\nrate = \"2mbit\"\n";
    let cases: &[(&str, &[&str], &str)] = &[
        (tunnel, &[], "tunnel"),
        (second, &["flow.tcp.path=wire"], "path"),
        (udp, &[], "flow.u.kind"),
        (rival, &["path.wire.local=true"], "path.wire.local"),
        (down, &[], "event"),
        (faster, &["path.wire.reverse.rate=1gbit"], ""),
        ("", &["path.wire.jitter=1ms"], "path.wire.jitter"),
        ("", &["path.wire.queue.limit=20ms"], "path.wire.queue.limit"),
        ("", &["path.wire.queue.discipline=codel"], "path.wire.queue.discipline"),
        ("", &["flow.tcp.size=1MB"], "flow.tcp.size"),
        ("", &["flow.tcp.congestion=copa"], "flow.tcp.congestion"),
        ("", &["host.tick=4ms"], "host.tick"),
        ("", &["host.gro=8"], "host.gro"),
    ];
    for (addition, sets, expected) in cases {
        match check(&experiment(addition, sets)) {
            Err(Error::Lacks { key, .. }) => assert_eq!(&key, expected, "{sets:?} {addition}"),
            Ok(()) => assert!(expected.is_empty(), "accepted: {sets:?} {addition}"),
            Err(other) => panic!("{other}"),
        }
    }
}
