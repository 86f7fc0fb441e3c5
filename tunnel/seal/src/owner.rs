//! Which device a datagram is for, on a host with several devices of one key.

use crate::message::{HandshakeMessage, INDEX_BITS};
use wire::gre::Sealed;

/// The bits of a session index below its prefix.
pub(crate) const PREFIX_SHIFT: u32 = INDEX_BITS - 4;

/// The prefix of the session index that a datagram is sent to ([`HandshakeConfig`](crate::HandshakeConfig)); `None` for
/// an initiation, which is sent to no session index, and for bytes that are not a datagram of the protocol. Nothing is
/// verified.
#[must_use]
pub fn owner(datagram: &[u8]) -> Option<u8> {
    let index = match Sealed::parse(datagram) {
        Some(sealed) => sealed.session,
        None => HandshakeMessage::receiver_index(datagram)?,
    };
    Some((index >> PREFIX_SHIFT) as u8)
}
