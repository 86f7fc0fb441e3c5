//! The record of a run: one schema for every driver.
//!
//! A driver turns one experiment and one seed into one [`Run`]. Reports read runs and nothing else.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod delays;
mod digest;
pub mod distribution;
pub mod fairness;
mod histogram;
mod limits;
pub mod load;

pub use delays::{DelayHistogram, Delays};
pub use digest::Digest;
pub use distribution::Distribution;
pub use limits::LimitTimes;

/// One run: one cell of a sweep with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Swept and set keys with their values, as text.
    pub parameters: BTreeMap<String, String>,
    /// The seed.
    pub seed: u64,
    /// Digest of everything below; the same seed must give it again. Hexadecimal.
    pub digest: String,
    /// Simulated (or real) length, seconds.
    pub duration_s: f64,
    /// Jain's index of the goodput of the TCP flows that always have data, over the whole seconds in which all of them
    /// were on; none if fewer than two compete.
    #[serde(default)]
    pub jain: Option<f64>,
    /// The time from the last of these flows' start until they share fairly, seconds; none if they never do. See
    /// [`fairness`].
    #[serde(default)]
    pub convergence_s: Option<f64>,
    /// What all paths together can carry in the long run, headers included, Mbit/s: of each path the rate of its
    /// slowest link times the share that its links neither lose nor corrupt. None if a path has no rate, if paths share
    /// a link, or if the scenario changes what a link carries.
    #[serde(default)]
    pub capacity_mbps: Option<f64>,
    /// On a real kernel: the steal time, in which the run waited for the CPU, seconds; zero in virtual time. None in
    /// the simulator.
    #[serde(default)]
    pub steal_s: Option<f64>,
    /// On a real kernel in real time: CPU time, of [`Cpu::MACHINE`] first.
    #[serde(default)]
    pub cpu: Vec<Cpu>,
    /// Connections and ends of the tunnel at whose congestion control another algorithm took the configured one's place,
    /// as CUBIC does for a learned policy that fails.
    #[serde(default)]
    pub controller_failures: u64,
    /// Why the first of them did; empty if none did.
    #[serde(default)]
    pub controller_failure: String,
    /// The flows.
    pub flows: Vec<Flow>,
    /// The subflows of all MPTCP flows.
    #[serde(default)]
    pub subflows: Vec<Subflow>,
    /// The paths.
    pub paths: Vec<Path>,
    /// The tunnel, where there is one.
    pub tunnel: Option<Tunnel>,
    /// The samples of the delays whose [`Summary`] flows, subflows and the tunnel have, where the driver counts them. Runs
    /// recorded before there were any have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<DelayHistogram>,
    /// Time series, where they were asked for. JSON leaves them out: it does not know all their numbers.
    #[serde(default, skip_serializing)]
    pub series: Vec<Series>,
    /// Work done: for benchmarks.
    pub work: Work,
}

impl Run {
    /// The maximum steal time of an undisturbed run, as a share of its duration. With more, timers fire late, and a
    /// shaper's token bucket makes up for little of the lost capacity.
    pub const MAX_STEAL_SHARE: f64 = 0.01;

    /// The run as one line of JSON.
    ///
    /// # Panics
    /// Never: it has text, numbers and lists.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Here, where it is optimised in every build: a run may have ten thousand flows.
        serde_json::to_string(self).expect("text, numbers and lists")
    }

    /// Whether the steal time exceeds [`Run::MAX_STEAL_SHARE`].
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.steal_s.is_some_and(|stolen| stolen > Self::MAX_STEAL_SHARE * self.duration_s)
    }
}

/// CPU time spent during a run, seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// [`Cpu::MACHINE`], or a process: `traffic` (all sources and sinks) or, of a tunnel's daemons, `tunnel near` and
    /// `tunnel far`.
    pub name: String,
    /// User time: in programs.
    pub user_s: f64,
    /// System time: in the kernel for them.
    pub system_s: f64,
    /// Interrupt time; none for a process.
    pub interrupt_s: Option<f64>,
}

