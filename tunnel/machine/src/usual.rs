//! What a tunnel is unless it is told otherwise: the same numbers in the simulator and in the daemon.

use super::vocabulary::Setup;
use control::Controller;
use schedule::Scheduler;
use units::Span;

/// Congestion control of the paths, by its name in the registry.
pub const CONGESTION: &str = "bbr";
/// The scheduler, by its name in the registry.
pub const SCHEDULER: &str = "overflow";

impl Setup {
    /// The usual settings with this scheduler and these windows.
    #[must_use]
    pub fn usual(scheduler: Box<dyn Scheduler>, controller: Option<Box<dyn Controller>>, seed: u64) -> Self {
        Self {
            scheduler,
            controller,
            repair: true,
            order: true,
            deliver_late: false,
            hold_most: Span::from_millis(500),
            probe: Span::from_millis(200),
            // Longer than RFC 8289 has them for a router (5 and 100 ms): a flow's own queue harms nobody else here, and is
            // what keeps slow paths in use after its window was cut; a path that is drained to measure it (BBR's
            // PROBE_RTT, 200 ms) makes a queue that is no sign of too much traffic.
            target: Span::from_millis(20),
            interval: Span::from_millis(300),
            memory: 64 << 20,
            seed,
        }
    }
}
