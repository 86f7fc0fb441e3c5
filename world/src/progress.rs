//! A check that time advances.

use std::fmt::Debug;
use units::Instant;

/// Limit of wake-ups at one instant; no experiment of the tests has as many.
const MAX_AT_ONCE: u32 = 1_000_000;

/// The number of wake-ups at the present instant.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    now: Option<Instant>,
    wake_ups: u32,
}

impl Progress {
    /// Counts a component that is woken.
    ///
    /// # Panics
    /// If time does not advance.
    pub(crate) fn check(&mut self, now: Instant, component: &impl Debug) {
        self.wake_ups = if self.now.replace(now) == Some(now) { self.wake_ups + 1 } else { 0 };
        assert!(
            self.wake_ups < MAX_AT_ONCE,
            "time does not advance beyond {now:?}: {component:?} is woken again and again"
        );
    }
}
