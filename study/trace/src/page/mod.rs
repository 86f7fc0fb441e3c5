//! The page of a trace: time and sequence numbers, windows, rates, RTTs and queues of one run, in one HTML file.
//!
//! The events of a run become columns as they come, which the page's script unpacks and draws.

mod captured;
mod column;
mod html;
mod strand;

use captured::CapturedFlows;
use column::Column;
use scenario::model::{Experiment, Flow, FlowKind, MultipathTransport, Route};
use schedule::Choice;
use sim::{Direction, Simulation, TraceEvent, Traced, TracedContent, TracedPacket, TracedSender};
use std::collections::BTreeMap;
use strand::{Acknowledgement, COPY, Counts, DATA, Limits, Loss, NONE, Packet, RETRANSMISSION, Strand, micros, packed};
use transport::path::Limit;
use transport::quic::{Content, ReplyContent};
use transport::tcp::SegmentKind;
use units::Instant;

const STYLE: &str = include_str!("../../assets/trace.css");
/// The columns, the drawing, and what answers pointer and keyboard.
const SCRIPTS: [&str; 3] =
    [include_str!("../../assets/data.js"), include_str!("../../assets/draw.js"), include_str!("../../assets/trace.js")];

/// What a page says of its run.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// The title of the scenario.
    pub title: String,
    /// Names and values: the cell, the seed, the program.
    pub facts: Vec<(String, String)>,
}

/// The page of a run that goes on.
#[derive(Debug)]
pub(crate) struct Page {
    flows: Vec<FlowColumns>,
    /// Time and packets of each queue that was not always empty.
    queues: BTreeMap<(usize, bool), [Column; 2]>,
    links: Vec<String>,
    end: Instant,
    /// Of a capture: what is known of its flows.
    captured: Option<CapturedFlows>,
}

#[derive(Debug, Default)]
struct FlowColumns {
    name: String,
    /// Whether data has numbers that differ from those of packets.
    has_data_numbers: bool,
    /// Whether acknowledgements have a number of data: MPTCP's DATA_ACK.
    has_data_acks: bool,
    strands: Vec<Strand>,
    /// Of each data number, the time at which the first transmission that arrived was sent, microseconds.
    arrived: Vec<i64>,
    limits: Limits,
    /// The scheduler's choices: time, strand or -1 if it waits, the first number of the data, and how many.
    choices: [Column; 4],
    /// Payload of a full packet, bytes; 0 if it has no such packets.
    payload: u64,
}

impl FlowColumns {
    fn new(flow: &Flow, experiment: &Experiment, payload: u64) -> Self {
        let path = |index: usize| {
            let path = &experiment.paths[index];
            Strand::new(&path.name, Some(index), path.links.clone())
        };
        let multipath = if let FlowKind::Tcp { multipath, .. } = &flow.kind { multipath.as_deref() } else { None };
        let strands = match (multipath, flow.route) {
            (Some(multipath), _) => multipath.subflows.iter().map(|subflow| path(subflow.path)).collect(),
            (None, Route::Path(index)) => vec![path(index)],
            (None, _) => vec![Strand::new("tunnel", None, (0..experiment.links.len()).collect())],
        };
        let transport = multipath.map(|multipath| multipath.transport);
        Self {
            name: flow.name.clone(),
            has_data_numbers: transport.is_some(),
            has_data_acks: matches!(transport, Some(MultipathTransport::Mptcp(_))),
            strands,
            arrived: Vec::new(),
            limits: Limits::default(),
            choices: Default::default(),
            payload,
        }
    }

    fn on_sent(&mut self, at: Instant, strand: usize, packet: &Packet) {
        if let Some(strand) = self.strands.get_mut(strand) {
            strand.on_sent(at, packet);
        }
    }

    fn on_end(&mut self, at: Instant, strand: usize, packet: &Packet, loss: Option<Loss>) {
        let Some(strand) = self.strands.get_mut(strand) else { return };
        if let Some((data, sent)) = strand.on_end(at, packet, loss).filter(|_| loss.is_none()) {
            let data = data as usize;
            if self.arrived.len() <= data {
                self.arrived.resize(data + 1, i64::MAX);
            }
            self.arrived[data] = self.arrived[data].min(sent);
        }
    }
}

impl Page {
    pub(crate) fn new(experiment: &Experiment, simulation: &Simulation) -> Self {
        let payload = |index| simulation.header_sizes(index).map_or(0, |sizes| u64::from(sizes.payload));
        let flows = experiment.flows.iter().enumerate();
        Self {
            flows: flows.map(|(index, flow)| FlowColumns::new(flow, experiment, payload(index))).collect(),
            queues: BTreeMap::new(),
            links: experiment.links.iter().map(|link| link.name.clone()).collect(),
            end: Instant::ZERO + experiment.duration,
            captured: None,
        }
    }

    /// Adds events, in order of time.
    pub(crate) fn add(&mut self, events: &[TraceEvent]) {
        for TraceEvent { at, what } in events {
            match what {
                Traced::Sent(packet) => self.packet(packet, |flow, strand, packet| flow.on_sent(*at, strand, packet)),
                Traced::Delivered(packet) => {
                    self.acknowledgement(*at, packet);
                    self.packet(packet, |flow, strand, packet| flow.on_end(*at, strand, packet, None));
                }
                Traced::Lost { packet, link, cause } => {
                    self.packet(packet, |flow, strand, packet| flow.on_end(*at, strand, packet, Some((*link, *cause))));
                }
                Traced::Queue { link: (link, direction), packets } => {
                    let key = (*link, *direction == Direction::Reverse);
                    let [times, lengths] = self.queues.entry(key).or_default();
                    times.push(micros(*at));
                    lengths.push(*packets as i64);
                }
                Traced::Sender(sender) => self.sender(*at, sender),
                Traced::DeclaredLost { .. }
                | Traced::TunnelChoice { .. }
                | Traced::TunnelPath { .. }
                | Traced::Crossing(_) => {}
                Traced::Rtt { flow, subflow, rtt } => self.strand(*flow, *subflow, |strand| strand.on_rtt(*at, *rtt)),
                Traced::Choice { flow, choice } => self.choice(*at, *flow, choice),
                Traced::Limit { flow, subflow, limit } => self.limit(*at, *flow, *subflow, *limit),
            }
        }
    }

