//! The two TCP connections of a relayed flow: the near one from its sender to the near relay, the far one from the far
//! relay to its receiver. Each is a flow of the engine; the far ones follow the experiment's flows.

use relay::ConnectionId;
use transport::tcp::Segment;

/// The part of a flow that is relayed.
#[derive(Debug)]
pub(crate) enum SplitConnection {
    Near(NearConnection),
    Far(FarConnection),
}

/// From the flow's sender to the near relay.
#[derive(Debug)]
pub(crate) struct NearConnection {
    /// The flow that is the far connection.
    pub far: u16,
    /// The connection of the relay, once the sender has opened it.
    pub id: Option<ConnectionId>,
    /// The sender's SYN, which is answered when the receiver's host has accepted.
    pub held_syn: Option<Segment>,
    /// Number of the segment after the last one, once the sender has closed.
    pub end: Option<u64>,
}

/// From the far relay to the flow's receiver.
#[derive(Debug)]
pub(crate) struct FarConnection {
    /// The flow that is the near connection.
    pub near: u16,
    /// The connection of the relay, once it is open.
    pub id: Option<ConnectionId>,
    /// Bytes passed to TCP.
    pub written: u64,
    /// Segments passed to TCP.
    pub segments: u64,
    /// Bytes that the receiver has acknowledged.
    pub consumed: u64,
}

impl NearConnection {
    /// `end`: number of the segment after the last one, if it is known.
    pub(crate) fn new(far: u16, end: Option<u64>) -> Self {
        Self { far, id: None, held_syn: None, end }
    }
}

impl FarConnection {
    pub(crate) fn new(near: u16) -> Self {
        Self { near, id: None, written: 0, segments: 0, consumed: 0 }
    }

    /// Notes that the byte stream has arrived up to `arrived`, and whether it ends there. Returns the segments that are to
    /// be written to TCP, and the bytes that the last one lacks. Bytes that do not fill a segment wait for more (Nagle's
    /// algorithm, RFC 896).
    pub(crate) fn write(&mut self, arrived: u64, has_ended: bool, mss: u64) -> Option<(u64, u32)> {
        self.written = arrived;
        let segments = if has_ended { arrived.div_ceil(mss) } else { arrived / mss };
        let new_segments = segments - std::mem::replace(&mut self.segments, segments);
        (new_segments > 0).then_some((new_segments, (segments * mss).saturating_sub(arrived) as u32))
    }

    /// Notes that TCP has acknowledged the segments before `acknowledged`. Returns the number of bytes that this frees.
    pub(crate) fn consume(&mut self, acknowledged: u64, mss: u64) -> u64 {
        let bytes = (acknowledged * mss).min(self.written);
        bytes - std::mem::replace(&mut self.consumed, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_segments_are_written_and_the_end_completes_the_last_one() {
        let mut split = FarConnection::new(0);
        assert_eq!(
            [999, 1000, 2500].map(|arrived| split.write(arrived, false, 1000)),
            [None, Some((1, 0)), Some((1, 0))]
        );
        assert_eq!((split.consume(1, 1000), split.consume(2, 1000)), (1000, 1000));
        assert_eq!((split.write(2500, true, 1000), split.consume(3, 1000)), (Some((1, 500)), 500));
        assert_eq!(split.write(2500, true, 1000), None);
        let mut whole = FarConnection::new(0);
        assert_eq!((whole.write(2000, false, 1000), whole.write(2000, true, 1000)), (Some((2, 0)), None));
    }
}
