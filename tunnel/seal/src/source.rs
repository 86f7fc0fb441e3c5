//! Source addresses of handshake messages, and the networks that they are charged to.

/// Octets of an IPv6 address and a port.
const MAX_LEN: usize = 18;

/// The first octets of an IPv4 address mapped into IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED_PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// An IP address with or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    octets: [u8; MAX_LEN],
    len: usize,
}

impl Source {
    /// The source with the octets of an IP address and then of a port; further octets are cut off.
    pub(crate) fn new(octets: &[u8]) -> Self {
        let octets = octets.strip_prefix(&MAPPED_PREFIX).filter(|rest| rest.len() == 6).unwrap_or(octets);
        let octets = &octets[..octets.len().min(MAX_LEN)];
        let mut source = Self { octets: [0; MAX_LEN], len: octets.len() };
        source.octets[..octets.len()].copy_from_slice(octets);
        source
    }

    /// The address without the port.
    pub(crate) fn address(&self) -> Self {
        Self::new(self.prefix(16, 4))
    }

    /// The addresses of one customer: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub(crate) fn host(&self) -> &[u8] {
        self.prefix(8, 4)
    }

    /// The addresses of one site: the first 24 bits of an IPv4 address, or 48 bits of an IPv6 address.
    pub(crate) fn site(&self) -> &[u8] {
        self.prefix(6, 3)
    }

    /// The first octets of an IPv6 or an IPv4 address.
    fn prefix(&self, ipv6: usize, ipv4: usize) -> &[u8] {
        let length = if self.len >= 16 { ipv6 } else { ipv4 };
        &self.octets[..length.min(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_source_is_charged_to_its_64_and_its_48() {
        let source = Source::new(&[0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x12, 0x92]);
        assert_eq!((source.host(), source.site()), (&source.octets[..8], &source.octets[..6]));
        assert_eq!(source.address(), Source::new(&source.octets[..16]));
    }

    #[test]
    fn an_ipv4_source_is_charged_to_its_address_and_its_24_also_if_mapped() {
        let source = Source::new(&[192, 0, 2, 7, 0x12, 0x92]);
        assert_eq!((source.host(), source.site()), (&[192, 0, 2, 7][..], &[192, 0, 2][..]));
        assert_eq!(source.address(), Source::new(&[192, 0, 2, 7]));
        let mapped = [&MAPPED_PREFIX[..], &[192, 0, 2, 7, 0x12, 0x92]].concat();
        assert_eq!(Source::new(&mapped), source);
    }
}
