//! A relayed connection at this end of the tunnel: its socket and its state.

use super::peer::{MAX_READ_BYTES, PeerRelay};
use super::socket::RelaySocket;
use crate::data_plane::buffer::{BufferMut, BufferSlice, Pool, SizeClass};
use ::relay::{Addresses, ConnectionId};
use seal::PeerId;
use std::io;
use units::Instant;

/// Bytes read from a connection before others have their turn.
const READ_BUDGET: u64 = 256 * 1024;

/// A relayed connection.
#[derive(Debug)]
pub(super) struct RelayedConnection {
    pub(super) peer: PeerId,
    pub(super) id: ConnectionId,
    /// The client's and the server's address.
    pub(super) addresses: Addresses,
    pub(super) stage: Stage,
    /// Whether it is listed as active.
    pub(super) is_active: bool,
}

/// The stage of a connection.
#[derive(Debug)]
pub(super) enum Stage {
    /// The near end holds the client's SYN, as read from the device, until the far end has connected.
    Held(Vec<u8>),
    /// There is a socket.
    Socket(ConnectedSocket),
}

/// The socket of a connection, and its readiness according to epoll.
#[derive(Debug)]
pub(super) struct ConnectedSocket {
    pub(super) socket: RelaySocket,
    /// The port of the internal network's remote address.
    pub(super) number: u16,
    /// The addresses of the packets that the socket sends.
    pub(super) addresses: Addresses,
    pub(super) is_established: bool,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    /// Whether the end of the byte stream was read.
    has_read_end: bool,
    /// Whether the end of the byte stream was written.
    has_written_end: bool,
}

impl ConnectedSocket {
    pub(super) fn new(socket: RelaySocket, number: u16, addresses: Addresses) -> Self {
        Self {
            socket,
            number,
            addresses,
            is_established: false,
            is_readable: false,
            is_writable: false,
            has_read_end: false,
            has_written_end: false,
        }
    }

    /// Moves bytes in both directions as far as the socket, the relay and a budget allow. True if there is more to do.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) fn transfer(
        &mut self,
        now: Instant,
        id: ConnectionId,
        relay: &mut PeerRelay,
        pool: &mut Pool,
    ) -> io::Result<bool> {
        if !self.is_established {
            return Ok(false);
        }
        self.write(now, id, relay)?;
        self.read(id, relay, pool)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, peer: &mut PeerRelay) -> io::Result<()> {
        let relay = &mut peer.relay;
        while self.is_writable {
            match self.socket.write(relay.chunks(id))? {
                Some(0) => break,
                Some(bytes) => {
                    relay.consume(now, id, bytes as u64);
                    peer.counters.received_bytes += bytes as u64;
                }
                None => self.is_writable = false,
            }
        }
        if !self.has_written_end && relay.is_finished(id) {
            self.has_written_end = true;
            self.socket.shut_down();
            // The end is consumed as well: the connection may be complete.
            relay.consume(now, id, 0);
        }
        Ok(())
    }

    fn read(&mut self, id: ConnectionId, peer: &mut PeerRelay, pool: &mut Pool) -> io::Result<bool> {
        let read_bytes = peer.read_bytes();
        let relay = &mut peer.relay;
        let mut budget = READ_BUDGET;
        while self.is_readable && !self.has_read_end {
            let bytes = relay.send_capacity(id).min(read_bytes).min(budget);
            if bytes == 0 {
                return Ok(budget == 0);
            }
            let mut buffer = pool.take(SizeClass::Large).unwrap_or_else(|| BufferMut::new(MAX_READ_BYTES as usize));
            match self.socket.read(&mut buffer[..bytes as usize])? {
                Some(0) => {
                    self.has_read_end = true;
                    relay.finish(id);
                }
                Some(len) => {
                    budget -= len as u64;
                    peer.counters.sent_bytes += len as u64;
                    // A buffer that is less than half full would use more memory than is charged.
                    let is_full = len as u64 >= MAX_READ_BYTES / 2;
                    let chunk = if is_full { buffer.freeze(len) } else { BufferSlice::from(buffer[..len].to_vec()) };
                    relay.write(id, chunk);
                }
                None => self.is_readable = false,
            }
        }
        Ok(false)
    }
}
