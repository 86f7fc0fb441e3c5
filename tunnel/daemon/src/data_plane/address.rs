//! The addresses of a path's datagrams, as a socket sees them.

use std::net::{IpAddr, SocketAddr};

/// The remote socket address of a path, and the local address to send from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathAddress {
    /// The peer's UDP socket.
    pub(super) remote: SocketAddr,
    /// The local address, set on sockets bound to the unspecified address; `None` leaves the choice to the kernel.
    pub(super) source: Option<IpAddr>,
}

impl PathAddress {
    /// An address whose source the kernel chooses.
    pub(super) fn to_remote(remote: SocketAddr) -> Self {
        Self { remote, source: None }
    }
}

impl node::Address for PathAddress {
    fn octets(&self, octets: &mut Vec<u8>) {
        match self.remote.ip() {
            IpAddr::V4(v4) => octets.extend(v4.octets()),
            IpAddr::V6(v6) => octets.extend(v6.octets()),
        }
        octets.extend(self.remote.port().to_be_bytes());
    }

    fn is_same_remote(&self, other: &Self) -> bool {
        self.remote == other.remote
    }

    fn is_same_host(&self, other: &Self) -> bool {
        (self.remote.ip(), self.source) == (other.remote.ip(), other.source)
    }

    fn without_local(&self) -> Self {
        Self::to_remote(self.remote)
    }
}
