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
            target: Span::from_millis(5),     // RFC 8289, section 4.3
            interval: Span::from_millis(100), // section 4.2
            memory: 64 << 20,
            seed,
        }
    }
}
