//! How a flow's TCP is set up: from it come its connections, one or one a request.

use crate::connection::{Connection, Single};
use crate::error::Error;
use crate::multipath::Multipath;
use control::{Controller, Ecn, Entry};
use scenario::model::{self, Algorithm, Host, Parameter, Recovery, Rules};
use std::collections::BTreeMap;
use transport::mptcp;
use transport::tcp::{Receiver, Sender, receiver, sender};
use units::Stream;

/// A TCP header without options, bytes.
const TCP_HEADER: u32 = 20;
/// The timestamps option with its padding, bytes.
const TIMESTAMPS: u32 = 12;
/// What Linux charges a send buffer for one segment beyond its payload, bytes: its share of `sk_buff` and page slack.
/// Measured: an MSS of 1388 and 4 MiB of buffer hold 1981 segments.
const SEND_OVERHEAD: u64 = 729;

/// What every connection of a flow is made from.
#[derive(Debug)]
pub(crate) struct Setup {
    pub entry: &'static Entry,
    parameters: BTreeMap<String, params::Value>,
    sender: sender::Config,
    receiver: receiver::Config,
    multipath: Option<Box<Scheduled>>,
    seed: u64,
    /// Name of the first controller's random stream.
    stream: String,
    /// Bytes of a packet without payload.
    pub headers: u32,
    /// How ECN is used, if it is.
    pub ecn: Option<Ecn>,
}

/// An MPTCP connection with its scheduler, whose name and parameters are known to be right.
#[derive(Debug)]
struct Scheduled {
    model: model::Multipath,
    entry: &'static schedule::Entry,
    parameters: BTreeMap<String, params::Value>,
}

impl Scheduled {
    fn new(flow: &str, model: &model::Multipath) -> Result<Self, Error> {
        let name = &model.scheduler.name;
        let entry = schedule::find(name).ok_or_else(|| Error::UnknownScheduler { name: name.clone() })?;
        let parameters = settings_of(&model.scheduler);
        entry.scheduler(&model.weights, 0, &parameters).map_err(|source| Error::BadParameter {
            flow: flow.to_owned(),
            algorithm: entry.name,
            source,
        })?;
        Ok(Self { model: model.clone(), entry, parameters })
    }
}

impl Setup {
    pub(crate) fn new(
        name: &str,
        congestion: &Algorithm,
        host: &Host,
        multipath: Option<&model::Multipath>,
        mtu: u32,
        seed: u64,
    ) -> Result<Self, Error> {
        let headers = host.ip_header + TCP_HEADER + if host.timestamps { TIMESTAMPS } else { 0 };
        let mss = host.mss.unwrap_or(mtu - headers - multipath.map_or(0, |multipath| multipath.option));
        let entry = control::registry::find(&congestion.name)
            .ok_or_else(|| Error::UnknownAlgorithm { flow: name.to_owned(), name: congestion.name.clone() })?;
        let parameters = settings_of(congestion);
        let controller = entry.controller(&parameters).map_err(|source| Error::BadParameter {
            flow: name.to_owned(),
            algorithm: entry.name,
            source,
        })?;
        let buffer = host.receive_buffer[1];
        if buffer / 2 < u64::from(mss) {
            return Err(Error::SmallBuffer { flow: name.to_owned(), buffer, mss });
        }
        let ecn = match controller.ecn() {
            Ecn::Classic => host.ecn.then_some(Ecn::Classic),
            Ecn::PerPacket => Some(Ecn::PerPacket),
        };
        Ok(Self {
            entry,
            parameters,
            sender: sender_config(host, mss, headers, ecn.is_some()),
            receiver: receiver_config(host, mss, ecn.unwrap_or_default()),
            multipath: multipath.map(|multipath| Scheduled::new(name, multipath).map(Box::new)).transpose()?,
            seed,
            stream: format!("flow {name} control"),
            headers,
            ecn,
        })
    }

    /// Both ends of connection `number`, from 0.
    pub(crate) fn connection(&self, number: u16) -> Connection {
        let controller = self.entry.controller(&self.parameters).expect("tried with these parameters");
        let luck = match number {
            0 => Stream::named(self.seed, &self.stream),
            number => Stream::named(self.seed, &format!("{} {number}", self.stream)),
        };
        if let Some(multipath) = &self.multipath {
            return Connection::Multi(Box::new(self.multipath(multipath, controller, luck)));
        }
        let sender = Sender::new(self.sender, controller, luck);
        Connection::Single(Box::new(Single { sender, receiver: Receiver::new(self.receiver) }))
    }

    fn multipath(&self, scheduled: &Scheduled, controller: Box<dyn Controller>, luck: Stream) -> Multipath {
        let Scheduled { model, entry, parameters } = scheduled;
        let scheduler = entry.scheduler(&model.weights, 0, parameters).expect("tried with these parameters");
        let config = mptcp_config(self.sender, model);
        let sender = mptcp::Sender::new(config, controller, luck, scheduler, entry.fill);
        let receiver = mptcp::Receiver::new(self.receiver, model.subflows.len());
        let paths: Vec<usize> = model.subflows.iter().map(|subflow| subflow.path).collect();
        Multipath::new(sender, receiver, &paths, model.option)
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.sender.mss
    }
}

fn sender_config(host: &Host, mss: u32, headers: u32, ecn: bool) -> sender::Config {
    sender::Config {
        mss,
        packet: mss + headers,
        initial_window: host.initial_window,
        timestamps: host.timestamps,
        sack: host.sack,
        ecn,
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
    }
}

fn receiver_config(host: &Host, mss: u32, ecn: Ecn) -> receiver::Config {
    receiver::Config {
        mss,
        timestamps: host.timestamps,
        sack: host.sack,
        quick_ack: host.quick_ack,
        gro: host.gro,
        buffer: [host.receive_buffer[1], host.receive_buffer[2]],
        ecn,
        tick: host.tick,
    }
}

fn mptcp_config(tcp: sender::Config, model: &model::Multipath) -> mptcp::Config {
    let subflow = |it: &model::Subflow| mptcp::SubflowConfig { backup: it.backup, join: it.join, leave: it.leave };
    mptcp::Config {
        tcp,
        subflows: model.subflows.iter().map(subflow).collect(),
        rules: match model.rules {
            Rules::Upstream => mptcp::Rules::Upstream,
            Rules::OutOfTree => mptcp::Rules::OutOfTree,
        },
        opportunistic_retransmission: model.opportunistic_retransmission,
        penalisation: model.penalisation,
    }
}

pub(crate) fn settings_of(algorithm: &Algorithm) -> BTreeMap<String, params::Value> {
    algorithm.parameters.iter().map(|(key, value)| (key.clone(), setting(value))).collect()
}

fn setting(parameter: &Parameter) -> params::Value {
    match parameter {
        Parameter::Number(number) => params::Value::Number(*number),
        Parameter::Word(word) => params::Value::Word(word.clone()),
    }
}
