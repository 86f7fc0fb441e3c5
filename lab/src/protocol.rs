//! The messages between the lab and its agent: a plan, and the results. Both are JSON files.

use crate::Generator;
use record::Summary;
use scenario::model::Requests;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use units::{Rate, Span};

/// The plan of a run. Times count from the beginning of the run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) duration: Span,
    /// The sampling interval.
    pub(crate) sample: Span,
    pub(crate) flows: Vec<FlowSpec>,
    /// Commands, and the times at which to run them.
    pub(crate) events: Vec<(Span, String)>,
    /// Commands that print the links' counters, run at the end of the run and again after the drain.
    pub(crate) link_counters: Vec<String>,
    /// Commands that print the status of a tunnel's ends, at the end of the run.
    pub(crate) tunnel_statuses: Vec<String>,
    /// Processes whose CPU time is measured: names and pid files.
    pub(crate) processes: Vec<(String, String)>,
    /// Commands that stop the sending hosts, after the run.
    pub(crate) stop_senders: Vec<String>,
    /// The time that packets in flight then need to arrive.
    pub(crate) drain: Span,
    /// Commands that print the counters of the hosts' devices, after the drain.
    pub(crate) device_counters: Vec<String>,
    /// Commands that end the captures.
    pub(crate) cleanup: Vec<String>,
}

/// The specification of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FlowSpec {
    pub(crate) start: Span,
    pub(crate) stop: Option<Span>,
    /// Source and sink.
    pub(crate) ends: [FlowEnd; 2],
    pub(crate) transport: Transport,
}

/// A flow's transport protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Transport {
    Tcp(TcpSpec),
    Udp(UdpSpec),
}

impl FlowSpec {
    /// The source's address on each path, with MPTCP.
    pub(crate) fn subflows(&self) -> Option<&[IpAddr]> {
        match &self.transport {
            Transport::Tcp(tcp) => tcp.subflows.as_deref(),
            Transport::Udp(_) => None,
        }
    }

    /// The external programs that make its traffic, if the agent does not.
    pub(crate) fn programs(&self) -> Option<(&TcpSpec, &Programs)> {
        match &self.transport {
            Transport::Tcp(tcp @ TcpSpec { application: Application::Programs(programs), .. }) => Some((tcp, programs)),
            _ => None,
        }
    }
}

/// A TCP or MPTCP flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TcpSpec {
    /// The kernel's name of the congestion control.
    pub(crate) congestion: String,
    pub(crate) application: Application,
    /// Bytes to be sent; none if the flow is endless.
    pub(crate) size: Option<u64>,
    /// The source's address on each path, with MPTCP.
    pub(crate) subflows: Option<Vec<IpAddr>>,
}

/// The application on top of TCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Application {
    /// Always has data to send.
    Greedy,
    /// Writes at this rate, `write` bytes at once.
    Steady { rate: Rate, write: u64 },
    /// The sink sends requests, the source responses; sizes and pauses are those of flow `name` with this seed.
    Requests { requests: Requests, seed: u64, name: String },
    /// External programs that always have data to send.
    Programs(Programs),
}

/// External programs that make a flow's traffic. The data connection has the source's address and port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Programs {
    pub(crate) generator: Generator,
    pub(crate) server: NetnsCommand,
    /// The program that connects; the flow ends when it does.
    pub(crate) client: NetnsCommand,
}

/// A command to be run in a flow's host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NetnsCommand {
    /// The namespace.
    pub(crate) netns: String,
    /// The program and its arguments, separated by blanks.
    pub(crate) line: String,
    /// The file for its output.
    pub(crate) output: String,
}

/// UDP at a constant rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct UdpSpec {
    /// Interval between datagrams.
    pub(crate) interval: Span,
    /// Size of a datagram from the IP header on, bytes.
    pub(crate) packet: u32,
    /// Size of its payload, bytes, which begins with its sending time.
    pub(crate) payload: u32,
}

/// One end of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FlowEnd {
    /// The namespace.
    pub(crate) netns: String,
    /// The sink's listening address, or the source's. The source's port is used by external programs only.
    pub(crate) address: SocketAddr,
}

/// The results of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunResults {
    /// Duration of the run: [`Plan::duration`], or less if all flows had a size and were complete before.
    pub(crate) duration: Span,
    /// Steal time: how long the run waited for the CPU. Zero in virtual time.
    pub(crate) steal: Span,
    pub(crate) flows: Vec<FlowResults>,
    /// Output of [`Plan::link_counters`] at the end of the run.
    pub(crate) link_counters: Vec<String>,
    /// Output of [`Plan::link_counters`] after the drain.
    pub(crate) final_link_counters: Vec<String>,
    /// Output of [`Plan::tunnel_statuses`].
    pub(crate) tunnel_statuses: Vec<String>,
    /// Output of [`Plan::device_counters`].
    pub(crate) device_counters: Vec<String>,
    /// CPU time used during the run.
    pub(crate) cpu: Cpu,
}

