//! The scenario file as TOML has it: typed, with units read, before names are resolved.
//!
//! The doc comments here are the descriptions in the JSON Schema, so they speak to the author of a scenario.

use crate::layout;
use crate::multipath::{Mptcp, Subflow};
pub(crate) use crate::queue::{Discipline, Queue};
use crate::requests::Requests;
use crate::short::{Algorithm, Loss};
use crate::video::Video;
use parse::At;
use parse::{BitRate, Packets, Size, Time};
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

/// A Ropewalk scenario: paths, traffic, what happens, and what is compared.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "scenario")]
pub(crate) struct File {
    /// Short name, for the files that a run makes.
    pub(crate) name: At<Name>,
    /// One line: what the scenario shows.
    pub(crate) title: Option<String>,
    /// A few sentences for the reader of a report.
    pub(crate) about: Option<String>,
    /// Paper, RFC or measurement that it follows.
    pub(crate) source: Option<String>,
    /// How long to run.
    pub(crate) duration: At<Time>,
    /// Interval of the time series; without it there are none.
    pub(crate) sample: Option<At<Time>>,
    /// Seeds: each cell runs once with each. Default: `[1]`.
    pub(crate) seeds: Option<At<Vec<u64>>>,
    /// Instead of `seeds`: seeds 1 to this.
    pub(crate) repetitions: Option<At<u64>>,
    /// Ways from the sending to the receiving side.
    #[serde(default)]
    pub(crate) path: Vec<Path>,
    /// Links that paths share or chain.
    #[serde(default)]
    pub(crate) link: Vec<Link>,
    /// A tunnel that stripes flows over paths.
    pub(crate) tunnel: Option<At<Tunnel>>,
    /// TCP settings of all flows' hosts.
    #[serde(default)]
    pub(crate) host: Host,
    /// Traffic.
    #[serde(default)]
    pub(crate) flow: Vec<At<Flow>>,
    /// Changes while the run goes on.
    #[serde(default)]
    pub(crate) event: Vec<At<Event>>,
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
    /// Tables of the report.
    #[serde(default)]
    pub(crate) table: Vec<layout::WrittenTable>,
    /// Figures of the report.
    #[serde(default)]
    pub(crate) figure: Vec<layout::WrittenFigure>,
    /// What was claimed, and whether it holds.
    #[serde(default)]
    pub(crate) claim: Vec<layout::WrittenClaim>,
    /// A results folder beside the scenario, of the same cells, to compare with: tables, figures, trajectories.
    pub(crate) baseline: Option<At<String>>,
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
            /// Instead of `rate`: a mahimahi trace beside the scenario, one millisecond time stamp a line.
            trace: Option<At<String>>,
            /// Propagation delay, one way.
            delay: Option<Time>,
            /// Uniform extra delay from zero to this; packets keep their order.
            jitter: Option<Time>,
            /// Loss on the wire.
            loss: Option<Loss>,
            /// What the transmitter adds to each packet; Ethernet with preamble and gap: "38b". Default: "0b".
            overhead: Option<At<Size>>,
            /// The queue in front of the transmitter.
            queue: Option<At<Queue>>,
            /// The queue stands in the sending host, which feels its drops at once.
            local: Option<bool>,
            /// Most packets on the wire at once (netem's `limit`). Default: no limit.
            wire_limit: Option<Packets>,
        }

        impl $name {
            /// The keys of the forward direction.
            pub(crate) fn pipe(&self) -> Pipe {
                Pipe {
                    rate: self.rate,
                    trace: self.trace.clone(),
                    delay: self.delay,
                    jitter: self.jitter,
                    loss: self.loss,
                    overhead: self.overhead.clone(),
                    queue: self.queue.clone(),
                    local: self.local,
                    wire_limit: self.wire_limit,
                }
            }
        }
    };
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    pub(crate) rate: Option<BitRate>,
    pub(crate) trace: Option<At<String>>,
    pub(crate) delay: Option<Time>,
    pub(crate) jitter: Option<Time>,
    pub(crate) loss: Option<Loss>,
    pub(crate) overhead: Option<At<Size>>,
    pub(crate) queue: Option<At<Queue>>,
    pub(crate) local: Option<bool>,
    pub(crate) wire_limit: Option<Packets>,
}

