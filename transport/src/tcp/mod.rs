//! TCP as in Linux 6.1, as far as congestion control and reordering can see it: a sender and its receiver.
//!
//! Sequence numbers count segments: every segment of a connection carries the same payload (the MSS), so that windows,
//! scoreboards and congestion control all speak of packets. Bytes appear only at the receive window and the
//! buffers, where Linux counts them.

pub mod receiver;
mod segment;
pub mod sender;
mod single_path;
mod timer_wheel;

pub use receiver::Receiver;
pub use segment::{Ack, SackBlocks, Segment, SegmentKind};
pub use sender::{Input, Output, Sender};
pub use single_path::SinglePathSender;

/// The millisecond clock of TCP timestamps (RFC 7323).
pub(crate) fn timestamp(now: units::Instant) -> u32 {
    now.as_millis() as u32
}
