//! Network address and port translation of TCP packets, and of the ICMP errors about them (RFC 3022, RFC 5508), by
//! which a driver steers the packets of relayed connections to its own sockets. Checksums are updated, not recomputed
//! (RFC 1624), so that a super-packet costs no more than a small one.

use super::{Inner, protocol};
use crate::checksum::{Sum, pseudo_header_sum};
use crate::reader::{put_word, word};
use crate::relay::Addresses;
use core::net::{IpAddr, SocketAddr};

/// Offset of the checksum in a TCP header.
const TCP_CHECKSUM: usize = 16;
/// Length of an ICMP error before the quoted packet.
const ICMP_HEADER_LEN: usize = 8;

/// Source and destination of a TCP packet whose header is complete. `None` for fragments and other protocols.
#[must_use]
pub fn tcp_addresses(packet: &[u8], inner: &Inner) -> Option<Addresses> {
    let is_tcp = inner.protocol == protocol::TCP && !inner.fragment;
    let (source, destination) =
        inner.ports.filter(|_| is_tcp && inner.transport + 20 <= inner.len.min(packet.len()))?;
    Some(Addresses {
        source: SocketAddr::new(inner.source, source),
        destination: SocketAddr::new(inner.destination, destination),
    })
}

/// Replaces source and destination of a TCP packet by those of `to`, of the same family. `partial` if the checksum is
/// the sum of the pseudo-header alone.
///
/// # Panics
/// If `packet` is not the one of `inner`, for which [`tcp_addresses`] returned addresses.
pub fn translate(packet: &mut [u8], inner: &Inner, to: &Addresses, partial: bool) {
    let (old_addresses, new_addresses) = replace_addresses(packet, inner, to);
    let ports = inner.transport..inner.transport + 4;
    let old_ports = Sum::of(&packet[ports.clone()]);
    write_ports(&mut packet[ports.clone()], to);
    let new_ports = Sum::of(&packet[ports]);
    let offset = inner.transport + TCP_CHECKSUM;
    let old = word(packet, offset);
    let new = if partial {
        changed(old, old_addresses, new_addresses)
    } else {
        !changed(!old, old_addresses.add_sum(old_ports), new_addresses.add_sum(new_ports))
    };
    put_word(packet, offset, new);
}

/// Source and destination of the TCP packet that an ICMP error is about: "unreachable", "time exceeded", "packet too
/// big" and "parameter problem" of both versions.
#[must_use]
pub fn quoted_tcp_addresses(packet: &[u8], inner: &Inner) -> Option<Addresses> {
    let message = packet.get(inner.transport..inner.len)?;
    let is_error = match inner.protocol {
        protocol::ICMP => matches!(message.first()?, 3 | 11 | 12),
        protocol::ICMPV6 => matches!(message.first()?, 1..=4),
        _ => false,
    };
    let (quoted, transport) =
        quoted_headers(message.get(ICMP_HEADER_LEN..)?).filter(|_| is_error && !inner.fragment)?;
    if quoted.0.is_ipv6() != inner.is_v6() {
        return None;
    }
    let port = |offset: usize| word(message, ICMP_HEADER_LEN + transport + offset);
    Some(Addresses { source: SocketAddr::new(quoted.0, port(0)), destination: SocketAddr::new(quoted.1, port(2)) })
}

/// Addresses of a quoted TCP packet, and the offset of its ports. A quotation is shorter than the packet.
fn quoted_headers(quoted: &[u8]) -> Option<((IpAddr, IpAddr), usize)> {
    let (transport, protocol) = match quoted.first()? >> 4 {
        4 if word(quoted.get(..20)?, 6) & 0x1fff == 0 => (usize::from(quoted[0] & 15) * 4, quoted[9]),
        6 => (40, *quoted.get(6)?),
        _ => return None,
    };
    let addresses = super::addresses(quoted)?;
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    quoted.get(transport..transport + 4).filter(|_| protocol == protocol::TCP && transport >= 20)?;
    Some(((ip_address(source)?, ip_address(destination)?), transport))
}

