//! Runs on several threads. The calling thread hands nothing out: it tells the observer, and asks it whether to go on.

use crate::{Driver, Error, Job};
use record::Run;
use scenario::Scenario;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;
use store::{Key, Results};

/// The longest time between two questions whether the study is cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Is told how a study goes on, always on the thread that started it.
pub trait Observer {
    /// A run has begun.
    fn started(&mut self, _key: Key) {}

    /// A run is done, and stored where there is a results folder.
    fn finished(&mut self, _key: Key, _run: &Run) {}

    /// Whether to stop: asked at least every 50 ms. Runs under way are given up, finished ones kept.
    fn is_cancelled(&mut self) -> bool {
        false
    }
}

/// An observer that does nothing.
impl Observer for () {}

/// What a worker tells.
enum Event {
    Started(Key),
    Finished(Key, Box<Run>),
    Failed(Key, Error),
}

/// What all workers share.
struct Work<'a> {
    driver: &'a dyn Driver,
    scenario: &'a Scenario,
    results: Option<&'a Results>,
    keys: &'a [Key],
    /// Index into `keys` of the next run.
    next: AtomicUsize,
    cancelled: AtomicBool,
}

/// Runs `keys` on `threads` threads (by default as many as the driver says), and gives the runs by cell and seed: fewer
/// than `keys` only if the observer cancelled.
///
/// # Errors
/// A run failed: of those that did, the first by cell and seed. Or a thread cannot be started.
pub fn run(
    driver: &dyn Driver,
    scenario: &Scenario,
    keys: &[Key],
    threads: Option<usize>,
    observer: &mut dyn Observer,
) -> Result<Vec<(Key, Run)>, Error> {
    run_into(driver, scenario, keys, threads, observer, None)
}

/// As [`run`]; with `results` each run is stored as soon as it is done.
pub(crate) fn run_into(
    driver: &dyn Driver,
    scenario: &Scenario,
    keys: &[Key],
    threads: Option<usize>,
    observer: &mut dyn Observer,
    results: Option<&Results>,
) -> Result<Vec<(Key, Run)>, Error> {
    let threads = threads.unwrap_or_else(|| driver.jobs(scenario)).clamp(1, keys.len().max(1));
    let (next, cancelled) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = Work { driver, scenario, results, keys, next, cancelled };
    let (sender, events) = channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, work) = (sender.clone(), &work);
            Builder::new().spawn_scoped(scope, move || work.run_all(&sender)).map_err(|error| {
                work.cancel();
                Error::Environment(format!("cannot start {threads} threads: {error}"))
            })?;
        }
        drop(sender); // the last worker's end closes the channel
        collect(&events, &work, observer)
    })
}

/// Collects runs until all workers have ended.
fn collect(events: &Receiver<Event>, work: &Work<'_>, observer: &mut dyn Observer) -> Result<Vec<(Key, Run)>, Error> {
    let (mut runs, mut errors) = (BTreeMap::new(), BTreeMap::new());
    loop {
        if observer.is_cancelled() {
            work.cancel();
        }
        match events.recv_timeout(POLL_INTERVAL) {
            Ok(Event::Started(key)) => observer.started(key),
            Ok(Event::Finished(key, run)) => {
                observer.finished(key, &run);
                runs.insert(key, *run);
            }
            Ok(Event::Failed(key, error)) => drop(errors.insert(key, error)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    errors.pop_first().map_or_else(|| Ok(runs.into_iter().collect()), |(_, error)| Err(error))
}

impl Work<'_> {
    /// A worker: runs one key after the other.
    fn run_all(&self, sender: &Sender<Event>) {
        while let Some(key) = self.keys.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // Sending fails only after a thread could not be started.
            let _ = sender.send(Event::Started(*key));
            let _ = match self.run_one(*key) {
                Ok(Some(run)) => sender.send(Event::Finished(*key, Box::new(run))),
                Ok(None) => Ok(()),
                Err(error) => {
                    self.stop_handing_out();
                    sender.send(Event::Failed(*key, error))
                }
            };
        }
    }

    /// Runs under way go on to their end, no other starts.
    fn stop_handing_out(&self) {
        self.next.store(self.keys.len(), Ordering::Relaxed);
    }

    fn cancel(&self) {
        self.stop_handing_out();
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn run_one(&self, key: Key) -> Result<Option<Run>, Error> {
        let (index, seed) = key;
        let cell = &self.scenario.cells[index];
        let raw_folder = self.results.map(|results| results.raw_folder(key));
        let (raw_folder, cancelled) = (raw_folder.as_deref(), &self.cancelled);
        let job = Job { experiment: &cell.experiment, seed, raw_folder, cancelled };
        let run = self.driver.run(&job).map_err(|error| {
            let assignments: Vec<_> = cell.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            Error::Run(format!("the run [{}] with seed {seed} failed: {error}", assignments.join(", ")))
        })?;
        let Some(mut run) = run else { return Ok(None) };
        run.parameters = cell.parameters.iter().cloned().collect();
        if let Some(results) = self.results {
            results.add(index, seed, &run)?;
        }
        Ok(Some(run))
    }
}
