//! The answer to a packet that does not fit: "fragmentation needed" (ICMP type 3 code 4, RFC 1191) or "packet too big"
//! (ICMPv6 type 2, RFC 4443, section 3.2).

use super::{Inner, protocol};
use crate::checksum::{Sum, pseudo};
use crate::reader::{put_word, word};
use core::net::IpAddr;

/// No ICMP error is longer: RFC 1812, section 4.3.2.3; RFC 4443, section 2.4 (c): the least MTU of IPv6.
const MOST_V4: usize = 576;
const MOST_V6: usize = 1280;
const TTL: u8 = 64;

/// Writes into `out` (which it clears) the ICMP error that tells the sender of `packet` of `mtu`, as it comes `from` an own
/// address of the same family. False if there is nobody to tell: the packet is itself an ICMP error, a later fragment, or
/// its sender no single host (RFC 1122, section 3.2.2; RFC 4443, section 2.4 (e)), or IPv4 allows it to be fragmented.
pub fn reply(packet: &[u8], mtu: u16, from: IpAddr, out: &mut Vec<u8>) -> bool {
    out.clear();
    let Ok(inner) = Inner::parse(packet) else { return false };
    if !answerable(packet, &inner) {
        return false;
    }
    match (from, inner.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => v4(&packet[..inner.len], mtu, from.octets(), to.octets(), out),
        (IpAddr::V6(from), IpAddr::V6(to)) => v6(&packet[..inner.len], mtu, from.octets(), to.octets(), out),
        _ => return false,
    }
    true
}

fn v4(packet: &[u8], mtu: u16, from: [u8; 4], to: [u8; 4], out: &mut Vec<u8>) {
    let quoted = &packet[..packet.len().min(MOST_V4 - 28)];
    let len = (28 + quoted.len()) as u16;
    out.extend_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, TTL, protocol::ICMP, 0, 0]);
    put_word(out, 2, len);
    out.extend_from_slice(&from);
    out.extend_from_slice(&to);
    let checksum = Sum::of(out).checksum();
    put_word(out, 10, checksum);
    out.extend_from_slice(&[3, 4, 0, 0, 0, 0]);
    out.extend_from_slice(&mtu.to_be_bytes());
    out.extend_from_slice(quoted);
    let checksum = Sum::of(&out[20..]).checksum();
    put_word(out, 22, checksum);
}

fn v6(packet: &[u8], mtu: u16, from: [u8; 16], to: [u8; 16], out: &mut Vec<u8>) {
    let quoted = &packet[..packet.len().min(MOST_V6 - 48)];
    let len = (8 + quoted.len()) as u16;
    out.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, protocol::ICMPV6, TTL]);
    put_word(out, 4, len);
    out.extend_from_slice(&from);
    out.extend_from_slice(&to);
    out.extend_from_slice(&[2, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&mtu.to_be_bytes());
    out.extend_from_slice(quoted);
    let sum = pseudo(&out[8..40], protocol::ICMPV6).word(len).plus(Sum::of(&out[40..]));
    put_word(out, 42, sum.checksum());
}

fn answerable(packet: &[u8], inner: &Inner) -> bool {
    let message = packet[..inner.len].get(inner.transport).copied();
    let sender = match inner.source {
        IpAddr::V4(source) => !(source.is_unspecified() || source.is_multicast() || source.is_broadcast()),
        IpAddr::V6(source) => !(source.is_unspecified() || source.is_multicast()),
    };
    sender && if inner.is_v6() { !v6_error(inner, message) } else { answerable_v4(packet, inner, message) }
}

/// Below 128 are errors (RFC 4443, section 2.1). Redirects are not answered either.
fn v6_error(inner: &Inner, message: Option<u8>) -> bool {
    inner.protocol == protocol::ICMPV6 && message.is_none_or(|kind| kind < 128 || kind == 137)
}

fn answerable_v4(packet: &[u8], inner: &Inner, message: Option<u8>) -> bool {
    const DO_NOT_FRAGMENT: u16 = 0x4000;
    const OFFSET: u16 = 0x1fff;
    const QUERIES: [u8; 8] = [0, 8, 9, 10, 13, 14, 17, 18];
    let flags = word(packet, 6);
    let error = inner.protocol == protocol::ICMP && message.is_none_or(|kind| !QUERIES.contains(&kind));
    let single = inner.destination != IpAddr::from([255; 4]) && !inner.destination.is_multicast();
    flags & DO_NOT_FRAGMENT != 0 && flags & OFFSET == 0 && !error && single
}
