//! TCP flows of a capture, in pcap or pcapng.

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use pcap_parser::data::{PacketData, get_packetdata};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::collections::HashMap;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The reader's buffer, bytes: more than the longest block.
const BUFFER: usize = 1 << 20;
/// Bytes of a TCP header without options.
const TCP_HEADER: u32 = 20;
const ETHERNET: Linktype = Linktype::ETHERNET;

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

/// A packet's time and TCP header.
struct Packet<'p> {
    at_ns: u64,
    ends: [SocketAddr; 2],
    len: u32,
    tcp: TcpSlice<'p>,
}

/// The TCP flows of a capture, in the order of their first packets.
///
/// # Errors
/// The file cannot be read, or is no capture; the error names it.
pub(crate) fn flows(path: &Path) -> Result<Vec<Flow>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| failed(&error))?;
    let no_capture = |_| failed(&"is no capture in the format pcap or pcapng");
    let mut reader = create_reader(BUFFER, file).map_err(no_capture)?;
    let (mut flows, mut clocks) = (Flows::default(), Vec::new());
    loop {
        match reader.next() {
            Ok((size, block)) => {
                flows.block(&block, &mut clocks);
                reader.consume(size);
            }
            Err(PcapError::Eof) => return Ok(flows.in_order),
            Err(PcapError::Incomplete(_)) => reader.refill().map_err(|error| failed(&error))?,
            // A capture that was interrupted ends in the middle of a packet.
            Err(PcapError::UnexpectedEof) => return Ok(flows.in_order),
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// How an interface counts time, and what its packets begin with.
struct Clock {
    link: Linktype,
    per_second: u64,
    offset_s: u64,
}

#[derive(Default)]
struct Flows {
    in_order: Vec<Flow>,
    /// The place of each flow by its ends, in both orders.
    of: HashMap<[SocketAddr; 2], usize>,
}

impl Flows {
    fn block(&mut self, block: &PcapBlockOwned<'_>, clocks: &mut Vec<Clock>) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                clocks.push(Clock { link: header.network, per_second, offset_s: 0 });
            }
            PcapBlockOwned::Legacy(packet) => {
                let Some(clock) = clocks.first() else { return };
                let fraction = u64::from(packet.ts_usec) * (1_000_000_000 / clock.per_second);
                let at_ns = (u64::from(packet.ts_sec) * 1_000_000_000).saturating_add(fraction);
                self.packet(at_ns, clock.link, packet.data);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => clocks.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => clocks.push(Clock {
                link: interface.linktype,
                per_second: interface.ts_resolution().unwrap_or(1_000_000).max(1),
                offset_s: u64::try_from(interface.ts_offset()).unwrap_or(0),
            }),
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(clock) = clocks.get(packet.if_id as usize) else { return };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let (seconds, rest) = (ticks / clock.per_second, ticks % clock.per_second);
                let seconds_ns = seconds.saturating_add(clock.offset_s).saturating_mul(1_000_000_000);
                let rest_ns = u128::from(rest) * 1_000_000_000 / u128::from(clock.per_second);
                let len = packet.data.len().min(packet.caplen as usize);
                self.packet(seconds_ns.saturating_add(rest_ns as u64), clock.link, &packet.data[..len]);
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    fn packet(&mut self, at_ns: u64, link: Linktype, data: &[u8]) {
        let sliced = if link == ETHERNET {
            LaxSlicedPacket::from_ethernet(data).ok()
        } else {
            match get_packetdata(data, link, data.len()) {
                Some(PacketData::L3(_, data)) => LaxSlicedPacket::from_ip(data).ok(),
                _ => None,
            }
        };
        let Some(LaxSlicedPacket { net: Some(net), transport: Some(TransportSlice::Tcp(tcp)), .. }) = sliced else {
            return;
        };
        let (from, to, ip_payload) = match &net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let len = u32::from(header.total_len()).saturating_sub(u32::from(header.ihl()) * 4);
                (IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr()), len)
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let len = u32::from(header.payload_length());
                (IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr()), len)
            }
            LaxNetSlice::Arp(_) => return,
        };
        let ends = [SocketAddr::new(from, tcp.source_port()), SocketAddr::new(to, tcp.destination_port())];
        let len = ip_payload.saturating_sub(u32::from(tcp.data_offset()) * 4);
        self.segment(&Packet { at_ns, ends, len, tcp });
    }

    fn segment(&mut self, packet: &Packet<'_>) {
        let Packet { at_ns, ends: [from, to], tcp, .. } = packet;
        let is_opening = tcp.syn() && !tcp.ack();
        let known = self.of.get(&[*from, *to]).copied().filter(|index| {
            // The same ports again, for another connection.
            !is_opening || self.in_order[*index].first[0] == Some(tcp.sequence_number())
        });
        let index = known.unwrap_or_else(|| {
            let index = self.in_order.len();
            self.of.insert([*from, *to], index);
            self.of.insert([*to, *from], index);
            let ends = [*from, *to];
            self.in_order.push(Flow { ends, segments: Vec::new(), start_ns: *at_ns, mss: None, first: [None; 2] });
            index
        });
        self.in_order[index].add(packet);
    }
}

impl Flow {
    fn add(&mut self, packet: &Packet<'_>) {
        let Packet { at_ns, ends: [from, _], len, tcp } = packet;
        let of_opener = *from == self.ends[0];
        let [own, other] = if of_opener { [0, 1] } else { [1, 0] };
        let first = *self.first[own].get_or_insert(tcp.sequence_number());
        if tcp.ack() {
            self.first[other].get_or_insert(tcp.acknowledgment_number().wrapping_sub(1));
        }
        let mut sack = Vec::new();
        for option in tcp.options_iterator().map_while(Result::ok) {
            match option {
                TcpOptionElement::MaximumSegmentSize(mss) => {
                    self.mss = Some(self.mss.map_or(u32::from(mss), |known| known.min(u32::from(mss))));
                }
                TcpOptionElement::SelectiveAcknowledgement(block, others) => {
                    let relative = |number: u32| self.relative(other, number);
                    let blocks = std::iter::once(block).chain(others.into_iter().flatten());
                    sack.extend(blocks.map(|(start, end)| (relative(start), relative(end))));
                }
                _ => {}
            }
        }
        let flags = [(tcp.syn(), 'S'), (tcp.fin(), 'F'), (tcp.rst(), 'R'), (tcp.ece(), 'E'), (tcp.cwr(), 'W')];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| *letter).collect();
        let seq = self.near(own, u64::from(tcp.sequence_number().wrapping_sub(first)));
        let ack = tcp.ack().then(|| self.relative(other, tcp.acknowledgment_number()));
        // The MSS does not count options.
        let options = (u32::from(tcp.data_offset()) * 4).saturating_sub(TCP_HEADER);
        let piece = self.mss.map_or(u32::MAX, |mss| mss.saturating_sub(options).max(1));
        let at_ns = at_ns.saturating_sub(self.start_ns);
        let mut offset = 0;
        loop {
            let len = piece.min(len - offset);
            let flags = flags.clone();
            let seq = seq + u64::from(offset);
            self.segments.push(Segment { at_ns, of_opener, seq, len, ack, flags, sack: sack.clone() });
            offset += len;
            if offset >= packet.len || len == 0 {
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
