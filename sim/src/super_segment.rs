//! Super-segments: the segments that TCP passes to the device of a Ropewalk tunnel at once, uncut, by segmentation offload
//! (TSO). In the tunnel they are one inner packet, and the receiving host's TCP gets them as one packet too.

use crate::connection::{Connection, SenderOutput};
use crate::tcp::TcpFlow;
use link::EcnField;
use transport::tcp::{Ack, Output, Segment, SegmentKind};
use units::Instant;

/// Consecutive data segments as one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuperSegment {
    pub first: Segment,
    pub segments: u32,
    /// Payload of each segment but the last, bytes.
    pub payload: u32,
}

impl SuperSegment {
    /// Drops the first segment, and returns by how many bytes the packet is smaller; `None` if it is the only one.
    pub(crate) fn trim_first(&mut self) -> Option<u32> {
        if self.segments < 2 {
            return None;
        }
        self.first = Segment { seq: self.first.seq + 1, cwr: false, ..self.first };
        self.segments -= 1;
        Some(self.payload)
    }

    /// Number of the segment after the last one.
    fn end(&self) -> u64 {
        self.first.seq + u64::from(self.segments)
    }

    fn is_continued_by(&self, next: &Segment) -> bool {
        next.kind == SegmentKind::Data
            && next.seq == self.end()
            && next.retransmission == self.first.retransmission
            && !next.cwr
    }
}

impl TcpFlow {
    /// The sender's next output, with the segments of a super-segment in one if the flow's device takes such.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> SenderOutput {
        if !self.has_offload() {
            return self.connection.poll(now);
        }
        match self.polled.take().unwrap_or_else(|| self.connection.poll(now)) {
            SenderOutput::Tcp(first) if first.kind == SegmentKind::Data => self.poll_super_segment(now, first),
            output => output,
        }
    }

    /// The super-segment that `first` begins. An output of the sender that does not belong to it is kept for the next poll.
    fn poll_super_segment(&mut self, now: Instant, first: Segment) -> SenderOutput {
        let mut whole = SuperSegment { first, segments: 1, payload: self.payload(first.seq) };
        let Connection::Single(single) = &mut self.connection else { return SenderOutput::Tcp(first) };
        let mut last = first;
        while single.sender.continues_super_segment(&last, whole.segments) {
            match single.sender.poll(now) {
                Output::Transmit(next) if whole.is_continued_by(&next) => last = next,
                output => {
                    self.polled = Some(output.into());
                    break;
                }
            }
            whole.segments += 1;
        }
        if whole.segments == 1 { SenderOutput::Tcp(first) } else { SenderOutput::TcpSuper(whole) }
    }

    /// Size of a super-segment's packet, bytes, and its ECN field.
    pub(crate) fn super_segment_bytes(&self, whole: &SuperSegment) -> (u32, EcnField) {
        let (first_bytes, ecn) = self.segment_bytes(&whole.first);
        (first_bytes + (whole.first.seq + 1..whole.end()).map(|seq| self.payload(seq)).sum::<u32>(), ecn)
    }

    /// Called when a super-segment reaches the receiver, whose TCP takes its segments together. Returns the acknowledgement
    /// to be sent at once, if any.
    pub(crate) fn on_super_segment(&mut self, now: Instant, whole: &SuperSegment, marked: bool) -> Option<Ack> {
        let bytes = self.super_segment_bytes(whole).0;
        let last = Segment { seq: whole.end() - 1, ..whole.first };
        self.on_data(now, &last, bytes, |receiver| {
            receiver.handle_super_segment(now, &whole.first, whole.segments, marked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_segment_is_dropped_but_never_the_only_one() {
        let first = Segment {
            kind: SegmentKind::Data,
            seq: 7,
            tsval: 1,
            tsecr: 0,
            cwr: true,
            retransmission: false,
            psh: false,
        };
        let mut whole = SuperSegment { first, segments: 2, payload: 1386 };
        assert_eq!((whole.trim_first(), whole.trim_first()), (Some(1386), None));
        assert_eq!((whole.first.seq, whole.first.cwr, whole.segments, whole.end()), (8, false, 1, 9));
    }
}
