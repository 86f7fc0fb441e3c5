//! The configuration of a flow's TCP, from which its connections are made: one, or one per request.

use crate::connection::{Connection, TcpConnection};
use crate::error::Error;
use crate::mptcp::MptcpConnection;
use crate::quic::QuicConnection;
use crate::trace::HeaderSizes;
use control::{AlgorithmEntry, Controller, Ecn};
use scenario::model::{self, AlgorithmChoice, Host, LinuxRelease, MultipathTransport};
use std::collections::BTreeMap;
use transport::quic::STREAM_PACKET_OVERHEAD;
use transport::tcp::{Receiver, SinglePathSender, receiver, sender};
use transport::{mptcp, quic};
use units::RngStream;

/// A TCP header without options, bytes.
const TCP_HEADER: u32 = 20;
/// The timestamps option with its padding, bytes.
const TIMESTAMPS: u32 = 12;

/// The configuration that every connection of a flow is made from.
#[derive(Debug)]
pub(crate) struct TcpConfig {
    pub entry: &'static AlgorithmEntry,
    parameters: BTreeMap<String, params::ParamValue>,
    sender: sender::SenderConfig,
    receiver: receiver::ReceiverConfig,
    multipath: Option<Box<MultipathConfig>>,
    seed: u64,
    /// Name of the first connection's random stream.
    rng_name: String,
    /// IP header, bytes.
    pub ip_header: u32,
    /// IP and TCP headers of a data packet, bytes; for QUIC everything in a packet other than its data.
    pub header_bytes: u32,
    /// The ECN feedback that was negotiated, if any.
    pub ecn: Option<Ecn>,
    /// How large the send buffer of an MPTCP connection is.
    mptcp_send_buffer: mptcp::SendBufferRule,
    /// Whether the receivers' application reads by [`TcpFlow::read`](crate::tcp::TcpFlow::read), instead of at once.
    pub has_reader: bool,
    /// The acknowledgements after which the receiving program preempts the tunnel's daemon, if they are drawn.
    pub preemption: Option<u64>,
}

/// The configuration of a connection over several paths, whose scheduler and its parameters have been checked.
#[derive(Debug)]
struct MultipathConfig {
    model: model::Multipath,
    entry: &'static schedule::SchedulerEntry,
    parameters: BTreeMap<String, params::ParamValue>,
}

impl MultipathConfig {
    fn new(flow: &str, model: &model::Multipath) -> Result<Self, Error> {
        let name = &model.scheduler.name;
        let entry = schedule::find(name).ok_or_else(|| Error::UnknownScheduler { name: name.clone() })?;
        let parameters = model.scheduler.parameters.clone();
        entry.scheduler(&model.weights, 0, &parameters).map_err(|source| Error::BadParameter {
            flow: flow.to_owned(),
            algorithm: entry.name,
            source,
        })?;
        Ok(Self { model: model.clone(), entry, parameters })
    }
}

