//! The results of a path and of a tunnel.

use crate::Summary;
use crate::columns::record;

record! {
/// The results of a path, in the direction of the data.
pub struct Path {
    /// Its name.
    name: String = "path",
    /// Packets handed to its first link.
    sent_packets: u64,
    /// Packets that left its last link.
    delivered_packets: u64,
    /// Packets dropped by queues and policers.
    dropped_packets: u64,
    /// Packets lost on wires.
    lost_packets: u64,
    /// Packets marked CE.
    marked_packets: u64,
    /// Bytes that left its slowest link, as a share of what it could have carried.
    utilisation: f64,
    /// Mean queueing delay of its links together, milliseconds.
    queue_delay_ms: f64,
    /// Copies that wires made of packets. None on a kernel.
    #[serde(default)]
    duplicated_packets: Option<u64>,
    /// Packets that crossed the path with a flipped bit and were discarded by their receiver's checksum. None on a kernel.
    #[serde(default)]
    corrupted_packets: Option<u64>,
}
parts {
    /// The sender of Ropewalk's tunnel on this path.
    tunnel: PathSender,
}
}

record! {
/// What the sender of Ropewalk's tunnel has seen of a path.
#[derive(Copy)]
pub struct PathSender {
    /// Datagrams with data that it declared lost.
    declared_lost_packets: u64,
    /// Of these, datagrams that arrived after all.
    spurious_losses: u64,
    /// Times that it found the path not to work.
    failures: u64,
}
}

record! {
/// The results of a tunnel, in the direction of the data. Some counters of Ropewalk's tunnel count fragments.
pub struct Tunnel {
    /// Packets delivered at the far end.
    delivered_packets: u64,
    /// Packets (Ropewalk: fragments) that waited in the reorder buffer for earlier ones.
    reorder_buffered_packets: u64,
    /// Packets (Ropewalk: fragments) dropped because later ones had already been delivered.
    late_packets: u64,
    /// Packets dropped at the near end: because the tunnel device was full, or by the ingress queue's CoDel.
    dropped_packets: u64,
    /// Times the timeout released packets.
    timeouts: u64,
    /// Times a packet beyond the window flushed everything.
    overflows: u64,
    /// The maximum number of packets in the reorder buffer at once.
    max_reorder_buffered_packets: u64,
    /// Time that packets spent in the reorder buffer; of Ropewalk's only the mean is known.
    reorder_delay_ms: Summary,
}
parts {
    /// What only Ropewalk's tunnel counts.
    ropewalk: RopewalkTunnel,
}
}

record! {
/// What only Ropewalk's tunnel counts.
#[derive(Copy)]
pub struct RopewalkTunnel {
    /// Packets marked in the ingress queue instead of being dropped.
    marked_packets: u64,
    /// Fragments sent, first time or again. None on a kernel, as the next three.
    #[serde(default)]
    sent_fragments: Option<u64>,
    /// Fragments sent again because they were lost, or seemed to be.
    #[serde(default)]
    retransmitted_fragments: Option<u64>,
    /// Fragments that arrived twice.
    #[serde(default)]
    duplicate_fragments: Option<u64>,
    /// Fragments that never arrived.
    #[serde(default)]
    missing_fragments: Option<u64>,
    /// TCP connections that the relay has split.
    relayed_connections: u64,
    /// The maximum that an end of the relay held of all connections together, to be sent or received, bytes. None on a
    /// kernel.
    #[serde(default)]
    max_relayed_bytes: Option<u64>,
}
}
