//! A path in numbers.

use super::{Path, UNPACED};
use crate::vocabulary::PathStatus;
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
            deviation: self.ledger.round_trip.deviation,
            probe_rtt: self.life.rtt,
            behind: Span::ZERO,
            window: self.decision.window,
            in_flight: self.ledger.in_flight,
            pacing: Some(self.rate()).filter(|rate| *rate != UNPACED).unwrap_or(Rate(0)),
            delivery: self.delivery,
            largest: self.life.search.confirmed(),
            sent: totals.sent,
            sent_bytes: totals.bytes,
            delivered: self.ledger.rate.delivered(),
            lost: totals.lost,
            spurious: totals.spurious,
            marked: totals.marked,
            received: self.received,
            received_bytes: self.received_bytes,
            heard: self.heard,
            failures: self.life.failures,
        }
    }
}
