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
    let ticks = timeout.0.div_ceil(tick.0);
    let shift = (0..LEVELS).map(|level| level * SHIFT).find(|shift| ticks < BUCKETS << shift);
    let shift = shift.unwrap_or((LEVELS - 1) * SHIFT);
    let bucket = ((now.0 / tick.0).saturating_add(ticks) >> shift) + 1;
    Instant((bucket << shift).saturating_mul(tick.0))
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

    #[test]
    fn long_timeouts_are_rounded_to_eight_ticks_or_more() {
        assert_eq!([expires_ms(0, 248_000, 4), expires_ms(0, 252_000, 4)], [252, 256]);
        assert_eq!([expires_ms(0, 1_000_000, 4), expires_ms(23_999, 1_000_000, 4)], [1024, 1024]);
        assert_eq!(expires_ms(24_000, 1_000_000, 4), 1056);
        assert_eq!(expires_ms(0, 504 * 4_000, 4), 2048);
    }
}
