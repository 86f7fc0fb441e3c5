//! What a stack has told of one acknowledgement, or of one expiry of its loss timer.

use crate::sent_packets::SentPacket;
use sender::path::{AckedPackets, PathSender, PriorState};
use units::Instant;

/// A report that is open.
#[derive(Debug)]
pub(crate) struct Report {
    pub now: Instant,
    /// The state before it.
    pub prior: PriorState,
    /// The oldest packet in flight before it.
    pub prior_oldest: u64,
    pub acked: AckedPackets,
    /// Whether all packets of the acknowledgement were told.
    pub has_all_acks: bool,
    /// Position and time of sending of the newest packet acknowledged.
    pub newest_acked: Option<(u64, Instant)>,
    /// Position of the newest packet lost.
    pub newest_lost: Option<u64>,
    pub lost_packets: u32,
    pub is_persistent: bool,
}

impl Report {
    pub(crate) fn new(now: Instant, prior: PriorState, prior_oldest: u64) -> Self {
        Self {
            now,
            prior,
            prior_oldest,
            acked: AckedPackets::default(),
            has_all_acks: false,
            newest_acked: None,
            newest_lost: None,
            lost_packets: 0,
            is_persistent: false,
        }
    }

    pub(crate) fn add_acked(&mut self, packet: &SentPacket, sender: &mut PathSender) {
        let SentPacket { seq, sent, segments, snapshot, .. } = packet;
        sender.on_delivered(&mut self.acked.rate_sample, *seq, *sent, *segments, snapshot);
        self.newest_acked = self.newest_acked.max(Some((*seq, *sent)));
    }

    pub(crate) fn add_lost(&mut self, packet: &SentPacket, sender: &mut PathSender) {
        sender.count_lost(packet.segments);
        self.lost_packets += 1;
        if self.newest_lost < Some(packet.seq) {
            self.newest_lost = Some(packet.seq);
            self.acked.newest_lost = Some(packet.snapshot);
        }
    }

    /// Whether packet `seq` or a later one is acknowledged.
    pub(crate) fn acknowledges(&self, seq: u64) -> bool {
        self.newest_acked.is_some_and(|(newest, _)| newest >= seq)
    }
}
