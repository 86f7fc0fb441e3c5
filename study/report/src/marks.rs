//! What would mislead a reader who does not know it: flows that are slow for a known cause, flows that the receive window
//! limited, and stacks with a scheduler that no kernel combines.

use crate::diagnosis::{Cause, Diagnosis, diagnoses};
use crate::grid::unique;
use crate::number::plural;
use crate::study::{Study, SweepCell};
use record::{Flow, Run};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The least share of the time for which the receive window was full.
const MIN_LIMITED: f64 = 0.5;

/// The schedulers of Linux's MPTCP stacks, and the names of these stacks; the first is the default.
const KERNELS: [(&str, &[&str]); 2] =
    [("upstream", &["linger"]), ("out-of-tree", &["minrtt", "blest", "ecf", "roundrobin", "redundant"])];

/// The sentences of a study.
pub(crate) fn sentences(study: &Study<'_>) -> Vec<String> {
    let diagnoses = diagnoses(study);
    let is_diagnosed = |flow: &str| diagnoses.iter().any(|it| it.cause == Cause::ReceiveWindow && it.flow == flow);
    let marks = receive_windows(study, is_diagnosed).into_iter().chain(pairs(study));
    marks.chain(diagnoses.iter().map(Diagnosis::sentence)).collect()
}

/// One sentence on the flows and cells that the receive window limited for most of the time, but for those whose diagnosis
/// says so.
fn receive_windows(study: &Study<'_>, is_diagnosed: impl Fn(&str) -> bool) -> Option<String> {
    let cells = study.cells();
    let limited = |cell: &SweepCell<'_>| -> Vec<String> {
        let share = |run: &Run, flow: &Flow| flow.receive_window_limited_s / run.duration_s;
        let of_flow = |index: usize| {
            let shares = cell.runs.iter().filter_map(|run| Some(share(run, run.flows.get(index)?)));
            shares.sum::<f64>() / cell.runs.len() as f64
        };
        let flows = cell.runs[0].flows.iter().enumerate().filter(|(index, _)| of_flow(*index) >= MIN_LIMITED);
        flows.map(|(_, flow)| flow.name.clone()).filter(|name| !is_diagnosed(name)).collect()
    };
    let of_cells: Vec<Vec<String>> = cells.iter().map(limited).collect();
    let count = of_cells.iter().filter(|flows| !flows.is_empty()).count();
    let names = unique(of_cells.into_iter().flatten());
    let who = match &names[..] {
        [] => return None,
        [name] => name.clone(),
        names => plural(names.len(), "flow"),
    };
    let place = if cells.len() > 1 { format!(" in {count} of {} cells", cells.len()) } else { String::new() };
    Some(format!("Limited by the receive window for half of the time or more: {who}{place}."))
}

/// A flow of a scenario file, as far as it matters here.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct FlowFile {
    name: String,
    scheduler: Option<Choice>,
    mptcp: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Choice {
    Name(String),
    Table { name: String },
}

#[derive(Deserialize)]
struct Stack {
    stack: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    flow: Vec<FlowFile>,
    case: BTreeMap<String, Case>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Case {
    flow: Vec<FlowFile>,
}

impl File {
    /// What the file and a run's case say of a flow, the case first.
    fn of<'f>(&'f self, name: &str, run: &Run) -> Vec<&'f FlowFile> {
        let case = run.parameters.get("case").and_then(|case| self.case.get(case));
        let flows = case.map_or(&[][..], |case| &case.flow).iter().chain(&self.flow);
        flows.filter(|flow| is_named(&flow.name, name)).collect()
    }
}

