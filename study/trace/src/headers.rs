//! Packets of the simulator as bytes: Ethernet, IP, TCP or UDP. Sequence numbers count bytes, and checksums are correct.

use crate::options::{Keys, Options};
use crate::streams::Stream;
use etherparse::PacketBuilder;
use etherparse::err::packet::BuildWriteError;
use link::EcnField;
use scenario::model::{Experiment, Tunnel};
use sim::{Crossing, Direction, HeaderSizes, Simulation, TracedContent, TracedPacket};
use std::collections::BTreeMap;
use transport::tcp::{Ack, Segment, SegmentKind};
use units::Instant;

/// The maximum scale of a window (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;
const TCP_HEADER: u32 = 20;
const IPV4: u32 = 20;
const UDP_HEADER: u32 = 8;
/// GRE with a sequence number (RFC 2890).
const GRE_HEADER: u32 = 8;
const ETHERNET: u32 = 14;
/// The port of a flow's receiver is this number plus the flow's number.
const RECEIVER_PORT: u16 = 5001;
/// The port of its sender is this number plus the connection's or subflow's number.
const SENDER_PORT: u16 = 40_000;
/// The port of GRE in UDP (RFC 8086), which both tunnels use.
const TUNNEL_PORT: u16 = 4754;

/// A packet as bytes.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// Its first bytes: all headers, and the payload if that is wanted.
    pub(crate) bytes: Vec<u8>,
    /// Its size with the Ethernet header.
    pub(crate) size: u32,
    /// Comments with information that the bytes do not have.
    pub(crate) comments: Vec<&'static str>,
}

/// Makes bytes of packets.
#[derive(Debug)]
pub(crate) struct Encoder {
    sizes: Vec<Option<HeaderSizes>>,
    /// The IP header of a tunnel's datagrams, bytes.
    outer_ip: u32,
    has_payload: bool,
    /// The subflow's or connection's bytes.
    streams: BTreeMap<(u16, u16), Stream>,
    /// The data of an MPTCP connection.
    data: BTreeMap<u16, Stream>,
    /// The subflow that opened each MPTCP connection.
    first_subflow: BTreeMap<u16, u16>,
    /// The bytes of requests that each connection has carried.
    requested: BTreeMap<(u16, u16), u64>,
    sent: u16,
}

