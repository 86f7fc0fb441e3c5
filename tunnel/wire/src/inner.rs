//! Headers of inner packets, IPv4 (RFC 791) and IPv6 (RFC 8200): addresses, ports, length, DSCP and ECN; and the
//! changes that a tunnel makes to them.

pub mod ack;
pub mod ecn;
pub mod mss;
pub mod reply;
pub mod translate;

use crate::Malformed;
use crate::reader::word;
use core::net::{IpAddr, Ipv4Addr};

/// Protocol numbers (IANA's registry).
pub mod protocol {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// Protocols whose header begins with source and destination port: TCP, UDP, DCCP, SCTP, UDP-Lite.
    pub(super) const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];
}

/// IPv6 extension headers that are skipped (RFC 8200, section 4; AH: RFC 4302; mobility: RFC 6275), without the
/// fragment header.
const EXTENSIONS: [u8; 5] = [0, 43, AUTHENTICATION, 60, 135];
const AUTHENTICATION: u8 = 51;
const FRAGMENT: u8 = 44;
/// Maximum number of extension headers that are skipped.
const MAX_EXTENSIONS: usize = 8;

/// The headers of an inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// DSCP (high six bits) and ECN (low two): IPv4's TOS byte, IPv6's traffic class.
    pub tos: u8,
    /// IPv6's flow label; 0 for IPv4.
    pub label: u32,
    /// Protocol number of the payload of the IP headers.
    pub protocol: u8,
    /// Whether it is an IP fragment.
    pub fragment: bool,
    /// Offset of the transport header, bytes.
    pub transport: usize,
    /// Length of the packet according to its own header, bytes; the parsed bytes may be longer.
    pub len: usize,
    /// Source and destination port, if the transport has ports and the packet is not a fragment.
    pub ports: Option<(u16, u16)>,
}

