//! An Ethernet frame in an emulated link, whose IP header has the ECN field.

use super::tap::ETHERNET;
use link::{EcnField, Packet};

/// Type of a frame with IPv4.
const IPV4: [u8; 2] = [0x08, 0x00];
/// Type of a frame with IPv6.
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bytes of an IPv4 header without options, and fewer than those of IPv6.
const LEAST_HEADER: usize = 20;
/// Bits of the ECN field in IPv4's second byte; in IPv6's second byte they stand four bits higher.
const ECN: u8 = 0b11;

/// An Ethernet frame. The disciplines of an emulated link do not classify: all frames are of one flow.
#[derive(Debug)]
pub(super) struct Frame(pub(super) Box<[u8]>);

impl Frame {
    /// How far the ECN field is from the end of the second byte of the IP header, bits; `None` for a frame without IP.
    fn ecn_shift(&self) -> Option<u8> {
        let kind = self.0.get(ETHERNET - 2..ETHERNET).filter(|_| self.0.len() >= ETHERNET + LEAST_HEADER)?;
        match kind {
            kind if kind == IPV4 => Some(0),
            kind if kind == IPV6 => Some(4),
            _ => None,
        }
    }
}

impl Packet for Frame {
    fn bytes(&self) -> u32 {
        self.0.len().saturating_sub(ETHERNET) as u32
    }

    fn flow(&self) -> u16 {
        0
    }

    fn ecn(&self) -> EcnField {
        let field = self.ecn_shift().map(|shift| self.0[ETHERNET + 1] >> shift & ECN);
        match field {
            Some(0b01) => EcnField::Ect1,
            Some(0b10) => EcnField::Ect0,
            Some(0b11) => EcnField::Ce,
            _ => EcnField::NotEct,
        }
    }

    /// Sets congestion experienced, and updates the checksum of IPv4 (RFC 1624, equation 3).
    fn mark(&mut self) {
        let Some(shift) = self.ecn_shift() else { return };
        let before = self.0[ETHERNET + 1];
        self.0[ETHERNET + 1] |= ECN << shift;
        if shift == 0 {
            let header = &mut self.0[ETHERNET..ETHERNET + LEAST_HEADER];
            let sum = !u16::from_be_bytes([header[10], header[11]]);
            // A mark only sets bits, so that the word grows by this.
            let (sum, carry) = sum.overflowing_add(u16::from(header[1] - before));
            header[10..12].copy_from_slice(&(!(sum + u16::from(carry))).to_be_bytes());
        }
    }

    fn duplicate(&mut self) -> Self {
        Self(self.0.clone())
    }

    /// Flips the last bit, which belongs to the payload if there is one.
    fn corrupt(&mut self) {
        if let Some(last) = self.0.last_mut() {
            *last ^= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with this type, whose IP header begins with `header`.
    fn frame(kind: [u8; 2], header: &[u8]) -> Frame {
        let rest = vec![0; 60 - header.len()];
        Frame([&[0; 12], &kind[..], header, &rest].concat().into())
    }

    /// The sum of RFC 1071 over an IPv4 header with its checksum: 0xffff if it is right.
    fn sum(frame: &Frame) -> u16 {
        let words = frame.0[ETHERNET..ETHERNET + LEAST_HEADER].chunks_exact(2);
        words.map(|word| u16::from_be_bytes([word[0], word[1]])).fold(0, |sum, word| {
            let (sum, carry) = sum.overflowing_add(word);
            sum + u16::from(carry)
        })
    }

    /// The first header is a known example; identifiers move the sum to where a mark carries.
    #[test]
    fn a_mark_sets_the_field_and_keeps_the_checksum_of_ipv4_right() {
        let example = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
            0x00, 0xc7,
        ];
        assert_eq!(sum(&frame(IPV4, &example)), 0xffff);
        for (ect, expected) in [(0b01, EcnField::Ect1), (0b10, EcnField::Ect0)] {
            for identifier in [0, 0xb861 - ect, 0xb862 - ect, 0xffff] {
                let mut header = example;
                header[1] |= ect as u8;
                header[4..6].copy_from_slice(&u16::to_be_bytes(identifier));
                header[10..12].fill(0);
                let checksum = !sum(&frame(IPV4, &header));
                header[10..12].copy_from_slice(&checksum.to_be_bytes());
                let mut frame = frame(IPV4, &header);
                assert_eq!((frame.ecn(), sum(&frame)), (expected, 0xffff));
                frame.mark();
                assert_eq!((frame.ecn(), sum(&frame)), (EcnField::Ce, 0xffff), "{identifier:x}");
            }
        }
    }

    #[test]
    fn a_mark_of_ipv6_leaves_the_other_bits() {
        let mut marked = frame(IPV6, &[0x6a, 0xa5, 0xbc, 0xde]);
        assert_eq!(marked.ecn(), EcnField::Ect0);
        marked.mark();
        assert_eq!((marked.ecn(), &marked.0[ETHERNET..ETHERNET + 4]), (EcnField::Ce, &[0x6a, 0xb5, 0xbc, 0xde][..]));
    }

    #[test]
    fn what_is_not_ip_has_no_mark() {
        let arp = [0x08, 0x06];
        for mut frame in [frame(arp, &[0xff; 20]), Frame([0; 10].into()), Frame([IPV4; 8].concat().into())] {
            let before = frame.0.clone();
            frame.mark();
            assert_eq!((frame.ecn(), frame.0), (EcnField::NotEct, before));
        }
    }
}
