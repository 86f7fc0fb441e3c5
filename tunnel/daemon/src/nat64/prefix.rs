//! Prefixes in which IPv6 addresses carry IPv4 addresses (RFC 6052, section 2.2).

use std::net::{Ipv4Addr, Ipv6Addr};

/// The addresses of `ipv4only.arpa` (RFC 7050, section 8.1).
const WELL_KNOWN_ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];

/// A prefix of 32, 40, 48, 56, 64 or 96 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// The other octets are 0.
    octets: [u8; 16],
    len: u8,
}

impl Prefix {
    /// 64:ff9b::/96 (RFC 6052, section 2.1).
    pub(crate) const WELL_KNOWN: Self =
        Self { octets: Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0).octets(), len: 96 };
    const LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

    /// The prefix of the first `len` bits of an address; `None` if the length is invalid.
    pub(super) fn new(address: Ipv6Addr, len: u8) -> Option<Self> {
        let mut octets = address.octets();
        octets[usize::from(len.min(128)).div_ceil(8)..].fill(0);
        Self::LENGTHS.contains(&len).then_some(Self { octets, len })
    }

    /// The positions of the four octets, which skip octet 8 (bits 64 to 71 are 0).
    fn places(self) -> [usize; 4] {
        let mut places = [0; 4];
        let free = (usize::from(self.len) / 8..16).filter(|place| *place != 8);
        places.iter_mut().zip(free).for_each(|(place, free)| *place = free);
        places
    }

    /// The address that stands for an IPv4 address.
    pub(super) fn embed(self, address: Ipv4Addr) -> Ipv6Addr {
        let mut octets = self.octets;
        self.places().into_iter().zip(address.octets()).for_each(|(place, octet)| octets[place] = octet);
        octets.into()
    }

    /// The IPv4 address that an address stands for, if it is of this prefix.
    pub(super) fn extract(self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let octets = address.octets();
        let v4 = Ipv4Addr::from(self.places().map(|place| octets[place]));
        (self.embed(v4) == address).then_some(v4)
    }

    /// The prefix by which an address was made for `ipv4only.arpa` (RFC 7050, section 3).
    pub(super) fn of_well_known_name(address: Ipv6Addr) -> Option<Self> {
        let mut prefixes = Self::LENGTHS.into_iter().filter_map(|len| Self::new(address, len));
        let is_it =
            |prefix: &Self| prefix.extract(address).is_some_and(|address| WELL_KNOWN_ADDRESSES.contains(&address));
        prefixes.find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of RFC 6052, section 2.4, for 192.0.2.33.
    const TABLE: [(&str, u8, &str); 6] = [
        ("2001:db8::", 32, "2001:db8:c000:221::"),
        ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
        ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
    ];

    #[test]
    fn addresses_are_embedded_as_in_the_table_of_rfc_6052() {
        let v4 = Ipv4Addr::new(192, 0, 2, 33);
        for (prefix, len, expected) in TABLE {
            let prefix = Prefix::new(prefix.parse().unwrap(), len).unwrap();
            let expected: Ipv6Addr = expected.parse().unwrap();
            assert_eq!(prefix.embed(v4), expected, "{len}");
            assert_eq!(prefix.extract(expected), Some(v4), "{len}");
        }
        assert_eq!(Prefix::new(Ipv6Addr::LOCALHOST, 95), None);
        assert_eq!(Prefix::WELL_KNOWN.extract(Ipv6Addr::LOCALHOST), None);
    }

    #[test]
    fn each_length_is_recognised_by_the_addresses_of_the_well_known_name() {
        for (prefix, len, _) in TABLE {
            let prefix = Prefix::new(prefix.parse().unwrap(), len).unwrap();
            for address in WELL_KNOWN_ADDRESSES {
                assert_eq!(Prefix::of_well_known_name(prefix.embed(address)), Some(prefix), "{len}");
            }
        }
        assert_eq!(Prefix::of_well_known_name("2001:db8::1".parse().unwrap()), None);
    }
}
