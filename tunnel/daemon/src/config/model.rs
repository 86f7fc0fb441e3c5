//! The resolved configuration of a tunnel.

use super::endpoint::PeerEndpoint;
use super::relay::RelayOptions;
use ipnet::IpNet;
use machine::TunnelOptions;
use seal::{PresharedKey, PrivateKey, PublicKey};
use std::net::{IpAddr, SocketAddr};
use units::{Rate, Span};

/// The configuration of a tunnel. Fields have the names of the file's keys.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelConfig {
    /// The inner device and the identity of this end.
    pub interface: InterfaceConfig,
    /// The protocol.
    pub mode: Mode,
    /// The peers.
    pub peers: Vec<ConfiguredPeer>,
    /// The paths, one for each uplink; at least one.
    pub paths: Vec<ConfiguredPath>,
    /// The `[tunnel]` table, but for the relay.
    pub options: TunnelOptions,
    /// The relay; `None` if connections are not relayed.
    pub relay: Option<RelayOptions>,
    /// Warnings for the log and for `ropewalk check`.
    pub warnings: Vec<String>,
}

/// The inner MTU in `ropewalk` mode, bytes. Packets are fragmented to what paths carry, so it need not be less than
/// Ethernet's.
const DEFAULT_MTU: u16 = 1500;

impl TunnelConfig {
    /// The inner MTU, bytes.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        let default = if self.mpt().is_some() { mpt::DEFAULT_MTU } else { DEFAULT_MTU };
        self.interface.mtu.unwrap_or(default)
    }

    /// The options of the `mpt` mode, if that is the mode.
    #[must_use]
    pub fn mpt(&self) -> Option<&MptOptions> {
        match &self.mode {
            Mode::Mpt(mpt) => Some(mpt),
            Mode::Ropewalk { .. } => None,
        }
    }
}

/// The inner device and the identity of this end.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceConfig {
    /// The device's name.
    pub name: String,
    /// The addresses with their networks.
    pub addresses: Vec<IpNet>,
    /// The MTU, bytes; `None` for the default.
    pub mtu: Option<u16>,
    /// The UDP port of paths without one of their own; 0 is any free port.
    pub listen_port: u16,
    /// Whether allowed IPs become routes.
    pub routes: bool,
    /// The user to run as after the set-up.
    pub user: Option<String>,
    /// The TCP address that serves the metrics; `None` for the daemon's socket alone.
    pub metrics: Option<SocketAddr>,
}

/// The protocol of the tunnel.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// Ropewalk's own: authenticated and encrypted.
    Ropewalk {
        /// The private key of this end.
        private_key: PrivateKey,
    },
    /// MPT's GRE-in-UDP: neither authenticated nor encrypted.
    Mpt(MptOptions),
}

/// Options of the `mpt` mode. The reorder timeout is [`TunnelOptions::max_reorder_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MptOptions {
    /// Maximum number of packets that wait for a missing one; 0 disables reordering.
    pub reorder_window: u32,
    /// Whether segmentation offload is used. Without it the device waits while a socket is full, as in MPT.
    pub offload: bool,
    /// The interval of keepalives; `None` sends none, and paths never go down.
    pub keepalive_time: Option<Span>,
    /// Silence after which a path is down.
    pub dead_time: Span,
}

/// A peer.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredPeer {
    /// The public key; `None` in `mpt` mode.
    pub public_key: Option<PublicKey>,
    /// A secret shared beside the keys.
    pub preshared_key: Option<PresharedKey>,
    /// Inner networks routed to it, and accepted from it only.
    pub allowed_ips: Vec<IpNet>,
    /// The endpoint on paths without one of their own; `None` if this end waits for the peer.
    pub endpoint: Option<PeerEndpoint>,
    /// The inner address, which MPT's keepalives carry; `None` in `ropewalk` mode.
    pub address: Option<IpAddr>,
}

/// A path over one uplink.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredPath {
    /// The name in status and log.
    pub name: String,
    /// The device that its socket is bound to.
    pub interface: Option<String>,
    /// The address that its socket is bound to.
    pub source: Option<IpAddr>,
    /// The UDP port of its socket; 0 is any free port.
    pub listen_port: u16,
    /// The peer's endpoint on this path, instead of the peer's own.
    pub endpoint: Option<PeerEndpoint>,
    /// Whether it carries data only while no other path works.
    pub backup: bool,
    /// Whether its traffic costs money: the path is used as a backup, and probed seldom.
    pub metered: bool,
    /// The share under schedulers with weights.
    pub weight: u32,
    /// The maximum send rate.
    pub rate: Option<Rate>,
}
