//! A TCP connection of a capture, or a subflow: its packets as rows of the table of events.

use super::multipath::{Multipath, Subflow};
use super::numbers::{Ranges, Segments, nearest};
use super::options::Mapping;
use super::outstanding::Outstanding;
use super::packets::{Packet, Tcp};
use std::net::SocketAddr;
use store::EventRow;
use units::Span;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The address of the end that opened it, and the other one.
    ends: [SocketAddr; 2],
    name: String,
    subflow: Option<Subflow>,
    /// Whether the third packet of the handshake was seen.
    is_open: bool,
    /// The greatest segment that both accept, bytes.
    mss: Option<u32>,
    /// What each end sends.
    streams: [Stream; 2],
}

/// What an end sends.
#[derive(Debug, Default)]
struct Stream {
    /// The number of the first byte.
    first: Option<u32>,
    /// The window scale of its SYN, if that was seen.
    scale: Option<Option<u8>>,
    segments: Segments,
    /// Bytes that were seen.
    seen: Ranges,
    /// Bytes with data that another subflow had sent before.
    copies: Ranges,
    outstanding: Outstanding,
    /// What this end has acknowledged.
    acknowledged: u64,
    mapping: Option<Mapped>,
}

/// Bytes of a subflow that have consecutive numbers of data.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    start: u64,
    data: u64,
    len: u64,
}

/// A packet with its place in the connection.
struct Place<'p> {
    packet: &'p Packet,
    tcp: &'p Tcp,
    /// The end that sends it.
    own: usize,
    /// Whether the end is the host of the capture.
    is_local: bool,
}

impl Connection {
    /// The connection of a packet that is its first.
    pub(super) fn new(packet: &Packet, tcp: &Tcp, multipath: &mut Multipath) -> Self {
        let is_answer = tcp.syn && tcp.ack.is_some();
        let [from, to] = packet.ends;
        let ends = if is_answer { [to, from] } else { [from, to] };
        let subflow = tcp.options.token.and_then(|token| multipath.on_join(token));
        let name = match subflow {
            Some(subflow) => multipath.name(subflow).to_owned(),
            None => format!("{} > {}", ends[0], ends[1]),
        };
        Self { ends, name, subflow, is_open: !tcp.syn, mss: None, streams: Default::default() }
    }

    /// Whether a packet opens another connection with the same ports.
    pub(super) fn is_replaced_by(&self, packet: &Packet, tcp: &Tcp) -> bool {
        let own = self.end(packet);
        tcp.syn && tcp.ack.is_none() && self.streams[own].first.is_some_and(|first| first != tcp.seq)
    }

    fn end(&self, packet: &Packet) -> usize {
        usize::from(packet.ends[0] != self.ends[0])
    }

    /// The rows of a packet. `is_opener_local` says whether the host of the capture has opened the connection.
    pub(super) fn rows(
        &mut self,
        packet: &Packet,
        tcp: &Tcp,
        is_opener_local: bool,
        multipath: &mut Multipath,
    ) -> Vec<EventRow> {
        let own = self.end(packet);
        let side = self.side(own);
        self.on_handshake(own, tcp);
        if let Some(keys) = &tcp.options.keys {
            self.subflow = multipath.on_keys(self.subflow, &self.name, side, keys);
        }
        let first = self.streams[own].first.unwrap_or(tcp.seq).wrapping_add(1);
        let seq = tcp.seq.wrapping_add(u32::from(tcp.syn));
        let start = nearest(seq.wrapping_sub(first), self.streams[own].segments.end());
        let place = Place { packet, tcp, own, is_local: (side == 0) == is_opener_local };
        let mut row = self.base(if place.is_local { "sent" } else { "delivered" }, &place);
        (row.bytes, row.ecn) = (Some(u64::from(packet.bytes)), Some(ECN[usize::from(packet.ecn & 3)]));
        let bytes = start.filter(|_| tcp.len > 0);
        row.packet = Some(match bytes {
            Some(start) => self.on_data(&mut row, &place, start, multipath),
            None => self.kind(&place),
        });
        self.fill_number(&mut row, &place);
        let mut rows = vec![row];
        self.on_ack(&mut rows, &place, multipath);
        rows
    }

