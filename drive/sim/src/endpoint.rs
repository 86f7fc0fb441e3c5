//! Flows: the core's TCP machines, or a constant-rate source, with their place in the network.

use crate::error::Error;
use crate::summary::Distribution;
use control::Ecn;
use protocol::tcp::{self, Ack, Receiver, Segment, Sender, receiver, sender};
use scenario::model::{Congestion, Experiment, Flow, FlowKind, Host, Parameter, Recovery, Route};
use units::{Instant, Span, Stream};

/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = 40;
/// The timestamps option with its padding, bytes.
const TIMESTAMPS: u32 = 12;
/// What Linux charges a send buffer for one segment beyond its payload, bytes: its share of `sk_buff` and page slack.
/// Measured: an MSS of 1388 and 4 MiB of buffer hold 1981 segments.
const SEND_OVERHEAD: u64 = 729;

/// A flow at work.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub name: String,
    pub route: Route,
    pub start: Instant,
    pub stop: Instant,
    pub kind: Kind,
}

/// What a flow is.
#[derive(Debug)]
pub(crate) enum Kind {
    Tcp(Box<Tcp>),
    Datagrams(Datagrams),
}

/// Both ends of a constant-rate flow.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Size of each, bytes.
    pub packet: u32,
    pub interval: Span,
    pub sent: u64,
    pub received: u64,
    pub delay: Distribution,
}

/// Both ends of a TCP connection.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub congestion: String,
    pub sender: Sender,
    pub receiver: Receiver,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes of a packet without payload.
    pub headers: u32,
    /// How ECN is used, if it is.
    pub ecn: Option<Ecn>,
    /// Segments to send; `u64::MAX` for bulk.
    pub segments: u64,
    pub size: Option<u64>,
    pub rtt: Distribution,
    /// Data segments that arrived.
    pub arrived: u64,
    pub done: Option<Instant>,
    pub stopped: bool,
}

impl Endpoint {
    pub(crate) fn new(experiment: &Experiment, flow: &Flow, seed: u64) -> Result<Self, Error> {
        let kind = match &flow.kind {
            FlowKind::Tcp { congestion, size, host } => {
                let mtu = match flow.route {
                    Route::Path(path) => experiment.paths[path].mtu,
                    Route::Tunnel => experiment.tunnel.as_ref().expect("the flow's route").mtu,
                };
                Kind::Tcp(Box::new(Tcp::new(&flow.name, congestion, *size, host, mtu, seed)?))
            }
            FlowKind::ConstantRate { rate, packet } => {
                let interval = rate.time_for(u64::from(*packet));
                Kind::Datagrams(Datagrams {
                    packet: *packet,
                    interval,
                    sent: 0,
                    received: 0,
                    delay: Distribution::default(),
                })
            }
        };
        let stop = flow.stop.unwrap_or(Instant::NEVER);
        let late = Stream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1);
        Ok(Self { name: flow.name.clone(), route: flow.route, start: flow.start + Span(late), stop, kind })
    }
}

impl Tcp {
    fn new(
        name: &str,
        congestion: &Congestion,
        size: Option<u64>,
        host: &Host,
        mtu: u32,
        seed: u64,
    ) -> Result<Self, Error> {
        let headers = HEADERS + if host.timestamps { TIMESTAMPS } else { 0 };
        let mss = host.mss.unwrap_or(mtu - headers);
        let segments = size.map_or(u64::MAX, |size| size.div_ceil(u64::from(mss)));
        let entry = control::registry::find(&congestion.name)
            .ok_or_else(|| Error::UnknownAlgorithm { flow: name.to_owned(), name: congestion.name.clone() })?;
        let parameters = congestion.parameters.iter().map(|(key, value)| (key.clone(), setting(value))).collect();
        let controller = entry.controller(&parameters).map_err(|source| Error::BadParameter {
            flow: name.to_owned(),
            algorithm: entry.name,
            source,
        })?;
        let ecn = match controller.ecn() {
            Ecn::Classic => host.ecn.then_some(Ecn::Classic),
            Ecn::PerPacket => Some(Ecn::PerPacket),
        };
        let config = sender::Config {
            mss,
            packet: mss + headers,
            initial_window: host.initial_window,
            timestamps: host.timestamps,
            sack: host.sack,
            ecn: ecn.is_some(),
            pacing: host.pacing,
            send_buffer: (host.send_buffer / (u64::from(mss) + SEND_OVERHEAD)).max(2),
            reordering: host.reordering,
            max_reordering: host.max_reordering,
            tick: host.tick,
            recovery: match host.recovery {
                Recovery::Rack => sender::Recovery::Rack,
                Recovery::Fack => sender::Recovery::Fack,
            },
            handshake: host.handshake,
            initial_timeout: host.initial_timeout,
            window: host.window.unwrap_or(u32::MAX),
        };
        let receiver = receiver::Config {
            mss,
            timestamps: host.timestamps,
            sack: host.sack,
            quick_ack: host.quick_ack,
            gro: host.gro,
            buffer: [host.receive_buffer[1], host.receive_buffer[2]],
            ecn: ecn.unwrap_or_default(),
            tick: host.tick,
        };
        Ok(Self {
            congestion: entry.name.to_owned(),
            sender: Sender::new(config, controller, Stream::named(seed, &format!("flow {name} control")), segments),
            receiver: Receiver::new(receiver),
            mss,
            headers,
            ecn,
            segments,
            size,
            rtt: Distribution::default(),
            arrived: 0,
            done: None,
            stopped: false,
        })
    }

    /// Size of a segment's packet, and whether it is ECN-capable: data sent for the first time (RFC 3168 section 6.1), or
    /// every packet.
    pub(crate) fn segment_bytes(&self, segment: &Segment) -> (u32, bool) {
        match segment.kind {
            tcp::Kind::Data => {
                (self.headers + self.mss, self.marks_all() || self.ecn.is_some() && !segment.retransmission)
            }
            tcp::Kind::Syn | tcp::Kind::HandshakeAck => (self.headers, self.marks_all()),
        }
    }

    /// Packets without new data are ECN-capable, too.
    pub(crate) fn marks_all(&self) -> bool {
        self.ecn == Some(Ecn::PerPacket)
    }

    /// Size of an acknowledgement's packet. The SACK option: two bytes, eight a block, padded to four (RFC 2018
    /// section 3).
    pub(crate) fn ack_bytes(&self, ack: &Ack) -> u32 {
        match ack.blocks.as_slice().len() as u32 {
            0 => self.headers,
            blocks => self.headers + 4 + 8 * blocks,
        }
    }

    /// Bytes that reached the receiving host, headers included.
    pub(crate) fn arrived_bytes(&self) -> u64 {
        self.arrived * u64::from(self.headers + self.mss)
    }

    /// Bytes that reached the application; the last segment of a sized flow may be short.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        let bytes = self.receiver.delivered() * u64::from(self.mss);
        self.size.map_or(bytes, |size| bytes.min(size))
    }
}

fn setting(parameter: &Parameter) -> control::Value {
    match parameter {
        Parameter::Number(number) => control::Value::Number(*number),
        Parameter::Word(word) => control::Value::Word(word.clone()),
    }
}
