//! The steal time: how long the run had to wait for the CPU, measured by how late a periodic sleeper wakes up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::Span;

/// The sleeper's period.
const PERIOD: Duration = Duration::from_millis(5);
/// Lateness that is normal for a timer and does not count.
const TOLERANCE: Duration = Duration::from_millis(1);

/// Measures the steal time.
pub(super) struct StealMeter(Arc<AtomicU64>);

impl StealMeter {
    /// Measures from now on, until the process ends.
    pub(super) fn begin() -> Self {
        let counter = Arc::new(AtomicU64::new(0));
        let total = counter.clone();
        thread::spawn(move || {
            loop {
                let due = Instant::now() + PERIOD;
                thread::sleep(PERIOD);
                let lateness = due.elapsed().saturating_sub(TOLERANCE);
                total.fetch_add(lateness.as_nanos() as u64, Ordering::Relaxed);
            }
        });
        Self(counter)
    }

    /// The steal time so far.
    pub(super) fn total(&self) -> Span {
        Span::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
