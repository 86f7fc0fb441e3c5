//! Captures on a link, as tshark reads them: the packets of the record, each with what became of it.

use ropewalk_trace::{LinkEnd, Outputs, Place, trace};
use scenario::Overrides;
use scenario::model::Experiment;
use std::path::Path;
use std::process::Command;

/// A chain: Wi-Fi, whose CoDel marks, and a wire that loses and duplicates; then a link shared with a second path. Nothing is
/// in a link when the run ends.
const CHAIN: &str = r#"
name = "links"
duration = "5s"
[[link]]
name = "wifi"
rate = "20mbit"
delay = "10ms"
loss = "0.5%"
duplicate = "0.5%"
queue = { discipline = "codel", ecn = true }
[[link]]
name = "lte"
rate = "8mbit"
delay = "30ms"
[[link]]
name = "shared"
rate = "15mbit"
delay = "1ms"
queue = { limit = "20p" }
[[path]]
name = "p"
links = ["wifi", "shared"]
[[path]]
name = "q"
links = ["lte", "shared"]
"#;

/// One link a path.
pub(crate) const TWO_PATHS: &str = r#"
name = "links"
duration = "5s"
[[path]]
name = "wifi"
rate = "20mbit"
delay = "10ms"
loss = "0.5%"
queue = { discipline = "codel", ecn = true }
[[path]]
name = "lte"
rate = "10mbit"
delay = "30ms"
queue = { limit = "15p" }
"#;

const MPTCP: &str = "[[flow]]\nname = \"f\"\nkind = \"mptcp\"\nstop = \"3s\"\nhost = { ecn = true }\n";
const TCP: &str = "[[flow]]\nname = \"f\"\nstop = \"3s\"\nhost = { ecn = true }\n";
const ROPEWALK: &str = "[tunnel]\nmode = \"ropewalk\"\npaths = [\"wifi\", \"lte\"]\n";
const MPT: &str = "[tunnel]\nmode = \"mpt\"\npaths = [\"wifi\", \"lte\"]\n";

fn experiment(text: &str) -> Experiment {
    let scenario = scenario::parse("test", text, Path::new(""), &Overrides::default()).expect("a scenario");
    scenario.cells[0].experiment.clone()
}

/// Packets on a link in the forward direction.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    all: u64,
    dropped: u64,
    lost: u64,
    marked: u64,
    copies: u64,
}

/// What tshark counts at a place; none if it is not installed. No packet is malformed.
fn counts(pcap: &Path) -> Option<Counts> {
    let tshark = |arguments: &[&str]| {
        let output = Command::new("tshark").arg("-r").arg(pcap).args(arguments).output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).expect("text"))
    };
    let Some(malformed) = tshark(&["-Y", "_ws.malformed"]) else {
        testing::skip(testing::Reason::Missing, "tshark");
        return None;
    };
    assert_eq!(malformed, "");
    let lines = tshark(&["-T", "fields", "-e", "frame.interface_name", "-e", "frame.comment"])?;
    let mut counts = Counts::default();
    let forward = lines.lines().filter_map(|line| line.split_once('\t')).filter(|(name, _)| !name.ends_with("reverse"));
    for (_, comments) in forward {
        counts.all += 1;
        for (count, text) in [
            (&mut counts.dropped, "dropped here"),
            (&mut counts.lost, "lost here"),
            (&mut counts.marked, "marked CE"),
            (&mut counts.copies, "a copy"),
        ] {
            *count += u64::from(comments.contains(text));
        }
    }
    Some(counts)
}

/// What tshark counts at both ends of a link, and the record.
fn at_both_ends(folder: &Path, text: &str, name: &str) -> Option<([Counts; 2], record::Run)> {
    let experiment = experiment(text);
    let plain = sim::run(&experiment, 7).expect("a run");
    let counts_at = |place: &str| {
        let (pcap, place) = (folder.join("link.pcapng"), Place::parse(place, &experiment).expect("a place"));
        let outputs = Outputs { pcap: Some(&pcap), place, ..Outputs::default() };
        assert_eq!(trace(&experiment, 7, &outputs).expect("a trace").digest, plain.digest);
        counts(&pcap)
    };
    let (begin, end) = (counts_at(name)?, counts_at(&format!("{name}:out"))?);
    Some(([begin, end], plain))
}