with_pipe_keys! {
    /// A path: a chain of `[[link]]`s, or a link of its own that is described right here.
    #[schemars(rename = "path")]
    Path {
        /// Unique name.
        pub(crate) name: At<Name>,
        /// Names of `[[link]]`s, in the order data packets cross them.
        pub(crate) links: Option<At<Vec<At<String>>>>,
        /// Largest packet, IP header included. Default: "1500b".
        pub(crate) mtu: Option<At<Size>>,
        /// What differs on the way back.
        pub(crate) reverse: Option<Reverse>,
    }
}

with_pipe_keys! {
    /// A full-duplex link that paths name.
    #[schemars(rename = "link")]
    Link {
        /// Unique name.
        pub(crate) name: At<Name>,
        /// What differs on the way back.
        pub(crate) reverse: Option<Reverse>,
    }
}

with_pipe_keys! {
    /// The way back of a link; a key that is not given is as on the way there.
    #[schemars(rename = "reverse")]
    Reverse {}
}

/// A tunnel over several paths.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "tunnel")]
pub(crate) struct Tunnel {
    /// Whose tunnel: "mpt" (default) or "ropewalk".
    #[serde(default)]
    pub(crate) mode: Mode,
    /// MPT: what kind of tunnel. Default: "mpt-gre".
    pub(crate) kind: Option<At<TunnelKind>>,
    /// Names of its paths. Default: all.
    pub(crate) paths: Option<At<Vec<At<String>>>>,
    /// One weight a path, in the order of `paths`. Default: all 1.
    pub(crate) weights: Option<At<Vec<u32>>>,
    /// Largest inner packet. Default: MPT "1440b"; Ropewalk what fits into one datagram on every path.
    pub(crate) mtu: Option<At<Size>>,
    /// MPT: how packets are spread: a scheduler of `ropewalk list schedulers`. Default: packet-round-robin.
    pub(crate) stripe: Option<At<String>>,
    /// MPT: position in the striping cycle at which the first packet goes. Default: 0.
    pub(crate) first: Option<At<u32>>,
    /// MPT: packets sent before the flows begin; they only shift the parity. Default: 0.
    pub(crate) stray_packets: Option<At<u32>>,
    /// MPT: what the encapsulation adds. Default: "36b" (outer IPv4 20, UDP 8, GRE with sequence number 8), with
    /// `ip = 6` in [host] "56b".
    pub(crate) overhead: Option<At<Size>>,
    /// MPT: resequencing at the far end; without it packets go up as they arrive.
    pub(crate) resequence: Option<At<Resequence>>,
    /// MPT: the tunnel's device and sockets; without it the tunnel never holds packets back.
    pub(crate) device: Option<At<Device>>,
    /// Ropewalk: congestion control of the paths: a name, { name = "cubic", beta = 0.7 }, or "off". Default: bbr.
    pub(crate) congestion: Option<At<Algorithm>>,
    /// Ropewalk: which path carries the next piece: a scheduler that lets packets wait for a window. Default: minrtt.
    pub(crate) scheduler: Option<At<Algorithm>>,
    /// Ropewalk: lost pieces are sent again. Default: true.
    pub(crate) repair: Option<At<bool>>,
    /// Ropewalk: packets go up in the order in which they were sent. Default: true.
    pub(crate) order: Option<At<bool>>,
    /// Ropewalk: what happens to a packet that comes after its turn. Default: drop.
    pub(crate) late: Option<At<Late>>,
    /// Ropewalk: the longest that a missing piece is waited for. Default: "500ms".
    pub(crate) hold: Option<At<Time>>,
    /// Ropewalk: a path that is silent for so long is probed. Default: "200ms".
    pub(crate) probe: Option<At<Time>>,
    /// Ropewalk: CoDel's target at the entrance. Default: "5ms".
    pub(crate) target: Option<At<Time>>,
    /// Ropewalk: CoDel's interval at the entrance. Default: "100ms".
    pub(crate) interval: Option<At<Time>>,
    /// Ropewalk: bytes that may wait at the entrance, be on their way, and be held at the exit, each. Default: 64 MiB.
    pub(crate) memory: Option<At<Size>>,
    /// Ropewalk: names of paths that are used only while no other works. Default: none.
    pub(crate) backup: Option<At<Vec<At<String>>>>,
    /// Ropewalk: names of paths of which every byte costs: backups, and seldom probed. Default: none.
    pub(crate) metered: Option<At<Vec<At<String>>>>,
}

