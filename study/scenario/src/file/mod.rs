//! The scenario file as TOML has it: typed, with units read, before names are resolved.
//!
//! The doc comments here are the descriptions in the JSON Schema, written for authors of scenarios.

mod host;
mod mptcp;
mod pipe;
mod queue;
mod quic;
mod random;
mod requests;
mod short_form;
mod tunnel;
mod video;

pub(crate) use host::{Host, LossRecovery, MptcpSendBuffer, Profile};
pub(crate) use mptcp::{Mptcp, MptcpStack, Subflow};
pub(crate) use pipe::{Grants, Handover, Policer, RateWalk, Slot, TraceOffset};
pub(crate) use queue::{Discipline, Queue};
pub(crate) use quic::{LossThresholds, Quic};
pub(crate) use requests::{Connection, Requests};
pub(crate) use short_form::{Algorithm, Jitter, Loss, Reorder};
pub(crate) use tunnel::{Late, Mode, RelayKind, Tunnel, WakeUp};
pub(crate) use video::{Video, VideoKind};

use parse::{BitRate, BitRateOrZero, Packets, Percent, Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A name: letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = "^[A-Za-z0-9_-]+$"))]
pub(crate) struct Name(pub(crate) String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match !name.is_empty() && name.chars().all(plain) {
            true => Ok(Self(name)),
            false => Err(format!("`{name}` is no name\nnames are made of letters, digits, `-` and `_`")),
        }
    }
}

/// A Ropewalk scenario: paths, traffic, events, sweep and report.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "scenario")]
pub(crate) struct File {
    /// Short name, for the files that a run makes.
    pub(crate) name: Spanned<Name>,
    /// One line: what the scenario shows.
    pub(crate) title: Option<String>,
    /// A few sentences for the reader of a report.
    pub(crate) about: Option<String>,
    /// Paper, RFC or measurement that it follows.
    pub(crate) source: Option<String>,
    /// The length of a run.
    pub(crate) duration: Spanned<Time>,
    /// Interval of the time series; without it there are none.
    pub(crate) sample: Option<Spanned<Time>>,
    /// Seeds: each cell runs once with each.
    pub(crate) seeds: Option<Spanned<Vec<u64>>>,
    /// Instead of `seeds`: seeds 1 to this.
    pub(crate) repetitions: Option<Spanned<u64>>,
    /// Ways from the sending to the receiving side.
    #[serde(default)]
    pub(crate) path: Vec<Path>,
    /// Links that paths share or chain.
    #[serde(default)]
    pub(crate) link: Vec<Link>,
    /// Instead of paths and links: a fat tree of switches, in which each host sends to another one.
    pub(crate) fat_tree: Option<Spanned<FatTree>>,
    /// A tunnel that stripes flows over paths.
    pub(crate) tunnel: Option<Spanned<Tunnel>>,
    /// TCP settings of all flows' hosts.
    #[serde(default)]
    pub(crate) host: Host,
    /// Traffic.
    #[serde(default)]
    pub(crate) flow: Vec<Spanned<Flow>>,
    /// Changes of links during the run.
    #[serde(default)]
    pub(crate) event: Vec<Spanned<Event>>,
    /// A grid over dotted keys, such as "path.eno2.delay" = ["10ms", "20ms"]. An entry may be { label, value }.
    #[expect(dead_code, reason = "`sweep` reads it with its positions; here for the schema and the list of keys")]
    sweep: Option<BTreeMap<String, Vec<serde_json::Value>>>,
    /// Fragments by name, each laid over the rest of the file: tables are merged, elements of lists with the same name
    /// too, other elements are added. The sweep goes over all cases, or over those in `sweep.case`.
    #[expect(dead_code, reason = "`sweep` reads it with its positions; here for the schema and the list of keys")]
    case: Option<BTreeMap<String, serde_json::Value>>,
    /// A fragment that `ropewalk run --quick` lays over the file.
    #[expect(dead_code, reason = "`sweep` reads it with its positions; here for the schema and the list of keys")]
    quick: Option<BTreeMap<String, serde_json::Value>>,
    /// In a text that Ropewalk wrote: the file and the options of the command line that it is made from. Tables, figures
    /// and claims that name what is no longer swept are left out.
    #[expect(dead_code, reason = "`sweep` reads it with its positions; here for the schema and the list of keys")]
    derived: Option<Derived>,
    /// Tables of the report.
    #[expect(dead_code, reason = "the report reads it; here for the schema and the list of keys")]
    table: Option<Vec<serde_json::Value>>,
    /// Figures of the report.
    #[expect(dead_code, reason = "the report reads it; here for the schema and the list of keys")]
    figure: Option<Vec<serde_json::Value>>,
    /// Claims, which the report decides.
    #[expect(dead_code, reason = "the report reads it; here for the schema and the list of keys")]
    claim: Option<Vec<serde_json::Value>>,
    /// Constants that were fitted, for `ropewalk fit`.
    #[expect(dead_code, reason = "the report reads it; here for the schema and the list of keys")]
    fit: Option<Vec<serde_json::Value>>,
    /// A results folder beside the scenario, of the same cells, to compare with: tables, figures, trajectories.
    pub(crate) baseline: Option<Spanned<String>>,
}

