//! Virtual time as the stacks' clock.

use std::time::Duration;
use units::{Instant, Span};

/// The stacks' instant of time zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    /// A clock whose zero is now. Stacks see differences only.
    pub(crate) fn new() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn to_std(self, time: Instant) -> std::time::Instant {
        self.0 + Duration::from_nanos(time.0)
    }

    pub(crate) fn to_virtual(self, time: std::time::Instant) -> Instant {
        Instant::ZERO + Span(time.saturating_duration_since(self.0).as_nanos() as u64)
    }
}