fn ip_address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = octets.first_chunk::<4>().filter(|_| octets.len() == 4).map(|octets| IpAddr::from(*octets));
    v4.or_else(|| octets.first_chunk::<16>().map(|octets| IpAddr::from(*octets)))
}

/// Replaces the addresses of an ICMP error by those of `to`, and source and destination of the TCP packet that it
/// quotes by those of `quoted`.
///
/// # Panics
/// If `packet` is not the one of `inner`, for which [`quoted_tcp_addresses`] returned addresses.
pub fn translate_error(packet: &mut [u8], inner: &Inner, to: &Addresses, quoted: &Addresses) {
    replace_addresses(packet, inner, to);
    let message = &mut packet[inner.transport..inner.len];
    let quotation = &mut message[ICMP_HEADER_LEN..];
    let transport = quoted_headers(quotation).map_or(20, |(_, transport)| transport);
    write_ip_addresses(quotation, quoted);
    if quotation[0] >> 4 == 4 {
        put_word(quotation, 10, 0);
        let checksum = Sum::of(&quotation[..transport]).checksum();
        put_word(quotation, 10, checksum);
    }
    write_ports(&mut quotation[transport..transport + 4], quoted);
    write_icmp_checksum(packet, inner.transport, inner.len);
}

/// Completes the checksum of an ICMP message (RFC 792; RFC 4443, section 2.3).
pub(super) fn write_icmp_checksum(packet: &mut [u8], transport: usize, len: usize) {
    put_word(packet, transport + 2, 0);
    let message = Sum::of(&packet[transport..len]);
    let sum = if packet[0] >> 4 == 6 {
        let pseudo_header = pseudo_header_sum(&packet[8..40], protocol::ICMPV6);
        message.add_sum(pseudo_header).add_word((len - transport) as u16)
    } else {
        message
    };
    put_word(packet, transport + 2, sum.checksum());
}

/// Replaces the addresses of the IP header; returns their sums before and after.
fn replace_addresses(packet: &mut [u8], inner: &Inner, to: &Addresses) -> (Sum, Sum) {
    let range = if inner.is_v6() { 8..40 } else { 12..20 };
    let old = Sum::of(&packet[range.clone()]);
    write_ip_addresses(packet, to);
    let new = Sum::of(&packet[range]);
    if !inner.is_v6() {
        let checksum = !changed(!word(packet, 10), old, new);
        put_word(packet, 10, checksum);
    }
    (old, new)
}

/// A sum after a part of the data has changed (RFC 1624, equation 3).
fn changed(sum: u16, old: Sum, new: Sum) -> u16 {
    Sum::default().add_word(sum).add_word(!old.folded()).add_sum(new).folded()
}

fn write_ip_addresses(packet: &mut [u8], to: &Addresses) {
    match (to.source.ip(), to.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet[12..16].copy_from_slice(&source.octets());
            packet[16..20].copy_from_slice(&destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet[8..24].copy_from_slice(&source.octets());
            packet[24..40].copy_from_slice(&destination.octets());
        }
        _ => unreachable!("source and destination are of one family"),
    }
}