/// Whether a name, or its beginning before a `*`, is that of a flow.
fn is_named(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

/// A sentence for each flow with a stack and a scheduler that no kernel has together.
fn pairs(study: &Study<'_>) -> Vec<String> {
    let file: File = parse::parse(study.provenance.text()).and_then(parse::deserialize).unwrap_or_default();
    let pair = |name: &str, run: &Run| {
        let swept = |key: &str| {
            let flow_of = |parameter: &str| {
                Some(parameter.strip_prefix("flow.")?.strip_suffix(key)?.strip_suffix('.')?.to_owned())
            };
            let of_flow = |parameter: &str| flow_of(parameter).is_some_and(|pattern| is_named(&pattern, name));
            run.parameters.iter().find(|(parameter, _)| of_flow(parameter)).map(|(_, value)| value.clone())
        };
        let said = file.of(name, run);
        let in_file = said.iter().find_map(|flow| flow.scheduler.as_ref()).map(|choice| match choice {
            Choice::Name(name) | Choice::Table { name } => name.clone(),
        });
        let stack = swept("mptcp.stack").or_else(|| said.iter().find_map(|flow| flow.mptcp.as_ref()?.stack.clone()));
        let stack = stack.unwrap_or_else(|| KERNELS[0].0.to_owned());
        let scheduler = swept("scheduler").or(in_file)?;
        let has = KERNELS.iter().find(|(name, _)| *name == stack)?.1.contains(&scheduler.as_str());
        (!has).then(|| format!("{name}: no kernel has the scheduler {scheduler} in the MPTCP stack \"{stack}\"."))
    };
    let names = |run: &Run| unique(run.subflows.iter().map(|subflow| subflow.flow.clone()));
    unique(
        study
            .runs
            .iter()
            .flat_map(|run| names(run).into_iter().filter_map(|name| pair(&name, run)).collect::<Vec<_>>()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::Provenance;
    use record::Subflow;

    fn run(limited_s: f64, parameters: &[(&str, &str)]) -> Run {
        let flow = Flow { name: "f".to_owned(), receive_window_limited_s: limited_s, ..Flow::default() };
        Run {
            duration_s: 20.0,
            parameters: parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            flows: vec![flow],
            subflows: vec![Subflow { flow: "f".to_owned(), ..Subflow::default() }],
            ..Run::default()
        }
    }

    fn marks(file: &str, runs: &[Run]) -> Vec<String> {
        sentences(&Study { runs, provenance: Provenance { file, ..Provenance::default() }, ..Study::default() })
    }

    #[test]
    fn half_of_the_time_in_a_full_receive_window_is_marked() {
        let marked = ["Limited by the receive window for half of the time or more: f."];
        assert_eq!(marks("", &[run(10.0, &[])]), marked);
        assert!(marks("", &[run(9.9, &[])]).is_empty());
        let two = [run(20.0, &[("delay", "1ms")]), run(0.0, &[("delay", "2ms")])];
        assert!(marks("", &two)[0].ends_with(": f in 1 of 2 cells."));
    }

    #[test]
    fn a_scheduler_that_the_stack_does_not_have_is_marked_in_the_file_and_in_the_sweep() {
        let file = |more: &str| format!("[[flow]]\nname = \"f\"\nkind = \"mptcp\"\n{more}\n");
        let marked = ["f: no kernel has the scheduler minrtt in the MPTCP stack \"upstream\"."];
        assert_eq!(marks(&file("scheduler = \"minrtt\""), &[run(0.0, &[])]), marked);
        assert_eq!(marks(&file("scheduler = { name = \"minrtt\" }"), &[run(0.0, &[])]), marked);
        for fine in ["", "scheduler = \"linger\"", "scheduler = \"ecf\"\nmptcp.stack = \"out-of-tree\""] {
            assert!(marks(&file(fine), &[run(0.0, &[])]).is_empty(), "{fine}");
        }
        let swept = run(0.0, &[("flow.f.scheduler", "minrtt"), ("flow.f.mptcp.stack", "out-of-tree")]);
        assert!(marks(&file(""), std::slice::from_ref(&swept)).is_empty());
        let other = run(0.0, &[("flow.f.scheduler", "minrtt"), ("flow.f.mptcp.stack", "upstream")]);
        assert_eq!(marks(&file(""), &[swept, other]), marked);
        let of_all = run(0.0, &[("flow.*.scheduler", "minrtt")]);
        assert_eq!(marks(&file(""), &[of_all]), marked, "a key of several flows");
        let case = "[[case.a.flow]]\nname = \"f\"\nscheduler = \"minrtt\"\n";
        let [here, elsewhere] = ["a", "b"].map(|case| run(0.0, &[("case", case)]));
        assert_eq!(marks(&file(case), &[here]), marked, "a flow of the case");
        assert!(marks(&file(case), &[elsewhere]).is_empty());
    }
}