/// CPU time used during the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cpu {
    /// CPU time of the whole machine: user, system and interrupts.
    pub(crate) machine: [Span; 3],
    /// CPU time of each of [`Plan::processes`] and of the agent: user and system.
    pub(crate) processes: Vec<(String, [Span; 2])>,
}

/// The results of a flow.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct FlowResults {
    /// Samples every [`Plan::sample`], the last one at the end of the run.
    pub(crate) samples: Vec<Sample>,
    /// Bytes read by the application until the end of each second of the run.
    pub(crate) delivered_by_second: Vec<u64>,
    /// Samples of each subflow of an MPTCP flow, in the order of [`TcpSpec::subflows`].
    pub(crate) subflows: Vec<Vec<Sample>>,
    /// Source addresses of its subflows, and the congestion controls that they had there, by the kernel's names.
    pub(crate) congestion_controls: BTreeSet<(IpAddr, String)>,
    /// Time at which a flow of a given size was complete, from its start.
    pub(crate) completion: Option<Span>,
    /// Bytes that the application had read then.
    pub(crate) delivered: u64,
    /// One-way delays of datagrams, or durations from a request to the last byte of its response.
    pub(crate) times: TimeSummary,
    /// UDP: datagrams sent.
    pub(crate) sent: u64,
    /// UDP: datagrams that never arrived.
    pub(crate) lost: u64,
    pub(crate) tcp_ext: TcpExtCounters,
    /// Counters of an MPTCP flow.
    pub(crate) mptcp_ext: Option<MptcpExtCounters>,
}

/// A number of times and their distribution, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimeSummary {
    pub(crate) count: u64,
    pub(crate) summary: Summary,
}

/// The state of a flow or subflow at one instant; counters are since its beginning.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Bytes read by the application; unknown for a subflow. For an external program that has not ended: bytes received by
    /// the kernel, with MPTCP on all subflows, duplicates included.
    pub(crate) delivered: u64,
    /// Data packets that arrived, retransmissions included.
    pub(crate) arrived: u32,
    /// Payload bytes received in order, for a subflow in its own sequence.
    pub(crate) received: u64,
    /// None before the connection is established.
    pub(crate) tcp: Option<TcpInfo>,
    /// UDP: datagrams sent.
    pub(crate) datagrams: Option<u32>,
}

/// Fields of the kernel's `tcp_info`. Times in microseconds, rates in bytes per second, the rest in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TcpInfo {
    pub(crate) snd_cwnd: u32,
    pub(crate) snd_ssthresh: u32,
    pub(crate) rtt: u32,
    pub(crate) min_rtt: u32,
    pub(crate) in_flight: u32,
    pub(crate) sent: u32,
    pub(crate) retransmitted: u32,
    pub(crate) pacing_rate: u64,
    pub(crate) delivery_rate: u64,
    /// 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub(crate) ca_state: u8,
    pub(crate) rwnd_limited: u64,
    pub(crate) sndbuf_limited: u64,
}

impl TcpInfo {
    /// Whether there is a connection at this instant, not only the counters of closed ones.
    pub(crate) fn is_established(&self) -> bool {
        self.snd_cwnd > 0
    }

    /// Adds the counters of the flow's closed connections.
    pub(crate) fn with_closed(self, before: &Self) -> Self {
        let min_rtt = [self.min_rtt, before.min_rtt].into_iter().filter(|rtt| *rtt > 0).min();
        Self {
            min_rtt: min_rtt.unwrap_or(0),
            sent: self.sent + before.sent,
            retransmitted: self.retransmitted + before.retransmitted,
            rwnd_limited: self.rwnd_limited + before.rwnd_limited,
            sndbuf_limited: self.sndbuf_limited + before.sndbuf_limited,
            ..self
        }
    }

    /// The counters alone, which are kept of a closed connection.
    pub(crate) fn counters(self) -> Self {
        Self::default().with_closed(&self)
    }
}

/// `TcpExt` counters of the sending host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TcpExtCounters {
    pub(crate) recoveries: u64,
    pub(crate) undone: u64,
    pub(crate) timeouts: u64,
}

/// `MPTcpExt` counters of the hosts: those of the source, except `duplicates`, which is the sink's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MptcpExtCounters {
    /// Connections whose peer supports MPTCP.
    pub(crate) connections: u64,
    /// Connections that fell back to TCP.
    pub(crate) fallbacks: u64,
    /// Subflows that the peer accepted, in addition to the first.
    pub(crate) joined: u64,
    /// Subflows that failed to join.
    pub(crate) refused: u64,
    /// Data ranges of one or more packets reinjected on another subflow.
    pub(crate) reinjected: u64,
    /// Packets with duplicate data.
    pub(crate) duplicates: u64,
    /// Times that a subflow was declared stale.
    pub(crate) stale: u64,
}
