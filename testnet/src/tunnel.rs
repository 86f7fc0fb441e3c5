//! Endpoints of the tunnel with random algorithms.

use machine::{EndpointStatus, PathConfig, TunnelOptions};
use units::{RngStream, Span};

const CONGESTION_CONTROLS: [&str; 6] = ["bbr", "cubic", "reno", "off", "bbr3", "balia"];
const SCHEDULERS: [&str; 8] =
    ["minrtt", "byte-deficit", "redundant", "adaptive-redundant", "blest", "ecf", "roundrobin", "weighted"];

/// The configuration of every path.
pub const PATH_CONFIG: PathConfig = PathConfig::regular(1472, 28);

/// Limit of each of an endpoint's queues, bytes.
pub const MEMORY_BYTES: u64 = 16 << 20;

/// The options of an endpoint with these algorithms.
#[must_use]
pub fn options(congestion: &str, scheduler: &str) -> TunnelOptions {
    TunnelOptions {
        congestion: congestion.into(),
        scheduler: scheduler.into(),
        codel_target: Span::from_millis(5),
        codel_interval: Span::from_millis(100),
        memory_bytes: MEMORY_BYTES,
        ..TunnelOptions::default()
    }
}

/// The options of an endpoint with random algorithms and modes.
pub fn random_options(rng: &mut RngStream) -> TunnelOptions {
    let mut draw_name = |names: &[&'static str]| names[rng.below(names.len() as u64) as usize];
    let (congestion, scheduler) = (draw_name(&CONGESTION_CONTROLS), draw_name(&SCHEDULERS));
    TunnelOptions { retransmit: rng.chance(0.8), in_order: rng.chance(0.9), ..options(congestion, scheduler) }
}

/// Whether an endpoint has nothing queued, in flight or in its reorder buffer.
#[must_use]
pub fn is_drained(status: &EndpointStatus) -> bool {
    status.fragments_in_flight + status.ingress_backlog_packets + status.reorder_fragments == 0
}

/// Bytes that an endpoint keeps, in the larger of its queues.
#[must_use]
pub fn memory_bytes(status: &EndpointStatus) -> u64 {
    status.ingress_backlog_bytes.max(status.reorder_fragments * 1500)
}
