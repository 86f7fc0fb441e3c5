//! What the lab tells the agent at the place of a run, and what the agent answers. Both are JSON files.

use crate::Generator;
use record::Summary;
use scenario::model::Requests;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use units::{Rate, Span};

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

/// A flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) start: Span,
    pub(crate) stop: Option<Span>,
    /// Source and sink.
    pub(crate) sides: [Side; 2],
    pub(crate) kind: Kind,
}

/// What a flow is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    Tcp(Tcp),
    Udp(Udp),
}

impl Traffic {
    /// MPTCP: the source's address on each path.
    pub(crate) fn subflows(&self) -> Option<&[IpAddr]> {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.subflows.as_deref(),
            Kind::Udp(_) => None,
        }
    }

    /// The programs that make it, if the agent does not.
    pub(crate) fn tool(&self) -> Option<(&Tcp, &Tool)> {
        match &self.kind {
            Kind::Tcp(tcp @ Tcp { application: Application::Tool(tool), .. }) => Some((tcp, tool)),
            _ => None,
        }
    }
}

/// TCP or MPTCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tcp {
    /// The kernel's name of the congestion control.
    pub(crate) congestion: String,
    pub(crate) application: Application,
    /// Bytes, or as many as possible.
    pub(crate) size: Option<u64>,
    /// MPTCP: the source's address on each path.
    pub(crate) subflows: Option<Vec<IpAddr>>,
}

/// What runs on top of TCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Application {
    /// It always has data.
    Greedy,
    /// It writes so many bytes at once, at this rate.
    Steady { rate: Rate, write: u64 },
    /// The sink asks, the source answers; sizes and pauses are those of flow `name` with this seed.
    Requests { requests: Requests, seed: u64, name: String },
    /// Programs, instead of the agent, that send all they can.
    Tool(Tool),
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

/// UDP at a constant rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Udp {
    /// From a datagram to the next.
    pub(crate) interval: Span,
    /// Bytes of one, from the IP header on.
    pub(crate) packet: u32,
    /// Bytes of its payload, which begins with the time of its sending.
    pub(crate) payload: u32,
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
    /// Read by the application at the end of each second of the run, bytes.
    pub(crate) seconds: Vec<u64>,
    /// Of an MPTCP flow, the samples of each subflow, in the order of [`Tcp::subflows`].
    pub(crate) subflows: Vec<Vec<Sample>>,
    /// When a flow of a size was done, from its start.
    pub(crate) completion: Option<Span>,
    /// What the application had read then, bytes.
    pub(crate) delivered: u64,
    /// UDP: from the sending of each datagram to its arrival. Requests: from each to the last byte of its answer.
    pub(crate) times: Times,
    /// UDP: datagrams sent.
    pub(crate) sent: u64,
    /// UDP: those of them that never arrived.
    pub(crate) lost: u64,
    pub(crate) episodes: Episodes,
    /// Of an MPTCP flow.
    pub(crate) multipath: Option<Multipath>,
}

/// Times that were taken, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) count: u64,
    pub(crate) summary: Summary,
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
    /// UDP: datagrams sent.
    pub(crate) datagrams: Option<u32>,
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

impl TcpInfo {
    /// There is a connection at this instant, and not only the counts of earlier ones.
    pub(crate) fn stands(&self) -> bool {
        self.window > 0
    }

    /// With the counts of the flow's earlier connections.
    pub(crate) fn after(self, before: &Self) -> Self {
        let least = [self.min_rtt, before.min_rtt].into_iter().filter(|rtt| *rtt > 0).min();
        Self {
            min_rtt: least.unwrap_or(0),
            sent: self.sent + before.sent,
            retransmitted: self.retransmitted + before.retransmitted,
            receive_window_limited: self.receive_window_limited + before.receive_window_limited,
            send_buffer_limited: self.send_buffer_limited + before.send_buffer_limited,
            ..self
        }
    }

    /// What stays of a connection that is over: its counts.
    pub(crate) fn counts(self) -> Self {
        Self::default().after(&self)
    }
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
