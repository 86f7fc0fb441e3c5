//! qlog: packets and recovery of QUIC flows, and the recovery events of the others in the same form.
//!
//! draft-ietf-quic-qlog-main-schema (JSON text sequences, RFC 7464) and draft-ietf-quic-qlog-quic-events. The vantage point
//! is the sender of the data. Each event's `group_id` is its flow, its `tuple` the path. Version 0.3 is
//! draft-marx-qlog-main-schema-02 with draft-marx-qlog-event-definitions-quic-h3-02: the events have other names, and a path is a
//! group of its own, because each path numbers its packets from 0.

use crate::events::{state_name, subflow_paths, tunnel_paths};
use control::CaState;
use machine::PathStatus;
use scenario::model::Experiment;
use serde_json::{Map, Value, json};
use sim::{Direction, HeaderSizes, Simulation, TraceEvent, Traced, TracedContent, TracedPacket, TracedSender};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use transport::quic::{Content, DeclaredLost, Packet, Reply, ReplyContent};
use units::{INFINITE_SSTHRESH, Rate, Span};

/// The version of a qlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QlogVersion {
    /// draft-ietf-quic-qlog-quic-events-12.
    #[default]
    Draft12,
    /// 0.3, which qvis reads.
    V03,
}

impl QlogVersion {
    /// The name of an event, of which `name` is the part after the namespace in the latest draft.
    fn event_name(self, name: &str) -> String {
        match (self, name.strip_prefix("recovery_").unwrap_or(name)) {
            (Self::Draft12, _) => format!("quic:{name}"),
            (Self::V03, name @ ("packet_sent" | "packet_received")) => format!("transport:{name}"),
            (Self::V03, name) => format!("recovery:{name}"),
        }
    }
}

/// The event schema, by the number of its draft.
const EVENT_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-12";
/// Begins each record (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
/// UDP header, bytes.
const UDP_HEADER: u32 = 8;

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Qlog {
    file: BufWriter<File>,
    version: QlogVersion,
    flows: Vec<String>,
    paths: Vec<String>,
    subflows: Vec<Vec<String>>,
    sizes: Vec<Option<HeaderSizes>>,
    /// The names of the tunnel's paths.
    tunnel_paths: Vec<String>,
    /// The latest metrics of each path of the tunnel's ends.
    tunnel_metrics: BTreeMap<(usize, u16), Map<String, Value>>,
    /// The latest state of each sender.
    senders: BTreeMap<(u16, u16), TracedSender>,
}

impl Qlog {
    /// Writes the beginning.
    pub(crate) fn new(
        file: File,
        version: QlogVersion,
        experiment: &Experiment,
        simulation: &Simulation,
    ) -> io::Result<Self> {
        let mut log = Self {
            file: BufWriter::new(file),
            version,
            flows: experiment.flows.iter().map(|flow| flow.name.clone()).collect(),
            paths: experiment.paths.iter().map(|path| path.name.clone()).collect(),
            subflows: subflow_paths(experiment),
            sizes: (0..experiment.flows.len()).map(|flow| simulation.header_sizes(flow)).collect(),
            tunnel_paths: tunnel_paths(experiment),
            tunnel_metrics: BTreeMap::new(),
            senders: BTreeMap::new(),
        };
        log.record(&match version {
            QlogVersion::Draft12 => json!({
                "file_schema": "urn:ietf:params:qlog:file:sequential",
                "serialization_format": "application/qlog+json-seq",
                "title": experiment.name,
                "trace": {
                    "common_fields": {
                        "time_format": "relative_to_epoch",
                        "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                    },
                    "vantage_point": { "type": "client" },
                    "event_schemas": [EVENT_SCHEMA],
                },
            }),
            QlogVersion::V03 => json!({
                "qlog_version": "0.3",
                "qlog_format": "JSON-SEQ",
                "title": experiment.name,
                "trace": {
                    "common_fields": { "time_format": "relative", "reference_time": 0 },
                    "vantage_point": { "type": "client" },
                },
            }),
        })?;
        Ok(log)
    }

    /// Writes events, and flushes them to the system.
    pub(crate) fn write(&mut self, events: &[TraceEvent]) -> io::Result<()> {
        for TraceEvent { at, what } in events {
            let time_ms = at.as_secs_f64() * 1e3;
            match what {
                Traced::Sent(packet) if packet.direction == Direction::Forward => self.sent(time_ms, packet)?,
                Traced::Delivered(packet) if packet.direction == Direction::Reverse => {
                    self.received(time_ms, packet)?;
                }
                Traced::DeclaredLost { flow, packet } => self.lost(time_ms, *flow, packet)?,
                Traced::Sender(sender) => self.sender(time_ms, sender)?,
                Traced::TunnelPath { direction, status } => self.tunnel_path(time_ms, *direction, status)?,
                _ => {}
            }
        }
        self.file.flush()
    }

    fn record(&mut self, value: &Value) -> io::Result<()> {
        self.file.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.file, value)?;
        self.file.write_all(b"\n")
    }

