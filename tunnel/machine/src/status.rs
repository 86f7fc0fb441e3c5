//! Events, counters and measurements that an [`Endpoint`](super::Endpoint) reports.

use units::{Instant, PathId, Rate, Span};
use wire::frame::PathName;

/// A change of an endpoint or of one of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// A probe was answered: the path works.
    PathUp(PathId),
    /// The path stopped working.
    PathDown(PathId),
    /// Path MTU discovery raised the largest datagram (UDP payload, bytes).
    MaxDatagramSize(PathId, u32),
    /// The peer removed the path.
    PathRemoved(PathId),
    /// The peer calls the path by another name than before, or by its first one.
    PathNamed(PathId),
    /// The peer closed the tunnel.
    Closed,
    /// The congestion control or the scheduler failed, and another algorithm has taken its place; the status says why.
    ControllerFailed,
}

/// Measurements and counters of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStatus {
    /// The path's id.
    pub path: PathId,
    /// What the peer calls it, if it has said so.
    pub peer_name: Option<PathName>,
    /// Whether it works.
    pub up: bool,
    /// Whether either end uses it as a backup.
    pub backup: bool,
    /// Whether either end uses it only while regular paths are full, and neither end uses it as a backup.
    pub secondary: bool,
    /// Smoothed RTT of data and acknowledgement, which may return by another path; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Minimum RTT; `None` before the first sample.
    pub min_rtt: Option<Span>,
    /// Mean deviation of the RTT; `None` before the first sample.
    pub rttvar: Option<Span>,
    /// RTT of the latest probe, on this path in both directions.
    pub probe_rtt: Option<Span>,
    /// One-way delay to the peer in excess of the fastest path's.
    pub excess_one_way_delay: Span,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Pacing rate; zero if nothing is paced.
    pub pacing_rate: Rate,
    /// The latest sample of the delivery rate; `None` before the first.
    pub delivery_rate: Option<Rate>,
    /// The largest datagram (UDP payload) known to pass, bytes.
    pub max_datagram_size: u32,
    /// Datagrams with data sent.
    pub sent_packets: u64,
    /// Bytes of data sent.
    pub sent_bytes: u64,
    /// Datagrams with data acknowledged.
    pub acked_packets: u64,
    /// Datagrams with data declared lost.
    pub lost_packets: u64,
    /// Datagrams declared lost and acknowledged later.
    pub spurious_losses: u64,
    /// CE marks that the peer saw.
    pub ce_packets: u64,
    /// Datagrams with data received.
    pub received_packets: u64,
    /// Bytes of data received.
    pub received_bytes: u64,
    /// Arrival of the latest datagram.
    pub last_received: Option<Instant>,
    /// Number of times that it stopped working.
    pub failures: u64,
    /// Number of times that it moved to another address of the peer.
    pub moves: u64,
    /// Other addresses from which datagrams arrived, but to which the path did not move: the present address answered,
    /// or the other one did not.
    pub refused_addresses: u64,
}

/// Counters of the packets of one class of flows that left the ingress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Inner packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their waits in the queue, nanoseconds.
    pub wait_ns: u64,
}

impl ClassCounters {
    pub(super) fn count(&mut self, bytes: u32, wait: Span) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.wait_ns += wait.0;
    }
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Inner packets from the device.
    pub ingress_packets: u64,
    /// Inner packets dropped at the ingress queue, by CoDel or because it was full.
    pub ingress_dropped_packets: u64,
    /// Inner packets that CoDel marked CE at the ingress queue, or trimmed by a segment where they are not ECN-capable.
    pub ingress_marked_or_trimmed_packets: u64,
    /// Pure acknowledgements of inner TCP flows that a newer one replaced.
    pub thinned_acks: u64,
    /// Inner packets sent in bundles.
    pub bundled_packets: u64,
    /// Fragments sent for the first time.
    pub new_fragments: u64,
    /// Lost fragments that were retransmitted.
    pub retransmitted_fragments: u64,
    /// Duplicates that a redundant scheduler sent.
    pub redundant_fragments: u64,
    /// Packets of the real-time class that left the ingress queue.
    pub realtime: ClassCounters,
    /// All other packets that left the ingress queue.
    pub bulk: ClassCounters,
    /// Moves of the real-time class from one path to another.
    pub realtime_moves: u64,
    /// Copies of real-time packets that were sent.
    pub copied_fragments: u64,
    /// Their bytes, with the headers of their datagrams from UDP's payload on.
    pub copied_bytes: u64,
    /// Copies that were acknowledged before their originals.
    pub first_copies: u64,
    /// Copies whose originals were acknowledged first.
    pub wasted_copies: u64,
    /// Fragments that the sender gave up.
    pub abandoned_fragments: u64,
    /// Fragments delivered.
    pub delivered_fragments: u64,
    /// Fragments that waited in the reorder buffer for earlier ones.
    pub reorder_buffered_fragments: u64,
    /// Sum of their waits, nanoseconds.
    pub reorder_wait_ns: u64,
    /// Fragments that arrived twice.
    pub duplicate_fragments: u64,
    /// Fragments that arrived after the receiver had given them up.
    pub late_fragments: u64,
    /// Missing fragments that the receiver gave up.
    pub missing_fragments: u64,
    /// Fragments dropped because the reorder buffer was full.
    pub reorder_dropped_fragments: u64,
    /// Malformed frames and fragments; pings and acknowledgements beyond the limit per datagram; acknowledgements of
    /// packets that were never sent.
    pub malformed_frames: u64,
}

/// Measurements and counters of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointStatus {
    /// The counters.
    pub counters: EndpointCounters,
    /// The paths.
    pub paths: Vec<PathStatus>,
    /// Inner packets in the ingress queue.
    pub ingress_backlog_packets: u64,
    /// Bytes in the ingress queue.
    pub ingress_backlog_bytes: u64,
    /// Fragments in flight.
    pub fragments_in_flight: u64,
    /// Fragments in the reorder buffer.
    pub reorder_fragments: u64,
    /// Memory charged for the reorder buffer, bytes.
    pub reorder_memory: u64,
    /// Maximum wait for a missing fragment.
    pub reorder_timeout: Span,
    /// Payload of a full fragment, bytes.
    pub fragment_size: u32,
    /// Why the congestion control or the scheduler runs a different algorithm than the configured one, if one does.
    pub controller_failure: Option<String>,
}