/// What a text is made from.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "derived")]
#[expect(dead_code, reason = "for people, and for the schema")]
struct Derived {
    /// The file's name.
    from: String,
    /// The options that change it.
    with: Vec<String>,
}

/// Declares a table that has the keys of one direction of a link. (serde's `flatten` would lose both the positions
/// and the refusal of unknown keys.)
macro_rules! with_pipe_keys {
    ($(#[$meta:meta])* $name:ident { $($extra:tt)* }) => {
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $name {
            $($extra)*
            /// Transmission rate; without it the link is never the bottleneck.
            rate: Option<BitRate>,
            /// Instead of `rate`: the file of a trace: mahimahi's, lines of `time Mbit/s`, or CSV, of which
            /// "FILE#COLUMN" names a column.
            trace: Option<Spanned<String>>,
            /// Where in the trace, repeated for ever, a run begins: a time, or "random", which draws it from the seed.
            trace_offset: Option<Spanned<TraceOffset>>,
            /// The rate is used in grants, as on a cellular uplink: { period = "5ms", request = "8ms" }.
            grants: Option<Spanned<Grants>>,
            /// The rate follows a random walk, from `rate` on:
            /// { min = "5mbit", max = "40mbit", deviation = "2mbit", interval = "100ms" }.
            rate_walk: Option<Spanned<RateWalk>>,
            /// Propagation delay, one way.
            delay: Option<Time>,
            /// Uniform extra delay from zero to this; packets keep their order. Or netem's jitter:
            /// { span = "8ms", distribution = "normal", correlation = "25%", reorder = true }.
            jitter: Option<Jitter>,
            /// Loss on the wire.
            loss: Option<Loss>,
            /// Share of the packets on the wire that arrive twice (netem's `duplicate`).
            duplicate: Option<Percent>,
            /// Share of the packets that arrive with a flipped bit, so that the receiver's checksum discards them
            /// (netem's `corrupt`).
            corrupt: Option<Percent>,
            /// Share of the packets that are not delayed, and so overtake the others. Or all of netem's `reorder`:
            /// { share = "25%", correlation = "50%", gap = 5 }.
            reorder: Option<Spanned<Reorder>>,
            /// The bytes that the transmitter adds to each packet; Ethernet with preamble and gap: "38b".
            overhead: Option<Spanned<Size>>,
            /// A policer in front of the queue: { rate = "20mbit", burst = "100kB" }.
            policer: Option<Spanned<Policer>>,
            /// The queue in front of the transmitter.
            queue: Option<Spanned<Queue>>,
            /// The queue is in the sending host, which is told of its drops at once.
            local: Option<bool>,
            /// Most packets on the wire at once (netem's `limit`). Default: no limit.
            wire_limit: Option<Packets>,
            /// Packets leave the wire in slots (netem's `slot`):
            /// { min = "800us", max = "1ms", packets = 32, bytes = "42kB" }.
            slot: Option<Spanned<Slot>>,
        }

        impl $name {
            /// The keys of the forward direction.
            pub(crate) fn pipe(&self) -> Pipe {
                Pipe {
                    rate: self.rate,
                    trace: self.trace.clone(),
                    trace_offset: self.trace_offset.clone(),
                    grants: self.grants.clone(),
                    rate_walk: self.rate_walk.clone(),
                    delay: self.delay,
                    jitter: self.jitter,
                    loss: self.loss,
                    duplicate: self.duplicate,
                    corrupt: self.corrupt,
                    reorder: self.reorder.clone(),
                    overhead: self.overhead.clone(),
                    policer: self.policer.clone(),
                    queue: self.queue.clone(),
                    local: self.local,
                    wire_limit: self.wire_limit,
                    slot: self.slot.clone(),
                }
            }
        }
    };
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    pub(crate) rate: Option<BitRate>,
    pub(crate) trace: Option<Spanned<String>>,
    pub(crate) trace_offset: Option<Spanned<TraceOffset>>,
    pub(crate) grants: Option<Spanned<Grants>>,
    pub(crate) rate_walk: Option<Spanned<RateWalk>>,
    pub(crate) delay: Option<Time>,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) loss: Option<Loss>,
    pub(crate) duplicate: Option<Percent>,
    pub(crate) corrupt: Option<Percent>,
    pub(crate) reorder: Option<Spanned<Reorder>>,
    pub(crate) overhead: Option<Spanned<Size>>,
    pub(crate) policer: Option<Spanned<Policer>>,
    pub(crate) queue: Option<Spanned<Queue>>,
    pub(crate) local: Option<bool>,
    pub(crate) wire_limit: Option<Packets>,
    pub(crate) slot: Option<Spanned<Slot>>,
}

