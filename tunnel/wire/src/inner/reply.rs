//! Answers to a TCP segment that a host on the path gives: a reset (RFC 9293, section 3.10.7.1), and ICMP's "host
//! unreachable" (RFC 792; RFC 4443, section 3.1).

use super::translate::{tcp_addresses, write_icmp_checksum};
use super::{Inner, protocol};
use crate::checksum::{Sum, pseudo_header_sum};
use crate::reader::put_word;
use core::net::IpAddr;

const RST_ACK: u8 = 0x14;
const SYN: u8 = 2;
const ACK: u8 = 0x10;
const TTL: u8 = 64;
/// Maximum number of bytes of a quoted packet: enough for its headers.
const MAX_QUOTED: usize = 120;
/// Options that authenticate segments: MD5 signatures (RFC 2385) and the Authentication Option (RFC 5925).
const AUTHENTICATION_OPTIONS: [u8; 2] = [19, 29];

/// Whether a TCP segment is a SYN without ACK, which begins a connection.
#[must_use]
pub fn is_initial_syn(packet: &[u8], inner: &Inner) -> bool {
    packet.get(inner.transport + 13).is_some_and(|flags| flags & (SYN | ACK) == SYN)
}

/// Whether a TCP segment has an option that authenticates its addresses, or malformed options.
#[must_use]
pub fn is_authenticated(packet: &[u8], inner: &Inner) -> bool {
    let Some(tcp) = packet.get(inner.transport..inner.len).filter(|tcp| tcp.len() >= 20) else { return true };
    let Some(mut options) = tcp.get(20..usize::from(tcp[12] >> 4) * 4) else { return true };
    loop {
        options = match options {
            [] | [0, ..] => return false,
            [1, remainder @ ..] => remainder,
            [kind, ..] if AUTHENTICATION_OPTIONS.contains(kind) => return true,
            [_, length, ..] if *length >= 2 && usize::from(*length) <= options.len() => {
                &options[usize::from(*length)..]
            }
            _ => return true,
        };
    }
}

/// The reset that refuses the connection of a SYN. `None` if `packet` is not a TCP packet.
#[must_use]
pub fn reset(packet: &[u8]) -> Option<Vec<u8>> {
    let inner = Inner::parse(packet).ok()?;
    let addresses = tcp_addresses(packet, &inner)?.reversed();
    let mut tcp = vec![0; 20];
    put_word(&mut tcp, 0, addresses.source.port());
    put_word(&mut tcp, 2, addresses.destination.port());
    let sequence = packet[inner.transport + 4..].first_chunk().copied().map_or(0, u32::from_be_bytes);
    tcp[8..12].copy_from_slice(&sequence.wrapping_add(1).to_be_bytes());
    (tcp[12], tcp[13]) = (5 << 4, RST_ACK);
    let mut reset = ip_packet(addresses.source.ip(), addresses.destination.ip(), protocol::TCP, &tcp);
    let start = reset.len() - tcp.len();
    let pseudo_header = pseudo_header_sum(super::addresses(&reset)?, protocol::TCP).add_word(tcp.len() as u16);
    let checksum = pseudo_header.add_sum(Sum::of(&tcp)).checksum();
    put_word(&mut reset, start + 16, checksum);
    Some(reset)
}

/// ICMP's "host unreachable" about `packet`, an IP packet, from `source` of the same family. Empty if `packet` is not
/// an IP packet.
#[must_use]
pub fn unreachable(packet: &[u8], source: IpAddr) -> Vec<u8> {
    let Ok(inner) = Inner::parse(packet) else { return Vec::new() };
    // Type and code: destination unreachable (3), host (1); in version 6 destination unreachable (1), address (3).
    let (protocol, kind) = if inner.is_v6() { (protocol::ICMPV6, [1, 3]) } else { (protocol::ICMP, [3, 1]) };
    let quoted = &packet[..inner.len.min(MAX_QUOTED)];
    let message = [&kind[..], &[0; 6], quoted].concat();
    let mut error = ip_packet(source, inner.source, protocol, &message);
    let (start, len) = (error.len() - message.len(), error.len());
    write_icmp_checksum(&mut error, start, len);
    error
}

fn ip_packet(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let [high, low] = ((20 + payload.len()) as u16).to_be_bytes();
            let start = [0x45, 0, high, low, 0, 0, 0x40, 0, TTL, protocol, 0, 0];
            let mut packet = [&start[..], &source.octets(), &destination.octets(), payload].concat();
            let checksum = Sum::of(&packet[..20]).checksum();
            put_word(&mut packet, 10, checksum);
            packet
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let [high, low] = (payload.len() as u16).to_be_bytes();
            let start = [0x60, 0, 0, 0, high, low, protocol, TTL];
            [&start[..], &source.octets(), &destination.octets(), payload].concat()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::reference_sum;
    use crate::samples::Sample;

    #[test]
    fn a_reset_acknowledges_the_syn_and_has_right_checksums() {
        for v6 in [false, true] {
            let sample = Sample { v6, flags: 2, sequence: u32::MAX, ..Sample::tcp(0) };
            let syn = sample.packet();
            let reset = reset(&syn).expect("a TCP packet");
            let (inner, of_syn) = (Inner::parse(&reset).expect("a packet"), Inner::parse(&syn).expect("a packet"));
            assert_eq!(
                tcp_addresses(&reset, &inner),
                tcp_addresses(&syn, &of_syn).map(crate::relay::Addresses::reversed)
            );
            let tcp = &reset[inner.transport..];
            assert_eq!((tcp.len(), &tcp[4..14]), (20, &[0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x14][..]));
            let pseudo = [super::super::addresses(&reset).expect("IP"), &[0, 6, 0, 20]].concat();
            assert_eq!(reference_sum(&[&pseudo[..], tcp].concat()), 0xffff);
            assert!(v6 || reference_sum(&reset[..20]) == 0xffff);
        }
    }

    #[test]
    fn only_a_syn_without_ack_begins_a_connection() {
        let is_initial = |flags: u8| {
            let packet = Sample { flags, ..Sample::tcp(0) }.packet();
            is_initial_syn(&packet, &Inner::parse(&packet).expect("a packet"))
        };
        assert_eq!([0x02, 0xc2, 0x12, 0x10, 0x04].map(is_initial), [true, true, false, false, false]);
    }

    #[test]
    fn authenticated_segments_are_recognised_by_their_options() {
        let is_authenticated = |options: &[u8]| {
            let packet = Sample { options: options.to_vec(), ..Sample::tcp(0) }.packet();
            is_authenticated(&packet, &Inner::parse(&packet).expect("a packet"))
        };
        assert!(!is_authenticated(&[]));
        assert!(!is_authenticated(&[2, 4, 5, 180, 1, 1, 4, 2]));
        assert!(is_authenticated(&[2, 4, 5, 180, 29, 4, 0, 0]));
        assert!(is_authenticated(&[1, 1, 1, 19]), "even if it is cut off");
        assert!(!is_authenticated(&[0, 19, 18, 0]), "after the end of the options");
        assert!(is_authenticated(&[3, 1, 0, 0]), "malformed");
    }
}
