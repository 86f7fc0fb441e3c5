//! The encoding of MPT's control messages, of which Ropewalk implements only the keepalive. A message follows a GRE
//! header with the protocol type of IP packets; its first byte distinguishes it from a packet.
//!
//! ```text
//! GRE 4   A1   status 1   authentication 1   its length 1   round 1   IP version 1   zero 2
//! sender's tunnel address 16   receiver's tunnel address 16     (IPv4 as ::ffff:a.b.c.d)
//! ```

use std::net::{IpAddr, Ipv6Addr};
use wire::{Malformed, gre};

/// Minimum first byte of a control message.
const FIRST_CONTROL_TYPE: u8 = 0xa0;
const KEEPALIVE: u8 = 0xa1;

/// Whether a GRE payload is a control message and no inner packet.
pub(crate) fn is_control(payload: &[u8]) -> bool {
    payload.first().is_some_and(|first| *first >= FIRST_CONTROL_TYPE)
}

/// A keepalive: shows that a path works; sent on each path, neither authenticated nor answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// The sender's tunnel address.
    pub sender: IpAddr,
    /// The receiver's tunnel address, of the same family.
    pub receiver: IpAddr,
}

impl Keepalive {
    /// Length of the message with its GRE header, bytes.
    pub const LEN: usize = 44;

    /// Encodes the UDP payload, without a GRE sequence number, because those number the data.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let is_ipv6 = self.sender.is_ipv6();
        let mut bytes = [0; Self::LEN];
        let protocol = if is_ipv6 { gre::IPV6 } else { gre::IPV4 };
        gre::Header { protocol, ..gre::Header::default() }.write(&mut bytes);
        bytes[4] = KEEPALIVE;
        bytes[9] = if is_ipv6 { 6 } else { 4 };
        bytes[12..28].copy_from_slice(&to_ipv6_mapped(self.sender).octets());
        bytes[28..].copy_from_slice(&to_ipv6_mapped(self.receiver).octets());
        bytes
    }

    /// Parses a keepalive after its GRE header.
    ///
    /// # Errors
    /// `Truncated`; `Type` for another message or one with authentication; `Version` if the IP version is not that of
    /// the addresses.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let (header, addresses) = payload.split_first_chunk::<8>().ok_or(Malformed::Truncated)?;
        let [command, _status, authentication, length, _round, version, ..] = *header;
        if (command, authentication, length) != (KEEPALIVE, 0, 0) {
            return Err(Malformed::Type);
        }
        let ([sender, receiver, ..], _) = addresses.as_chunks::<16>() else { return Err(Malformed::Truncated) };
        let address = |octets: &[u8; 16]| Ipv6Addr::from(*octets).to_canonical();
        let keepalive = Self { sender: address(sender), receiver: address(receiver) };
        let has_version = |address: IpAddr| version == if address.is_ipv6() { 6 } else { 4 };
        if has_version(keepalive.sender) && has_version(keepalive.receiver) {
            Ok(keepalive)
        } else {
            Err(Malformed::Version)
        }
    }
}

fn to_ipv6_mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: Keepalive = Keepalive {
        sender: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
        receiver: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)),
    };

    #[test]
    fn a_keepalive_is_44_bytes_on_the_wire() {
        let mut expected = vec![0, 0, 0x08, 0, 0xa1, 0, 0, 0, 0, 4, 0, 0];
        for last in [1, 2] {
            expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last]);
        }
        assert_eq!(V4.to_bytes()[..], expected);
        let (header, message) = gre::Header::parse(&expected).unwrap();
        assert_eq!((header.len(), header.sequence), (4, None));
        assert!(is_control(message));
        assert_eq!(Keepalive::parse(message), Ok(V4));
        assert_eq!(Keepalive::parse(&message[..39]), Err(Malformed::Truncated));
    }

    #[test]
    fn a_keepalive_of_ipv6_has_its_version_in_both_headers() {
        let [sender, receiver] = [1, 2].map(|last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)));
        let bytes = Keepalive { sender, receiver }.to_bytes();
        assert_eq!((&bytes[2..4], bytes[9]), (&[0x86, 0xdd][..], 6));
        assert_eq!(Keepalive::parse(&bytes[4..]), Ok(Keepalive { sender, receiver }));
    }

    #[test]
    fn ip_packets_are_no_control_messages_and_all_commands_are() {
        assert!(![0x45, 0x60, 0x9f].iter().any(|first| is_control(&[*first])));
        assert!([0xa0, 0xa1, 0xa5, 0xff].iter().all(|first| is_control(&[*first])));
        assert!(!is_control(&[]));
    }

    #[test]
    fn other_messages_and_contradictions_are_rejected() {
        let error = |offset: usize, value: u8| {
            let mut bytes = V4.to_bytes();
            bytes[offset] = value;
            Keepalive::parse(&bytes[4..]).unwrap_err()
        };
        assert_eq!(error(4, 0xa2), Malformed::Type);
        assert_eq!(error(6, 2), Malformed::Type);
        assert_eq!(error(9, 6), Malformed::Version);
    }
}
