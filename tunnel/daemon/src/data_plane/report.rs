//! Counters of the data plane, since its start.

use crate::status::Traffic;
use machine::EndpointStatus;
use mpt::ResequencerCounters;
use seal::{PeerStatus, PublicKey};
use std::net::{IpAddr, SocketAddr};
use units::Instant;

/// All counters at one time.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Time since the start of the data plane.
    pub now: Instant,
    /// The TUN device.
    pub device: DeviceReport,
    /// The sockets, by index.
    pub sockets: Vec<SocketReport>,
    /// The paths of an MPT connection.
    pub mpt: Option<MptReport>,
    /// The peers in `ropewalk` mode.
    pub peers: Vec<PeerReport>,
    /// Refused datagrams and handshakes, by reason.
    pub dropped: seal::DropCounters,
    /// The buffer pool.
    pub buffers: BufferReport,
    /// Packets and datagrams that were dropped because the queue of the data thread that they belong to was full.
    pub not_handed_over: u64,
}

impl Report {
    /// Adds the report of another data thread.
    pub fn merge(&mut self, other: Self) {
        self.now = self.now.max(other.now);
        self.device.merge(&other.device);
        self.sockets.iter_mut().zip(&other.sockets).for_each(|(socket, other)| socket.merge(other));
        self.peers.extend(other.peers);
        self.dropped.merge(&other.dropped);
        self.not_handed_over += other.not_handed_over;
        let buffers = &mut self.buffers;
        buffers.large += other.buffers.large;
        buffers.small += other.buffers.small;
        buffers.exhausted += other.buffers.exhausted;
    }
}

/// The TUN device.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceReport {
    /// Packets or super-packets read.
    pub read: Traffic,
    /// Packets or super-packets written.
    pub written: Traffic,
    /// Failed writes.
    pub write_errors: u64,
    /// Super-packets, and packets with a checksum to complete, that the kernel refused; they were segmented.
    pub refused_super_packets: u64,
    /// Packets that are not IP, or that could not be segmented.
    pub malformed: u64,
    /// Packets whose destination is in no peer's allowed IPs.
    pub unrouted: u64,
    /// Whether the device accepts TCP super-packets.
    pub tcp_offload: bool,
    /// Whether the device accepts UDP super-packets.
    pub udp_offload: bool,
}

impl DeviceReport {
    fn merge(&mut self, other: &Self) {
        self.read.merge(other.read);
        self.written.merge(other.written);
        self.write_errors += other.write_errors;
        self.refused_super_packets += other.refused_super_packets;
        self.malformed += other.malformed;
        self.unrouted += other.unrouted;
        self.tcp_offload &= other.tcp_offload;
        self.udp_offload &= other.udp_offload;
    }
}

impl SocketReport {
    fn merge(&mut self, other: &Self) {
        self.sent.merge(other.sent);
        self.received.merge(other.received);
        self.sends += other.sends;
        self.send_buffer_full += other.send_buffer_full;
        self.too_big += other.too_big;
        self.failed += other.failed;
        self.refused += other.refused;
        self.offload &= other.offload;
        self.up &= other.up;
    }
}

/// One socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct SocketReport {
    /// Datagrams sent, bytes of UDP payload.
    pub sent: Traffic,
    /// Datagrams received, bytes of UDP payload.
    pub received: Traffic,
    /// System calls that sent datagrams.
    pub sends: u64,
    /// Datagrams dropped because the send buffer was full.
    pub send_buffer_full: u64,
    /// Datagrams larger than the interface's MTU.
    pub too_big: u64,
    /// Datagrams dropped after another error.
    pub failed: u64,
    /// Received datagrams that were dropped: from an unknown sender, malformed, replayed.
    pub refused: u64,
    /// Whether sending uses UDP GSO.
    pub offload: bool,
    /// Whether its interface is up.
    pub up: bool,
}

/// The buffer pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferReport {
    /// Large buffers allocated.
    pub large: usize,
    /// Small buffers allocated.
    pub small: usize,
    /// Packets dropped because no buffer was free.
    pub exhausted: u64,
}

/// An MPT connection.
#[derive(Clone, Debug, Default)]
pub struct MptReport {
    /// The paths.
    pub paths: Vec<MptPathReport>,
    /// The reorder buffer, if there is one.
    pub resequencer: Option<ResequencerCounters>,
    /// Packets in the reorder buffer.
    pub buffered_packets: u64,
    /// Packets dropped because no path was up.
    pub no_path_packets: u64,
    /// Received packets whose source is not in the peer's allowed IPs.
    pub unallowed_source: u64,
    /// Received packets that are not IP, or are shorter than their headers state.
    pub malformed: u64,
}

/// One path of an MPT connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct MptPathReport {
    /// Whether it carries packets.
    pub up: bool,
    /// Inner packets sent.
    pub sent: Traffic,
    /// Inner packets received.
    pub received: Traffic,
    /// Number of times that the path went down.
    pub failures: u64,
}

/// A peer in `ropewalk` mode.
#[derive(Clone, Debug)]
pub struct PeerReport {
    /// The public key.
    pub public_key: PublicKey,
    /// The session; `None` only if the peer was removed.
    pub session: Option<PeerStatus>,
    /// The endpoint; `None` only if the peer was removed.
    pub status: Option<EndpointStatus>,
    /// The addresses of its paths.
    pub addresses: Vec<AddressReport>,
    /// The names of the paths that it has opened, by path id.
    pub names: Vec<(u8, String)>,
    /// Whether it carries the packets of its networks, if it is one of several servers; otherwise `None`.
    pub active: Option<bool>,
    /// Packets to this peer dropped because there was no session.
    pub no_session: u64,
    /// Packets whose source is not in the peer's allowed IPs.
    pub unallowed_source: u64,
    /// The number of them from each of the latest such addresses.
    pub unallowed_sources: Vec<(IpAddr, u64)>,
    /// Packets that could not be reassembled, or were malformed.
    pub incomplete: u64,
    /// The relay; `None` if this end does not relay.
    pub relay: Option<RelayReport>,
}

/// The relay with a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayReport {
    /// Whether the peer relays, too.
    pub peer_relays: bool,
    /// Whether the kernel translates the packets of relayed connections; otherwise the daemon does.
    pub kernel_translation: bool,
    /// Current number of connections.
    pub connections: u64,
    /// Memory used by the connections' data, bytes.
    pub held_bytes: u64,
    /// Counters since the start.
    pub counters: RelayCounters,
}

/// Counters of the relay with a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    /// Connections that clients at this end have begun.
    pub opened: u64,
    /// Connections that the peer has opened, to servers at this end.
    pub accepted: u64,
    /// Connections that went through the tunnel as packets because an end did not relay them.
    pub not_relayed: u64,
    /// Bytes read from connections at this end.
    pub sent_bytes: u64,
    /// Bytes written to connections at this end.
    pub received_bytes: u64,
}

/// The address of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressReport {
    /// The path id.
    pub path: u8,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The address of this host that the peer sends to, if it is known.
    pub local: Option<IpAddr>,
}
