//! Multipath TCP (RFC 8684) as far as congestion control, scheduling and reordering can see it: one stream of data over
//! several TCP subflows.
//!
//! - The [`Sender`] owns the data, one [`tcp::Sender`](crate::tcp::Sender) a subflow, the controller that they share,
//!   and the scheduler that assigns data to them.
//! - The [`Receiver`] owns one [`tcp::Receiver`](crate::tcp::Receiver) a subflow, the reassembly of the data and the
//!   one receive window.
//!
//! Data is numbered in segments, as TCP's sequence numbers are here: all subflows have the same MSS, so that a mapping
//! covers one segment. Keys and addresses are not modelled: a subflow joins with the round trip of its SYN once the
//! connection is open, in upstream Linux with one more and one after the other. Nor is fallback to plain TCP.

mod receiver;
mod segment;
mod sender;

pub use receiver::{Receiver, ReceiverCounters};
pub use segment::{Ack, Segment};
pub use sender::{
    ConnectionConfig, ConnectionCounters, Input, MptcpStack, Output, SendBufferRule, Sender, SubflowConfig,
    SubflowState,
};
