//! Runs in memory and in a folder are the same runs; a cancelled study keeps what is done.

use record::Run;
use ropewalk_runner::{Checked, Driver, Error, Job, Observer, Running, Simulator, Study};
use scenario::{Overrides, Scenario};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Key, Results};

const TEXT: &str = r#"
name = "two-rates"
duration = "1s"
seeds = [1, 2]

[[path]]
name = "link"
rate = "10mbit"
delay = "5ms"

[[flow]]
name = "tcp"
congestion = "cubic"

[sweep]
path.link.rate = ["1mbit", "2mbit"]
"#;

pub(crate) fn scenario() -> Scenario {
    scenario::parse("two-rates.toml", TEXT, Path::new(""), &Overrides::default()).unwrap()
}

/// Notes what it is told, and cancels after a number of finished runs.
struct Notes {
    started: Vec<Key>,
    finished: Vec<Key>,
    cancel_after: usize,
}

impl Notes {
    fn new(cancel_after: usize) -> Self {
        Self { started: Vec::new(), finished: Vec::new(), cancel_after }
    }
}

impl Observer for Notes {
    fn started(&mut self, key: Key) {
        self.started.push(key);
    }

    fn finished(&mut self, key: Key, run: &Run) {
        assert_eq!(key.1, run.seed);
        self.finished.push(key);
    }

    fn is_cancelled(&mut self) -> bool {
        self.finished.len() >= self.cancel_after
    }
}

#[test]
fn runs_are_the_same_in_memory_in_a_folder_and_with_any_number_of_threads() {
    let (scenario, dir) = (scenario(), tempfile::tempdir().unwrap());
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap();
    let mut notes = Notes::new(usize::MAX);
    let (manifest, runs) = study.run(Some(3), &mut notes).unwrap();
    let keys: Vec<Key> = runs.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [(0, 1), (0, 2), (1, 1), (1, 2)]);
    for told in [&mut notes.started, &mut notes.finished] {
        told.sort_unstable();
        assert_eq!(*told, keys);
    }
    let (stored, stored_runs) = study.open(dir.path()).unwrap().run(Some(1), &mut ()).unwrap();
    assert_eq!((stored, stored_runs), (manifest.clone(), runs.clone()));
    let (read, read_runs) = Results::open(dir.path()).unwrap();
    assert_eq!((read, read_runs), (manifest, runs.into_iter().map(|(_, run)| run).collect()));
}

#[test]
fn a_cancelled_study_keeps_what_is_done_and_is_resumed() {
    let (scenario, dir) = (scenario(), tempfile::tempdir().unwrap());
    let study = Study::new(&scenario, &Waits, false, Vec::new()).unwrap();
    let (manifest, kept) = study.open(dir.path()).unwrap().run(Some(1), &mut Notes::new(1)).unwrap();
    assert!(!manifest.complete && manifest.digest.is_none());
    assert_eq!(kept.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [(0, 1)], "the others wait to be cancelled");
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap();
    let folder = study.open(dir.path()).unwrap();
    assert_eq!((folder.found(), folder.missing()), (1, vec![(0, 2), (1, 1), (1, 2)]));
    let (manifest, _) = folder.run(None, &mut ()).unwrap();
    assert_eq!(manifest, study.run(None, &mut ()).unwrap().0);
}

#[test]
fn a_study_in_random_order_is_resumed_in_that_order_and_its_runs_are_in_that_of_the_sweep() {
    let (scenario, dir) = (scenario(), tempfile::tempdir().unwrap());
    let kernel = Kernel { runs_left: AtomicUsize::new(usize::MAX) };
    let study = Study::new(&scenario, &kernel, false, Vec::new()).unwrap();
    let (mut whole, mut first, mut rest) = (Notes::new(usize::MAX), Notes::new(2), Notes::new(usize::MAX));
    let (manifest, runs) = study.run(Some(1), &mut whole).unwrap();
    let seeds: Vec<u64> = whole.started.iter().map(|key| key.1).collect();
    assert_eq!(seeds, [1, 1, 2, 2], "every cell once, then every cell again: {:?}", whole.started);
    let cells = [0, 1].map(|block| [whole.started[2 * block].0, whole.started[2 * block + 1].0]);
    assert!(cells.iter().all(|block| [[0, 1], [1, 0]].contains(block)) && cells != [[0, 1]; 2], "random: {cells:?}");
    assert!(runs.iter().is_sorted_by_key(|(key, _)| *key));

    kernel.runs_left.store(2, Ordering::Relaxed);
    study.open(dir.path()).unwrap().run(Some(1), &mut first).unwrap();
    kernel.runs_left.store(usize::MAX, Ordering::Relaxed);
    let (resumed, resumed_runs) = study.open(dir.path()).unwrap().run(Some(1), &mut rest).unwrap();
    assert_eq!([&first.finished[..], &rest.finished].concat(), whole.finished);
    assert_eq!(first.finished.len(), 2);
    assert_eq!((resumed, resumed_runs), (manifest, runs));
}

