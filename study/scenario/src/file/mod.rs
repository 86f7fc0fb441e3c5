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
            false => Err(format!("`{name}` is not a name\nnames are made of letters, digits, `-` and `_`")),
        }
    }
}

/// A Ropewalk scenario: paths, traffic, events, sweep and report.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "scenario")]
pub(crate) struct File {
    /// Short name. Also the name of the results folder.
    pub(crate) name: Spanned<Name>,
    /// One line: what the scenario shows. Default: the name.
    pub(crate) title: Option<String>,
    /// A few sentences for the reader of the report.
    pub(crate) about: Option<String>,
    /// The paper, RFC or measurement that the scenario follows.
    pub(crate) source: Option<String>,
    /// Simulated time of each run.
    pub(crate) duration: Spanned<Time>,
    /// Sampling interval of the time series. Without it, no time series are recorded.
    pub(crate) sample: Option<Spanned<Time>>,
    /// The seeds. Each cell runs once with each of them.
    pub(crate) seeds: Option<Spanned<Vec<u64>>>,
    /// Instead of `seeds`: the number of runs per cell. The seeds are 1 to this number.
    pub(crate) repetitions: Option<Spanned<u64>>,
    /// Paths from the sending to the receiving side.
    #[serde(default)]
    pub(crate) path: Vec<Path>,
    /// Links that several paths share, or that a path crosses one after another.
    #[serde(default)]
    pub(crate) link: Vec<Link>,
    /// Instead of paths and links: a fat tree of switches in which each host sends to another one.
    pub(crate) fat_tree: Option<Spanned<FatTree>>,
    /// A tunnel that spreads flows over paths.
    pub(crate) tunnel: Option<Spanned<Tunnel>>,
    /// TCP settings of the hosts of all flows.
    #[serde(default)]
    pub(crate) host: Host,
    /// Flows: the traffic.
    #[serde(default)]
    pub(crate) flow: Vec<Spanned<Flow>>,
    /// Changes of links during the run.
    #[serde(default)]
    pub(crate) event: Vec<Spanned<Event>>,
    /// A grid over dotted keys, such as `"path.eno2.delay" = ["10ms", "20ms"]`. An entry may have a label: `{ label =
    /// "near", value = "10ms" }`.
    #[expect(dead_code, reason = "`sweep` reads it with its positions; here for the schema and the list of keys")]
    sweep: Option<BTreeMap<String, Vec<serde_json::Value>>>,
    /// Unknown keys of the links, each with the range in which `ropewalk fit` seeks it, on a logarithmic scale:
    /// `"path.lte.rate" = "3mbit..60mbit"`.
    pub(crate) free: Option<BTreeMap<String, Spanned<String>>>,
    /// Named fragments of a scenario, each laid over the rest of the file. The sweep goes over all cases, or over
    /// those in `sweep.case`.
    #[expect(dead_code, reason = "`sweep` reads it with its positions; here for the schema and the list of keys")]
    case: Option<BTreeMap<String, serde_json::Value>>,
    /// A fragment that `ropewalk run --quick` lays over the file, for a short run.
    #[expect(dead_code, reason = "`sweep` reads it with its positions; here for the schema and the list of keys")]
    quick: Option<BTreeMap<String, serde_json::Value>>,
    /// Written by Ropewalk into the `scenario.toml` of a results folder when options changed the scenario. Tables,
    /// figures and claims that name a key or a value which is no longer swept are then left out.
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
    /// Fitted constants, for `ropewalk fit`.
    #[expect(dead_code, reason = "the report reads it; here for the schema and the list of keys")]
    fit: Option<Vec<serde_json::Value>>,
    /// A results folder with the same cells, next to the scenario file, with which the report compares. Default: none.
    pub(crate) baseline: Option<Spanned<String>>,
}

/// What a text is made from.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "derived")]
#[expect(dead_code, reason = "for people, and for the schema")]
struct Derived {
    /// Name of the scenario file.
    from: String,
    /// The command-line options that changed it.
    with: Vec<String>,
}

