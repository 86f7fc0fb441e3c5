//! How long the guest had to wait for the CPU: by how much a thread that sleeps for short times woke up too late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::Span;

/// One sleep.
const BEAT: Duration = Duration::from_millis(5);
/// So late every timer may be.
const USUAL: Duration = Duration::from_millis(1);

/// The thread's account.
pub(super) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Feels the pulse from now on, until the process ends.
    pub(super) fn begin() -> Self {
        let stolen = Arc::new(AtomicU64::new(0));
        let account = stolen.clone();
        thread::spawn(move || {
            loop {
                let due = Instant::now() + BEAT;
                thread::sleep(BEAT);
                let late = due.elapsed().saturating_sub(USUAL);
                account.fetch_add(late.as_nanos() as u64, Ordering::Relaxed);
            }
        });
        Self(stolen)
    }

    /// All lateness so far.
    pub(super) fn stolen(&self) -> Span {
        Span::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
