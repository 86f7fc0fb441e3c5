//! Decides whether the regular paths are full, so that secondary ones are used.
//!
//! ```text
//! full  if  packets have waited without a break for max(FULL_TIME, 4 srtt),  or  all phantom queues are FULL_TIME long
//! ```
//! The 4 RTTs leave time for a window that still grows (RFC 6928: 10 packets, doubled each RTT). Secondary paths then
//! carry the packets for which the regular ones have no room. While the phantom queues are long, secondary paths come
//! first, because a flow that paces itself leaves no packets waiting. Once needed, they stay in use for some of their
//! RTTs as long as the regular paths are busy, so that the inner flows' windows do not swing. The scheduler does not
//! decide this: it sees only the regular paths.

use schedule::PathView;
use units::{Instant, Span};

/// Time for which packets wait without a break at a full path, and the length of its phantom queue. Longer than a burst
/// (the scheduler `overflow` has the same limit).
const FULL_TIME: Span = Span::from_millis(50);
/// Minimum number of RTTs for which packets wait.
const GROWTH_ROUND_TRIPS: u64 = 4;
/// Minimum number of packets of a backlog.
const MIN_BACKLOG_PACKETS: u64 = 4;
/// A phantom queue of at least this length shows a busy path.
const BUSY_TIME: Span = Span::from_millis(2);
/// Number of RTTs of a secondary path for which it stays needed: two of BBR's gain cycles.
const NEED_ROUND_TRIPS: u64 = 16;

/// When secondary paths carry packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SecondaryUse {
    /// Not now.
    #[default]
    Never,
    /// If no regular path has room.
    WhenBlocked,
    /// Before regular paths.
    First,
}

/// Measures the load of the regular paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadMonitor {
    /// Since when packets wait.
    backlogged: Option<Instant>,
    /// The latest answer.
    latest: SecondaryUse,
    needed_until: Instant,
}

impl LoadMonitor {
    /// No packet waits.
    pub(super) fn on_empty(&mut self) {
        self.backlogged = None;
    }

    /// Whether secondary paths may have carried packets at the latest [`update`](Self::update).
    pub(super) fn is_open(&self) -> bool {
        self.latest != SecondaryUse::Never
    }

    /// No regular path works.
    pub(super) fn on_no_regular(&mut self) {
        self.latest = SecondaryUse::First;
    }

    /// The use of secondary paths now, with `unsent_packets` that wait. `secondary_srtt` is the smoothed RTT of the
    /// fastest secondary path.
    pub(super) fn update<'a>(
        &mut self,
        now: Instant,
        unsent_packets: u64,
        regular: impl Iterator<Item = &'a PathView>,
        secondary_srtt: Span,
    ) -> SecondaryUse {
        let (mut shortest, mut srtt) = (Span(u64::MAX), Span(u64::MAX));
        for path in regular {
            // A path whose phantom queue is not counted is busy if packets wait.
            shortest = shortest.min(path.phantom_queue_delay.unwrap_or(BUSY_TIME));
            srtt = srtt.min(path.srtt);
        }
        let full_time = FULL_TIME.max(srtt * GROWTH_ROUND_TRIPS);
        let is_backlog = unsent_packets > MIN_BACKLOG_PACKETS;
        self.backlogged = is_backlog.then_some(self.backlogged.unwrap_or(now));
        let has_waited = self.backlogged.is_some_and(|since| now.since(since) >= full_time);
        let is_full = shortest >= FULL_TIME;
        if has_waited || is_full {
            self.needed_until = now + secondary_srtt * NEED_ROUND_TRIPS;
        }
        self.latest = match (is_full, has_waited || now < self.needed_until && shortest >= BUSY_TIME) {
            (true, _) => SecondaryUse::First,
            (false, true) => SecondaryUse::WhenBlocked,
            (false, false) => SecondaryUse::Never,
        };
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::SecondaryUse::{First, Never, WhenBlocked};
    use super::*;

    /// The use at a time in ms, with packets that wait and the regular path's phantom queue in ms; the secondary path's
    /// round trip is 10 ms.
    fn update(load: &mut LoadMonitor, ms: u64, unsent_packets: u64, phantom_ms: u64) -> SecondaryUse {
        let phantom_queue_delay = Some(Span::from_millis(phantom_ms));
        let srtt = Span::from_millis(10);
        let path = PathView { phantom_queue_delay, srtt, ..PathView::without_measurements() };
        load.update(Instant::ZERO + Span::from_millis(ms), unsent_packets, [path].iter(), Span::from_millis(10))
    }

    #[test]
    fn a_backlog_of_50_ms_needs_secondary_paths_and_one_with_a_break_does_not() {
        let mut load = LoadMonitor::default();
        assert!((0..50).all(|ms| update(&mut load, ms, 5, 0) == Never));
        assert_eq!(update(&mut load, 50, 5, 0), WhenBlocked);
        let mut load = LoadMonitor::default();
        assert!((0..50).all(|ms| update(&mut load, ms, 5, 0) == Never));
        load.on_empty();
        assert_eq!([update(&mut load, 50, 5, 0), update(&mut load, 99, 5, 0)], [Never; 2]);
        assert_eq!(update(&mut load, 100, 5, 0), WhenBlocked);
        assert_eq!(update(&mut load, 101, 4, 0), Never, "four packets are no backlog");
    }

    #[test]
    fn a_long_phantom_queue_needs_them_first_and_then_for_16_round_trips_while_the_path_is_busy() {
        let mut load = LoadMonitor::default();
        assert_eq!([update(&mut load, 0, 1, 49), update(&mut load, 0, 1, 50)], [Never, First]);
        assert_eq!([update(&mut load, 159, 1, 2), update(&mut load, 159, 1, 1)], [WhenBlocked, Never]);
        assert_eq!(update(&mut load, 160, 1, 49), Never);
    }
}