/// The keys of one direction of a link, each with its type and the rule by which a direction takes it over from the other one:
/// `always` if it has none itself; `with_rate` only if it has neither a rate nor a trace itself; `with_trace` only if it
/// has no rate. Calls the macro `$then` with its arguments and the keys.
macro_rules! pipe_keys {
    ($then:ident { $($arguments:tt)* }) => {
        $then! {
            { $($arguments)* }
            /// Transmission rate. Without it the link is never the bottleneck. Default: no limit.
            with_rate rate: BitRate,
            /// Instead of `rate`: the file of a trace, relative to the scenario file. `"FILE#COLUMN"` names a column
            /// of a CSV file. Default: none.
            with_rate trace: Spanned<String>,
            /// Where in the trace a run begins. `"random"` draws the place from the seed, uniformly over the period of
            /// the trace, once per link. A trace repeats for ever. Default: `"0s"`.
            with_trace trace_offset: Spanned<TraceOffset>,
            /// Makes the link a cellular uplink, which uses its rate in grants (3GPP TS 36.321, sections 5.4.4 and
            /// 5.4.5): `{ period = "5ms", request = "8ms" }`. Default: none.
            with_rate grants: Spanned<Grants>,
            /// Varies the rate as a random walk, like the cellular model of Sprout (Winstein et al. 2013). The walk
            /// starts at `rate`: `{ min = "5mbit", max = "40mbit", deviation = "2mbit", interval = "100ms" }`.
            /// Default: none.
            with_rate rate_walk: Spanned<RateWalk>,
            /// Propagation delay, one way. Default: `"0s"`.
            always delay: Time,
            /// A time: uniform extra delay from zero to this value, without reordering. A table: netem's jitter, `{
            /// span = "8ms", distribution = "normal", correlation = "25%", reorder = true }`. Default: `"0s"`.
            always jitter: Jitter,
            /// A share: independent random loss behind the queue. A table: loss in bursts (Gilbert-Elliott), `{ to_bad
            /// = "1%", to_good = "10%", bad = "100%", good = "0%" }`. Default: `"0%"`.
            always loss: Loss,
            /// Share of the packets that arrive twice (netem's `duplicate`). Default: `"0%"`.
            always duplicate: Percent,
            /// Share of the packets that arrive with a flipped bit (netem's `corrupt`). Such a packet crosses its
            /// path, and the checksum of its receiver discards it. Inside a tunnel the tunnel's own check discards it.
            /// Default: `"0%"`.
            always corrupt: Percent,
            /// Share of the packets sent without the delay of the link, which therefore overtake packets ahead of
            /// them. Needs a `delay`. A table sets all of netem's `reorder`: `{ share = "25%", correlation = "50%",
            /// gap = 5 }`. Default: `"0%"`.
            always reorder: Spanned<Reorder>,
            /// Bytes that the transmitter adds to each packet. Ethernet with preamble and gap adds `"38b"`. Default:
            /// `"0b"`.
            always overhead: Spanned<Size>,
            /// A token bucket in front of the queue, which drops the excess (RFC 2697, `tc police`): `{ rate =
            /// "20mbit", burst = "100kB" }`. Default: none.
            with_rate policer: Spanned<Policer>,
            /// The queue in front of the transmitter. Default: a drop-tail queue of 1000 packets.
            always queue: Spanned<Queue>,
            /// The queue is in the sending host. A flow that goes straight onto the path then notices its drops at
            /// once; the socket of a tunnel does not. Default: `false`.
            always local: bool,
            /// Largest number of packets on the wire at once (netem's `limit`). Default: no limit.
            always wire_limit: Packets,
            /// Packets leave the wire in slots (netem's `slot`): `{ min = "800us", max = "1ms", packets = 32, bytes =
            /// "42kB" }`. Default: none.
            always slot: Spanned<Slot>,
        }
    };
}