/// Cancels as soon as a run has begun.
#[derive(Default)]
struct CancelsAtOnce(bool);

impl Observer for CancelsAtOnce {
    fn started(&mut self, _: Key) {
        self.0 = true;
    }

    fn is_cancelled(&mut self) -> bool {
        self.0
    }
}

#[test]
fn the_simulator_stops_in_the_middle_of_a_run() {
    let overrides = Overrides { sets: vec!["duration=100000s".to_owned()], quick: false };
    let scenario = scenario::parse("two-rates.toml", TEXT, Path::new(""), &overrides).unwrap();
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap();
    // Whole runs would take hours.
    let (manifest, runs) = study.run(Some(2), &mut CancelsAtOnce::default()).unwrap();
    assert!(runs.is_empty() && !manifest.complete);
}

/// Notes the virtual times that it is told, and cancels at the second.
#[derive(Default)]
struct Times(Vec<f64>);

impl Observer for Times {
    fn progressed(&mut self, running: &[Running]) {
        for run in running {
            assert_eq!(run.end_s, 100_000.0);
            if run.reached_s > self.0.last().copied().unwrap_or(0.0) {
                self.0.push(run.reached_s);
            }
        }
    }

    fn is_cancelled(&mut self) -> bool {
        self.0.len() >= 2
    }
}

#[test]
fn an_observer_is_told_the_virtual_time_of_a_run_under_way() {
    let overrides = Overrides { sets: vec!["duration=100000s".to_owned()], quick: false };
    let scenario = scenario::parse("two-rates.toml", TEXT, Path::new(""), &overrides).unwrap();
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap();
    let mut times = Times::default();
    study.run(Some(1), &mut times).unwrap();
    assert!(times.0.is_sorted() && times.0.len() >= 2, "{:?}", times.0);
}

#[test]
fn the_first_failed_run_is_told_with_its_cell() {
    let (scenario, both_under_way) = (scenario(), Barrier::new(2));
    let driver = Fails(&both_under_way);
    let study = Study::new(&scenario, &driver, false, Vec::new());
    let error = study.unwrap().run(Some(2), &mut ()).unwrap_err();
    let Error::Run(message) = error else { panic!("{error}") };
    assert_eq!(message, "the run [path.link.rate = 1mbit] with seed 1 failed: out of luck with 1");
}

fn wait_to_be_cancelled(job: &Job<'_>) -> Result<Option<Run>, String> {
    while !job.is_cancelled() {
        std::thread::yield_now();
    }
    Ok(None)
}

/// The simulator, whose runs after the first last until they are cancelled.
#[derive(Debug)]
struct Waits;

impl Driver for Waits {
    fn describe(&self, scenario: &Scenario) -> String {
        Simulator.describe(scenario)
    }

    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Error> {
        Simulator.check(scenario, partial)
    }

    fn jobs(&self, _: &Scenario) -> usize {
        1
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        if job.experiment.links[0].forward.rate == Some(units::Rate::from_mbit(1)) && job.seed == 1 {
            return Simulator.run(job);
        }
        wait_to_be_cancelled(job)
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}

/// The simulator, as if time were real; after so many runs it waits to be cancelled.
#[derive(Debug)]
struct Kernel {
    runs_left: AtomicUsize,
}

impl Driver for Kernel {
    fn describe(&self, _: &Scenario) -> String {
        "a kernel".to_owned()
    }

    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Error> {
        Simulator.check(scenario, partial)
    }

    fn is_in_random_order(&self, _: &Scenario) -> bool {
        true
    }

    fn jobs(&self, _: &Scenario) -> usize {
        1
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        if self.runs_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Simulator.run(job);
        }
        wait_to_be_cancelled(job)
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}

/// Every run fails, the first two at the same time.
#[derive(Debug)]
struct Fails<'a>(&'a Barrier);

impl Driver for Fails<'_> {
    fn describe(&self, scenario: &Scenario) -> String {
        Simulator.describe(scenario)
    }

    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Error> {
        Simulator.check(scenario, partial)
    }

    fn jobs(&self, _: &Scenario) -> usize {
        2
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        self.0.wait();
        Err(format!("out of luck with {}", job.seed))
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}
