//! The copies of a flow with `count`, which are called `NAME-1`, `NAME-2` and so on, and what a value is over them.

use crate::flow_record::FlowRecord;
use crate::layout::{Scope, Table};
use crate::study::{Study, SweepCell};
use crate::trajectory::quantile;
use crate::value::is_run_value;
use record::{Flow, Run, Subflow};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What stands behind a value's name: the statistic over the copies.
const STATISTICS: [(&str, Statistic); 6] = [
    (".sum", |sorted| sorted.iter().sum()),
    (".min", |sorted| quantile(sorted, 0.0)),
    (".p50", |sorted| quantile(sorted, 0.5)),
    (".p95", |sorted| quantile(sorted, 0.95)),
    (".p99", |sorted| quantile(sorted, 0.99)),
    (".max", |sorted| quantile(sorted, 1.0)),
];
type Statistic = fn(&[f64]) -> f64;

/// The fields of records that are summaries, whose components have the same names as the statistics: `rtt_ms`.
static SUMMARIES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let (flow, subflow) = (Flow::complete(), Subflow::complete());
    let fields = FlowRecord::Flow(&flow).fields().into_iter().chain(FlowRecord::Subflow(&subflow).fields());
    fields.filter_map(|field| field.split_once('.').map(|(summary, _)| summary.to_owned())).collect()
});

/// The name of all copies, of which this one has a number.
fn name_of_all(name: &str) -> Option<&str> {
    let (all, number) = name.rsplit_once('-')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(all)
}

/// The names of what a scope means in a run: of one flow or subflow, or of all copies of a flow.
pub(crate) fn names(run: &Run, scope: &Scope) -> Vec<String> {
    let name = match &scope.flow {
        Some(name) => name,
        None => {
            let Some(first) = run.flows.first() else { return Vec::new() };
            match name_of_all(&first.name).filter(|all| scope.copied.iter().any(|name| name == all)) {
                Some(all) => all,
                None => &first.name,
            }
        }
    };
    if FlowRecord::of(run, Some(name)).is_some() {
        return vec![name.to_owned()];
    }
    let (flow, path) = name.split_once('/').map_or((name, None), |(flow, path)| (flow, Some(path)));
    let is_copy = |record: &FlowRecord<'_>| match (record, path) {
        (FlowRecord::Flow(record), None) => name_of_all(&record.name) == Some(flow),
        (FlowRecord::Subflow(record), Some(path)) => record.path == path && name_of_all(&record.flow) == Some(flow),
        _ => false,
    };
    FlowRecord::all(run).filter(is_copy).map(FlowRecord::name).collect()
}

/// A value's name without its statistic, and that.
pub(crate) fn split(field: &str) -> (&str, Option<Statistic>) {
    let found = STATISTICS.iter().find_map(|(suffix, statistic)| Some((field.strip_suffix(suffix)?, *statistic)));
    match found {
        Some((name, statistic)) if !SUMMARIES.contains(name) => (name, Some(statistic)),
        _ => (field, None),
    }
}

/// Whether a field of records is a distribution with several numbers and samples, such as `rtt_ms`.
pub(crate) fn is_summary(field: &str) -> bool {
    SUMMARIES.contains(field)
}

/// The statistic over the values of the copies; without one their mean.
pub(crate) fn summarise(mut values: Vec<f64>, statistic: Option<Statistic>) -> Option<f64> {
    let count = values.len();
    values.sort_by(f64::total_cmp);
    (count > 0).then(|| statistic.map_or_else(|| values.iter().sum::<f64>() / count as f64, |over| over(&values)))
}

/// The flow whose copies a table shows, in the words of a caption; empty if it has none.
pub(crate) fn caption(study: &Study<'_>, table: &Table) -> String {
    let cells = study.cells_in_scope(&table.scope, &[]).into_iter();
    let of_cell = |(_, cell): (usize, SweepCell<'_>)| {
        let names = names(cell.runs[0], &cell.scope(&table.scope));
        (names.len() > 1).then(|| name_of_all(&names[0]).map(str::to_owned))?
    };
    let mut values = table.values.iter().filter(|column| !is_run_value(&column.value)).peekable();
    if values.peek().is_none() {
        return String::new();
    }
    let Some(flow) = cells.filter_map(of_cell).next() else { return String::new() };
    let mean = if values.any(|column| split(&column.value).1.is_none()) { "mean " } else { "" };
    format!("flow {flow}: {mean}over its copies")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::value;

    /// Copies that complete after 1 to 21 s, before another flow.
    fn run() -> Run {
        let copy = |n: u32| Flow { name: format!("f-{n}"), completion_s: Some(f64::from(n)), ..Flow::default() };
        let other = Flow { name: "f-other".to_owned(), completion_s: Some(100.0), ..Flow::default() };
        Run { flows: (1..=21).map(copy).chain([other]).collect(), ..Run::default() }
    }

    #[test]
    fn a_value_of_a_flow_with_copies_is_the_mean_or_a_statistic_over_them() {
        let copied = Scope { copied: vec!["f".to_owned()], ..Scope::default() };
        let named = Scope { flow: Some("f".to_owned()), ..Scope::default() };
        for scope in [copied, named] {
            let over = |field| value(&run(), field, &scope);
            assert_eq!(over("completion_s"), Some(11.0));
            assert_eq!(over("completion_s.sum"), Some(231.0));
            assert_eq!([over("completion_s.min"), over("completion_s.max")], [Some(1.0), Some(21.0)]);
            assert_eq!([over("completion_s.p50"), over("completion_s.p95")], [Some(11.0), Some(20.0)]);
        }
    }

    #[test]
    fn a_copy_that_has_sent_nothing_has_no_share_of_lost_packets() {
        let copy = |n: u32, sent_packets| Flow {
            name: format!("f-{n}"),
            sent_packets,
            dropped_packets: sent_packets / (2 * u64::from(n)),
            ..Flow::default()
        };
        let run = Run { flows: vec![copy(1, 100), copy(2, 0), copy(3, 60)], ..Run::default() };
        let scope = Scope { flow: Some("f".to_owned()), ..Scope::default() };
        let mean = (50.0 + 100.0 / 6.0) / 2.0;
        assert!((value(&run, "drop_percent", &scope).unwrap() - mean).abs() < 1e-9);
    }

    #[test]
    fn one_copy_and_flows_that_only_look_like_copies_are_one_flow() {
        let one = |flow: Option<&str>| Scope { flow: flow.map(str::to_owned), ..Scope::default() };
        let value = |flow| value(&run(), "completion_s", &one(flow));
        assert_eq!([value(None), value(Some("f-3")), value(Some("f-other"))], [Some(1.0), Some(3.0), Some(100.0)]);
    }

    #[test]
    fn components_of_a_summary_are_no_statistics_over_copies() {
        assert!(split("rtt_ms.p95").1.is_none());
        let (name, statistic) = split("rtt_ms.p95.max");
        assert!(name == "rtt_ms.p95" && statistic.is_some());
    }
}
