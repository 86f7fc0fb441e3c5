//! A check that time advances.

use std::fmt::Debug;
use units::Instant;

/// Events between two looks at the clock. No experiment of the tests has as many at one instant.
const EVENTS: u64 = 1 << 20;

/// The time at the latest look.
#[derive(Debug, Default)]
pub(crate) struct Progress(Option<Instant>);

impl Progress {
    /// Looks at the clock after every so many events.
    ///
    /// # Panics
    /// If it has stood still since the look before.
    #[inline]
    pub(crate) fn check(&mut self, events: u64, now: Instant, component: &impl Debug) {
        if events.is_multiple_of(EVENTS) {
            self.look(now, component);
        }
    }

    #[cold]
    fn look(&mut self, now: Instant, component: &impl Debug) {
        let before = self.0.replace(now);
        assert!(before != Some(now), "time does not advance beyond {now:?}: {component:?} is woken again and again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(events: std::ops::RangeInclusive<u64>, now: impl Fn(u64) -> Instant) {
        let mut progress = Progress::default();
        events.for_each(|event| progress.check(event, now(event), &"a timer"));
    }

    #[test]
    #[should_panic(expected = "time does not advance")]
    fn a_clock_that_stands_still_is_found() {
        run(1..=3 * EVENTS, |_| Instant(7));
    }

    #[test]
    fn many_events_at_some_instants_are_no_fault() {
        run(1..=4 * EVENTS, |event| Instant(event / (EVENTS / 2)));
    }
}
