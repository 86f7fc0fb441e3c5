//! Datagram packetization-layer path MTU discovery (DPLPMTUD, RFC 8899): the largest datagram that a path carries.
//!
//! Probe packets are padded pings, and only their answers count: ICMP is not used. The largest size is probed first, as
//! nearly every path carries it; then, from above, the sizes that common links and encapsulations leave (the plateau
//! table of RFC 1191, section 7.1, brought up to date). Each is probed a few times, because probes are lost like any
//! packet.

use units::{Instant, Span};

/// UDP payload that every path is expected to carry, bytes (RFC 8899 `BASE_PLPMTU`; RFC 9000, section 14: 1200).
pub(crate) const BASE_PLPMTU: u32 = 1200;
/// UDP payloads of Ethernet and below, bytes: PPPoE, DS-Lite, GRE and WireGuard over IPv4 and IPv6, mobile networks,
/// the minimum IPv6 MTU.
const PLATEAUS: &[u32] = &[1472, 1464, 1452, 1444, 1424, 1412, 1392, 1372, 1352, 1322, 1292, 1252, 1232];
/// Probes of one size (RFC 8899: `MAX_PROBES`).
const MAX_PROBES: u32 = 3;
/// Time after which a larger size is probed again (RFC 8899, section 5.1.1).
const PMTU_RAISE_TIMER: Span = Span::from_secs(600);

/// Path MTU discovery of one path.
#[derive(Clone, Debug)]
pub(crate) struct PmtuSearch {
    max_plpmtu: u32,
    plpmtu: u32,
    /// The size being probed; `None` if the search is complete.
    probed_size: Option<u32>,
    probe_count: u32,
    /// When the next probe is sent, or the latest one has timed out.
    deadline: Instant,
}

impl PmtuSearch {
    /// A search that has confirmed [`BASE_PLPMTU`] only and may go up to `max_plpmtu`, bytes.
    pub(super) fn new(max_plpmtu: u32) -> Self {
        let max_plpmtu = max_plpmtu.max(BASE_PLPMTU);
        Self { max_plpmtu, plpmtu: BASE_PLPMTU, probed_size: None, probe_count: 0, deadline: Instant::NEVER }
    }

    /// The confirmed path MTU (UDP payload), bytes (RFC 8899: PLPMTU).
    pub(crate) fn plpmtu(&self) -> u32 {
        self.plpmtu
    }

    /// Starts the search: the path works, or works again.
    pub(super) fn start(&mut self, now: Instant) {
        self.plpmtu = BASE_PLPMTU;
        self.probe_size(now, Some(self.max_plpmtu).filter(|max| *max > BASE_PLPMTU));
    }

    fn probe_size(&mut self, now: Instant, size: Option<u32>) {
        (self.probed_size, self.probe_count) = (size, 0);
        self.deadline = if size.is_some() { now } else { now + PMTU_RAISE_TIMER };
    }

    /// When to call [`poll`](Self::poll).
    pub(super) fn probe_deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether a size of at least `size` bytes is being probed.
    pub(super) fn is_probing(&self, size: u32) -> bool {
        self.probed_size.is_some_and(|probed| probed >= size)
    }

    /// The size of a probe to send now, bytes; it is lost after `timeout` (RFC 8899: `PROBE_TIMER`).
    pub(super) fn poll(&mut self, now: Instant, timeout: Span) -> Option<u32> {
        if now < self.deadline {
            return None;
        }
        let Some(size) = self.probed_size else {
            self.probe_size(now, Some(self.max_plpmtu).filter(|max| *max > self.plpmtu));
            return None;
        };
        if self.probe_count == MAX_PROBES {
            let next_size = PLATEAUS.iter().copied().find(|plateau| *plateau < size);
            self.probe_size(now, next_size.filter(|next_size| *next_size > self.plpmtu));
            return None;
        }
        self.probe_count += 1;
        self.deadline = now + timeout;
        Some(size)
    }

    /// A probe of this size was answered. Returns whether the path MTU grew.
    pub(super) fn on_answer(&mut self, now: Instant, size: u32) -> bool {
        if size <= self.plpmtu {
            return false;
        }
        self.plpmtu = size;
        if self.probed_size.is_some_and(|probed| probed <= size) {
            self.probe_size(now, None);
        }
        true
    }

    /// The host refused a probe as too large for its link.
    pub(super) fn on_local_drop(&mut self, now: Instant) {
        if self.probed_size.is_some() {
            (self.probe_count, self.deadline) = (MAX_PROBES, now);
        }
    }

    /// Stops the search: the path has failed.
    pub(super) fn stop(&mut self) {
        (self.probed_size, self.deadline) = (None, Instant::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path MTU that a search finds, its probes and its duration, on a path that carries datagrams of up to
    /// `path_mtu` bytes.
    fn search_plpmtu(max_plpmtu: u32, path_mtu: u32) -> (u32, u32, Span) {
        let mut search = PmtuSearch::new(max_plpmtu);
        search.start(Instant::ZERO);
        let (mut now, mut probes) = (Instant::ZERO, 0);
        while now < Instant::ZERO + Span::from_secs(60) {
            if let Some(size) = search.poll(now, Span::from_millis(100)) {
                probes += 1;
                if size <= path_mtu {
                    search.on_answer(now, size);
                }
            }
            if search.probed_size.is_none() {
                return (search.plpmtu(), probes, now.since(Instant::ZERO));
            }
            now = search.probe_deadline().max(now);
        }
        unreachable!("a search ends");
    }

    #[test]
    fn an_ordinary_path_takes_one_probe() {
        assert_eq!(search_plpmtu(1472, 1472), (1472, 1, Span::ZERO));
        assert_eq!(search_plpmtu(8972, 9000), (8972, 1, Span::ZERO));
    }

    #[test]
    fn behind_a_link_of_jumbo_frames_ethernet_is_found() {
        assert_eq!(search_plpmtu(8972, 1472).0, 1472);
    }

    #[test]
    fn the_largest_plateau_that_passes_is_found_within_four_seconds() {
        for (path_mtu, expected) in [(1464, 1464), (1430, 1424), (1392, 1392), (1260, 1252), (1231, 1200), (1200, 1200)]
        {
            let (plpmtu, probes, duration) = search_plpmtu(1472, path_mtu);
            assert_eq!(plpmtu, expected);
            assert!(probes <= 39 && duration <= Span::from_millis(3900), "{path_mtu}: {probes} probes in {duration:?}");
        }
    }

    #[test]
    fn after_ten_minutes_a_larger_size_is_tried_again() {
        let mut search = PmtuSearch::new(1472);
        search.start(Instant::ZERO);
        search.on_answer(Instant::ZERO, 1392);
        search.probe_size(Instant::ZERO, None);
        let raise_time = Instant::ZERO + PMTU_RAISE_TIMER;
        assert_eq!(search.probe_deadline(), raise_time);
        assert_eq!(search.poll(raise_time, Span::from_millis(100)), None);
        assert_eq!(search.poll(raise_time, Span::from_millis(100)), Some(1472));
    }
}
