//! Fairness among greedy flows, from their delivered bytes in each second.

use crate::protocol::FlowResults;
use record::fairness::{Fairness, fairness_between};
use scenario::model::{Application, Experiment, Flow, FlowKind};
use units::{Instant, Span};

/// The fairness among the greedy flows; none if fewer than two compete.
pub(crate) fn fairness(
    experiment: &Experiment,
    starts: &[Instant],
    results: &[FlowResults],
) -> Option<(Vec<usize>, Fairness)> {
    let greedy = |flow: &Flow| matches!(&flow.kind, FlowKind::Tcp { application: Application::Greedy, .. });
    let flows: Vec<usize> = (0..results.len()).filter(|k| greedy(&experiment.flows[*k])).collect();
    if flows.len() < 2 {
        return None;
    }
    let end = |k: &usize| {
        let stop = starts[*k] + active_time(experiment, &experiment.flows[*k], starts[*k]);
        results[*k].completion.map_or(stop, |duration| stop.min(starts[*k] + duration))
    };
    let seconds = flows.iter().map(|k| results[*k].delivered_by_second.len()).min()?;
    let row = |second: usize| flows.iter().map(|k| results[*k].delivered_by_second[second]).collect();
    let totals: Vec<Vec<u64>> = std::iter::once(vec![0; flows.len()]).chain((0..seconds).map(row)).collect();
    let fairness = fairness_between(&totals, flows.iter().map(|k| starts[*k]).max()?, flows.iter().map(end).min()?)?;
    Some((flows, fairness))
}

/// The time in which a flow that began at `start` may send: until its stop or the end of the run.
pub(crate) fn active_time(experiment: &Experiment, flow: &Flow, start: Instant) -> Span {
    let end = Instant::ZERO + experiment.duration;
    flow.stop.unwrap_or(end).min(end).since(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of three flows compete: one from the start of the run, the other from 0.5 s until it has sent 3 MB.
    #[test]
    fn greedy_flows_share_what_is_delivered_while_all_are_active() {
        let text = "name = \"x\"\nduration = \"10s\"\n[[path]]\nname = \"w\"\nrate = \"20mbit\"\n\
                    [[flow]]\nname = \"a\"\n[[flow]]\nname = \"steady\"\nrate = \"1mbit\"\n\
                    [[flow]]\nname = \"b\"\nsize = \"3MB\"\n";
        let scenario = scenario::parse("test", text, std::path::Path::new(""), &scenario::Overrides::default());
        let experiment = &scenario.unwrap_or_else(|error| panic!("{error}")).cells[0].experiment;
        let starts = [0, 0, 500].map(|ms| Instant::ZERO + Span::from_millis(ms));
        let flow_results = |a_second: u64, from: u64, to: u64, completion: Option<Span>| FlowResults {
            delivered_by_second: (1..=10)
                .map(|second: u64| second.clamp(from, to).saturating_sub(from) * a_second)
                .collect(),
            completion,
            ..FlowResults::default()
        };
        let steady = flow_results(125_000, 0, 10, None);
        let results = [
            flow_results(3_000_000, 0, 10, None),
            steady,
            flow_results(1_000_000, 1, 4, Some(Span::from_millis(3600))),
        ];
        let (flows, fairness) = fairness(experiment, &starts, &results).expect("two compete");
        assert_eq!((flows, fairness.shares), (vec![0, 2], vec![0.75, 0.25]));
        assert!((fairness.jain - 0.8).abs() < 1e-12);
        assert!(self::fairness(experiment, &starts[..2], &results[..2]).is_none(), "the other one writes at a rate");
    }
}
