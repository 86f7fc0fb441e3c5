//! A cellular uplink: packets leave in grants, after a request.
//!
//! This follows LTE's uplink scheduling (3GPP TS 36.321, sections 5.4.4 and 5.4.5; 5G's in TS 38.321 is alike). A
//! device with nothing to send has no grant. Its first packet makes it send a scheduling request. `request` covers the
//! wait for that, the base station's answer and the device's preparation. Grants come at multiples of `period`. Each
//! carries at once as much as the rate does in a period, of packets that were waiting *before* its instant. The rest of
//! a packet that exceeds it goes with the next grant. A device that still has data at a grant reports that in it
//! (buffer status report) and gets the next grant without a request.

use crate::config::GrantConfig;
use units::{Instant, Rate, Span};

/// The grants used so far.
#[derive(Clone, Debug)]
pub(super) struct GrantCursor {
    config: GrantConfig,
    rate: Rate,
    /// The grant in use, and the bytes that it can still carry.
    instant: Instant,
    bytes_left: u64,
    /// The next grant, if it is not yet known for which packets it is.
    next: Option<Instant>,
}

impl GrantCursor {
    pub(super) fn new(config: GrantConfig, rate: Rate) -> Self {
        assert!(config.period > Span::ZERO, "grants come at multiples of their period");
        Self { config, rate, instant: Instant::ZERO, bytes_left: 0, next: None }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Instant of the grant in use, or of the last one that was used.
    pub(super) fn last_used_at(&self) -> Instant {
        self.instant
    }

    /// Time at which a packet that has been available since `available_at` can leave.
    pub(super) fn start(&self, available_at: Instant) -> Instant {
        if self.has_bytes_left(available_at) { self.instant } else { self.grant_for(available_at) }
    }

    /// Carries a packet that has been available since `available_at`. Returns the times at which its first and its last
    /// byte leave.
    pub(super) fn send(&mut self, available_at: Instant, bytes: u64) -> (Instant, Instant) {
        if !self.has_bytes_left(available_at) {
            self.begin(self.grant_for(available_at));
        }
        let (start, mut remaining) = (self.instant, bytes);
        while remaining > self.bytes_left {
            remaining -= self.bytes_left;
            self.begin(self.instant + self.config.period);
        }
        self.bytes_left -= remaining;
        (start, self.instant)
    }

    /// Requests the grant for a packet that has been waiting since `available_at`, whichever packet the grant will
    /// carry.
    pub(super) fn request(&mut self, available_at: Instant) {
        if !self.has_bytes_left(available_at) {
            self.next = Some(self.grant_for(available_at));
        }
    }

    /// Forgets future grants.
    pub(super) fn reset(&mut self) {
        (self.instant, self.bytes_left, self.next) = (Instant::ZERO, 0, None);
    }

    /// Whether the grant in use has room for a packet that has been available since `available_at`.
    fn has_bytes_left(&self, available_at: Instant) -> bool {
        self.bytes_left > 0 && self.instant > available_at
    }

    /// The grant after the one in use; it needs no request if the packet was already waiting then.
    fn grant_for(&self, available_at: Instant) -> Instant {
        if let Some(next) = self.next.filter(|next| *next > available_at) {
            return next;
        }
        if available_at < self.instant {
            return self.instant + self.config.period;
        }
        let period = self.config.period.0;
        let grant = (available_at + self.config.request).0.div_ceil(period) * period;
        Instant(if grant > available_at.0 { grant } else { grant + period })
    }

    fn begin(&mut self, instant: Instant) {
        (self.instant, self.next) = (instant, None);
        self.bytes_left = self.rate.bytes_in(self.config.period).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 12 Mbit/s: 7500 bytes each 5 ms, 8 ms after a request.
    fn cursor() -> GrantCursor {
        GrantCursor::new(
            GrantConfig { period: Span::from_millis(5), request: Span::from_millis(8) },
            Rate::from_mbit(12),
        )
    }

    fn ms(n: u64) -> Instant {
        Instant(n * MS)
    }

    #[test]
    fn the_first_grant_is_the_first_after_the_request_and_a_backlog_gets_each_further_one() {
        let mut cursor = cursor();
        // Requested at 1 ms, there at 9 ms, so granted at 10 ms: five packets of 1500 bytes each 5 ms.
        let departures: Vec<u64> = (0..12).map(|_| cursor.send(ms(1), 1500).1.0 / MS).collect();
        assert_eq!(departures, [10, 10, 10, 10, 10, 15, 15, 15, 15, 15, 20, 20]);
        assert_eq!(cursor.send(ms(19), 4500), (ms(20), ms(20)), "what is left of the grant");
        assert_eq!(cursor.send(ms(19), 1500), (ms(25), ms(25)), "it waited at 20 ms, and the grant said so");
        assert_eq!(cursor.send(ms(25), 1500), (ms(35), ms(35)), "it came too late for that: request, 33 ms");
    }

    #[test]
    fn the_rest_of_a_packet_goes_with_the_next_grant() {
        let mut cursor = cursor();
        assert_eq!(cursor.send(ms(2), 9000), (ms(10), ms(15)));
        assert_eq!(cursor.send(ms(3), 6000), (ms(15), ms(15)));
        assert_eq!(cursor.send(ms(3), 1), (ms(20), ms(20)));
    }

    #[test]
    fn a_requested_grant_is_for_any_packet_but_not_for_one_that_comes_after_it() {
        let mut cursor = cursor();
        cursor.request(ms(1));
        cursor.request(ms(6));
        assert_eq!((cursor.start(ms(6)), cursor.start(ms(10))), (ms(10), ms(20)));
        assert_eq!(cursor.send(ms(6), 1500), (ms(10), ms(10)));
        assert_eq!(cursor.send(ms(9), 1500), (ms(10), ms(10)));
    }
}