#[test]
fn what_happens_on_a_link_is_counted_as_the_record_counts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for (flow, tunnel) in [(MPTCP, ""), (TCP, ROPEWALK), (TCP, MPT)] {
        let text = format!("{TWO_PATHS}{flow}{tunnel}");
        let (mut marks, mut drops, mut losses) = (0, 0, 0);
        for (index, name) in ["wifi", "lte"].iter().enumerate() {
            let Some(([begin, end], run)) = at_both_ends(folder.path(), &text, name) else { return };
            let path = &run.paths[index];
            assert_eq!(begin.all, path.sent_packets, "{name}: {text}");
            assert_eq!(end.all, path.delivered_packets, "{name}: {text}");
            let counted = [begin.dropped, begin.lost, begin.marked];
            assert_eq!(counted, [path.dropped_packets, path.lost_packets, path.marked_packets], "{name}: {text}");
            assert_eq!([end.dropped, end.lost], [0, 0], "what is lost does not leave: {name}: {text}");
            assert!(end.marked <= begin.marked, "{name}: {text}");
            (marks, drops, losses) = (marks + begin.marked, drops + begin.dropped, losses + begin.lost);
        }
        assert!(losses > 0 && (tunnel == MPT || drops > 0), "{drops} drops, {losses} losses: {text}");
        assert!(tunnel == MPT || tunnel == ROPEWALK || marks > 0, "{marks} marks: {text}");
    }
}

#[test]
fn on_a_chain_the_links_together_have_the_counts_of_the_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("{CHAIN}{TCP}path = \"p\"\n");
    let at = |name: &str| at_both_ends(folder.path(), &text, name);
    let (Some(([first, after_first], run)), Some(([last, end], _))) = (at("wifi"), at("shared")) else { return };
    let path = &run.paths[0];
    assert_eq!([first.all, end.all], [path.sent_packets, path.delivered_packets]);
    assert_eq!(after_first.all, last.all, "what leaves one link enters the next");
    assert_eq!(first.dropped + last.dropped, path.dropped_packets);
    assert_eq!(first.lost + last.lost, path.lost_packets);
    assert_eq!(first.marked + last.marked, path.marked_packets);
    assert_eq!([after_first.copies, first.copies], [path.duplicated_packets.expect("counted"), 0]);
    assert!(last.dropped > 0 && first.lost > 0 && after_first.copies > 0, "{first:?}, {last:?}");
}

#[test]
fn a_shared_link_has_the_packets_of_all_its_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("{CHAIN}{MPTCP}");
    let at = |name: &str| Some(at_both_ends(folder.path(), &text, name)?.0);
    let (Some([_, wifi]), Some([_, lte]), Some([shared, _])) = (at("wifi"), at("lte"), at("shared")) else { return };
    assert_eq!(shared.all, wifi.all + lte.all);
    assert!(wifi.all > 100 && lte.all > 100, "{wifi:?}, {lte:?}");
}

#[test]
fn a_place_is_an_end_of_the_paths_or_of_a_link() {
    let experiment = experiment(&format!("{TWO_PATHS}{MPTCP}"));
    let place = |text: &str| Place::parse(text, &experiment);
    assert_eq!(place("near"), Ok(Place::Near));
    assert_eq!(place("far"), Ok(Place::Far));
    assert_eq!(place("lte"), Ok(Place::Link { link: 1, end: LinkEnd::In }));
    assert_eq!(place("wifi:out"), Ok(Place::Link { link: 0, end: LinkEnd::Out }));
    for wrong in ["", "dsl", "lte:in", "near:out", ":out"] {
        let error = place(wrong).unwrap_err();
        assert_eq!(
            error,
            format!("no place '{wrong}': near, far, or a link (wifi, lte), with ':out' as packets leave it")
        );
    }
}
