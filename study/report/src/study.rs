//! The study that a report shows: a scenario's runs, and those of a baseline.

use crate::colour::Slots;
use crate::flow_record::FlowRecord;
use crate::layout::{BY_FLOW, Layout, Scope};
use crate::number::plural;
use crate::provenance::Provenance;
use record::Run;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The runs of a scenario, with what a report says of them.
#[derive(Clone, Debug, Default)]
pub struct Study<'a> {
    /// The scenario's title, one line.
    pub title: &'a str,
    /// The scenario's description, a few sentences.
    pub about: &'a str,
    /// The publication it follows, or empty.
    pub source: &'a str,
    /// The scenario's name.
    pub scenario: &'a str,
    /// What repeats the study.
    pub provenance: Provenance<'a>,
    /// Digest over all runs.
    pub digest: &'a str,
    /// Version of the program that ran it.
    pub version: &'a str,
    /// The commit it was built from.
    pub commit: &'a str,
    /// The driver: the simulator, or a kernel and its version.
    pub driver: &'a str,
    /// The tables, figures and claims of the report.
    pub layout: Layout,
    /// The runs, in the order of the sweep.
    pub runs: &'a [Run],
    /// The runs to compare with, cell by cell.
    pub baseline: Option<Baseline<'a>>,
}

/// The number of tables from which on a page lists them.
pub(crate) const MANY_TABLES: usize = 10;

/// Another driver's runs of the same cells, or of some of them.
#[derive(Clone, Copy, Debug)]
pub struct Baseline<'a> {
    /// Short name, such as "kernel-6.1".
    pub name: &'a str,
    /// The runs of the baseline; cells are matched by their parameters.
    pub runs: &'a [Run],
}

/// The runs of one cell of the sweep: the same parameters, a seed each.
#[derive(Clone, Debug)]
pub(crate) struct SweepCell<'a> {
    pub(crate) parameters: &'a BTreeMap<String, String>,
    /// The flow or subflow, in a table, figure or claim that goes by flow.
    pub(crate) flow: Option<String>,
    /// The runs without the disturbed ones, or all if every one is disturbed; never empty.
    pub(crate) runs: Vec<&'a Run>,
    /// The disturbed runs that are left out of `runs`.
    pub(crate) excluded: Vec<&'a Run>,
    /// The baseline's runs with these parameters, chosen as `runs` are.
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

    /// The baseline's cell with the same parameters.
    pub(crate) fn baseline_cell(&self) -> Option<Self> {
        let runs = self.baseline.clone();
        let disturbed = [self.disturbed[1], false];
        (!runs.is_empty()).then(|| Self { runs, disturbed, flow: self.flow.clone(), ..Self::empty(self.parameters) })
    }

    /// Whether the runs of several seeds are one and the same, as where nothing in the scenario is drawn: they have one
    /// digest.
    pub(crate) fn has_identical_runs(&self) -> bool {
        let digest = self.runs.first().map_or("", |run| run.digest.as_str());
        self.runs.len() > 1 && !digest.is_empty() && self.runs.iter().all(|run| run.digest == digest)
    }

    /// The cell's value of a parameter, or empty.
    pub(crate) fn parameter(&self, key: &str) -> &str {
        match &self.flow {
            Some(flow) if key == BY_FLOW => flow,
            _ => self.parameters.get(key).map_or("", String::as_str),
        }
    }

    /// The names and values of some parameters; a case need not have them all.
    pub(crate) fn heading(&self, keys: &[&str]) -> String {
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

    /// A copy of the cell for each flow of the scope; without a choice there, for each flow but no subflow.
    fn by_flow(&self, scope: &Scope) -> Vec<Self> {
        let flows = self.runs[0].flows.iter().map(|flow| flow.name.clone());
        let flows = scope.only.get(BY_FLOW).map_or_else(|| flows.collect(), |only| self.existing_flows(only));
        flows.into_iter().map(|flow| Self { flow: Some(flow), ..self.clone() }).collect()
    }

    /// The flows and subflows of `names` that the cell has.
    fn existing_flows(&self, names: &[String]) -> Vec<String> {
        names.iter().filter(|name| FlowRecord::of(self.runs[0], Some(name)).is_some()).cloned().collect()
    }
}

impl<'a> Study<'a> {
    /// Whether the simulator made the runs.
    pub(crate) fn is_simulated(&self) -> bool {
        ["", "simulator"].contains(&self.driver)
    }

    /// Whether the verdicts on claims come first: all of them are questions of the document that the study follows, such as
    /// "RFC 9743".
    pub(crate) fn is_assessment(&self) -> bool {
        let document = self.source.split(':').next().unwrap_or_default();
        let claims = &self.layout.claims;
        !document.is_empty() && !claims.is_empty() && claims.iter().all(|claim| claim.source.starts_with(document))
    }

    /// The slots of the algorithms of all flows.
    pub(crate) fn slots(&self) -> Slots {
        Slots::of(self.runs.iter().flat_map(|run| run.flows.iter().map(|flow| flow.congestion_control.as_str())))
    }

