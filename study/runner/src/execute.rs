//! Runs on several threads. The calling thread distributes no work: it reports to the observer, and asks it whether to
//! continue.

use crate::{Driver, Error, Job};
use record::Run;
use scenario::Scenario;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use store::{Key, Results};

/// The longest time between two checks whether the study is cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Receives the progress of a study, always on the thread that started it.
pub trait Observer {
    /// A run has begun.
    fn started(&mut self, _key: Key) {}

    /// A run is done, and stored if there is a results folder.
    fn finished(&mut self, _key: Key, _run: &Run) {}

    /// The progress of the runs under way, reported at least every 50 ms.
    fn progressed(&mut self, _running: &[Running]) {}

    /// Whether to stop: asked at least every 50 ms. Runs under way are abandoned; finished ones are kept.
    fn is_cancelled(&mut self) -> bool {
        false
    }
}

/// A run that is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Running {
    /// Its cell and seed.
    pub key: Key,
    /// The virtual time that it has reached, seconds; 0 on a kernel, which has none.
    pub reached_s: f64,
    /// The virtual time at which it ends, seconds.
    pub end_s: f64,
}

/// An observer that does nothing.
impl Observer for () {}

/// A message of a worker.
enum Event {
    Started(Key),
    Finished(Key, Box<Run>),
    Failed(Key, Error),
}

/// The state that all workers share.
struct Work<'a> {
    driver: &'a dyn Driver,
    scenario: &'a Scenario,
    results: Option<&'a Results>,
    keys: &'a [Key],
    /// Index into `keys` of the next run.
    next: AtomicUsize,
    cancelled: AtomicBool,
    /// The run of each worker.
    slots: Vec<Slot>,
}

/// The run of a worker, and its progress.
#[derive(Default)]
struct Slot {
    key: Mutex<Option<Key>>,
    reached: AtomicU64,
}

/// Runs `keys` on `threads` threads (by default the driver's number), and returns the runs by cell and seed: fewer
/// than `keys` only if the observer cancelled.
///
/// # Errors
/// A run failed; if several did, the error is that of the first by cell and seed. Or a thread cannot be started.
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
    let slots = (0..threads).map(|_| Slot::default()).collect();
    let work = Work { driver, scenario, results, keys, next, cancelled, slots };
    let (sender, events) = channel();
    std::thread::scope(|scope| {
        for slot in &work.slots {
            let (sender, work) = (sender.clone(), &work);
            Builder::new().spawn_scoped(scope, move || work.run_all(slot, &sender)).map_err(|error| {
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
        observer.progressed(&work.running());
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

impl Slot {
    fn begin(&self, key: Key) {
        self.reached.store(0, Ordering::Relaxed);
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    fn end(&self) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Work<'_> {
    /// A worker: runs one key after the other.
    fn run_all(&self, slot: &Slot, sender: &Sender<Event>) {
        while let Some(key) = self.keys.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            slot.begin(*key);
            // Sending fails only after a thread could not be started.
            let _ = sender.send(Event::Started(*key));
            let _ = match self.run_one(*key, &slot.reached) {
                Ok(Some(run)) => sender.send(Event::Finished(*key, Box::new(run))),
                Ok(None) => Ok(()),
                Err(error) => {
                    self.stop_handing_out();
                    sender.send(Event::Failed(*key, error))
                }
            };
            slot.end();
        }
    }

    /// The runs under way.
    fn running(&self) -> Vec<Running> {
        let running = |slot: &Slot| {
            let key = (*slot.key.lock().unwrap_or_else(PoisonError::into_inner))?;
            let end_s = self.scenario.cells[key.0].experiment.duration.as_secs_f64();
            Some(Running { key, reached_s: slot.reached.load(Ordering::Relaxed) as f64 / 1e9, end_s })
        };
        self.slots.iter().filter_map(running).collect()
    }

    /// Runs under way continue to their end; no new run starts.
    fn stop_handing_out(&self) {
        self.next.store(self.keys.len(), Ordering::Relaxed);
    }

    fn cancel(&self) {
        self.stop_handing_out();
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn run_one(&self, key: Key, reached: &AtomicU64) -> Result<Option<Run>, Error> {
        let (index, seed) = key;
        let cell = &self.scenario.cells[index];
        let raw_folder = self.results.map(|results| results.raw_folder(key));
        let (raw_folder, cancelled) = (raw_folder.as_deref(), &self.cancelled);
        let job = Job { experiment: &cell.experiment, seed, raw_folder, cancelled, reached };
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