/// Declares a table that has the keys of a direction. (serde's `flatten` would lose both the positions and the refusal of
/// unknown keys.)
macro_rules! table_with_pipe_keys {
    (
        { $(#[$meta:meta])* $name:ident { $($extra:tt)* } }
        $($(#[$doc:meta])* $rule:ident $key:ident: $kind:ty,)*
    ) => {
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $name {
            $($extra)*
            $($(#[$doc])* $key: Option<$kind>,)*
        }

        impl $name {
            /// The keys of the forward direction.
            pub(crate) fn pipe(&self) -> Pipe {
                Pipe { $($key: self.$key.clone()),* }
            }
        }
    };
}

/// Declares a direction of a link.
macro_rules! pipe {
    ({} $($(#[$doc:meta])* $rule:ident $key:ident: $kind:ty,)*) => {
        /// One direction of a link.
        #[derive(Clone, Debug)]
        pub(crate) struct Pipe {
            $(pub(crate) $key: Option<$kind>,)*
        }

        impl Pipe {
            /// The keys of `self`, and of those that it does not have the keys of `defaults` that go with them.
            pub(crate) fn with_defaults_from(self, defaults: &Self) -> Self {
                let (has_rate, has_trace) = (self.rate.is_some(), self.trace.is_some());
                let takes = |rule| match rule {
                    Rule::always => true,
                    Rule::with_rate => !has_rate && !has_trace,
                    Rule::with_trace => !has_rate,
                };
                Self { $($key: self.$key.or_else(|| defaults.$key.clone().filter(|_| takes(Rule::$rule)))),* }
            }

            /// Whether no key is set.
            pub(crate) fn is_empty(&self) -> bool {
                true $(&& self.$key.is_none())*
            }
        }
    };
}

/// When a direction takes over a key that it does not have itself.
#[derive(Clone, Copy)]
#[expect(non_camel_case_types, reason = "the names are those of the rules in `pipe_keys`")]
enum Rule {
    always,
    with_rate,
    with_trace,
}

pipe_keys! { pipe {} }

pipe_keys! { table_with_pipe_keys {
    /// A path: a chain of `[[link]]`s, or a link of its own that is described right here.
    #[schemars(rename = "path")]
    Path {
        /// Unique name.
        pub(crate) name: Spanned<Name>,
        /// Names of `[[link]]`s, in the order in which data crosses them: `["eno1", "wan"]`. Without it the path is a
        /// link of its own, described by the other keys.
        pub(crate) links: Option<Spanned<Vec<Spanned<String>>>>,
        /// Largest packet, IP header included. Default: `"1500b"`.
        pub(crate) mtu: Option<Spanned<Size>>,
        /// Keys of the reverse direction that differ from the forward direction: `{ rate = "5mbit" }`. With a `rate`
        /// or `trace` of its own, the reverse direction does not take over `grants`, `rate_walk` and `policer`.
        /// Default: as forward.
        pub(crate) reverse: Option<Reverse>,
        /// Handovers of a low-orbit satellite, in both directions: `{ period = "15s", outage = "80ms", delay =
        /// ["20ms", "40ms"] }` (Starlink's 15 s: Mohan et al. 2024). Default: none.
        pub(crate) handover: Option<Spanned<Handover>>,
    }
} }

pipe_keys! { table_with_pipe_keys {
    /// A full-duplex link that paths name.
    #[schemars(rename = "link")]
    Link {
        /// Unique name.
        pub(crate) name: Spanned<Name>,
        /// Keys of the reverse direction that differ from the forward direction: `{ rate = "5mbit" }`. With a `rate`
        /// or `trace` of its own, the reverse direction does not take over `grants`, `rate_walk` and `policer`.
        /// Default: as forward.
        pub(crate) reverse: Option<Reverse>,
        /// Handovers of a low-orbit satellite, in both directions: `{ period = "15s", outage = "80ms", delay =
        /// ["20ms", "40ms"] }` (Starlink's 15 s: Mohan et al. 2024). Default: none.
        pub(crate) handover: Option<Spanned<Handover>>,
    }
} }

pipe_keys! { table_with_pipe_keys {
    /// A fat tree: three layers of switches with `k` ports, k^3/4 hosts, and links that are all alike. Each host sends to
    /// one other host, and each receives from one.
    #[schemars(rename = "fat-tree")]
    FatTree {
        /// Ports of a switch: an even number from 2 to 16. There are k^3/4 hosts: 16 with `k = 4`, 128 with `k = 8`.
        pub(crate) k: Spanned<u32>,
        /// Paths of the connection of each host, drawn among the paths of equal cost as by ECMP. MPTCP has a subflow
        /// over each; TCP takes the first. Default: 1.
        pub(crate) paths: Option<Spanned<u32>>,
        /// Number from which the destinations and the paths are drawn. Default: 1.
        pub(crate) draw: Option<u64>,
        /// Largest packet, IP header included. Default: `"1500b"`.
        pub(crate) mtu: Option<Spanned<Size>>,
    }
} }

pipe_keys! { table_with_pipe_keys {
    /// The reverse direction of a link; a key that is not given is that of the forward direction.
    #[schemars(rename = "reverse")]
    Reverse {}
} }

/// A source of traffic.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "flow")]
pub(crate) struct Flow {
    /// Unique name.
    pub(crate) name: Spanned<Name>,
    /// Protocol of the flow.
    #[serde(default)]
    pub(crate) kind: Kind,
    /// Name of the path that the flow takes. Default: the tunnel, or the only path.
    pub(crate) path: Option<Spanned<String>>,
    /// MPTCP, multipath QUIC and hosted connections: names of paths, with one subflow over each. The first one opens the
    /// connection. A path may have several subflows. Default: all paths; of a hosted connection `path`.
    pub(crate) paths: Option<Spanned<Vec<Spanned<String>>>>,
    /// MPTCP and multipath QUIC, instead of `paths`: subflows that join late, leave early, or are backups. Example:
    /// `[{ path = "lte" }, { path = "wifi", join = "2s", leave = "8s" }, { path = "dsl", backup = true }]`.
    pub(crate) subflow: Option<Spanned<Vec<Spanned<Subflow>>>>,
    /// MPTCP and multipath QUIC: which subflow carries the next packet. A name of `ropewalk list schedulers`, or with
    /// parameters: `{ name = "blest", lambda = 1.1 }`. Default: that of the MPTCP stack; `"minrtt"` for QUIC.
    pub(crate) scheduler: Option<Spanned<Algorithm>>,
    /// MPTCP: the other settings.
    pub(crate) mptcp: Option<Spanned<Mptcp>>,
    /// Multipath QUIC: the other settings.
    pub(crate) quic: Option<Spanned<Quic>>,
    /// TCP and UDP: the direction of the data. `"reverse"` works in the simulator only, and not through a relay. A
    /// request goes in the opposite direction. Default: `"forward"`.
    pub(crate) direction: Option<Spanned<FlowDirection>>,
    /// Start of the flow, from the beginning of the run. Default: `"0s"`.
    pub(crate) start: Option<Time>,
    /// The flow starts up to this much later, at random. Use it to make seeds differ when nothing else is random.
    /// Default: `"0s"`.
    pub(crate) start_within: Option<Time>,
    /// Time at which the source stops, from the beginning of the run. Default: the end of the run.
    pub(crate) stop: Option<Spanned<Time>>,
    /// Number of identical flows, named NAME-1, NAME-2 and so on. Default: one flow, with the plain name.
    pub(crate) count: Option<Spanned<u32>>,
    /// Delay between the starts of these flows. Default: `"0s"`.
    pub(crate) stagger: Option<Spanned<Time>>,
    /// A hosted connection (required): the stack. A name of `ropewalk list stacks`, or with parameters: `{ name = "noq",
    /// receive_window = 12500000 }`.
    pub(crate) stack: Option<Spanned<Algorithm>>,
    /// TCP, MPTCP and QUIC: congestion control. A name of `ropewalk list algorithms`, or with parameters: `{ name =
    /// "cubic", beta = 0.7 }`. A parameter `file` names a file, relative to the folder of the scenario. A hosted
    /// connection has one of these, or one of its stack: `"own:bbr3"`. Default: `"cubic"`; of a hosted connection that of
    /// its stack.
    pub(crate) congestion: Option<Spanned<Algorithm>>,
    /// TCP, MPTCP, QUIC and hosted connections: bytes to send. Default: endless.
    pub(crate) size: Option<Spanned<Size>>,
    /// TCP: the keys that differ from `[host]`. Default: as `[host]`.
    pub(crate) host: Option<Spanned<Host>>,
    /// UDP (required): the rate, with IP and UDP headers. Others: the application writes payload at this rate. Default:
    /// as fast as possible.
    pub(crate) rate: Option<Spanned<BitRate>>,
    /// TCP with a `rate`: bytes of one write. Data that does not fill a segment waits for the next write. Default: a
    /// segment.
    pub(crate) write: Option<Spanned<Size>>,
    /// TCP: a client sends a request, receives the answer, pauses, and sends the next request. Default: none.
    pub(crate) requests: Option<Spanned<Requests>>,
    /// TCP: the flow carries a video, which a player watches. Default: none.
    pub(crate) video: Option<Spanned<Video>>,
    /// UDP (required): size of a datagram, with IP and UDP headers.
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
    /// An MPTCP connection over several paths.
    Mptcp,
    /// A multipath QUIC connection. Over one path it is plain QUIC.
    Mpquic,
    /// UDP at a constant rate.
    Udp,
    /// A connection of a QUIC stack, or of another transport, that the program contains.
    Hosted,
}

/// A change of a link, or of a path's links: `up` of all of them, `rate` and `loss` of the slowest, `delay` of the one
/// with the longest delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "event")]
pub(crate) struct Event {
    /// Time of the change.
    pub(crate) at: Time,
    /// Name of the path that changes. Either this or `link` is required.
    pub(crate) path: Option<Spanned<String>>,
    /// Name of the link that changes.
    pub(crate) link: Option<Spanned<String>>,
    /// The directions that change.
    #[serde(default)]
    pub(crate) direction: Direction,
    /// `false`: the link is down, and every packet sent into it is lost. On a path, all of its links change.
    pub(crate) up: Option<bool>,
    /// New rate. `"0mbit"` is an outage in which packets wait, until the next `rate` of the link or the end of the
    /// run. On a path, the slowest link changes.
    pub(crate) rate: Option<Spanned<BitRateOrZero>>,
    /// New propagation delay. On a path, the link with the longest delay changes.
    pub(crate) delay: Option<Time>,
    /// New loss. On a path, the slowest link changes.
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
    /// Both directions.
    #[default]
    Both,
}
