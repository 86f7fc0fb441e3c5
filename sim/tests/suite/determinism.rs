//! Seed + experiment = the run.

use crate::common::{bulk, one_link, pipe};
use link::{LossModel, PipeConfig};
use scenario::model::Experiment;
use units::{Rate, Span};

fn lossy() -> Experiment {
    let pipe = PipeConfig {
        loss: LossModel::Random(0.001),
        jitter: Span::from_micros(300),
        duplicate: 0.001,
        corrupt: 0.001,
        reorder: 0.001,
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
