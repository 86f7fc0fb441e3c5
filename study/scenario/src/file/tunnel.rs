//! The table of a tunnel.

use super::short_form::Algorithm;
use parse::{BitRate, Packets, Percent, Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// A tunnel over several paths.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "tunnel")]
pub(crate) struct Tunnel {
    /// The implementation of the tunnel. A key of the other implementation is refused.
    #[serde(default)]
    pub(crate) mode: Mode,
    /// MPT: the encapsulation.
    pub(crate) kind: Option<Spanned<TunnelKind>>,
    /// Names of the paths of the tunnel. Default: all.
    pub(crate) paths: Option<Spanned<Vec<Spanned<String>>>>,
    /// One whole number per path, in the order of `paths`, for schedulers that have weights. Default: all 1.
    pub(crate) weights: Option<Spanned<Vec<u32>>>,
    /// Largest inner packet. Ropewalk carries a larger one in fragments. Default: MPT `"1440b"`; Ropewalk the largest
    /// packet that one datagram holds on every path.
    pub(crate) mtu: Option<Spanned<Size>>,
    /// MPT: place of the first packet in the cycle of the scheduler. Default: 0.
    pub(crate) first: Option<Spanned<u32>>,
    /// MPT: packets sent before the flows start, which shift the cycle of the scheduler. Default: 0.
    pub(crate) stray_packets: Option<Spanned<u32>>,
    /// MPT: bytes of the encapsulation. They are the outer IP header (20, or 40 with `host.ip = 6`), UDP (8), and GRE
    /// with a sequence number (8). Default: `"36b"`; with `host.ip = 6` `"56b"`.
    pub(crate) overhead: Option<Spanned<Size>>,
    /// MPT: resequencing at the far end: `{ window = "1600p", timeout = "300ms", late = "drop" }`. Default: none;
    /// packets are delivered as they arrive.
    pub(crate) resequence: Option<Spanned<Resequence>>,
    /// MPT: room in the device and in the sockets of the tunnel: `{ ring = "1500p", socket = "92p" }`. Default: none;
    /// the tunnel never holds packets back.
    pub(crate) device: Option<Spanned<Device>>,
    /// MPT: random effects that a test bed does not hold still, drawn by the seed. Default: none.
    pub(crate) nuisances: Option<Spanned<Nuisances>>,
    /// Ropewalk: congestion control of the paths. A name, a name with parameters (`{ name = "cubic", beta = 0.7 }`),
    /// or `"off"` for no congestion windows. Default: `"discern"`.
    pub(crate) congestion: Option<Spanned<Algorithm>>,
    /// Ropewalk, instead of `congestion`: the paths use the congestion control of the flow with this name, which a
    /// sweep may vary.
    pub(crate) congestion_of: Option<Spanned<String>>,
    /// The scheduler of `ropewalk list schedulers` that picks the path of each packet. MPT takes one that needs no
    /// measurements. Ropewalk takes one under which packets wait for a congestion window. Default: MPT
    /// `"packet-round-robin"`; Ropewalk `"overflow"`.
    pub(crate) scheduler: Option<Spanned<Algorithm>>,
    /// Ropewalk: retransmit lost fragments. Default: `true`.
    pub(crate) retransmit: Option<Spanned<bool>>,
    /// Ropewalk: a pure TCP acknowledgement that waits in the ingress queue is replaced by a newer one of its
    /// connection. Default: `true`.
    pub(crate) ack_filter: Option<Spanned<bool>>,
    /// Ropewalk: deliver packets in the order in which they were sent. Default: `true`.
    pub(crate) in_order: Option<Spanned<bool>>,
    /// Ropewalk: the treatment of a late packet, which later packets have overtaken. Default: `"drop"`.
    pub(crate) late: Option<Spanned<Late>>,
    /// Ropewalk: the longest wait for a missing fragment. The actual wait follows the measurements of the sender.
    /// Default: `"500ms"`.
    pub(crate) max_reorder_timeout: Option<Spanned<Time>>,
    /// Ropewalk: a path that sends and receives nothing for this long is probed. Default: `"200ms"`.
    pub(crate) probe_interval: Option<Spanned<Time>>,
    /// Ropewalk: target of CoDel in the ingress queue. The longest RTT of a path and its excess delay are added to it.
    /// Default: `"20ms"`.
    pub(crate) codel_target: Option<Spanned<Time>>,
    /// Ropewalk: interval of CoDel in the ingress queue. Default: `"300ms"`.
    pub(crate) codel_interval: Option<Spanned<Time>>,
    /// Ropewalk: bytes that may wait in the ingress queue, be in flight, and be held in the reorder buffer. Each of
    /// the three has this limit. Default: `"64MiB"`.
    pub(crate) memory: Option<Spanned<Size>>,
    /// Ropewalk: names of paths that are used only while no other path works. Default: none.
    pub(crate) backup: Option<Spanned<Vec<Spanned<String>>>>,
    /// Ropewalk: names of paths where every byte costs money. They are backups, and are probed seldom. Default: none.
    pub(crate) metered: Option<Spanned<Vec<Spanned<String>>>>,
    /// Ropewalk: names of paths that carry data only while the regular paths are full, or while none of them works. A
    /// secondary path cannot be a backup. Default: none.
    pub(crate) secondary: Option<Spanned<Vec<Spanned<String>>>>,
    /// Ropewalk: the device of the tunnel has segmentation offload, as the device of the daemon has. A super-segment
    /// of a host with `tso` is then one packet in the tunnel and at its receiver, which acknowledges it once. With
    /// `false` packets go one by one. Default: `true`.
    pub(crate) offload: Option<Spanned<bool>>,
    /// Ropewalk: both ends accept bundles, which are several inner packets and acknowledgements in one datagram. With
    /// `false` packets go one by one, as with an end of an earlier version. Default: `true`.
    pub(crate) bundles: Option<Spanned<bool>>,
    /// Ropewalk: sparse flows form a real-time class. It goes ahead of bulk traffic, and is copied over a second path
    /// while its own path is unsteady. Default: `false`.
    pub(crate) realtime: Option<Spanned<bool>>,
    /// Ropewalk with `realtime`: share of the capacity of all paths that copies may use. Default: `"5%"`.
    pub(crate) copy_budget: Option<Spanned<Percent>>,
    /// Ropewalk with `realtime`: metered paths carry copies, too. Default: `false`.
    pub(crate) copy_on_metered: Option<Spanned<bool>>,
    /// Ropewalk with `realtime`: share of the capacity of all paths that may go ahead of bulk traffic. Default:
    /// `"50%"`.
    pub(crate) realtime_share: Option<Spanned<Percent>>,
    /// Ropewalk: the connections that the tunnel splits. They end at the near end of the tunnel, and continue as new
    /// connections from its far end (RFC 3135). Default: `"off"`.
    pub(crate) relay: Option<Spanned<RelayKind>>,
    /// Ropewalk with `relay`: congestion control of the connections from the far relay to the receivers, as of a flow.
    /// It is what the kernel of the far host uses. Default: `"cubic"`.
    pub(crate) relay_congestion: Option<Spanned<Algorithm>>,
    /// Ropewalk with `relay`: rate of the local links between the relays and the hosts of the flows. Default:
    /// `"1gbit"`.
    pub(crate) relay_rate: Option<Spanned<BitRate>>,
    /// Ropewalk with `relay`: propagation delay of the local links, one way. Default: `"500us"`.
    pub(crate) relay_delay: Option<Spanned<Time>>,
}

/// What a tunnel relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "relay")]
pub(crate) enum RelayKind {
    /// None: TCP runs end to end.
    #[default]
    Off,
    /// TCP connections.
    Tcp,
}

/// The implementation of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "tunnel-mode")]
pub(crate) enum Mode {
    /// The MPT library: packets are striped and put in order, and nothing is measured.
    #[default]
    Mpt,
    /// Ropewalk's own tunnel: each path has congestion control, and lost fragments are retransmitted.
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
    /// A packet that is this far ahead of the expected one flushes the buffer. `"0p"` disables resequencing.
    pub(crate) window: Packets,
    /// The longest time that a packet is held.
    pub(crate) timeout: Time,
    /// The treatment of a late packet, which later packets have overtaken. MPT drops it.
    #[serde(default)]
    pub(crate) late: Late,
}

/// The treatment of a late packet.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "late")]
pub(crate) enum Late {
    /// Drop it.
    #[default]
    Drop,
    /// Deliver it out of order.
    Deliver,
}

/// What differs from run to run on a test bed, drawn by seed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "nuisances")]
pub(crate) struct Nuisances {
    /// Draws the place of the first packet in the cycle of the scheduler, for each direction. All places are equally
    /// likely. Replaces `first`.
    #[serde(default)]
    pub(crate) draw_first: bool,
    /// Mean pause between background packets of 100 bytes (neighbour discovery, ARP, MLD), which enter the tunnel in
    /// each direction. Pauses are exponential. Default: none.
    pub(crate) stray_interval: Option<Spanned<Time>>,
    /// Time from the arrival of a packet at a sleeping daemon until the daemon runs: `{ least = "3us", mean = "10us"
    /// }`. The daemon then takes all packets that arrived until then. Needs a `device`. Default: none.
    pub(crate) wake_up: Option<Spanned<WakeUp>>,
    /// Time from the arrival of a packet at a TCP receiver until its sleeping program reads: `{ least = "4us", mean =
    /// "30us" }`. A segment with PSH is acknowledged then, together with all others that arrived until then. Default:
    /// it is acknowledged at once.
    pub(crate) reader: Option<Spanned<WakeUp>>,
    /// Instead of `reader`, for hosts with one processor: the receiving program reads when the daemon has delivered
    /// everything that arrived. After about this number of acknowledgements it preempts the daemon. The number is from a
    /// gamma distribution with this mean and a standard deviation of 18 %.
    /// Default: 1500 each time.
    pub(crate) preemption: Option<Spanned<u32>>,
}

/// A latency with a least value, and exponential above it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "wake-up")]
pub(crate) struct WakeUp {
    /// The smallest latency. Above it, the latency is exponential.
    pub(crate) least: Time,
    /// The mean latency, at least `least`.
    pub(crate) mean: Time,
}

/// A tunnel's device.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "device")]
pub(crate) struct Device {
    /// Packets that fit into the ring of the device (`txqueuelen`).
    pub(crate) ring: Packets,
    /// Packets that fit into the send buffer of the socket of one path.
    pub(crate) socket: Packets,
}
