//! The events of a run as rows of a table.

use control::CaState;
use machine::PathStatus;
use scenario::model::{Experiment, Flow, FlowKind};
use schedule::{Choice, PacketChoice, PathView};
use sim::{Direction, LossCause, TraceEvent, Traced, TracedContent, TracedPacket, TracedSender};
use std::collections::BTreeMap;
use store::EventRow;
use transport::path::Limit;
use transport::tcp::SegmentKind;
use units::{INFINITE_SSTHRESH, Rate, Span};

/// Makes rows of events.
#[derive(Debug)]
pub(crate) struct Events {
    flows: Vec<String>,
    /// The paths of a flow's subflows.
    subflows: Vec<Vec<String>>,
    paths: Vec<String>,
    links: Vec<String>,
    /// The latest state of each sender: an unchanged state makes no row.
    senders: BTreeMap<(u16, u16), TracedSender>,
    /// The latest limit of each flow and subflow.
    limits: BTreeMap<(u16, Option<u16>), Limit>,
    /// The latest view of each subflow.
    views: BTreeMap<(u32, u16), PathView>,
    /// The names of the tunnel's paths.
    tunnel_paths: Vec<String>,
    /// The latest state of each path of the tunnel's ends.
    tunnel_states: BTreeMap<(usize, u16), EventRow>,
}

impl Events {
    pub(crate) fn new(experiment: &Experiment) -> Self {
        Self {
            flows: experiment.flows.iter().map(|flow| flow.name.clone()).collect(),
            subflows: subflow_paths(experiment),
            paths: experiment.paths.iter().map(|path| path.name.clone()).collect(),
            links: experiment.links.iter().map(|link| link.name.clone()).collect(),
            senders: BTreeMap::new(),
            limits: BTreeMap::new(),
            views: BTreeMap::new(),
            tunnel_paths: tunnel_paths(experiment),
            tunnel_states: BTreeMap::new(),
        }
    }

    /// The rows of these events.
    pub(crate) fn rows(&mut self, events: &[TraceEvent]) -> Vec<EventRow> {
        let mut rows = Vec::new();
        for TraceEvent { at, what } in events {
            let first = rows.len();
            match what {
                Traced::Choice { flow, choice } => self.choice(&mut rows, &Chooser::Flow(*flow), choice),
                Traced::TunnelChoice { direction, choice } => {
                    self.choice(&mut rows, &Chooser::Tunnel(*direction), choice);
                }
                _ => rows.extend(self.row(what)),
            }
            rows[first..].iter_mut().for_each(|row| row.time_s = at.as_secs_f64());
        }
        rows
    }

    fn row(&mut self, what: &Traced) -> Option<EventRow> {
        Some(match what {
            Traced::Sent(packet) => self.packet("sent", packet),
            Traced::Delivered(packet) => self.packet("delivered", packet),
            Traced::Lost { packet, link, cause } => {
                let cause = Some(match cause {
                    LossCause::Queue => "queue",
                    LossCause::Link => "link",
                    LossCause::Checksum => "checksum",
                });
                EventRow { link: self.link(*link), cause, ..self.packet("lost", packet) }
            }
            Traced::Queue { link, packets } => EventRow {
                event: "queue",
                link: self.link(Some(*link)),
                queue_packets: Some(*packets),
                ..EventRow::default()
            },
            Traced::Sender(sender) => self.sender(sender)?,
            Traced::DeclaredLost { .. } | Traced::Choice { .. } | Traced::TunnelChoice { .. } | Traced::Crossing(_) => {
                return None;
            }
            Traced::TunnelPath { direction, status } => self.tunnel_path(*direction, status)?,
            Traced::Limit { flow, subflow, limit } => self.limit(*flow, *subflow, *limit)?,
            Traced::Rtt { flow, subflow, rtt } => {
                EventRow { rtt_ms: Some(rtt.as_millis_f64()), ..self.subflow("rtt", *flow, *subflow) }
            }
        })
    }

    /// An event of a subflow.
    fn subflow(&self, event: &'static str, flow: u16, subflow: u16) -> EventRow {
        EventRow {
            event,
            flow: self.flows.get(usize::from(flow)).cloned(),
            path: self.subflow_path(flow, subflow),
            connection: Some(u64::from(subflow)),
            ..EventRow::default()
        }
    }

    /// The state of a tunnel's path, if it has changed.
    fn tunnel_path(&mut self, direction: Direction, status: &PathStatus) -> Option<EventRow> {
        let row = EventRow {
            cwnd_packets: Some(u64::from(status.cwnd)),
            pacing_mbps: (status.pacing_rate > Rate(0)).then(|| status.pacing_rate.as_mbps()),
            in_flight_packets: Some(u64::from(status.in_flight)),
            srtt_ms: status.srtt.map(Span::as_millis_f64),
            lost_packets: Some(status.lost_packets),
            ..self.subject("state", &Chooser::Tunnel(direction), Some(status.path.0))
        };
        let latest = self.tunnel_states.insert((direction as usize, status.path.0), row.clone());
        (latest.as_ref() != Some(&row)).then_some(row)
    }

