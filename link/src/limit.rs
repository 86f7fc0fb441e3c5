//! The limit of a queue.

use crate::config::QueueLimit;
use units::Rate;

/// A queue's limit in packets and bytes.
///
/// Waiting packets count, but not the packet in transmission: in Linux it has left the queueing discipline for the
/// driver. As in `pfifo` and `bfifo`, the arriving packet counts, and an exactly full queue is within the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct EffectiveLimit {
    packets: u64,
    bytes: u64,
}

impl EffectiveLimit {
    /// The effect of `limit` at this rate. A limit in time has no effect on a link without a rate.
    pub(super) fn new(limit: QueueLimit, rate: Option<Rate>) -> Self {
        match (limit, rate) {
            (QueueLimit::Packets(packets), _) => Self { packets, bytes: u64::MAX },
            (QueueLimit::Bytes(bytes), _) => Self { packets: u64::MAX, bytes },
            (QueueLimit::Time(span), Some(rate)) => Self { packets: u64::MAX, bytes: rate.bytes_in(span) },
            (QueueLimit::Time(_), None) => Self { packets: u64::MAX, bytes: u64::MAX },
        }
    }

    /// Whether a packet of `size` bytes may join this many waiting packets and bytes.
    #[inline]
    pub(super) fn has_room_for(&self, packets: usize, bytes: u64, size: u64) -> bool {
        (packets as u64) < self.packets && bytes + size <= self.bytes
    }

    /// Whether this many packets and bytes may wait.
    pub(super) fn allows(&self, packets: u64, bytes: u64) -> bool {
        packets <= self.packets && bytes <= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn a_queue_filled_exactly_is_not_too_full() {
        let packets = EffectiveLimit::new(QueueLimit::Packets(3), None);
        assert!(packets.has_room_for(2, 1 << 40, 1500) && !packets.has_room_for(3, 0, 1));
        let bytes = EffectiveLimit::new(QueueLimit::Bytes(4500), None);
        assert!(bytes.has_room_for(2, 3000, 1500) && !bytes.has_room_for(2, 3000, 1501));
    }

    #[test]
    fn a_limit_in_time_is_bytes_at_the_present_rate() {
        let rate = Some(Rate::from_mbit(100));
        let limit = EffectiveLimit::new(QueueLimit::Time(Span::from_millis(20)), rate);
        assert!(limit.has_room_for(0, 248_500, 1500) && !limit.has_room_for(0, 248_501, 1500));
        assert!(EffectiveLimit::new(QueueLimit::Time(Span::ZERO), None).has_room_for(9, 9, 9));
    }
}
