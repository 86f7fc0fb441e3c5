//! A probe for the least RTT, as both versions of BBR keep it: the path is left empty for a while.

use units::Instant;

/// The progress of RTT probing.
#[derive(Debug, Default)]
pub(in crate::single) struct RttProbe {
    /// When the path will have been empty for long enough; unset until it is empty.
    pub(in crate::single) until: Option<Instant>,
    pub(in crate::single) round_done: bool,
    /// Packets sent while `delivered` was in here were held back by the probe: first and last.
    pub(in crate::single) held: Option<(u64, u64)>,
}

impl RttProbe {
    /// The packet sent when `delivered` had been delivered went out in a probe, or before its last packets arrived.
    pub(in crate::single) fn held_back(&self, delivered: u64) -> bool {
        self.held.is_some_and(|(first, last)| (first..=last).contains(&delivered))
    }
}
