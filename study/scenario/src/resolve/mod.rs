//! Resolves a parsed scenario file to an experiment: names become indices, defaults are filled in, and errors are
//! reported.

mod checks;
mod discipline;
mod events;
mod fat_tree;
mod hosted;
pub(crate) mod multipath;
pub(crate) mod network;
mod pipe;
mod queue;
mod requests;
pub(crate) mod traffic;
pub(crate) mod tunnel;
mod variation;
pub(crate) mod video;

use self::checks::check_positive;
use crate::file::File;
use crate::files::Files;
use crate::model::Experiment;
use crate::sweep::check_run_count;
use parse::{Diagnostic, Spanned};

/// The experiment that `file` describes.
pub(crate) fn experiment(file: &File, files: &mut Files) -> Result<Experiment, Diagnostic> {
    let duration = check_positive("duration", &file.duration, |time| time.0.0)?.0;
    let sample = file.sample.as_ref().map(|sample| check_positive("sample", sample, |time| time.0.0)).transpose()?;
    let (links, paths) = network::resolve_network(file, files)?;
    let tunnel = file.tunnel.as_ref().map(|table| tunnel::tunnel(table.get(), file, &paths, files)).transpose()?;
    let flows = traffic::flows(file, &paths, tunnel.as_ref(), files)?;
    let events = events::events(file, &links, &paths)?;
    let name = file.name.get().0.clone();
    Ok(Experiment { name, duration, sample: sample.map(|time| time.0), links, paths, tunnel, flows, events })
}

/// The seeds of each of `cells` cells.
pub(crate) fn seeds(file: &File, cells: u64) -> Result<Vec<u64>, Diagnostic> {
    match (&file.seeds, &file.repetitions) {
        (Some(_), Some(repetitions)) => {
            Err(Diagnostic::new(repetitions.span(), "`repetitions` and `seeds` say the same thing")
                .with_help("keep one"))
        }
        (Some(seeds), None) => {
            check_run_count(cells, seeds.get().len() as u64)
                .map_err(|diagnostic| Diagnostic { span: seeds.span(), ..diagnostic })?;
            distinct(seeds)
        }
        (None, Some(repetitions)) => {
            let count = *check_positive("repetitions", repetitions, |n| *n)?;
            check_run_count(cells, count)
                .map_err(|diagnostic| Diagnostic { span: repetitions.span(), ..diagnostic })?;
            Ok((1..=count).collect())
        }
        (None, None) => Ok(vec![1]),
    }
}

fn distinct(seeds: &Spanned<Vec<u64>>) -> Result<Vec<u64>, Diagnostic> {
    let list = seeds.get();
    match (1..list.len()).find(|index| list[..*index].contains(&list[*index])) {
        Some(index) => {
            Err(Diagnostic::new(seeds.span(), format!("seed {} would give the same run twice", list[index])))
        }
        None if list.is_empty() => {
            Err(Diagnostic::new(seeds.span(), "without seeds there are no runs").with_help("for example `seeds = [1]`"))
        }
        None => Ok(list.clone()),
    }
}
