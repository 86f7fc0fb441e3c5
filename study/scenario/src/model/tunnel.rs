//! A tunnel over several paths.

use machine::TunnelOptions;
use params::AlgorithmChoice;
use units::{Rate, Span};

/// A tunnel over several paths, in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Tunnel {
    /// Indices into the paths of the experiment.
    pub paths: Vec<usize>,
    /// MPT: the scheduler that picks the path of each packet.
    pub mpt_scheduler: AlgorithmChoice,
    /// One weight per path.
    pub weights: Vec<u32>,
    /// Position in the weighted round-robin cycle of the first packet of each direction.
    pub first: u32,
    /// Packets sent into the tunnel before the flows start, in each direction, which shift the round-robin cycle.
    pub stray_packets: u32,
    /// Bytes the encapsulation adds: all of it in MPT (outer IPv4 20, UDP 8, GRE 8), outer IP and UDP headers in
    /// Ropewalk, whose own headers differ from datagram to datagram.
    pub overhead: u32,
    /// Largest inner packet, bytes.
    pub mtu: u32,
    /// Resequencing at the far end; without it packets are delivered as they arrive.
    pub resequence: Option<Resequence>,
    /// The tunnel's device and sockets; without them the tunnel never holds packets back.
    pub device: Option<Device>,
    /// MPT: random effects, which differ from run to run.
    pub nuisances: Nuisances,
    /// Ropewalk's own tunnel; `None` for MPT's tunnel.
    pub ropewalk: Option<Box<Ropewalk>>,
}

impl Tunnel {
    /// The relay of TCP connections, if there is one.
    #[must_use]
    pub fn relay(&self) -> Option<&Relay> {
        self.ropewalk.as_ref()?.relay.as_ref()
    }

    /// Whether super-segments enter it uncut.
    #[must_use]
    pub fn has_offload(&self) -> bool {
        self.ropewalk.as_ref().is_some_and(|ropewalk| ropewalk.offload)
    }

    /// Largest packet of a TCP flow in the tunnel, bytes. The relay's sockets are on the tunnel's device, so that its MTU
    /// bounds the segments of relayed flows, too.
    #[must_use]
    pub fn tcp_mtu(&self) -> u32 {
        self.relay().map_or(self.mtu, |_| self.mtu.min(Relay::MTU))
    }
}

/// MPT's resequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resequence {
    /// Packets; one this far ahead of the expected number flushes everything.
    pub window: u32,
    /// The longest time for which a packet is held.
    pub timeout: Span,
    /// Late packets, which later ones have overtaken, are delivered out of order instead of being dropped.
    pub deliver_late: bool,
}

/// Random effects of a testbed, drawn by seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nuisances {
    /// Whether the place in the round-robin cycle of each direction's first packet is drawn.
    pub draw_first: bool,
    /// The mean of the exponential pauses between background packets of a direction.
    pub stray_interval: Option<Span>,
    /// How long a sleeping daemon takes to run.
    pub wake_up: Option<WakeUp>,
    /// Time from the arrival of a packet until the receiving program of a TCP flow runs; `None`: at once.
    pub reader: Option<WakeUp>,
    /// The mean number of acknowledgements after which that program preempts the daemon.
    pub preemption: Option<u32>,
}

/// A latency: a minimum, and an exponentially distributed excess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// The minimum latency.
    pub least: Span,
    /// The mean latency, at least `least`.
    pub mean: Span,
}

/// A user-space tunnel's device: packets wait here while a path's socket buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Packets that fit into the TUN device's ring (`txqueuelen`).
    pub ring: u32,
    /// Packets that fit into one path socket's send buffer before the tunnel's thread blocks.
    pub socket: u32,
}

/// Ropewalk's own tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct Ropewalk {
    /// The options of its endpoints.
    pub options: TunnelOptions,
    /// The paths (positions in [`Tunnel::paths`]) that are used only while all others have failed.
    pub backup: Vec<usize>,
    /// The metered paths (positions in [`Tunnel::paths`]).
    pub metered: Vec<usize>,
    /// The paths (positions in [`Tunnel::paths`]) that carry data only while the regular ones are full, or none works.
    pub secondary: Vec<usize>,
    /// Whether the hosts' super-segments enter the tunnel uncut, through a device with segmentation offload.
    pub offload: bool,
    /// Whether both ends take bundles, as all but earlier versions do.
    pub bundles: bool,
    /// The relay of TCP connections, if there is one.
    pub relay: Option<Relay>,
}

impl Default for Ropewalk {
    fn default() -> Self {
        let [backup, metered, secondary] = [const { Vec::new() }; 3];
        Self {
            options: TunnelOptions::default(),
            backup,
            metered,
            secondary,
            offload: true,
            bundles: true,
            relay: None,
        }
    }
}

/// A relay of TCP connections at both ends of a tunnel: each flow's connection ends at the near relay, and the far
/// relay opens another one to the flow's receiver. The hosts of the flows are linked to the relays by a local link on
/// either side.
#[derive(Clone, Debug, PartialEq)]
pub struct Relay {
    /// Congestion control of the far relay's connections.
    pub congestion: AlgorithmChoice,
    /// Rate of the local links.
    pub rate: Rate,
    /// Propagation delay of the local links, one way.
    pub delay: Span,
}

impl Relay {
    /// MTU of the local links, bytes.
    pub const MTU: u32 = 1500;
    /// Bytes that the local links' transmitters add to a packet: Ethernet header 14, checksum 4, preamble 8, gap 12.
    pub const LINK_OVERHEAD: u32 = 38;
}

impl Default for Relay {
    fn default() -> Self {
        Self { congestion: "cubic".into(), rate: Rate::from_mbit(1000), delay: Span::from_micros(500) }
    }
}
