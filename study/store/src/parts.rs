//! `parts/`: finished runs of a study that is still running, one JSON file each.

use crate::{Error, Key, files, series};
use record::{Run, Series};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A run beside its series. Series may hold numbers that JSON does not know; those are written as words.
#[derive(Serialize, Deserialize)]
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
    let part =
        Part { cell, run: Run { series: Vec::new(), ..run.clone() }, series: run.series.iter().map(to_part).collect() };
    let text = serde_json::to_string(&part).expect("text, numbers and lists");
    // JSON writes a number that is not finite as `null`; better told now than when a resumed study cannot read it.
    read_text(&text).map_err(|reason| refusal(format!("does not read back: {reason}")))?;
    files::write(&folder(dir).join(format!("{cell:05}-{seed}.json")), text.as_bytes())
}

/// Reads every run, by cell and seed.
pub(crate) fn read(dir: &Path) -> Result<Vec<(Key, Run)>, Error> {
    let folder = folder(dir);
    let mut runs = Vec::new();
    for name in files::names(&folder)?.iter().filter(|name| name.ends_with(".json")) {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        runs.push(read_text(&text).map_err(Error::damaged(&path))?);
    }
    runs.sort_by_key(|(key, _)| *key);
    Ok(runs)
}

fn read_text(text: &str) -> Result<(Key, Run), String> {
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
