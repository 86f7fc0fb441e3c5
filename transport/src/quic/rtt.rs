//! The RTT of a path and its probe timeout (RFC 9002, sections 5 and 6.2, appendix A). The variation is updated with
//! the previous smoothed RTT, as in appendix A.7 and RFC 6298; the text of section 5.3 has the two in the other order.

use super::MAX_ACK_DELAY;
use units::{Instant, Span};

/// RTT before the first sample (RFC 9002, section 6.2.2: `kInitialRtt`).
const INITIAL_RTT: Span = Span::from_millis(333);
/// Timer granularity (RFC 9002, section 6.1.2: `kGranularity`).
const GRANULARITY: Span = Span::from_millis(1);
/// Number of probe timeouts that make up persistent congestion (RFC 9002, section 7.6.1:
/// `kPersistentCongestionThreshold`).
const PERSISTENT_CONGESTION_THRESHOLD: u64 = 3;

/// RTT estimator of a path.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    latest_rtt: Span,
    min_rtt: Span,
    smoothed_rtt: Span,
    rttvar: Span,
    first_sample: Option<Instant>,
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::with_initial_rtt(INITIAL_RTT)
    }
}

impl RttEstimator {
    /// An estimator without samples (RFC 9002, section 5.3: `rttvar` is half of the initial RTT). The delay of a path's
    /// validation may be its initial RTT (section 6.2.2).
    #[must_use]
    pub fn with_initial_rtt(rtt: Span) -> Self {
        Self { latest_rtt: Span::ZERO, min_rtt: Span::MAX, smoothed_rtt: rtt, rttvar: rtt / 2, first_sample: None }
    }

    /// Adds a sample that includes the peer's delay `ack_delay`. Returns the sample without that delay, as far as the
    /// minimum RTT allows its subtraction.
    pub fn update(&mut self, now: Instant, latest_rtt: Span, ack_delay: Span) -> Span {
        self.latest_rtt = latest_rtt;
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            (self.min_rtt, self.smoothed_rtt, self.rttvar) = (latest_rtt, latest_rtt, latest_rtt / 2);
            return latest_rtt;
        }
        self.min_rtt = self.min_rtt.min(latest_rtt);
        let ack_delay = ack_delay.min(MAX_ACK_DELAY);
        let adjusted =
            if latest_rtt >= self.min_rtt + ack_delay { latest_rtt.saturating_sub(ack_delay) } else { latest_rtt };
        let deviation = Span(self.smoothed_rtt.0.abs_diff(adjusted.0));
        self.rttvar = Span((3 * self.rttvar.0 + deviation.0) / 4);
        self.smoothed_rtt = Span((7 * self.smoothed_rtt.0 + adjusted.0) / 8);
        adjusted
    }

    /// `smoothed_rtt`, or the initial RTT before the first sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Span {
        self.smoothed_rtt
    }

    /// `rttvar`.
    #[must_use]
    pub fn rttvar(&self) -> Span {
        self.rttvar
    }

    /// Time of the first sample.
    #[must_use]
    pub fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    /// The RTT from which the time threshold of loss detection is computed (RFC 9002, section 6.1.2): the larger of the
    /// smoothed and the latest one.
    #[must_use]
    pub fn loss_rtt(&self) -> Span {
        self.smoothed_rtt.max(self.latest_rtt)
    }

    /// The probe timeout after `pto_count` consecutive ones (RFC 9002, section 6.2.1).
    #[must_use]
    pub fn pto(&self, pto_count: u32) -> Span {
        Span(self.base_pto().0.saturating_mul(1 << pto_count.min(30)))
    }

    /// The probe timeout of a handshake or a path validation after `count` consecutive ones. The peer does not delay
    /// its answer (RFC 9002, section 6.2.1).
    #[must_use]
    pub fn handshake_pto(&self, count: u32) -> Span {
        Span(self.pto(0).saturating_sub(MAX_ACK_DELAY).0.saturating_mul(1 << count.min(30)))
    }

    fn base_pto(&self) -> Span {
        self.smoothed_rtt + (self.rttvar * 4).max(GRANULARITY) + MAX_ACK_DELAY
    }

    /// Duration of persistent congestion (RFC 9002, section 7.6.1).
    #[must_use]
    pub fn persistent_congestion_duration(&self) -> Span {
        self.base_pto() * PERSISTENT_CONGESTION_THRESHOLD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn without_a_sample_the_timeout_is_three_initial_rtts_and_the_peers_delay() {
        // RFC 9002, section 6.2.2: smoothed 333 ms, variation 166.5 ms; a second, and max_ack_delay.
        assert_eq!(RttEstimator::default().pto(0), Span::from_micros(999_000) + ms(25));
        assert_eq!([0, 1].map(|count| RttEstimator::default().handshake_pto(count)), [ms(999), ms(1998)]);
    }

    #[test]
    fn samples_are_smoothed_as_in_section_5_3() {
        let mut rtt = RttEstimator::default();
        rtt.update(Instant::ZERO, ms(100), ms(25));
        assert_eq!((rtt.smoothed_rtt(), rtt.rttvar()), (ms(100), ms(50)), "the first one as it is");
        // 140 - 20 = 120, not below the minimum: 7/8 * 100 + 1/8 * 120, and 3/4 * 50 + 1/4 * 20.
        assert_eq!(rtt.update(Instant::ZERO, ms(140), ms(20)), ms(120));
        assert_eq!((rtt.smoothed_rtt(), rtt.rttvar()), (Span::from_micros(102_500), Span::from_micros(42_500)));
        // A delay that would lead below the minimum is not taken off.
        assert_eq!(rtt.update(Instant::ZERO, ms(110), ms(20)), ms(110));
        // A peer that claims more than max_ack_delay is not believed.
        assert_eq!(rtt.update(Instant::ZERO, ms(200), ms(90)), ms(175));
    }

    #[test]
    fn the_timeout_doubles_and_three_of_the_first_are_a_persistent_congestion() {
        let mut rtt = RttEstimator::default();
        rtt.update(Instant::ZERO, ms(100), ms(0));
        // 100 + 4 * 50 + 25.
        assert_eq!([0, 1, 2, 3].map(|count| rtt.pto(count).as_millis()), [325, 650, 1300, 2600]);
        assert_eq!(rtt.persistent_congestion_duration(), ms(975));
    }

    #[test]
    fn losses_are_timed_by_the_greater_of_smoothed_and_latest_rtt() {
        let mut rtt = RttEstimator::default();
        rtt.update(Instant::ZERO, ms(80), ms(0));
        assert_eq!(rtt.loss_rtt(), ms(80));
        rtt.update(Instant::ZERO, ms(160), ms(0));
        assert_eq!(rtt.loss_rtt(), ms(160), "the smoothed is 90 ms");
        rtt.update(Instant::ZERO, ms(50), ms(0));
        assert_eq!(rtt.loss_rtt(), ms(85), "the smoothed");
    }
}
