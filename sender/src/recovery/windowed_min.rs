//! Minimum filter over a sliding time window, as Linux uses for the minimum RTT (`minmax_running_min`).

use control::common::WindowedMax;
use units::{Instant, Span};

/// The minimum over the last `window`: a [`WindowedMax`] of the difference to [`Span::MAX`].
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMin(WindowedMax);

impl WindowedMin {
    /// The minimum; [`Span::MAX`] before the first sample.
    #[must_use]
    pub fn get(&self) -> Span {
        Span(u64::MAX - self.0.get())
    }

    /// Adds a sample taken `now`.
    #[inline]
    pub fn update(&mut self, window: Span, now: Instant, value: Span) {
        self.0.update(window.0, now.0, u64::MAX - value.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_minimum_expires() {
        let mut filter = WindowedMin::default();
        assert_eq!(filter.get(), Span::MAX);
        let window = Span::from_secs(10);
        let mut minimum_at = |secs: u64, ms: u64| {
            filter.update(window, Instant::ZERO + Span::from_secs(secs), Span::from_millis(ms));
            filter.get().as_millis()
        };
        assert_eq!((minimum_at(0, 20), minimum_at(4, 30), minimum_at(8, 25), minimum_at(11, 40)), (20, 20, 20, 25));
    }
}