    /// The cells, in the order of their first run.
    pub(crate) fn cells(&self) -> Vec<SweepCell<'a>> {
        let mut cell_indices = BTreeMap::new();
        let mut cells: Vec<SweepCell<'a>> = Vec::new();
        for run in self.runs {
            let index = *cell_indices.entry(&run.parameters).or_insert(cells.len());
            if index == cells.len() {
                cells.push(SweepCell::empty(&run.parameters));
            }
            cells[index].runs.push(run);
        }
        for run in self.baseline.iter().flat_map(|baseline| baseline.runs) {
            if let Some(index) = cell_indices.get(&run.parameters) {
                cells[*index].baseline.push(run);
            }
        }
        for cell in &mut cells {
            cell.disturbed = [&cell.runs, &cell.baseline].map(|runs| runs.iter().any(|run| run.is_disturbed()));
            cell.excluded = remove_disturbed(&mut cell.runs);
            remove_disturbed(&mut cell.baseline);
        }
        cells
    }

    /// The footnotes on disturbed runs, of the study and of the baseline.
    pub(crate) fn disturbance_notes(&self) -> Vec<String> {
        let baseline = self.baseline.iter().map(|baseline| (format!(" of {}", baseline.name), baseline.runs));
        let sides = std::iter::once((String::new(), self.runs)).chain(baseline);
        sides
            .flat_map(|(whose, runs)| {
                [disturbance(&whose, runs), controller_failure(&whose, runs), lost_connection(&whose, runs)]
            })
            .flatten()
            .collect()
    }

    /// The cells of a scope with their index among all; if one of the `keys` is the flow, one for each flow.
    pub(crate) fn cells_in_scope(&self, scope: &Scope, keys: &[&String]) -> Vec<(usize, SweepCell<'a>)> {
        let by_flow = keys.iter().any(|key| *key == BY_FLOW);
        let cells = self.cells().into_iter().enumerate().filter(|(_, cell)| scope.contains(cell.parameters));
        let split = |(index, cell): (usize, SweepCell<'a>)| match by_flow {
            true => cell.by_flow(scope).into_iter().map(|cell| (index, cell)).collect(),
            false => vec![(index, cell)],
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

/// Removes and returns the disturbed runs, unless all are disturbed.
fn remove_disturbed<'a>(runs: &mut Vec<&'a Run>) -> Vec<&'a Run> {
    if runs.iter().all(|run| run.is_disturbed()) {
        return Vec::new();
    }
    runs.extract_if(.., |run| run.is_disturbed()).collect()
}

/// The footnote on the disturbed runs among `runs`, if there are any; `whose` is " of NAME" or empty.
fn disturbance(whose: &str, runs: &[Run]) -> Option<String> {
    let disturbed = runs.iter().filter(|run| run.is_disturbed()).count();
    let total = plural(runs.len(), "run");
    let percent = Run::MAX_STEAL_SHARE * 100.0;
    (disturbed > 0).then(|| {
        format!(
            "† {disturbed} of {total}{whose} lacked the CPU for more than {percent} % of their time. Means leave them \
             out where a cell has others."
        )
    })
}

fn controller_failure(whose: &str, runs: &[Run]) -> Option<String> {
    let failed = || runs.iter().filter(|run| run.controller_failures > 0);
    let connections: u64 = failed().map(|run| run.controller_failures).sum();
    failed().next().map(|first| {
        format!(
            "In {} of {}{whose} a policy failed, on {}, and a classical algorithm took its place: {}.",
            failed().count(),
            plural(runs.len(), "run"),
            plural(connections as usize, "connection"),
            first.controller_failure
        )
    })
}

/// The footnote on hosted stacks that lost their connection.
fn lost_connection(whose: &str, runs: &[Run]) -> Option<String> {
    let lost = |run: &Run| {
        run.flows.iter().find_map(|flow| {
            let stack = flow.stack.as_ref().filter(|stack| !stack.stack_error.is_empty())?;
            Some(format!("{}, {}: {}", flow.name, stack.stack, stack.stack_error))
        })
    };
    let first = runs.iter().find_map(lost)?;
    let count = runs.iter().filter(|run| lost(run).is_some()).count();
    Some(format!("In {count} of {}{whose} a connection was lost ({first}).", plural(runs.len(), "run")))
}

/// Short names of dotted keys: the last word (`delay` for `path.eno2.delay`), or as many as distinguish the keys.
pub(crate) fn short_names<'k>(keys: &[&'k str]) -> Vec<&'k str> {
    let name = |key: &&'k str| {
        let max_words = key.split('.').count();
        let is_unique = |words: &usize| {
            keys.iter().filter(|other| last_words(other, *words) == last_words(key, *words)).count() == 1
        };
        last_words(key, (1..max_words).find(is_unique).unwrap_or(max_words))
    };
    keys.iter().map(name).collect()
}

/// The last words of a dotted key.
fn last_words(key: &str, words: usize) -> &str {
    key.rmatch_indices('.').nth(words - 1).map_or(key, |(index, _)| &key[index + 1..])
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
