//! The inputs and outputs of a [`Relay`](crate::Relay).

use wire::relay::{Addresses, Header, ResetReason};

/// Some bytes of a connection. The relay reads none of them.
pub trait Chunk: Clone {
    /// Length in bytes.
    fn len(&self) -> u32;
    /// The bytes `start..end`.
    #[must_use]
    fn slice(&self, start: u32, end: u32) -> Self;
    /// Moves the bytes to memory of their own: a few bytes must not keep a large chunk in use.
    fn detach(&mut self) {}
    /// Whether the length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Configuration of a [`Relay`](crate::Relay).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// Maximum memory for the bytes to be sent, and the same for the received bytes.
    pub memory_bytes: u64,
    /// Maximum number of connections.
    pub max_connections: usize,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, max_connections: 16_384 }
    }
}

/// A connection, as this end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    /// Whether this end has opened it. The end that opens a connection numbers it.
    pub is_local: bool,
    /// Its number.
    pub number: u32,
}

/// A message for the peer, or from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<C> {
    /// The header.
    pub header: Header,
    /// The bytes of a data message, if it has any.
    pub chunk: Option<C>,
}

/// A change of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer has opened a connection: the driver connects to the server, and then [accepts](crate::Relay::accept)
    /// or [resets](crate::Relay::reset) it.
    Opened {
        /// The connection.
        id: ConnectionId,
        /// The client's and the server's address.
        addresses: Addresses,
    },
    /// The server has accepted a connection of this end.
    Accepted(ConnectionId),
    /// There are bytes to be [consumed](crate::Relay::consume), or the byte stream of the peer has ended. At the end
    /// the driver consumes the rest, even if it is 0 bytes, because a connection is closed when its end is consumed.
    Readable(ConnectionId),
    /// There is send capacity again.
    Writable(ConnectionId),
    /// The connection no longer exists.
    Closed {
        /// The connection.
        id: ConnectionId,
        /// Why it was reset; `None` if both byte streams have ended and were acknowledged.
        reason: Option<ResetReason>,
    },
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// The client's and the server's address.
    pub addresses: Addresses,
    /// Whether the server has accepted it.
    pub is_accepted: bool,
    /// Bytes sent and acknowledged.
    pub sent_bytes: u64,
    /// Bytes received and consumed.
    pub received_bytes: u64,
    /// Bytes written that are not acknowledged yet.
    pub unacknowledged_bytes: u64,
    /// Bytes received that are not consumed yet.
    pub unread_bytes: u64,
}