    /// The payload of a full segment with the options of this one, bytes. Without the MSS it is this one's.
    pub(super) fn full_segment(&self, tcp: &Tcp) -> u64 {
        // The MSS does not count options.
        self.mss.map_or(u64::from(tcp.len), |mss| u64::from(mss.saturating_sub(tcp.options_bytes).max(1)))
    }

    /// The side of the MPTCP connection, or of the connection, that an end is: 0 if it has opened it.
    fn side(&self, end: usize) -> usize {
        end ^ self.subflow.map_or(0, |subflow| subflow.opener)
    }

    /// A row of a packet without what the packet says.
    fn base(&self, event: &'static str, place: &Place<'_>) -> EventRow {
        EventRow {
            event,
            flow: Some(self.name.clone()),
            path: place.packet.interface.as_deref().map(str::to_owned),
            connection: Some(self.subflow.map_or(0, |subflow| subflow.number)),
            direction: Some(if self.side(place.own) == 0 { "forward" } else { "reverse" }),
            ..EventRow::default()
        }
    }

    /// Notes first numbers, the MSS and window scales.
    fn on_handshake(&mut self, own: usize, tcp: &Tcp) {
        self.streams[own].first.get_or_insert(tcp.seq.wrapping_sub(u32::from(!tcp.syn)));
        if let Some(ack) = tcp.ack.filter(|_| !tcp.rst) {
            self.streams[1 - own].first.get_or_insert(ack.wrapping_sub(1));
        }
        if tcp.syn {
            self.streams[own].scale = Some(tcp.options.scale);
        }
        if let Some(mss) = tcp.options.mss.map(u32::from).filter(|_| tcp.syn) {
            self.mss = Some(self.mss.map_or(mss, |known| known.min(mss)));
        }
    }