impl TcpConfig {
    pub(crate) fn new(
        name: &str,
        congestion: &AlgorithmChoice,
        host: &Host,
        multipath: Option<&model::Multipath>,
        mtu: u32,
        seed: u64,
    ) -> Result<Self, Error> {
        let (transport_header, option_bytes) = match multipath.map(|multipath| &multipath.transport) {
            Some(MultipathTransport::Quic(_)) => (STREAM_PACKET_OVERHEAD, 0),
            Some(MultipathTransport::Mptcp(mptcp)) => (tcp_header(host), mptcp.dss_option_bytes),
            None => (tcp_header(host), 0),
        };
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
            receiver: receiver_config(host, mss, ecn.unwrap_or_default()),
            multipath: multipath.map(|multipath| MultipathConfig::new(name, multipath).map(Box::new)).transpose()?,
            seed,
            rng_name: format!("flow {name} control"),
            ip_header: host.ip_header,
            header_bytes,
            mptcp_send_buffer: host.mptcp_send_buffer,
            ecn,
            has_reader: false,
            preemption: None,
        })
    }

    /// The sizes of the headers of its packets.
    pub(crate) fn header_sizes(&self) -> HeaderSizes {
        let data_option = match self.multipath.as_ref().map(|multipath| &multipath.model.transport) {
            Some(MultipathTransport::Mptcp(mptcp)) => mptcp.dss_option_bytes,
            Some(MultipathTransport::Quic(_)) | None => 0,
        };
        let [ip, tcp] = [self.ip_header, self.header_bytes];
        let payload = self.mss();
        HeaderSizes { ip, tcp, data_option, payload, max_receive_buffer: self.receiver.buffer[1] }
    }

    /// Makes both ends of connection `number`, from 0.
    pub(crate) fn connection(&self, number: u16) -> Connection {
        let controller = self.entry.controller(&self.parameters).expect("`new` has checked the parameters");
        let rng = match number {
            0 => RngStream::named(self.seed, &self.rng_name),
            number => RngStream::named(self.seed, &format!("{} {number}", self.rng_name)),
        };
        if let Some(multipath) = &self.multipath {
            return self.multipath(multipath, controller, rng);
        }
        let sender = SinglePathSender::new(self.sender, controller, rng);
        let receiver = if self.has_reader { Receiver::with_reader } else { Receiver::new };
        let mut receiver = receiver(self.receiver);
        self.preemption.into_iter().for_each(|acks| receiver.set_preemption(acks));
        Connection::Single(TcpConnection { sender, receiver })
    }

    fn multipath(&self, multipath: &MultipathConfig, controller: Box<dyn Controller>, rng: RngStream) -> Connection {
        let MultipathConfig { model, entry, parameters } = multipath;
        let scheduler = entry.scheduler(&model.weights, 0, parameters).expect("`new` has checked the parameters");
        let paths: Vec<usize> = model.subflows.iter().map(|subflow| subflow.path).collect();
        match &model.transport {
            MultipathTransport::Mptcp(options) => {
                let config = mptcp_config(self.sender, model, options, self.mptcp_send_buffer);
                let receiver = mptcp::Receiver::new(self.receiver, paths.len(), config.stack);
                let sender = mptcp::Sender::new(config, controller, rng, scheduler, entry.fill);
                Connection::Multi(Box::new(MptcpConnection::new(sender, receiver, &paths, options.dss_option_bytes)))
            }
            MultipathTransport::Quic(options) => {
                let receiver = self.quic_receiver(paths.len(), options);
                let config = self.quic_sender(model, options, receiver.window);
                let sender = quic::Sender::new(config, controller, rng, scheduler);
                Connection::Quic(Box::new(QuicConnection::new(sender, quic::Receiver::new(receiver), &paths)))
            }
        }
    }

    /// The flow-control window is half of the largest receive buffer, the size that TCP's window grows to.
    fn quic_receiver(&self, paths: usize, options: &model::Quic) -> quic::ReceiverConfig {
        quic::ReceiverConfig {
            paths: paths as u16,
            streams: options.streams,
            window: (self.receiver.buffer[1] / 2 / u64::from(self.sender.mss)).max(1),
            quick_ack: self.receiver.quick_ack,
        }
    }

    fn quic_sender(&self, model: &model::Multipath, options: &model::Quic, window: u64) -> quic::ConnectionConfig {
        let path = |it: &model::Subflow| quic::PathConfig { backup: it.backup, join: it.join, leave: it.leave };
        quic::ConnectionConfig {
            paths: model.subflows.iter().map(path).collect(),
            chunk_bytes: self.sender.mss,
            packet_bytes: self.sender.packet_bytes,
            initial_window: self.sender.initial_window,
            cwnd_clamp: self.sender.window_clamp,
            pacing: self.sender.pacing,
            handshake: self.sender.handshake,
            tick: self.sender.tick,
            adaptive_loss_thresholds: options.adaptive_loss_thresholds,
            undo: options.undo,
            initial_max_data: window,
        }
    }

    /// The sender's device takes its super-segments uncut.
    pub(crate) fn enable_offload(&mut self) {
        self.sender.offload = true;
    }

    /// Whether the sender's super-segments leave uncut.
    #[inline]
    pub(crate) fn has_offload(&self) -> bool {
        self.sender.offload
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.sender.mss
    }
}

/// TCP's header with its timestamps, bytes.
fn tcp_header(host: &Host) -> u32 {
    TCP_HEADER + if host.timestamps { TIMESTAMPS } else { 0 }
}

fn sender_config(host: &Host, mss: u32, header_bytes: u32, ecn: Option<Ecn>) -> sender::SenderConfig {
    sender::SenderConfig {
        mss,
        packet_bytes: mss + header_bytes,
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

fn receiver_config(host: &Host, mss: u32, ecn: Ecn) -> receiver::ReceiverConfig {
    receiver::ReceiverConfig {
        mss,
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

fn release(host: &Host) -> control::LinuxRelease {
    match host.release {
        LinuxRelease::V6_1 => control::LinuxRelease::V6_1,
        LinuxRelease::V6_12 => control::LinuxRelease::V6_12,
        LinuxRelease::V6_18 => control::LinuxRelease::V6_18,
    }
}

fn mptcp_config(
    tcp: sender::SenderConfig,
    model: &model::Multipath,
    options: &model::Mptcp,
    send_buffer: mptcp::SendBufferRule,
) -> mptcp::ConnectionConfig {
    let subflow = |it: &model::Subflow| mptcp::SubflowConfig { backup: it.backup, join: it.join, leave: it.leave };
    mptcp::ConnectionConfig {
        tcp,
        subflows: model.subflows.iter().map(subflow).collect(),
        stack: options.stack,
        send_buffer,
        opportunistic_retransmission: options.opportunistic_retransmission,
        penalisation: options.penalisation,
    }
}