impl Cpu {
    /// All of the machine that the run was on, whoever used it: the guest, or this machine with what else it did.
    pub const MACHINE: &str = "machine";
    /// The prefix of the names of a tunnel's daemons.
    pub const TUNNEL: &str = "tunnel ";

    /// User, system and interrupt time together, seconds.
    #[must_use]
    pub fn busy_s(&self) -> f64 {
        self.user_s + self.system_s + self.interrupt_s.unwrap_or(0.0)
    }
}

/// The results of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The flow's name.
    pub name: String,
    /// The congestion control; empty for UDP.
    pub congestion_control: String,
    /// Payload delivered in order to the application, over the time the flow was on, Mbit/s.
    pub goodput_mbps: f64,
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Packets that reached the receiving host, first time or again, with their headers from IP on; over the time the
    /// flow was on, Mbit/s.
    pub throughput_mbps: f64,
    /// Data packets sent, first time or again.
    pub sent_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Data packets that queues dropped, links lost or checksums discarded.
    pub dropped_packets: u64,
    /// Episodes of loss recovery.
    pub recoveries: u64,
    /// Episodes that proved spurious and were undone.
    pub spurious_recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// QUIC: data packets that the sender declared lost.
    #[serde(default)]
    pub declared_lost_packets: u64,
    /// QUIC: of these, packets that arrived after all.
    #[serde(default)]
    pub spurious_losses: u64,
    /// Time the sender was held back by the receive window, seconds.
    pub receive_window_limited_s: f64,
    /// Time the sender was held back by its send buffer, seconds.
    pub send_buffer_limited_s: f64,
    /// For how long each limit held back the sender; none if it was not measured.
    #[serde(default)]
    pub limited_s: Option<LimitTimes>,
    /// Time at which a flow of fixed size was done, seconds after its start.
    pub completion_s: Option<f64>,
    /// Share of the goodput of all flows that compete, 0 to 1, over the time of [`Run::jain`]; none if this one does
    /// not.
    #[serde(default)]
    pub share: Option<f64>,
    /// Requests answered in full.
    #[serde(default)]
    pub requests: u64,
    /// Times from each request to the last byte of its response.
    #[serde(default)]
    pub response_time_ms: Summary,
    /// Video: from the flow's start to the first frame played, seconds; none if none was.
    #[serde(default)]
    pub startup_s: Option<f64>,
    /// Stored video: the number of stalls, when the player had no more frames.
    #[serde(default)]
    pub stalls: u64,
    /// Stored video: the time of all stalls, without the startup, seconds.
    #[serde(default)]
    pub stall_s: f64,
    /// Video: frames whose playback time has come, played or late.
    #[serde(default)]
    pub frames: u64,
    /// Live video: frames that were incomplete at their playback time, and were skipped.
    #[serde(default)]
    pub late_frames: u64,
    /// Video: from the moment at which a frame was written to its last byte's delivery, of each frame that arrived.
    #[serde(default)]
    pub frame_delay_ms: Summary,
    /// Video: mean rate of the frames that were played, over the time that they show, Mbit/s.
    #[serde(default)]
    pub video_mbps: f64,
    /// Video: changes from one rate of its ladder to another.
    #[serde(default)]
    pub rate_switches: u64,
    /// RTT samples.
    pub rtt_ms: Summary,
    /// UDP: from sender to receiver, of each datagram that arrived. TCP through a relay: from the first transmission by
    /// the flow's sender to delivery in order at its receiver, of each segment.
    #[serde(default)]
    pub one_way_delay_ms: Summary,
    /// UDP in the simulator: the longest time between two arrivals, or from the latest to the flow's end.
    #[serde(default)]
    pub longest_gap_ms: f64,
    /// UDP in the simulator: the greatest number of datagrams in a row that had not arrived when a later one did.
    #[serde(default)]
    pub longest_loss_packets: u64,
    /// The maximum goodput in any half second of the run's clock, Mbit/s.
    #[serde(default)]
    pub peak_mbps: f64,
    /// MPTCP: from the moment at which a packet of data is taken from the send buffer to its DATA_ACK (Łuczak,
    /// Ignaciuk, Morawski 2023, equation 2).
    #[serde(default)]
    pub protocol_delay_ms: Summary,
    /// MPTCP: by how much `protocol_delay_ms` exceeds the maximum smoothed RTT of the subflows at that moment, at least
    /// zero (the same paper's head-of-line degree, equations 7 to 9).
    #[serde(default)]
    pub head_of_line_degree_ms: Summary,
    /// MPTCP: from a packet's arrival at the receiving host to its delivery in order.
    #[serde(default)]
    pub head_of_line_delay_ms: Summary,
    /// MPTCP: the maximum number of packets that waited for earlier packets at once: the length of the out-of-order
    /// queue.
    #[serde(default)]
    pub max_out_of_order_packets: u64,
    /// MPTCP: packets sent as copies of what another subflow carries: the scheduler's redundancy.
    #[serde(default)]
    pub redundant_packets: u64,
    /// MPTCP: packets sent again on another subflow because their subflow failed or blocked the window.
    #[serde(default)]
    pub reinjected_packets: u64,
    /// MPTCP: payload that arrived on one subflow after it had arrived on another, bytes.
    #[serde(default)]
    pub duplicate_bytes: u64,
    /// MPTCP: packets of which a redundant copy or a reinjection arrived first.
    #[serde(default)]
    pub redundant_first_packets: u64,
}

