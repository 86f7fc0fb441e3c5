//! The largest datagram that passes a path: packetization-layer path MTU discovery (RFC 8899).
//!
//! Probes are padded pings, and nothing but their answers counts: no ICMP. The largest size worth trying goes first, as
//! nearly every path carries it; then the sizes that links and encapsulations of the field leave (RFC 1191, section 7.1,
//! brought up to date), from above. Each is tried a few times, for a probe may be lost like any packet.

use units::{Instant, Span};

/// UDP payload that every path is expected to carry: IPv6's least MTU of 1280 without headers, and some room (RFC 9000,
/// section 14: 1200).
pub(crate) const BASE: u32 = 1200;
/// UDP payloads of Ethernet and below: PPPoE, DS-Lite, GRE and WireGuard over v4 and v6, mobile networks, least IPv6 MTU.
const PLATEAUS: &[u32] = &[1472, 1464, 1452, 1444, 1424, 1412, 1392, 1372, 1352, 1322, 1292, 1252, 1232];
/// Times that a size is tried.
const TRIES: u32 = 3;
/// A larger size is tried again after so long (RFC 8899, section 5.1.1: `PMTU_RAISE_TIMER`).
const RAISE: Span = Span::from_secs(600);

/// The search on one path.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    largest: u32,
    confirmed: u32,
    /// The size under test; `None` if the search is over.
    testing: Option<u32>,
    tries: u32,
    /// When the next probe leaves, or the latest is given up.
    due: Instant,
    waiting: bool,
}

impl Search {
    /// Nothing larger than [`BASE`] is known to pass; `largest` is worth trying.
    pub(super) fn new(largest: u32) -> Self {
        let largest = largest.max(BASE);
        Self { largest, confirmed: BASE, testing: None, tries: 0, due: Instant::NEVER, waiting: false }
    }

    /// What passes.
    pub(crate) fn confirmed(&self) -> u32 {
        self.confirmed
    }

    /// The path works (again): begin anew.
    pub(super) fn start(&mut self, now: Instant) {
        self.confirmed = BASE;
        self.test(now, Some(self.largest).filter(|largest| *largest > BASE));
    }

    fn test(&mut self, now: Instant, size: Option<u32>) {
        (self.testing, self.tries, self.waiting) = (size, 0, false);
        self.due = if size.is_some() { now } else { now + RAISE };
    }

    /// When to call [`poll`](Self::poll).
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// The size of a probe that leaves now; its answer is waited for so long.
    pub(super) fn poll(&mut self, now: Instant, patience: Span) -> Option<u32> {
        if now < self.due {
            return None;
        }
        let Some(size) = self.testing else {
            self.test(now, Some(self.largest).filter(|largest| *largest > self.confirmed));
            return None;
        };
        if self.tries == TRIES {
            let smaller = PLATEAUS.iter().copied().find(|plateau| *plateau < size);
            self.test(now, smaller.filter(|smaller| *smaller > self.confirmed));
            return None;
        }
        self.tries += 1;
        self.waiting = true;
        self.due = now + patience;
        Some(size)
    }

    /// A probe of this size was answered. True if that is news.
    pub(super) fn on_answer(&mut self, now: Instant, size: u32) -> bool {
        if size <= self.confirmed {
            return false;
        }
        self.confirmed = size;
        if self.testing.is_some_and(|testing| testing <= size) {
            self.test(now, None);
        }
        true
    }

    /// A probe could not be sent: the host knows that it is too large.
    pub(super) fn on_refused(&mut self, now: Instant) {
        if self.testing.is_some() {
            (self.tries, self.due) = (TRIES, now);
        }
    }

    /// Stops, for the path does not work.
    pub(super) fn stop(&mut self) {
        (self.testing, self.due) = (None, Instant::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a search finds on a path that lets so much pass, the probes it took, and how long.
    fn find(largest: u32, passes: u32) -> (u32, u32, Span) {
        let mut search = Search::new(largest);
        search.start(Instant::ZERO);
        let (mut now, mut probes) = (Instant::ZERO, 0);
        while now < Instant::ZERO + Span::from_secs(60) {
            if let Some(size) = search.poll(now, Span::from_millis(100)) {
                probes += 1;
                if size <= passes {
                    search.on_answer(now, size);
                }
            }
            if search.testing.is_none() {
                return (search.confirmed(), probes, now.since(Instant::ZERO));
            }
            now = search.due().max(now);
        }
        unreachable!("a search ends");
    }

    #[test]
    fn an_ordinary_path_takes_one_probe() {
        assert_eq!(find(1472, 1472), (1472, 1, Span::ZERO));
        assert_eq!(find(8972, 9000), (8972, 1, Span::ZERO));
    }

    #[test]
    fn behind_a_link_of_jumbo_frames_ethernet_is_found() {
        assert_eq!(find(8972, 1472).0, 1472);
    }

    #[test]
    fn the_largest_plateau_that_passes_is_found_within_four_seconds() {
        for (passes, found) in [(1464, 1464), (1430, 1424), (1392, 1392), (1260, 1252), (1231, 1200), (1200, 1200)] {
            let (size, probes, took) = find(1472, passes);
            assert_eq!(size, found);
            assert!(probes <= 39 && took <= Span::from_millis(3900), "{passes}: {probes} probes in {took:?}");
        }
    }

    #[test]
    fn after_ten_minutes_a_larger_size_is_tried_again() {
        let mut search = Search::new(1472);
        search.start(Instant::ZERO);
        search.on_answer(Instant::ZERO, 1392);
        search.test(Instant::ZERO, None);
        let later = Instant::ZERO + RAISE;
        assert_eq!(search.due(), later);
        assert_eq!(search.poll(later, Span::from_millis(100)), None);
        assert_eq!(search.poll(later, Span::from_millis(100)), Some(1472));
    }
}
