//! What the data plane tells of itself: plain numbers, counted since the start.

use machine::EndpointStatus;
use machine::ResequencerCounters as Resequencing;
use seal::{Counters as Refusals, PeerStatus};
use std::net::SocketAddr;
use units::Instant;

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// When, on the data plane's clock (zero: its start).
    pub now: Instant,
    /// The TUN device.
    pub device: DeviceReport,
    /// The sockets, in the order of the setup.
    pub sockets: Vec<SocketReport>,
    /// The paths of an MPT connection.
    pub mpt: Option<MptReport>,
    /// Ropewalk's peers, in the order of the setup.
    pub peers: Vec<PeerReport>,
    /// Why sealed datagrams and handshakes were refused.
    pub refusals: Refusals,
    /// Buffers in memory, and how often none was left.
    pub buffers: BufferReport,
}

/// The TUN device.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceReport {
    /// Packets or super-packets read, and their bytes.
    pub read: Count,
    /// Packets or super-packets written, and their bytes.
    pub written: Count,
    /// Writes that the kernel refused.
    pub refused: u64,
    /// Packets that were no IP packets, or that could not be cut.
    pub malformed: u64,
    /// Packets whose destination no peer is responsible for.
    pub unrouted: u64,
    /// Whether TCP super-packets are passed.
    pub tcp_offload: bool,
    /// Whether UDP super-packets are passed.
    pub udp_offload: bool,
}

/// One socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct SocketReport {
    /// Datagrams sent, and their bytes (UDP payload).
    pub sent: Count,
    /// Datagrams received, and their bytes (UDP payload).
    pub received: Count,
    /// System calls that sent.
    pub sends: u64,
    /// System calls that received something.
    pub receives: u64,
    /// Datagrams dropped because the socket was full.
    pub blocked: u64,
    /// Datagrams too large for the interface.
    pub too_big: u64,
    /// Datagrams dropped by another error.
    pub failed: u64,
    /// Datagrams that nobody could use: from a stranger, malformed, replayed.
    pub refused: u64,
    /// Whether sending uses segmentation offload.
    pub offload: bool,
    /// Whether its interface is there and up.
    pub up: bool,
}

/// Packets (or datagrams) and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// How many bytes they had together.
    pub bytes: u64,
}

impl Count {
    /// Counts `packets` more, of `bytes` together.
    pub(crate) fn add(&mut self, packets: usize, bytes: usize) {
        self.packets += packets as u64;
        self.bytes += bytes as u64;
    }
}

/// Buffers in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferReport {
    /// Large buffers that were made.
    pub large: usize,
    /// Small buffers that were made.
    pub small: usize,
    /// Times that no buffer was left and a packet was dropped.
    pub exhausted: u64,
}

/// An MPT connection.
#[derive(Clone, Debug, Default)]
pub struct MptReport {
    /// Its paths.
    pub paths: Vec<MptPathReport>,
    /// Resequencing, if it is on.
    pub resequencing: Option<Resequencing>,
    /// Packets that wait in the resequencer.
    pub held: u64,
    /// Packets dropped because no path was usable.
    pub pathless: u64,
}

/// One path of an MPT connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct MptPathReport {
    /// Whether it carries packets.
    pub up: bool,
    /// Packets laid on it, and their bytes without headers.
    pub sent: Count,
    /// Packets that came over it, and their bytes without headers.
    pub received: Count,
    /// Keepalives that came.
    pub keepalives: u64,
    /// Times it went down.
    pub failures: u64,
    /// When the peer's latest keepalive came.
    pub heard: Option<Instant>,
}

/// One peer of Ropewalk's own tunnel.
#[derive(Clone, Debug)]
pub struct PeerReport {
    /// Its name in the setup.
    pub name: String,
    /// The session; `None` only if the peer is gone.
    pub seal: Option<PeerStatus>,
    /// The machine; `None` only if the peer is gone.
    pub status: Option<EndpointStatus>,
    /// Where its paths lead.
    pub routes: Vec<RouteReport>,
    /// Packets from the device for it, and their bytes.
    pub sent: Count,
    /// Packets of it for the device, and their bytes.
    pub received: Count,
    /// Packets for it that were dropped, as there was no session.
    pub sessionless: u64,
    /// Packets of it with a source that is not its own.
    pub foreign: u64,
    /// Packets of it that could not be put together, or made no sense.
    pub broken: u64,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteReport {
    /// The path.
    pub path: u8,
    /// Index of the socket that it uses.
    pub socket: usize,
    /// Where the peer is.
    pub remote: SocketAddr,
}