/// Whose tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "tunnel-mode")]
pub(crate) enum Mode {
    /// The MPT library's: packets are striped and put in order, nothing is measured.
    #[default]
    Mpt,
    /// Ropewalk's own: every path has its congestion control, lost pieces are sent again.
    Ropewalk,
}

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "tunnel-kind")]
pub(crate) enum TunnelKind {
    /// GRE-in-UDP with sequence numbers (RFC 8086), as the MPT library.
    #[serde(rename = "mpt-gre")]
    MptGre,
}

/// A resequencer.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "resequence")]
pub(crate) struct Resequence {
    /// A packet this far ahead of the expected one flushes everything; 0 is no resequencing.
    pub(crate) window: Packets,
    /// The longest a packet is held.
    pub(crate) timeout: Time,
    /// What happens to a packet that comes after its turn. Default: drop, as MPT does.
    #[serde(default)]
    pub(crate) late: Late,
}

/// The fate of a packet that comes after its turn.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "late")]
pub(crate) enum Late {
    /// It is dropped.
    #[default]
    Drop,
    /// It goes up out of order.
    Deliver,
}

/// A tunnel's device.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "device")]
pub(crate) struct Device {
    /// Packets that fit into the device's ring (`txqueuelen`).
    pub(crate) ring: Packets,
    /// Packets that fit into one path socket's send buffer.
    pub(crate) socket: Packets,
}

/// TCP as its hosts are set up, in the words of Linux's sysctls. Defaults are those of the profile.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "host")]
pub(crate) struct Host {
    /// Where the defaults come from: "linux" (6.1, the default), or "ns-2": TCP-Linux agents as in ns-2.35, which
    /// have recovery = "fack", handshake = false, an initial window of 2 and no timestamps, acknowledge every packet
    /// and have window = "20p".
    pub(crate) profile: Option<Profile>,
    /// Payload of a full segment. Default: what the MTU leaves.
    pub(crate) mss: Option<At<Size>>,
    /// Initial window, segments.
    pub(crate) initial_window: Option<At<u32>>,
    /// The version of IP, 4 (default) or 6: its header has 20 or 40 bytes.
    pub(crate) ip: Option<At<u8>>,
    /// `tcp_timestamps`.
    pub(crate) timestamps: Option<bool>,
    /// `tcp_sack`.
    pub(crate) sack: Option<bool>,
    /// `tcp_ecn`.
    pub(crate) ecn: Option<bool>,
    /// Acknowledge every packet.
    pub(crate) quick_ack: Option<bool>,
    /// Packets that receive offload merges; 1 is off.
    pub(crate) gro: Option<At<u32>>,
    /// `tcp_rmem`: least, initial, greatest.
    pub(crate) receive_buffer: Option<At<[Size; 3]>>,
    /// Greatest of `tcp_wmem`.
    pub(crate) send_buffer: Option<At<Size>>,
    /// Pace every algorithm, as the `fq` discipline does.
    pub(crate) pacing: Option<bool>,
    /// `tcp_reordering`.
    pub(crate) reordering: Option<u32>,
    /// `tcp_max_reordering`.
    pub(crate) max_reordering: Option<u32>,
    /// The kernel's timer tick, 1/HZ. Default: "4ms" (Debian, Ubuntu).
    pub(crate) tick: Option<At<Time>>,
    /// How losses are found and answered.
    pub(crate) recovery: Option<Recovery>,
    /// Open the connection by a handshake; without it data leaves at once, as from ns-2's one-way agents.
    pub(crate) handshake: Option<bool>,
    /// Retransmission timeout before the first RTT sample. Default: "1s" (RFC 6298).
    pub(crate) initial_timeout: Option<At<Time>>,
    /// The greatest congestion window, and most packets outstanding, whatever the receiver offers (ns-2's `window_`).
    /// Default: no such limit.
    pub(crate) window: Option<Packets>,
}

