//! A flow's traffic: made by the agent's own threads, or by external programs.

use super::flow::Flow;
use super::flow_counters::FlowCounters;
use super::programs::Programs;
use super::{Outcome, requests, stream, udp};
use crate::protocol::{Application, FlowSpec, Transport};
use std::sync::Arc;
use std::time::Instant;

/// A flow whose source and sink are threads of the agent.
struct AgentFlow {
    spec: FlowSpec,
    counters: Arc<FlowCounters>,
}

/// Prepares a flow.
pub(super) fn open(spec: &FlowSpec) -> Outcome<Box<dyn Flow>> {
    Ok(match spec.programs() {
        Some((tcp, programs)) => Box::new(Programs::open(spec, tcp, programs)?),
        None => Box::new(AgentFlow { spec: spec.clone(), counters: Arc::default() }),
    })
}

impl Flow for AgentFlow {
    /// Starts the flow's threads, which end with the process.
    fn begin(&self, [start, end]: [Instant; 2]) -> Outcome<()> {
        let (ends, counters) = (self.spec.ends.clone(), &self.counters);
        match &self.spec.transport {
            Transport::Udp(udp) => udp::begin(*udp, ends, [start, end], counters),
            Transport::Tcp(tcp) => match &tcp.application {
                Application::Requests { requests, seed, name } => {
                    requests::begin(tcp, ends, start, (*requests, *seed, name), counters)
                }
                _ => stream::begin(tcp, ends, start, counters),
            },
        }
    }

    fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    fn stop(&self) {
        self.counters.connections().stop();
    }

    fn finish(&self) -> Outcome<()> {
        Ok(())
    }
}
