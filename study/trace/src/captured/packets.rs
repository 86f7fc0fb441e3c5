//! The packets of a capture, in pcap or pcapng: TCP and UDP over IP.

use super::link_layer;
use super::options::Options;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader, traits::PcapReaderIterator};
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The reader's buffer, bytes: more than the longest block.
const BUFFER: usize = 1 << 20;
/// The first bytes of pcap with microseconds and nanoseconds in both orders of bytes, and of pcapng.
const MAGICS: [u32; 5] = [0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1, 0x0a0d_0d0a];
const SUFFIXES: [&str; 3] = ["pcap", "pcapng", "cap"];

/// Whether a file is a capture, by its first bytes or by the end of its name.
#[must_use]
pub fn is_capture(path: &Path) -> bool {
    let has_suffix = || path.extension().is_some_and(|suffix| SUFFIXES.iter().any(|known| suffix == *known));
    let has_magic = |mut file: File| {
        let mut magic = [0; 4];
        file.read_exact(&mut magic).is_ok() && MAGICS.contains(&u32::from_le_bytes(magic))
    };
    path.is_file() && (has_suffix() || File::open(path).is_ok_and(has_magic))
}

/// A packet of TCP or UDP.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Time since the epoch, nanoseconds.
    pub(crate) at_ns: u64,
    /// The name of the interface, if the capture has it.
    pub(crate) interface: Option<Arc<str>>,
    /// Its source and its destination.
    pub(crate) ends: [SocketAddr; 2],
    /// Its size with the IP header, bytes.
    pub(crate) bytes: u32,
    /// The ECN field (RFC 3168, section 5).
    pub(crate) ecn: u8,
    /// The TCP header; none of a datagram.
    pub(crate) tcp: Option<Tcp>,
}

/// A TCP header, and the length of the payload.
#[derive(Clone, Debug)]
pub(crate) struct Tcp {
    pub(crate) seq: u32,
    /// The acknowledgement, with the ACK flag.
    pub(crate) ack: Option<u32>,
    /// The window as it stands in the header.
    pub(crate) window: u16,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) ece: bool,
    pub(crate) cwr: bool,
    /// Payload, bytes.
    pub(crate) len: u32,
    /// The length of the options, bytes.
    pub(crate) options_bytes: u32,
    pub(crate) options: Options,
}

/// How an interface counts time, what its packets begin with, and its name.
struct Interface {
    link: Linktype,
    per_second: u64,
    offset_s: u64,
    name: Option<Arc<str>>,
}

/// A packet as the file has it.
struct Frame<'p> {
    at_ns: u64,
    interface: &'p Interface,
    data: &'p [u8],
    /// The length that it had on the wire.
    size: u32,
}

/// The packets of a capture, one after the other.
pub(crate) struct Packets {
    path: PathBuf,
    reader: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    /// Packets of any kind so far.
    count: u64,
    is_cut: bool,
}

impl Packets {
    /// Opens a capture.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture; the error names it.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let failed = |error: &str| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| failed(&error.to_string()))?;
        let reader = create_reader(BUFFER, file).map_err(|error| match error {
            PcapError::Eof => failed("is empty; a capture is a file in the format pcap or pcapng"),
            _ => failed("is no capture in the format pcap or pcapng"),
        })?;
        Ok(Self { path: path.to_owned(), reader, interfaces: Vec::new(), count: 0, is_cut: false })
    }

    /// The next packet of TCP or UDP; none at the end of the capture, or where it is cut in the middle of a packet.
    ///
    /// # Errors
    /// The capture is damaged, or a packet cannot be read; the error names the file and the packet.
    pub(crate) fn next(&mut self) -> Result<Option<Packet>, String> {
        loop {
            let packet = match self.reader.next() {
                Ok((size, block)) => {
                    let packet = read_block(&block, &mut self.interfaces, &mut self.count);
                    drop(block);
                    self.reader.consume(size);
                    packet
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_)) => self.refill().map(|()| None),
                Err(PcapError::UnexpectedEof) => {
                    self.is_cut = true;
                    return Ok(None);
                }
                Err(_) => Err(self.damaged()),
            };
            if let Some(packet) = packet.map_err(|error| self.error(&error))? {
                return Ok(Some(packet));
            }
        }
    }

    fn refill(&mut self) -> Result<(), String> {
        let before = self.reader.data().len();
        self.reader.refill().map_err(|_| "the file cannot be read further".to_owned())?;
        // A block that needs more than the buffer holds would never be complete.
        if self.reader.data().len() == before && !self.reader.reader_exhausted() {
            return Err(self.damaged());
        }
        Ok(())
    }

    fn damaged(&mut self) -> String {
        self.count += 1;
        "is damaged; `editcap` writes the packets before it to another file".to_owned()
    }

    /// Whether the capture ends with its last packet.
    ///
    /// # Errors
    /// It is cut in the middle of a packet; the error names it.
    pub(crate) fn check_whole(&self) -> Result<(), String> {
        let (whole, file) = (self.count, self.path.display());
        if self.is_cut {
            return Err(format!(
                "{file}: ends in the middle of packet {}; `editcap {file} whole.pcapng` writes the {whole} before it",
                whole + 1
            ));
        }
        Ok(())
    }

    fn error(&self, text: &str) -> String {
        format!("{}: packet {}: {text}", self.path.display(), self.count)
    }
}

