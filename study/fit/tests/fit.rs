//! Links that are known, measured in the simulator and fitted.

use fit::{Fit, Links, Model, Options, fit, simulated_measurement};
use measured::Measured;
use std::path::PathBuf;

/// Links of a text.
fn links(text: &str) -> Links {
    Links { text: text.to_owned(), sets: Vec::new(), folder: PathBuf::new(), origin: "test".to_owned() }
}

/// One path of known rate, delay and loss.
fn known() -> Links {
    links(
        "name = \"hidden\"\nduration = \"10s\"\n[[path]]\nname = \"lte\"\nrate = \"12mbit\"\ndelay = \"20ms\"\njitter = \"1ms\"\n\
         queue = { limit = \"60p\" }\nloss = \"0.3%\"\nreverse = { rate = \"5mbit\", loss = \"0%\" }\n",
    )
}

fn measurement() -> Measured {
    simulated_measurement(&known(), &["lte"], &[901, 902, 903]).expect("the links are a scenario")
}

fn fitted(measured: &Measured, generations: usize, threads: usize) -> Fit {
    let model = Model::of_measurement(measured, &[]).expect("the measurement is whole");
    let options = Options { starts: 2, hold: vec!["call".to_owned()], threads, seed: 1 };
    fit(&model, measured, &options, &mut |progress| progress.evaluations < 10 * generations).expect("the runs succeed")
}

#[test]
fn the_ensemble_depends_on_the_evaluations_and_not_on_the_threads() {
    let measured = measurement();
    let [one, three] = [1, 3].map(|threads| fitted(&measured, 2, threads));
    assert_eq!(one.digest, three.digest);
    assert_eq!(one, three);
    assert_eq!(one.evaluations, 20);
}

#[test]
fn a_fit_of_one_known_path_finds_its_rate_and_beats_the_naive_links() {
    let fit = fitted(&measurement(), 10, 2);
    let of = |key: &str| fit.parameters.iter().find(|parameter| parameter.unknown.key == key).expect("an unknown");
    let (rate, delay) = (of("path.lte.rate").interval.median, of("path.lte.delay").interval.median);
    for line in &fit.observables {
        println!("{line:?}");
    }
    println!("{:?} noise {:?} naive {:?}", fit.distance, fit.noise, fit.naive);
    for p in &fit.parameters {
        println!("{} {:?} start {}", p.unknown.key, p.interval, p.unknown.start);
    }
    assert!((rate / 12e6 - 1.0).abs() < 0.1, "{rate}");
    assert!((delay / 0.020 - 1.0).abs() < 0.15, "{delay}");
    assert!(fit.beats_naive(), "{:?} {:?}", fit.distance, fit.naive);
    assert!(fit.distance.held_out < fit.naive.held_out, "{:?} {:?}", fit.distance, fit.naive);
    for line in &fit.observables {
        println!("{line:?}");
    }
    println!("{:?} noise {:?} naive {:?}", fit.distance, fit.noise, fit.naive);
    for p in &fit.parameters {
        println!("{} {:?}", p.unknown.key, p.interval);
    }
}
