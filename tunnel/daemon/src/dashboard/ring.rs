//! The samples of one series at fixed steps of the wall clock; the latest ones, as many as the ring holds.

use super::sample::Sample;

/// Step and number of the samples of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Time between samples, seconds.
    pub step_s: u64,
    /// Number of samples.
    pub slots: u64,
}

/// One sample per second for the last hour.
pub const SECONDS: Resolution = Resolution { step_s: 1, slots: 3600 };
/// One sample per minute for the last week.
pub const MINUTES: Resolution = Resolution { step_s: 60, slots: 7 * 24 * 60 };

/// A ring of samples. Its memory grows as samples are recorded.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    resolution: Resolution,
    /// The step after the latest one.
    end: u64,
    /// By step modulo the number of slots.
    samples: Vec<Sample>,
}

impl Ring {
    pub(super) fn new(resolution: Resolution) -> Self {
        Self { resolution, end: 0, samples: Vec::new() }
    }

    /// Records a sample at a time, seconds since 1970. Skipped steps are absent. If the clock was set back, the samples
    /// after the new time become absent.
    pub(super) fn insert(&mut self, time_s: u64, sample: Sample) {
        let (step, slots) = (time_s / self.resolution.step_s, self.resolution.slots);
        let skipped = if step >= self.end { self.end..step } else { step + 1..self.end };
        let skipped = skipped.start.max(skipped.end.saturating_sub(slots))..skipped.end;
        skipped.for_each(|step| self.set(step, Sample::default()));
        self.set(step, sample);
        self.end = step + 1;
    }

    fn set(&mut self, step: u64, sample: Sample) {
        let index = (step % self.resolution.slots) as usize;
        if index >= self.samples.len() {
            if !sample.is_present() {
                return;
            }
            self.samples.resize(index + 1, Sample::default());
        }
        self.samples[index] = sample;
    }

    /// The sample at a time, seconds since 1970; an absent one if it is not stored.
    pub(super) fn get(&self, time_s: u64) -> Sample {
        let step = time_s / self.resolution.step_s;
        let is_held = step < self.end && step + self.resolution.slots >= self.end;
        let index = (step % self.resolution.slots) as usize;
        self.samples.get(index).copied().filter(|_| is_held).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::State;
    use super::*;

    const SMALL: Resolution = Resolution { step_s: 10, slots: 5 };

    fn sample(rate: f64) -> Sample {
        Sample::new(State::Up, [rate, 0.0], None, None, None)
    }

    #[test]
    fn the_latest_samples_are_held_and_skipped_steps_are_absent() {
        let mut ring = Ring::new(SMALL);
        for (time_s, rate) in [(100, 1.0), (110, 2.0), (135, 3.0)] {
            ring.insert(time_s, sample(rate));
        }
        let rates = [90, 100, 110, 120, 130, 140].map(|time_s| ring.get(time_s).send_bps);
        assert_eq!(rates, [0.0, 1.0, 2.0, 0.0, 3.0, 0.0]);
        ring.insert(10_000, sample(4.0));
        assert!([100, 110, 130, 9990].iter().all(|time_s| !ring.get(*time_s).is_present()));
        assert_eq!(ring.get(10_009).send_bps, 4.0);
    }

    #[test]
    fn what_was_recorded_after_the_time_that_the_clock_was_set_back_to_is_forgotten() {
        let mut ring = Ring::new(SMALL);
        [100, 110, 120, 130].iter().for_each(|time_s| ring.insert(*time_s, sample(1.0)));
        ring.insert(111, sample(2.0));
        let rates = [100, 110, 120, 130].map(|time_s| ring.get(time_s).send_bps);
        assert_eq!(rates, [1.0, 2.0, 0.0, 0.0]);
    }
}