impl Inner {
    /// Decodes the IP headers and the ports.
    ///
    /// # Errors
    /// `Version`, `Truncated` if the packet is shorter than the length in its headers, `Length` if lengths contradict
    /// each other.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let parsed = match packet.first().ok_or(Malformed::Truncated)? >> 4 {
            4 => Self::parse_v4(packet)?,
            6 => Self::parse_v6(packet)?,
            _ => return Err(Malformed::Version),
        };
        let has_ports = !parsed.fragment && protocol::WITH_PORTS.contains(&parsed.protocol);
        let port_bytes = packet[..parsed.len].get(parsed.transport..parsed.transport + 4).filter(|_| has_ports);
        Ok(Self { ports: port_bytes.map(|bytes| (word(bytes, 0), word(bytes, 2))), ..parsed })
    }

    fn parse_v4(packet: &[u8]) -> Result<Self, Malformed> {
        let header = packet.first_chunk::<20>().ok_or(Malformed::Truncated)?;
        let transport = usize::from(header[0] & 15) * 4;
        let len = checked_len(packet, usize::from(word(header, 2)), transport)?;
        let address =
            |offset: usize| IpAddr::from([header[offset], header[offset + 1], header[offset + 2], header[offset + 3]]);
        if transport < header.len() {
            return Err(Malformed::Length);
        }
        Ok(Self {
            source: address(12),
            destination: address(16),
            tos: header[1],
            label: 0,
            protocol: header[9],
            fragment: word(header, 6) & 0x3fff != 0,
            transport,
            len,
            ports: None,
        })
    }

    fn parse_v6(packet: &[u8]) -> Result<Self, Malformed> {
        let header = packet.first_chunk::<40>().ok_or(Malformed::Truncated)?;
        let len = checked_len(packet, 40 + usize::from(word(header, 4)), 40)?;
        let address = |offset: usize| header[offset..].first_chunk::<16>().copied().map(IpAddr::from);
        let (Some(source), Some(destination)) = (address(8), address(24)) else { return Err(Malformed::Truncated) };
        let mut parsed = Self {
            source,
            destination,
            tos: header[0] << 4 | header[1] >> 4,
            label: u32::from(header[1] & 15) << 16 | u32::from(word(header, 2)),
            protocol: header[6],
            fragment: false,
            transport: 40,
            len,
            ports: None,
        };
        parsed.skip_extensions(&packet[..len])?;
        Ok(parsed)
    }

    /// Skips IPv6 extension headers. An atomic fragment does not count as a fragment (RFC 6946).
    fn skip_extensions(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        for _ in 0..MAX_EXTENSIONS {
            if self.protocol != FRAGMENT && !EXTENSIONS.contains(&self.protocol) {
                return Ok(());
            }
            let header = packet[self.transport..].first_chunk::<8>().ok_or(Malformed::Truncated)?;
            let length = usize::from(header[1]);
            self.transport += match self.protocol {
                FRAGMENT => 8,
                AUTHENTICATION => 4 * (length + 2),
                _ => 8 * (length + 1),
            };
            if self.transport > packet.len() {
                return Err(Malformed::Truncated);
            }
            self.fragment |= self.protocol == FRAGMENT && word(header, 2) & 0xfff9 != 0;
            self.protocol = header[0];
            if self.fragment {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether it is IPv6.
    #[must_use]
    pub const fn is_v6(&self) -> bool {
        self.source.is_ipv6()
    }

    /// A hash of the flow, keyed so that a sender cannot choose which flows share a queue. It covers addresses,
    /// protocol and ports; or, without ports, addresses and flow label (RFC 6438), or addresses and protocol.
    #[must_use]
    pub fn flow_hash(&self, key: u64) -> u64 {
        let (low, high) = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => (address_pair(source, destination), 0),
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let [source, destination] = [source.to_bits(), destination.to_bits()];
                (
                    mix(source as u64, (source >> 64) as u64 ^ key),
                    mix(destination as u64, (destination >> 64) as u64 ^ key),
                )
            }
            _ => (0, 0),
        };
        let flow = match self.ports {
            Some((source, destination)) => 1 << 40 | u64::from(source) << 16 | u64::from(destination),
            None => u64::from(self.label),
        };
        let protocol = if self.ports.is_none() && self.label != 0 { 0 } else { u64::from(self.protocol) };
        mix(mix(low ^ key, high ^ PI_1), flow << 8 ^ protocol ^ key.rotate_left(32))
    }
}

fn address_pair(source: Ipv4Addr, destination: Ipv4Addr) -> u64 {
    u64::from(source.to_bits()) << 32 | u64::from(destination.to_bits())
}

/// Digits of pi, as arbitrary constants.
const PI_1: u64 = 0x243f_6a88_85a3_08d3;
const PI_2: u64 = 0x1319_8a2e_0370_7344;

/// The halves of a product, combined by XOR: every bit of the inputs affects the whole result.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ PI_1) * u128::from(b ^ PI_2);
    product as u64 ^ (product >> 64) as u64
}

/// `len`, from the packet's own header, if it covers the headers and lies inside the packet.
fn checked_len(packet: &[u8], len: usize, headers_len: usize) -> Result<usize, Malformed> {
    if len > packet.len() {
        return Err(Malformed::Truncated);
    }
    if len < headers_len { Err(Malformed::Length) } else { Ok(len) }
}

/// The addresses of `packet`, both in a row, as checksums need them. `None` if it is no IP packet or too short.
pub(crate) fn addresses(packet: &[u8]) -> Option<&[u8]> {
    match packet.first()? >> 4 {
        4 => packet.get(12..20),
        6 => packet.get(8..40),
        _ => None,
    }
}

/// The DSCP and ECN byte of `packet`; `None` if it is no IP packet.
#[must_use]
pub fn tos(packet: &[u8]) -> Option<u8> {
    let [first, second, ..] = packet else { return None };
    match first >> 4 {
        4 => Some(*second),
        6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
