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
    /// The implementation: "mpt" or "ropewalk".
    #[serde(default)]
    pub(crate) mode: Mode,
    /// MPT: the kind of the tunnel.
    pub(crate) kind: Option<Spanned<TunnelKind>>,
    /// Names of its paths. Default: all.
    pub(crate) paths: Option<Spanned<Vec<Spanned<String>>>>,
    /// One weight a path, in the order of `paths`. Default: all 1.
    pub(crate) weights: Option<Spanned<Vec<u32>>>,
    /// Largest inner packet. Ropewalk: by default what fits into one datagram on every path.
    pub(crate) mtu: Option<Spanned<Size>>,
    /// MPT: position in the weighted round-robin cycle of the first packet.
    pub(crate) first: Option<Spanned<u32>>,
    /// MPT: packets sent before the flows start, which shift the round-robin cycle.
    pub(crate) stray_packets: Option<Spanned<u32>>,
    /// MPT: the bytes that the encapsulation adds. By default outer IP 20 (with `ip = 6` in [host] 40), UDP 8,
    /// GRE with sequence number 8.
    pub(crate) overhead: Option<Spanned<Size>>,
    /// MPT: resequencing at the far end; without it packets are delivered as they arrive.
    pub(crate) resequence: Option<Spanned<Resequence>>,
    /// MPT: the tunnel's device and sockets; without it the tunnel never holds packets back.
    pub(crate) device: Option<Spanned<Device>>,
    /// MPT: what a test bed does not hold still, drawn by seed. Default: nothing.
    pub(crate) nuisances: Option<Spanned<Nuisances>>,
    /// Ropewalk: congestion control of the paths: a name, { name = "cubic", beta = 0.7 }, or "off".
    pub(crate) congestion: Option<Spanned<Algorithm>>,
    /// Ropewalk, in the place of `congestion`: the paths have the congestion control of this flow, which a sweep may vary.
    pub(crate) congestion_of: Option<Spanned<String>>,
    /// A scheduler of `ropewalk list schedulers`, which picks the path of each packet. MPT: one that needs no
    /// measurements. Ropewalk: one under which packets wait for a congestion window.
    pub(crate) scheduler: Option<Spanned<Algorithm>>,
    /// Ropewalk: lost fragments are retransmitted.
    pub(crate) retransmit: Option<Spanned<bool>>,
    /// Ropewalk: pure TCP acknowledgements that wait in the ingress queue give way to newer ones of their connection.
    pub(crate) ack_filter: Option<Spanned<bool>>,
    /// Ropewalk: packets are delivered in the order in which they were sent.
    pub(crate) in_order: Option<Spanned<bool>>,
    /// Ropewalk: the treatment of a late packet, one that later packets have overtaken.
    pub(crate) late: Option<Spanned<Late>>,
    /// Ropewalk: the longest that a missing fragment is waited for.
    pub(crate) max_reorder_timeout: Option<Spanned<Time>>,
    /// Ropewalk: a path that is silent for so long is probed.
    pub(crate) probe_interval: Option<Spanned<Time>>,
    /// Ropewalk: CoDel's target in the ingress queue.
    pub(crate) codel_target: Option<Spanned<Time>>,
    /// Ropewalk: CoDel's interval in the ingress queue.
    pub(crate) codel_interval: Option<Spanned<Time>>,
    /// Ropewalk: bytes that may wait in the ingress queue, be in flight, and be held in the reorder buffer: each of the
    /// three.
    pub(crate) memory: Option<Spanned<Size>>,
    /// Ropewalk: names of paths that are used only while all others have failed. Default: none.
    pub(crate) backup: Option<Spanned<Vec<Spanned<String>>>>,
    /// Ropewalk: names of metered paths: backups that are seldom probed. Default: none.
    pub(crate) metered: Option<Spanned<Vec<Spanned<String>>>>,
    /// Ropewalk: names of secondary paths: they carry data only while the regular ones are full, or none works. Default: none.
    pub(crate) secondary: Option<Spanned<Vec<Spanned<String>>>>,
    /// Ropewalk: the tunnel's device has segmentation offload, as the daemon's: a super-segment of a host with `tso` is one
    /// packet in the tunnel and at its receiver, which acknowledges it once. Without it packets go one by one.
    pub(crate) offload: Option<Spanned<bool>>,
    /// Ropewalk: both ends take bundles, several inner packets and acknowledgements in one datagram. Without it packets go one by
    /// one, as with an end of an earlier version.
    pub(crate) bundles: Option<Spanned<bool>>,
    /// Ropewalk: sparse flows are a real-time class, which goes ahead of bulk and is copied over a second path while its
    /// own is unsteady.
    pub(crate) realtime: Option<Spanned<bool>>,
    /// Ropewalk, with `realtime`: what copies may have of all paths' capacity.
    pub(crate) copy_budget: Option<Spanned<Percent>>,
    /// Ropewalk, with `realtime`: metered paths carry copies, too.
    pub(crate) copy_on_metered: Option<Spanned<bool>>,
    /// Ropewalk, with `realtime`: what may go ahead of bulk, of all paths' capacity.
    pub(crate) realtime_share: Option<Spanned<Percent>>,
    /// Ropewalk: the connections that end at the tunnel's near end and are begun again at its far end (RFC 3135).
    pub(crate) relay: Option<Spanned<RelayKind>>,
    /// Ropewalk, with `relay`: congestion control of the far end's connections.
    pub(crate) relay_congestion: Option<Spanned<Algorithm>>,
    /// Ropewalk, with `relay`: rate of the local links between the relay's ends and the flows' hosts.
    pub(crate) relay_rate: Option<Spanned<BitRate>>,
    /// Ropewalk, with `relay`: propagation delay of the local links, one way.
    pub(crate) relay_delay: Option<Spanned<Time>>,
}

/// What a tunnel relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "relay")]
pub(crate) enum RelayKind {
    /// Nothing: TCP runs end to end.
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
    /// The MPT library's: packets are striped and put in order, nothing is measured.
    #[default]
    Mpt,
    /// Ropewalk's own: every path has its congestion control, lost fragments are retransmitted.
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
    /// The treatment of a late packet, one that later packets have overtaken. MPT drops it.
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
    /// The place in the round-robin cycle of the first packet of each direction is drawn: each as often as any.
    #[serde(default)]
    pub(crate) draw_first: bool,
    /// Background packets of 100 bytes (neighbour discovery, ARP, MLD) enter the tunnel in each direction, each with an
    /// exponential pause after the one before; this is the mean of the pauses. Default: none.
    pub(crate) stray_interval: Option<Spanned<Time>>,
    /// The time from a packet's arrival at a daemon that sleeps until the daemon runs. Default: none.
    pub(crate) wake_up: Option<Spanned<WakeUp>>,
    /// The time from a packet's arrival at a TCP receiver until the program, which sleeps, reads. Default: none.
    pub(crate) reader: Option<Spanned<WakeUp>>,
    /// One processor: the receiving program runs when the daemon has delivered all that came; after so many
    /// acknowledgements it preempts the daemon. This is their mean; the number is exponential. Default: 1500 each time.
    pub(crate) preemption: Option<Spanned<u32>>,
}

/// A latency with a least value, and exponential above it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "wake-up")]
pub(crate) struct WakeUp {
    /// The least latency.
    pub(crate) least: Time,
    /// The mean latency, at least the least.
    pub(crate) mean: Time,
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
