//! IPv4 packets of TCP, limited to what a replay needs (RFC 791, RFC 9293, RFC 7323, RFC 2018).

use std::net::Ipv4Addr;

/// Flags of TCP's header.
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const ECE: u8 = 0x40;
pub(super) const CWR: u8 = 0x80;

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const PROTOCOL_TCP: u8 = 6;
const TTL: u8 = 64;

/// Kinds of TCP's options.
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// A packet of the peer; its payload is zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerPacket {
    pub(super) flags: u8,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) window: u16,
    pub(super) options: Vec<u8>,
    /// Bytes of payload.
    pub(super) payload: usize,
    /// The ECN codepoint.
    pub(super) ecn: u8,
}

impl PeerPacket {
    /// With the options of a SYN.
    pub(super) fn offers(mut self, mss: u16, sack: bool, scale: u8) -> Self {
        self.options.extend([MSS, 4]);
        self.options.extend(mss.to_be_bytes());
        if sack {
            self.options.extend([NOP, NOP, SACK_PERMITTED, 2]);
        }
        self.options.extend([NOP, WINDOW_SCALE, 3, scale]);
        self
    }

    /// With timestamps: TSval and TSecr.
    pub(super) fn stamped(mut self, tsval: u32, tsecr: u32) -> Self {
        self.options.extend([NOP, NOP, TIMESTAMPS, 10]);
        self.options.extend(tsval.to_be_bytes());
        self.options.extend(tsecr.to_be_bytes());
        self
    }

    /// With SACK blocks.
    pub(super) fn sacking(mut self, blocks: &[(u32, u32)]) -> Self {
        if !blocks.is_empty() {
            self.options.extend([NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
            let edges = blocks.iter().flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()]);
            self.options.extend(edges.flatten());
        }
        self
    }

    /// Its bytes, with checksums.
    pub(super) fn encode(&self, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
        let header_bytes = TCP_HEADER + self.options.len();
        let tcp_bytes = header_bytes + self.payload;
        let mut tcp = Vec::with_capacity(tcp_bytes);
        tcp.extend(from.1.to_be_bytes());
        tcp.extend(to.1.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([(header_bytes as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.resize(tcp_bytes, 0);
        let mut pseudo: Vec<u8> = [from.0.octets(), to.0.octets()].concat();
        pseudo.extend([0, PROTOCOL_TCP]);
        pseudo.extend((tcp_bytes as u16).to_be_bytes());
        pseudo.extend(&tcp);
        let sum = checksum(&pseudo).to_be_bytes();
        tcp[16..18].copy_from_slice(&sum);
        let mut ip = vec![0x45, self.ecn];
        ip.extend(((IP_HEADER + tcp_bytes) as u16).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, TTL, PROTOCOL_TCP, 0, 0]);
        ip.extend(from.0.octets());
        ip.extend(to.0.octets());
        let sum = checksum(&ip).to_be_bytes();
        ip[10..12].copy_from_slice(&sum);
        ip.extend(tcp);
        ip
    }
}

/// The internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

/// A packet that the kernel sent, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelPacket {
    pub(super) to: Ipv4Addr,
    pub(super) source_port: u16,
    pub(super) flags: u8,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// The window's field, which is not scaled.
    pub(super) window: u16,
    /// Bytes of payload.
    pub(super) payload: u32,
    pub(super) tsval: Option<u32>,
    /// The window scale of a SYN.
    pub(super) scale: Option<u8>,
    /// SACK blocks.
    pub(super) sack: Vec<(u32, u32)>,
}

impl KernelPacket {
    /// Reads a packet; `None` if it is not a complete packet of TCP over IPv4.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let ip = bytes.get(..IP_HEADER)?;
        let header = usize::from(ip[0] & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        if ip[0] >> 4 != 4 || ip[9] != PROTOCOL_TCP {
            return None;
        }
        let tcp = bytes.get(header..total)?;
        let offset = usize::from(tcp.get(12)? >> 4) * 4;
        let options = tcp.get(TCP_HEADER..offset)?;
        let word = |at: usize| Some(u32::from_be_bytes(tcp.get(at..at + 4)?.try_into().ok()?));
        Some(Self {
            to: Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]),
            source_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            flags: tcp[13],
            seq: word(4)?,
            ack: word(8)?,
            window: u16::from_be_bytes([tcp[14], tcp[15]]),
            payload: (tcp.len() - offset) as u32,
            tsval: option(options, TIMESTAMPS)
                .and_then(|value| value.first_chunk())
                .map(|tsval| u32::from_be_bytes(*tsval)),
            scale: option(options, WINDOW_SCALE).and_then(|value| value.first().copied()),
            sack: option(options, SACK).map(sack_blocks).unwrap_or_default(),
        })
    }
}

/// The value of an option of this kind.
fn option(mut options: &[u8], kind: u8) -> Option<&[u8]> {
    loop {
        match *options {
            [] | [END, ..] | [_] => return None,
            [NOP, ref rest @ ..] => options = rest,
            [found, length, ..] if found == kind => return options.get(2..usize::from(length)),
            [_, length, ..] => options = options.get(usize::from(length).max(2)..)?,
        }
    }
}

fn sack_blocks(value: &[u8]) -> Vec<(u32, u32)> {
    let edge = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    value.chunks_exact(8).map(|block| (edge(block), edge(&block[4..]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let (from, to) = ((Ipv4Addr::new(10, 0, 0, 2), 80), (Ipv4Addr::new(10, 0, 0, 1), 4000));
        let packet = PeerPacket { flags: SYN | ACK, seq: 7, ack: 9, window: 100, payload: 3, ..PeerPacket::default() };
        let bytes = packet.offers(1000, true, 7).stamped(5, 6).sacking(&[(1, 2)]).encode(from, to);
        let read = KernelPacket::read(&bytes).unwrap();
        let expected = KernelPacket {
            to: to.0,
            source_port: 80,
            flags: SYN | ACK,
            seq: 7,
            ack: 9,
            window: 100,
            payload: 3,
            tsval: Some(5),
            scale: Some(7),
            sack: vec![(1, 2)],
        };
        assert_eq!(read, expected);
        // A sum over what includes a right checksum is zero.
        assert_eq!(checksum(&bytes[..IP_HEADER]), 0);
        for length in 0..bytes.len() {
            assert_eq!(KernelPacket::read(&bytes[..length]), None);
        }
    }
}
