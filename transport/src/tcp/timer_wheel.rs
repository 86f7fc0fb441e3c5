//! The expiry of the kernel's timers (Linux 6.1 `kernel/time/timer.c`): at a tick, and never early.

use units::{Instant, Span};

/// Buckets of a level, except the current one.
const BUCKETS: u64 = 63;
/// A level's buckets are eight times as wide as those of the level below.
const SHIFT: u32 = 3;
const LEVELS: u32 = 8;

/// Expiry of a timer that is set `now`. The timeout is rounded up to ticks and counted from the current one. The timer
/// waits in the bucket after that time: of one tick if the timeout is below 63 ticks, of eight if it is below 504, and
/// so on.
pub(super) fn expiry(now: Instant, timeout: Span, tick: Span) -> Instant {
    bucket(now.0 / tick.0, timeout.0.div_ceil(tick.0), 0, tick)
}

/// Expiry of a timer that is set at tick `now` to expire `ticks` later, in a wheel that is `ahead` of that tick.
fn bucket(now: u64, ticks: u64, ahead: u64, tick: Span) -> Instant {
    let distance = ticks.saturating_sub(ahead);
    let shift = (0..LEVELS).map(|level| level * SHIFT).find(|shift| distance < BUCKETS << shift);
    let shift = shift.unwrap_or((LEVELS - 1) * SHIFT);
    let bucket = (now.saturating_add(ticks) >> shift) + 1;
    Instant((bucket << shift).saturating_mul(tick.0))
}

/// The wheel with one timer in it. What the kernel's wheel remembers decides the width of the timer's bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wheel {
    tick: Span,
    /// The latest tick at which a timer expired: the wheel is a tick ahead from then on (Linux `base->clk`).
    expired: Option<u64>,
    /// The tick to which the timer is set, and the time of its bucket. A timer that is set to the same tick again stays in its
    /// bucket (Linux `__mod_timer`), also if it was cleared in between.
    queued: Option<(u64, Instant)>,
}

impl Wheel {
    pub(super) fn new(tick: Span) -> Self {
        Self { tick, expired: None, queued: None }
    }

    /// Sets the timer.
    pub(super) fn set(&mut self, now: Instant, timeout: Span) {
        let (current, ticks) = (now.0 / self.tick.0, timeout.0.div_ceil(self.tick.0));
        let expires = current.saturating_add(ticks);
        if self.queued.is_none_or(|(queued, _)| queued != expires) {
            let ahead = u64::from(self.expired == Some(current));
            self.queued = Some((expires, bucket(current, ticks, ahead, self.tick)));
        }
    }

    /// Time at which the timer that is set expires.
    pub(super) fn expiry(&self) -> Instant {
        self.queued.map_or(Instant::NEVER, |(_, expiry)| expiry)
    }

    /// The timer expires.
    pub(super) fn on_expiry(&mut self, now: Instant) {
        self.queued = None;
        self.on_other_expiry(now);
    }

    /// Another timer of the host expires in this tick.
    pub(super) fn on_other_expiry(&mut self, now: Instant) {
        self.expired = Some(now.0 / self.tick.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expires_ms(now_us: u64, timeout_us: u64, tick_ms: u64) -> u64 {
        let now = Instant::ZERO + Span::from_micros(now_us);
        expiry(now, Span::from_micros(timeout_us), Span::from_millis(tick_ms)).0 / 1_000_000
    }

    /// Probe timeouts of 2.55 ms and 13.96 ms on Linux 6.1 with HZ = 100: sent 15.1 ms, and 20 to 40 ms, after the data.
    #[test]
    fn a_timer_expires_at_the_tick_after_its_timeout() {
        assert_eq!([expires_ms(0, 2_550, 10), expires_ms(9_999, 2_550, 10)], [20, 20]);
        assert_eq!([expires_ms(0, 13_960, 10), expires_ms(9_999, 13_960, 10)], [30, 30]);
        assert_eq!([expires_ms(0, 40_000, 4), expires_ms(3_999, 200_000, 4)], [44, 204]);
    }

    /// `cargo xtask kernel-drill` on Linux 6.1.192 with HZ = 100. Vegas, seed 7: a timeout of 63 ticks is set at 6860 ms, when a probe
    /// timer has just expired, and expires at 7500 ms. Reno, seed 368: a timer of 3020 ms that was set by 2282.5 ms, and again at
    /// 2864.1 ms, expires at 3040 ms.
    #[test]
    fn the_bucket_depends_on_what_the_wheel_remembers() {
        let (at, ms) = (|us| Instant::ZERO + Span::from_micros(us), Span::from_millis);
        let mut wheel = Wheel::new(ms(10));
        wheel.set(at(6_860_000), ms(630));
        assert_eq!(wheel.expiry(), at(7_520_000));
        wheel.on_expiry(at(6_860_000));
        wheel.set(at(6_860_000), ms(630));
        assert_eq!(wheel.expiry(), at(7_500_000));
        let mut wheel = Wheel::new(ms(10));
        wheel.set(at(2_282_500), ms(730));
        wheel.set(at(2_864_100), ms(150));
        assert_eq!(wheel.expiry(), at(3_040_000));
    }

    #[test]
    fn long_timeouts_are_rounded_to_eight_ticks_or_more() {
        assert_eq!([expires_ms(0, 248_000, 4), expires_ms(0, 252_000, 4)], [252, 256]);
        assert_eq!([expires_ms(0, 1_000_000, 4), expires_ms(23_999, 1_000_000, 4)], [1024, 1024]);
        assert_eq!(expires_ms(24_000, 1_000_000, 4), 1056);
        assert_eq!(expires_ms(0, 504 * 4_000, 4), 2048);
    }
}
