//! Packets, acknowledgements, and their sizes in bytes.

use super::AckRanges;
use units::Instant;

/// UDP header, bytes.
const UDP_HEADER: u32 = 8;
/// Short header (RFC 9000, section 17.3.1): flags, a connection ID of 8 bytes, a packet number of 4.
const SHORT_HEADER: u32 = 1 + 8 + 4;
/// Tag of the AEAD (RFC 9001, section 5.3).
const AEAD_TAG: u32 = 16;
/// STREAM frame without a length, because it ends its packet (RFC 9000, section 19.8): type, stream ID of 2 bytes,
/// offset of 8 bytes. These are the maximum sizes, so that every chunk has the same size.
const STREAM_FRAME: u32 = 1 + 2 + 8;
/// Bytes of a UDP payload that opens a connection or validates a path (RFC 9000, sections 8.2.1 and 14.1).
const PADDED_DATAGRAM: u32 = 1200;

/// Bytes of a packet with a STREAM frame in addition to IP header and chunk.
pub const STREAM_PACKET_OVERHEAD: u32 = UDP_HEADER + SHORT_HEADER + STREAM_FRAME + AEAD_TAG;

/// An ack-eliciting packet of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Path ID: number of the path and of its packet-number space.
    pub path: u16,
    /// Packet number. Handshake and validation packets have numbers of their own.
    pub number: u64,
    /// Time at which it was sent. (For the one-way delay; no frame has it.)
    pub sent: Instant,
    /// The packet's content.
    pub content: Content,
}

/// Content of a sender's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Initial packet with the ClientHello: opens the connection.
    Initial,
    /// PATH_CHALLENGE: validates a further path.
    PathChallenge,
    /// PING: a probe when there is no data.
    Ping,
    /// STREAM frame.
    Stream {
        /// Number of the chunk.
        chunk: u64,
        /// Whether the chunk is also in flight in another packet, on a path that answers. (For counters; the frame has
        /// no such field.)
        copy: bool,
        /// Whether the chunk is retransmitted or reinjected. (For counters and traces; the frame has no such field.)
        is_again: bool,
    },
}

/// A packet of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Number of the path on which it returns.
    pub path: u16,
    /// The packet's content.
    pub content: ReplyContent,
}

/// Content of a receiver's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyContent {
    /// The server's handshake, which answers Initial packet `number`.
    Handshake {
        /// Number of the packet.
        number: u64,
    },
    /// PATH_RESPONSE to challenge `number`.
    PathResponse {
        /// Number of the packet.
        number: u64,
    },
    /// PATH_ACK and MAX_DATA.
    Ack(PathAck),
}

/// A PATH_ACK frame (draft-ietf-quic-multipath-21, "PATH_ACK Frame"), and the flow-control limit sent with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAck {
    /// Path ID of the packet-number space that it acknowledges.
    pub path: u16,
    /// ACK Delay, microseconds: from the arrival of the largest packet to the sending of this frame.
    pub delay_us: u32,
    /// Ranges of received packets, in descending order.
    pub ranges: AckRanges,
    /// ECN-CE count: packets of the space that were received with a CE mark.
    pub ce_count: u32,
    /// MAX_DATA (RFC 9000, section 19.9), chunks: all chunks below may be sent.
    pub max_data: u64,
    /// One-way delay of the largest packet, microseconds, by the clock that both ends share. QUIC has no such field;
    /// algorithms that are defined by this delay need it.
    pub one_way_delay_us: u32,
}

/// Bytes of a variable-length integer (RFC 9000, section 16).
fn varint(value: u64) -> u32 {
    match value {
        0..=63 => 1,
        64..=16_383 => 2,
        16_384..=1_073_741_823 => 4,
        _ => 8,
    }
}

