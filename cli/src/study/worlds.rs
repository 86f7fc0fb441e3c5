//! `ropewalk evaluate NAME --worlds`: an algorithm and CUBIC in worlds drawn by seed.

use super::evaluate::proposed;
use super::progress::Progress;
use super::{Evaluate, interrupt};
use crate::{Failure, output};
use ::worlds::{Algorithm, Folder, Outcome, Part, Tally};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The algorithm to which all others are compared.
const REFERENCE: &str = "cubic";

/// Prints the world as a scenario file, with the algorithm and CUBIC under test.
pub(super) fn show(algorithm: &str, seed: u64) -> Result<(), Failure> {
    let (_, value) = proposed(algorithm)?;
    let reference = format!("\"{REFERENCE}\"");
    let both = [value.as_str(), &reference];
    output::print(&::worlds::draw(seed).scenario_text(if value == reference { &both[1..] } else { &both }))
}

/// Makes the runs that the folder lacks, and prints the tables.
pub(super) fn run(arguments: &Evaluate, algorithm: &str, seeds: &Range<u64>) -> Result<(), Failure> {
    let (label, value) = proposed(algorithm)?;
    let algorithm = Algorithm::new(&label, &value)?;
    let dir = arguments.out.clone().unwrap_or_else(|| Path::new("results").join("worlds"));
    let mut folder = if arguments.no_store { Folder::default() } else { Folder::at(&dir)? };
    let kept = (!arguments.no_store).then_some(dir);
    interrupt::tell_with(move || note(kept.as_ref()))?;
    let [cubic, again] = Algorithm::references()?;
    let cubic = outcomes(arguments, &cubic, seeds, &mut folder)?;
    let again = outcomes(arguments, &again, seeds, &mut folder)?;
    let outcomes = outcomes(arguments, &algorithm, seeds, &mut folder)?;
    let tally = Tally::new(&label, &outcomes, [&cubic, &again]);
    if arguments.json { output::json(&tally.document()) } else { output::print(&tally.text(arguments.worst)) }
}

fn outcomes(
    arguments: &Evaluate,
    algorithm: &Algorithm,
    seeds: &Range<u64>,
    folder: &mut Folder,
) -> Result<BTreeMap<u64, Outcome>, Failure> {
    let part = arguments.part.map(Part::from);
    let costs = seeds.clone().filter(|seed| part.is_none_or(|part| part == Part::of(*seed))).map(|seed| ((0, seed), 1));
    let mut progress = Progress::new(costs.collect(), arguments.quiet);
    let jobs = arguments.jobs.map(usize::from);
    let outcomes = ::worlds::outcomes(algorithm, seeds, part, folder, jobs, &mut progress);
    progress.clear();
    Ok(outcomes?)
}

fn note(dir: Option<&PathBuf>) -> String {
    dir.map_or("nothing is kept, as --no-store asks".to_owned(), |dir| {
        format!("the worlds that are done are kept in {}\ncontinue with the same command", dir.display())
    })
}

/// `FROM..TO`, without the second.
pub(super) fn range(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    bounds.filter(|range| !range.is_empty()).ok_or_else(|| "expected FROM..TO, such as 0..1000".to_owned())
}

impl From<::worlds::Error> for Failure {
    fn from(error: ::worlds::Error) -> Self {
        match error {
            ::worlds::Error::Run(error) => error.into(),
            ::worlds::Error::Folder(message) => Self::Environment(message),
        }
    }
}