    /// Writes an event of a flow of the experiment. (The far connection of a relayed one is none.)
    fn event(&mut self, time_ms: f64, name: &str, flow: u16, path: Option<String>, data: &Value) -> io::Result<()> {
        match self.flows.get(usize::from(flow)).cloned() {
            Some(group_id) => self.event_of(time_ms, name, &group_id, path, data),
            None => Ok(()),
        }
    }

    /// Writes an event of a group.
    fn event_of(
        &mut self,
        time_ms: f64,
        name: &str,
        group_id: &str,
        path: Option<String>,
        data: &Value,
    ) -> io::Result<()> {
        let name = self.version.event_name(name);
        let mut event = json!({ "time": time_ms, "name": name, "group_id": group_id, "data": data });
        match (path, self.version) {
            (Some(path), QlogVersion::Draft12) => event["tuple"] = path.into(),
            (Some(path), QlogVersion::V03) => event["group_id"] = format!("{group_id}, {path}").into(),
            (None, _) => {}
        }
        self.record(&event)
    }

    fn sent(&mut self, time_ms: f64, packet: &TracedPacket) -> io::Result<()> {
        let TracedContent::Quic(quic) = &packet.content else { return Ok(()) };
        let payload = self.size(packet.flow).map_or(0, |sizes| sizes.payload);
        let data = json!({ "header": header(quic), "frames": [frame(quic, payload)], "raw": self.raw(packet) });
        self.event(time_ms, "packet_sent", packet.flow, self.path(packet), &data)
    }

    fn received(&mut self, time_ms: f64, packet: &TracedPacket) -> io::Result<()> {
        let TracedContent::QuicReply(reply) = &packet.content else { return Ok(()) };
        let is_handshake = matches!(reply.content, ReplyContent::Handshake { .. });
        let header = json!({ "packet_type": if is_handshake { "initial" } else { "1RTT" } });
        let data = json!({ "header": header, "frames": [reply_frame(reply)], "raw": self.raw(packet) });
        self.event(time_ms, "packet_received", packet.flow, self.path(packet), &data)
    }

    fn lost(&mut self, time_ms: f64, flow: u16, packet: &DeclaredLost) -> io::Result<()> {
        let trigger = if packet.by_time { "time_threshold" } else { "reordering_threshold" };
        let header = json!({ "packet_type": "1RTT", "packet_number": packet.number });
        let path = self.subflow_path(flow, packet.path);
        self.event(time_ms, "packet_lost", flow, path, &json!({ "header": header, "trigger": trigger }))
    }

    /// Writes what has changed of a sender's state.
    fn sender(&mut self, time_ms: f64, sender: &TracedSender) -> io::Result<()> {
        let prior = self.senders.insert((sender.flow, sender.subflow), *sender);
        let path = self.subflow_path(sender.flow, sender.subflow);
        let packet_bytes = self.size(sender.flow).map_or(0, |sizes| u64::from(sizes.payload));
        let before = prior.map(|prior| metrics(&prior, packet_bytes)).unwrap_or_default();
        let mut changed = metrics(sender, packet_bytes);
        changed.retain(|name, value| before.get(name) != Some(value));
        if !changed.is_empty() {
            self.event(time_ms, "recovery_metrics_updated", sender.flow, path.clone(), &changed.into())?;
        }
        let (old, new) = (prior.map(|prior| congestion_state(&prior)), congestion_state(sender));
        if old == Some(new) {
            return Ok(());
        }
        let mut data = json!({ "new": new });
        if let Some(old) = old {
            data["old"] = old.into();
        }
        self.event(time_ms, "congestion_state_updated", sender.flow, path, &data)
    }

    /// Writes what has changed of a tunnel's path.
    fn tunnel_path(&mut self, time_ms: f64, direction: Direction, status: &PathStatus) -> io::Result<()> {
        let all = tunnel_metrics(status);
        let before = self.tunnel_metrics.insert((direction as usize, status.path.0), all.clone()).unwrap_or_default();
        let changed: Map<String, Value> =
            all.into_iter().filter(|(name, value)| before.get(name) != Some(value)).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let group = if direction == Direction::Forward { "tunnel" } else { "tunnel reverse" };
        let path = self.tunnel_paths.get(usize::from(status.path.0)).cloned();
        self.event_of(time_ms, "recovery_metrics_updated", group, path, &changed.into())
    }

