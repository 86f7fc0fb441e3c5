//! The table of events of a capture.

use super::connection::{Connection, ECN};
use super::multipath::Multipath;
use super::packets::{Packet, Packets, Tcp};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use store::EventRow;

/// Packets among which a handshake is sought that tells where the capture was made.
const HEAD: usize = 1000;

/// The host at which a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    /// The host that opens the connections.
    Near,
    /// The host that accepts them.
    Far,
}

impl CaptureEnd {
    /// Reads `near` or `far`.
    ///
    /// # Errors
    /// It is another word.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "near" => Ok(Self::Near),
            "far" => Ok(Self::Far),
            _ => Err(format!("no place '{text}' of a capture: near or far")),
        }
    }
}

/// What a packet of a capture says.
#[derive(Debug)]
pub(crate) struct CapturedPacket {
    /// The packet, and what follows from it.
    pub(crate) rows: Vec<EventRow>,
    /// Payload of TCP, bytes.
    pub(crate) payload: u64,
    /// The payload of a full segment, bytes.
    pub(crate) full_segment: u64,
}

/// Makes rows of a capture's packets, one packet after the other.
pub(super) struct Table {
    packets: Packets,
    /// The first packets, which were read to find the end.
    head: VecDeque<Packet>,
    end: CaptureEnd,
    start_ns: Option<u64>,
    connections: Vec<Connection>,
    /// The place of each connection by its ends, in both orders.
    of: HashMap<[SocketAddr; 2], usize>,
    multipath: Multipath,
    /// The sender of the first datagram between two ends, by these, in both orders.
    datagrams: HashMap<[SocketAddr; 2], SocketAddr>,
}

impl Table {
    /// Opens a capture. Without an `end` the times of the first handshake tell it; without a handshake it is [`CaptureEnd::Near`].
    ///
    /// # Errors
    /// The file cannot be read, or is no capture; the error names it.
    pub(super) fn open(path: &Path, end: Option<CaptureEnd>) -> Result<Self, String> {
        let (mut packets, mut head, mut found) = (Packets::open(path)?, VecDeque::new(), end);
        let mut handshakes = Handshakes::default();
        while found.is_none()
            && head.len() < HEAD
            && let Some(packet) = packets.next()?
        {
            found = handshakes.end(&packet);
            head.push_back(packet);
        }
        Ok(Self {
            packets,
            head,
            end: found.unwrap_or(CaptureEnd::Near),
            start_ns: None,
            connections: Vec::new(),
            of: HashMap::new(),
            multipath: Multipath::default(),
            datagrams: HashMap::new(),
        })
    }

    /// The host at which the capture was made.
    pub(super) fn end(&self) -> CaptureEnd {
        self.end
    }

    /// Connections of TCP so far, subflows of MPTCP each, and flows of UDP.
    pub(super) fn flows(&self) -> usize {
        self.connections.len() + self.datagrams.len() / 2
    }

    /// The next packet; none at the end of the capture.
    ///
    /// # Errors
    /// The capture is damaged, or cut in the middle of a packet; the error names the file and the packet.
    pub(super) fn next(&mut self) -> Result<Option<CapturedPacket>, String> {
        let packet = match self.head.pop_front() {
            Some(packet) => packet,
            None => match self.packets.next()? {
                Some(packet) => packet,
                None => return self.packets.check_whole().map(|()| None),
            },
        };
        let mut captured = match &packet.tcp {
            Some(tcp) => self.segment(&packet, tcp),
            None => CapturedPacket { rows: vec![self.datagram(&packet)], payload: 0, full_segment: 0 },
        };
        let since_start = i128::from(packet.at_ns) - i128::from(*self.start_ns.get_or_insert(packet.at_ns));
        captured.rows.iter_mut().for_each(|row| row.time_s = since_start as f64 / 1e9);
        Ok(Some(captured))
    }

    fn segment(&mut self, packet: &Packet, tcp: &Tcp) -> CapturedPacket {
        let [from, to] = packet.ends;
        let known = self.of.get(&[from, to]).copied();
        let known = known.filter(|index| !self.connections[*index].is_replaced_by(packet, tcp));
        let index = known.unwrap_or_else(|| {
            self.connections.push(Connection::new(packet, tcp, &mut self.multipath));
            let index = self.connections.len() - 1;
            self.of.insert([from, to], index);
            self.of.insert([to, from], index);
            index
        });
        let connection = &mut self.connections[index];
        let rows = connection.rows(packet, tcp, self.end == CaptureEnd::Near, &mut self.multipath);
        CapturedPacket { rows, payload: u64::from(tcp.len), full_segment: connection.full_segment(tcp) }
    }

    fn datagram(&mut self, packet: &Packet) -> EventRow {
        let [from, to] = packet.ends;
        let first = *self.datagrams.entry([from, to]).or_insert(from);
        self.datagrams.entry([to, from]).or_insert(from);
        let is_forward = first == from;
        let ends = if is_forward { [from, to] } else { [to, from] };
        EventRow {
            event: if is_forward == (self.end == CaptureEnd::Near) { "sent" } else { "delivered" },
            flow: Some(format!("{} > {}", ends[0], ends[1])),
            path: packet.interface.as_deref().map(str::to_owned),
            connection: Some(0),
            direction: Some(if is_forward { "forward" } else { "reverse" }),
            packet: Some("datagram"),
            bytes: Some(u64::from(packet.bytes)),
            ecn: Some(ECN[usize::from(packet.ecn & 3)]),
            ..EventRow::default()
        }
    }
}

/// Times of the SYNs and their answers, by the ends of the connections.
#[derive(Default)]
struct Handshakes(HashMap<[SocketAddr; 2], [Option<u64>; 2]>);

impl Handshakes {
    /// The end at which the capture was made, if a packet ends a handshake: at the opener's host the answer to the SYN takes a
    /// round trip, at the other one the third packet does.
    fn end(&mut self, packet: &Packet) -> Option<CaptureEnd> {
        let (tcp, [from, to], at) = (packet.tcp.as_ref()?, packet.ends, packet.at_ns);
        match (tcp.syn, tcp.ack.is_some()) {
            (true, false) => drop(self.0.insert([from, to], [Some(at), None])),
            (true, true) => {
                if let Some([_, answered]) = self.0.get_mut(&[to, from]) {
                    *answered = Some(at);
                }
            }
            _ => {
                if let Some([Some(syn), Some(answer)]) = self.0.get(&[from, to]) {
                    let is_far = at.saturating_sub(*answer) > answer.saturating_sub(*syn);
                    return Some(if is_far { CaptureEnd::Far } else { CaptureEnd::Near });
                }
            }
        }
        None
    }
}
