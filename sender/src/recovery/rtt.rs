//! Smoothed round-trip time and retransmission timeout: RFC 6298 with Linux's RTTVAR (`tcp_rtt_estimator`), which is
//! the maximum mean deviation of a window, falls slowly, and has a lower bound.

use units::Span;

/// Minimum RTTVAR term: the RTO is never below SRTT + 200 ms (`TCP_RTO_MIN`).
const RTO_MIN: Span = Span::from_millis(200);
/// Maximum RTO (`TCP_RTO_MAX`).
const RTO_MAX: Span = Span::from_secs(120);
/// RTO before the first sample (RFC 6298 section 2.1; RFC 2988: 3 s).
const INITIAL_RTO: Span = Span::from_secs(1);

/// RTT estimator. Its state is in microseconds, scaled as in Linux: SRTT by 8, deviations by 4.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt_us8: i64,
    mdev_us4: i64,
    mdev_max_us4: i64,
    rttvar_us4: i64,
    rtt_seq: u64,
    rto: Span,
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(INITIAL_RTO)
    }
}

impl RttEstimator {
    /// An estimator without samples, whose RTO is `initial_rto`.
    #[must_use]
    pub fn new(initial_rto: Span) -> Self {
        Self { srtt_us8: 0, mdev_us4: 0, mdev_max_us4: 0, rttvar_us4: 0, rtt_seq: 0, rto: initial_rto }
    }

    /// Smoothed RTT, to an eighth of a microsecond; zero before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Span {
        Span::from_nanos(self.srtt_us8 as u64 * 125)
    }

    /// RTTVAR (RFC 6298): a quarter of the term that is added to SRTT.
    #[must_use]
    pub fn rttvar(&self) -> Span {
        Span::from_micros((self.rttvar_us4 >> 2) as u64)
    }

    /// Smoothed mean deviation: RTTVAR as in RFC 6298 and RFC 9002, without Linux's lower bound.
    #[must_use]
    pub fn mdev(&self) -> Span {
        Span::from_micros((self.mdev_us4 >> 2) as u64)
    }

    /// The retransmission timeout without backoff.
    #[must_use]
    pub fn rto(&self) -> Span {
        self.rto
    }

    /// Adds a sample. `snd_una` and `snd_nxt` delimit the windows over which the maximum deviation is taken.
    pub fn update(&mut self, rtt: Span, snd_una: u64, snd_nxt: u64) {
        let rtt_us = rtt.as_micros() as i64;
        if self.srtt_us8 == 0 {
            self.set_first_sample(rtt_us, snd_nxt);
        } else {
            self.smooth(rtt_us);
            if snd_una > self.rtt_seq {
                self.end_window(snd_nxt);
            }
        }
        self.srtt_us8 = self.srtt_us8.max(1);
        let rto = Span::from_micros(((self.srtt_us8 >> 3) + self.rttvar_us4) as u64);
        self.rto = rto.min(RTO_MAX);
    }

    fn set_first_sample(&mut self, rtt_us: i64, snd_nxt: u64) {
        self.srtt_us8 = rtt_us << 3;
        self.mdev_us4 = rtt_us << 1;
        self.rttvar_us4 = self.mdev_us4.max(RTO_MIN.as_micros() as i64);
        self.mdev_max_us4 = self.rttvar_us4;
        self.rtt_seq = snd_nxt;
    }

    fn smooth(&mut self, rtt_us: i64) {
        let error = rtt_us - (self.srtt_us8 >> 3);
        self.srtt_us8 += error;
        let mut change = error.abs() - (self.mdev_us4 >> 2);
        // A falling RTT with a growing deviation must not raise the RTO much.
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev_us4 += change;
        if self.mdev_us4 > self.mdev_max_us4 {
            self.mdev_max_us4 = self.mdev_us4;
            self.rttvar_us4 = self.rttvar_us4.max(self.mdev_max_us4);
        }
    }

    fn end_window(&mut self, snd_nxt: u64) {
        if self.mdev_max_us4 < self.rttvar_us4 {
            self.rttvar_us4 -= (self.rttvar_us4 - self.mdev_max_us4) >> 2;
        }
        self.rtt_seq = snd_nxt;
        self.mdev_max_us4 = RTO_MIN.as_micros() as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator_after(samples: &[u64]) -> RttEstimator {
        let mut estimator = RttEstimator::default();
        samples.iter().for_each(|ms| estimator.update(Span::from_millis(*ms), 0, 1));
        estimator
    }

    #[test]
    fn the_first_sample_sets_the_timeout() {
        assert_eq!(estimator_after(&[]).rto(), Span::from_secs(1));
        assert_eq!(estimator_after(&[50]).rto(), Span::from_millis(250));
        assert_eq!(estimator_after(&[200]).rto(), Span::from_millis(600));
    }

    #[test]
    fn srtt_changes_by_an_eighth_of_the_difference() {
        assert_eq!(estimator_after(&[100, 200]).srtt(), Span::from_micros(112_500));
    }

    #[test]
    fn a_steady_rtt_keeps_the_minimum_rttvar() {
        assert_eq!(estimator_after(&[20; 500]).rto(), Span::from_millis(220));
    }
}
