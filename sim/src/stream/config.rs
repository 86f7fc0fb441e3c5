//! The configuration of a flow, from which its connections are made: one, or one per request.

use crate::error::Error;
use crate::trace::HeaderSizes;
use control::{AlgorithmEntry, Controller, Ecn};
use link::EcnField;
use scenario::model::{self, AlgorithmChoice, Host, LinuxRelease, Multipath};
use schedule::{Scheduler, SchedulerEntry};
use std::collections::BTreeMap;
use transport::tcp::{Ack, Segment, SegmentKind, receiver, sender};
use units::RngStream;

/// A TCP header without options, bytes.
const TCP_HEADER: u32 = 20;
/// The timestamps option with its padding, bytes.
const TIMESTAMPS: u32 = 12;

/// The configuration of a flow of any transport.
#[derive(Debug)]
pub(crate) struct StreamConfig {
    pub entry: &'static AlgorithmEntry,
    parameters: BTreeMap<String, params::ParamValue>,
    pub sender: sender::SenderConfig,
    pub receiver: receiver::ReceiverConfig,
    seed: u64,
    /// Name of the first connection's random stream.
    rng_name: String,
    /// IP header, bytes.
    pub ip_header: u32,
    /// IP and TCP headers of a data packet, bytes; for QUIC everything in a packet other than its data.
    pub header_bytes: u32,
    /// Bytes of MPTCP's option on a data packet.
    option_bytes: u32,
    /// The ECN feedback that was negotiated, if any.
    pub ecn: Option<Ecn>,
}

/// What a flow's configuration is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConfigSource<'a> {
    /// The flow.
    pub name: &'a str,
    pub congestion: &'a AlgorithmChoice,
    pub host: &'a Host,
    /// The smallest one of its paths, bytes.
    pub mtu: u32,
    pub seed: u64,
}

/// The configuration of a connection over several paths, whose scheduler and its parameters have been checked.
#[derive(Debug)]
pub(crate) struct MultipathConfig {
    pub subflows: Vec<model::Subflow>,
    /// The path of each subflow, by its number in the experiment.
    pub paths: Vec<usize>,
    pub entry: &'static SchedulerEntry,
    weights: Vec<u32>,
    parameters: BTreeMap<String, params::ParamValue>,
}

impl MultipathConfig {
    /// # Errors
    /// The scheduler, or one of its parameters.
    pub(crate) fn new(flow: &str, model: &Multipath) -> Result<Self, Error> {
        let name = &model.scheduler.name;
        let entry = schedule::find(name).ok_or_else(|| Error::UnknownScheduler { name: name.clone() })?;
        let parameters = model.scheduler.parameters.clone();
        entry.scheduler(&model.weights, 0, &parameters).map_err(|source| Error::BadParameter {
            flow: flow.to_owned(),
            algorithm: entry.name,
            source,
        })?;
        let paths = model.subflows.iter().map(|subflow| subflow.path).collect();
        Ok(Self { subflows: model.subflows.clone(), paths, entry, weights: model.weights.clone(), parameters })
    }

    /// The scheduler of a connection with this controller, and the controller, whose events it may watch.
    pub(crate) fn scheduler(&self, controller: Box<dyn Controller>) -> (Box<dyn Scheduler>, Box<dyn Controller>) {
        let scheduler = self.entry.scheduler(&self.weights, 0, &self.parameters);
        let mut scheduler = scheduler.expect("`new` has checked the parameters");
        let controller = scheduler.watch(controller);
        (scheduler, controller)
    }
}

impl StreamConfig {
    /// A data packet has a header of the transport and further options of these bytes.
    ///
    /// # Errors
    /// The algorithm, one of its parameters, or a receive buffer that holds no segment.
    pub(crate) fn new(source: ConfigSource<'_>, [transport_header, option_bytes]: [u32; 2]) -> Result<Self, Error> {
        let ConfigSource { name, congestion, host, mtu, seed } = source;
        let header_bytes = host.ip_header + transport_header;
        let mss = host.mss.unwrap_or(mtu - header_bytes - option_bytes);
        let entry = control::registry::find(&congestion.name)
            .ok_or_else(|| Error::UnknownAlgorithm { flow: name.to_owned(), name: congestion.name.clone() })?;
        let parameters = congestion.parameters.clone();
        let ecn = entry.ecn(&parameters).map_err(|source| Error::BadParameter {
            flow: name.to_owned(),
            algorithm: entry.name,
            source,
        })?;
        let buffer = host.receive_buffer.default;
        if buffer / 2 < u64::from(mss) {
            return Err(Error::SmallBuffer { flow: name.to_owned(), buffer, mss });
        }
        let ecn = match ecn {
            Ecn::Classic => host.ecn.then_some(Ecn::Classic),
            Ecn::PerPacket | Ecn::L4s => Some(ecn),
        };
        Ok(Self {
            entry,
            parameters,
            sender: sender_config(host, mss, header_bytes, ecn),
            receiver: receiver_config(host, [mss, option_bytes], ecn.unwrap_or_default()),
            seed,
            rng_name: format!("flow {name} control"),
            ip_header: host.ip_header,
            header_bytes,
            option_bytes,
            ecn,
        })
    }