with_pipe_keys! {
    /// A path: a chain of `[[link]]`s, or a link of its own that is described right here.
    #[schemars(rename = "path")]
    Path {
        /// Unique name.
        pub(crate) name: Spanned<Name>,
        /// Names of `[[link]]`s, in the order data packets cross them.
        pub(crate) links: Option<Spanned<Vec<Spanned<String>>>>,
        /// Largest packet, IP header included.
        pub(crate) mtu: Option<Spanned<Size>>,
        /// The keys of the reverse direction that differ.
        pub(crate) reverse: Option<Reverse>,
        /// Hand-overs: { period = "15s", outage = "80ms", delay = ["20ms", "40ms"] }.
        pub(crate) handover: Option<Spanned<Handover>>,
    }
}

with_pipe_keys! {
    /// A full-duplex link that paths name.
    #[schemars(rename = "link")]
    Link {
        /// Unique name.
        pub(crate) name: Spanned<Name>,
        /// The keys of the reverse direction that differ.
        pub(crate) reverse: Option<Reverse>,
        /// Hand-overs: { period = "15s", outage = "80ms", delay = ["20ms", "40ms"] }.
        pub(crate) handover: Option<Spanned<Handover>>,
    }
}

with_pipe_keys! {
    /// A fat tree: three layers of switches with `k` ports, k^3/4 hosts, and links that are all alike. Each host sends to
    /// one other host, and each receives from one.
    #[schemars(rename = "fat-tree")]
    FatTree {
        /// Ports of a switch: 2, 4, 6 ... 16.
        pub(crate) k: Spanned<u32>,
        /// Paths of a connection, each drawn as by ECMP: MPTCP has a subflow over each, TCP takes the first. Default: 1.
        pub(crate) paths: Option<Spanned<u32>>,
        /// Who sends to whom, and the paths, are drawn from this number. Default: 1.
        pub(crate) draw: Option<u64>,
        /// Largest packet, IP header included.
        pub(crate) mtu: Option<Spanned<Size>>,
    }
}

with_pipe_keys! {
    /// The reverse direction of a link; a key that is not given is that of the forward direction.
    #[schemars(rename = "reverse")]
    Reverse {}
}

