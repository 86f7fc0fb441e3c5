//! Checks that an MPTCP connection had all its subflows, with the requested congestion control. A connection that fell back
//! to a single path, or to the host's default, is not a result.

use crate::Error;
use crate::protocol::{FlowResults, MptcpExtCounters, Plan, RunResults, Sample, TcpSpec, Transport};
use scenario::model::{Experiment, Flow};
use units::{Instant, Span};

/// A flow that ends within this time, or this number of round trips, may lack subflows.
const TIME_TO_JOIN: Span = Span::from_secs(1);
const ROUNDS_TO_JOIN: u64 = 20;

/// Fails if a subflow had another congestion control than its flow asks for: MPTCP's sockets take any name without an
/// error, and use the host's default if the kernel has none of that name.
pub(crate) fn check_algorithms(plan: &Plan, results: &RunResults) -> Result<(), Error> {
    for (spec, results) in plan.flows.iter().zip(&results.flows) {
        let Transport::Tcp(TcpSpec { congestion: wanted, .. }) = &spec.transport else { continue };
        // If the other side has no ECN, the kernel's DCTCP calls itself `dctcp-reno`, and the eBPF program becomes `reno`.
        let is_it = |name: &String| name.starts_with(wanted) || (wanted == "rw_dctcp" && name == "reno");
        if let Some((address, actual)) = results.congestion_controls.iter().find(|(_, name)| !is_it(name)) {
            return Err(Error::failed(format!("the subflow from {address} had {actual}, not {wanted}")));
        }
    }
    Ok(())
}

/// Fails if a subflow of a flow that began at `start` is missing in its results.
pub(crate) fn check(experiment: &Experiment, flow: &Flow, results: &FlowResults, start: Instant) -> Result<(), Error> {
    let Some(counts) = &results.mptcp_ext else { return Ok(()) };
    let end = flow.stop.unwrap_or(Instant::NEVER).min(Instant::ZERO + experiment.duration);
    let duration = results.completion.unwrap_or(end.since(start));
    if duration < TIME_TO_JOIN.max(round_trip(&results.subflows) * ROUNDS_TO_JOIN) {
        return Ok(());
    }
    let missing: Vec<&str> = flow
        .kind
        .subflows()
        .iter()
        .zip(&results.subflows)
        .filter(|(_, samples)| !was_established(samples))
        .map(|(subflow, _)| experiment.paths[subflow.path].name.as_str())
        .collect();
    let Some(error) = fault(counts, results.subflows.len() as u64 - 1, &missing.join(", ")) else { return Ok(()) };
    Err(Error::failed(format!("flow {}: {error}; the kernel counted {counts:?}", flow.name)))
}

fn fault(counts: &MptcpExtCounters, others: u64, missing: &str) -> Option<String> {
    if counts.connections == 0 {
        return Some("no MPTCP connection was established".into());
    }
    if counts.fallbacks > 0 {
        return Some("the connection fell back to TCP".into());
    }
    // Other connections of the same programs have subflows too.
    (counts.joined < others || !missing.is_empty())
        .then(|| format!("{} of {others} further subflows joined; nothing over {missing}", counts.joined))
}

/// Whether a subflow has completed a round trip.
fn was_established(samples: &[Sample]) -> bool {
    samples.iter().filter_map(|sample| sample.tcp).any(|tcp| tcp.rtt > 0)
}

/// The largest smoothed RTT of all subflows.
fn round_trip(subflows: &[Vec<Sample>]) -> Span {
    let tcp_infos = subflows.iter().flatten().filter_map(|sample| sample.tcp);
    Span::from_micros(tcp_infos.map(|tcp| u64::from(tcp.rtt)).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_without_all_its_subflows_is_a_fault() {
        let complete = MptcpExtCounters { connections: 1, joined: 3, ..MptcpExtCounters::default() };
        assert_eq!(fault(&complete, 3, ""), None);
        let message = |counts: MptcpExtCounters| fault(&counts, 3, "dsl").unwrap();
        assert_eq!(
            message(MptcpExtCounters { joined: 1, ..complete }),
            "1 of 3 further subflows joined; nothing over dsl"
        );
        assert!(message(MptcpExtCounters { fallbacks: 1, ..complete }).contains("fell back"));
        assert!(message(MptcpExtCounters { connections: 0, ..complete }).contains("no MPTCP"));
    }
}
