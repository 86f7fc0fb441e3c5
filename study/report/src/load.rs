//! The share of its flow's load that a subflow carries, from the time series of both. See [`record::load`].

use crate::flow_record::FlowRecord;
use crate::layout::Scope;
use crate::series::{flow_record, samples};
use record::{Run, load};

/// The mean and the standard deviation, percent; the number of flaps; and the responsiveness, seconds.
pub(crate) const NAMES: [&str; 4] = ["load_percent", "load_deviation_percent", "load_flaps", "load_responsiveness_s"];

/// One of [`NAMES`]; none for a flow as a whole.
pub(crate) fn value(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    let (times, loads) = loads(run, scope)?;
    match field {
        "load_percent" => load::mean(&loads).map(|mean| 100.0 * mean),
        "load_deviation_percent" => load::standard_deviation(&loads).map(|deviation| 100.0 * deviation),
        "load_flaps" => (!loads.is_empty()).then(|| load::flaps(&loads) as f64),
        _ => responsiveness(run, scope, &times, &loads),
    }
}

/// The time from the scope's start to the move of the load; the mean before is over half as long a time as the scope.
fn responsiveness(run: &Run, scope: &Scope, times: &[f64], after: &[f64]) -> Option<f64> {
    let (from_s, half_s) = (scope.from_s?, (times.last()? - times.first()?) / 2.0);
    let earlier_scope = Scope { from_s: Some((from_s - half_s).max(0.0)), until_s: scope.from_s, ..scope.clone() };
    let (_, before) = loads(run, &earlier_scope)?;
    load::responsiveness(&before, after).map(|window| times[window] - times[0])
}

/// The instants and loads of the scope's samples; a sample in which nothing arrives has no load.
fn loads(run: &Run, scope: &Scope) -> Option<(Vec<f64>, Vec<f64>)> {
    const RATE: &str = "throughput_mbps";
    let FlowRecord::Subflow(subflow) = flow_record(run, scope)? else { return None };
    let flow_scope = Scope { flow: Some(subflow.flow.clone()), ..scope.clone() };
    let pairs = samples(run, RATE, scope)?.zip(samples(run, RATE, &flow_scope)?);
    let nonzero = pairs.filter(|(_, (_, flow_rate))| *flow_rate > 0.0);
    Some(nonzero.map(|((time, subflow_rate), (_, flow_rate))| (time, subflow_rate / flow_rate)).unzip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Flow, Series, Subflow};

    /// A sample a second: all over `a` for 20 s, then a quarter after 4 s in which nothing arrives.
    fn run() -> Run {
        let time_s: Vec<f64> = (1..=60).map(f64::from).collect();
        let rate = |is_subflow: bool| {
            move |time: &f64| match *time {
                time if time <= 20.0 => 8.0,
                time if time <= 24.0 => 0.0,
                _ if is_subflow => 2.0,
                _ => 8.0,
            }
        };
        let series = |subject: &str, is_subflow| Series {
            subject: subject.to_owned(),
            columns: vec!["throughput_mbps".to_owned()],
            values: vec![time_s.iter().map(rate(is_subflow)).collect()],
            time_s: time_s.clone(),
        };
        Run {
            flows: vec![Flow { name: "tcp".to_owned(), ..Flow::default() }],
            subflows: vec![Subflow { flow: "tcp".to_owned(), path: "a".to_owned(), ..Subflow::default() }],
            series: vec![series("flow tcp", false), series("subflow tcp/a", true)],
            ..Run::default()
        }
    }

    #[test]
    fn a_subflow_has_a_load_over_a_part_of_the_run_and_a_flow_has_none() {
        let part = |flow: &str, from_s, until_s, field| {
            value(&run(), field, &Scope { flow: Some(flow.to_owned()), from_s, until_s, ..Scope::default() })
        };
        assert_eq!(
            part("tcp/a", None, Some(24.0), "load_percent"),
            Some(100.0),
            "where nothing arrives does not count"
        );
        assert_eq!(part("tcp/a", Some(24.0), None, "load_percent"), Some(25.0));
        assert_eq!(
            part("tcp/a", Some(16.0), Some(28.0), "load_deviation_percent"),
            Some(37.5),
            "four of 1, four of 1/4"
        );
        assert_eq!(part("tcp/a", None, None, "load_flaps"), Some(1.0));
        assert_eq!(part("tcp", None, None, "load_percent"), None);
    }

    #[test]
    fn a_load_moves_after_the_scope_begins() {
        let moved = |from_s| {
            let scope = Scope { flow: Some("tcp/a".to_owned()), from_s, ..Scope::default() };
            value(&run(), "load_responsiveness_s", &scope)
        };
        assert_eq!(moved(Some(10.0)), Some(9.0), "the window that ends at 20 s and the four after the gap");
        assert_eq!(moved(Some(45.0)), None, "it does not change");
        assert_eq!(moved(None), None, "from when?");
    }
}
