//! The queue on the acknowledgements' way back, which is no queue of the path.

use sender::recovery::WindowedMin;
use units::{Instant, Span};
use wire::frame::Ack;

/// For how long the least delay counts as that of an empty queue: the clocks may drift apart.
const MEMORY: Span = Span::from_secs(10);
/// The delay of the first acknowledgement, of which only the difference to others is known; microseconds.
const FIRST: u32 = 1 << 31;

/// How long acknowledgements take on their way back, by the peer's clock.
#[derive(Clone, Debug, Default)]
pub(in crate::path) struct ReturnWay {
    /// What is added to a delay to have [`FIRST`] for that of the first acknowledgement.
    offset: Option<u32>,
    /// The latest acknowledgement with a sample, until the next one has come: when it came, when it was sent by the peer's
    /// clock, its delay.
    latest: Option<(Instant, u32, Span)>,
    least: WindowedMin,
    /// What acknowledgements wait, smoothed as the RTT is.
    pub(super) smoothed: Span,
}

impl ReturnWay {
    /// An acknowledgement has come. If it was sent before the latest one, that one has overtaken it, and does not count: its
    /// delay is not that of an empty queue.
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if let Some((came, latest_sent, delay)) = self.latest.take()
            && sent(ack).wrapping_sub(latest_sent) < FIRST
        {
            self.least.update(MEMORY, came, delay);
        }
    }

    /// How much longer this acknowledgement took than the fastest of the last 10 s.
    pub(super) fn queueing(&mut self, now: Instant, ack: &Ack) -> Span {
        let sent = sent(ack);
        let delay = ((now.0 / 1000) as u32).wrapping_sub(sent);
        let offset = *self.offset.get_or_insert(FIRST.wrapping_sub(delay));
        let delay = Span::from_micros(u64::from(delay.wrapping_add(offset)));
        self.latest = Some((now, sent, delay));
        let queueing = delay.saturating_sub(self.least.get());
        self.smoothed = (self.smoothed * 7 + queueing) / 8;
        queueing
    }
}

/// When an acknowledgement was sent, microseconds of the peer's clock.
fn sent(ack: &Ack) -> u32 {
    ack.receive_timestamp_us.wrapping_add(ack.ack_delay_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::frame::AckRanges;

    /// Clocks that differ by any constant, past which the 32 bits wrap: what counts is the difference.
    #[test]
    fn what_an_acknowledgement_waits_is_its_delay_less_the_least_of_10_seconds() {
        for clock_offset in [0, 1_000_000, u32::MAX - 20_000_000, 1 << 31] {
            let mut way = ReturnWay::default();
            let mut queueing = |at_ms: u64, delay_ms: u64| {
                let sent = ((at_ms - delay_ms) * 1000) as u32;
                let receive_timestamp_us = sent.wrapping_add(clock_offset).wrapping_sub(300);
                let ranges = AckRanges::default();
                let ack = Ack { path: 0, largest: 0, ack_delay_us: 300, receive_timestamp_us, ce_count: 0, ranges };
                way.on_ack(&ack);
                way.queueing(Instant::ZERO + Span::from_millis(at_ms), &ack).as_millis()
            };
            assert_eq!([queueing(100, 20), queueing(200, 50), queueing(300, 10), queueing(400, 50)], [0, 30, 0, 40]);
            let after_long = [queueing(20_500, 50), queueing(20_600, 50)];
            assert_eq!(after_long, [40, 0], "the least of 20 s ago is forgotten");
        }
    }

    /// As RFC 6298's SRTT: an eighth of each sample.
    #[test]
    fn what_acknowledgements_wait_is_smoothed_as_the_round_trip_is() {
        let mut way = ReturnWay::default();
        for (at_ms, delay_ms, smoothed_us) in [(100, 20, 0), (200, 28, 1000), (300, 28, 1875), (400, 20, 1640)] {
            let (ranges, receive_timestamp_us) = (AckRanges::default(), (at_ms - delay_ms) * 1000);
            let ack = Ack { path: 0, largest: 0, ack_delay_us: 0, receive_timestamp_us, ce_count: 0, ranges };
            way.on_ack(&ack);
            way.queueing(Instant::ZERO + Span::from_millis(at_ms.into()), &ack);
            assert_eq!(way.smoothed.as_micros(), smoothed_us);
        }
    }

    /// An acknowledgement that skips the delay of 20 ms comes before those that were sent up to 20 ms before it.
    #[test]
    fn an_acknowledgement_that_overtakes_others_is_not_the_fastest() {
        let mut way = ReturnWay::default();
        let mut queueing = |at_ms: u64, delay_ms: u64| {
            let receive_timestamp_us = ((at_ms - delay_ms) * 1000) as u32;
            let ranges = AckRanges::default();
            let ack = Ack { path: 0, largest: 0, ack_delay_us: 0, receive_timestamp_us, ce_count: 0, ranges };
            way.on_ack(&ack);
            way.queueing(Instant::ZERO + Span::from_millis(at_ms), &ack).as_millis()
        };
        let delays = [(100, 20), (101, 20), (102, 1), (102, 20), (103, 20), (104, 25), (105, 20)];
        assert_eq!(delays.map(|(at, delay)| queueing(at, delay)), [0, 0, 0, 0, 0, 5, 0]);
    }
}