/// The packet in a block, if there is one of TCP or UDP. Counts packets, and keeps the interfaces.
fn read_block(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    count: &mut u64,
) -> Result<Option<Packet>, String> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            interfaces.push(Interface { link: header.network, per_second, offset_s: 0, name: None });
        }
        PcapBlockOwned::Legacy(packet) => {
            *count += 1;
            let interface = interfaces.first().ok_or(NO_INTERFACE)?;
            let fraction = u64::from(packet.ts_usec) * (1_000_000_000 / interface.per_second);
            let at_ns = (u64::from(packet.ts_sec) * 1_000_000_000).saturating_add(fraction);
            return read_frame(&Frame { at_ns, interface, data: packet.data, size: packet.origlen });
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => interfaces.push(Interface {
            link: interface.linktype,
            per_second: interface.ts_resolution().unwrap_or(1_000_000).max(1),
            offset_s: u64::try_from(interface.ts_offset()).unwrap_or(0),
            name: interface.if_name().and_then(Result::ok).map(Arc::from),
        }),
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            *count += 1;
            let interface = interfaces.get(packet.if_id as usize).ok_or(NO_INTERFACE)?;
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let (seconds, rest) = (ticks / interface.per_second, ticks % interface.per_second);
            let seconds_ns = seconds.saturating_add(interface.offset_s).saturating_mul(1_000_000_000);
            let rest_ns = u128::from(rest) * 1_000_000_000 / u128::from(interface.per_second);
            let at_ns = seconds_ns.saturating_add(rest_ns as u64);
            let data = &packet.data[..packet.data.len().min(packet.caplen as usize)];
            return read_frame(&Frame { at_ns, interface, data, size: packet.origlen });
        }
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            *count += 1;
            return Err(
                "has no time, because it is in a Simple Packet Block; `tcpdump -w` and dumpcap write times".to_owned()
            );
        }
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
}

const NO_INTERFACE: &str = "its interface is not described before it";

/// The packet in a frame, if it is TCP or UDP.
fn read_frame(frame: &Frame<'_>) -> Result<Option<Packet>, String> {
    let Some(link_header) = link_layer::header_length(frame.interface.link, frame.data)? else { return Ok(None) };
    let data = frame.data.get(link_header..).unwrap_or(&[]);
    let size = frame.size.saturating_sub(link_header as u32);
    let sliced = LaxSlicedPacket::from_ip(data);
    let is_stopped = sliced.as_ref().map_or(true, |packet| packet.transport.is_none() && packet.stop_err.is_some());
    if is_stopped && data.len() < size as usize {
        let kept = frame.data.len();
        return Err(format!("only its first {kept} bytes are kept, and its headers are longer; capture 128 or more"));
    }
    let Ok(LaxSlicedPacket { net: Some(net), transport: Some(transport), .. }) = sliced else { return Ok(None) };
    let Some((addresses, bytes, headers, ecn)) = read_ip(&net, size) else { return Ok(None) };
    let (ports, tcp) = match &transport {
        TransportSlice::Tcp(tcp) => {
            ([tcp.source_port(), tcp.destination_port()], Some(read_tcp(tcp, bytes.saturating_sub(headers))))
        }
        TransportSlice::Udp(udp) => ([udp.source_port(), udp.destination_port()], None),
        _ => return Ok(None),
    };
    let ends = [0, 1].map(|end| SocketAddr::new(addresses[end], ports[end]));
    Ok(Some(Packet { at_ns: frame.at_ns, interface: frame.interface.name.clone(), ends, bytes, ecn, tcp }))
}

/// The addresses of an IP packet, its length, that of its IP headers, and its ECN field. `size` is the length on the wire,
/// which super-segments of more than 64 KiB have only there.
fn read_ip(net: &LaxNetSlice<'_>, size: u32) -> Option<([IpAddr; 2], u32, u32, u8)> {
    let or_size = |length: u32, is_set: bool| if is_set { length } else { size };
    match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let addresses = [IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr())];
            let length = or_size(u32::from(header.total_len()), header.total_len() > 0);
            Some((addresses, length, u32::from(header.ihl()) * 4, header.ecn().value()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let addresses = [IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr())];
            let length = or_size(40 + u32::from(header.payload_length()), header.payload_length() > 0);
            Some((addresses, length, 40 + ip.extensions().slice().len() as u32, header.traffic_class() & 3))
        }
        LaxNetSlice::Arp(_) => None,
    }
}

/// A TCP header in `bytes` bytes with the payload.
fn read_tcp(tcp: &TcpSlice<'_>, bytes: u32) -> Tcp {
    Tcp {
        seq: tcp.sequence_number(),
        ack: tcp.ack().then(|| tcp.acknowledgment_number()),
        window: tcp.window_size(),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        ece: tcp.ece(),
        cwr: tcp.cwr(),
        len: bytes.saturating_sub(u32::from(tcp.data_offset()) * 4),
        options_bytes: tcp.options().len() as u32,
        options: Options::parse(tcp.options()),
    }
}
