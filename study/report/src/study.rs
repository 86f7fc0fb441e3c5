//! What is reported on.

use crate::layout::{BY_FLOW, Layout, Scope};
use crate::number::plural;
use crate::subject::Subject;
use record::Run;
use std::borrow::Cow;
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
    /// What carried it out: the simulator, or a kernel and its version.
    pub driver: &'a str,
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
pub(crate) struct SweepCell<'a> {
    pub(crate) parameters: &'a BTreeMap<String, String>,
    /// Of these runs one flow or subflow, where things go by flow.
    pub(crate) flow: Option<String>,
    /// Without disturbed ones where there are others; never empty.
    pub(crate) runs: Vec<&'a Run>,
    /// The disturbed ones that are left out.
    pub(crate) excluded: Vec<&'a Run>,
    /// The baseline's runs with these parameters, chosen likewise.
    pub(crate) baseline: Vec<&'a Run>,
    /// Whether there were disturbed runs, and whether the baseline had some.
    pub(crate) disturbed: [bool; 2],
}

impl<'a> SweepCell<'a> {
    /// A cell without runs.
    pub(crate) fn empty(parameters: &'a BTreeMap<String, String>) -> Self {
        let (runs, excluded, baseline) = (Vec::new(), Vec::new(), Vec::new());
        Self { parameters, flow: None, runs, excluded, baseline, disturbed: [false; 2] }
    }

    /// The same cell as the baseline ran it.
    pub(crate) fn of_baseline(&self) -> Option<Self> {
        let runs = self.baseline.clone();
        let disturbed = [self.disturbed[1], false];
        (!runs.is_empty()).then(|| Self { runs, disturbed, flow: self.flow.clone(), ..Self::empty(self.parameters) })
    }

    /// The cell's value of a parameter, or empty.
    pub(crate) fn parameter(&self, key: &str) -> &str {
        match &self.flow {
            Some(flow) if key == BY_FLOW => flow,
            _ => self.parameters.get(key).map_or("", String::as_str),
        }
    }

    /// The values of some parameters, as a heading; a case need not have them all.
    pub(crate) fn name(&self, keys: &[&str]) -> String {
        let names = short_names(keys).into_iter().zip(keys.iter().map(|key| self.parameter(key)));
        let values = names.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name} {value}"));
        values.collect::<Vec<_>>().join(", ")
    }

    /// The scope, of this cell's flow.
    pub(crate) fn scope<'s>(&self, scope: &'s Scope) -> Cow<'s, Scope> {
        match &self.flow {
            Some(_) => Cow::Owned(Scope { flow: self.flow.clone(), ..scope.clone() }),
            None => Cow::Borrowed(scope),
        }
    }

    /// The cell once for each flow that is meant: those of the scope, or all without their subflows.
    fn by_flow(&self, scope: &Scope) -> Vec<Self> {
        let flows = self.runs[0].flows.iter().map(|flow| flow.name.clone());
        let flows = scope.only.get(BY_FLOW).map_or_else(|| flows.collect(), |only| self.present(only));
        flows.into_iter().map(|flow| Self { flow: Some(flow), ..self.clone() }).collect()
    }

    /// Which of these flows and subflows the cell has.
    fn present(&self, names: &[String]) -> Vec<String> {
        names.iter().filter(|name| Subject::of(self.runs[0], Some(name)).is_some()).cloned().collect()
    }
}

impl<'a> Study<'a> {
    /// The cells, in the order of their first run.
    pub(crate) fn cells(&self) -> Vec<SweepCell<'a>> {
        let mut index = BTreeMap::new();
        let mut cells: Vec<SweepCell<'a>> = Vec::new();
        for run in self.runs {
            let at = *index.entry(&run.parameters).or_insert(cells.len());
            if at == cells.len() {
                cells.push(SweepCell::empty(&run.parameters));
            }
            cells[at].runs.push(run);
        }
        for run in self.baseline.iter().flat_map(|baseline| baseline.runs) {
            if let Some(at) = index.get(&run.parameters) {
                cells[*at].baseline.push(run);
            }
        }
        for cell in &mut cells {
            cell.disturbed = [&cell.runs, &cell.baseline].map(|runs| runs.iter().any(|run| run.is_disturbed()));
            cell.excluded = remove_disturbed(&mut cell.runs);
            remove_disturbed(&mut cell.baseline);
        }
        cells
    }

    /// How many runs were disturbed, here and in the baseline: the outlier_footnote lines of tables with mark_disturbed values.
    pub(crate) fn disturbances(&self) -> Vec<String> {
        let baseline = self.baseline.iter().map(|baseline| (format!(" of {}", baseline.name), baseline.runs));
        let sides = std::iter::once((String::new(), self.runs)).chain(baseline);
        sides.filter_map(|(whose, runs)| disturbance(&whose, runs)).collect()
    }

    /// The cells of a scope and where they are among all; where one of the `keys` is the flow, once for each.
    pub(crate) fn shown(&self, scope: &Scope, keys: &[Option<&String>]) -> Vec<(usize, SweepCell<'a>)> {
        let by_flow = keys.iter().flatten().any(|key| *key == BY_FLOW);
        let cells = self.cells().into_iter().enumerate().filter(|(_, cell)| scope.has(cell.parameters));
        let split = |(at, cell): (usize, SweepCell<'a>)| match by_flow {
            true => cell.by_flow(scope).into_iter().map(|cell| (at, cell)).collect(),
            false => vec![(at, cell)],
        };
        cells.flat_map(split).collect()
    }

    /// Parameters that differ between cells.
    pub(crate) fn varying_keys(&self) -> Vec<&'a str> {
        varying_keys(&self.runs.iter().collect::<Vec<_>>())
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

/// Parameters that differ between these runs.
pub(crate) fn varying_keys<'a>(runs: &[&'a Run]) -> Vec<&'a str> {
    let Some(first) = runs.first() else { return Vec::new() };
    let keys: std::collections::BTreeSet<&str> =
        runs.iter().flat_map(|run| run.parameters.keys().map(String::as_str)).collect();
    let differs = |key: &&str| runs.iter().any(|run| run.parameters.get(*key) != first.parameters.get(*key));
    keys.into_iter().filter(differs).collect()
}

/// Takes disturbed runs out if others are left.
fn remove_disturbed<'a>(runs: &mut Vec<&'a Run>) -> Vec<&'a Run> {
    if runs.iter().all(|run| run.is_disturbed()) {
        return Vec::new();
    }
    runs.extract_if(.., |run| run.is_disturbed()).collect()
}

/// A sentence on the disturbed runs among these; nothing if there are none.
fn disturbance(whose: &str, runs: &[Run]) -> Option<String> {
    let disturbed = runs.iter().filter(|run| run.is_disturbed()).count();
    let all = plural(runs.len(), "run");
    let percent = Run::MAX_STEAL_SHARE * 100.0;
    (disturbed > 0).then(|| {
        format!(
            "† {disturbed} of {all}{whose} lacked the CPU for more than {percent} % of their time. Means leave them \
             out where a cell has others."
        )
    })
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
