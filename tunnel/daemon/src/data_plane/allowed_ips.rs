//! Cryptokey routing, as in WireGuard: finds the peer of an inner address, by the longest prefix of all allowed IPs. It
//! is looked up for the destination of sent packets and for the source of received ones, so that no peer can use
//! another's addresses. In `mpt` mode, which has one peer, only the source is looked up.

use ipnet::IpNet;
use std::net::IpAddr;

/// The networks of one prefix length, left-aligned in 128 bits, in ascending order.
#[derive(Clone, Debug)]
struct Prefixes<T> {
    is_v6: bool,
    mask: u128,
    networks: Vec<(u128, T)>,
}

/// The networks of all peers, the longest prefixes first. A lookup is a binary search for each prefix length in use.
#[derive(Clone, Debug)]
pub(super) struct AllowedIps<T>(Vec<Prefixes<T>>);

impl<T: Copy> AllowedIps<T> {
    /// A table of (network, peer) pairs. Of two equal networks the first counts.
    pub(super) fn new(networks: impl Iterator<Item = (IpNet, T)>) -> Self {
        let mut networks: Vec<_> = networks.map(|(network, peer)| (key(network), peer)).collect();
        networks.sort_by_key(|((is_v6, mask, bits), _)| (std::cmp::Reverse(*mask), *is_v6, *bits));
        networks.dedup_by_key(|(key, _)| *key);
        let mut table: Vec<Prefixes<T>> = Vec::new();
        for ((is_v6, mask, bits), peer) in networks {
            match table.last_mut().filter(|prefixes| (prefixes.is_v6, prefixes.mask) == (is_v6, mask)) {
                Some(prefixes) => prefixes.networks.push((bits, peer)),
                None => table.push(Prefixes { is_v6, mask, networks: vec![(bits, peer)] }),
            }
        }
        Self(table)
    }

    /// The peer that `address` belongs to.
    pub(super) fn find(&self, address: IpAddr) -> Option<T> {
        let (is_v6, bits) = bits(address);
        self.0.iter().filter(|prefixes| prefixes.is_v6 == is_v6).find_map(|Prefixes { mask, networks, .. }| {
            let index = networks.binary_search_by_key(&(bits & mask), |(network, _)| *network).ok()?;
            Some(networks[index].1)
        })
    }
}

/// Whether an address is IPv6, and its bits, left-aligned in 128.
fn bits(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(v4) => (false, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (true, v6.to_bits()),
    }
}

/// Whether a network is IPv6, its mask, and its bits.
fn key(network: IpNet) -> (bool, u128, u128) {
    let (is_v6, bits) = bits(network.addr());
    let mask = u128::MAX.checked_shl(128 - u32::from(network.prefix_len())).unwrap_or(0);
    (is_v6, mask, bits & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins_in_any_order() {
        let lines = ["0.0.0.0/0 0", "10.0.0.0/8 1", "10.1.2.3/32 2", "::/0 3", "fd00:1::/32 4"];
        let networks = lines.iter().map(|line| {
            let (network, peer) = line.split_once(' ').expect("a peer");
            (network.parse().expect("a network"), peer.parse().expect("a peer"))
        });
        let allowed_ips = AllowedIps::new(networks);
        let find = |address: &str| allowed_ips.find(address.parse().expect("an address"));
        let peers = ["192.0.2.1", "10.9.9.9", "10.1.2.3", "fd00:1::5", "2001:db8::1"].map(find);
        assert_eq!(peers, [Some(0), Some(1), Some(2), Some(4), Some(3)]);
        assert_eq!(AllowedIps::<usize>::new(std::iter::empty()).find(IpAddr::from([10, 0, 0, 1])), None);
    }
}