    /// Calls `each` with the flow, the strand and the packets that a packet with data is; one for each segment.
    fn packet(&mut self, traced: &TracedPacket, mut each: impl FnMut(&mut FlowColumns, usize, &Packet)) {
        let Some(flow) = self.flows.get_mut(usize::from(traced.flow)) else { return };
        let kind = |is_again, copy| match (is_again, copy) {
            (true, _) => RETRANSMISSION,
            (false, true) => COPY,
            (false, false) => DATA,
        };
        let plain = |number, kind| Packet { connection: traced.connection, number, data: None, kind };
        match traced.content {
            TracedContent::Tcp { first, segments, .. } if first.kind == SegmentKind::Data => {
                for index in 0..u64::from(segments) {
                    each(flow, 0, &plain(first.seq + index, kind(first.retransmission, false)));
                }
            }
            TracedContent::Mptcp(segment) if segment.tcp.kind == SegmentKind::Data => {
                let kind = kind(segment.tcp.retransmission, segment.copy);
                let packet = Packet { connection: 0, number: segment.tcp.seq, data: Some(segment.data_seq), kind };
                each(flow, usize::from(segment.subflow), &packet);
            }
            TracedContent::Quic(packet) => {
                let Content::Stream { chunk, copy, is_again } = packet.content else { return };
                let (number, kind) = (packet.number, kind(is_again, copy));
                each(flow, usize::from(packet.path), &Packet { connection: 0, number, data: Some(chunk), kind });
            }
            TracedContent::Udp(number) => each(flow, 0, &plain(number, DATA)),
            TracedContent::Datagram { number, is_data: true } => {
                each(flow, usize::from(traced.connection), &plain(number, DATA));
            }
            _ => {}
        }
    }

    fn acknowledgement(&mut self, at: Instant, traced: &TracedPacket) {
        let Some(flow) = self.flows.get_mut(usize::from(traced.flow)) else { return };
        let packets = |bytes: u64| bytes.checked_div(flow.payload).unwrap_or(0);
        let (subflow, said) = match traced.content {
            TracedContent::TcpAck(ack) if !ack.syn => {
                let window = Some(ack.ack + packets(ack.receive_window));
                let (connection, sack) = (traced.connection, ack.sack_blocks.iter().next());
                (0, Acknowledgement { connection, ack: ack.ack, data: None, window, sack })
            }
            TracedContent::MptcpAck(ack) if !ack.tcp.syn => (
                ack.subflow,
                Acknowledgement {
                    connection: 0,
                    ack: ack.tcp.ack,
                    data: Some(ack.data_ack),
                    window: Some(ack.data_ack + packets(ack.tcp.receive_window)),
                    sack: ack.tcp.sack_blocks.iter().next(),
                },
            ),
            TracedContent::QuicReply(reply) => {
                let ReplyContent::Ack(ack) = reply.content else { return };
                let (path, window) = (ack.path, Some(ack.max_data));
                (path, Acknowledgement { connection: 0, ack: ack.ranges.largest() + 1, data: None, window, sack: None })
            }
            _ => return,
        };
        if let Some(strand) = flow.strands.get_mut(usize::from(subflow)) {
            strand.on_ack(at, &said);
        }
    }

    /// Adds what limits a flow, or one of its subflows.
    fn limit(&mut self, at: Instant, flow: u16, subflow: Option<u16>, limit: Limit) {
        match subflow {
            None => self.flows.get_mut(usize::from(flow)).into_iter().for_each(|flow| flow.limits.push(at, limit)),
            Some(subflow) => self.strand(flow, subflow, |strand| strand.limits.push(at, limit)),
        }
    }

    fn sender(&mut self, at: Instant, sender: &TracedSender) {
        self.strand(sender.flow, sender.subflow, |strand| strand.on_state(at, sender));
    }

    /// Calls `each` with the strand of a subflow.
    fn strand(&mut self, flow: u16, subflow: u16, each: impl FnOnce(&mut Strand)) {
        let flow = self.flows.get_mut(usize::from(flow));
        if let Some(strand) = flow.and_then(|flow| flow.strands.get_mut(usize::from(subflow))) {
            each(strand);
        }
    }

    /// Adds a choice of the scheduler, and what it saw.
    fn choice(&mut self, at: Instant, flow: u16, choice: &Choice) {
        let Some(flow) = self.flows.get_mut(usize::from(flow)) else { return };
        flow.strands.iter_mut().zip(&choice.paths).for_each(|(strand, view)| strand.on_view(view));
        let strand = choice.pick.map_or(NONE, |pick| i64::from(pick.path.0));
        let count = choice.data.clone().count() as i64;
        // Without data the latest number is repeated, which takes the fewest bytes.
        let first = if count > 0 { choice.data.start as i64 } else { flow.choices[2].last() };
        let row = [micros(at), strand, first, count];
        flow.choices.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
}
