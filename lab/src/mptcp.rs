//! Whether an MPTCP connection was what was asked for: a connection that has quietly become a single path is no result.

use crate::Error;
use crate::plan::{Multipath, Observation, Sample};
use scenario::model::{Experiment, Flow};
use units::{Instant, Span};

/// A flow that is over by then, or within so many round trips, may have had no time for its other subflows.
const TIME_TO_JOIN: Span = Span::from_secs(1);
const ROUNDS_TO_JOIN: u64 = 20;

/// Refuses what `seen` tells of a flow that began at `start` if one of its subflows is lacking.
pub(crate) fn check(experiment: &Experiment, flow: &Flow, seen: &Observation, start: Instant) -> Result<(), Error> {
    let Some(counts) = &seen.multipath else { return Ok(()) };
    let end = flow.stop.unwrap_or(Instant::NEVER).min(Instant::ZERO + experiment.duration);
    let was_on = seen.completion.unwrap_or(end.since(start));
    if was_on < TIME_TO_JOIN.max(round_trip(&seen.subflows) * ROUNDS_TO_JOIN) {
        return Ok(());
    }
    let lacking: Vec<&str> = flow
        .kind
        .subflows()
        .iter()
        .zip(&seen.subflows)
        .filter(|(_, samples)| !stood(samples))
        .map(|(subflow, _)| experiment.paths[subflow.path].name.as_str())
        .collect();
    let Some(why) = fault(counts, seen.subflows.len() as u64 - 1, &lacking.join(", ")) else { return Ok(()) };
    Err(Error::guest(format!("flow {}: {why}; the kernel counted {counts:?}", flow.name)))
}

fn fault(counts: &Multipath, others: u64, lacking: &str) -> Option<String> {
    if counts.connections == 0 {
        return Some("no MPTCP connection came about".into());
    }
    if counts.fallbacks > 0 {
        return Some("the connection fell back to TCP".into());
    }
    // Other connections of the same programs have subflows too.
    (counts.joined < others || !lacking.is_empty())
        .then(|| format!("{} of {others} further subflows joined; nothing over {lacking}", counts.joined))
}

/// There was a round trip.
fn stood(samples: &[Sample]) -> bool {
    samples.iter().filter_map(|sample| sample.tcp).any(|tcp| tcp.rtt > 0)
}

/// The greatest smoothed one.
fn round_trip(subflows: &[Vec<Sample>]) -> Span {
    let all = subflows.iter().flatten().filter_map(|sample| sample.tcp);
    Span::from_micros(all.map(|tcp| u64::from(tcp.rtt)).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_less_than_asked_for_is_a_fault() {
        let whole = Multipath { connections: 1, joined: 3, ..Multipath::default() };
        assert_eq!(fault(&whole, 3, ""), None);
        let told = |counts: Multipath| fault(&counts, 3, "dsl").unwrap();
        assert_eq!(told(Multipath { joined: 1, ..whole }), "1 of 3 further subflows joined; nothing over dsl");
        assert!(told(Multipath { fallbacks: 1, ..whole }).contains("fell back"));
        assert!(told(Multipath { connections: 0, ..whole }).contains("no MPTCP"));
    }
}
