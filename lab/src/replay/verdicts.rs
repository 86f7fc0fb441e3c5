//! The results of situations, in a folder: one line per seed, and the scripts that differ.

use super::Outcome;
use replay::{Difference, Explanation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The result of a situation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Verdict {
    pub(super) seed: u64,
    /// Number of acknowledgements in its script.
    pub(super) acks: usize,
    /// The first difference, if there is one.
    pub(super) difference: Option<Difference>,
    /// The change of our machine that makes the difference disappear, if one of the tried changes does.
    #[serde(default)]
    pub(super) explanation: Option<Explanation>,
    /// Whether the kernel was late in all attempts, so that a difference means nothing.
    pub(super) is_late: bool,
}

/// A golden record as JSON, with one line per acknowledgement, state and packet.
pub(super) fn to_json(golden: &impl Serialize) -> Outcome<String> {
    let text = serde_json::to_string(golden)?;
    Ok(text.replace("},{", "},\n{").replace("]],[[", "]],\n[[").replace("],[", "],\n[") + "\n")
}

/// The verdicts on one congestion control, or on the receiver, by one kernel.
pub(super) struct Verdicts {
    file: PathBuf,
    pub(super) of: BTreeMap<u64, Verdict>,
}

impl Verdicts {
    /// Reads the verdicts that exist already.
    pub(super) fn open(folder: &Path, release: &str, name: &str) -> Outcome<Self> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let file = folder.join(format!("{release}-{name}.jsonl"));
        let text = fs::read_to_string(&file).unwrap_or_default();
        // The last line of a campaign that was killed may be cut.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(Self { of: lines.map(|verdict: Verdict| (verdict.seed, verdict)).collect(), file })
    }

    /// Adds verdicts and writes them at once.
    pub(super) fn add(&mut self, verdicts: Vec<Verdict>) -> Outcome<()> {
        let file = OpenOptions::new().create(true).append(true).open(&self.file);
        let mut file: File = file.map_err(|error| format!("{}: {error}", self.file.display()))?;
        for verdict in verdicts {
            writeln!(file, "{}", serde_json::to_string(&verdict)?)?;
            self.of.insert(verdict.seed, verdict);
        }
        Ok(())
    }

    /// A summary in words: the number of equal situations, and the differences by class, most frequent first.
    pub(super) fn summary(&self) -> String {
        let is_same = |verdict: &&Verdict| verdict.difference.is_none();
        let late = self.of.values().filter(|verdict| verdict.is_late).count();
        let same: Vec<_> = self.of.values().filter(|verdict| !verdict.is_late).filter(is_same).collect();
        let acks: usize = same.iter().map(|verdict| verdict.acks).sum();
        let mut classes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut explained: BTreeMap<Explanation, Vec<u64>> = BTreeMap::new();
        for verdict in self.of.values().filter(|verdict| !verdict.is_late) {
            if let Some(explanation) = &verdict.explanation {
                explained.entry(*explanation).or_default().push(verdict.seed);
            } else if let Some(difference) = &verdict.difference {
                classes.entry(difference.class()).or_default().push(verdict.seed);
            }
        }
        let mut text = format!(
            "{}: {} situations, {} the same over all {acks} acknowledgements, {} explained, {} unexplained, {late} not compared (late)\n",
            self.file.file_stem().unwrap_or_default().display(),
            self.of.len(),
            same.len(),
            explained.values().map(Vec::len).sum::<usize>(),
            classes.values().map(Vec::len).sum::<usize>()
        );
        for (explanation, seeds) in explained {
            text += &line(&format!("explained by {explanation}"), &seeds);
        }
        let mut classes: Vec<_> = classes.into_iter().collect();
        classes.sort_by_key(|(_, seeds)| std::cmp::Reverse(seeds.len()));
        for (class, seeds) in classes {
            text += &line(&class, &seeds);
        }
        text
    }
}

fn line(what: &str, seeds: &[u64]) -> String {
    let first: Vec<_> = seeds.iter().take(5).map(u64::to_string).collect();
    format!("  {:5} {what:48} seeds {}\n", seeds.len(), first.join(", "))
}
