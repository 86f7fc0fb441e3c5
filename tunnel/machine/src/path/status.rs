//! A path in numbers.

use super::{Path, UNPACED};
use crate::status::PathStatus;
use units::{Rate, Span};

impl Path {
    /// Its numbers.
    pub(crate) fn status(&self) -> PathStatus {
        let totals = &self.ledger.totals;
        PathStatus {
            path: self.id,
            up: self.life.up,
            backup: self.is_backup(),
            srtt: self.srtt(),
            min_rtt: self.ledger.min_rtt(),
            rttvar: self.ledger.round_trip.deviation,
            probe_rtt: self.life.rtt,
            excess_delay: Span::ZERO,
            cwnd: self.decision.cwnd,
            in_flight: self.ledger.in_flight,
            pacing_rate: Some(self.rate()).filter(|rate| *rate != UNPACED).unwrap_or(Rate(0)),
            delivery_rate: self.delivery,
            max_datagram_size: self.life.search.confirmed(),
            sent_packets: totals.sent,
            sent_bytes: totals.bytes,
            delivered_packets: self.ledger.rate.delivered(),
            lost_packets: totals.lost,
            spurious_losses: totals.spurious,
            ce_packets: totals.marked,
            received_packets: self.received,
            received_bytes: self.received_bytes,
            last_received: self.heard,
            failures: self.life.failures,
        }
    }
}
