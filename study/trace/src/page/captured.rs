//! The page of a capture: what its packets say of flows that become known while it is read.

use super::strand::{Acknowledgement, COPY, DATA, Packet, RETRANSMISSION, Strand};
use super::{FlowColumns, Page};
use crate::captured::{CaptureEnd, CapturedPacket};
use std::collections::{BTreeMap, HashMap};
use store::EventRow;
use units::{Instant, Span};

/// The flows of a capture.
#[derive(Debug)]
pub(super) struct CapturedFlows {
    /// The direction in which the host of the capture sends.
    local: &'static str,
    /// The place of each flow by its name.
    flows: HashMap<String, usize>,
    /// The place of each strand by flow, subflow and direction.
    strands: HashMap<(usize, u64, &'static str), usize>,
    /// The number of each interface, for its colour.
    interfaces: BTreeMap<Option<String>, usize>,
}

impl Page {
    /// The page of a capture that was made at an end.
    pub(crate) fn of_capture(end: CaptureEnd) -> Self {
        let local = if end == CaptureEnd::Near { "forward" } else { "reverse" };
        let (flows, strands, interfaces) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self {
            flows: Vec::new(),
            queues: BTreeMap::new(),
            links: Vec::new(),
            end: Instant::ZERO,
            captured: Some(CapturedFlows { local, flows, strands, interfaces }),
        }
    }

    /// Adds a packet of a capture.
    pub(crate) fn add_captured(&mut self, packet: &CapturedPacket) {
        for row in &packet.rows {
            let at = Instant((row.time_s.max(0.0) * 1e9).round() as u64);
            self.end = self.end.max(at);
            if matches!(row.packet, Some("data" | "retransmission" | "copy")) {
                self.captured_data(at, row, packet);
            }
            self.captured_answer(at, row);
        }
    }

    /// Adds the segments of a packet with data.
    fn captured_data(&mut self, at: Instant, row: &EventRow, packet: &CapturedPacket) {
        let (Some((flow, strand)), Some(seq)) = (self.captured_strand(row), row.seq) else { return };
        let kind = match row.packet {
            Some("retransmission") => RETRANSMISSION,
            Some("copy") => COPY,
            _ => DATA,
        };
        let flow = &mut self.flows[flow];
        (flow.has_data_numbers, flow.has_data_acks) =
            (flow.has_data_numbers | row.data_seq.is_some(), flow.has_data_acks | row.data_seq.is_some());
        flow.payload = flow.payload.max(packet.full_segment.min(packet.payload));
        for index in 0..packet.payload.div_ceil(packet.full_segment.max(1)) {
            let data = row.data_seq.map(|data| data + index);
            flow.strands[strand].on_sent(at, &Packet { connection: 0, number: seq + index, data, kind });
        }
    }

    /// Adds what a row says of the data in the other direction: an acknowledgement, or what follows for the sender.
    fn captured_answer(&mut self, at: Instant, row: &EventRow) {
        let Some(captured) = &self.captured else { return };
        let answered = match row.direction {
            Some("forward") => "reverse",
            Some(_) => "forward",
            None => captured.local,
        };
        let flow = row.flow.as_ref().and_then(|name| captured.flows.get(name));
        let Some((flow, connection)) = flow.copied().zip(row.connection) else { return };
        let Some(strand) = captured.strands.get(&(flow, connection, answered)).copied() else { return };
        let flow = &mut self.flows[flow];
        let (payload, strand) = (flow.payload, &mut flow.strands[strand]);
        if let Some(ack) = row.ack {
            let first = row.data_seq.filter(|_| flow.has_data_acks).unwrap_or(ack);
            let window =
                row.receive_window_bytes.and_then(|bytes| bytes.checked_div(payload)).map(|count| first + count);
            let sack = row.sack.as_deref().and_then(|blocks| blocks.split(' ').next()?.split_once('-'));
            let sack = sack.and_then(|(start, end)| Some((start.parse().ok()?, end.parse().ok()?)));
            strand.on_ack(at, &Acknowledgement { connection: 0, ack, data: row.data_seq, window, sack });
        }
        if let Some(rtt) = row.rtt_ms {
            strand.on_rtt(at, Span((rtt * 1e6).round() as u64));
        }
        if let Some(in_flight) = row.in_flight_packets {
            strand.on_flight(at, in_flight);
        }
    }

    /// The flow and the strand of a packet with data.
    fn captured_strand(&mut self, row: &EventRow) -> Option<(usize, usize)> {
        let (name, connection, direction) = (row.flow.as_ref()?, row.connection?, row.direction?);
        let captured = self.captured.as_mut()?;
        let flow = *captured.flows.entry(name.clone()).or_insert_with(|| {
            self.flows.push(FlowColumns { name: name.clone(), ..FlowColumns::default() });
            self.flows.len() - 1
        });
        let strands = &mut self.flows[flow].strands;
        let strand = *captured.strands.entry((flow, connection, direction)).or_insert_with(|| {
            let count = captured.interfaces.len();
            let colour = *captured.interfaces.entry(row.path.clone()).or_insert(count);
            let path = row.path.clone().unwrap_or_else(|| format!("subflow {connection}"));
            let name = if direction == "forward" { path } else { format!("{path} reverse") };
            strands.push(Strand::new(&name, Some(colour), Vec::new()));
            strands.len() - 1
        });
        Some((flow, strand))
    }
}
