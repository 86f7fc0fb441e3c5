//! IPv4 endpoints on lines with only IPv6: the network translates (NAT64, RFC 6146) packets to addresses that contain
//! an IPv4 address after the network's prefix (RFC 6052). The prefix is found by resolving `ipv4only.arpa` with the
//! line's resolvers (RFC 7050), and in router advertisements (PREF64, RFC 8781), as far as the kernel passes them on.
//! Otherwise the well-known prefix is used, as in many networks.

mod advertised;
mod dns;
mod prefix;

pub(crate) use advertised::listen;
pub(crate) use prefix::Prefix;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// Maximum number of prefixes, and of resolvers, of a device.
const MAX_KNOWN: usize = 8;

/// What is known about devices, by name. It is global to the process, as the host's network is.
static KNOWN: Mutex<BTreeMap<String, Known>> = Mutex::new(BTreeMap::new());

/// The prefixes and resolvers found for a device's network, the latest last.
#[derive(Clone, Debug, Default)]
struct Known {
    prefixes: Vec<Prefix>,
    resolvers: Vec<Ipv6Addr>,
}

impl Known {
    fn of(device: &str) -> Self {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(device).cloned().unwrap_or_default()
    }

    fn add(device: &str, prefixes: &[Prefix], resolvers: &[Ipv6Addr]) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(device.to_owned()).or_default();
        renew(&mut known.prefixes, prefixes);
        renew(&mut known.resolvers, resolvers);
    }
}

/// Moves the entries of `found` to the end of `known`.
fn renew<T: Copy + PartialEq>(known: &mut Vec<T>, found: &[T]) {
    known.retain(|value| !found.contains(value));
    known.extend(found);
    known.drain(..known.len().saturating_sub(MAX_KNOWN));
}

/// The addresses by which a device with only IPv6 reaches IPv4 addresses: by each prefix that its network announces,
/// otherwise by the well-known one. Asks the line's resolvers, which takes at most a second.
pub(crate) fn translate(device: &str, addresses: &[SocketAddr], gateways: &[Ipv6Addr]) -> Vec<SocketAddr> {
    let resolvers = dns::resolvers(device, &Known::of(device).resolvers, gateways);
    Known::add(device, &dns::prefixes(device, &resolvers), &[]);
    let mut prefixes = Known::of(device).prefixes;
    prefixes.reverse();
    if !prefixes.contains(&Prefix::WELL_KNOWN) {
        prefixes.push(Prefix::WELL_KNOWN);
    }
    let translate = |prefix: Prefix| {
        addresses.iter().filter_map(move |address| match address.ip() {
            IpAddr::V4(v4) => Some(SocketAddr::new(prefix.embed(v4).into(), address.port())),
            IpAddr::V6(_) => None,
        })
    };
    prefixes.into_iter().flat_map(translate).collect()
}

/// The IPv4 address that an address stands for by a prefix of the device's network.
pub(crate) fn translated(device: &str, address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let mut prefixes = Known::of(device).prefixes;
    prefixes.push(Prefix::WELL_KNOWN);
    prefixes.into_iter().find_map(|prefix| prefix.extract(v6))
}
