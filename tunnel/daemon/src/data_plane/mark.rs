//! The mark of the daemon's own datagrams, by which firewalls recognise them.

use socket2::Socket;

/// The mark (`SO_MARK`): the letters `RW`.
pub const SOCKET_MARK: u32 = 0x5257;

/// Sets [`SOCKET_MARK`], which needs `CAP_NET_ADMIN`. Without that capability the socket has no mark, which only
/// `exclusive` needs.
pub(crate) fn set_mark(socket: &Socket) {
    let _ = socket.set_mark(SOCKET_MARK);
}
