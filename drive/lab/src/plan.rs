//! What the lab tells the agent at the place of a run, and what the agent answers. Both are JSON files.

use crate::Generator;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use units::Span;

/// What is to happen. Times count from the beginning of the run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) duration: Span,
    pub(crate) sample: Span,
    pub(crate) flows: Vec<Traffic>,
    /// Commands at their instants.
    pub(crate) events: Vec<(Span, String)>,
    /// Commands that print the links' counters: at the end of the run, and when all is silent.
    pub(crate) counters: Vec<String>,
    /// Commands that print what a tunnel's ends tell of themselves, at the end of the run.
    pub(crate) statuses: Vec<String>,
    /// Processes whose CPU time is wanted: what they are called, and files with their numbers.
    pub(crate) processes: Vec<(String, String)>,
    /// Commands that silence the sending hosts, after the run.
    pub(crate) silence: Vec<String>,
    /// How long the last packets then need to arrive.
    pub(crate) drain: Span,
    /// Commands that print the hosts' counters, after that.
    pub(crate) totals: Vec<String>,
    /// Commands at the very end.
    pub(crate) last: Vec<String>,
}

/// A TCP flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) start: Span,
    pub(crate) stop: Option<Span>,
    /// Bytes, or as many as possible.
    pub(crate) size: Option<u64>,
    /// The kernel's name of the congestion control.
    pub(crate) congestion: String,
    /// Source and sink.
    pub(crate) sides: [Side; 2],
    /// MPTCP: the source's address on each path.
    pub(crate) subflows: Option<Vec<IpAddr>>,
    /// Programs that make it instead of the agent.
    pub(crate) tool: Option<Tool>,
}

/// Programs that make a flow's traffic. The source's end of the connection that carries the data has the source's address and
/// port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tool {
    pub(crate) generator: Generator,
    pub(crate) server: Job,
    /// It connects, and the flow is over when it ends.
    pub(crate) client: Job,
}

/// A program to be run in a flow's host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Its namespace.
    pub(crate) space: String,
    /// The program and its arguments, apart by blanks.
    pub(crate) line: String,
    /// The file for what it says.
    pub(crate) output: String,
}

/// One end of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Side {
    /// Its namespace.
    pub(crate) space: String,
    /// The sink listens there. The port of the source counts only where a [`Tool`] makes the traffic.
    pub(crate) address: SocketAddr,
}

/// What was seen.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// How long the run took: [`Plan::duration`], or less if all flows had a size and were done before.
    pub(crate) length: Span,
    /// How long the place did not get the CPU when it wanted it. In virtual time it always does.
    pub(crate) stolen: Span,
    pub(crate) flows: Vec<Observation>,
    /// What [`Plan::counters`] printed at the end of the run.
    pub(crate) counters: Vec<String>,
    /// And when all was silent.
    pub(crate) late_counters: Vec<String>,
    /// What [`Plan::statuses`] printed.
    pub(crate) statuses: Vec<String>,
    /// What [`Plan::totals`] printed.
    pub(crate) totals: Vec<String>,
    /// CPU time of the run.
    pub(crate) cpu: Cpu,
}

/// CPU time, all of it during the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cpu {
    /// Of the whole machine: in programs, in the kernel for them, and in interrupts.
    pub(crate) machine: [Span; 3],
    /// Of each of [`Plan::processes`], and of the traffic itself: in the program, in the kernel.
    pub(crate) processes: Vec<(String, [Span; 2])>,
}

/// One flow.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// One every [`Plan::sample`], the last one at the end of the run.
    pub(crate) samples: Vec<Sample>,
    /// Of an MPTCP flow, the samples of each subflow, in the order of [`Traffic::subflows`].
    pub(crate) subflows: Vec<Vec<Sample>>,
    /// When a flow of a size was done, from its start.
    pub(crate) completion: Option<Span>,
    /// What the application had read then, bytes.
    pub(crate) delivered: u64,
    pub(crate) episodes: Episodes,
    /// Of an MPTCP flow.
    pub(crate) multipath: Option<Multipath>,
}

/// A flow or subflow at one instant, counters since its beginning.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Read by the application, bytes; of a subflow unknown. Of a [`Tool`] that is still at it: what its kernel has for it,
    /// with MPTCP on all subflows together, so that what came twice counts twice.
    pub(crate) delivered: u64,
    /// Data packets that arrived, first time or again.
    pub(crate) arrived: u32,
    /// Payload that arrived in order, bytes: of a subflow in its own order.
    pub(crate) received: u64,
    /// Nothing before the connection stands.
    pub(crate) tcp: Option<TcpInfo>,
}

/// Of the kernel's `tcp_info` what a record needs. Times in microseconds, rates in bytes a second, the rest packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TcpInfo {
    pub(crate) window: u32,
    pub(crate) threshold: u32,
    pub(crate) rtt: u32,
    pub(crate) min_rtt: u32,
    pub(crate) in_flight: u32,
    pub(crate) sent: u32,
    pub(crate) retransmitted: u32,
    pub(crate) pacing_rate: u64,
    pub(crate) delivery_rate: u64,
    /// 0 open, 1 disorder, 2 window reduced, 3 recovery, 4 loss.
    pub(crate) state: u8,
    pub(crate) receive_window_limited: u64,
    pub(crate) send_buffer_limited: u64,
}

/// The sending host's `TcpExt` counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Episodes {
    pub(crate) recoveries: u64,
    pub(crate) undone: u64,
    pub(crate) timeouts: u64,
}

/// The hosts' `MPTcpExt` counters: of the source, but for `duplicates`, which are the sink's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Multipath {
    /// Connections whose other end can do MPTCP.
    pub(crate) connections: u64,
    /// Connections that went on as plain TCP.
    pub(crate) fallbacks: u64,
    /// Subflows that the other end took in, beside the first.
    pub(crate) joined: u64,
    /// Subflows that failed before that, or were not as they should be.
    pub(crate) refused: u64,
    /// Pieces of the stream, of one packet or several, sent again on another subflow.
    pub(crate) reinjected: u64,
    /// Packets that brought nothing new.
    pub(crate) duplicates: u64,
    /// Times that a subflow was taken for stale.
    pub(crate) stale: u64,
}
