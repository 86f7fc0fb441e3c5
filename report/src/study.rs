//! What is reported on.

use record::Run;
use scenario::Layout;
use std::collections::BTreeMap;

/// What was run, and what came out.
#[derive(Clone, Debug)]
pub struct Study<'a> {
    /// One line: what it shows.
    pub title: &'a str,
    /// A few sentences for the reader.
    pub about: &'a str,
    /// The publication it follows, or empty.
    pub source: &'a str,
    /// The scenario's name.
    pub scenario: &'a str,
    /// The scenario file.
    pub scenario_text: &'a str,
    /// Digest over all runs.
    pub digest: &'a str,
    /// Version of the program that ran it.
    pub version: &'a str,
    /// The commit it was built from.
    pub commit: &'a str,
    /// What is shown of it.
    pub layout: Layout,
    /// The runs, in the order of the sweep.
    pub runs: &'a [Run],
    /// What they are compared with, cell by cell.
    pub baseline: Option<Baseline<'a>>,
}

/// Another driver's runs of the same cells, or of some of them.
#[derive(Clone, Copy, Debug)]
pub struct Baseline<'a> {
    /// Short name, such as "kernel-6.1".
    pub name: &'a str,
    /// Its runs; a cell is found by its parameters.
    pub runs: &'a [Run],
}

/// The runs of one cell of the sweep: the same parameters, a seed each.
#[derive(Clone, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) parameters: &'a BTreeMap<String, String>,
    pub(crate) runs: Vec<&'a Run>,
    /// The baseline's runs with these parameters.
    pub(crate) baseline: Vec<&'a Run>,
}

impl Cell<'_> {
    /// The same cell as the baseline ran it.
    pub(crate) fn of_baseline(&self) -> Option<Self> {
        let runs = self.baseline.clone();
        (!runs.is_empty()).then_some(Self { parameters: self.parameters, runs, baseline: Vec::new() })
    }

    /// The cell's value of a parameter, or empty.
    pub(crate) fn parameter(&self, key: &str) -> &str {
        self.parameters.get(key).map_or("", String::as_str)
    }

    /// The values of some parameters, as a heading.
    pub(crate) fn name(&self, keys: &[&str]) -> String {
        let names = short_names(keys);
        let values = names.iter().zip(keys).map(|(name, key)| format!("{name} {}", self.parameter(key)));
        values.collect::<Vec<_>>().join(", ")
    }
}

impl<'a> Study<'a> {
    /// The cells, in the order of their first run.
    pub(crate) fn cells(&self) -> Vec<Cell<'a>> {
        let mut index = BTreeMap::new();
        let mut cells: Vec<Cell<'a>> = Vec::new();
        for run in self.runs {
            let at = *index.entry(&run.parameters).or_insert(cells.len());
            if at == cells.len() {
                cells.push(Cell { parameters: &run.parameters, runs: Vec::new(), baseline: Vec::new() });
            }
            cells[at].runs.push(run);
        }
        for run in self.baseline.iter().flat_map(|baseline| baseline.runs) {
            if let Some(at) = index.get(&run.parameters) {
                cells[*at].baseline.push(run);
            }
        }
        cells
    }

    /// Parameters that differ between cells.
    pub(crate) fn varying(&self) -> Vec<&'a str> {
        let Some(first) = self.runs.first() else { return Vec::new() };
        let keys: std::collections::BTreeSet<&str> =
            self.runs.iter().flat_map(|run| run.parameters.keys().map(String::as_str)).collect();
        let differs = |key: &&str| self.runs.iter().any(|run| run.parameters.get(*key) != first.parameters.get(*key));
        keys.into_iter().filter(differs).collect()
    }

    /// The seeds, ascending, as text: `1`, `1 to 10`, `3, 7, 20`.
    pub(crate) fn seeds(&self) -> String {
        let seeds: std::collections::BTreeSet<u64> = self.runs.iter().map(|run| run.seed).collect();
        match (seeds.first(), seeds.last()) {
            (Some(first), Some(last)) if seeds.len() > 2 && (last - first) as usize == seeds.len() - 1 => {
                format!("{first} to {last}")
            }
            _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
        }
    }
}

/// What dotted keys are called beside each other: by their last words, `delay` for `path.eno2.delay`, and by as many more
/// as tell them apart.
pub(crate) fn short_names<'k>(keys: &[&'k str]) -> Vec<&'k str> {
    let name = |key: &&'k str| {
        let most = key.split('.').count();
        let alone = |words: &usize| keys.iter().filter(|other| last(other, *words) == last(key, *words)).count() == 1;
        last(key, (1..most).find(alone).unwrap_or(most))
    };
    keys.iter().map(name).collect()
}

/// The last words of a dotted key.
fn last(key: &str, words: usize) -> &str {
    key.rmatch_indices('.').nth(words - 1).map_or(key, |(at, _)| &key[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_by_as_few_words_as_tell_them_apart() {
        assert_eq!(short_names(&["path.eno2.delay", "flow.tcp.congestion"]), ["delay", "congestion"]);
        assert_eq!(short_names(&["flow.a.congestion", "flow.b.congestion"]), ["a.congestion", "b.congestion"]);
        let queues = ["path.a.queue.limit", "link.a.queue.limit", "duration"];
        assert_eq!(short_names(&queues), ["path.a.queue.limit", "link.a.queue.limit", "duration"]);
    }
}