/// The contents of a TCP header.
struct TcpHeader {
    seq: u64,
    ack: Option<u64>,
    window: u64,
    syn: bool,
    psh: bool,
    cwr: bool,
    ece: bool,
    options: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(experiment: &Experiment, simulation: &Simulation, has_payload: bool) -> Self {
        let outer_ip = |tunnel: &Tunnel| {
            let headers = UDP_HEADER + if tunnel.ropewalk.is_some() { 0 } else { GRE_HEADER };
            tunnel.overhead.saturating_sub(headers)
        };
        Self {
            sizes: (0..experiment.flows.len()).map(|flow| simulation.header_sizes(flow)).collect(),
            outer_ip: experiment.tunnel.as_ref().map_or(IPV4, outer_ip),
            has_payload,
            streams: BTreeMap::new(),
            data: BTreeMap::new(),
            first_subflow: BTreeMap::new(),
            requested: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Notes the byte numbers of a sent packet. It is called for every packet, captured or not.
    pub(crate) fn on_sent(&mut self, packet: &TracedPacket) {
        let Some(sizes) = self.sizes(packet.flow) else { return };
        let key = (packet.flow, packet.connection);
        match packet.content {
            TracedContent::Tcp { first, segments, payload } if first.kind == SegmentKind::Data => {
                let stream = self.streams.entry(key).or_default();
                let all = u64::from(packet.bytes - sizes.tcp);
                let whole = u64::from(segments - 1) * u64::from(payload);
                (0..u64::from(segments - 1)).for_each(|index| stream.on_sent(first.seq + index, u64::from(payload)));
                stream.on_sent(first.seq + u64::from(segments - 1), all - whole);
            }
            TracedContent::Mptcp(segment) if segment.tcp.kind == SegmentKind::Data => {
                let payload = u64::from(packet.bytes - sizes.tcp - sizes.data_option);
                self.streams.entry(key).or_default().on_sent(segment.tcp.seq, payload);
                self.data.entry(packet.flow).or_default().on_sent(segment.data_seq, payload);
            }
            TracedContent::Mptcp(segment) if segment.tcp.kind == SegmentKind::Syn => {
                self.first_subflow.entry(packet.flow).or_insert(segment.subflow);
            }
            _ => {}
        }
    }

    /// The bytes of a packet that a host sends or gets; `None` for a packet without headers of its own.
    pub(crate) fn encode(&mut self, at: Instant, packet: &TracedPacket) -> Option<Encoded> {
        let sizes = self.sizes(packet.flow);
        let (header, payload) = match (packet.content, sizes) {
            (TracedContent::Tcp { first, .. }, Some(sizes)) => (self.segment(packet, &first, sizes), sizes.tcp),
            (TracedContent::TcpAck(ack), Some(sizes)) => (self.ack(packet, &ack, None, sizes), packet.bytes),
            (TracedContent::Mptcp(segment), Some(sizes)) => {
                (self.subflow_segment(packet, &segment, sizes), sizes.tcp + sizes.data_option)
            }
            (TracedContent::MptcpAck(ack), Some(sizes)) => {
                (self.ack(packet, &ack.tcp, Some(ack.data_ack), sizes), packet.bytes)
            }
            (TracedContent::Request(_), Some(sizes)) => (self.request(at, packet, sizes), sizes.tcp),
            (
                TracedContent::Udp(_)
                | TracedContent::Datagram { .. }
                | TracedContent::Quic(_)
                | TracedContent::QuicReply(_),
                sizes,
            ) => {
                return self.udp(packet, sizes.map_or(IPV4, |sizes| sizes.ip)).ok();
            }
            (TracedContent::Stray, _) => return self.udp(packet, IPV4).ok(),
            (TracedContent::Tunnel, _) => return self.udp(packet, self.outer_ip).ok(),
            _ => return None,
        };
        let payload = packet.bytes.saturating_sub(payload);
        let comment = match packet.content {
            TracedContent::Mptcp(segment) if segment.copy => Some("data that another subflow was assigned before"),
            TracedContent::Mptcp(segment) if segment.tcp.retransmission => Some("retransmission"),
            TracedContent::Tcp { first, .. } if first.retransmission => Some("retransmission"),
            _ => None,
        };
        let encoded = self.tcp(packet, &header, sizes?.ip, payload as usize).ok()?;
        Some(Encoded { comments: comment.into_iter().collect(), ..encoded })
    }

    /// The bytes of a packet on a link; of one in an MPT tunnel, those of its outer datagram.
    pub(crate) fn encode_crossing(&mut self, at: Instant, crossing: &Crossing) -> Option<Encoded> {
        let Crossing { packet, path, tunnel_seq, .. } = *crossing;
        let Some(seq) = tunnel_seq else { return self.encode(at, &packet) };
        let bytes = packet.bytes.saturating_sub(self.outer_ip + UDP_HEADER + GRE_HEADER);
        let inner = self.encode(at, &TracedPacket { bytes, ..packet })?;
        let (headers, inner_bytes) = inner.bytes.split_at(ETHERNET as usize);
        // The sequence number is present (RFC 2890); the protocol is Ethernet's.
        let mut payload = vec![0x10, 0, headers[12], headers[13]];
        payload.extend((seq as u32).to_be_bytes());
        payload.extend(inner_bytes);
        payload.resize((GRE_HEADER + inner.size - ETHERNET) as usize, 0);
        let builder = self.ip(&TracedPacket { path: Some(path), ..packet }, self.outer_ip);
        let builder = builder.udp(TUNNEL_PORT, TUNNEL_PORT);
        let headers = ETHERNET + self.outer_ip + UDP_HEADER + GRE_HEADER;
        let headers = headers as usize + inner_bytes.len();
        let outer = self.write(headers, &payload, |bytes, payload| builder.write(bytes, payload)).ok()?;
        Some(Encoded { comments: inner.comments, ..outer })
    }

    fn sizes(&self, flow: u16) -> Option<HeaderSizes> {
        self.sizes.get(usize::from(flow)).copied().flatten()
    }

    fn stream_start(&self, packet: &TracedPacket, segment: u64) -> u64 {
        self.streams.get(&(packet.flow, packet.connection)).map_or(0, |stream| stream.start(segment))
    }

    /// A segment of the data sender, without MPTCP's options.
    fn segment(&self, packet: &TracedPacket, segment: &Segment, sizes: HeaderSizes) -> TcpHeader {
        let (syn, times) = (segment.kind == SegmentKind::Syn, timestamps(sizes, [segment.tsval, segment.tsecr]));
        let requested = self.requested.get(&(packet.flow, packet.connection)).copied().unwrap_or(0);
        let options = if syn { syn_options(sizes, times) } else { Options::timestamps(times) };
        let first = 1 + self.stream_start(packet, segment.seq);
        TcpHeader {
            seq: match segment.kind {
                SegmentKind::Syn => 0,
                SegmentKind::HandshakeAck => 1,
                SegmentKind::Data => first,
                SegmentKind::WindowProbe => first - 1,
            },
            ack: (!syn).then_some(1 + requested),
            window: u64::from(u16::MAX),
            syn,
            psh: segment.psh,
            cwr: segment.cwr,
            ece: false,
            options: options.into_bytes(),
        }
    }

    /// A segment of the data sender on a subflow.
    fn subflow_segment(
        &self,
        packet: &TracedPacket,
        segment: &transport::mptcp::Segment,
        sizes: HeaderSizes,
    ) -> TcpHeader {
        let (kind, keys) = (segment.tcp.kind, Keys::of(packet.flow));
        let times = timestamps(sizes, [segment.tcp.tsval, segment.tcp.tsecr]);
        let mut options = if kind == SegmentKind::Syn { syn_options(sizes, times) } else { Options::timestamps(times) };
        match kind {
            SegmentKind::Data => {
                let payload = packet.bytes.saturating_sub(sizes.tcp + sizes.data_option) as u16;
                let first = 1 + self.stream_start(packet, segment.tcp.seq) as u32;
                let data_seq = keys.data_seq(0, self.data_start(packet.flow, segment.data_seq));
                options.push_mapping(sizes.data_option, keys.data_seq(1, 0), data_seq, first, payload);
            }
            SegmentKind::WindowProbe => {}
            SegmentKind::Syn | SegmentKind::HandshakeAck => {
                self.push_handshake(&mut options, packet, [false, kind == SegmentKind::HandshakeAck]);
            }
        }
        TcpHeader { options: options.into_bytes(), ..self.segment(packet, &segment.tcp, sizes) }
    }

    fn data_start(&self, flow: u16, segment: u64) -> u64 {
        self.data.get(&flow).map_or(0, |stream| stream.start(segment))
    }

    /// MP_CAPABLE of the subflow that opens a connection, MP_JOIN of the others.
    fn push_handshake(&self, options: &mut Options, packet: &TracedPacket, [is_answer, is_third]: [bool; 2]) {
        let keys = Keys::of(packet.flow);
        match self.first_subflow.get(&packet.flow) {
            Some(first) if *first != packet.connection => {
                options.push_join(keys, packet.connection, is_answer, is_third);
            }
            _ => options.push_capable(keys, is_answer, is_third),
        }
    }

    /// An acknowledgement; `data_ack` of MPTCP.
    fn ack(&self, packet: &TracedPacket, ack: &Ack, data_ack: Option<u64>, sizes: HeaderSizes) -> TcpHeader {
        let times = timestamps(sizes, [ack.tsval, ack.tsecr]);
        let mut options = if ack.syn { syn_options(sizes, times) } else { Options::timestamps(times) };
        match data_ack {
            Some(_) if ack.syn => self.push_handshake(&mut options, packet, [true, false]),
            Some(data_ack) => {
                let byte = self.data_start(packet.flow, data_ack);
                options.push_data_ack(Keys::of(packet.flow).data_seq(0, byte));
            }
            None => {}
        }
        let number = |segment| 1 + self.stream_start(packet, segment);
        let edges = |(start, end)| [number(start) as u32, number(end) as u32];
        options.push_sack(&ack.sack_blocks.iter().map(edges).collect::<Vec<_>>());
        let scale = if ack.syn { 0 } else { window_scale(sizes) };
        let requested = self.requested.get(&(packet.flow, packet.connection)).copied().unwrap_or(0);
        TcpHeader {
            seq: if ack.syn { 0 } else { 1 + requested },
            ack: Some(if ack.syn { 1 } else { number(ack.ack) }),
            window: ack.receive_window >> scale,
            syn: ack.syn,
            psh: false,
            cwr: false,
            ece: ack.ece,
            options: options.into_bytes(),
        }
    }

    /// A request of the client, who receives the data.
    fn request(&mut self, at: Instant, packet: &TracedPacket, sizes: HeaderSizes) -> TcpHeader {
        let milliseconds = (at.0 / 1_000_000) as u32;
        let payload = u64::from(packet.bytes.saturating_sub(sizes.tcp));
        let acknowledged = self.streams.get(&(packet.flow, packet.connection)).map_or(0, Stream::end);
        let requested = self.requested.entry((packet.flow, packet.connection)).or_default();
        let seq = 1 + *requested;
        *requested += payload;
        TcpHeader {
            seq,
            ack: Some(1 + acknowledged),
            window: sizes.max_receive_buffer >> window_scale(sizes),
            syn: false,
            psh: true,
            cwr: false,
            ece: false,
            options: Options::timestamps(timestamps(sizes, [milliseconds, 0])).into_bytes(),
        }
    }

    fn tcp(&mut self, packet: &TracedPacket, tcp: &TcpHeader, ip: u32, payload: usize) -> Result<Encoded, ()> {
        let [source, destination] = ports(packet);
        let window = tcp.window.min(u64::from(u16::MAX)) as u16;
        let options_length = tcp.options.len() as u32;
        let mut header = etherparse::TcpHeader::new(source, destination, tcp.seq as u32, window);
        (header.ack, header.acknowledgment_number) = (tcp.ack.is_some(), tcp.ack.unwrap_or(0) as u32);
        (header.syn, header.psh, header.cwr, header.ece) = (tcp.syn, tcp.psh, tcp.cwr, tcp.ece);
        header.set_options_raw(&tcp.options).map_err(drop)?;
        let builder = self.ip(packet, ip).tcp_header(header);
        let headers = (ETHERNET + ip + TCP_HEADER + options_length) as usize;
        self.write(headers, &vec![0; payload], |bytes, payload| builder.write(bytes, payload))
    }

    fn udp(&mut self, packet: &TracedPacket, ip: u32) -> Result<Encoded, ()> {
        let [source, destination] = ports(packet);
        let payload = packet.bytes.saturating_sub(ip + UDP_HEADER) as usize;
        let builder = self.ip(packet, ip).udp(source, destination);
        let headers = (ETHERNET + ip + UDP_HEADER) as usize;
        self.write(headers, &vec![0; payload], |bytes, payload| builder.write(bytes, payload))
    }

    /// The bytes of a packet with this payload. Only the headers are kept unless all bytes are wanted.
    fn write(
        &self,
        headers: usize,
        payload: &[u8],
        write: impl FnOnce(&mut Vec<u8>, &[u8]) -> Result<(), BuildWriteError>,
    ) -> Result<Encoded, ()> {
        let mut bytes = Vec::with_capacity(headers + payload.len());
        write(&mut bytes, payload).map_err(drop)?;
        let size = bytes.len() as u32;
        if !self.has_payload {
            bytes.truncate(headers);
        }
        Ok(Encoded { bytes, size, comments: Vec::new() })
    }

    /// Ethernet and IP headers from the packet's sender to its receiver: 10.P.0.1 and 10.P.0.2, or fd00:P::1 and fd00:P::2,
    /// on path number P from 1, and with P = 0 if a tunnel carries the packet.
    fn ip(&mut self, packet: &TracedPacket, ip: u32) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
        let path = packet.path.map_or(0, |path| path as u16 + 1);
        let hosts = if packet.direction == Direction::Forward { [1, 2] } else { [2, 1] };
        let macs = hosts.map(|host| [2, 0, 0, 0, path as u8, host]);
        self.sent = self.sent.wrapping_add(1);
        let ethernet = PacketBuilder::ethernet2(macs[0], macs[1]);
        let ecn = ecn(packet.ecn);
        if ip == 40 {
            let address = |host: u8| {
                let mut address = [0; 16];
                address[0] = 0xfd;
                address[2..4].copy_from_slice(&path.to_be_bytes());
                address[15] = host;
                address
            };
            let header = etherparse::Ipv6Header {
                traffic_class: ecn,
                hop_limit: 64,
                source: address(hosts[0]),
                destination: address(hosts[1]),
                ..etherparse::Ipv6Header::default()
            };
            return ethernet.ip(etherparse::IpHeaders::Ipv6(header, etherparse::Ipv6Extensions::default()));
        }
        let address = |host: u8| [10, path as u8, (path >> 8) as u8, host];
        let mut header =
            etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::TCP, address(hosts[0]), address(hosts[1]))
                .unwrap_or_default();
        header.identification = self.sent;
        header.dont_fragment = true;
        header.ecn = etherparse::IpEcn::try_new(ecn).unwrap_or_default();
        ethernet.ip(etherparse::IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default()))
    }
}