impl Packet {
    /// Size including the IP header, bytes; `chunk_bytes` is the size of the chunk.
    #[must_use]
    pub fn bytes(&self, ip_header: u32, chunk_bytes: u32) -> u32 {
        match self.content {
            Content::Initial | Content::PathChallenge => ip_header + UDP_HEADER + PADDED_DATAGRAM,
            Content::Ping => ip_header + UDP_HEADER + SHORT_HEADER + 1 + AEAD_TAG,
            Content::Stream { .. } => ip_header + STREAM_PACKET_OVERHEAD + chunk_bytes,
        }
    }

    /// Whether it carries a chunk.
    #[must_use]
    pub fn has_data(&self) -> bool {
        matches!(self.content, Content::Stream { .. })
    }
}

impl Reply {
    /// Size including the IP header, bytes; `chunk_bytes` is the size of a chunk.
    #[must_use]
    pub fn bytes(&self, ip_header: u32, chunk_bytes: u32) -> u32 {
        match &self.content {
            ReplyContent::Handshake { .. } | ReplyContent::PathResponse { .. } => {
                ip_header + UDP_HEADER + PADDED_DATAGRAM
            }
            ReplyContent::Ack(ack) => {
                ip_header + UDP_HEADER + SHORT_HEADER + ack.frame_bytes(u64::from(chunk_bytes)) + AEAD_TAG
            }
        }
    }
}

impl PathAck {
    /// Bytes of the PATH_ACK frame (RFC 9000, section 19.3, with a path ID), its ECN counts if a mark has been seen,
    /// and MAX_DATA.
    fn frame_bytes(&self, chunk_bytes: u64) -> u32 {
        // The delay is in units of 8 us (`ack_delay_exponent` 3).
        let largest = self.ranges.largest();
        let fixed = 1 + varint(u64::from(self.path)) + varint(largest) + varint(u64::from(self.delay_us >> 3));
        let ranges: u32 = self.ranges.gaps_and_lengths().map(|(gap, length)| varint(gap) + varint(length)).sum();
        let count = varint(self.ranges.len() as u64 - 1);
        let first = varint(self.ranges.first_length() - 1);
        let ecn = if self.ce_count > 0 { 1 + varint(largest) + varint(u64::from(self.ce_count)) } else { 0 };
        let max_data = 1 + varint(self.max_data * chunk_bytes);
        fixed + count + first + ranges + ecn + max_data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_length_integers_are_as_long_as_in_rfc_9000_table_4() {
        let bytes = [63, 64, 16_383, 16_384, 1_073_741_823, 1_073_741_824].map(varint);
        assert_eq!(bytes, [1, 2, 2, 4, 4, 8]);
        // Appendix A.1: 151288809941952652 takes eight bytes, 494878333 four, 15293 two, 37 one.
        assert_eq!([151_288_809_941_952_652, 494_878_333, 15_293, 37].map(varint), [8, 4, 2, 1]);
    }

    #[test]
    fn a_packet_is_as_large_as_its_headers_frames_and_tag() {
        let packet = |content| Packet { path: 1, number: 9, sent: Instant::ZERO, content };
        // IPv4 20, UDP 8, short header 13, STREAM 11, tag 16.
        assert_eq!(packet(Content::Stream { chunk: 0, copy: false, is_again: false }).bytes(20, 1432), 1500);
        assert_eq!(packet(Content::Ping).bytes(20, 1432), 58);
        assert_eq!(packet(Content::PathChallenge).bytes(40, 1432), 1248);
    }

    #[test]
    fn an_acknowledgement_takes_a_few_bytes_more_for_each_range() {
        let mut ranges = AckRanges::default();
        ranges.push(95, 100);
        let ack = PathAck { path: 1, delay_us: 0, ranges, ce_count: 0, max_data: 1000, one_way_delay_us: 0 };
        // Type, path ID, largest of 2 bytes, delay, count, first range; MAX_DATA with 4 bytes for 1 432 000.
        assert_eq!(ack.frame_bytes(1432), 1 + 1 + 2 + 1 + 1 + 1 + 1 + 4);
        ranges.push(10, 20);
        assert_eq!(PathAck { ranges, ..ack }.frame_bytes(1432), 12 + 1 + 2, "a gap of 73, a range of ten");
    }
}