/// The results of a subflow of an MPTCP flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subflow {
    /// The flow that it belongs to.
    pub flow: String,
    /// Its path.
    pub path: String,
    /// Packets that reached the receiving host over it, first time or again, with their headers from IP on; over the
    /// time the flow was on, Mbit/s.
    pub throughput_mbps: f64,
    /// Data packets sent, first time or again.
    pub sent_packets: u64,
    /// Data packets sent again on it.
    pub retransmitted_packets: u64,
    /// Data packets that queues dropped, links lost or checksums discarded.
    pub dropped_packets: u64,
    /// `dropped_packets` a second of the time that the flow was on.
    pub drops_per_s: f64,
    /// Episodes of loss recovery.
    pub recoveries: u64,
    /// QUIC: data packets that the sender declared lost.
    #[serde(default)]
    pub declared_lost_packets: u64,
    /// QUIC: of these, packets that arrived after all.
    #[serde(default)]
    pub spurious_losses: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// The number of times that it was considered stale or failed.
    pub failures: u64,
    /// RTT samples.
    pub rtt_ms: Summary,
    /// Smoothed RTT, at each acknowledgement that brings a sample.
    pub srtt_ms: Summary,
    /// For how long each limit held back its sender; none if it was not measured.
    #[serde(default)]
    pub limited_s: Option<LimitTimes>,
}

impl Subflow {
    /// Events per second of a time in which a subflow could send; 0 if it had none.
    #[must_use]
    pub fn per_second(events: u64, time: units::Span) -> f64 {
        if time == units::Span::ZERO { 0.0 } else { events as f64 / time.as_secs_f64() }
    }
}

/// A distribution in a few numbers; all zero if there were no samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

/// The results of a path, in the direction of the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// Packets handed to its first link.
    pub sent_packets: u64,
    /// Packets that left its last link.
    pub delivered_packets: u64,
    /// Packets dropped by queues and policers.
    pub dropped_packets: u64,
    /// Packets lost on wires.
    pub lost_packets: u64,
    /// Copies that wires made of packets. None are counted on a kernel.
    #[serde(default)]
    pub duplicated_packets: u64,
    /// Packets that crossed the path with a flipped bit and were discarded by their receiver's checksum. None are
    /// counted on a kernel.
    #[serde(default)]
    pub corrupted_packets: u64,
    /// Packets marked CE.
    pub marked_packets: u64,
    /// Bytes that left its slowest link, as a share of what it could have carried.
    pub utilisation: f64,
    /// Mean queueing delay of its links together, milliseconds.
    pub queue_delay_ms: f64,
    /// Ropewalk's tunnel: datagrams with data that its sender declared lost.
    #[serde(default)]
    pub declared_lost_packets: u64,
    /// Ropewalk's tunnel: of these, datagrams that arrived after all.
    #[serde(default)]
    pub spurious_losses: u64,
    /// Ropewalk's tunnel: times that its sender found the path not to work.
    #[serde(default)]
    pub failures: u64,
}

