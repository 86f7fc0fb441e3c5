//! Smoothed round-trip time and retransmission timeout. RFC 6298 with Linux's variance (`tcp_rtt_estimator`):
//! the deviation falls slowly, and its maximum over a window holds the timeout up.

use units::Span;

/// Least deviation term, so that the timeout is never below SRTT + 200 ms.
const MIN_TIMEOUT: Span = Span::from_millis(200);
/// Greatest timeout.
const MAX_TIMEOUT: Span = Span::from_secs(120);
/// Timeout before the first sample (RFC 6298 section 2.1; RFC 2988: 3 s).
const INITIAL_TIMEOUT: Span = Span::from_secs(1);

/// The estimator. Times inside are microseconds, scaled as the field has done since Jacobson: SRTT by 8, deviation by 4.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    srtt_us8: i64,
    deviation_us4: i64,
    deviation_most_us4: i64,
    variance_us4: i64,
    window_end: u64,
    timeout: Span,
}

impl Default for RoundTrip {
    fn default() -> Self {
        Self::new(INITIAL_TIMEOUT)
    }
}

impl RoundTrip {
    /// An estimator whose timeout is this before the first sample.
    #[must_use]
    pub fn new(initial_timeout: Span) -> Self {
        Self {
            srtt_us8: 0,
            deviation_us4: 0,
            deviation_most_us4: 0,
            variance_us4: 0,
            window_end: 0,
            timeout: initial_timeout,
        }
    }

    /// Smoothed RTT; zero before the first sample.
    #[must_use]
    pub fn smoothed(&self) -> Span {
        Span::from_micros((self.srtt_us8 >> 3) as u64)
    }

    /// RTTVAR of RFC 6298 (a quarter of the term added to SRTT).
    #[must_use]
    pub fn variance(&self) -> Span {
        Span::from_micros((self.variance_us4 >> 2) as u64)
    }

    /// The retransmission timeout, without backoff.
    #[must_use]
    pub fn timeout(&self) -> Span {
        self.timeout
    }

    /// Adds a sample. `una` and `next` delimit the window: the deviation's maximum is taken over one of them.
    pub fn add(&mut self, rtt: Span, una: u64, next: u64) {
        let rtt_us = rtt.as_micros() as i64;
        if self.srtt_us8 == 0 {
            self.first(rtt_us, next);
        } else {
            self.smooth(rtt_us);
            if una > self.window_end {
                self.close_window(next);
            }
        }
        self.srtt_us8 = self.srtt_us8.max(1);
        let timeout = Span::from_micros(((self.srtt_us8 >> 3) + self.variance_us4) as u64);
        self.timeout = timeout.min(MAX_TIMEOUT);
    }

    fn first(&mut self, rtt_us: i64, next: u64) {
        self.srtt_us8 = rtt_us << 3;
        self.deviation_us4 = rtt_us << 1;
        self.variance_us4 = self.deviation_us4.max(MIN_TIMEOUT.as_micros() as i64);
        self.deviation_most_us4 = self.variance_us4;
        self.window_end = next;
    }

    fn smooth(&mut self, rtt_us: i64) {
        let error = rtt_us - (self.srtt_us8 >> 3);
        self.srtt_us8 += error;
        let mut change = error.abs() - (self.deviation_us4 >> 2);
        // A falling RTT with a growing deviation must not raise the timeout much.
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.deviation_us4 += change;
        if self.deviation_us4 > self.deviation_most_us4 {
            self.deviation_most_us4 = self.deviation_us4;
            self.variance_us4 = self.variance_us4.max(self.deviation_most_us4);
        }
    }

    fn close_window(&mut self, next: u64) {
        if self.deviation_most_us4 < self.variance_us4 {
            self.variance_us4 -= (self.variance_us4 - self.deviation_most_us4) >> 2;
        }
        self.window_end = next;
        self.deviation_most_us4 = MIN_TIMEOUT.as_micros() as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: &[u64]) -> RoundTrip {
        let mut estimator = RoundTrip::default();
        samples.iter().for_each(|ms| estimator.add(Span::from_millis(*ms), 0, 1));
        estimator
    }

    #[test]
    fn first_sample_sets_the_timeout() {
        assert_eq!(after(&[]).timeout(), Span::from_secs(1));
        assert_eq!(after(&[50]).timeout(), Span::from_millis(250));
        assert_eq!(after(&[200]).timeout(), Span::from_millis(600));
    }

    #[test]
    fn smooths_by_an_eighth() {
        assert_eq!(after(&[100, 200]).smoothed(), Span::from_micros(112_500));
    }

    #[test]
    fn a_steady_path_keeps_the_floor() {
        assert_eq!(after(&[20; 500]).timeout(), Span::from_millis(220));
    }
}
