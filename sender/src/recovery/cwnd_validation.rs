//! Congestion window validation: whether the window is used (RFC 2861 and RFC 7661, as in Linux 6.1
//! `tcp_cwnd_validate`).

use units::{Instant, Span};

/// Whether the congestion window limited the sender over the last window, and the maximum number of packets outstanding
/// in it.
#[derive(Clone, Debug, Default)]
pub struct CwndValidation {
    is_cwnd_limited: bool,
    max_packets_out: u32,
    cwnd_usage_seq: u64,
    cwnd_used: u32,
    cwnd_stamp: Instant,
}

impl CwndValidation {
    /// Called when nothing more can be sent; `limited` if the window is the reason. `packets_out` packets are
    /// outstanding now.
    pub fn on_sent(&mut self, limited: bool, packets_out: u32, snd_una: u64, snd_nxt: u64) {
        if snd_una >= self.cwnd_usage_seq || limited || (!self.is_cwnd_limited && packets_out > self.max_packets_out) {
            self.is_cwnd_limited = limited;
            self.max_packets_out = packets_out;
            self.cwnd_usage_seq = snd_nxt;
        }
    }

    /// True if the window limited the sender, or, in slow start, if more than half of it was used (Linux
    /// `tcp_is_cwnd_limited`).
    #[must_use]
    pub fn is_cwnd_limited(&self, cwnd: u32, slow_start: bool) -> bool {
        self.is_cwnd_limited || (slow_start && cwnd < 2 * self.max_packets_out)
    }

    /// Restarts the measurement when the connection begins or continues after an idle period.
    pub fn restart(&mut self, now: Instant) {
        self.cwnd_used = 0;
        self.cwnd_stamp = now;
    }

    /// Called when the window was set or could grow: the time for which it may be unused starts again (Linux
    /// `snd_cwnd_stamp`).
    pub fn renew(&mut self, now: Instant) {
        self.cwnd_stamp = now;
    }

    /// Called after each round of sending. Returns the maximum number of packets outstanding if the window was not
    /// filled for a whole `rto` (Linux `tcp_cwnd_application_limited`).
    #[inline]
    pub fn application_limited(&mut self, now: Instant, limited: bool, packets_out: u32, rto: Span) -> Option<u32> {
        if limited {
            self.restart(now);
            return None;
        }
        self.cwnd_used = self.cwnd_used.max(packets_out);
        if now.since(self.cwnd_stamp) < rto {
            return None;
        }
        self.cwnd_stamp = now;
        Some(std::mem::take(&mut self.cwnd_used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_unused_for_a_timeout_counted_from_the_last_restart() {
        let (mut validation, timeout) = (CwndValidation::default(), Span::from_millis(250));
        let ms = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        let used =
            |validation: &mut CwndValidation, now_ms| validation.application_limited(ms(now_ms), false, 7, timeout);
        validation.restart(ms(1000));
        assert_eq!([1001, 1249, 1250, 1251].map(|now_ms| used(&mut validation, now_ms)), [None, None, Some(7), None]);
        validation.restart(ms(2000)); // an idle period does not count as unused
        assert_eq!(used(&mut validation, 2100), None);
        validation.renew(ms(2200));
        assert_eq!([2449, 2450].map(|now_ms| used(&mut validation, now_ms)), [None, Some(7)]);
    }

    #[test]
    fn the_flag_holds_for_one_window() {
        let mut validation = CwndValidation::default();
        validation.on_sent(true, 10, 0, 10);
        validation.on_sent(false, 4, 5, 10);
        assert!(validation.is_cwnd_limited(10, false));
        validation.on_sent(false, 4, 10, 14);
        assert!(!validation.is_cwnd_limited(10, false));
        assert!(validation.is_cwnd_limited(7, true), "slow start: 4 of 7 is more than half");
        assert!(!validation.is_cwnd_limited(8, true));
    }
}
