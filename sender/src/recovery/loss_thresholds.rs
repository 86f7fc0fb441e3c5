//! The packet and time thresholds of loss detection (RFC 9002, sections 6.1.1 and 6.1.2), and their growth with the
//! reordering on a path.

use units::Span;

/// Initial packet threshold (RFC 9002, section 6.1.1: `kPacketThreshold`).
const PACKET_THRESHOLD: u64 = 3;
/// Initial time threshold, eighths of the RTT (RFC 9002, section 6.1.2: `kTimeThreshold`).
const TIME_THRESHOLD: u64 = 9;
/// Maximum time threshold, eighths of the RTT: two RTTs.
const MAX_TIME_THRESHOLD: u64 = 16;
/// Timer granularity (RFC 9002, section 6.1.2: `kGranularity`).
const GRANULARITY: Span = Span::from_millis(1);

/// The thresholds of a path. They never fall, because a path that has reordered may reorder again.
#[derive(Clone, Copy, Debug)]
pub struct LossThresholds {
    is_adaptive: bool,
    packets: u64,
    rtt_eighths: u64,
}

impl LossThresholds {
    /// The initial thresholds, which are fixed if they are not adaptive.
    #[must_use]
    pub fn new(is_adaptive: bool) -> Self {
        Self { is_adaptive, packets: PACKET_THRESHOLD, rtt_eighths: TIME_THRESHOLD }
    }

    /// A packet is lost once a packet sent this many packets later is acknowledged.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Age at which a packet is lost once a later one is acknowledged. `rtt` is the larger of smoothed and latest RTT.
    #[must_use]
    pub fn loss_delay(&self, rtt: Span) -> Span {
        loss_delay(rtt, self.rtt_eighths)
    }

    /// Raises the thresholds after a spurious loss, so that neither declares such a packet lost again. The packet was
    /// acknowledged `delay` after it was sent, and after the packet `displacement` later than it. The packet threshold
    /// has no maximum, because the time threshold bounds how late a loss is detected.
    pub fn on_spurious_loss(&mut self, displacement: u64, delay: Span, rtt: Span) {
        if !self.is_adaptive {
            return;
        }
        self.packets = self.packets.max(displacement + 1);
        let needed = (TIME_THRESHOLD..MAX_TIME_THRESHOLD).find(|eighths| delay < loss_delay(rtt, *eighths));
        self.rtt_eighths = self.rtt_eighths.max(needed.unwrap_or(MAX_TIME_THRESHOLD));
    }
}

fn loss_delay(rtt: Span, eighths: u64) -> Span {
    (rtt / 8 * eighths).max(GRANULARITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(80);

    fn after(is_adaptive: bool, spurious: &[(u64, u64)]) -> (u64, u64) {
        let mut thresholds = LossThresholds::new(is_adaptive);
        for (displacement, delay_ms) in spurious {
            thresholds.on_spurious_loss(*displacement, Span::from_millis(*delay_ms), RTT);
        }
        (thresholds.packets(), thresholds.loss_delay(RTT).as_millis())
    }

    /// RFC 9002, sections 6.1.1 and 6.1.2: 3 packets, and 9/8 of 80 ms.
    #[test]
    fn thresholds_begin_at_three_packets_and_nine_eighths_of_the_rtt() {
        assert_eq!(after(true, &[]), (3, 90));
    }

    #[test]
    fn the_time_threshold_is_a_millisecond_at_least() {
        assert_eq!(LossThresholds::new(true).loss_delay(Span::from_micros(80)), Span::from_millis(1));
    }

    #[test]
    fn each_threshold_grows_until_it_would_have_waited_for_the_late_packet() {
        assert_eq!(after(true, &[(7, 82)]), (8, 90), "late in packets only");
        assert_eq!(after(true, &[(3, 109)]), (4, 110), "11/8 of 80 ms");
        assert_eq!(after(true, &[(3, 110)]), (4, 120), "a packet of that age is lost");
    }

    #[test]
    fn thresholds_do_not_fall_again_and_the_time_threshold_ends_at_two_rtts() {
        assert_eq!(after(true, &[(400, 700), (3, 82)]), (401, 160));
    }

    #[test]
    fn static_thresholds_stay_what_they_were() {
        assert_eq!(after(false, &[(400, 700)]), (3, 90));
    }
}