    /// An event of a flow or of a tunnel, and of one of its paths.
    fn subject(&self, event: &'static str, chooser: &Chooser, path: Option<u16>) -> EventRow {
        match (chooser, path) {
            (Chooser::Flow(flow), Some(subflow)) => self.subflow(event, *flow, subflow),
            (Chooser::Flow(flow), None) => {
                EventRow { event, flow: self.flows.get(usize::from(*flow)).cloned(), ..EventRow::default() }
            }
            (Chooser::Tunnel(direction), path) => EventRow {
                event,
                path: path.and_then(|path| self.tunnel_paths.get(usize::from(path)).cloned()),
                direction: Some(direction_name(*direction)),
                ..EventRow::default()
            },
        }
    }

    /// A choice of the scheduler, after the views of the paths that have changed since its last one.
    fn choice(&mut self, rows: &mut Vec<EventRow>, chooser: &Chooser, choice: &Choice) {
        for (view, subflow) in choice.paths.iter().zip(0..) {
            if self.views.insert((chooser.key(), subflow), *view) != Some(*view) {
                rows.push(EventRow {
                    cwnd_packets: Some(u64::from(view.cwnd)),
                    ssthresh_packets: (view.ssthresh != INFINITE_SSTHRESH).then_some(u64::from(view.ssthresh)),
                    pacing_mbps: Some(view.pacing_rate.as_mbps()),
                    in_flight_packets: Some(u64::from(view.in_flight)),
                    queued_packets: Some(u64::from(view.queued)),
                    room: Some(match (view.active, view.has_room) {
                        (false, _) => "inactive",
                        (true, false) => "no",
                        (true, true) => "yes",
                    }),
                    srtt_ms: (view.srtt > Span::ZERO).then(|| view.srtt.as_millis_f64()),
                    ..self.subject("view", chooser, Some(subflow))
                });
            }
        }
        let has_data = !choice.data.is_empty();
        let (data_seq, data_end) = (has_data.then_some(choice.data.start), has_data.then_some(choice.data.end));
        rows.push(match choice.pick {
            None => self.subject("wait", chooser, None),
            Some(pick) => EventRow {
                packet: Some(match pick.packet {
                    PacketChoice::Next => "next",
                    PacketChoice::SkipAhead(_) => "skip-ahead",
                    PacketChoice::OldestUnacked => "oldest-unacked",
                }),
                data_seq,
                data_end,
                ..self.subject("choice", chooser, Some(pick.path.0))
            },
        });
    }

    fn link(&self, link: Option<(usize, Direction)>) -> Option<String> {
        let (link, direction) = link?;
        let name = self.links.get(link)?;
        Some(if direction == Direction::Forward { name.clone() } else { format!("{name} reverse") })
    }

    fn packet(&self, event: &'static str, packet: &TracedPacket) -> EventRow {
        let (kind, seq, data_seq, ack) = describe(&packet.content);
        EventRow {
            event,
            flow: self.flows.get(usize::from(packet.flow)).cloned(),
            path: packet.path.and_then(|path| self.paths.get(path)).cloned(),
            connection: Some(u64::from(packet.connection)),
            direction: Some(direction_name(packet.direction)),
            packet: Some(kind),
            seq,
            data_seq,
            ack,
            sack: sack_blocks(&packet.content),
            receive_window_bytes: receive_window(&packet.content),
            bytes: Some(u64::from(packet.bytes)),
            ecn: Some(match packet.ecn {
                link::EcnField::NotEct => "not-ect",
                link::EcnField::Ect0 => "ect0",
                link::EcnField::Ect1 => "ect1",
                link::EcnField::Ce => "ce",
            }),
            ..EventRow::default()
        }
    }

    /// The path of a flow's subflow, if the flow has subflows.
    fn subflow_path(&self, flow: u16, subflow: u16) -> Option<String> {
        self.subflows.get(usize::from(flow))?.get(usize::from(subflow)).cloned()
    }

    /// The limit of a flow or a subflow, if it has changed. A flow without a name is the far connection of a relayed one.
    fn limit(&mut self, flow: u16, subflow: Option<u16>, limit: Limit) -> Option<EventRow> {
        let name = self.flows.get(usize::from(flow))?;
        if self.limits.insert((flow, subflow), limit) == Some(limit) {
            return None;
        }
        Some(EventRow {
            event: "limit",
            flow: Some(name.clone()),
            path: subflow.and_then(|subflow| self.subflow_path(flow, subflow)),
            connection: subflow.map(u64::from),
            limit: Some(limit.name()),
            ..EventRow::default()
        })
    }

