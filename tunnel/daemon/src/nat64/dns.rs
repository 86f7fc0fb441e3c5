//! The query for `ipv4only.arpa` (RFC 7050), sent on a device to all resolvers of its network at once.

use super::prefix::Prefix;
use seal::{Entropy, SystemEntropy};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};

/// The time for the first answer.
const TIMEOUT: Duration = Duration::from_secs(1);
const PORT: u16 = 53;
/// The longest answer without an extension (RFC 1035, section 2.3.4).
const MAX_ANSWER: usize = 512;
const HEADER_BYTES: usize = 12;
/// Type AAAA, class IN.
const AAAA_IN: [u8; 4] = [0, 28, 0, 1];
/// `ipv4only.arpa`, as labels.
const NAME: &[u8] = b"\x08ipv4only\x04arpa\x00";
/// Maximum number of resolvers that are queried.
const MAX_RESOLVERS: usize = 8;

/// The resolvers of a device's network: those that systemd knows, those that routers advertised, those of the host, and the
/// routers themselves.
pub(super) fn resolvers(device: &str, advertised: &[Ipv6Addr], gateways: &[Ipv6Addr]) -> Vec<Ipv6Addr> {
    let index = nix::net::if_::if_nametoindex(device).unwrap_or(0);
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let systemd = [format!("/run/systemd/resolve/netif/{index}"), format!("/run/systemd/netif/links/{index}")];
    let systemd = systemd.map(read).join("\n");
    let systemd = systemd.lines().filter_map(|line| line.strip_prefix("SERVERS=").or(line.strip_prefix("DNS=")));
    let host = read("/etc/resolv.conf".into());
    let host = host.lines().filter_map(|line| line.trim().strip_prefix("nameserver "));
    let texts = systemd.flat_map(str::split_whitespace).chain(host.map(str::trim));
    let addresses = texts.filter_map(|text| text.split('%').next()?.parse::<IpAddr>().ok());
    let known = addresses.filter_map(|address| match address {
        IpAddr::V6(v6) if !v6.is_loopback() => Some(v6),
        _ => None,
    });
    let mut resolvers = Vec::new();
    for resolver in known.chain(advertised.iter().copied()).chain(gateways.iter().copied()) {
        if !resolvers.contains(&resolver) && resolvers.len() < MAX_RESOLVERS {
            resolvers.push(resolver);
        }
    }
    resolvers
}

/// The prefixes from the first resolver that returns any.
pub(super) fn prefixes(device: &str, resolvers: &[Ipv6Addr]) -> Vec<Prefix> {
    ask(device, resolvers).unwrap_or_default()
}

fn ask(device: &str, resolvers: &[Ipv6Addr]) -> io::Result<Vec<Prefix>> {
    let mut socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind_device(Some(device.as_bytes()))?;
    let index = nix::net::if_::if_nametoindex(device)?;
    let mut id = [0; 2];
    SystemEntropy.fill(&mut id);
    let question = question(id);
    let mut asked = 0;
    for resolver in resolvers {
        let address = SocketAddr::V6(SocketAddrV6::new(*resolver, PORT, 0, index));
        asked += usize::from(socket.send_to(&question, &address.into()).is_ok());
    }
    let start = Instant::now();
    while asked > 0 {
        let left = TIMEOUT.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        let mut buffer = [0; MAX_ANSWER];
        // An error concerns one resolver, or is the timeout.
        let Ok(len) = socket.read(&mut buffer) else { continue };
        let Some(addresses) = answers(&buffer[..len], id) else { continue };
        let mut prefixes: Vec<_> = addresses.into_iter().filter_map(Prefix::of_well_known_name).collect();
        prefixes.dedup();
        if !prefixes.is_empty() {
            return Ok(prefixes);
        }
        asked -= 1;
    }
    Ok(Vec::new())
}

/// A query with recursion desired (RFC 1035, section 4).
fn question(id: [u8; 2]) -> Vec<u8> {
    [&id[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0], NAME, &AAAA_IN].concat()
}

/// The addresses in an answer to the query; `None` if it is not an answer.
fn answers(bytes: &[u8], id: [u8; 2]) -> Option<Vec<Ipv6Addr>> {
    let header = bytes.get(..HEADER_BYTES)?;
    let is_response = header[2] & 0x80 != 0;
    let question = bytes.get(HEADER_BYTES..HEADER_BYTES + NAME.len() + AAAA_IN.len())?;
    let is_ours = question[..NAME.len()].eq_ignore_ascii_case(NAME) && question[NAME.len()..] == AAAA_IN;
    if header[..2] != id || !is_response || header[4..6] != [0, 1] || !is_ours {
        return None;
    }
    let mut rest = &bytes[HEADER_BYTES + question.len()..];
    let mut addresses = Vec::new();
    for _ in 0..u16::from_be_bytes([header[6], header[7]]) {
        let Some((record, after)) = record(rest) else { break };
        addresses.extend(record);
        rest = after;
    }
    Some(addresses)
}

/// The address of a resource record, if it is an AAAA record, and the bytes after the record.
fn record(bytes: &[u8]) -> Option<(Option<Ipv6Addr>, &[u8])> {
    let bytes = after_name(bytes)?;
    let (kind, length) = (bytes.get(..4)?, bytes.get(8..10)?);
    let end = 10 + usize::from(u16::from_be_bytes([length[0], length[1]]));
    let data = bytes.get(10..end)?;
    let octets: Option<[u8; 16]> = data.try_into().ok();
    Some((octets.filter(|_| *kind == AAAA_IN).map(Ipv6Addr::from), &bytes[end..]))
}

/// The bytes after a name, which is labels up to an empty one or to a pointer (RFC 1035, section 4.1.4).
fn after_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let length = usize::from(*bytes.first()?);
        match length {
            0 => return bytes.get(1..),
            0xc0.. => return bytes.get(2..),
            _ => bytes = bytes.get(1 + length..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 2] = [7, 9];

    fn answer(addresses: &[&str]) -> Vec<u8> {
        let mut bytes = question(ID);
        (bytes[2], bytes[7]) = (0x81, addresses.len() as u8 + 1);
        // An alias before the addresses.
        bytes.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 12]);
        for address in addresses {
            bytes.extend([0xc0, 12]);
            bytes.extend(AAAA_IN);
            bytes.extend([0, 0, 0, 9, 0, 16]);
            bytes.extend(address.parse::<Ipv6Addr>().unwrap().octets());
        }
        bytes
    }

    #[test]
    fn the_addresses_of_an_answer_are_read_and_of_any_beginning_without_a_panic() {
        let texts = ["64:ff9b::c000:aa", "64:ff9b::c000:ab"];
        let bytes = answer(&texts);
        let expected: Vec<Ipv6Addr> = texts.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(answers(&bytes, ID), Some(expected));
        for end in 0..bytes.len() {
            assert!(answers(&bytes[..end], ID).is_none_or(|found| found.len() < 2), "{end}");
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0xff;
            let _ = answers(&damaged, ID);
        }
        assert_eq!(answers(&bytes, [7, 8]), None, "the answer to another question");
        assert_eq!(answers(&question(ID), ID), None, "a question");
    }
}
