//! Configuration of an MPT connection, and MPT's defaults.

use units::Span;

/// The scheduler, by its name in `schedule::REGISTRY`: MPT distributes packets by weights.
pub const DEFAULT_SCHEDULER: &str = "packet-round-robin";
/// The inner MTU, bytes.
pub const DEFAULT_MTU: u16 = 1440;
/// Maximum time that a packet waits for earlier ones (`max_buffdelay_msec`).
pub const DEFAULT_REORDER_TIMEOUT: Span = Span::from_millis(100);
/// Number of missing keepalives after which a path is down, if no dead time is configured.
const DEFAULT_MISSING_KEEPALIVES: u64 = 3;

/// Configuration of the resequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderConfig {
    /// Maximum distance of a buffered packet from the expected one, packets (`reorder_window`).
    pub window: u32,
    /// Maximum time that a packet is buffered (`max_buffdelay_msec`).
    pub timeout: Span,
    /// Whether late packets are delivered out of order instead of being dropped.
    pub deliver_late: bool,
}

/// Configuration of keepalives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveConfig {
    /// Interval of keepalives (`keepalive_time`; in MPT whole seconds).
    pub keepalive_time: Span,
    /// Silence after which a path is down (`dead_time`).
    pub dead_time: Span,
}

impl KeepaliveConfig {
    /// Keepalives at this interval, with the default dead time of three intervals.
    #[must_use]
    pub fn new(keepalive_time: Span) -> Self {
        Self { keepalive_time, dead_time: keepalive_time * DEFAULT_MISSING_KEEPALIVES }
    }
}