/// A set of defaults for hosts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "profile")]
pub(crate) enum Profile {
    /// Linux 6.1.
    #[serde(rename = "linux")]
    Linux,
    /// ns-2.35's TCP-Linux agents.
    #[serde(rename = "ns-2")]
    Ns2,
}

/// How losses are found and answered.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "recovery")]
pub(crate) enum Recovery {
    /// As Linux 6.1: RACK-TLP, proportional rate reduction, F-RTO, and undo of what proves spurious.
    Rack,
    /// As Linux before 3.2: forward acknowledgement (three later packets) and rate halving, and nothing of the other.
    Fack,
}

/// A source of traffic.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "flow")]
pub(crate) struct Flow {
    /// Unique name.
    pub(crate) name: At<Name>,
    /// tcp (default), mptcp or udp.
    #[serde(default)]
    pub(crate) kind: Kind,
    /// Name of a path. Default: the tunnel, or the only path.
    pub(crate) path: Option<At<String>>,
    /// MPTCP: names of paths, one a subflow. Default: all paths.
    pub(crate) paths: Option<At<Vec<At<String>>>>,
    /// MPTCP, instead of `paths`: subflows that come late, go early, or are backups.
    pub(crate) subflow: Option<At<Vec<At<Subflow>>>>,
    /// MPTCP: which subflow carries the next packet: a scheduler of `ropewalk list schedulers`, or
    /// { name = "blest", lambda = 1.1 }. Default: that of the stack whose rules are followed.
    pub(crate) scheduler: Option<At<Algorithm>>,
    /// MPTCP: everything else.
    pub(crate) mptcp: Option<At<Mptcp>>,
    /// When it begins. Default: "0s".
    pub(crate) start: Option<Time>,
    /// It begins up to this much later, at random, so that seeds differ. Default: "0s".
    pub(crate) start_within: Option<Time>,
    /// When its source stops. Default: the end.
    pub(crate) stop: Option<At<Time>>,
    /// So many alike, called NAME-1, NAME-2 ...
    pub(crate) count: Option<At<u32>>,
    /// Each of `count` begins this much after the one before.
    pub(crate) stagger: Option<At<Time>>,
    /// TCP: congestion control: a name, or { name = "cubic", beta = 0.7 }. Default: cubic.
    pub(crate) congestion: Option<At<Algorithm>>,
    /// TCP: bytes to send. Default: as much as possible.
    pub(crate) size: Option<At<Size>>,
    /// TCP: what differs from `[host]`.
    pub(crate) host: Option<At<Host>>,
    /// UDP: rate, with IP and UDP headers. TCP: the application writes at this rate. Default for TCP: as fast as it can.
    pub(crate) rate: Option<At<BitRate>>,
    /// TCP with a rate: bytes of one write. Default: a segment.
    pub(crate) write: Option<At<Size>>,
    /// TCP: a client asks, receives the answer, thinks, and asks again.
    pub(crate) requests: Option<At<Requests>>,
    /// TCP: a video is watched.
    pub(crate) video: Option<At<Video>>,
    /// UDP: size of a datagram with its IP and UDP headers.
    pub(crate) packet: Option<At<Size>>,
}

/// What a flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "flow-kind")]
pub(crate) enum Kind {
    /// A TCP connection.
    #[default]
    Tcp,
    /// An MPTCP connection.
    Mptcp,
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
    pub(crate) path: Option<At<String>>,
    /// Name of a link.
    pub(crate) link: Option<At<String>>,
    /// Which directions. Default: both.
    #[serde(default)]
    pub(crate) direction: Direction,
    /// false: everything sent into the link is lost.
    pub(crate) up: Option<bool>,
    /// New rate.
    pub(crate) rate: Option<At<BitRate>>,
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
    /// Towards it.
    Reverse,
    /// Both.
    #[default]
    Both,
}
