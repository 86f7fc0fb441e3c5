//! A host of the tunnel: sessions with peers, an endpoint for each, and the encoding of their datagrams. Sans-IO.
//!
//! ```text
//! datagram -> seal (open) -> wire (frames) -> machine (endpoint) -> fragments -> device
//! device -> inner packet -> machine (endpoint) -> wire (frames) -> seal -> datagram
//! ```
//!
//! The daemon adds sockets and a clock, the deterministic campaign a simulated network.

#[doc(hidden)]
pub mod check;
mod failover;
mod migration;
mod node;
mod peer;
mod receive;
mod schedule;
mod transmit;

pub use failover::{PeerGroup, RETURN_TIME};
pub use node::Node;
pub use peer::{Address, LearnedPathConfig, NewEndpointConfig, NodeEvent, Route};
pub use receive::{Malformed, Opened};
