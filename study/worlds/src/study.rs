//! Makes the runs that a folder lacks.

use crate::{Error, Folder, Outcome, Worlds, draw};
use record::Run;
use runner::{Observer, Running};
use scenario::{Overrides, Scenario};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use store::Key;

/// Number of runs between two waits for all threads.
const PIECE: usize = 256;

/// An algorithm under test.
#[derive(Debug)]
pub struct Algorithm {
    /// Its readable name.
    pub label: String,
    /// A scenario of one cell, whose flow uses the algorithm.
    scenario: Scenario,
    driver: Worlds,
}

/// A part of the seeds: parameters may be chosen by the worlds of one part, and are judged by those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Even seeds.
    Tune,
    /// Odd seeds.
    Judge,
}

impl Part {
    /// The part of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        if seed.is_multiple_of(2) { Self::Tune } else { Self::Judge }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tune => "tune",
            Self::Judge => "judge",
        }
    }
}

impl Algorithm {
    /// The algorithm of a TOML value: a name in quotes, or a table with parameters.
    ///
    /// # Errors
    /// There is no such algorithm, or it has no such parameter.
    pub fn new(label: &str, value: &str) -> Result<Self, runner::Error> {
        let text = format!(
            "name = \"worlds\"\nduration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\n[[flow]]\nname = \"test\"\n\
             congestion = {value}\n"
        );
        let scenario = scenario::parse("the algorithm", &text, Path::new(""), &Overrides::default())?;
        runner::check(&scenario)?;
        Ok(Self { label: label.to_owned(), scenario, driver: Worlds::default() })
    }

    /// CUBIC, to which all algorithms are compared; and once more, with other random events.
    ///
    /// # Errors
    /// None, as CUBIC is built in.
    pub fn references() -> Result<[Self; 2], runner::Error> {
        let again = Self { driver: Worlds { has_other_luck: true }, ..Self::new("cubic-again", "\"cubic\"")? };
        Ok([Self::new("cubic", "\"cubic\"")?, again])
    }

    /// A hash that changes if the algorithm, its parameters or a file that it names changes.
    pub(crate) fn hash(&self) -> &str {
        &self.scenario.hash
    }

    /// For an algorithm that is registered at run time: the version of its code.
    pub(crate) fn code_versions(&self) -> BTreeMap<String, String> {
        runner::code_versions(&self.scenario)
    }
}

/// The outcomes of an algorithm in the worlds of these seeds, from the folder. Missing ones are run and added to it. If the
/// observer cancels, some are missing.
///
/// # Errors
/// A run fails, or the folder cannot be read or written.
pub fn outcomes(
    algorithm: &Algorithm,
    seeds: &Range<u64>,
    part: Option<Part>,
    folder: &mut Folder,
    threads: Option<usize>,
    observer: &mut dyn Observer,
) -> Result<BTreeMap<u64, Outcome>, Error> {
    let mut outcomes = folder.open(algorithm)?;
    let is_wanted = |seed: &u64| part.is_none_or(|part| part == Part::of(*seed));
    let missing: Vec<Key> =
        seeds.clone().filter(is_wanted).filter(|seed| !outcomes.contains_key(seed)).map(|seed| (0, seed)).collect();
    for piece in missing.chunks(PIECE) {
        let mut keeper = Keeper { folder: &mut *folder, made: Vec::new(), error: None, observer: &mut *observer };
        runner::run(&algorithm.driver, &algorithm.scenario, piece, threads, &mut keeper)?;
        let Keeper { made, error, .. } = keeper;
        outcomes.extend(made.into_iter().map(|outcome| (outcome.seed, outcome)));
        if let Some(error) = error {
            return Err(error);
        }
        if observer.is_cancelled() {
            break;
        }
    }
    outcomes.retain(|seed, _| seeds.contains(seed) && is_wanted(seed));
    Ok(outcomes)
}

/// Keeps each outcome as soon as its run is done.
struct Keeper<'a> {
    folder: &'a mut Folder,
    made: Vec<Outcome>,
    error: Option<Error>,
    observer: &'a mut dyn Observer,
}

impl Observer for Keeper<'_> {
    fn started(&mut self, key: Key) {
        self.observer.started(key);
    }

    fn finished(&mut self, key: Key, run: &Run) {
        let outcome = Outcome::of(&draw(key.1), run);
        if let Err(error) = self.folder.add(&outcome) {
            self.error.get_or_insert(error);
        }
        self.made.push(outcome);
        self.observer.finished(key, run);
    }

    /// The progress of a run within its world, which takes seconds, is not reported.
    fn progressed(&mut self, running: &[Running]) {
        let running: Vec<Running> = running.iter().map(|running| Running { reached_s: 0.0, ..*running }).collect();
        self.observer.progressed(&running);
    }

    fn is_cancelled(&mut self) -> bool {
        self.error.is_some() || self.observer.is_cancelled()
    }
}
