//! The least value over a sliding window of time, in constant space (Kathleen Nichols' filter, as Linux keeps for the
//! least RTT).

use units::{Instant, Span};

/// The minimum over the last `window`.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMin {
    best: [(Instant, Span); 3],
}

impl Default for WindowedMin {
    fn default() -> Self {
        Self { best: [(Instant::ZERO, Span::MAX); 3] }
    }
}

impl WindowedMin {
    /// The minimum; [`Span::MAX`] before the first sample.
    #[must_use]
    pub fn get(&self) -> Span {
        self.best[0].1
    }

    /// Adds a sample taken `now`.
    pub fn update(&mut self, window: Span, now: Instant, value: Span) {
        let sample = (now, value);
        if value <= self.best[0].1 || now.since(self.best[2].0) > window {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        let age = now.since(self.best[0].0);
        if age > window {
            self.best = [self.best[1], self.best[2], sample];
            if now.since(self.best[0].0) > window {
                self.best = [self.best[1], sample, sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_minimum_expires() {
        let mut filter = WindowedMin::default();
        let window = Span::from_secs(10);
        let mut at = |s: u64, ms: u64| {
            filter.update(window, Instant::ZERO + Span::from_secs(s), Span::from_millis(ms));
            filter.get().as_millis()
        };
        assert_eq!((at(0, 20), at(4, 30), at(8, 25), at(11, 40)), (20, 20, 20, 25));
    }
}
