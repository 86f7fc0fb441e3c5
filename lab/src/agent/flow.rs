//! The interface of a flow's traffic, whether the agent or external programs make it.

use super::Outcome;
use super::flow_counters::FlowCounters;
use std::time::Instant;

/// A flow's traffic.
pub(super) trait Flow {
    /// Starts the flow, which sends from `start`, in the future, until `end`.
    fn begin(&self, times: [Instant; 2]) -> Outcome<()>;

    /// The flow's counters.
    fn counters(&self) -> &FlowCounters;

    /// Stops the source.
    fn stop(&self);

    /// Ends the flow after the run. Returns when it no longer uses the network, with its error if there was one.
    fn finish(&self) -> Outcome<()>;
}