fn write_ports(ports: &mut [u8], to: &Addresses) {
    put_word(ports, 0, to.source.port());
    put_word(ports, 2, to.destination.port());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::reference_sum;
    use crate::samples::{Sample, any_sample};
    use proptest::prelude::*;

    /// Addresses of the internal networks, of a packet's family.
    fn target(v6: bool, ports: (u16, u16)) -> Addresses {
        let ips = if v6 { ["fd72:6f70::1", "fd72:6f70::ffff"] } else { ["198.18.0.0", "198.18.0.1"] };
        let [source, destination] = ips.map(|ip| ip.parse::<IpAddr>().expect("an address"));
        Addresses { source: SocketAddr::new(source, ports.0), destination: SocketAddr::new(destination, ports.1) }
    }

    /// The sum over the pseudo-header and the transport of a packet: 0xffff if its checksum is right.
    fn transport_sum(packet: &[u8], inner: &Inner) -> u16 {
        let transport = &packet[inner.transport..inner.len];
        let addresses = super::super::addresses(packet).expect("an IP packet");
        let pseudo = [addresses, &[0, inner.protocol], &(transport.len() as u32).to_be_bytes()].concat();
        reference_sum(&[&pseudo[..], transport].concat())
    }

    proptest! {
        #[test]
        fn translated_checksums_are_those_of_a_packet_computed_anew(sample in any_sample(), ports: (u16, u16)) {
            let sample = Sample { tcp: true, ..sample };
            let to = target(sample.v6, ports);
            let mut packet = sample.packet();
            let inner = Inner::parse(&packet).expect("a packet");
            let before = tcp_addresses(&packet, &inner).expect("TCP");
            translate(&mut packet, &inner, &to, false);
            let inner = Inner::parse(&packet).expect("a packet");
            prop_assert_eq!(tcp_addresses(&packet, &inner), Some(to));
            prop_assert_eq!(transport_sum(&packet, &inner), 0xffff);
            prop_assert!(sample.v6 || reference_sum(&packet[..20]) == 0xffff);
            translate(&mut packet, &inner, &before, false);
            let original = sample.packet();
            prop_assert_eq!(&packet[..inner.transport + TCP_CHECKSUM], &original[..inner.transport + TCP_CHECKSUM]);
        }

        #[test]
        fn a_translated_partial_checksum_is_the_sum_of_the_new_pseudo_header(sample in any_sample(), ports: (u16, u16)) {
            let sample = Sample { tcp: true, ..sample };
            let (_, mut packet) = sample.with_offload(1000);
            let inner = Inner::parse(&packet).expect("a packet");
            translate(&mut packet, &inner, &target(sample.v6, ports), true);
            let length = (inner.len - inner.transport) as u32;
            let addresses = super::super::addresses(&packet).expect("an IP packet");
            let pseudo = [addresses, &[0, protocol::TCP], &length.to_be_bytes()].concat();
            prop_assert_eq!(word(&packet, inner.transport + TCP_CHECKSUM), reference_sum(&pseudo));
        }

        #[test]
        fn an_icmp_error_is_translated_with_the_packet_that_it_quotes(sample in any_sample(), ports: (u16, u16)) {
            let sample = Sample { tcp: true, ..sample };
            let quoted = sample.packet();
            let router = if sample.v6 { "2001:db8::9" } else { "192.0.2.9" }.parse().expect("an address");
            let mut error = super::super::reply::unreachable(&quoted, router);
            let inner = Inner::parse(&error).expect("a packet");
            let quoted_inner = Inner::parse(&quoted).expect("a packet");
            prop_assert_eq!(quoted_tcp_addresses(&error, &inner), tcp_addresses(&quoted, &quoted_inner));
            let to = target(sample.v6, ports);
            let reverse = to.reversed();
            translate_error(&mut error, &inner, &to, &reverse);
            let inner = Inner::parse(&error).expect("a packet");
            prop_assert_eq!((inner.source, inner.destination), (to.source.ip(), to.destination.ip()));
            prop_assert_eq!(quoted_tcp_addresses(&error, &inner), Some(reverse));
            let sum = if sample.v6 { transport_sum(&error, &inner) } else { reference_sum(&error[20..]) };
            prop_assert_eq!(sum, 0xffff);
            prop_assert!(sample.v6 || reference_sum(&error[..20]) == 0xffff && reference_sum(&error[28..48]) == 0xffff);
        }

        #[test]
        fn no_bytes_are_taken_for_a_quotation_that_is_outside_of_them(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Ok(inner) = Inner::parse(&bytes) && let Some(quoted) = quoted_tcp_addresses(&bytes, &inner) {
                let mut translated = bytes.clone();
                let to = target(quoted.source.is_ipv6(), (1, 2));
                translate_error(&mut translated, &inner, &to, &to);
            }
        }
    }
}
