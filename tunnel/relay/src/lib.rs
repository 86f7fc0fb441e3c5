//! The tunnel's relay of TCP connections: a performance-enhancing proxy that splits connections (RFC 3135). Sans-IO.
//!
//! ```text
//! client -- TCP -- near end == two byte streams over all paths of the tunnel == far end -- TCP -- server
//! ```
//!
//! The near end of the tunnel terminates TCP, and the far end begins a new TCP connection, so that the tunnel's own
//! congestion control is the only one on its paths. [`Relay`] is one end, for all connections with one peer. Its driver
//! has the TCP sockets, and carries [`Message`]s as inner packets of the tunnel's endpoint. The endpoint retransmits
//! lost fragments for a limited time; the relay sends the data that it gives up again. A client's SYN is answered only
//! when the far end has connected to the server.

#[doc(hidden)]
pub mod check;
mod chunks;
mod connection;
mod event;
mod memory;
mod receive_stream;
mod relay;
mod repair;
mod schedule;
mod send_stream;

pub use event::{Chunk, ConnectionId, ConnectionStatus, Event, Message, RelayConfig};
pub use relay::Relay;
pub use wire::relay::{Addresses, Body, Gaps, Header, ResetReason};
