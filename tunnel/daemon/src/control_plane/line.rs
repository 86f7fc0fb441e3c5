//! The versions of IP of a line, which select the endpoint.

use super::diagnosis::{Devices, has_usable_address};
use super::uplinks::with_runtime;
use crate::config::ConfiguredPath;
use crate::nat64;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineAddresses {
    has_ipv4: bool,
    /// Whether it has an IPv6 address that hosts other than its neighbours can answer to.
    has_ipv6: bool,
    /// Whether a device of this host translates IPv4 to IPv6 (464XLAT, RFC 6877), which is a line of its own.
    is_translated: bool,
}

impl LineAddresses {
    fn of(device: &str, devices: &Devices) -> Self {
        let [has_ipv4, has_ipv6] = [true, false].map(|is_ipv4| has_usable_address(devices, device, is_ipv4));
        let is_translated = devices.networks().any(|(_, network)| is_translators(network.addr()));
        Self { has_ipv4, has_ipv6, is_translated }
    }
}

/// Whether an address is one of a translator's: 192.0.0.0/29 (RFC 7335).
fn is_translators(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(v4) if u32::from(v4) & !7 == u32::from(Ipv4Addr::new(192, 0, 0, 0)))
}

/// The addresses of an endpoint that the line of a path reaches: those of its versions of IP, if it has any address. For a line
/// with only IPv6, IPv4 addresses are translated, unless a device of this host does that already. Takes at most a
/// second.
pub(crate) fn reached_by(path: &ConfiguredPath, addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    // A source has selected the family.
    let Some(device) = path.interface.as_deref().filter(|_| path.source.is_none()) else { return addresses };
    let line = LineAddresses::of(device, &Devices::read());
    match of_versions(line, &addresses) {
        Some(reached) => reached,
        None => nat64::translate(device, &addresses, &gateways(device)),
    }
}

/// The addresses of the line's versions of IP, or all of them; `None` if they have to be translated.
fn of_versions(line: LineAddresses, addresses: &[SocketAddr]) -> Option<Vec<SocketAddr>> {
    let has = |address: &&SocketAddr| if address.is_ipv4() { line.has_ipv4 } else { line.has_ipv6 };
    let reached: Vec<_> = addresses.iter().filter(has).copied().collect();
    if !reached.is_empty() {
        return Some(reached);
    }
    let is_to_translate = line.has_ipv6 && !line.is_translated;
    (!is_to_translate).then(|| addresses.to_vec())
}

/// The IPv6 routers of a device. Runs on a separate thread, because this one may run the control loop.
fn gateways(device: &str) -> Vec<Ipv6Addr> {
    let read = || -> io::Result<Vec<Ipv6Addr>> {
        let index = nix::net::if_::if_nametoindex(device)?;
        let routes = with_runtime(|routes| async move { routes.default_routes(false).await })?;
        let gateways = routes.into_iter().filter(|route| route.device == index).filter_map(|route| route.gateway);
        let v6 = gateways.filter_map(|gateway| match gateway {
            IpAddr::V6(v6) => Some(v6),
            IpAddr::V4(_) => None,
        });
        Ok(v6.collect())
    };
    let read = std::thread::scope(|scope| scope.spawn(read).join());
    read.ok().and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_of_the_versions_of_ip_of_its_line() {
        let [v4, v6]: [SocketAddr; 2] = ["192.0.2.1:4754", "[2001:db8::1]:4754"].map(|text| text.parse().unwrap());
        let of = |own: &[(&str, &str)], addresses: &[SocketAddr]| {
            of_versions(LineAddresses::of("eth2", &Devices::with_networks(own)), addresses)
        };
        let (ipv4, ipv6) = (("eth2", "198.51.100.2/24"), ("eth2", "2001:db8:7::2/64"));
        let (link_local, clat) = (("eth2", "fe80::1/64"), ("clat0", "192.0.0.1/32"));
        assert_eq!(of(&[ipv4, link_local], &[v6, v4]), Some(vec![v4]));
        assert_eq!(of(&[ipv6], &[v4, v6]), Some(vec![v6]));
        assert_eq!(of(&[ipv4, ipv6], &[v4, v6]), Some(vec![v4, v6]));
        assert_eq!(of(&[ipv4], &[v6]), Some(vec![v6]), "its cause is told");
        assert_eq!(of(&[], &[v4, v6]), Some(vec![v4, v6]), "it has none yet");
        assert_eq!(of(&[ipv6], &[v4]), None, "NAT64");
        assert_eq!(of(&[ipv6, clat], &[v4]), Some(vec![v4]), "464XLAT is a line of its own");
    }
}
