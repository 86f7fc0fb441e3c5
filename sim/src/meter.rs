//! What each of several competing flows got, second by second: fairness and convergence are worked out from it.
//!
//! Flows compete whose applications always have data. A flow that wants less than its share, because its application
//! writes at a rate or waits for requests, says nothing about fairness.

use crate::endpoint::{Endpoint, Kind};
use crate::tcp::Tcp;
use record::fairness::{Fairness, WINDOW_S, between};
use units::{Instant, Span};

const WINDOW: Span = Span::from_secs(WINDOW_S);

/// Counts what competing flows have received.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Which flows.
    pub flows: Vec<usize>,
    /// A row at the end of each window: bytes delivered so far, a column a flow.
    totals: Vec<Vec<u64>>,
}

impl Meter {
    /// None if fewer than two flows compete.
    pub(crate) fn new(flows: &[Endpoint]) -> Option<Self> {
        let flows: Vec<usize> = (0..flows.len()).filter(|flow| competitor(&flows[*flow]).is_some()).collect();
        (flows.len() > 1).then(|| Self { totals: vec![vec![0; flows.len()]], flows })
    }

    /// When the next window ends.
    pub(crate) fn due(&self) -> Instant {
        Instant::ZERO + WINDOW * self.totals.len() as u64
    }

    /// A window ends.
    pub(crate) fn take(&mut self, flows: &[Endpoint]) {
        let delivered = |flow: &usize| competitor(&flows[*flow]).map_or(0, Tcp::delivered_bytes);
        self.totals.push(self.flows.iter().map(delivered).collect());
    }

    /// Fairness over the whole windows in which every one of the flows was on.
    pub(crate) fn fairness(&self, flows: &[Endpoint]) -> Option<Fairness> {
        let competing = || self.flows.iter().map(|flow| &flows[*flow]);
        let start = competing().map(|flow| flow.start).max()?;
        let end = competing().map(end).min()?;
        between(&self.totals, start, end)
    }
}

/// A TCP flow whose application always has data.
fn competitor(endpoint: &Endpoint) -> Option<&Tcp> {
    match &endpoint.kind {
        Kind::Tcp(tcp) if tcp.is_greedy() => Some(tcp),
        _ => None,
    }
}

/// When a flow stopped, or was done.
fn end(endpoint: &Endpoint) -> Instant {
    let done = competitor(endpoint).and_then(|tcp| tcp.done);
    done.map_or(endpoint.stop, |done| done.min(endpoint.stop))
}
