//! Networks: as text, and those behind a client.

use ipnet::IpNet;
use std::net::IpAddr;

/// The shortest prefixes that a client may announce: the whole 192.168.0.0/16, and a site's /48 (RFC 4193).
const SHORTEST: [u8; 2] = [16, 48];

/// A network such as `10.77.0.1/24`, or an address as a network with this address alone.
#[must_use]
pub fn parse_network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Whether a client may announce a network as one behind it: it has private (RFC 1918) or unique local addresses (RFC
/// 4193), and is no larger than a site's.
#[must_use]
pub fn is_private_lan(network: IpNet) -> bool {
    let is_private = match network.network() {
        IpAddr::V4(first) => first.is_private(),
        IpAddr::V6(first) => first.is_unique_local(),
    };
    is_private && network.prefix_len() >= SHORTEST[usize::from(network.network().is_ipv6())]
}

/// Whether two networks have addresses in common.
#[must_use]
pub fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_name_private_networks_of_a_site_and_no_others() {
        for (network, expected) in [
            ("192.168.50.0/24", true),
            ("10.20.0.0/16", true),
            ("fd12:3456:789a::/48", true),
            ("10.0.0.0/8", false),
            ("0.0.0.0/0", false),
            ("8.8.8.0/24", false),
            ("169.254.0.0/16", false),
            ("fd00::/8", false),
            ("2001:db8::/64", false),
        ] {
            assert_eq!(is_private_lan(network.parse().unwrap()), expected, "{network}");
        }
    }

    #[test]
    fn networks_overlap_if_one_holds_the_other() {
        for (one, other, expected) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.1.0.0/16", "10.0.0.0/8", true),
            ("10.1.0.0/16", "10.2.0.0/16", false),
            ("0.0.0.0/0", "fd00::/8", false),
        ] {
            assert_eq!(overlap(one.parse().unwrap(), other.parse().unwrap()), expected, "{one} {other}");
        }
    }
}
