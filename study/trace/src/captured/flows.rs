//! TCP flows of a capture, in pcap or pcapng.

use super::packets::{Packet, Packets, Tcp};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

/// A segment as its sender or receiver saw it. Numbers count from the first byte of its direction, which the SYN has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Time since the flow's first packet, nanoseconds.
    pub at_ns: u64,
    /// Whether the flow's opener sends it.
    pub of_opener: bool,
    /// Number of its first byte.
    pub seq: u64,
    /// Payload, bytes.
    pub len: u32,
    /// Number of the next byte that its sender expects; none without the ACK flag.
    pub ack: Option<u64>,
    /// SYN, FIN, RST, ECE and CWR, as a letter each.
    pub flags: String,
    /// SACK blocks.
    pub sack: Vec<(u64, u64)>,
}

/// A TCP flow of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// The opener's and the other's address.
    pub ends: [SocketAddr; 2],
    /// Its segments in the capture's order; super-segments are divided.
    pub segments: Vec<Segment>,
    start_ns: u64,
    /// The greatest segment that both accept, bytes.
    mss: Option<u32>,
    /// The first number of each direction.
    first: [Option<u32>; 2],
}

/// The TCP flows of a capture, in the order of their first packets. One that was interrupted ends in the middle of a packet;
/// what is whole is read.
///
/// # Errors
/// The file cannot be read, is no capture, or is damaged; the error names it.
pub(crate) fn flows(path: &Path) -> Result<Vec<Flow>, String> {
    let (mut packets, mut flows) = (Packets::open(path)?, Flows::default());
    while let Some(packet) = packets.next()? {
        if let Some(tcp) = &packet.tcp {
            flows.segment(&packet, tcp);
        }
    }
    Ok(flows.in_order)
}

#[derive(Default)]
struct Flows {
    in_order: Vec<Flow>,
    /// The place of each flow by its ends, in both orders.
    of: HashMap<[SocketAddr; 2], usize>,
}

impl Flows {
    fn segment(&mut self, packet: &Packet, tcp: &Tcp) {
        let [from, to] = packet.ends;
        let is_opening = tcp.syn && tcp.ack.is_none();
        let known = self.of.get(&[from, to]).copied().filter(|index| {
            // The same ports again, for another connection.
            !is_opening || self.in_order[*index].first[0] == Some(tcp.seq)
        });
        let index = known.unwrap_or_else(|| {
            let index = self.in_order.len();
            self.of.insert([from, to], index);
            self.of.insert([to, from], index);
            let start_ns = packet.at_ns;
            self.in_order.push(Flow { ends: [from, to], segments: Vec::new(), start_ns, mss: None, first: [None; 2] });
            index
        });
        self.in_order[index].add(packet, tcp);
    }
}

impl Flow {
    fn add(&mut self, packet: &Packet, tcp: &Tcp) {
        let of_opener = packet.ends[0] == self.ends[0];
        let [own, other] = if of_opener { [0, 1] } else { [1, 0] };
        let first = *self.first[own].get_or_insert(tcp.seq);
        if let Some(ack) = tcp.ack {
            self.first[other].get_or_insert(ack.wrapping_sub(1));
        }
        if let Some(mss) = tcp.options.mss.map(u32::from) {
            self.mss = Some(self.mss.map_or(mss, |known| known.min(mss)));
        }
        let sack =
            tcp.options.sack.iter().map(|[start, end]| (self.relative(other, *start), self.relative(other, *end)));
        let sack: Vec<_> = sack.collect();
        let flags = [(tcp.syn, 'S'), (tcp.fin, 'F'), (tcp.rst, 'R'), (tcp.ece, 'E'), (tcp.cwr, 'W')];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| *letter).collect();
        let seq = self.near(own, u64::from(tcp.seq.wrapping_sub(first)));
        let ack = tcp.ack.map(|ack| self.relative(other, ack));
        // The MSS does not count options.
        let piece = self.mss.map_or(u32::MAX, |mss| mss.saturating_sub(tcp.options_bytes).max(1));
        let at_ns = packet.at_ns.saturating_sub(self.start_ns);
        let mut offset = 0;
        loop {
            let len = piece.min(tcp.len - offset);
            let flags = flags.clone();
            let seq = seq + u64::from(offset);
            self.segments.push(Segment { at_ns, of_opener, seq, len, ack, flags, sack: sack.clone() });
            offset += len;
            if offset >= tcp.len || len == 0 {
                break;
            }
        }
    }

    /// A number of a direction, counted from its first.
    fn relative(&self, direction: usize, number: u32) -> u64 {
        let first = self.first[direction].unwrap_or(number);
        self.near(direction, u64::from(number.wrapping_sub(first)))
    }

    /// The number among those that are equal modulo 2^32 that is nearest to the direction's latest.
    fn near(&self, direction: usize, number: u64) -> u64 {
        let latest = self.segments.iter().rev().find(|segment| segment.of_opener == (direction == 0));
        let latest = latest.map_or(0, |segment| segment.seq);
        let candidate = (latest & !0xffff_ffff) | number;
        let half = 1 << 31;
        match candidate {
            candidate if candidate + half < latest => candidate + (1 << 32),
            candidate if candidate > latest + half && candidate >= 1 << 32 => candidate - (1 << 32),
            candidate => candidate,
        }
    }
}
