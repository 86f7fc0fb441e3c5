//! A tunnel over several paths.

use super::algorithm::Algorithm;
use units::Span;

/// A striping tunnel over several paths, in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Tunnel {
    /// Indices into [`Experiment::paths`].
    pub paths: Vec<usize>,
    /// MPT: how packets are spread, a name in the registry of schedulers.
    pub stripe: String,
    /// One weight a path.
    pub weights: Vec<u32>,
    /// Position in the striping cycle at which the first packet of each direction goes.
    pub first: u32,
    /// Packets sent into the tunnel before the flows begin, per direction; they only shift the parity.
    pub stray_packets: u32,
    /// Bytes the encapsulation adds: all of it in MPT (outer IPv4 20, UDP 8, GRE 8), outer IP and UDP headers in Ropewalk,
    /// whose own headers differ from datagram to datagram.
    pub overhead: u32,
    /// Largest inner packet, bytes.
    pub mtu: u32,
    /// Resequencing at the far end, or packets go up as they arrive.
    pub resequence: Option<Resequence>,
    /// The tunnel device and its sockets, or a tunnel that never holds packets back.
    pub device: Option<Device>,
    /// Ropewalk's own tunnel; `None` for MPT's, which has none of this.
    pub ropewalk: Option<Box<Ropewalk>>,
}

/// MPT's resequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resequence {
    /// Packets; one this far ahead of the expected number flushes everything.
    pub window: u32,
    /// The longest a packet is held.
    pub timeout: Span,
    /// Packets that come after their turn go up out of order instead of being dropped.
    pub deliver_late: bool,
}

/// A user-space tunnel's device: packets wait here while a path's socket buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Packets that fit into the TUN device's ring (`txqueuelen`).
    pub ring: u32,
    /// Packets that fit into one path socket's send buffer before the tunnel's thread blocks.
    pub socket: u32,
}

/// Ropewalk's own tunnel. What is `None` is as the tunnel has it of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ropewalk {
    /// Congestion control of the paths; `off` is none.
    pub congestion: Option<Algorithm>,
    /// Which path carries the next piece.
    pub scheduler: Option<Algorithm>,
    /// Lost pieces are sent again.
    pub repair: Option<bool>,
    /// Pieces go up in order.
    pub order: Option<bool>,
    /// Packets that come after their turn go up out of order instead of being dropped.
    pub deliver_late: Option<bool>,
    /// The longest that a missing piece is waited for.
    pub hold: Option<Span>,
    /// Silence of a path that is probed.
    pub probe: Option<Span>,
    /// CoDel at the entrance: acceptable standing delay.
    pub target: Option<Span>,
    /// CoDel at the entrance: the time in which it must be reached once.
    pub interval: Option<Span>,
    /// Bytes that may wait at the entrance, be on their way, and be held at the exit: each of the three.
    pub memory: Option<u64>,
    /// Of the tunnel's paths (positions in [`Tunnel::paths`]), those used only while no other works.
    pub backup: Vec<usize>,
    /// Of the tunnel's paths, those of which every byte costs.
    pub metered: Vec<usize>,
}

/// The name of no congestion control at all, in [`Ropewalk::congestion`].
pub const OFF: &str = "off";
