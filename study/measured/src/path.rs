//! What was measured of one path alone.

use crate::{RttSample, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The direction of data, seen from the end that measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From this end to the other one.
    Up,
    /// From the other end to this one.
    Down,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Up, Self::Down];

    /// `up` or `down`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// What was measured of one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredPath {
    /// The name, which no other path of the document has.
    pub name: String,
    /// The source address or the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Round-trip times without load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_rtt: Vec<IdleRtt>,
    /// Datagrams at a low rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpStream>,
    /// TCP flows, one at a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpFlow>,
    /// Several TCP flows at a time, which fill the queue where one does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parallel: Vec<Parallel>,
    /// Small datagrams next to a bulk flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<BulkCall>,
    /// Whether a policer was found, by direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policers: Vec<Policer>,
}

impl MeasuredPath {
    /// Adds measurements of the same path.
    pub(crate) fn merge(&mut self, other: Self) {
        self.source = self.source.take().or(other.source);
        self.idle_rtt.extend(other.idle_rtt);
        self.udp.extend(other.udp);
        self.tcp.extend(other.tcp);
        self.parallel.extend(other.parallel);
        self.calls.extend(other.calls);
        self.policers.extend(other.policers);
    }
}

/// Round-trip times without load: small requests at an even interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleRtt {
    /// The repetition, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The interval between requests, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Payload of a request and of its answer, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Requests sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Requests without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Each round-trip time, in the order of the requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<RttSample>,
    /// The distribution. Where there are samples, it is theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Summary>,
}

/// A stream of UDP datagrams at an even, low rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpStream {
    /// The repetition, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The direction of the datagrams.
    pub direction: Direction,
    /// The length, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The rate at which payload was sent, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbps: Option<f64>,
    /// Payload of a datagram, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Datagrams sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Datagrams received, without duplicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Datagrams that did not arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Datagrams that arrived after one that was sent later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Datagrams that arrived again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// The pattern of losses: lengths of runs in the order of sending, alternately of datagrams that arrived and of
    /// datagrams that were lost. The first run is of those that arrived, and may be 0; the others are not. Their sum is
    /// `sent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_runs: Option<Vec<u64>>,
    /// One-way delays less the smallest of them. Clocks of both ends need not agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_variation_ms: Option<Summary>,
    /// Interarrival jitter as in RFC 3550, section 6.4.1, at the end of the stream, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_rfc3550_ms: Option<f64>,
}

impl UdpStream {
    /// A stream of which nothing was measured.
    pub fn new(direction: Direction) -> Self {
        Self {
            repeat: 0,
            direction,
            seconds: None,
            rate_mbps: None,
            payload_bytes: None,
            sent: None,
            received: None,
            lost: None,
            reordered: None,
            duplicates: None,
            loss_runs: None,
            delay_variation_ms: None,
            jitter_rfc3550_ms: None,
        }
    }
}

/// One TCP flow that always has data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpFlow {
    /// The repetition, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The direction of the data.
    pub direction: Direction,
    /// The sender's congestion control, as the kernel names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The length, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Payload that arrived, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Goodput of the whole flow, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_mbps: Option<f64>,
    /// The length of each interval of `goodput_intervals_mbps`, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Goodput of each interval from the start of the flow, Mbit/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goodput_intervals_mbps: Vec<f64>,
    /// The sender's smoothed RTT over the flow: what `TCP_INFO` tells at an even interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Summary>,
    /// The values of `rtt_ms` in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtt_samples: Vec<RttSample>,
    /// Segments with data that the sender sent, retransmissions too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_segments: Option<u64>,
    /// Segments that the sender retransmitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// The sender's maximum segment size, bytes of payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u64>,
}

/// The number of flows at the same time that `ropewalk probe` starts.
pub const STREAMS: u32 = 8;

/// TCP flows on one path at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// The number of flows.
    pub streams: u32,
    /// All of them together: the sums of bytes and rates, and the RTTs of all.
    pub flow: TcpFlow,
}

impl TcpFlow {
    /// A flow of which nothing was measured.
    pub fn new(direction: Direction) -> Self {
        Self {
            repeat: 0,
            direction,
            congestion: None,
            seconds: None,
            bytes: None,
            goodput_mbps: None,
            interval_s: None,
            goodput_intervals_mbps: Vec::new(),
            rtt_ms: None,
            rtt_samples: Vec::new(),
            sent_segments: None,
            retransmitted_segments: None,
            mss_bytes: None,
        }
    }
}

/// A call next to bulk: small datagrams, each of which the other end returns, while a TCP flow loads the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkCall {
    /// The repetition, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The direction of the bulk flow.
    pub direction: Direction,
    /// The bulk flow's congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The interval between datagrams, seconds: 0.02 for 50 per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Payload of a datagram, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Datagrams sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Datagrams that did not return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Round-trip times of the datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Summary>,
    /// Each round-trip time, in the order of sending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtt_samples: Vec<RttSample>,
    /// Goodput of the bulk flow, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_mbps: Option<f64>,
}

/// The result of a search for a policer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// The direction of the data.
    pub direction: Direction,
    /// Whether there is one; absent if the flows do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<bool>,
    /// Its rate, payload of TCP, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbps: Option<f64>,
    /// What passes at once before it drops, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<u64>,
}
