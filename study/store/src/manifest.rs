//! `manifest.json`: the scenario, the program that ran it, and whether the results are complete.

use crate::{Error, Shard, ShardManifest, files, names};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// The manifest's name in a results folder.
pub(crate) const FILE: &str = "manifest.json";

/// The manifest of a results folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program that ran it.
    pub ropewalk_version: String,
    /// The commit it was built from.
    pub commit: String,
    /// The driver: the simulator, or a kernel and its version.
    #[serde(default)]
    pub driver: String,
    /// The scenario's name.
    pub scenario: String,
    /// Digest of the scenario as it was run, overrides included.
    pub scenario_hash: String,
    /// Of each algorithm and scheduler that is not built in: which version of its code ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub code_versions: BTreeMap<String, String>,
    /// The scenario file.
    pub scenario_text: String,
    /// Where options of the command line changed the scenario: the text that makes the same runs without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_text: Option<String>,
    /// The command line that repeats the results, without what does not change them.
    pub command: Vec<String>,
    /// The scenario's title.
    pub title: String,
    /// The scenario's description.
    pub about: String,
    /// The publication it follows, or empty.
    pub source: String,
    /// The layout of its report.
    pub layout: serde_json::Value,
    /// Name of the baseline, of which the folder `baseline` is a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Which part of the study the folder holds, if not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardManifest>,
    /// In real time: the seed of the random order in which the runs were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_seed: Option<u64>,
    /// Seeds each cell was run with, ascending.
    pub seeds: Vec<u64>,
    /// Cells of the sweep.
    pub cells: usize,
    /// Digest over the digests of all runs, by cell and seed; set when complete.
    pub digest: Option<String>,
    /// Whether every run is in the tables.
    pub complete: bool,
}

impl Manifest {
    /// The manifest of a folder, or nothing if the folder has none.
    pub(crate) fn find(dir: &Path) -> Result<Option<Self>, Error> {
        let path = dir.join(FILE);
        match files::read(&path) {
            Ok(bytes) => {
                let mut manifest: Self = serde_json::from_slice(&bytes).map_err(Error::damaged(&path))?;
                names::rename_in_layout(&mut manifest.layout);
                Ok(Some(manifest))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Io { doing: "read", path, reason: error }),
        }
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self).expect("text, numbers and lists");
        text.push('\n');
        files::write(&dir.join(FILE), text.as_bytes())
    }

    /// Whether `other` is of the same scenario, program, driver and shard, so that its runs belong to the same folder.
    pub(crate) fn same_study(&self, other: &Self) -> bool {
        let same_seeds = || self.seeds == other.seeds;
        self.difference(other).is_none() && self.shard() == other.shard() && (self.shard.is_none() || same_seeds())
    }

    /// The first thing that makes `other` another study, as it is here and there.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<[String; 2]> {
        let study = |m: &Self| {
            [
                format!("scenario \"{}\" ({})", m.scenario, m.scenario_hash),
                format!("ropewalk {}", m.ropewalk_version),
                format!("commit {}", m.commit),
                format!("driver {}", m.driver),
                format!("code {}", m.code()),
            ]
        };
        study(self).into_iter().zip(study(other)).find(|(here, there)| here != there).map(<[String; 2]>::from)
    }

    /// What makes `other` another study, in lines for an error's message.
    pub(crate) fn differences(&self, other: &Self) -> String {
        let difference = match self.difference(other) {
            Some([here, there]) => format!("there: {here}\nnow: {there}\n"),
            None if self.shard() == other.shard() => "the shard has other seeds\n".to_owned(),
            None => return String::new(), // the shard, which the contents name
        };
        let text = |manifest: &Self| manifest.effective_text.clone().unwrap_or(manifest.scenario_text.clone());
        let [here, there] = [text(self), text(other)];
        let lines = here.lines().map(Some).chain(std::iter::repeat(None));
        let lines = lines.zip(there.lines().map(Some).chain(std::iter::repeat(None)));
        let mut lines = lines.take(here.lines().count().max(there.lines().count()));
        match lines.find(|(here, there)| here != there && self.scenario_hash != other.scenario_hash) {
            Some((here, there)) => {
                let shown = |line: Option<&str>| line.map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"));
                format!("{difference}first line that differs: {} there, {} now\n", shown(here), shown(there))
            }
            None => difference,
        }
    }

    /// The code that is not the program's own.
    fn code(&self) -> String {
        let versions = self.code_versions.iter().map(|(name, version)| format!("{name} {version}"));
        versions.collect::<Vec<_>>().join(", ")
    }

    fn shard(&self) -> Option<Shard> {
        self.shard.as_ref().map(|manifest| manifest.shard)
    }

    /// The folder's contents, for an error's message.
    pub(crate) fn describe(&self) -> String {
        let state = if self.complete { "complete" } else { "unfinished" };
        let shard = self.shard().map(|shard| format!("of shard {shard} ")).unwrap_or_default();
        let Self { scenario, scenario_hash, ropewalk_version, commit, driver, .. } = self;
        let versions = if self.code_versions.is_empty() { String::new() } else { format!(", {}", self.code()) };
        format!(
            "{state} results {shard}of scenario \"{scenario}\" ({scenario_hash}, ropewalk {ropewalk_version} {commit}, \
             {driver}{versions})"
        )
    }
}
