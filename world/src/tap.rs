//! Taps: observers of packets.

use crate::packet::{Packet, PacketDescriptor};
use std::fmt::Debug;
use units::Instant;

/// Sees what happens to packets. A world without a tap pays one comparison per packet for it.
///
/// With a tap every packet causes an event at each pipe, so that steps are seen in the order of time.
pub trait Tap<C>: Debug {
    /// A packet takes a step.
    fn on_step(&mut self, at: Instant, packet: &Packet<C>, descriptor: PacketDescriptor, step: Step);

    /// The queue of a pipe has another length, in packets without the one in transmission, than when it was last looked
    /// at: before a packet enters a path of the pipe, and when one has crossed it.
    fn on_queue(&mut self, _at: Instant, _pipe: u32, _packets: u64) {}
}

/// A step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It enters its path.
    Sent,
    /// It reaches a pipe, before its policer and queue.
    Enters {
        /// The pipe.
        pipe: u32,
    },
    /// It leaves a pipe whose queue has set CE. Comes before [`Leaves`](Self::Leaves).
    Marked {
        /// The pipe.
        pipe: u32,
    },
    /// It leaves a pipe at the far end.
    Leaves {
        /// The pipe.
        pipe: u32,
        /// Whether it is a copy that the pipe has made. The packet itself leaves after it.
        is_copy: bool,
    },
    /// It is discarded.
    Lost {
        /// The pipe; none if the receiver finds a wrong checksum.
        pipe: Option<u32>,
        /// The cause.
        cause: LossCause,
    },
    /// It has crossed its path.
    Delivered,
}

/// The cause of a loss in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// The queue is full, drops early, or a policer drops.
    Queue,
    /// The link loses the packet, or is down.
    Link,
    /// The receiving host finds a wrong checksum.
    Checksum,
}

/// The tap of a world that has none.
#[derive(Clone, Copy, Debug)]
pub enum Untapped {}

impl<C> Tap<C> for Untapped {
    fn on_step(&mut self, _: Instant, _: &Packet<C>, _: PacketDescriptor, _: Step) {}
}

impl<C> Tap<C> for Box<dyn Tap<C>> {
    fn on_step(&mut self, at: Instant, packet: &Packet<C>, descriptor: PacketDescriptor, step: Step) {
        (**self).on_step(at, packet, descriptor, step);
    }

    fn on_queue(&mut self, at: Instant, pipe: u32, packets: u64) {
        (**self).on_queue(at, pipe, packets);
    }
}
