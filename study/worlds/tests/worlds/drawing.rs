//! Drawing: every kind comes up, the bounds hold, and a world that is printed is the world that is run.

use link::{PipeConfig, QueueDiscipline, QueueLimit};
use runner::{Driver, Job, Simulator};
use scenario::Overrides;
use scenario::model::{AlgorithmChoice, Experiment, FlowKind};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use worlds::{BOUNDS, KINDS, World, draw};

fn experiment(world: &World) -> Experiment {
    world.experiment(&AlgorithmChoice::from("cubic")).unwrap_or_else(|error| panic!("world {}: {error}", world.seed))
}

/// Each kind of [`KINDS`] has a chance of a percent or more.
#[test]
fn every_kind_of_thing_stands_in_some_world_and_no_kind_is_unknown() {
    let drawn: BTreeSet<&str> = (0..1500).flat_map(|seed| draw(seed).kinds).collect();
    assert_eq!(drawn, BTreeSet::from(KINDS));
}

#[test]
fn every_world_is_a_scenario_within_the_bounds() {
    for seed in 0..400 {
        let world = draw(seed);
        let experiment = experiment(&world);
        let context = || format!("world {seed}: {}", world.about);
        let milliseconds = experiment.duration.as_millis();
        assert!((BOUNDS.duration_ms.0..=BOUNDS.duration_ms.1).contains(&milliseconds), "{}", context());
        assert!((1..=BOUNDS.flows).contains(&(experiment.flows.len() as u64)), "{}", context());
        assert_eq!(
            experiment.flows.len() as u64,
            world.rivals.iter().map(|rival| rival.count).sum::<u64>() + tests(&experiment),
            "{}",
            context()
        );
        for link in experiment.links.iter().filter(|link| link.name != "access") {
            let rate = link.forward.rate.expect("a bottleneck has a rate").as_bits() / 1000;
            assert!((BOUNDS.rate_kbit.0..=BOUNDS.rate_kbit.1).contains(&rate), "{}", context());
            assert!(queue_packets(&link.forward).is_none_or(|packets| packets >= BOUNDS.queue.0), "{}", context());
        }
        for path in &experiment.paths {
            let one_way = path.links.iter().map(|link| experiment.links[*link].forward.delay.as_micros());
            let rtt = 2 * one_way.sum::<u64>();
            assert!(rtt <= BOUNDS.rtt_us.1, "{rtt} us: {}", context());
        }
    }
}

/// The limit of a drop-tail queue.
fn queue_packets(pipe: &PipeConfig) -> Option<u64> {
    match pipe.queue.limit {
        QueueLimit::Packets(packets) if pipe.queue.discipline == QueueDiscipline::DropTail => Some(packets),
        _ => None,
    }
}

fn tests(experiment: &Experiment) -> u64 {
    experiment.flows.iter().filter(|flow| flow.name == "test" || flow.name.starts_with("test-")).count() as u64
}

#[test]
fn a_seed_has_one_world_and_seeds_have_different_ones() {
    assert_eq!(draw(7), draw(7));
    let texts: BTreeSet<String> = (0..100).map(|seed| draw(seed).text).collect();
    assert_eq!(texts.len(), 100);
}

fn digest(experiment: &Experiment, seed: u64) -> String {
    let (cancelled, reached) = (AtomicBool::new(false), AtomicU64::new(0));
    let job = Job { experiment, seed, raw_folder: None, cancelled: &cancelled, reached: &reached };
    Simulator.run(&job).unwrap().expect("nobody cancels").digest
}

#[test]
fn a_world_that_is_printed_and_read_again_has_the_digest_of_the_one_that_is_judged() {
    for seed in testing::campaign(6).range() {
        let world = draw(seed);
        let text = world.scenario_text(&["\"reno\"", "\"cubic\""]);
        let read = scenario::parse("printed.toml", &text, Path::new(""), &Overrides::default()).unwrap();
        assert_eq!((read.seeds.as_slice(), read.cells.len()), ([seed].as_slice(), 2));
        let judged = world.experiment(&AlgorithmChoice::from("reno")).unwrap();
        assert_eq!(read.cells[0].experiment, judged, "world {seed}");
        assert_eq!(digest(&read.cells[0].experiment, seed), digest(&judged, seed), "world {seed}");
    }
}

#[test]
fn only_the_flows_under_test_have_another_congestion_control() {
    let world = (0..100).map(draw).find(|world| world.kinds.contains("reno")).expect("one in ten has");
    let experiment = world.experiment(&AlgorithmChoice::from("vegas")).unwrap();
    for flow in &experiment.flows {
        let FlowKind::Tcp { congestion, .. } = &flow.kind else { continue };
        assert_eq!(congestion.name == "vegas", flow.name.starts_with("test"), "{}", flow.name);
    }
}
