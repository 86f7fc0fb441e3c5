//! Which peer an inner address belongs to: the longest prefix of all allowed networks. Asked for the destination of what
//! goes out and for the source of what comes in, so that no peer can speak for another.

use std::net::IpAddr;

/// One network.
#[derive(Clone, Copy, Debug)]
struct Network<T> {
    v6: bool,
    bits: u128,
    mask: u128,
    peer: T,
}

/// The networks of all peers, the longest prefixes first.
#[derive(Clone, Debug)]
pub(super) struct Routing<T>(Vec<Network<T>>);

impl<T: Copy> Routing<T> {
    /// From (address, prefix length, peer). Of two equal networks the first counts.
    pub(super) fn new(networks: impl Iterator<Item = (IpAddr, u8, T)>) -> Self {
        let mut networks: Vec<Network<T>> = networks.map(network).collect();
        networks.sort_by_key(|network| std::cmp::Reverse(network.mask));
        Self(networks)
    }

    /// The peer that `address` belongs to.
    pub(super) fn find(&self, address: IpAddr) -> Option<T> {
        let (v6, bits) = bits(address);
        let network = self.0.iter().find(|network| network.v6 == v6 && bits & network.mask == network.bits);
        network.map(|network| network.peer)
    }
}

/// Both families left-aligned in 128 bits.
fn bits(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(v4) => (false, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (true, v6.to_bits()),
    }
}

fn network<T>((address, prefix, peer): (IpAddr, u8, T)) -> Network<T> {
    let (v6, bits) = bits(address);
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
    Network { v6, bits: bits & mask, mask, peer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins_whatever_the_order() {
        let text = ["0.0.0.0/0 0", "10.0.0.0/8 1", "10.1.2.3/32 2", "::/0 3", "fd00:1::/32 4"];
        let networks = text.iter().map(|line| {
            let (address, rest) = line.split_once('/').expect("a prefix");
            let (prefix, peer) = rest.split_once(' ').expect("a peer");
            (address.parse().expect("an address"), prefix.parse().expect("a length"), peer.parse().expect("a peer"))
        });
        let routing = Routing::new(networks);
        let find = |address: &str| routing.find(address.parse().expect("an address"));
        let asked = ["192.0.2.1", "10.9.9.9", "10.1.2.3", "fd00:1::5", "2001:db8::1"];
        assert_eq!(asked.map(find), [Some(0), Some(1), Some(2), Some(4), Some(3)]);
        assert_eq!(Routing::<usize>::new(std::iter::empty()).find(IpAddr::from([10, 0, 0, 1])), None);
    }
}