    /// Notes data. Returns what the packet is.
    fn on_data(
        &mut self,
        row: &mut EventRow,
        place: &Place<'_>,
        start: u64,
        multipath: &mut Multipath,
    ) -> &'static str {
        let Place { packet, tcp, own, is_local, .. } = *place;
        let (len, side) = (u64::from(tcp.len), self.side(own));
        let piece = self.full_segment(tcp);
        let data = self.data(place, start, multipath);
        let stream = &mut self.streams[own];
        // A packet that arrives late may have been sent once: the network reorders.
        let is_again = if is_local { start < stream.segments.end() } else { stream.seen.has_any(start, start + len) };
        if let (Some(subflow), Some(data)) = (self.subflow, data) {
            if multipath.on_data(subflow, side, [data, len, piece]) && !is_again {
                stream.copies.add(start, start + len);
            }
            row.data_seq = multipath.number(subflow, side, data);
        }
        stream.segments.add(start, len, piece);
        stream.seen.add(start, start + len);
        row.seq = stream.segments.number(start);
        if is_local && let (Some(from), Some(last)) = (row.seq, stream.segments.number(start + len - 1)) {
            stream.outstanding.on_sent(packet.at_ns, from, last + 1);
        }
        match is_again {
            _ if tcp.syn => self.kind(place),
            _ if stream.copies.has_any(start, start + len) => "copy",
            true => "retransmission",
            false => "data",
        }
    }

    /// The number of the first byte among the data of the MPTCP connection. A mapping holds also for later packets.
    fn data(&mut self, place: &Place<'_>, start: u64, multipath: &Multipath) -> Option<u64> {
        let (subflow, side, stream) = (self.subflow?, self.side(place.own), &mut self.streams[place.own]);
        match place.tcp.options.mapping {
            Some(Mapping::Dss { data, subflow: number, length }) if length > 0 => {
                let data = multipath.byte(subflow, side, data);
                let first = nearest(number.wrapping_sub(1), stream.segments.end());
                stream.mapping = data.zip(first).map(|(data, start)| Mapped { start, data, len: u64::from(length) });
            }
            Some(Mapping::First) => stream.mapping = Some(Mapped { start, data: 0, len: u64::from(place.tcp.len) }),
            _ => {}
        }
        let mapped = stream.mapping?;
        let offset = start.checked_sub(mapped.start).filter(|offset| *offset < mapped.len)?;
        Some(mapped.data + offset)
    }

    /// What a packet without data is.
    fn kind(&mut self, place: &Place<'_>) -> &'static str {
        let Place { tcp, own, .. } = *place;
        let stream = &self.streams[own];
        let next = stream.first.unwrap_or(tcp.seq).wrapping_add(1).wrapping_add(stream.segments.end() as u32);
        match tcp.ack {
            _ if tcp.rst => "rst",
            None if tcp.syn => "syn",
            Some(_) if tcp.syn => "syn-ack",
            _ if tcp.fin => "fin",
            _ if !self.is_open && own == 0 => {
                self.is_open = true;
                "handshake-ack"
            }
            _ if tcp.seq == next.wrapping_sub(1) => "window-probe",
            _ => "ack",
        }
    }

    /// The number of a packet without data that has one.
    fn fill_number(&self, row: &mut EventRow, place: &Place<'_>) {
        let segments = &self.streams[place.own].segments;
        row.seq = match row.packet {
            Some("syn" | "handshake-ack") => Some(0),
            Some("window-probe") => segments.number(segments.end()),
            _ => row.seq,
        };
    }

    /// Adds what a packet acknowledges, and what follows for the other end as a sender.
    fn on_ack(&mut self, rows: &mut Vec<EventRow>, place: &Place<'_>, multipath: &Multipath) {
        let Place { packet, tcp, own, is_local, .. } = *place;
        let Some(ack) = tcp.ack.filter(|_| !tcp.rst) else { return };
        let other = &self.streams[1 - own];
        let first = other.first.unwrap_or(ack).wrapping_add(1);
        let byte = |number: u32| nearest(number.wrapping_sub(first), other.segments.end());
        let Some(ack) = byte(ack) else { return };
        let number = other.segments.acknowledged(ack);
        let block = |[start, end]: &[u32; 2]| {
            Some((other.segments.number(byte(*start)?)?, other.segments.number(byte(*end)?)?))
        };
        let sack: Vec<(u64, u64)> = tcp.options.sack.iter().filter_map(block).collect();
        let is_news = ack > self.streams[own].acknowledged || !tcp.options.sack.is_empty();
        self.streams[own].acknowledged = self.streams[own].acknowledged.max(ack);
        let row = &mut rows[0];
        if !matches!(row.packet, Some("handshake-ack" | "window-probe")) && (tcp.len == 0 || is_news) {
            row.ack = number;
            let texts: Vec<String> = sack.iter().map(|(start, end)| format!("{start}-{end}")).collect();
            row.sack = (!texts.is_empty()).then(|| texts.join(" "));
            row.receive_window_bytes = self.receive_window(own, tcp);
            row.data_seq = row.data_seq.or_else(|| self.data_ack(place, multipath));
        }
        if is_local || tcp.syn {
            return;
        }
        let other = &mut self.streams[1 - own];
        let before = other.outstanding.in_flight();
        let rtt = number.and_then(|ack| other.outstanding.on_ack(packet.at_ns, ack, &sack));
        let in_flight = other.outstanding.in_flight();
        let sender = |event| EventRow { direction: None, ..self.base(event, place) };
        rows.extend(rtt.map(|rtt| EventRow { rtt_ms: Some(Span(rtt).as_millis_f64()), ..sender("rtt") }));
        rows.extend((in_flight != before).then(|| EventRow { in_flight_packets: Some(in_flight), ..sender("state") }));
    }

    /// The receive window that an end announces, bytes; none if its scale is not known.
    fn receive_window(&self, own: usize, tcp: &Tcp) -> Option<u64> {
        let scale = match self.streams.each_ref().map(|stream| stream.scale) {
            _ if tcp.syn => 0,
            [Some(Some(opener)), Some(Some(other))] => [opener, other][own],
            [Some(None), _] | [_, Some(None)] => 0,
            _ => return None,
        };
        Some(u64::from(tcp.window) << scale)
    }

    /// The data that an end acknowledges, of MPTCP.
    fn data_ack(&self, place: &Place<'_>, multipath: &Multipath) -> Option<u64> {
        let (subflow, other) = (self.subflow?, 1 - self.side(place.own));
        let byte = multipath.byte(subflow, other, place.tcp.options.data_ack?)?;
        multipath.acknowledged(subflow, other, byte)
    }
}

/// The names of the ECN field's values (RFC 3168, section 5).
pub(super) const ECN: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];
