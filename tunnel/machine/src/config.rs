//! Configuration of an [`Endpoint`](super::Endpoint) and of its paths.

use crate::defaults;
use control::Controller;
use schedule::Scheduler;
use units::{Rate, Span};

/// The greatest number of paths.
pub const MAX_PATHS: usize = 16;

/// Configuration of an endpoint.
#[derive(Debug)]
pub struct EndpointConfig {
    /// Picks the path of the next fragment: a scheduler that lets packets wait at the connection ([`schedule::Fill::Cwnd`]).
    pub scheduler: Box<dyn Scheduler>,
    /// Congestion control of all paths; `None` in networks whose load is managed otherwise (RFC 8086, section 3).
    pub controller: Option<Box<dyn Controller>>,
    /// Whether lost fragments are retransmitted.
    pub retransmit: bool,
    /// Whether fragments are delivered in the order of their streams.
    pub in_order: bool,
    /// Whether a fragment that arrives after it was given up is delivered out of order instead of being dropped.
    pub deliver_late: bool,
    /// The longest reorder timeout.
    pub max_reorder_timeout: Span,
    /// Silence after which a path is probed while the tunnel is in use.
    pub probe_interval: Span,
    /// CoDel's target at the ingress queue.
    pub codel_target: Span,
    /// CoDel's interval at the ingress queue.
    pub codel_interval: Span,
    /// Bytes that the ingress queue, the fragments in flight, and the reorder buffer may hold: each of the three.
    pub memory_bytes: u64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl EndpointConfig {
    /// The [defaults] with this scheduler and this congestion control.
    #[must_use]
    pub fn new(scheduler: Box<dyn Scheduler>, controller: Option<Box<dyn Controller>>, seed: u64) -> Self {
        Self {
            scheduler,
            controller,
            retransmit: defaults::RETRANSMIT,
            in_order: defaults::IN_ORDER,
            deliver_late: defaults::DELIVER_LATE,
            max_reorder_timeout: defaults::MAX_REORDER_TIMEOUT,
            probe_interval: defaults::PROBE_INTERVAL,
            codel_target: defaults::CODEL_TARGET,
            codel_interval: defaults::CODEL_INTERVAL,
            memory_bytes: defaults::MEMORY_BYTES,
            seed,
        }
    }
}

/// Configuration of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// Used only while no regular path works.
    pub backup: bool,
    /// Every byte costs: used as a backup, and probed seldom.
    pub metered: bool,
    /// The largest datagram (UDP payload) that path MTU discovery tries, bytes.
    pub max_datagram_size: u32,
    /// Bytes of the IP and UDP headers around a datagram.
    pub header_bytes: u32,
    /// The greatest rate sent on it, headers included; `None`: congestion control alone decides.
    pub max_rate: Option<Rate>,
}
