//! Explicit congestion notification in inner packets (RFC 3168).

use super::tos;
use crate::checksum;
use crate::reader::{put_word, word};

/// What the ECN field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Its transport would not see a mark.
    NotCapable,
    /// ECT(1): capable, and of low latency (RFC 9331).
    Capable1,
    /// ECT(0): capable.
    Capable0,
    /// Congestion experienced.
    Marked,
}

impl Ecn {
    /// The ECN field of a TOS byte or traffic class.
    #[must_use]
    pub const fn of(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Marked,
        }
    }
}

/// Sets "congestion experienced" in an IP packet and keeps IPv4's header checksum right (RFC 1624). False if the packet's
/// transport is not capable of it, or this is no IP packet: then only a drop tells it.
pub fn mark(packet: &mut [u8]) -> bool {
    match tos(packet).map(Ecn::of) {
        None | Some(Ecn::NotCapable) => return false,
        Some(Ecn::Marked) => return true,
        Some(Ecn::Capable0 | Ecn::Capable1) => {}
    }
    if packet[0] >> 4 == 6 {
        packet[1] |= 0x30;
        return true;
    }
    if packet.len() < 20 {
        return false;
    }
    let old = word(packet, 0);
    packet[1] |= 3;
    let checksum = checksum::update(word(packet, 10), old, word(packet, 0));
    put_word(packet, 10, checksum);
    true
}
