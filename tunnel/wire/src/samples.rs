//! Packets for tests, encoded independently of the code under test.

use crate::check::reference_sum;
use crate::virtio::{Gso, GsoType, PartialChecksum, VirtioNetHeader};
use proptest::prelude::*;

/// A TCP or UDP packet.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) v6: bool,
    pub(crate) tcp: bool,
    pub(crate) tos: u8,
    pub(crate) id: u16,
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    pub(crate) window: u8,
    /// A multiple of four bytes.
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Sample {
    pub(crate) fn tcp(payload: usize) -> Self {
        let payload = (0..payload).map(|byte| (byte * 7 + byte / 256) as u8).collect();
        Self {
            v6: false,
            tcp: true,
            tos: 0,
            id: 1,
            sequence: 1000,
            flags: 0x18,
            window: 16,
            options: Vec::new(),
            payload,
        }
    }

    fn addresses(&self) -> Vec<u8> {
        if !self.v6 {
            return vec![192, 0, 2, 1, 198, 51, 100, 2];
        }
        let host = |last: u8| [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        [host(1), host(2)].concat()
    }

    fn pseudo(&self, len: usize) -> Vec<u8> {
        let protocol = if self.tcp { 6 } else { 17 };
        [&self.addresses()[..], &[0, protocol], &(len as u32).to_be_bytes()].concat()
    }

    pub(crate) fn checksum_offset(&self) -> usize {
        if self.tcp { 16 } else { 6 }
    }

    /// Header and payload, with a checksum of 0.
    fn transport(&self) -> Vec<u8> {
        let mut header = vec![0x1f, 0x90, 0xc0, 0x01];
        if self.tcp {
            header.extend_from_slice(&self.sequence.to_be_bytes());
            header.extend_from_slice(&[9, 8, 7, 6, (5 + self.options.len() as u8 / 4) << 4, self.flags]);
            header.extend_from_slice(&[self.window, 0, 0, 0, 0, 0]);
            header.extend_from_slice(&self.options);
        } else {
            header.extend_from_slice(&((8 + self.payload.len()) as u16).to_be_bytes());
            header.extend_from_slice(&[0, 0]);
        }
        [header, self.payload.clone()].concat()
    }

    fn ip(&self, len: usize) -> Vec<u8> {
        let protocol = if self.tcp { 6 } else { 17 };
        if self.v6 {
            let [high, low] = (len as u16).to_be_bytes();
            let start = [0x60 | self.tos >> 4, self.tos << 4 | 3, 2, 1, high, low, protocol, 64];
            return [&start[..], &self.addresses()].concat();
        }
        let [high, low] = (len as u16 + 20).to_be_bytes();
        let [id_high, id_low] = self.id.to_be_bytes();
        let start = [0x45, self.tos, high, low, id_high, id_low, 0x40, 0, 64, protocol, 0, 0];
        let mut header = [&start[..], &self.addresses()].concat();
        let checksum = !reference_sum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    fn with_checksum(&self, checksum: impl Fn(&[u8], &[u8]) -> u16) -> Vec<u8> {
        let mut transport = self.transport();
        let checksum = checksum(&self.pseudo(transport.len()), &transport);
        let offset = self.checksum_offset();
        transport[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
        [self.ip(transport.len()), transport].concat()
    }

    /// The packet with complete checksums.
    pub(crate) fn packet(&self) -> Vec<u8> {
        self.with_checksum(|pseudo, transport| match !reference_sum(&[pseudo, transport].concat()) {
            0 if !self.tcp => 0xffff,
            checksum => checksum,
        })
    }

    /// The packet as read from a device: with a partial checksum, and with GSO if its payload is longer than `size`.
    pub(crate) fn with_offload(&self, size: u16) -> (VirtioNetHeader, Vec<u8>) {
        let packet = self.with_checksum(|pseudo, _| reference_sum(pseudo));
        let gso_type = match (self.tcp, self.v6) {
            (true, false) => GsoType::TcpV4,
            (true, true) => GsoType::TcpV6,
            (false, _) => GsoType::UdpL4,
        };
        let start = if self.v6 { 40 } else { 20 };
        let offload = VirtioNetHeader {
            checksum: Some(PartialChecksum { start, offset: self.checksum_offset() as u16 }),
            data_valid: false,
            gso: (self.payload.len() > usize::from(size)).then_some(Gso {
                gso_type,
                size,
                cwr: self.tcp && self.flags & 0x80 != 0,
            }),
            hdr_len: (packet.len() - self.payload.len()) as u16,
        };
        (offload, packet)
    }

    /// The segments of `size`, each encoded on its own.
    pub(crate) fn segments(&self, size: u16) -> Vec<Vec<u8>> {
        let payloads: Vec<_> = self.payload.chunks(usize::from(size)).collect();
        let segment = |(index, payload): (usize, &&[u8])| {
            let cleared_flags = if index + 1 < payloads.len() { 0x09 } else { 0 } | if index > 0 { 0x80 } else { 0 };
            Self {
                id: self.id.wrapping_add(index as u16),
                sequence: self.sequence.wrapping_add((index * usize::from(size)) as u32),
                flags: self.flags & !cleared_flags,
                payload: payload.to_vec(),
                ..self.clone()
            }
        };
        payloads.iter().enumerate().map(segment).map(|sample| sample.packet()).collect()
    }

    /// Segments as they are sent: a single one is a packet whose checksum is completed, where 0 is written as 0xffff
    /// (as by Linux's `skb_checksum_help`).
    pub(crate) fn sent(&self, mut segments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        if let [packet] = &mut segments[..] {
            let field = if self.v6 { 40 } else { 20 } + self.checksum_offset();
            if packet[field..field + 2] == [0, 0] {
                packet[field..field + 2].fill(0xff);
            }
        }
        segments
    }
}

prop_compose! {
    /// Any packet whose payload is neither empty nor too long.
    pub(crate) fn any_sample()(v6: bool, tcp: bool, tos: u8, id: u16, sequence: u32, flags in 0..=255_u8,
                               options in 0..=10_usize, byte: u8,
                               payload in proptest::collection::vec(any::<u8>(), 1..3000)) -> Sample {
        Sample { v6, tcp, tos, id, sequence, flags, window: byte, options: vec![byte; 4 * options], payload }
    }
}
