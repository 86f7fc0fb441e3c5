//! Configuration of the data plane, and its errors.

use super::event::EventSender;
use crate::config::{RealtimeRules, RelayOptions, TunnelOptions};
use control::AlgorithmChoice;
use ipnet::IpNet;
use machine::PathConfig;
use mpt::{KeepaliveConfig, ReorderConfig};
use nix::errno::Errno;
use seal::{PresharedKey, PrivateKey, PublicKey};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Configuration of a data plane.
#[derive(Clone, Debug)]
pub struct DataPlaneConfig {
    /// The TUN device.
    pub device: DeviceConfig,
    /// The sockets, one for each uplink. Paths refer to them by index.
    pub sockets: Vec<SocketConfig>,
    /// The protocol.
    pub engine: EngineConfig,
    /// The channel for events of peers and paths.
    pub events: EventSender,
}

/// Configuration of the TUN device.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// The name, as in `ip link`.
    pub name: String,
    /// The MTU, bytes.
    pub mtu: u16,
    /// Whether segmentation offload is tried. Without it every packet costs a system call.
    pub offload: bool,
}

/// Configuration of a UDP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketConfig {
    /// The name in errors and reports: the path's.
    pub name: String,
    /// The interface that it is bound to (`SO_BINDTODEVICE`).
    pub interface: Option<String>,
    /// Local address and port. An unspecified address selects the family only; port 0 any free port.
    pub bind: SocketAddr,
    /// Whether UDP GSO is tried. Without it the send buffer has Linux's default size.
    pub offload: bool,
    /// Whether each data thread has a socket at this address. The kernel then chooses by the datagram's session.
    pub shares_port: bool,
}

/// Configuration of the protocol.
#[derive(Clone, Debug)]
pub enum EngineConfig {
    /// MPT's GRE-in-UDP: neither authenticated nor encrypted.
    Mpt(MptConfig),
    /// Ropewalk's own tunnel.
    Ropewalk(RopewalkConfig),
}

/// A changed configuration for a running data plane in `ropewalk` mode.
#[derive(Clone, Debug)]
pub struct Update {
    /// The inner MTU, bytes.
    pub mtu: u16,
    /// The sockets, by index; `None` where a socket is no longer needed. One whose configuration is the same stays
    /// open.
    pub sockets: Vec<Option<SocketConfig>>,
    /// All peers. A path with the same id and address continues; any other is a new path.
    pub peers: Vec<PeerConfig>,
    /// The peers of the other data threads.
    pub other_peers: Vec<OtherPeerConfig>,
}

/// A peer of another data thread.
#[derive(Clone, Debug)]
pub struct OtherPeerConfig {
    /// The number of its thread.
    pub thread: u8,
    /// The public key.
    pub public_key: PublicKey,
    /// Inner networks: packets to them are routed to this peer, and packets from them are accepted from this peer only.
    pub allowed_ips: Vec<IpNet>,
}

/// Configuration of the `ropewalk` mode.
#[derive(Clone, Debug)]
pub struct RopewalkConfig {
    /// This end's private key.
    pub private_key: PrivateKey,
    /// The peers of this thread.
    pub peers: Vec<PeerConfig>,
    /// The peers of the other data threads.
    pub other_peers: Vec<OtherPeerConfig>,
    /// The rules that mark packets as real-time; `None` without that class.
    pub realtime: Option<RealtimeRules>,
    /// The relay; `None` if connections are not relayed.
    pub relay: Option<RelayOptions>,
    /// The first time that handshakes may carry, nanoseconds since 1970: later than all times that were sent before the
    /// start.
    pub earliest_handshake: u64,
}

/// Configuration of a peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The public key.
    pub public_key: PublicKey,
    /// The name in events.
    pub name: Option<String>,
    /// The shared secret in addition to the key pairs.
    pub preshared_key: Option<PresharedKey>,
    /// Inner networks routed to this peer, and accepted from it.
    pub allowed_ips: Vec<IpNet>,
    /// The order among several servers with the same allowed IPs, the smallest first.
    pub priority: Option<u32>,
    /// The configured paths. Datagrams of the peer open others, so that a server does not have to list its clients'
    /// paths.
    pub paths: Vec<PeerPathConfig>,
    /// The `[tunnel]` table.
    pub options: TunnelOptions,
}

impl PeerConfig {
    /// The weight of each path, by its id.
    pub(crate) fn weights(&self) -> Vec<u32> {
        let len = self.paths.iter().map(|path| usize::from(path.id) + 1).max().unwrap_or(0);
        let mut weights = vec![1; len];
        self.paths.iter().for_each(|path| weights[usize::from(path.id)] = path.weight);
        weights
    }
}

/// Configuration of a path to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPathConfig {
    /// The id, the same at both ends.
    pub id: u8,
    /// The name in the configuration.
    pub name: String,
    /// Index of its socket.
    pub socket: usize,
    /// The peer's address at first. The path follows the peer to other addresses.
    pub remote: SocketAddr,
    /// The share under schedulers with weights.
    pub weight: u32,
    /// The machine's configuration of the path.
    pub path: PathConfig,
}

/// The path configuration that fits the MTU of a path's interface: IPv4 (RFC 791) or IPv6 (RFC 8200) and UDP headers
/// are subtracted.
pub(crate) fn path_config(mtu: u16, remote: SocketAddr) -> PathConfig {
    let header_bytes = if remote.is_ipv4() { 20 + 8 } else { 40 + 8 };
    PathConfig::regular(u32::from(mtu).saturating_sub(header_bytes), header_bytes)
}

/// Configuration of the `mpt` mode.
#[derive(Clone, Debug)]
pub struct MptConfig {
    /// The peer's name in events.
    pub peer_name: Option<String>,
    /// This end's inner address, which keepalives carry.
    pub local: IpAddr,
    /// The peer's inner address.
    pub remote: IpAddr,
    /// Inner networks whose packets are accepted from the peer.
    pub allowed_ips: Vec<IpNet>,
    /// The scheduler, one of `schedule::REGISTRY` that needs no measurements.
    pub scheduler: AlgorithmChoice,
    /// Whether the device waits while a path's socket is full, as MPT's sending thread does; otherwise packets are
    /// dropped.
    pub backpressure: bool,
    /// The reorder buffer, if packets are put back into order.
    pub reorder: Option<ReorderConfig>,
    /// Keepalives, if there are any.
    pub keepalive: Option<KeepaliveConfig>,
    /// The paths; their index is the path's id.
    pub paths: Vec<MptPathConfig>,
}

/// Configuration of a path in `mpt` mode.
#[derive(Clone, Debug)]
pub struct MptPathConfig {
    /// The name in the configuration.
    pub name: String,
    /// Index of its socket.
    pub socket: usize,
    /// The peer's socket. Datagrams from another address are refused; their port is ignored, as in MPT.
    pub remote: SocketAddr,
    /// The share of the packets.
    pub weight: u32,
}

/// Why the data plane cannot start, or had to stop.
#[derive(Debug)]
pub struct Error {
    message: String,
    cause: Option<io::Error>,
}

impl Error {
    /// An error of a system call; `message` names the attempt.
    pub(crate) fn new(message: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        Self { message: message.into(), cause: Some(cause.into()) }
    }

    /// Whether a device or an address does not exist; it may appear later.
    pub(crate) fn is_missing_device(&self) -> bool {
        let errno = self.cause.as_ref().and_then(io::Error::raw_os_error);
        errno.is_some_and(|errno| matches!(Errno::from_raw(errno), Errno::ENODEV | Errno::EADDRNOTAVAIL))
    }

    /// An error of the configuration.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{}: {cause}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