/// A source of traffic.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "flow")]
pub(crate) struct Flow {
    /// Unique name.
    pub(crate) name: Spanned<Name>,
    /// tcp, mptcp, mpquic or udp.
    #[serde(default)]
    pub(crate) kind: Kind,
    /// Name of a path. Default: the tunnel, or the only path.
    pub(crate) path: Option<Spanned<String>>,
    /// MPTCP and multipath QUIC: names of paths, one a subflow. Default: all paths.
    pub(crate) paths: Option<Spanned<Vec<Spanned<String>>>>,
    /// MPTCP and multipath QUIC, instead of `paths`: subflows that come late, go early, or are backups.
    pub(crate) subflow: Option<Spanned<Vec<Spanned<Subflow>>>>,
    /// MPTCP and multipath QUIC: which subflow carries the next packet: a scheduler of `ropewalk list schedulers`, or
    /// { name = "blest", lambda = 1.1 }. Default for multipath QUIC: minrtt.
    pub(crate) scheduler: Option<Spanned<Algorithm>>,
    /// MPTCP: the other settings.
    pub(crate) mptcp: Option<Spanned<Mptcp>>,
    /// Multipath QUIC: the other settings.
    pub(crate) quic: Option<Spanned<Quic>>,
    /// TCP and UDP: where its data goes: "forward", or "reverse" (the receiver is where the others' senders are). A
    /// request goes the other way.
    pub(crate) direction: Option<Spanned<FlowDirection>>,
    /// When it begins.
    pub(crate) start: Option<Time>,
    /// A random delay of the start, at most this long, so that seeds differ.
    pub(crate) start_within: Option<Time>,
    /// When its source stops. Default: the end.
    pub(crate) stop: Option<Spanned<Time>>,
    /// The number of such flows, called NAME-1, NAME-2 ...
    pub(crate) count: Option<Spanned<u32>>,
    /// The delay between the starts of these flows.
    pub(crate) stagger: Option<Spanned<Time>>,
    /// TCP: congestion control: a name, or { name = "cubic", beta = 0.7 }.
    pub(crate) congestion: Option<Spanned<Algorithm>>,
    /// TCP: bytes to send. Default: as much as possible.
    pub(crate) size: Option<Spanned<Size>>,
    /// TCP: the keys that differ from `[host]`.
    pub(crate) host: Option<Spanned<Host>>,
    /// UDP: rate, with IP and UDP headers. TCP: the application writes at this rate. Default for TCP: as fast as it
    /// can.
    pub(crate) rate: Option<Spanned<BitRate>>,
    /// TCP with a rate: bytes of one write. Default: a segment.
    pub(crate) write: Option<Spanned<Size>>,
    /// TCP: a client sends a request, receives the response, pauses, and sends the next.
    pub(crate) requests: Option<Spanned<Requests>>,
    /// TCP: a video stream.
    pub(crate) video: Option<Spanned<Video>>,
    /// UDP: size of a datagram with its IP and UDP headers.
    pub(crate) packet: Option<Spanned<Size>>,
}

/// The direction of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "flow-direction")]
pub(crate) enum FlowDirection {
    /// From the near end of the paths to the far end.
    Forward,
    /// From the far end to the near end.
    Reverse,
}

/// The kind of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "flow-kind")]
pub(crate) enum Kind {
    /// A TCP connection.
    #[default]
    Tcp,
    /// An MPTCP connection.
    Mptcp,
    /// A multipath QUIC connection; over one path it is plain QUIC.
    Mpquic,
    /// UDP at a constant rate.
    Udp,
}

/// A change of a link, or of a path's links: `up` of all of them, `rate` and `loss` of the slowest, `delay` of the one
/// with the longest delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "event")]
pub(crate) struct Event {
    /// When.
    pub(crate) at: Time,
    /// Name of a path.
    pub(crate) path: Option<Spanned<String>>,
    /// Name of a link.
    pub(crate) link: Option<Spanned<String>>,
    /// The directions that change.
    #[serde(default)]
    pub(crate) direction: Direction,
    /// false: everything sent into the link is lost.
    pub(crate) up: Option<bool>,
    /// New rate; "0mbit" is an outage, in which packets wait.
    pub(crate) rate: Option<Spanned<BitRateOrZero>>,
    /// New propagation delay.
    pub(crate) delay: Option<Time>,
    /// New loss.
    pub(crate) loss: Option<Loss>,
}

/// Directions of a link.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "direction")]
pub(crate) enum Direction {
    /// From the sending side.
    Forward,
    /// Towards the sending side.
    Reverse,
    /// Both.
    #[default]
    Both,
}
