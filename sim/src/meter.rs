//! Bytes delivered to each of several competing flows, second by second, from which fairness and convergence time
//! follow.
//!
//! Only greedy flows compete: one whose application writes at a rate or waits for requests may want less than its
//! share.

use crate::flow::{FlowState, receiving};
use record::fairness::{Fairness, WINDOW_S, fairness_between};
use units::{Instant, Span};

const WINDOW: Span = Span::from_secs(WINDOW_S);

/// Samples the delivered bytes of competing flows.
#[derive(Debug)]
pub(crate) struct FairnessMeter {
    /// Indices of the competing flows.
    pub flows: Vec<usize>,
    /// Bytes delivered so far: one row per window, one column per flow.
    totals: Vec<Vec<u64>>,
}

impl FairnessMeter {
    /// A meter of the greedy flows; none if there are fewer than two.
    pub(crate) fn new(flows: &[FlowState]) -> Option<Self> {
        let flows: Vec<usize> = (0..flows.len()).filter(|flow| flows[*flow].protocol.counters().is_greedy).collect();
        (flows.len() > 1).then(|| Self { totals: vec![vec![0; flows.len()]], flows })
    }

    /// End of the next window.
    pub(crate) fn due(&self) -> Instant {
        Instant::ZERO + WINDOW * self.totals.len() as u64
    }

    /// Takes a row at the end of a window.
    pub(crate) fn take(&mut self, flows: &[FlowState]) {
        let delivered = |flow: &usize| receiving(flows, *flow).protocol.counters().delivered_bytes;
        self.totals.push(self.flows.iter().map(delivered).collect());
    }

    /// Fairness over the whole windows in which every competing flow was active.
    pub(crate) fn fairness(&self, flows: &[FlowState]) -> Option<Fairness> {
        let start = self.flows.iter().map(|flow| flows[*flow].start).max()?;
        let end = self.flows.iter().map(|flow| end_time(flows, *flow)).min()?;
        fairness_between(&self.totals, start, end)
    }
}

/// Time at which a flow stopped or completed.
fn end_time(flows: &[FlowState], flow: usize) -> Instant {
    receiving(flows, flow)
        .protocol
        .counters()
        .completed
        .map_or(flows[flow].stop, |completed| completed.min(flows[flow].stop))
}
