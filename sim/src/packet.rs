//! What packets carry.

pub use world::Direction;
pub(crate) use world::PacketDescriptor;

use transport::tcp::{Ack, Segment, SegmentKind};
use transport::{mptcp, quic};
use units::Instant;

/// A packet of the simulator.
pub(crate) type Packet = world::Packet<Content>;

/// A packet's content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub body: Body,
    /// The GRE sequence number in an MPT tunnel.
    pub tunnel_seq: Option<u64>,
}

impl Content {
    /// A content at its sending host.
    #[inline]
    pub(crate) fn new(body: Body) -> Self {
        Self { body, tunnel_seq: None }
    }
}

/// A packet's body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// TCP, towards the receiver.
    TcpPacket(TcpPacket),
    /// TCP, towards the sender.
    TcpAck(Ack),
    /// MPTCP, towards the receiver.
    MptcpSegment(mptcp::Segment),
    /// MPTCP, towards the sender.
    MptcpAck(mptcp::Ack),
    /// Multipath QUIC, towards the receiver.
    QuicPacket(quic::Packet),
    /// Multipath QUIC, towards the sender.
    QuicReply(quic::Reply),
    /// A client's request, by its number, towards the sender.
    Request(u32),
    /// A UDP datagram.
    Udp {
        /// Send time.
        sent: Instant,
        /// Number in its flow, from zero.
        number: u64,
    },
    /// A datagram of a hosted stack.
    Datagram {
        /// Its slot in the network's store.
        id: u32,
        /// Number among those that its end has sent, from zero.
        number: u64,
        /// Whether the end that has data sends it.
        is_data: bool,
    },
    /// A packet of no flow.
    Stray,
    /// A datagram of Ropewalk's tunnel, by its slot in the tunnel's own store.
    TunnelDatagram(u32),
}

/// Consecutive segments of TCP as one packet: one, or a super-segment, which TCP passes to the device of a Ropewalk tunnel
/// uncut, by segmentation offload (TSO). In the tunnel that is one inner packet, and the receiving host's TCP gets it as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpPacket {
    pub first: Segment,
    pub segments: u32,
    /// Payload of each segment of a super-segment but the last, bytes.
    pub payload: u32,
}

impl TcpPacket {
    /// A segment.
    #[inline]
    pub(crate) fn new(segment: Segment) -> Self {
        Self { first: segment, segments: 1, payload: 0 }
    }

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
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.first.seq + u64::from(self.segments)
    }

    pub(crate) fn is_continued_by(&self, next: &Segment) -> bool {
        next.kind == SegmentKind::Data
            && next.seq == self.end()
            && next.retransmission == self.first.retransmission
            && !next.cwr
    }
}

/// Where a packet leaves its host: on a path, by its number in the experiment, or into the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Path(u16),
    Tunnel,
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
        let mut whole = TcpPacket { first, segments: 2, payload: 1386 };
        assert_eq!((whole.trim_first(), whole.trim_first()), (Some(1386), None));
        assert_eq!((whole.first.seq, whole.first.cwr, whole.segments, whole.end()), (8, false, 1, 9));
    }
}
