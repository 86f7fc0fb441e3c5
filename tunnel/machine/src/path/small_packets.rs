//! The window of a path that carries small packets alone, such as acknowledgements of inner flows.
//!
//! A congestion window of the fewest segments is a long queue of them on a slow path: four are 190 ms at 250 kbit/s. What the
//! queue holds the acknowledgements of the other direction wait for, and they pace what that carries. So their window is of
//! bytes, and binds while the round trip shows a queue.

use super::TunnelPath;
use units::Span;

/// Datagrams that may be in flight all the same.
const MIN_DATAGRAMS: u32 = 4;
/// Minimum queueing delay that shows a queue.
const MIN_QUEUE_DELAY: Span = Span::from_millis(2);
/// The same as a part of the minimum round trip. An acknowledgement that waits gives way to a newer one, so the path needs no
/// queue to be in use.
const ROUND_TRIPS_PER_QUEUE: u64 = 12;

impl TunnelPath {
    /// Whether small packets alone fill the path: it has a queue, and more in flight than it delivers in a minimum round trip
    /// and the delay that shows a queue; but as many datagrams as acknowledgements of a round trip need may always be.
    pub(super) fn is_full_of_small(&self) -> bool {
        if self.sent.small_in_flight().is_none_or(|count| count < MIN_DATAGRAMS) {
            return false;
        }
        let min_rtt = self.sender.min_rtt();
        let max_queue_delay = (min_rtt / ROUND_TRIPS_PER_QUEUE).max(MIN_QUEUE_DELAY);
        self.queue_delay() > max_queue_delay
            && self.sent.bytes_in_flight > self.delivery_rate.bytes_in(min_rtt + max_queue_delay)
    }
}
