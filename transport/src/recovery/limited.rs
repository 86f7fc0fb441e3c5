//! Was the window used? RFC 7661's question, answered as Linux 6.1 does (`tcp_cwnd_validate`).

use units::{Instant, Span};

/// Tracks, over one window, whether the congestion window limited the sender, and the most that was outstanding.
#[derive(Clone, Debug, Default)]
pub struct WindowUse {
    limited: bool,
    most_out: u32,
    window_end: u64,
    used: u32,
    last_full: Instant,
}

impl WindowUse {
    /// Ends a round of sending: `limited` if the window stopped it, `out` packets now outstanding.
    pub fn on_sent(&mut self, limited: bool, out: u32, una: u64, next: u64) {
        if una >= self.window_end || limited || (!self.limited && out > self.most_out) {
            self.limited = limited;
            self.most_out = out;
            self.window_end = next;
        }
    }

    /// The window limited the sender (in slow start: also if more than half of it was used).
    #[must_use]
    pub fn is_limited(&self, window: u32, slow_start: bool) -> bool {
        self.limited || (slow_start && window < 2 * self.most_out)
    }

    /// The connection begins, or goes on after standing idle: how much of the window is used is measured afresh.
    pub fn restart(&mut self, now: Instant) {
        self.used = 0;
        self.last_full = now;
    }

    /// Called after each round of sending: the most that was used, if the window has starved for a whole `timeout`.
    pub fn starved(&mut self, now: Instant, limited: bool, out: u32, timeout: Span) -> Option<u32> {
        if limited {
            self.restart(now);
            return None;
        }
        self.used = self.used.max(out);
        if now.since(self.last_full) < timeout {
            return None;
        }
        self.last_full = now;
        Some(std::mem::take(&mut self.used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_starves_for_a_timeout_counted_from_the_last_restart() {
        let (mut window_use, timeout) = (WindowUse::default(), Span::from_millis(250));
        let ms = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        let starved = |window_use: &mut WindowUse, at| window_use.starved(ms(at), false, 7, timeout);
        window_use.restart(ms(1000));
        assert_eq!([1001, 1249, 1250, 1251].map(|at| starved(&mut window_use, at)), [None, None, Some(7), None]);
        window_use.restart(ms(2000)); // it stood idle: that alone is no starvation
        assert_eq!(starved(&mut window_use, 2100), None);
    }

    #[test]
    fn the_flag_holds_for_one_window() {
        let mut window_use = WindowUse::default();
        window_use.on_sent(true, 10, 0, 10);
        window_use.on_sent(false, 4, 5, 10);
        assert!(window_use.is_limited(10, false));
        window_use.on_sent(false, 4, 10, 14);
        assert!(!window_use.is_limited(10, false));
        assert!(window_use.is_limited(7, true), "slow start: 4 of 7 is more than half");
        assert!(!window_use.is_limited(8, true));
    }
}
