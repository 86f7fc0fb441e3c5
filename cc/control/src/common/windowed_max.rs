//! Kathleen Nichols' windowed maximum: the best, second and third best of a sliding window in constant space.
//! As in Linux `lib/win_minmax.c`.

/// The maximum over the last `window` units of time (rounds, or any other clock).
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax {
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time: u64,
    value: u64,
}

impl WindowedMax {
    /// The current maximum.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Clears the filter except for this sample; returns its value.
    pub fn reset(&mut self, time: u64, value: u64) -> u64 {
        self.best = [Sample { time, value }; 3];
        value
    }

    /// Adds a sample taken at `time`; returns the maximum over the last `window`.
    #[inline]
    pub fn update(&mut self, window: u64, time: u64, value: u64) -> u64 {
        let sample = Sample { time, value };
        if value >= self.best[0].value || time - self.best[2].time > window {
            return self.reset(time, value);
        }
        if value >= self.best[1].value {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].value {
            self.best[2] = sample;
        }
        self.subwin_update(window, sample);
        self.get()
    }

    /// Expires the best, and spreads the second and third best over the window (Linux `minmax_subwin_update`).
    fn subwin_update(&mut self, window: u64, sample: Sample) {
        let age = sample.time - self.best[0].time;
        if age > window {
            self.best = [self.best[1], self.best[2], sample];
            if sample.time - self.best[0].time > window {
                self.best = [self.best[1], sample, sample];
            }
        } else if self.best[1].time == self.best[0].time && age > window / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].time == self.best[1].time && age > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_sequence() {
        let mut filter = WindowedMax::default();
        let maxima: Vec<u64> = [(0, 100), (1, 50), (3, 60), (6, 40), (11, 30)]
            .into_iter()
            .map(|(time, value)| filter.update(10, time, value))
            .collect();
        assert_eq!(maxima, [100, 100, 100, 100, 60]);
    }
}