    /// The sizes of the headers of its packets.
    pub(crate) fn header_sizes(&self) -> HeaderSizes {
        HeaderSizes {
            ip: self.ip_header,
            tcp: self.header_bytes,
            data_option: self.option_bytes,
            payload: self.mss(),
            max_receive_buffer: self.receiver.buffer[1],
        }
    }

    /// The controller of connection `number`, from 0, and its random stream.
    pub(crate) fn controller(&self, number: u16) -> (Box<dyn Controller>, RngStream) {
        let controller = self.entry.controller(&self.parameters).expect("`new` has checked the parameters");
        let rng = match number {
            0 => RngStream::named(self.seed, &self.rng_name),
            number => RngStream::named(self.seed, &format!("{} {number}", self.rng_name)),
        };
        (controller, rng)
    }

    /// Payload of a full segment, bytes.
    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        self.sender.mss
    }

    /// Size of the packet of a TCP segment with this payload, bytes, and its ECN field: with classic ECN only new data is
    /// ECN-capable (RFC 3168 sections 6.1.4 and 6.1.5).
    #[inline]
    pub(crate) fn segment_size(&self, segment: &Segment, payload: impl FnOnce() -> u32) -> (u32, EcnField) {
        if segment.kind != SegmentKind::Data {
            return (self.header_bytes, self.control_ecn());
        }
        let is_new = self.ecn == Some(Ecn::Classic) && !segment.retransmission;
        (self.header_bytes + payload(), if is_new { EcnField::Ect0 } else { self.control_ecn() })
    }

    /// Size of an acknowledgement's packet, bytes. The SACK option takes two bytes and eight a block, padded to a
    /// multiple of four (RFC 2018 section 3).
    #[inline]
    pub(crate) fn ack_bytes(&self, ack: &Ack) -> u32 {
        match ack.sack_blocks.len() as u32 {
            0 => self.header_bytes,
            blocks => self.header_bytes + 4 + 8 * blocks,
        }
    }

    /// The ECN field of TCP packets without new data.
    #[inline]
    pub(crate) fn control_ecn(&self) -> EcnField {
        match self.ecn {
            None | Some(Ecn::Classic) => EcnField::NotEct,
            Some(Ecn::PerPacket) => EcnField::Ect0,
            Some(Ecn::L4s) => EcnField::Ect1,
        }
    }
}

/// TCP's header with its timestamps, bytes.
pub(crate) fn tcp_header(host: &Host) -> u32 {
    TCP_HEADER + if host.timestamps { TIMESTAMPS } else { 0 }
}

fn sender_config(host: &Host, mss: u32, header_bytes: u32, ecn: Option<Ecn>) -> sender::SenderConfig {
    sender::SenderConfig {
        mss,
        packet_bytes: mss + header_bytes,
        max_header: max_header(host),
        initial_window: host.initial_window,
        timestamps: host.timestamps,
        sack: host.sack,
        ecn: matches!(ecn, Some(Ecn::Classic | Ecn::PerPacket)),
        accurate_ecn: ecn == Some(Ecn::L4s),
        pacing: host.pacing,
        tso: host.tso,
        small_queues: host.small_queues,
        offload: false,
        send_buffer: host.send_buffer,
        release: release(host),
        initial_send_buffer: host.initial_send_buffer,
        notsent_lowat: host.notsent_lowat.unwrap_or(u64::MAX),
        slow_start_after_idle: host.slow_start_after_idle,
        early_retrans: host.early_retrans,
        reordering: host.reordering,
        max_reordering: host.max_reordering,
        tick: host.tick,
        recovery: host.recovery,
        handshake: host.handshake,
        initial_rto: host.initial_rto,
        window_clamp: host.window.unwrap_or(u32::MAX),
    }
}

fn receiver_config(host: &Host, [mss, option_bytes]: [u32; 2], ecn: Ecn) -> receiver::ReceiverConfig {
    receiver::ReceiverConfig {
        mss,
        option_bytes,
        timestamps: host.timestamps,
        sack: host.sack,
        quick_ack: host.quick_ack,
        gro: host.gro,
        buffer: [host.receive_buffer.default, host.receive_buffer.max],
        release: release(host),
        ecn,
        tick: host.tick,
    }
}

/// `MAX_TCP_HEADER`: that of the kernels which the profiles were compared with, one with tunnels and one with wireless
/// drivers, too, as distributions build it.
fn max_header(host: &Host) -> u32 {
    match host.release {
        LinuxRelease::V6_1 => sender::SenderConfig::MAX_HEADER,
        LinuxRelease::V6_12 | LinuxRelease::V6_18 => 320,
    }
}

fn release(host: &Host) -> control::LinuxRelease {
    match host.release {
        LinuxRelease::V6_1 => control::LinuxRelease::V6_1,
        LinuxRelease::V6_12 => control::LinuxRelease::V6_12,
        LinuxRelease::V6_18 => control::LinuxRelease::V6_18,
    }
}
