//! The most that was delivered in half a second.
//!
//! The run's clock is cut into half seconds, and one is closed by the first data packet that arrives after it: a packet
//! costs a comparison.

use units::{Instant, Rate, Span};

/// Length of a window.
const WINDOW: Span = Span::from_millis(500);

/// The greatest of many windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak {
    /// When the present window ends.
    end: Instant,
    /// Bytes delivered before it began.
    before: u64,
    most: u64,
}

impl Peak {
    /// The present window is over.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.end
    }

    /// Closes the present window, after which nothing was delivered, and opens the one that `now` lies in; `delivered`
    /// are the bytes of the whole flow up to now.
    pub(crate) fn close(&mut self, now: Instant, delivered: u64) {
        self.most = self.most.max(delivered - self.before);
        self.before = delivered;
        self.end = Instant((now.0 / WINDOW.0 + 1) * WINDOW.0);
    }

    /// The most in one of the windows that were closed.
    pub(crate) fn rate(&self) -> Rate {
        Rate::of(self.most, WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_half_second_is_found_through_silence() {
        let mut peak = Peak::default();
        let mut delivered = 0;
        // Arrivals in ms, 10 kB each: one in the first half second, three in the second, none in two, two in the fifth.
        for at in [100, 500, 600, 999, 2000, 2499] {
            let now = Instant::ZERO + Span::from_millis(at);
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
