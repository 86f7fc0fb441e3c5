//! The record of a run: one schema for every driver.
//!
//! A driver turns one experiment and one seed into one [`Run`]. Reports read runs and nothing else.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod columns;
mod delays;
mod digest;
pub mod distribution;
pub mod fairness;
mod flow;
mod histogram;
mod limits;
pub mod load;
mod path;
mod summary;

use columns::record;
pub use columns::{Column, ColumnVisitor, Columns};
pub use delays::{DelayHistogram, Delays};
pub use digest::Digest;
pub use distribution::Distribution;
pub use flow::{Flow, Gaps, Multipath, Protocol, QuicLosses, Requests, Stack, Subflow, Video};
pub use limits::LimitTimes;
pub use path::{Path, PathSender, RopewalkTunnel, Tunnel};
pub use summary::Summary;

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
    /// Connections and ends of the tunnel at whose congestion control or scheduler another algorithm took the configured
    /// one's place, as CUBIC and `minrtt` do for a learned policy that fails.
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

record! {
/// CPU time spent during a run, seconds.
pub struct Cpu {
    /// [`Cpu::MACHINE`], or a process: `traffic` (all sources and sinks) or, of a tunnel's daemons, `tunnel near` and
    /// `tunnel far`.
    name: String,
    /// User time: in programs.
    user_s: f64,
    /// System time: in the kernel for them.
    system_s: f64,
    /// Interrupt time; none for a process.
    interrupt_s: Option<f64>,
}
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

record! {
/// Work done by the driver.
#[derive(Copy)]
pub struct Work {
    /// Data packets times links crossed.
    data_packet_hops: u64 = "work.data_packet_hops",
    /// All packets times links crossed.
    packet_hops: u64 = "work.packet_hops",
    /// Data packets that reached their receiver.
    delivered_data_packets: u64 = "work.delivered_data_packets",
    /// Events taken from the queue.
    events: u64 = "work.events",
}
}

impl Columns for Run {
    /// The columns of a run itself. Its key, its parameters, its parts and its series have tables of their own.
    fn visit(&mut self, visitor: &mut dyn ColumnVisitor) {
        self.digest.visit("digest", visitor);
        self.duration_s.visit("duration_s", visitor);
        self.jain.visit("jain", visitor);
        self.convergence_s.visit("convergence_s", visitor);
        self.capacity_mbps.visit("capacity_mbps", visitor);
        self.steal_s.visit("steal_s", visitor);
        self.controller_failures.visit("controller_failures", visitor);
        self.controller_failure.visit("controller_failure", visitor);
        Columns::visit(&mut self.work, visitor);
    }
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
