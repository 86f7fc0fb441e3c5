//! ProbeRTT of both versions of BBR: few packets are in flight for a while.

use units::Instant;

/// Progress of ProbeRTT.
#[derive(Debug, Default)]
pub(in crate::single) struct ProbeRtt {
    /// End of the time with few packets in flight; unset until they are few.
    pub(in crate::single) probe_rtt_done_stamp: Option<Instant>,
    pub(in crate::single) probe_rtt_round_done: bool,
    /// First and last `delivered` of packets that the probe limited.
    pub(in crate::single) app_limited: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Whether ProbeRTT limited the sender of a packet that was sent after `delivered` packets had been delivered.
    pub(in crate::single) fn is_app_limited(&self, delivered: u64) -> bool {
        self.app_limited.is_some_and(|(first, last)| (first..=last).contains(&delivered))
    }
}
