//! ECN in inner packets (RFC 3168).

use super::tos;
use crate::checksum;
use crate::reader::{put_word, word};

/// An ECN field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not-ECT.
    NotEct,
    /// ECT(1), for low latency (RFC 9331).
    Ect1,
    /// ECT(0).
    Ect0,
    /// CE: congestion experienced.
    Ce,
}

impl Ecn {
    /// The ECN field of a TOS byte or traffic class.
    #[must_use]
    pub const fn of(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// Sets CE in an IP packet, and updates IPv4's header checksum (RFC 1624). False if the packet is not ECN-capable, or
/// no IP packet: then only a drop signals congestion.
pub fn set_ce(packet: &mut [u8]) -> bool {
    match tos(packet).map(Ecn::of) {
        None | Some(Ecn::NotEct) => return false,
        Some(Ecn::Ce) => return true,
        Some(Ecn::Ect0 | Ecn::Ect1) => {}
    }
    if packet[0] >> 4 == 6 {
        packet[1] |= 0x30;
        return true;
    }
    if packet.len() < 20 {
        return false;
    }
    let old_word = word(packet, 0);
    packet[1] |= 3;
    let checksum = checksum::update(word(packet, 10), old_word, word(packet, 0));
    put_word(packet, 10, checksum);
    true
}
