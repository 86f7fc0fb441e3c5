//! Shards: a study that several machines make has a results folder for each, which `runner::merge` joins.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The maximum number of shards of a study.
const MAX_COUNT: usize = 100_000;

/// One of the parts into which the runs of a study are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    /// Its number, from 1.
    pub index: usize,
    /// The number of shards.
    pub count: usize,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Reads `3/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=MAX_COUNT).contains(&count) && (1..=count).contains(&index) => {
                Ok(Self { index, count })
            }
            _ => Err(format!("expected I/N, for example 3/8: I from 1 to N, N at most {MAX_COUNT}")),
        }
    }
}

/// The part of a manifest that a shard has, and a whole study does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardManifest {
    /// Which shard it is.
    #[serde(flatten)]
    pub shard: Shard,
    /// Its number of runs.
    pub runs: usize,
    /// The number of runs of the study.
    pub study_runs: usize,
    /// When complete: the names of the tables, each with a digest of its bytes.
    pub tables: BTreeMap<String, String>,
}

impl ShardManifest {
    /// The manifest of a shard without tables.
    #[must_use]
    pub fn new(shard: Shard, runs: usize, study_runs: usize) -> Self {
        Self { shard, runs, study_runs, tables: BTreeMap::new() }
    }
}
