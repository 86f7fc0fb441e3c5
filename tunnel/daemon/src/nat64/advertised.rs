//! NAT64 prefixes (PREF64, RFC 8781) and resolvers (RDNSS, RFC 8106) from router advertisements: options that the
//! kernel leaves to user space, and passes on to listeners (RTM_NEWNDUSEROPT).

use super::Known;
use super::prefix::Prefix;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsRawFd;

/// The bit of RTNLGRP_ND_USEROPT, which is group 20.
const GROUP: u32 = 1 << 19;
const RTM_NEWNDUSEROPT: u16 = 68;
/// Bytes of `struct nlmsghdr`, and of `struct nduseroptmsg`.
const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 16;
const AF_INET6: u8 = 10;
const RDNSS: u8 = 25;
const PREF64: u8 = 38;
/// Larger than any message.
const BUFFER_BYTES: usize = 8192;

/// Listens on a separate thread until the process ends. If it fails, the resolvers remain as a source.
///
/// # Errors
/// The kernel's.
pub(crate) fn listen() -> io::Result<()> {
    let (kind, protocol) = (SockType::Raw, SockProtocol::NetlinkRoute);
    let descriptor = socket(AddressFamily::Netlink, kind, SockFlag::SOCK_CLOEXEC, protocol)?;
    bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, GROUP))?;
    let receive = move || {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match nix::unistd::read(&descriptor, &mut buffer) {
                Ok(len) => note(&buffer[..len]),
                // Messages were lost (ENOBUFS): routers repeat theirs.
                Err(Errno::EINTR | Errno::ENOBUFS) => {}
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().name("nd-options".into()).spawn(receive).map(drop)
}

/// A device's index, and options of neighbour discovery.
type Options<'a> = (u32, &'a [u8]);

/// Stores the prefixes and resolvers of messages.
fn note(mut bytes: &[u8]) {
    while let Some((message, rest)) = message(bytes) {
        if let Some((index, options)) = message
            && let Ok(device) = nix::net::if_::if_indextoname(index)
            && let Ok(device) = device.into_string()
        {
            let (prefixes, resolvers) = advertised(options);
            Known::add(&device, &prefixes, &resolvers);
        }
        bytes = rest;
    }
}

/// The device's index and the options of the first message, if it has any, and the remaining messages.
fn message(bytes: &[u8]) -> Option<(Option<Options<'_>>, &[u8])> {
    let header = bytes.get(..HEADER_BYTES)?;
    let len = u32::from_ne_bytes(header[..4].try_into().ok()?) as usize;
    let body = bytes.get(HEADER_BYTES..len)?;
    let rest = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    let kind = u16::from_ne_bytes([header[4], header[5]]);
    let options = (kind == RTM_NEWNDUSEROPT).then(|| options(body)).flatten();
    Some((options, rest))
}

/// The device's index, and the options, of a `struct nduseroptmsg`: family, padding, length of the options (2), index (4).
fn options(body: &[u8]) -> Option<Options<'_>> {
    let head = body.get(..MESSAGE_BYTES)?;
    let len = usize::from(u16::from_ne_bytes([head[2], head[3]]));
    let options = body.get(MESSAGE_BYTES..MESSAGE_BYTES + len)?;
    (head[0] == AF_INET6).then_some((u32::from_ne_bytes(head[4..8].try_into().ok()?), options))
}

/// The prefixes and resolvers of options of neighbour discovery (RFC 4861, section 4.6).
fn advertised(mut options: &[u8]) -> (Vec<Prefix>, Vec<Ipv6Addr>) {
    let (mut prefixes, mut resolvers) = (Vec::new(), Vec::new());
    while let [kind, units, ..] = *options {
        let len = usize::from(units) * 8;
        let Some(option) = options.get(..len).filter(|_| len > 0) else { break };
        match kind {
            PREF64 => prefixes.extend(pref64(option)),
            RDNSS => {
                let addresses = option.get(8..).unwrap_or_default().chunks_exact(16);
                resolvers.extend(addresses.filter_map(|octets| <[u8; 16]>::try_from(octets).ok().map(Ipv6Addr::from)));
            }
            _ => {}
        }
        options = &options[len..];
    }
    (prefixes, resolvers)
}

/// The prefix of an option: its lifetime (13 bits) and the code of its length (3 bits), and its first 96 bits. A lifetime of
/// 0 withdraws it.
fn pref64(option: &[u8]) -> Option<Prefix> {
    let [_, _, high, low, bits @ ..] = <[u8; 16]>::try_from(option).ok()?;
    let len = *[96, 64, 56, 48, 40, 32].get(usize::from(low & 7))?;
    let lifetime = u16::from_be_bytes([high, low]) >> 3;
    let mut octets = [0; 16];
    octets[..12].copy_from_slice(&bits);
    (lifetime > 0).then(|| Prefix::new(octets.into(), len))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2001:db8:64::/96 for 600 s, as in an advertisement.
    const OPTION: [u8; 16] = [38, 2, 0x02, 0x58, 0x20, 0x01, 0x0d, 0xb8, 0, 0x64, 0, 0, 0, 0, 0, 0];

    fn message_of(options: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((32 + options.len() as u32).to_ne_bytes());
        bytes.extend(RTM_NEWNDUSEROPT.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend([AF_INET6, 0]);
        bytes.extend((options.len() as u16).to_ne_bytes());
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend([134, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes
    }

    #[test]
    fn prefixes_and_resolvers_are_read_and_any_bytes_are_taken() {
        let resolver: Ipv6Addr = "2001:db8::53".parse().unwrap();
        let mut options = OPTION.to_vec();
        options.extend([RDNSS, 3, 0, 0, 0, 0, 2, 0x58]);
        options.extend(resolver.octets());
        let bytes = message_of(&options);
        let (found, rest) = message(&bytes).unwrap();
        assert_eq!((found, rest), (Some((7, &options[..])), &[][..]));
        let prefix = Prefix::new("2001:db8:64::".parse().unwrap(), 96).unwrap();
        assert_eq!(advertised(&options), (vec![prefix], vec![resolver]));
        let mut withdrawn = OPTION;
        (withdrawn[2], withdrawn[3]) = (0, 0);
        assert_eq!(advertised(&withdrawn), (vec![], vec![]));
        for end in 0..bytes.len() {
            note(&bytes[..end]);
            let mut damaged = bytes.clone();
            damaged[end] ^= 0xff;
            note(&damaged);
        }
        note(&[0; 64]);
    }
}
