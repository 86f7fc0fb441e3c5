//! Seed + experiment = the run.

use crate::common::{bulk, one_link, pipe};
use link::{LossModel, PipeConfig};
use ropewalk_sim::Simulation;
use scenario::model::Experiment;
use units::{Instant, Rate, Span};

fn lossy() -> Experiment {
    let pipe = PipeConfig {
        loss: LossModel::Random(0.001),
        jitter: Span::from_micros(300).into(),
        duplicate: 0.001,
        corrupt: 0.001,
        reorder: 0.001.into(),
        ..pipe(Rate::from_mbit(50), Span::from_millis(5), 60)
    };
    let mut experiment = one_link("bbr", pipe, 10);
    experiment.flows.push(bulk("second", "cubic"));
    experiment
}

fn digest(experiment: &Experiment, seed: u64) -> String {
    ropewalk_sim::run(experiment, seed).expect("registered").digest
}

#[test]
fn the_same_seed_gives_the_same_digest_and_another_seed_another() {
    let digest = |seed| digest(&lossy(), seed);
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8));
}

#[test]
fn threads_do_not_change_a_run() {
    let alone: Vec<String> = (0..4).map(|seed| digest(&lossy(), seed)).collect();
    let together: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || digest(&lossy(), seed))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(alone, together);
}

#[test]
fn a_run_cut_into_steps_is_the_same_run() {
    let (experiment, step) = (lossy(), Span::from_millis(7));
    for before in [false, true] {
        let mut simulation = Simulation::new(&experiment, 3).expect("registered");
        for number in 1.. {
            let until = Instant::ZERO + step * number;
            if before {
                simulation.run_before(until);
            } else {
                simulation.run_until(until);
            }
            if simulation.now() == simulation.end() {
                break;
            }
            assert_eq!(simulation.now(), until);
        }
        assert_eq!(simulation.finish(), ropewalk_sim::run(&experiment, 3).expect("registered"));
    }
}

#[test]
fn an_event_at_the_boundary_belongs_to_run_until_and_not_to_run_before() {
    // The SYN leaves at 0 and reaches the receiver after 10 ms, its acknowledgement the sender after 20 ms.
    let experiment =
        one_link("reno", PipeConfig { rate: None, ..pipe(Rate::from_mbit(1), Span::from_millis(10), 60) }, 1);
    let mut simulation = Simulation::new(&experiment, 1).expect("registered");
    let boundary = Instant::ZERO + Span::from_millis(10);
    simulation.run_before(boundary);
    let before = simulation.work().events;
    simulation.run_until(boundary);
    assert_eq!((before, simulation.work().events > before), (1, true));
}

#[test]
fn a_controller_of_a_flow_is_exchanged_before_its_start() {
    let experiment = |name| one_link(name, pipe(Rate::from_mbit(10), Span::from_millis(10), 20), 5);
    let mut simulation = Simulation::new(&experiment("cubic"), 1).expect("registered");
    let reno = control::registry::find("reno").expect("registered");
    *simulation.controller(0).expect("TCP") =
        reno.controller(&std::collections::BTreeMap::new()).expect("no parameters");
    assert_eq!(simulation.finish().digest, digest(&experiment("reno"), 1));
}

#[test]
fn sampling_does_not_change_a_run() {
    let sampled = Experiment { sample: Some(Span::from_millis(10)), ..lossy() };
    assert_eq!(digest(&sampled, 3), digest(&lossy(), 3));
}

#[test]
fn adding_a_component_does_not_change_anothers_random_draws() {
    let mut more = lossy();
    more.links.push(more.links[0].clone());
    more.links[1].name = "unused".to_owned();
    assert_eq!(digest(&more, 3), digest(&lossy(), 3));
}