    fn size(&self, flow: u16) -> Option<HeaderSizes> {
        self.sizes.get(usize::from(flow)).copied().flatten()
    }

    /// The size of a QUIC packet, without the headers of IP and UDP.
    fn raw(&self, packet: &TracedPacket) -> Value {
        let ip = self.size(packet.flow).map_or(0, |sizes| sizes.ip);
        json!({ "length": packet.bytes - ip - UDP_HEADER })
    }

    fn path(&self, packet: &TracedPacket) -> Option<String> {
        self.paths.get(packet.path?).cloned()
    }

    fn subflow_path(&self, flow: u16, subflow: u16) -> Option<String> {
        self.subflows.get(usize::from(flow))?.get(usize::from(subflow)).cloned()
    }
}

/// The header of a sender's packet. The numbers of PATH_CHALLENGE packets are not of the space of the others.
fn header(packet: &Packet) -> Value {
    match packet.content {
        Content::Initial => json!({ "packet_type": "initial", "packet_number": packet.number }),
        Content::PathChallenge => json!({ "packet_type": "1RTT" }),
        Content::Ping | Content::Stream { .. } => json!({ "packet_type": "1RTT", "packet_number": packet.number }),
    }
}

fn frame(packet: &Packet, payload: u32) -> Value {
    match packet.content {
        Content::Initial => json!({ "frame_type": "crypto", "offset": 0, "raw": {} }),
        Content::PathChallenge => json!({ "frame_type": "path_challenge" }),
        Content::Ping => json!({ "frame_type": "ping" }),
        Content::Stream { chunk, .. } => {
            json!({ "frame_type": "stream", "stream_id": 0, "offset": chunk * u64::from(payload) })
        }
    }
}

fn reply_frame(reply: &Reply) -> Value {
    match &reply.content {
        ReplyContent::Handshake { .. } => json!({ "frame_type": "crypto", "offset": 0, "raw": {} }),
        ReplyContent::PathResponse { .. } => json!({ "frame_type": "path_response" }),
        ReplyContent::Ack(ack) => {
            let range =
                |(start, end): (u64, u64)| if start + 1 == end { json!([start]) } else { json!([start, end - 1]) };
            let ranges: Vec<Value> = ack.ranges.iter().map(range).collect();
            json!({ "frame_type": "ack", "ack_delay": f64::from(ack.delay_us) / 1e3, "acked_ranges": ranges })
        }
    }
}

/// The metrics of a sender whose packets carry so many bytes.
fn metrics(sender: &TracedSender, packet_bytes: u64) -> Map<String, Value> {
    let bytes = |packets: u32| Value::from(u64::from(packets) * packet_bytes);
    let all = [
        ("smoothed_rtt", (sender.srtt > Span::ZERO).then(|| sender.srtt.as_millis_f64().into())),
        ("congestion_window", Some(bytes(sender.cwnd))),
        ("bytes_in_flight", Some(bytes(sender.in_flight))),
        ("packets_in_flight", Some(sender.in_flight.into())),
        ("ssthresh", (sender.ssthresh != INFINITE_SSTHRESH).then(|| bytes(sender.ssthresh))),
        ("pacing_rate", sender.pacing_rate.map(Rate::as_bits).map(Value::from)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The metrics of a tunnel's path, whose packets count as full ones.
fn tunnel_metrics(status: &PathStatus) -> Map<String, Value> {
    let bytes = |packets: u32| Value::from(u64::from(packets) * u64::from(status.max_datagram_size));
    let all = [
        ("smoothed_rtt", status.srtt.map(|srtt| srtt.as_millis_f64().into())),
        ("congestion_window", Some(bytes(status.cwnd))),
        ("bytes_in_flight", Some(bytes(status.in_flight))),
        ("packets_in_flight", Some(status.in_flight.into())),
        ("pacing_rate", (status.pacing_rate > Rate(0)).then(|| status.pacing_rate.as_bits().into())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The congestion state, in the words of RFC 9002 where it has one.
fn congestion_state(sender: &TracedSender) -> &'static str {
    match sender.ca_state {
        CaState::Open | CaState::Disorder if sender.cwnd < sender.ssthresh => "slow_start",
        CaState::Open | CaState::Disorder => "congestion_avoidance",
        CaState::Cwr | CaState::Recovery => "recovery",
        CaState::Loss => state_name(CaState::Loss),
    }
}
