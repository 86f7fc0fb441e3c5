//! Where a peer is, as the host tells addresses apart.

use crate::plane::socket::Route;
use std::net::IpAddr;

/// The peer's socket, and our address that it sent to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place(pub(super) Route);

impl node::Address for Place {
    fn octets(&self, out: &mut Vec<u8>) {
        match self.0.remote.ip() {
            IpAddr::V4(v4) => out.extend(v4.octets()),
            IpAddr::V6(v6) => out.extend(v6.octets()),
        }
        out.extend(self.0.remote.port().to_be_bytes());
    }

    fn is_at(&self, other: &Self) -> bool {
        self.0.remote == other.0.remote
    }
}
