//! The inner networks that a token may name: they get routes into the tunnel, so a wrong one would capture other traffic.

use ipnet::IpNet;
use std::net::IpAddr;

/// The shortest prefixes of inner networks: 10.0.0.0/8 is the largest private network of IPv4; /32 is the allocation of an
/// IPv6 provider.
const MIN_PREFIX_LEN: [u8; 2] = [8, 32];

/// Checks the inner addresses of a token, with their networks. If one overlaps a device's network, the plan says so
/// (`client_uplinks`).
///
/// # Errors
/// The first address that no inner network may have, and the reason.
pub(super) fn check(addresses: &[IpNet]) -> Result<(), String> {
    addresses.iter().try_for_each(|network| match reason(*network) {
        Some(reason) => Err(format!(
            "the token's inner network {network} {reason}; `ropewalk setup server --subnet` chooses another one"
        )),
        None => Ok(()),
    })
}

fn reason(network: IpNet) -> Option<String> {
    let min_prefix_len = MIN_PREFIX_LEN[usize::from(network.addr().is_ipv6())];
    if network.prefix_len() < min_prefix_len {
        return Some(format!("is too large (at least /{min_prefix_len})"));
    }
    if is_special([network.network(), network.addr(), network.broadcast()]) {
        return Some(
            "consists of addresses that no network has: loopback, link-local, multicast or unspecified".into(),
        );
    }
    None
}

fn is_special(addresses: [IpAddr; 3]) -> bool {
    let is_link_local = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast() || address.octets()[0] == 0,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let is_special = |address: &IpAddr| {
        address.is_loopback() || address.is_multicast() || address.is_unspecified() || is_link_local(address)
    };
    addresses.iter().any(is_special)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_token_takes_no_network_that_is_not_the_tunnels() {
        let check = |text: &str| super::check(&[text.parse().unwrap()]);
        for text in ["10.77.0.2/24", "172.16.0.2/12", "fd77::2/64", "2001:db8:77::2/32", "100.64.0.2/10"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for (text, reason) in [
            ("10.77.0.2/0", "too large"),
            ("10.77.0.2/7", "too large"),
            ("fd77::2/31", "too large"),
            ("::2/0", "too large"),
            ("127.0.0.2/8", "loopback"),
            ("::1/128", "loopback"),
            ("169.254.7.2/24", "link-local"),
            ("fe80::2/64", "link-local"),
            ("224.0.0.2/8", "multicast"),
            ("ff02::2/64", "multicast"),
            ("0.0.0.2/8", "unspecified"),
        ] {
            assert!(check(text).is_err_and(|error| error.contains(reason)), "{text}: {:?}", check(text));
        }
    }
}
