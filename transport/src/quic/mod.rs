//! Multipath QUIC (draft-ietf-quic-multipath-21 over RFC 9000 and RFC 9002) as far as congestion control, scheduling,
//! loss detection and reordering can see it: streams over several paths, each with a packet-number space of its own.
//!
//! - The [`Sender`] owns the data of the streams, for each path a packet-number space, a
//!   [`PathSender`](crate::path::PathSender) and its timers, and the controller and scheduler of all of them.
//! - The [`Receiver`] owns the received packet-number ranges of each path, the reassembly of each stream, and the one
//!   flow-control window.
//!
//! Data is numbered in *chunks*: what a full packet carries of a stream. Chunk `n` of a connection with `s` streams is
//! the chunk `n / s` of stream `n % s`, so that a bulk transfer is spread evenly over its streams.
//!
//! The sender is the client. What changes the timing of its data is modelled: the handshake's round trip (RFC 9000,
//! section 7), the round trip of PATH_CHALLENGE before data goes over a further path (RFC 9000, section 8.2), delayed
//! acknowledgements, and the bytes of headers, AEAD tags, STREAM and PATH_ACK frames. Left out: TLS, keys and key
//! updates, 0-RTT, connection IDs (the peer is taken to have issued them with its handshake), anti-amplification limits
//! (both ends pad to 1200 bytes), DPLPMTUD (a path's packet size is known), idle timeouts, and the closing of a
//! connection. The RFC that draft 21 is becoming (RFC 10069) was not to be had; sections of the draft are named by their
//! titles.
//!
//! Choices where the draft leaves one:
//!
//! - A PATH_ACK returns on the path of the packets that it acknowledges (draft, "Computing Path RTT": RTT samples stay
//!   those of one path). MPTCP's acknowledgements do the same, so that the two can be compared.
//! - Lost data goes out again on whichever path the scheduler picks (draft, "Retransmissions").
//! - After a probe timeout the data that the path has in flight may go out on other paths too (draft, "PTO
//!   Expiration"), and the scheduler leaves the path out until a packet of it is acknowledged.
//! - MAX_DATA and MAX_STREAM_DATA travel with every PATH_ACK, so that none of them needs a retransmission; each stream's
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
    ConnectionConfig, ConnectionCounters, Input, Output, PathConfig, PathCounters, PathState, PathStatus, Sender,
};

use units::Span;

/// Greatest delay of an acknowledgement that a receiver plans (RFC 9000, section 18.2: `max_ack_delay`).
pub const MAX_ACK_DELAY: Span = Span::from_millis(25);
/// Most streams of a connection.
pub const MAX_STREAMS: u32 = 1024;
