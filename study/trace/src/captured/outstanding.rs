//! What a sender has in flight, as a capture at its end shows it, and the RTT samples that follow.

use std::collections::VecDeque;

/// Segments in flight that are remembered.
const KEPT: usize = 1 << 20;

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Segment {
    sent_ns: u64,
    is_retransmitted: bool,
    is_sacked: bool,
}

/// The segments that are not cumulatively acknowledged, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    first: u64,
    segments: VecDeque<Segment>,
    sacked: u64,
}

impl Outstanding {
    /// Notes that segments from `from` to before `to` are sent.
    pub(super) fn on_sent(&mut self, at_ns: u64, from: u64, to: u64) {
        for segment in self.places(from, to) {
            self.segments[segment].is_retransmitted = true;
        }
        let oldest = to.saturating_sub(KEPT as u64);
        while self.first < oldest && self.pop().is_some() {}
        self.first = self.first.max(oldest);
        while self.first + (self.segments.len() as u64) < to {
            self.segments.push_back(Segment { sent_ns: at_ns, is_retransmitted: false, is_sacked: false });
        }
    }

    /// Notes an acknowledgement and its SACK blocks. Returns the RTT sample: of the newest segment that it reports first. By
    /// Karn's rule (RFC 6298, section 3) no retransmitted segment gives one, and no segment that a cumulative acknowledgement
    /// covers together with a retransmitted one.
    pub(super) fn on_ack(&mut self, at_ns: u64, ack: u64, sack: &[(u64, u64)]) -> Option<u64> {
        let (mut acknowledged, mut is_ambiguous) = (None, false);
        while self.first < ack
            && let Some(segment) = self.pop()
        {
            is_ambiguous |= segment.is_retransmitted;
            acknowledged = if segment.is_sacked { acknowledged } else { Some(segment.sent_ns) };
        }
        self.first = self.first.max(ack);
        let mut newest = acknowledged.filter(|_| !is_ambiguous);
        for (from, to) in sack {
            for place in self.places(*from, *to) {
                let segment = &mut self.segments[place];
                let is_sample = !segment.is_sacked && !segment.is_retransmitted;
                self.sacked += u64::from(!segment.is_sacked);
                segment.is_sacked = true;
                newest = if is_sample { newest.max(Some(segment.sent_ns)) } else { newest };
            }
        }
        newest.map(|sent_ns| at_ns.saturating_sub(sent_ns))
    }

    /// Segments that are neither acknowledged nor SACKed.
    pub(super) fn in_flight(&self) -> u64 {
        self.segments.len() as u64 - self.sacked
    }

    fn pop(&mut self) -> Option<Segment> {
        let segment = self.segments.pop_front()?;
        self.first += 1;
        self.sacked -= u64::from(segment.is_sacked);
        Some(segment)
    }

    /// The places of those of the segments from `from` to before `to` that are outstanding.
    fn places(&self, from: u64, to: u64) -> std::ops::Range<usize> {
        let place = |number: u64| (number.saturating_sub(self.first) as usize).min(self.segments.len());
        place(from)..place(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_of_segments_that_were_sent_once() {
        let mut sender = Outstanding::default();
        (0..10).for_each(|number| sender.on_sent(number * 10, number, number + 1));
        assert_eq!((sender.on_ack(100, 2, &[]), sender.in_flight()), (Some(90), 8));
        // 2 is lost, 3 and 4 are reported, and then 3 to 5.
        assert_eq!((sender.on_ack(110, 2, &[(3, 5)]), sender.in_flight()), (Some(70), 6));
        assert_eq!((sender.on_ack(120, 2, &[(3, 6)]), sender.in_flight()), (Some(70), 5));
        assert_eq!(sender.on_ack(121, 2, &[(3, 6)]), None);
        sender.on_sent(130, 2, 3);
        assert_eq!((sender.on_ack(200, 7, &[]), sender.in_flight()), (None, 3));
        assert_eq!((sender.on_ack(210, 10, &[(0, 3)]), sender.in_flight()), (Some(120), 0));
    }

    #[test]
    fn memory_is_bounded_without_acknowledgements() {
        let mut sender = Outstanding::default();
        sender.on_sent(0, 0, 3 * KEPT as u64);
        assert_eq!(sender.in_flight(), KEPT as u64);
        assert_eq!(sender.on_ack(5, 3 * KEPT as u64, &[]), Some(5));
        // What was acknowledged before it was seen is not in flight.
        assert_eq!(sender.on_ack(5, 4 * KEPT as u64, &[]), None);
        sender.on_sent(6, 3 * KEPT as u64, 4 * KEPT as u64 + 1);
        assert_eq!(sender.in_flight(), 1);
    }
}
