//! Default values of the tunnel, for the simulator, the daemon's configuration and the scenario's schema alike.

use units::Span;

/// Congestion control of the paths, by its name in `control::registry`.
pub const CONGESTION_CONTROL: &str = "bbr";
/// The scheduler, by its name in `schedule::REGISTRY`.
pub const SCHEDULER: &str = "overflow";
/// Whether lost fragments are retransmitted.
pub const RETRANSMIT: bool = true;
/// Whether fragments are delivered in the order of their streams.
pub const IN_ORDER: bool = true;
/// Whether late fragments are delivered instead of being dropped.
pub const DELIVER_LATE: bool = false;
/// The longest reorder timeout.
pub const MAX_REORDER_TIMEOUT: Span = Span::from_millis(500);
/// Silence after which a path is probed while the tunnel is in use.
pub const PROBE_INTERVAL: Span = Span::from_millis(200);
/// CoDel's target at the ingress queue. Longer than RFC 8289's 5 ms for a router: a flow's own queue harms nobody else here,
/// and keeps slow paths in use after its window was cut.
pub const CODEL_TARGET: Span = Span::from_millis(20);
/// CoDel's interval at the ingress queue. Longer than RFC 8289's 100 ms: a path that is drained to measure it (BBR's
/// PROBE_RTT, 200 ms) builds a queue that is no sign of too much traffic.
pub const CODEL_INTERVAL: Span = Span::from_millis(300);
/// Bytes that the ingress queue, the fragments in flight, and the reorder buffer may hold: each of the three.
pub const MEMORY_BYTES: u64 = 64 << 20;