/// The code point of an ECN field (RFC 3168, section 5).
fn ecn(field: EcnField) -> u8 {
    match field {
        EcnField::NotEct => 0,
        EcnField::Ect1 => 1,
        EcnField::Ect0 => 2,
        EcnField::Ce => 3,
    }
}

/// The source and destination ports of a packet. Data, and UDP, go to the port of the flow's receiver.
fn ports(packet: &TracedPacket) -> [u16; 2] {
    let [sender, receiver] = [SENDER_PORT.wrapping_add(packet.connection), RECEIVER_PORT.wrapping_add(packet.flow)];
    match packet.content {
        TracedContent::TcpAck(_)
        | TracedContent::MptcpAck(_)
        | TracedContent::QuicReply(_)
        | TracedContent::Request(_) => [receiver, sender],
        TracedContent::Tunnel => [TUNNEL_PORT; 2],
        _ => [sender, receiver],
    }
}

/// The timestamps, if the flow's packets have room for them.
fn timestamps(sizes: HeaderSizes, times: [u32; 2]) -> Option<[u32; 2]> {
    (sizes.tcp > sizes.ip + TCP_HEADER).then_some(times)
}

fn syn_options(sizes: HeaderSizes, times: Option<[u32; 2]>) -> Options {
    let mss = 1500u32.saturating_sub(sizes.ip + TCP_HEADER) as u16;
    Options::syn(mss, times, window_scale(sizes))
}

/// The scale with which 16 bits hold the largest window.
fn window_scale(sizes: HeaderSizes) -> u8 {
    (0..MAX_SCALE).find(|scale| sizes.max_receive_buffer >> scale <= u64::from(u16::MAX)).unwrap_or(MAX_SCALE)
}
