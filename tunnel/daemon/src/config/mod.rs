//! The configuration of one tunnel: a TOML file in, a checked [`Config`] out.
//!
//! It is as small as `wg-quick`'s: an interface, its peers, and one path for each uplink; everything else has a default.
//! What is wrong is told at its line, all of it at once, and secrets are masked wherever text is shown. The steps: `read`
//! gathers the faults of the TOML's form, `resolve` those of its meaning.

mod change;
mod endpoint;
mod file;
mod keys;
mod mask;
mod read;
mod resolve;
mod secrets;

pub use change::{Change, changes};
pub use endpoint::{DEFAULT_PORT, Endpoint};
pub use keys::keys;
pub(crate) use mask::masked;
pub use read::{Faults, load, parse};

use ipnet::IpNet;
use seal::{PresharedKey, PrivateKey, PublicKey};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use units::{Rate, Span};

/// A tunnel, as its file wants it. Names are those of the file's keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The inner device and what belongs to this end.
    pub interface: Interface,
    /// What is spoken with the peers.
    pub mode: Mode,
    /// The other ends.
    pub peers: Vec<Peer>,
    /// One for each uplink; at least one.
    pub paths: Vec<Path>,
    /// How packets are carried.
    pub carriage: Carriage,
    /// What is allowed but unwise, for the log and for `ropewalk check`.
    pub warnings: Vec<String>,
}

/// The inner MTU in `ropewalk` mode, bytes: packets are cut to what paths take, so it need not be less than Ethernet's.
const MTU: u16 = 1500;
/// MPT's own default, bytes.
const MPT_MTU: u16 = 1440;

impl Config {
    /// The inner MTU in bytes.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        let usual = if matches!(self.mode, Mode::Mpt(_)) { MPT_MTU } else { MTU };
        self.interface.mtu.unwrap_or(usual)
    }
}

/// The inner device and what belongs to this end.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// The device's name.
    pub name: String,
    /// Its addresses with their networks.
    pub addresses: Vec<IpNet>,
    /// Its MTU in bytes; found from the paths if not said.
    pub mtu: Option<u16>,
    /// The UDP port of every path that says none of its own; 0 is any free one.
    pub listen_port: u16,
    /// The allowed IPs become routes.
    pub routes: bool,
    /// The user to run as after the set-up.
    pub user: Option<String>,
    /// A TCP address that serves the metrics too.
    pub metrics: Option<SocketAddr>,
}

/// What is spoken with the peers.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// Authenticated and encrypted.
    Ropewalk {
        /// This end's identity.
        private_key: PrivateKey,
    },
    /// GRE-in-UDP as MPT speaks it: nothing is authenticated, nothing is encrypted.
    Mpt(Mpt),
}

/// The parameters of MPT's protocol; how long a packet waits is [`Carriage::max_hold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpt {
    /// Packets that may wait for a missing one; 0 delivers as they come.
    pub reorder_window: u32,
    /// Packets pass in batches, with large buffers; otherwise one by one, and the device waits for the sockets, as in MPT.
    pub offload: bool,
    /// Interval of keepalives; none if not said, and then paths never die.
    pub keepalive: Option<Span>,
    /// Silence after which a path is dead.
    pub dead: Span,
}

/// Another end.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Its identity; none in `mpt` mode.
    pub public_key: Option<PublicKey>,
    /// A secret that both share beside their keys.
    pub preshared_key: Option<PresharedKey>,
    /// Inner addresses that are its own: routed to it, and accepted from it only.
    pub allowed_ips: Vec<IpNet>,
    /// Where it is reached over paths that name no endpoint; none if it comes to us.
    pub endpoint: Option<Endpoint>,
    /// Its inner address, which MPT's keepalives name; none in `ropewalk` mode.
    pub address: Option<IpAddr>,
}

/// An uplink.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// What status and logs call it.
    pub name: String,
    /// The device that its socket is bound to.
    pub interface: Option<String>,
    /// The address that its socket is bound to.
    pub source: Option<IpAddr>,
    /// Its UDP port here; 0 is any free one.
    pub listen_port: u16,
    /// Where the peer is reached over this path, instead of the peer's own endpoint.
    pub endpoint: Option<Endpoint>,
    /// Carries data only while no other path works.
    pub backup: bool,
    /// Traffic costs money: carries data as a backup does, and is probed as little as can be.
    pub metered: bool,
    /// Its share under schedulers with weights.
    pub weight: u32,
    /// The most that is sent on it.
    pub rate: Option<Rate>,
}

/// How packets are carried.
#[derive(Clone, Debug, PartialEq)]
pub struct Carriage {
    /// The congestion control of each path; none where the network is managed.
    pub congestion: Option<Choice>,
    /// Which path carries the next packet.
    pub scheduler: Choice,
    /// What was lost on a path is sent again.
    pub repair: bool,
    /// Packets leave in the order of their sending.
    pub order: bool,
    /// What becomes of a packet that comes after its turn was given up.
    pub late: Late,
    /// The longest that a packet waits for an earlier one; found from the paths if not said.
    pub max_hold: Option<Span>,
}

/// An entry of a registry, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name there.
    pub name: String,
    /// What differs from its defaults.
    pub parameters: BTreeMap<String, control::ParamValue>,
}

/// What becomes of a packet that comes after its turn was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is dropped, and counted.
    Drop,
    /// It is delivered out of order.
    Deliver,
}
