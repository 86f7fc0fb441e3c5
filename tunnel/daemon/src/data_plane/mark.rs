//! The mark of the daemon's own datagrams, by which firewalls know them.

use socket2::Socket;

/// The mark (`SO_MARK`): the letters `RW`.
pub const SOCKET_MARK: u32 = 0x5257;

/// Sets [`SOCKET_MARK`], which needs `CAP_NET_ADMIN`. Without it the socket has none, and only `exclusive` wants it.
pub(crate) fn set_mark(socket: &Socket) {
    let _ = socket.set_mark(SOCKET_MARK);
}
