//! Measurements and counters of a path.

use super::{PathRole, TunnelPath, UNPACED};
use crate::status::PathStatus;
use units::Rate;

impl TunnelPath {
    /// The path's measurements and counters.
    pub(crate) fn status(&self) -> PathStatus {
        let srtt = self.srtt().measured();
        PathStatus {
            path: self.id,
            peer_name: self.peer_name,
            up: self.validation.up,
            backup: self.is_backup(),
            secondary: self.role() == PathRole::Secondary,
            srtt,
            min_rtt: self.sender.min_rtt().measured(),
            rttvar: srtt.map(|_| self.sender.rtt().mdev()),
            probe_rtt: self.validation.latest_rtt,
            excess_one_way_delay: self.excess_one_way_delay,
            cwnd: self.sender.decision().cwnd,
            in_flight: self.sent.in_flight,
            pacing_rate: Some(self.pacing_rate()).filter(|rate| *rate != UNPACED).unwrap_or(Rate(0)),
            delivery_rate: Some(self.delivery_rate).filter(|rate| *rate != Rate(0)),
            max_datagram_size: self.validation.dplpmtud.plpmtu(),
            sent_packets: self.sent.sent_packets,
            sent_bytes: self.sent.sent_bytes,
            acked_packets: self.sender.delivered(),
            lost_packets: self.sender.lost(),
            spurious_losses: self.sent.lost.spurious,
            ce_packets: self.sender.marked(),
            received_packets: self.received_data_packets,
            received_bytes: self.received_data_bytes,
            last_received: self.last_received,
            failures: self.validation.failures,
            moves: self.migration.moves,
            refused_addresses: self.migration.refused,
        }
    }
}