/// The results of a tunnel, in the direction of the data. Some counters of Ropewalk's tunnel count fragments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tunnel {
    /// Packets delivered at the far end.
    pub delivered_packets: u64,
    /// Packets (Ropewalk: fragments) that waited in the reorder buffer for earlier ones.
    pub reorder_buffered_packets: u64,
    /// Packets (Ropewalk: fragments) dropped because later ones had already been delivered.
    pub late_packets: u64,
    /// Packets dropped at the near end: because the tunnel device was full, or by the ingress queue's CoDel.
    pub dropped_packets: u64,
    /// Times the timeout released packets.
    pub timeouts: u64,
    /// Times a packet beyond the window flushed everything.
    pub overflows: u64,
    /// The maximum number of packets in the reorder buffer at once.
    pub max_reorder_buffered_packets: u64,
    /// Time that packets spent in the reorder buffer; of Ropewalk's only the mean is known.
    pub reorder_delay_ms: Summary,
    /// Ropewalk: packets marked in the ingress queue instead of being dropped.
    #[serde(default)]
    pub marked_packets: u64,
    /// Ropewalk: fragments sent, first time or again.
    #[serde(default)]
    pub sent_fragments: u64,
    /// Ropewalk: fragments sent again because they were lost, or seemed to be.
    #[serde(default)]
    pub retransmitted_fragments: u64,
    /// Ropewalk: fragments that arrived twice.
    #[serde(default)]
    pub duplicate_fragments: u64,
    /// Ropewalk: fragments that never arrived.
    #[serde(default)]
    pub missing_fragments: u64,
    /// Ropewalk: TCP connections that the relay has split.
    #[serde(default)]
    pub relayed_connections: u64,
    /// Ropewalk: the maximum that an end of the relay held of all connections together, to be sent or received, bytes.
    /// Not counted on a kernel.
    #[serde(default)]
    pub max_relayed_bytes: u64,
}

/// The columns that a flow's or subflow's series begins with, whatever the driver; NaN for a missing value. Rates and
/// counts are those of one sample's interval, the others are as they were at its end.
pub const FLOW_COLUMNS: [&str; 9] = [
    "goodput_mbps",
    "cwnd_packets",
    "ssthresh_packets",
    "srtt_ms",
    "in_flight_packets",
    "retransmitted_packets",
    "throughput_mbps",
    "sent_packets",
    "dropped_packets",
];

/// A time series of one subject (a flow, a subflow or a path): one row an instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// `flow NAME`, `subflow FLOW/PATH` or `path NAME`.
    pub subject: String,
    /// Column names, with their units: `cwnd_packets`, `srtt_ms`, `queue_packets`, `goodput_mbps` ...
    pub columns: Vec<String>,
    /// Seconds since the start of the run.
    pub time_s: Vec<f64>,
    /// One vector a column, as long as `time_s`; NaN for a missing value.
    pub values: Vec<Vec<f64>>,
}

/// Work done by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Data packets times links crossed.
    pub data_packet_hops: u64,
    /// All packets times links crossed.
    pub packet_hops: u64,
    /// Data packets that reached their receiver.
    pub delivered_data_packets: u64,
    /// Events taken from the queue.
    pub events: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_hundredth_of_the_time_without_the_cpu_disturbs_a_run() {
        let disturbed = |steal_s| Run { duration_s: 20.0, steal_s, ..Run::default() }.is_disturbed();
        assert_eq!([None, Some(0.0), Some(0.2), Some(0.21)].map(disturbed), [false, false, false, true]);
    }
}
