//! Every scenario that is shipped can be read, and the schema knows its keys.

use link::{LossModel, QueueLimit};
use ropewalk_scenario::model::FlowKind;
use ropewalk_scenario::{Overrides, Scenario, load, schema};
use std::path::{Path, PathBuf};

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    own.chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

fn shipped(name: &str) -> Scenario {
    load(&folder().join(name), &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_shipped_scenario_reads_and_opens_with_a_sentence() {
    let files = files(&folder());
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let scenario = load(&file, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        assert!(scenario.text.starts_with("# "), "{}", file.display());
        assert_eq!(Some(scenario.name.as_str()), file.file_stem().and_then(|stem| stem.to_str()));
        assert!(!scenario.about.is_empty(), "{}", file.display());
    }
}

/// The default profile may become another one.
#[test]
fn published_experiments_and_studies_name_the_linux_that_they_are_of() {
    let named = ["papers", "studies"].map(|name| files(&folder().join(name)));
    assert!(named.iter().all(|files| !files.is_empty()));
    for file in named.into_iter().flatten() {
        let text = std::fs::read_to_string(&file).unwrap();
        let table = text.parse::<toml::Table>().unwrap();
        let has_axis = table.get("sweep").is_some_and(|axes| axes.get("host.profile").is_some());
        assert!(has_axis || table["host"].get("profile").is_some(), "{}", file.display());
    }
}

#[test]
fn the_schema_defines_the_parts_and_knows_every_key_of_the_shipped_scenarios() {
    let schema = schema();
    for part in ["path", "link", "flow", "tunnel", "event", "host"] {
        assert!(schema["$defs"][part]["properties"].is_object(), "{part}");
        assert_eq!(schema["$defs"][part]["additionalProperties"], false, "{part}");
    }
    assert_eq!(schema["$defs"]["path"]["properties"]["rate"]["anyOf"][0]["$ref"], "#/$defs/BitRate");
    for file in files(&folder()) {
        let text = std::fs::read_to_string(&file).unwrap();
        for key in text.parse::<toml::Table>().unwrap().keys() {
            assert!(schema["properties"][key].is_object(), "{key} of {}", file.display());
        }
    }
}

#[test]
fn the_paper_scenario_has_its_test_bed() {
    let scenario = shipped("papers/al-imareen-2024.toml");
    assert_eq!(scenario.cells.len(), 12 * 11);
    let cell = scenario.cells.iter().find(|cell| cell.parameters[1].1 == "hstcp" && cell.parameters[0].1 == "50ms");
    let experiment = &cell.unwrap().experiment;
    let FlowKind::Tcp { congestion, .. } = &experiment.flows[0].kind else { panic!() };
    assert_eq!(congestion.name, "highspeed");
    let netem = experiment.links.iter().find(|link| link.name == "netem").unwrap();
    assert_eq!((netem.forward.delay.as_millis(), netem.reverse.delay.as_millis()), (50, 0));
    assert_eq!((netem.forward.loss, netem.reverse.loss), (LossModel::None, LossModel::None));
    assert_eq!(netem.forward.rate, None);
    // What a 1440-byte inner packet takes on the wire: outer headers 36, Ethernet 38. The kernel reached 183.35 Mbit/s.
    let tunnel = experiment.tunnel.as_ref().unwrap();
    let wire = tunnel.mtu + tunnel.overhead + experiment.links[0].forward.overhead;
    let max_goodput = 200.0 * f64::from(tunnel.mtu - 52) / f64::from(wire);
    assert!((max_goodput - 183.36).abs() < 0.01, "{max_goodput}");
}

#[test]
fn the_benchmarks_have_the_round_trip_and_the_queue_that_others_were_timed_with() {
    for (name, queue, flows) in [("bench/w1.toml", 167, 1), ("bench/w2.toml", 1667, 10)] {
        let experiment = shipped(name).cells.remove(0).experiment;
        let round: u64 = experiment.links.iter().map(|l| (l.forward.delay + l.reverse.delay).as_millis()).sum();
        assert_eq!((round, experiment.flows.len(), experiment.links.len()), (20, flows, 3));
        assert_eq!(experiment.links[1].forward.queue.limit, QueueLimit::Packets(queue));
        // One bandwidth-delay product of 1500-byte packets, rounded up.
        let rate = experiment.links[1].forward.rate.unwrap();
        assert_eq!(rate.bytes_in(units::Span::from_millis(20)).div_ceil(1500), queue);
    }
}
