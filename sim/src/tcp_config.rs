//! The configuration of a flow's TCP, from which its connections are made: one, or one a request.

use crate::connection::{Connection, TcpConnection};
use crate::error::Error;
use crate::mptcp::MptcpConnection;
use control::{AlgorithmEntry, Controller, Ecn};
use scenario::model::{self, AlgorithmChoice, Host, LossRecovery, MptcpStack};
use std::collections::BTreeMap;
use transport::mptcp;
use transport::tcp::{Receiver, SinglePathSender, receiver, sender};
use units::RngStream;

/// A TCP header without options, bytes.
const TCP_HEADER: u32 = 20;
/// The timestamps option with its padding, bytes.
const TIMESTAMPS: u32 = 12;
/// Linux's overhead of a segment in the send buffer, bytes: its share of `sk_buff` and page slack.
/// Measured: with an MSS of 1388, 4 MiB of buffer hold 1981 segments.
const SEND_OVERHEAD: u64 = 729;

/// The configuration that every connection of a flow is made from.
#[derive(Debug)]
pub(crate) struct TcpConfig {
    pub entry: &'static AlgorithmEntry,
    parameters: BTreeMap<String, params::ParamValue>,
    sender: sender::SenderConfig,
    receiver: receiver::ReceiverConfig,
    multipath: Option<Box<MptcpConfig>>,
    seed: u64,
    /// Name of the first connection's random stream.
    rng_name: String,
    /// IP and TCP headers of a data packet, bytes.
    pub header_bytes: u32,
    /// The ECN feedback that was negotiated, if any.
    pub ecn: Option<Ecn>,
    /// Whether the receivers' application reads by [`TcpFlow::read`](crate::tcp::TcpFlow::read), instead of at once.
    pub has_reader: bool,
}

/// The configuration of an MPTCP connection, whose scheduler and its parameters have been checked.
#[derive(Debug)]
struct MptcpConfig {
    model: model::Multipath,
    entry: &'static schedule::SchedulerEntry,
    parameters: BTreeMap<String, params::ParamValue>,
}

impl MptcpConfig {
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
        let header_bytes = host.ip_header + TCP_HEADER + if host.timestamps { TIMESTAMPS } else { 0 };
        let mss = host.mss.unwrap_or(mtu - header_bytes - multipath.map_or(0, |multipath| multipath.dss_option_bytes));
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
            multipath: multipath.map(|multipath| MptcpConfig::new(name, multipath).map(Box::new)).transpose()?,
            seed,
            rng_name: format!("flow {name} control"),
            header_bytes,
            ecn,
            has_reader: false,
        })
    }

    /// Makes both ends of connection `number`, from 0.
    pub(crate) fn connection(&self, number: u16) -> Connection {
        let controller = self.entry.controller(&self.parameters).expect("`new` has checked the parameters");
        let rng = match number {
            0 => RngStream::named(self.seed, &self.rng_name),
            number => RngStream::named(self.seed, &format!("{} {number}", self.rng_name)),
        };
        if let Some(multipath) = &self.multipath {
            return Connection::Multi(Box::new(self.multipath(multipath, controller, rng)));
        }
        let sender = SinglePathSender::new(self.sender, controller, rng);
        let receiver = if self.has_reader { Receiver::with_reader } else { Receiver::new };
        Connection::Single(Box::new(TcpConnection { sender, receiver: receiver(self.receiver) }))
    }

    fn multipath(&self, mptcp: &MptcpConfig, controller: Box<dyn Controller>, rng: RngStream) -> MptcpConnection {
        let MptcpConfig { model, entry, parameters } = mptcp;
        let scheduler = entry.scheduler(&model.weights, 0, parameters).expect("`new` has checked the parameters");
        let config = mptcp_config(self.sender, model);
        let sender = mptcp::Sender::new(config, controller, rng, scheduler, entry.fill);
        let receiver = mptcp::Receiver::new(self.receiver, model.subflows.len());
        let paths: Vec<usize> = model.subflows.iter().map(|subflow| subflow.path).collect();
        MptcpConnection::new(sender, receiver, &paths, model.dss_option_bytes)
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.sender.mss
    }
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
        send_buffer: (host.send_buffer / (u64::from(mss) + SEND_OVERHEAD)).max(2),
        reordering: host.reordering,
        max_reordering: host.max_reordering,
        tick: host.tick,
        recovery: match host.recovery {
            LossRecovery::Rack => sender::LossRecovery::Rack,
            LossRecovery::Fack => sender::LossRecovery::Fack,
        },
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
        ecn,
        tick: host.tick,
    }
}

fn mptcp_config(tcp: sender::SenderConfig, model: &model::Multipath) -> mptcp::ConnectionConfig {
    let subflow = |it: &model::Subflow| mptcp::SubflowConfig { backup: it.backup, join: it.join, leave: it.leave };
    mptcp::ConnectionConfig {
        tcp,
        subflows: model.subflows.iter().map(subflow).collect(),
        stack: match model.stack {
            MptcpStack::Upstream => mptcp::MptcpStack::Upstream,
            MptcpStack::OutOfTree => mptcp::MptcpStack::OutOfTree,
        },
        opportunistic_retransmission: model.opportunistic_retransmission,
        penalisation: model.penalisation,
    }
}
