//! What the data plane is built from, and how its building fails.

use control::ParamValue;
use machine::defaults;
use nix::errno::Errno;
use seal::{PresharedKey, PrivateKey, PublicKey};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use units::{Rate, Span};

/// Everything that the data plane is told at its start.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The TUN device.
    pub device: DeviceSetup,
    /// The sockets, one per uplink. Paths name them by their index.
    pub sockets: Vec<SocketSetup>,
    /// What is spoken over them.
    pub mode: Mode,
}

/// The TUN device.
#[derive(Clone, Debug)]
pub struct DeviceSetup {
    /// Its name, as in `ip link`.
    pub name: String,
    /// Its MTU, bytes.
    pub mtu: u16,
    /// Whether segmentation offload is tried. Without it every packet costs system calls of its own.
    pub offload: bool,
}

/// One UDP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSetup {
    /// What people call it; stands in errors and reports.
    pub name: String,
    /// The interface that it is bound to (`SO_BINDTODEVICE`).
    pub interface: Option<String>,
    /// Local address and port. An unspecified address says only the family; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// Firewall mark of what it sends (`SO_MARK`), for policy routing.
    pub mark: Option<u32>,
    /// Whether UDP segmentation offload is tried. Without it the send buffer is Linux's default.
    pub offload: bool,
}

/// What is spoken over the sockets.
#[derive(Clone, Debug)]
pub enum Mode {
    /// MPT's plain GRE-in-UDP: neither encrypted nor authenticated.
    Mpt(MptSetup),
    /// Ropewalk's own: authenticated, encrypted, repaired.
    Ropewalk(RopewalkSetup),
}

/// What a running data plane of Ropewalk's own tunnels is to become.
#[derive(Clone, Debug)]
pub struct Update {
    /// The inner MTU, bytes.
    pub mtu: u16,
    /// The sockets, by index; `None` where there is none any more. A socket whose setup is as it was stays open.
    pub sockets: Vec<Option<SocketSetup>>,
    /// All peers. A path whose id and address are as they were goes on; another one is a new path.
    pub peers: Vec<PeerSetup>,
}

/// One end of Ropewalk's own tunnels.
#[derive(Clone, Debug)]
pub struct RopewalkSetup {
    /// Who we are.
    pub private: PrivateKey,
    /// Whom we talk to.
    pub peers: Vec<PeerSetup>,
}

/// A peer and how it is talked to.
#[derive(Clone, Debug)]
pub struct PeerSetup {
    /// What people call it.
    pub name: String,
    /// Its identity.
    pub public: PublicKey,
    /// A secret beside the keys.
    pub preshared: Option<PresharedKey>,
    /// Inner networks that are its own: address and prefix length.
    pub allowed: Vec<(IpAddr, u8)>,
    /// Paths that we know of. What comes by others opens them: a server need not list its clients' paths.
    pub paths: Vec<PeerPath>,
    /// How its packets are carried.
    pub carriage: Carriage,
}

impl PeerSetup {
    /// Of each path, by its id.
    pub(crate) fn weights(&self) -> Vec<u32> {
        let most = self.paths.iter().map(|path| usize::from(path.id) + 1).max().unwrap_or(0);
        let mut weights = vec![1; most];
        self.paths.iter().for_each(|path| weights[usize::from(path.id)] = path.weight);
        weights
    }
}

/// One path to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPath {
    /// Its id, the same at both ends.
    pub id: u8,
    /// What people call it.
    pub name: String,
    /// Index of its socket.
    pub socket: usize,
    /// Where the peer is at first. It is followed wherever it moves.
    pub remote: SocketAddr,
    /// Used only while no regular path works.
    pub backup: bool,
    /// As a backup, and probed seldom: every byte costs.
    pub metered: bool,
    /// Its share under schedulers with weights.
    pub weight: u32,
    /// The most that is sent on it.
    pub rate: Option<Rate>,
    /// MTU of its interface: nothing larger is tried.
    pub mtu: u16,
}

