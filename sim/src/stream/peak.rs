//! The maximum goodput over half a second.
//!
//! The run is divided into windows of half a second. A window is closed by the first data packet that arrives after its
//! end, so that a packet costs one comparison.

use units::{Instant, Rate, Span};

/// Length of a window.
const WINDOW: Span = Span::from_millis(500);

/// The maximum goodput of a flow over the windows so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeakGoodput {
    /// The end of the current window.
    end: Instant,
    /// Bytes delivered before the current window.
    prior_delivered: u64,
    /// Bytes delivered in the best window.
    max: u64,
}

impl PeakGoodput {
    /// Whether the current window has ended.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.end
    }

    /// Closes the current window and opens the one that `now` lies in; `delivered` are the flow's bytes up to now.
    pub(crate) fn close(&mut self, now: Instant, delivered: u64) {
        self.max = self.max.max(delivered - self.prior_delivered);
        self.prior_delivered = delivered;
        self.end = Instant((now.0 / WINDOW.0 + 1) * WINDOW.0);
    }

    /// The maximum goodput of a closed window.
    pub(crate) fn rate(&self) -> Rate {
        Rate::of(self.max, WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_half_second_is_found_across_idle_windows() {
        let mut peak = PeakGoodput::default();
        let mut delivered = 0;
        // Arrivals in ms, 10 kB each: one in the first half second, three in the second, none in two, two in the fifth.
        for time_ms in [100, 500, 600, 999, 2000, 2499] {
            let now = Instant::ZERO + Span::from_millis(time_ms);
            if peak.is_due(now) {
                peak.close(now, delivered);
            }
            delivered += 10_000;
        }
        assert_eq!(peak.rate(), Rate::of(30_000, WINDOW));
        peak.close(Instant::ZERO + Span::from_secs(3), delivered + 90_000);
        assert_eq!(peak.rate().as_mbps(), 110_000.0 * 8.0 / 0.5 / 1e6);
    }
}
