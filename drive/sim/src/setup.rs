//! How a flow's TCP is set up: from it come its connections, one or one a request.

use crate::error::Error;
use control::{Ecn, Entry};
use protocol::tcp::{Receiver, Sender, receiver, sender};
use scenario::model::{Algorithm, Host, Parameter, Recovery};
use std::collections::BTreeMap;
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
    parameters: BTreeMap<String, control::Value>,
    sender: sender::Config,
    receiver: receiver::Config,
    seed: u64,
    /// Name of the first controller's random stream.
    stream: String,
    /// Bytes of a packet without payload.
    pub headers: u32,
    /// How ECN is used, if it is.
    pub ecn: Option<Ecn>,
}

impl Setup {
    pub(crate) fn new(name: &str, congestion: &Algorithm, host: &Host, mtu: u32, seed: u64) -> Result<Self, Error> {
        let headers = host.ip_header + TCP_HEADER + if host.timestamps { TIMESTAMPS } else { 0 };
        let mss = host.mss.unwrap_or(mtu - headers);
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
        Ok(Self {
            entry,
            parameters,
            sender: sender_config(host, mss, headers, ecn.is_some()),
            receiver: receiver_config(host, mss, ecn.unwrap_or_default()),
            seed,
            stream: format!("flow {name} control"),
            headers,
            ecn,
        })
    }

    /// Both ends of connection `number`, from 0.
    pub(crate) fn connection(&self, number: u16) -> (Sender, Receiver) {
        let controller = self.entry.controller(&self.parameters).expect("tried with these parameters");
        let luck = match number {
            0 => Stream::named(self.seed, &self.stream),
            number => Stream::named(self.seed, &format!("{} {number}", self.stream)),
        };
        (Sender::new(self.sender, controller, luck), Receiver::new(self.receiver))
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

fn setting(parameter: &Parameter) -> control::Value {
    match parameter {
        Parameter::Number(number) => control::Value::Number(*number),
        Parameter::Word(word) => control::Value::Word(word.clone()),
    }
}
