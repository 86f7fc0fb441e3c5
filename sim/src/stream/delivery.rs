//! How long the data of a relayed flow take from their sender to their receiver.

use crate::stream::transport::PacketInfo;
use record::Distribution;
use std::collections::VecDeque;
use transport::tcp::SegmentKind;
use units::Instant;

/// Times from the first transmission of each segment to its delivery, in order.
#[derive(Debug, Default)]
pub(crate) struct DeliveryTimes {
    /// Time of the first transmission of each segment from `delivered` on.
    sent: VecDeque<Instant>,
    /// Segments delivered.
    delivered: u64,
    pub delay: Distribution,
}

impl DeliveryTimes {
    /// Called when the flow's sender has sent a packet.
    pub(crate) fn on_sent(&mut self, now: Instant, packet: PacketInfo) {
        if packet.last == Some((SegmentKind::Data, self.delivered + self.sent.len() as u64)) {
            self.sent.push_back(now);
        }
    }

    /// Called when the segments before `delivered` have reached the flow's receiver.
    pub(crate) fn on_delivered(&mut self, now: Instant, delivered: u64) {
        while self.delivered < delivered
            && let Some(sent) = self.sent.pop_front()
        {
            self.delay.add(now.since(sent));
            self.delivered += 1;
        }
    }
}
