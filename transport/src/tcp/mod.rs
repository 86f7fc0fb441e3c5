//! TCP as Linux 6.1 speaks it, as far as congestion control and reordering can see it: a bulk sender and its receiver.
//!
//! Sequence numbers count segments: every segment of a connection carries the same payload (the MSS), so that windows,
//! scoreboards and congestion control all speak of packets. Bytes appear only at the receive window and the
//! buffers, where Linux counts them.

mod frame;
pub mod receiver;
pub mod sender;

pub use frame::{Ack, Blocks, Kind, Segment};
pub use receiver::Receiver;
pub use sender::{Input, Output, Sender};

/// The receiver's "millisecond clock" of TCP timestamps (RFC 7323).
pub(crate) fn timestamp(now: units::Instant) -> u32 {
    now.as_millis() as u32
}
