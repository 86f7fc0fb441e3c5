//! The resolved configuration of a tunnel.

use super::endpoint::PeerEndpoint;
use super::observation::ObservationConfig;
use super::realtime::RealtimeRules;
use super::relay::RelayOptions;
use crate::data_plane::MAX_THREADS;
use crate::quota::Quota;
use ipnet::IpNet;
use machine::{PathClasses, TunnelOptions};
use seal::{PresharedKey, PrivateKey, PublicKey};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
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
    /// The paths, one for each uplink; at least one, unless uplinks are found automatically.
    pub paths: Vec<ConfiguredPath>,
    /// The `[tunnel]` table without the relay's keys, and the options of the real-time class.
    pub options: TunnelOptions,
    /// The rules that mark packets as real-time; `None` without that class.
    pub realtime: Option<RealtimeRules>,
    /// The relay; `None` if connections are not relayed.
    pub relay: Option<RelayOptions>,
    /// The history and the dashboard.
    pub observation: ObservationConfig,
    /// Warnings for the log and for `ropewalk check`.
    pub warnings: Vec<String>,
}

/// The inner MTU in `ropewalk` mode, bytes. Packets are fragmented to fit the paths, so it does not have to be less
/// than Ethernet's.
const DEFAULT_MTU: u16 = 1500;

impl TunnelConfig {
    /// The inner MTU, bytes.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        let default = if self.mpt().is_some() { mpt::DEFAULT_MTU } else { DEFAULT_MTU };
        self.interface.mtu.unwrap_or(default)
    }

    /// The number of data threads to start with.
    #[must_use]
    pub fn data_threads(&self) -> usize {
        let has_priority = || self.peers.iter().any(|peer| peer.priority.is_some());
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match self.interface.threads {
            Some(threads) => threads.into(),
            None if self.relay.is_some() || self.mpt().is_some() || has_priority() => 1,
            None => processors().min(self.peers.len()).clamp(1, MAX_THREADS),
        }
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
    /// How uplinks are found; `None` if only each `[[path]]` is one.
    pub uplinks: Option<UplinkOptions>,
    /// Whether paths without a route get policy routing of their own.
    pub policy_routing: bool,
    /// Whether this host's traffic leaves by the tunnel only. `ropewalk setup keep` enforces that, also without a
    /// daemon.
    pub exclusive: bool,
    /// The user to run as after the setup.
    pub user: Option<String>,
    /// The file of further peers, which enrolment changes; `None` without enrolment.
    pub peers_file: Option<PathBuf>,
    /// The TCP address that serves the metrics; `None` for the daemon's socket only.
    pub metrics: Option<SocketAddr>,
    /// The number of data threads. `None` means one per processor, but no more than peers.
    pub threads: Option<u8>,
}

/// How uplinks are found: patterns of device names, in which `*` stands for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UplinkOptions {
    /// Devices that are not uplinks.
    pub exclude: Vec<String>,
    /// Devices whose traffic costs money, in addition to those that are recognised.
    pub metered: Vec<String>,
    /// Devices whose traffic does not cost money, even if the system reports them as metered.
    pub unmetered: Vec<String>,
    /// Devices that are used only while the others are full.
    pub secondary: Vec<String>,
    /// Quotas of devices. The one with the longest matching pattern applies.
    pub quotas: Vec<(String, Quota)>,
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
    /// The display name.
    pub name: Option<String>,
    /// The public key; `None` in `mpt` mode.
    pub public_key: Option<PublicKey>,
    /// A shared secret in addition to the key pairs.
    pub preshared_key: Option<PresharedKey>,
    /// Inner networks: packets to them are routed to this peer, and packets from them are accepted from this peer only.
    pub allowed_ips: Vec<IpNet>,
    /// The endpoint on paths without one of their own; `None` if this end waits for the peer.
    pub endpoint: Option<PeerEndpoint>,
    /// The inner address, which MPT's keepalives carry; `None` in `ropewalk` mode.
    pub address: Option<IpAddr>,
    /// The end of an enrolment token whose one-time key this is, Unix time in seconds; `None` for a key of its own.
    pub token_expires: Option<u64>,
    /// The end of the client's time, Unix time in seconds; `None` if it has none.
    pub expires: Option<u64>,
    /// Whether the peer is one of the `peers-file`.
    pub is_enrolled: bool,
    /// The order among several servers with the same allowed IPs, the smallest first; `None` if no other peer has the
    /// same ones.
    pub priority: Option<u32>,
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
    /// Whether it carries data only while the regular paths are full, or none works.
    pub secondary: bool,
    /// The packets that this end sends on it.
    pub classes: PathClasses,
    /// The traffic after which it becomes a backup; `None` without a limit.
    pub quota: Option<Quota>,
    /// Whether it is over its quota now; not part of the file.
    pub over_quota: bool,
    /// The share under schedulers with weights.
    pub weight: u32,
    /// The maximum send rate.
    pub rate: Option<Rate>,
    /// Whether it is an automatic uplink, which is not in the file.
    pub automatic: bool,
    /// The gateway of an automatic path that uses a further gateway of its device.
    pub gateway: Option<IpAddr>,
}

impl ConfiguredPath {
    /// Whether the configuration makes a backup of it.
    #[must_use]
    pub fn is_backup(&self) -> bool {
        self.backup || self.metered
    }

    /// A path whose device and source address the routing table chooses.
    #[must_use]
    pub fn any(listen_port: u16, name: String) -> Self {
        Self {
            name,
            interface: None,
            source: None,
            listen_port,
            endpoint: None,
            backup: false,
            metered: false,
            secondary: false,
            classes: PathClasses::All,
            quota: None,
            over_quota: false,
            weight: 1,
            rate: None,
            automatic: false,
            gateway: None,
        }
    }
}
