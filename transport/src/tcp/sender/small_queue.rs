//! TCP small queues (Linux 6.1 `tcp_small_queue_check`): a connection keeps about a millisecond of its pacing rate in
//! the queue of its own host. Further data waits in the send buffer, and is sent as packets leave that queue.

use super::Sender;
use control::LinuxRelease;
use std::collections::VecDeque;
use units::Instant;

/// The limit is the data of 1/1024 s (`sk_pacing_shift` 10).
const LIMITS_A_SECOND: u64 = 1 << 10;
/// Maximum limit of a sender that is not paced, bytes (`tcp_limit_output_bytes`; 6.18: as measured).
const fn limit_output_bytes(release: LinuxRelease) -> u64 {
    match release {
        LinuxRelease::V6_1 | LinuxRelease::V6_12 => 1 << 20,
        LinuxRelease::V6_18 => 4 << 20,
    }
}

/// A connection's packets in the queue of its own host.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallQueue {
    /// The departure time of each packet from the queue, in order.
    departures: VecDeque<Instant>,
    /// Time at which the queue has room again, if the latest poll found none.
    room_at: Option<Instant>,
}

impl SmallQueue {
    /// Called when nothing more is sent now. Returns the time at which the queue has room again, if it is full.
    pub(super) fn finish(&mut self) -> Option<Instant> {
        self.room_at.take()
    }

    /// Packets in the queue.
    fn packets(&mut self, now: Instant) -> usize {
        while self.departures.front().is_some_and(|departure| *departure <= now) {
            self.departures.pop_front();
        }
        self.departures.len()
    }
}

impl Sender {
    /// Reports that the last polled segment waits in the queue of the sending host until `departure`, and at least as
    /// long as the previous one: a link that goes down forgets when they would have left.
    pub fn wait_in_host_queue(&mut self, departure: Instant) {
        if self.config.small_queues {
            let departures = &mut self.small_queue.departures;
            departures.push_back(departures.back().map_or(departure, |before| departure.max(*before)));
        }
    }

    /// True if the host's queue has room for a buffer of new data with this many segments.
    pub(super) fn small_queue_allows(&mut self, now: Instant, segments: impl FnOnce(&Self) -> u64) -> bool {
        self.has_host_queue_room(now, |sender| sender.small_queue_limit(segments(sender)))
    }

    /// True if the host's queue has room for a retransmission. For retransmissions the limit is twice as high.
    pub(super) fn small_queue_allows_retransmission(&mut self, now: Instant) -> bool {
        self.has_host_queue_room(now, |sender| 2 * sender.small_queue_limit(1))
    }

    /// The bytes that may wait in the host's queue before a buffer of this many segments is sent.
    fn small_queue_limit(&self, segments: u64) -> u64 {
        let buffer = segments * u64::from(self.config.mss) + self.config.buffer_overhead();
        let limit = (2 * buffer).max(self.pacing_rate().as_bits() / 8 / LIMITS_A_SECOND);
        if self.is_paced() { limit } else { limit.min(limit_output_bytes(self.config.release)) }
    }

    /// Buffers that have been sent and not acknowledged.
    fn buffers_out(&self) -> u32 {
        if self.config.tso { self.scoreboard.super_segments() } else { self.scoreboard.counts().packets_out }
    }

    fn has_host_queue_room(&mut self, now: Instant, limit: impl FnOnce(&Self) -> u64) -> bool {
        let packets = self.small_queue.packets(now);
        if packets == 0 {
            return true;
        }
        let allowed = (limit(self) / (u64::from(self.config.mss) + self.config.buffer_overhead())) as usize;
        // The outstanding data may be one buffer (`tcp_rtx_queue_empty_or_single_skb`), or nothing.
        if packets <= allowed || self.buffers_out() <= 1 {
            return true;
        }
        self.small_queue.room_at = Some(self.small_queue.departures[packets - allowed - 1]);
        false
    }
}