    /// The state of a sender, if it has changed.
    fn sender(&mut self, sender: &TracedSender) -> Option<EventRow> {
        let key = (sender.flow, sender.subflow);
        if self.senders.insert(key, *sender) == Some(*sender) {
            return None;
        }
        Some(EventRow {
            cwnd_packets: Some(u64::from(sender.cwnd)),
            ssthresh_packets: (sender.ssthresh != INFINITE_SSTHRESH).then_some(u64::from(sender.ssthresh)),
            pacing_mbps: sender.pacing_rate.map(units::Rate::as_mbps),
            in_flight_packets: Some(u64::from(sender.in_flight)),
            srtt_ms: (sender.srtt > Span::ZERO).then(|| sender.srtt.as_millis_f64()),
            congestion_state: Some(state_name(sender.ca_state)),
            lost_packets: Some(sender.lost),
            timeouts: Some(sender.timeouts),
            ..self.subflow("state", sender.flow, sender.subflow)
        })
    }
}

/// What has a scheduler: a flow over several paths, or the end of a tunnel that sends in a direction.
enum Chooser {
    Flow(u16),
    Tunnel(Direction),
}

impl Chooser {
    fn key(&self) -> u32 {
        match self {
            Self::Flow(flow) => u32::from(*flow),
            Self::Tunnel(direction) => u32::MAX - *direction as u32,
        }
    }
}

fn direction_name(direction: Direction) -> &'static str {
    if direction == Direction::Forward { "forward" } else { "reverse" }
}

/// The names of the tunnel's paths.
pub(crate) fn tunnel_paths(experiment: &Experiment) -> Vec<String> {
    let paths = experiment.tunnel.iter().flat_map(|tunnel| &tunnel.paths);
    paths.map(|path| experiment.paths[*path].name.clone()).collect()
}

/// The paths of each flow's subflows.
pub(crate) fn subflow_paths(experiment: &Experiment) -> Vec<Vec<String>> {
    let paths = |flow: &Flow| match &flow.kind {
        FlowKind::Tcp { multipath: Some(multipath), .. } => {
            multipath.subflows.iter().map(|subflow| experiment.paths[subflow.path].name.clone()).collect()
        }
        _ => Vec::new(),
    };
    experiment.flows.iter().map(paths).collect()
}

/// The name of a congestion state.
pub(crate) fn state_name(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Cwr => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}

/// The kind of a packet, its number, the number of its data in an MPTCP connection, and the number that it acknowledges, all
/// in segments.
fn describe(content: &TracedContent) -> (&'static str, Option<u64>, Option<u64>, Option<u64>) {
    let segment = |segment: &transport::tcp::Segment| match segment.kind {
        SegmentKind::Syn => "syn",
        SegmentKind::HandshakeAck => "handshake-ack",
        SegmentKind::Data if segment.retransmission => "retransmission",
        SegmentKind::Data => "data",
        SegmentKind::WindowProbe => "window-probe",
    };
    match content {
        TracedContent::Tcp { first, .. } => (segment(first), Some(first.seq), None, None),
        TracedContent::TcpAck(ack) => (if ack.syn { "syn-ack" } else { "ack" }, None, None, Some(ack.ack)),
        TracedContent::Mptcp(whole) => {
            let kind = if whole.copy { "copy" } else { segment(&whole.tcp) };
            let data = (whole.tcp.kind == SegmentKind::Data).then_some(whole.data_seq);
            (kind, Some(whole.tcp.seq), data, None)
        }
        TracedContent::MptcpAck(ack) => {
            (if ack.tcp.syn { "syn-ack" } else { "ack" }, None, Some(ack.data_ack), Some(ack.tcp.ack))
        }
        TracedContent::Quic(packet) => ("quic", Some(packet.number), None, None),
        TracedContent::QuicReply(_) => ("quic-ack", None, None, None),
        TracedContent::Request(number) => ("request", Some(u64::from(*number)), None, None),
        TracedContent::Udp(number) | TracedContent::Datagram { number, .. } => ("datagram", Some(*number), None, None),
        TracedContent::Tunnel => ("tunnel-datagram", None, None, None),
        TracedContent::Stray => ("stray", None, None, None),
    }
}

/// The TCP acknowledgement in a packet.
fn acknowledgement(content: &TracedContent) -> Option<&transport::tcp::Ack> {
    match content {
        TracedContent::TcpAck(ack) => Some(ack),
        TracedContent::MptcpAck(ack) => Some(&ack.tcp),
        _ => None,
    }
}

/// The SACK blocks of a packet, each from its first segment to the one after its last, most recent first.
fn sack_blocks(content: &TracedContent) -> Option<String> {
    let blocks = acknowledgement(content)?.sack_blocks;
    let texts = blocks.iter().map(|(start, end)| format!("{start}-{end}")).collect::<Vec<_>>();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// The receive window of a packet, bytes; of MPTCP beyond the data acknowledgement.
fn receive_window(content: &TracedContent) -> Option<u64> {
    acknowledgement(content).map(|ack| ack.receive_window)
}
