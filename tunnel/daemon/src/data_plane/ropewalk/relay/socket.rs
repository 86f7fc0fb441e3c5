//! The TCP socket of a relayed connection. It is connected from the internal network's local address to the remote
//! one; the port there is the connection's number.

use crate::config::RelayNetwork;
use crate::data_plane::buffer::BufferSlice;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use relay::ResetReason;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Maximum number of chunks that one system call sends.
const MAX_CHUNKS: usize = 64;

/// The socket of a relayed connection.
#[derive(Debug)]
pub(super) struct RelaySocket(Socket);

impl RelaySocket {
    /// Starts to connect. Returns the socket and its local address.
    ///
    /// # Errors
    /// No file descriptor or port is left, or the device lacks the network's address.
    pub(super) fn connect(network: &RelayNetwork, number: u16) -> io::Result<(Self, SocketAddr)> {
        let domain = if network.local.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        socket.set_keepalive(true)?;
        // Urgent data stays in its place in the byte stream (RFC 6093).
        socket.set_out_of_band_inline(true)?;
        // The kernel chooses the port when it knows the remote address, because there are far more connections than
        // ports.
        setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
        socket.bind(&SocketAddr::new(network.local, 0).into())?;
        match socket.connect(&SocketAddr::new(network.remote, number).into()) {
            Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => return Err(error),
            _ => {}
        }
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        // The socket's IPv6 addresses have a scope, which the addresses of packets do not have.
        Ok((Self(socket), SocketAddr::new(local.ip(), local.port())))
    }

    /// Reads into `buffer`; `None` if nothing is there, 0 at the end of the byte stream.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        would_block(nix::unistd::read(&self.0, buffer).map_err(io::Error::from))
    }

    /// Writes chunks; returns the number of bytes taken, `None` if the send buffer is full.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) fn write<'a>(&self, chunks: impl Iterator<Item = &'a BufferSlice>) -> io::Result<Option<usize>> {
        let mut slices = [IoSlice::new(&[]); MAX_CHUNKS];
        let mut count = 0;
        for (slice, chunk) in slices.iter_mut().zip(chunks) {
            *slice = IoSlice::new(chunk);
            count += 1;
        }
        if count == 0 {
            return Ok(Some(0));
        }
        would_block(self.0.send_vectored_with_flags(&slices[..count], nix::libc::MSG_NOSIGNAL))
    }

    /// Ends the byte stream that is sent. If the connection has failed since, an event follows.
    pub(super) fn shut_down(&self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// Resets the connection (RST) and closes the socket.
    pub(super) fn abort(self) {
        // A failed connection has already been reset.
        let _ = self.0.set_linger(Some(Duration::ZERO));
    }

    /// The error of the connection, if it failed.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.0.take_error().ok().flatten()
    }
}

impl AsFd for RelaySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The reason that the other end of a failed connection gets.
pub(super) fn reset_reason(error: &io::Error) -> ResetReason {
    match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
        Errno::ECONNREFUSED => ResetReason::Refused,
        Errno::EHOSTUNREACH
        | Errno::ENETUNREACH
        | Errno::EHOSTDOWN
        | Errno::ENETDOWN
        | Errno::EACCES
        | Errno::EPERM => ResetReason::Unreachable,
        Errno::ETIMEDOUT => ResetReason::TimedOut,
        _ => ResetReason::Reset,
    }
}
