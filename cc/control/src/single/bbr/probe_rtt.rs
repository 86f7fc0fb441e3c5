//! ProbeRTT of both versions of BBR: the path is left nearly empty for a while.

use units::Instant;

/// Progress of ProbeRTT.
#[derive(Debug, Default)]
pub(in crate::single) struct ProbeRtt {
    /// When the path will have been empty for long enough; unset until it is empty.
    pub(in crate::single) probe_rtt_done_stamp: Option<Instant>,
    pub(in crate::single) probe_rtt_round_done: bool,
    /// Packets sent while `delivered` was in here were held back by the probe: first and last.
    pub(in crate::single) app_limited: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Whether a packet sent when `delivered` packets had been delivered was sent in ProbeRTT, or before its last
    /// packets arrived.
    pub(in crate::single) fn limited(&self, delivered: u64) -> bool {
        self.app_limited.is_some_and(|(first, last)| (first..=last).contains(&delivered))
    }
}
