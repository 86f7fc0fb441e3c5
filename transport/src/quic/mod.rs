//! Multipath QUIC (draft-ietf-quic-multipath-21 over RFC 9000 and RFC 9002) in the detail that matters to congestion
//! control, scheduling, loss detection and reordering: streams over several paths, each with its own packet-number
//! space.
//!
//! - The [`Sender`] owns the data of the streams, and for each path a packet-number space, a
//!   [`PathSender`](crate::path::PathSender) and its timers. It also owns the controller and the scheduler of all
//!   paths.
//! - The [`Receiver`] owns the received packet-number ranges of each path, the reassembly of each stream, and the
//!   shared flow-control window.
//!
//! Data is numbered in *chunks*: the stream data that fits into a full packet. Chunk `n` of a connection with `s`
//! streams is chunk `n / s` of stream `n % s`, so that a bulk transfer is spread evenly over its streams.
//!
//! The sender is the client. The model includes what changes the timing of its data: the RTT of the handshake
//! (RFC 9000, section 7), the RTT of PATH_CHALLENGE before a further path carries data (RFC 9000, section 8.2), delayed
//! acknowledgements, and the bytes of headers, AEAD tags, STREAM and PATH_ACK frames. The model leaves out TLS, keys
//! and key updates, 0-RTT, idle timeouts and the closing of a connection. There are no connection IDs (the peer is
//! assumed to have issued them with its handshake), no anti-amplification limits (both ends pad to 1200 bytes), and no
//! DPLPMTUD (a path's packet size is known). RFC 10069, which draft 21 is becoming, was not available; sections of the
//! draft are cited by their titles.
//!
//! Choices that the draft leaves open:
//!
//! - A PATH_ACK returns on the path of the packets that it acknowledges (draft, "Computing Path RTT": RTT samples then
//!   belong to one path). MPTCP's acknowledgements do the same, so that the two can be compared.
//! - Lost data is sent again on the path that the scheduler picks (draft, "Retransmissions").
//! - After a probe timeout the data in flight on the path may also be sent on other paths (draft, "PTO Expiration"),
//!   and the scheduler does not use the path until one of its packets is acknowledged.
//! - MAX_DATA and MAX_STREAM_DATA are sent with every PATH_ACK, so that they need no retransmission; each stream's
//!   window is the connection's.

mod ack_ranges;
mod packet;
mod receiver;
mod rtt;
mod sender;

pub use ack_ranges::{AckRanges, MAX_ACK_RANGES};
pub use packet::{Content, Packet, PathAck, Reply, ReplyContent, STREAM_PACKET_OVERHEAD};
pub use receiver::{Receiver, ReceiverConfig, ReceiverCounters};
pub use rtt::RttEstimator;
pub use sender::{
    ConnectionConfig, ConnectionCounters, DeclaredLost, Input, Output, PathConfig, PathCounters, PathState, PathStatus,
    Sender,
};

use units::Span;

/// Maximum delay of an acknowledgement by the receiver (RFC 9000, section 18.2: `max_ack_delay`).
pub const MAX_ACK_DELAY: Span = Span::from_millis(25);
/// Maximum number of streams of a connection.
pub const MAX_STREAMS: u32 = 1024;