/// How packets are carried.
#[derive(Clone, Debug)]
pub struct Carriage {
    /// Which path carries the next piece, from `schedule::REGISTRY`.
    pub scheduler: Choice,
    /// Congestion control of the paths, from `control::registry`; `None` where the load is managed otherwise.
    pub congestion: Option<Choice>,
    /// Lost pieces are sent again.
    pub repair: bool,
    /// Packets go up in the order of their flow.
    pub order: bool,
    /// What comes after its turn goes up out of order.
    pub deliver_late: bool,
    /// A missing piece is waited for no longer than this; `None`: the usual bound.
    pub hold_most: Option<Span>,
}

/// An entry of a registry with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// What differs from its defaults.
    pub parameters: BTreeMap<String, ParamValue>,
}

impl Default for Carriage {
    fn default() -> Self {
        let choice = |name: &str| Choice { name: name.to_owned(), parameters: BTreeMap::new() };
        Self {
            scheduler: choice(defaults::SCHEDULER),
            congestion: Some(choice(defaults::CONGESTION_CONTROL)),
            repair: true,
            order: true,
            deliver_late: false,
            hold_most: None,
        }
    }
}

/// One MPT connection.
#[derive(Clone, Debug)]
pub struct MptSetup {
    /// Our tunnel address: keepalives carry it.
    pub local: IpAddr,
    /// The peer's tunnel address.
    pub remote: IpAddr,
    /// The scheduler: a name of `schedule::REGISTRY` that needs no measurements.
    pub scheduler: String,
    /// Whether packets carry sequence numbers. A peer that reorders needs them.
    pub sequence: bool,
    /// Whether the device waits while a path's socket is full, as MPT's sending thread does; otherwise packets are dropped.
    pub holds_back: bool,
    /// Whether what arrives is put back into order.
    pub reorder: Option<Reorder>,
    /// The paths; their index is the path's id.
    pub paths: Vec<MptPath>,
}

/// MPT's resequencing window and timer.
#[derive(Clone, Copy, Debug)]
pub struct Reorder {
    /// Packets ahead of the expected one that are held (`reorder_window`).
    pub window: u32,
    /// The longest that one is held (`max_buffdelay_msec`).
    pub timeout: Span,
    /// Late packets are delivered out of order instead of dropped.
    pub deliver_late: bool,
}

/// One path of an MPT connection.
#[derive(Clone, Debug)]
pub struct MptPath {
    /// What people call it.
    pub name: String,
    /// Index of its socket.
    pub socket: usize,
    /// Where the peer's socket is. Datagrams from another address are refused; their port is not looked at, as in MPT.
    pub remote: SocketAddr,
    /// Its share of the packets, against the other paths' weights.
    pub weight: u32,
    /// Keepalives, if there are any.
    pub keepalive: Option<Keepalive>,
}

/// MPT's life signs.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    /// One is sent each so often (`keepalive_time`; MPT knows whole seconds only).
    pub interval: Span,
    /// A path is down when none has come for longer than this (`dead_time`).
    pub dead: Span,
}

/// Why the data plane could not be built, or had to stop.
#[derive(Debug)]
pub struct Error {
    what: String,
    cause: Option<io::Error>,
}

impl Error {
    /// `what` was tried and failed by `cause`.
    pub(crate) fn new(what: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        Self { what: what.into(), cause: Some(cause.into()) }
    }

    /// A device or an address is not there, but may come.
    pub(crate) fn is_absence(&self) -> bool {
        let number = self.cause.as_ref().and_then(io::Error::raw_os_error);
        number.is_some_and(|number| matches!(Errno::from_raw(number), Errno::ENODEV | Errno::EADDRNOTAVAIL))
    }

    /// `what` is wrong with the setup.
    pub(crate) fn setup(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{}: {cause}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
