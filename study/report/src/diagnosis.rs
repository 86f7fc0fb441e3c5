//! Why an MPTCP flow carries less than one of its paths alone would: a sentence per cell, where the record shows it.

use crate::number::{format_number, plural};
use crate::study::{Study, SweepCell};
use record::{Flow, Path, Run, Subflow};

/// The least share of the time for which the send buffer was full.
const MIN_LIMITED: f64 = 0.5;
/// The flow carries at most this share of what its best path would, which is used to this share at most.
const MAX_SHARE: f64 = 0.9;
/// The least utilisation from which a path's rate is estimated.
const MIN_UTILISATION: f64 = 0.02;
/// The most sentences.
const MAX_SENTENCES: usize = 5;

/// A path of a flow in numbers, each the mean of a cell's runs.
struct PathUse<'a> {
    name: &'a str,
    utilisation: f64,
    /// What the path would carry: what it carried, over its utilisation, Mbit/s.
    rate_mbps: f64,
    mean_rtt_ms: f64,
    p95_rtt_ms: f64,
}

/// A sentence for each cell whose MPTCP flow waited for one path while a better one was idle.
pub(crate) fn sentences(study: &Study<'_>) -> Vec<String> {
    let keys = study.varying_keys();
    let sentence = |cell: &SweepCell<'_>| {
        let heading = cell.heading(&keys);
        let heading = if heading.is_empty() { heading } else { format!(" ({heading})") };
        diagnosis(&cell.runs).map(|(flow, text)| format!("{flow}{heading}: {text}"))
    };
    let mut sentences: Vec<String> = study.cells().iter().filter_map(sentence).collect();
    let more = sentences.len().saturating_sub(MAX_SENTENCES);
    sentences.truncate(MAX_SENTENCES);
    sentences.extend((more > 0).then(|| format!("The same holds in {}.", plural(more, "more cell"))));
    sentences
}

/// The flow and the diagnosis of the runs of a cell, in which it is the only flow: with others on its paths the record
/// does not show what is left for it.
fn diagnosis<'a>(runs: &[&'a Run]) -> Option<(&'a str, String)> {
    let first: &'a Run = runs[0];
    let [flow] = &first.flows[..] else { return None };
    let paths: Vec<PathUse<'a>> =
        first.subflows.iter().map(|subflow| path_use(runs, &subflow.path)).collect::<Option<_>>()?;
    let of_flow = |value: fn(&Flow) -> f64| mean(runs, |run| run.flows.first().map(value));
    let limited = mean(runs, |run| Some(run.flows.first()?.send_buffer_limited_s / run.duration_s))?;
    let (carried, head_of_line) = (of_flow(|it| it.throughput_mbps)?, of_flow(|it| it.head_of_line_delay_ms.mean)?);
    let best = paths.iter().max_by(|a, b| a.rate_mbps.total_cmp(&b.rate_mbps))?;
    let others = paths.iter().filter(|path| path.name != best.name && path.p95_rtt_ms > best.p95_rtt_ms);
    let slowest = others.max_by(|a, b| a.p95_rtt_ms.total_cmp(&b.p95_rtt_ms))?;
    let is_below = carried <= MAX_SHARE * best.rate_mbps && best.utilisation <= MAX_SHARE;
    let waits = limited >= MIN_LIMITED && head_of_line > best.mean_rtt_ms;
    (is_below && waits).then(|| {
        let text = format!(
            "for {:.0} % of the time the send buffer was full, while {} was used to {:.0} %. Data waited for {}: the mean \
             head-of-line delay was {} ms. The flow carried {} Mbit/s, {} alone would carry {}.",
            100.0 * limited,
            best.name,
            100.0 * best.utilisation,
            slowest.name,
            format_number(head_of_line),
            format_number(carried),
            best.name,
            format_number(best.rate_mbps),
        );
        (flow.name.as_str(), text)
    })
}

/// A path's use, or none if it carried too little to know its rate.
fn path_use<'a>(runs: &[&Run], name: &'a str) -> Option<PathUse<'a>> {
    let of_path =
        |value: fn(&Path) -> f64| mean(runs, |run| run.paths.iter().find(|path| path.name == name).map(value));
    let of_subflow =
        |value: fn(&Subflow) -> f64| mean(runs, |run| run.subflows.iter().find(|path| path.path == name).map(value));
    let utilisation = of_path(|path| path.utilisation).filter(|utilisation| *utilisation >= MIN_UTILISATION)?;
    Some(PathUse {
        name,
        utilisation,
        rate_mbps: of_subflow(|subflow| subflow.throughput_mbps)? / utilisation,
        mean_rtt_ms: of_subflow(|subflow| subflow.rtt_ms.mean)?,
        p95_rtt_ms: of_subflow(|subflow| subflow.rtt_ms.p95)?,
    })
}

/// The mean over the runs, if each has the value.
fn mean(runs: &[&Run], value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| value(run)).collect();
    values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Summary;

    /// A run of an MPTCP flow over fibre of 50 and LTE of 10 Mbit/s: the share of fibre that it used, and the time that its
    /// send buffer was full.
    fn run(fibre: f64, limited_s: f64) -> Run {
        let subflow = |path: &str, throughput_mbps, rtt| Subflow {
            path: path.to_owned(),
            throughput_mbps,
            rtt_ms: Summary { mean: rtt, p95: 2.0 * rtt, ..Summary::default() },
            ..Subflow::default()
        };
        let path = |name: &str, utilisation| Path { name: name.to_owned(), utilisation, ..Path::default() };
        Run {
            duration_s: 20.0,
            flows: vec![Flow {
                name: "f".to_owned(),
                throughput_mbps: 50.0 * fibre + 2.0,
                send_buffer_limited_s: limited_s,
                head_of_line_delay_ms: Summary { mean: 1472.0, ..Summary::default() },
                ..Flow::default()
            }],
            subflows: vec![subflow("fibre", 50.0 * fibre, 25.0), subflow("lte", 2.0, 300.0)],
            paths: vec![path("fibre", fibre), path("lte", 0.2)],
            ..Run::default()
        }
    }

    #[test]
    fn a_flow_that_waits_for_its_slow_path_is_diagnosed_and_others_are_not() {
        let shown = |runs: &[Run]| sentences(&Study { runs, ..Study::default() });
        let sentence = "f: for 94 % of the time the send buffer was full, while fibre was used to 60 %. Data waited for lte: the \
                        mean head-of-line delay was 1472 ms. The flow carried 32 Mbit/s, fibre alone would carry 50.";
        assert_eq!(shown(&[run(0.6, 18.8)]), [sentence]);
        assert_eq!(shown(&[run(0.5, 17.6), run(0.7, 20.0)]), [sentence], "means of two seeds");
        for other in [run(0.95, 18.8), run(0.6, 5.0)] {
            assert!(shown(&[other]).is_empty(), "fibre is full, or the buffer seldom was");
        }
        let mut shared = run(0.6, 18.8);
        shared.flows.push(Flow::default());
        assert!(shown(&[shared]).is_empty(), "what fibre has left is not known");
        let mut in_order = run(0.6, 18.8);
        in_order.flows[0].head_of_line_delay_ms.mean = 3.0;
        assert!(shown(&[in_order]).is_empty(), "nothing waited at the receiver");
    }
}
