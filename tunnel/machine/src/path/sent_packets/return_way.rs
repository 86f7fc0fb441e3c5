//! The queue on the acknowledgements' way back, which is no queue of the path.

use transport::recovery::WindowedMin;
use units::{Instant, Span};
use wire::frame::Ack;

/// For how long the least delay counts as that of an empty queue: the clocks may drift apart.
const MEMORY: Span = Span::from_secs(10);
/// The delay of the first acknowledgement, of which only the difference to others is known; microseconds.
const FIRST: u32 = 1 << 31;

/// Samples in a row of which the greatest counts for the least delay: one packet in ten may skip the delay of the others.
const IN_A_ROW: usize = 4;

/// How long acknowledgements take on their way back, by the peer's clock.
#[derive(Clone, Debug)]
pub(in crate::path) struct ReturnWay {
    /// What is added to a delay to have [`FIRST`] for that of the first acknowledgement.
    offset: Option<u32>,
    /// The latest acknowledgements with a sample, the newest first: when they were sent by the peer's clock, microseconds, and
    /// their delay, which is infinite where they have overtaken another.
    latest: [(u32, Span); IN_A_ROW],
    least: WindowedMin,
}

impl Default for ReturnWay {
    fn default() -> Self {
        Self { offset: None, latest: [(0, Span::MAX); IN_A_ROW], least: WindowedMin::default() }
    }
}

impl ReturnWay {
    /// An acknowledgement has come: those that were sent after it have overtaken it.
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        let sent = sent(ack);
        for (later, delay) in &mut self.latest {
            if sent.wrapping_sub(*later) >= FIRST {
                *delay = Span::MAX;
            }
        }
    }

    /// How much longer this acknowledgement, the latest, took than the fastest of the last 10 s.
    pub(super) fn queueing(&mut self, now: Instant, ack: &Ack) -> Span {
        let sent = sent(ack);
        let delay = ((now.0 / 1000) as u32).wrapping_sub(sent);
        let offset = *self.offset.get_or_insert(FIRST.wrapping_sub(delay));
        let delay = Span::from_micros(u64::from(delay.wrapping_add(offset)));
        self.latest.rotate_right(1);
        self.latest[0] = (sent, delay);
        let most = self.latest.iter().map(|(_, delay)| *delay).max().unwrap_or(delay);
        if most < Span::MAX {
            self.least.update(MEMORY, now, most);
        }
        delay.saturating_sub(self.least.get())
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

    /// The queueing of acknowledgements that come at a time, after a delay, by a clock with an offset.
    struct Acks(ReturnWay, u32);

    impl Acks {
        fn queueing_ms(&mut self, at_ms: u64, delay_ms: u64) -> u64 {
            let sent = ((at_ms - delay_ms) * 1000) as u32;
            let receive_timestamp_us = sent.wrapping_add(self.1).wrapping_sub(300);
            let ranges = AckRanges::default();
            let ack = Ack { path: 0, largest: 0, ack_delay_us: 300, receive_timestamp_us, ce_count: 0, ranges };
            self.0.on_ack(&ack);
            self.0.queueing(Instant::ZERO + Span::from_millis(at_ms), &ack).as_millis()
        }

        /// As many as have to be in a row, a millisecond apart.
        fn row(&mut self, at_ms: u64, delay_ms: u64) {
            (0..IN_A_ROW as u64).for_each(|number| {
                self.queueing_ms(at_ms + number, delay_ms);
            });
        }
    }

    /// Clocks that differ by any constant, past which the 32 bits wrap: what counts is the difference.
    #[test]
    fn what_an_acknowledgement_waits_is_its_delay_less_the_least_of_10_seconds() {
        for clock_offset in [0, 1_000_000, u32::MAX - 20_000_000, 1 << 31] {
            let mut acks = Acks(ReturnWay::default(), clock_offset);
            acks.row(100, 20);
            assert_eq!([acks.queueing_ms(200, 50), acks.queueing_ms(300, 10)], [30, 0]);
            acks.row(301, 10);
            acks.row(400, 50);
            assert_eq!(acks.queueing_ms(500, 50), 40);
            acks.row(20_500, 50);
            assert_eq!(acks.queueing_ms(20_600, 50), 0, "the least of 20 s ago is forgotten");
        }
    }

    /// Acknowledgements that skip the delay of 20 ms, two of them in a row, come before those that were sent up to 20 ms earlier.
    #[test]
    fn an_acknowledgement_that_overtakes_others_is_not_the_fastest() {
        let mut acks = Acks(ReturnWay::default(), 0);
        acks.row(100, 20);
        let delays = [(120, 1), (120, 1), (120, 20), (121, 20), (122, 25), (123, 20)];
        assert_eq!(delays.map(|(at, delay)| acks.queueing_ms(at, delay)), [0, 0, 0, 0, 5, 0]);
    }

    /// With 20 ms between acknowledgements, one that skips their delay overtakes nobody.
    #[test]
    fn a_few_acknowledgements_that_are_fast_are_no_empty_queue() {
        let mut acks = Acks(ReturnWay::default(), 0);
        acks.row(100, 20);
        let delays = [(120, 1), (159, 20), (160, 1), (180, 1), (219, 20)];
        assert_eq!(delays.map(|(at, delay)| acks.queueing_ms(at, delay)), [0; 5]);
    }
}
