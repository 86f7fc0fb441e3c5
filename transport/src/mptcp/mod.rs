//! Multipath TCP (RFC 8684) in the detail that matters to congestion control, scheduling and reordering: one stream of
//! data over several TCP subflows.
//!
//! - The [`Sender`] owns the data, one [`tcp::Sender`](crate::tcp::Sender) per subflow, the controller that they share,
//!   and the scheduler that assigns data to them.
//! - The [`Receiver`] owns one [`tcp::Receiver`](crate::tcp::Receiver) per subflow, the reassembly of the data and the
//!   shared receive window.
//!
//! Data is numbered in segments, like TCP's sequence numbers here: all subflows have the same MSS, so that a mapping
//! covers one segment. Keys, addresses and the fallback to plain TCP are not modelled. A subflow joins with the RTT of
//! its SYN once the connection is open. In upstream Linux a join takes one more RTT, and subflows join one after the
//! other.

mod receiver;
mod segment;
mod sender;

pub use receiver::{Receiver, ReceiverCounters};
pub use segment::{Ack, Segment};
pub use sender::{
    ConnectionConfig, ConnectionCounters, Input, MptcpStack, Output, SendBufferRule, Sender, SubflowConfig,
    SubflowState,
};
