//! TCP as in Linux 6.1, in the detail that matters to congestion control and reordering: a sender and its receiver.
//!
//! Sequence numbers count segments. Every segment of a connection carries the same payload (the MSS), so that windows,
//! scoreboards and congestion control all count packets. Bytes appear only in the receive window and the buffers, where
//! Linux counts them.

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
