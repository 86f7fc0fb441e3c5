//! The `[tunnel]` table, resolved: what the machine's endpoint is built from.

use control::AlgorithmChoice;
use machine::{EndpointConfig, defaults};
use units::Span;

/// How packets are carried.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelOptions {
    /// Congestion control of each path, from `control::registry`; `None` where the network's load is managed.
    pub congestion: Option<AlgorithmChoice>,
    /// The scheduler, from `schedule::REGISTRY`.
    pub scheduler: AlgorithmChoice,
    /// Whether lost fragments are retransmitted.
    pub retransmit: bool,
    /// Whether packets are delivered in the order of their sending.
    pub in_order: bool,
    /// Whether late packets are delivered out of order instead of being dropped.
    pub deliver_late: bool,
    /// The longest time that a packet waits for an earlier one.
    pub max_reorder_timeout: Span,
}

impl Default for TunnelOptions {
    fn default() -> Self {
        Self {
            congestion: Some(defaults::CONGESTION_CONTROL.into()),
            scheduler: defaults::SCHEDULER.into(),
            retransmit: defaults::RETRANSMIT,
            in_order: defaults::IN_ORDER,
            deliver_late: defaults::DELIVER_LATE,
            max_reorder_timeout: defaults::MAX_REORDER_TIMEOUT,
        }
    }
}

impl TunnelOptions {
    /// The configuration of an endpoint whose paths have these weights, by path id.
    ///
    /// # Errors
    /// An unknown algorithm, or a parameter that it does not have, in words.
    pub fn endpoint_config(&self, weights: &[u32], seed: u64) -> Result<EndpointConfig, String> {
        let AlgorithmChoice { name, parameters } = &self.scheduler;
        let entry = schedule::find(name).ok_or_else(|| format!("there is no scheduler `{name}`"))?;
        let scheduler = entry.scheduler(weights, 0, parameters).map_err(|error| format!("{name}: {error}"))?;
        let controller = self.congestion.as_ref().map(|AlgorithmChoice { name, parameters }| {
            let entry = control::registry::find(name).ok_or_else(|| format!("there is no algorithm `{name}`"))?;
            entry.controller(parameters).map_err(|error| format!("{name}: {error}"))
        });
        Ok(EndpointConfig {
            retransmit: self.retransmit,
            in_order: self.in_order,
            deliver_late: self.deliver_late,
            max_reorder_timeout: self.max_reorder_timeout,
            ..EndpointConfig::new(scheduler, controller.transpose()?, seed)
        })
    }
}
