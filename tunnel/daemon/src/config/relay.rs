//! Options of the relay: the internal networks, and connections that are never relayed.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use wire::relay::Addresses;

/// The pool of default IPv4 networks: those of RFC 2544, never routed on the Internet.
const IPV4_POOL: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
/// The pool of default IPv6 networks: a unique local prefix (RFC 4193), "ropewalk" in ASCII.
const IPV6_POOL: u128 = Ipv6Addr::new(0xfd72, 0x6f70, 0x6577, 0x616c, 0x6b00, 0, 0, 0).to_bits();

/// Options of `relay = "tcp"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayOptions {
    /// The internal networks, at most one of each family.
    pub networks: Vec<RelayNetwork>,
    /// Connections that are never relayed.
    pub exclude: Vec<RelayExclusion>,
    /// Maximum number of relayed connections with each peer.
    pub max_connections: usize,
}

/// An internal network of two addresses, on the tunnel's device only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayNetwork {
    /// The address of the daemon's sockets.
    pub local: IpAddr,
    /// The address that the daemon's sockets are connected to. No host has it.
    pub remote: IpAddr,
}

/// A rule about connections that are never relayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayExclusion {
    /// Connections from or to this network.
    Network(IpNet),
    /// Connections to these ports of the server.
    Ports(RangeInclusive<u16>),
}

impl RelayOptions {
    /// The default internal networks of a device: its name selects one of 65,536 of each family, so that the tunnels of
    /// one host differ.
    #[must_use]
    pub fn default_networks(device: &str) -> Vec<RelayNetwork> {
        let hash =
            device.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let index = (hash ^ hash >> 16) & 0xffff;
        let (v4, v6) = (IPV4_POOL + 2 * index, IPV6_POOL + 2 * u128::from(index));
        vec![
            RelayNetwork { local: Ipv4Addr::from(v4).into(), remote: Ipv4Addr::from(v4 + 1).into() },
            RelayNetwork { local: Ipv6Addr::from(v6).into(), remote: Ipv6Addr::from(v6 + 1).into() },
        ]
    }

    /// The internal network of an address family.
    #[must_use]
    pub fn network(&self, is_ipv4: bool) -> Option<&RelayNetwork> {
        self.networks.iter().find(|network| network.local.is_ipv4() == is_ipv4)
    }

    /// Whether connections with these addresses are relayed.
    #[must_use]
    pub fn is_relayed(&self, addresses: &Addresses) -> bool {
        let (source, destination) = (addresses.source, addresses.destination);
        let is_excluded = |rule: &RelayExclusion| match rule {
            RelayExclusion::Network(network) => network.contains(&source.ip()) || network.contains(&destination.ip()),
            RelayExclusion::Ports(ports) => ports.contains(&destination.port()),
        };
        let is_internal = |ip: IpAddr| self.networks.iter().any(|network| network.contains(ip));
        // The kernel's translations store IPv4 addresses as IPv4-mapped ones, which no packet may have (RFC 4942,
        // section 2.2).
        let is_ipv4_mapped = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
        self.network(source.is_ipv4()).is_some()
            && source.is_ipv4() == destination.is_ipv4()
            && ![source, destination].iter().any(|address| is_internal(address.ip()) || address.port() == 0)
            && ![source, destination].iter().any(|address| is_ipv4_mapped(address.ip()))
            && !self.exclude.iter().any(is_excluded)
    }
}

impl RelayNetwork {
    /// The two addresses of a `/31` (RFC 3021) or a `/127` (RFC 6164).
    #[must_use]
    pub fn new(network: IpNet) -> Option<Self> {
        let (local, remote) = match network.trunc() {
            IpNet::V4(network) if network.prefix_len() == 31 => both(network),
            IpNet::V6(network) if network.prefix_len() == 127 => both_v6(network),
            _ => return None,
        };
        Some(Self { local, remote })
    }

    /// Whether it is one of the two addresses.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address == self.local || address == self.remote
    }
}

fn both(network: Ipv4Net) -> (IpAddr, IpAddr) {
    (network.network().into(), network.broadcast().into())
}

fn both_v6(network: Ipv6Net) -> (IpAddr, IpAddr) {
    (network.network().into(), network.broadcast().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(source: &str, destination: &str) -> Addresses {
        let parse = |text: &str| text.parse().expect("an address with a port");
        Addresses { source: parse(source), destination: parse(destination) }
    }

    #[test]
    fn the_default_networks_are_a_pair_of_each_family_in_their_pools() {
        for device in ["rw0", "rw1", "tunnel", ""] {
            let networks = RelayOptions::default_networks(device);
            let pools =
                ["198.18.0.0/15", "fd72:6f70:6577:616c:6b00::/111"].map(|pool| pool.parse::<IpNet>().expect("a pool"));
            for (network, (pool, len)) in networks.iter().zip(pools.iter().zip([31, 127])) {
                assert!(pool.contains(&network.local) && pool.contains(&network.remote), "{network:?}");
                let pair = IpNet::new(network.local, len).expect("a network");
                assert_eq!(RelayNetwork::new(pair), Some(*network));
            }
        }
        assert_ne!(RelayOptions::default_networks("rw0"), RelayOptions::default_networks("rw1"));
    }

    #[test]
    fn excluded_networks_ports_and_the_internal_networks_themselves_are_not_relayed() {
        let exclude = vec![
            RelayExclusion::Network("10.0.0.0/8".parse().expect("a network")),
            RelayExclusion::Ports(22..=22),
            RelayExclusion::Ports(5000..=5100),
        ];
        let networks = RelayOptions::default_networks("rw0");
        let local = networks[0].local;
        let options = RelayOptions { networks, exclude, max_connections: 1 };
        let is_relayed = |source: &str, destination: &str| options.is_relayed(&addresses(source, destination));
        assert!(is_relayed("192.0.2.1:22", "192.0.2.2:80"), "the client's port does not matter");
        assert!(is_relayed("[2001:db8::1]:1", "[2001:db8::2]:443"));
        assert!(!is_relayed("192.0.2.1:1000", "192.0.2.2:22"));
        assert!(!is_relayed("192.0.2.1:1000", "192.0.2.2:5100"));
        assert!(!is_relayed("10.1.2.3:1000", "192.0.2.2:80"));
        assert!(!is_relayed("192.0.2.1:1000", "10.1.2.3:80"));
        assert!(!is_relayed("192.0.2.1:1000", "[2001:db8::2]:80"), "two families");
        assert!(!is_relayed("192.0.2.1:1000", &format!("{local}:80")));
        assert!(!is_relayed("192.0.2.1:0", "192.0.2.2:80"));
        assert!(
            !is_relayed("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:80"),
            "another peer's connection in the kernel"
        );
        assert!(!is_relayed("[2001:db8::1]:1", "[::ffff:192.0.2.2]:80"));
    }
}
