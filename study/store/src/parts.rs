//! `parts/`: finished runs of a study that is still running, one file each: a line of JSON with the run, and a line with
//! the digest of that line, so that a part which anything has changed is not taken for the run.

use crate::{Error, Key, files, rows, series};
use record::{Digest, Run, Series};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A run beside its series. Series may hold numbers that JSON does not know; those are written as words.
#[derive(Deserialize)]
struct Part {
    cell: usize,
    run: Run,
    series: Vec<PartSeries>,
}

#[derive(Serialize, Deserialize)]
struct PartSeries {
    subject: String,
    columns: Vec<String>,
    time_s: Vec<f64>,
    values: Vec<Vec<Number>>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Other(String),
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Finite(value) } else { Self::Other(value.to_string()) }
    }
}

impl Number {
    fn value(&self) -> Result<f64, String> {
        match self {
            Self::Finite(value) => Ok(*value),
            Self::Other(word) => word.parse().map_err(|reason| format!("{word:?}: {reason}")),
        }
    }
}

/// The folder of the parts.
pub(crate) fn folder(dir: &Path) -> PathBuf {
    dir.join("parts")
}

/// Writes one run.
pub(crate) fn write(dir: &Path, (cell, seed): Key, run: &Run) -> Result<(), Error> {
    let refusal = |reason: String| Error::Refused { cell, seed, reason };
    series::check(&run.series).map_err(refusal)?;
    // JSON writes a number that is not finite as `null`; better told now than when a resumed study cannot read it.
    if let Some(name) = rows::non_finite_number(run) {
        return Err(refusal(format!("has a {name} that is not a finite number")));
    }
    let series: Vec<PartSeries> = run.series.iter().map(to_part).collect();
    let series = serde_json::to_string(&series).expect("text, numbers and lists");
    let part = format!(r#"{{"cell":{cell},"run":{},"series":{series}}}"#, run.to_json());
    let text = format!("{part}\n\"{}\"\n", digest(&part));
    files::write(&folder(dir).join(file_name((cell, seed))), text.as_bytes())
}

fn file_name((cell, seed): Key) -> String {
    format!("{cell:05}-{seed}.json")
}

/// The seeds of the stored runs, ascending.
pub(crate) fn seeds(dir: &Path) -> Vec<u64> {
    let seed = |name: &String| name.strip_suffix(".json")?.split_once('-')?.1.parse().ok();
    let seeds: BTreeSet<u64> = files::names(&folder(dir)).iter().flatten().filter_map(seed).collect();
    seeds.into_iter().collect()
}

fn digest(text: &str) -> String {
    let mut digest = Digest::default();
    digest.add_text(text);
    digest.hex()
}

/// Reads every run, by cell and seed.
pub(crate) fn read(dir: &Path) -> Result<Vec<(Key, Run)>, Error> {
    let folder = folder(dir);
    let (mut runs, mut damaged) = (Vec::new(), Vec::new());
    for name in files::names(&folder)?.into_iter().filter(|name| name.ends_with(".json")) {
        let path = folder.join(&name);
        let bytes = files::read(&path).map_err(Error::io("read", &path))?;
        match read_part(&name, &bytes) {
            Ok(run) => runs.push(run),
            Err(reason) => damaged.push((name, reason)),
        }
    }
    if !damaged.is_empty() {
        return Err(Error::DamagedParts { folder, parts: damaged });
    }
    runs.sort_by_key(|(key, _)| *key);
    Ok(runs)
}

/// The run in the file called `name`.
fn read_part(name: &str, bytes: &[u8]) -> Result<(Key, Run), String> {
    let text = str::from_utf8(bytes).map_err(|reason| reason.to_string())?;
    let (run, digest) = text.trim_end().rsplit_once('\n').ok_or("it has no digest, or is cut off")?;
    if digest.trim_matches('"') != self::digest(run) {
        return Err("its digest is not that of its contents: something changed it after the run".to_owned());
    }
    let (key, run) = read_run(run)?;
    match file_name(key) == name {
        true => Ok((key, run)),
        false => Err(format!("it holds the run of cell {} with seed {}", key.0, key.1)),
    }
}

fn read_run(text: &str) -> Result<(Key, Run), String> {
    let Part { cell, mut run, series } = serde_json::from_str(text).map_err(|reason| reason.to_string())?;
    run.series = series.into_iter().map(from_part).collect::<Result<_, _>>()?;
    Ok(((cell, run.seed), run))
}

fn to_part(series: &Series) -> PartSeries {
    let Series { subject, columns, time_s, values } = series.clone();
    let values = values.into_iter().map(|vector| vector.into_iter().map(Number::from).collect()).collect();
    PartSeries { subject, columns, time_s, values }
}

fn from_part(part: PartSeries) -> Result<Series, String> {
    let PartSeries { subject, columns, time_s, values } = part;
    let vector = |numbers: &Vec<Number>| numbers.iter().map(Number::value).collect::<Result<Vec<_>, _>>();
    let values = values.iter().map(vector).collect::<Result<_, _>>()?;
    Ok(Series { subject, columns, time_s, values })
}
