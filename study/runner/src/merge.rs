//! Merging shards: the results folder of the whole study, byte for byte as one machine would have written it.

use crate::Error;
use record::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{Key, Manifest, Results, Shard, ShardManifest, digest};

/// The maximum number of shards that an error lists.
const MAX_LISTED: usize = 20;

/// A finished shard.
struct Part {
    dir: PathBuf,
    manifest: Manifest,
    shard: ShardManifest,
    runs: Vec<(Key, Run)>,
}

/// Merges the finished shards in `dirs` into the folder `out`, and returns its manifest and its runs. A shard may be given
/// more than once if its tables are the same.
///
/// # Errors
/// A folder is not a finished shard, or is damaged; they are not of one study; a shard is missing, or is given twice with
/// different results; `out` cannot be written or holds something else.
pub fn merge(dirs: &[PathBuf], out: &Path) -> Result<(Manifest, Vec<(Key, Run)>), Error> {
    let mut parts: BTreeMap<Shard, Part> = BTreeMap::new();
    for dir in dirs {
        let (manifest, shard, runs) = Results::open_shard(dir)?;
        let part = Part { dir: dir.clone(), manifest, shard, runs };
        if let Some(first) = parts.values().next() {
            check_same_study(first, &part)?;
        }
        match parts.get(&part.shard.shard) {
            Some(earlier) => check_same_results(earlier, &part)?,
            None => drop(parts.insert(part.shard.shard, part)),
        }
    }
    let first = parts.values().next().ok_or_else(|| Error::Environment("there are no shards to merge".to_owned()))?;
    check_complete(first, &parts)?;
    let manifest = Manifest { shard: None, complete: false, digest: None, ..first.manifest.clone() };
    let (results, found) = Results::create_or_resume(out, manifest)?;
    parts.values().try_for_each(|part| results.keep_files_of(&part.dir))?;
    let mut runs: Vec<(Key, Run)> = parts.into_values().flat_map(|part| part.runs).collect();
    runs.sort_by_key(|(key, _)| *key);
    check_found(out, &found, &runs)?;
    Ok((results.finish(&runs)?, runs))
}

fn check_same_study(first: &Part, part: &Part) -> Result<(), Error> {
    let [here, there] = [first, part].map(|part| part.dir.display());
    if let Some([first, other]) = first.manifest.difference(&part.manifest) {
        let message = format!("the shards are not of one study: {here} has {first}, {there} has {other}");
        return Err(Error::Environment(message));
    }
    let counts = [first, part].map(|part| part.shard.shard.count);
    if counts[0] != counts[1] {
        let message = format!("{here} is one of {} shards, {there} one of {}", counts[0], counts[1]);
        return Err(Error::Environment(format!("{message}: they divide the study differently")));
    }
    if first.manifest.baseline != part.manifest.baseline || baseline(first)? != baseline(part)? {
        return Err(Error::Environment(format!("{here} and {there} have different baselines")));
    }
    Ok(())
}

fn baseline(part: &Part) -> Result<Option<Manifest>, Error> {
    let name = part.manifest.baseline.as_ref();
    name.map(|_| Ok(Results::open_baseline(&part.dir)?.0)).transpose()
}

/// Checks that a shard that is given twice has the same tables.
fn check_same_results(earlier: &Part, part: &Part) -> Result<(), Error> {
    if earlier.shard == part.shard {
        return Ok(());
    }
    let differs = |((_, one), (_, other)): &(&(Key, Run), &(Key, Run))| one != other;
    let run = earlier.runs.iter().zip(&part.runs).find(differs).map(|(((cell, seed), _), _)| (cell, seed));
    let run = run.map(|(cell, seed)| format!(", first in the run of cell {cell} with seed {seed}")).unwrap_or_default();
    let [here, there] = [earlier, part].map(|part| part.dir.display());
    let shard = part.shard.shard;
    Err(Error::Environment(format!("{here} and {there} are both shard {shard} and have different results{run}")))
}

/// Checks that no shard is missing, and that together they have each of the study's runs once.
fn check_complete(first: &Part, parts: &BTreeMap<Shard, Part>) -> Result<(), Error> {
    let count = first.shard.shard.count;
    let missing: Vec<Shard> =
        (1..=count).map(|index| Shard { index, count }).filter(|shard| !parts.contains_key(shard)).collect();
    if !missing.is_empty() {
        let listed: Vec<String> = missing.iter().take(MAX_LISTED).map(Shard::to_string).collect();
        let more = missing.len().saturating_sub(MAX_LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let [is, plural] = if missing.len() == 1 { ["is", ""] } else { ["are", "s"] };
        return Err(Error::Environment(format!("shard{plural} {}{more} {is} missing", listed.join(", "))));
    }
    let keys: BTreeSet<Key> = parts.values().flat_map(|part| &part.runs).map(|(key, _)| *key).collect();
    let runs: usize = parts.values().map(|part| part.runs.len()).sum();
    if keys.len() != runs || runs != first.shard.study_runs {
        let (distinct, planned) = (keys.len(), first.shard.study_runs);
        let message = format!("the shards hold {runs} runs, {distinct} of them different, of a study of {planned}");
        return Err(Error::Environment(message));
    }
    Ok(())
}

/// Checks that the runs which the folder already held are equal to those of the shards.
fn check_found(out: &Path, found: &[(Key, Run)], runs: &[(Key, Run)]) -> Result<(), Error> {
    let merged: BTreeMap<Key, &str> = runs.iter().map(|(key, run)| (*key, run.digest.as_str())).collect();
    match found.iter().find(|(key, run)| merged.get(key) != Some(&run.digest.as_str())) {
        None => Ok(()),
        Some(((cell, seed), run)) => Err(Error::Environment(format!(
            "{} holds another result of cell {cell} with seed {seed} than the shards: its digest is {}, the study's {}",
            out.display(),
            run.digest,
            digest(runs.iter().map(|(_, run)| run))
        ))),
    }
}
