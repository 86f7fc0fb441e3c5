//! The hosts: packets that reach them, and their timers.

use super::Engine;
use crate::packet::{Body, Packet, PacketDescriptor};
use crate::protocol::{Arrival, End};
use link::Packet as _;

impl Engine {
    /// Hands a packet to the host that it has reached.
    #[inline]
    pub(super) fn deliver(&mut self, descriptor: PacketDescriptor) {
        self.network.trace_delivery(descriptor);
        let &Packet { ref content, flow, connection, direction, .. } =
            self.network.world.slab.remove(descriptor.slot());
        self.digest.add(self.network.world.now.0 ^ (u64::from(flow) << 48));
        let (slot, bytes, ecn) = (descriptor.slot(), descriptor.bytes(), descriptor.ecn());
        match content.body {
            Body::Stray => {}
            Body::TunnelDatagram(_) => {
                self.network.with_tunnel(|tunnel, network| tunnel.receive(descriptor, network));
            }
            _ => {
                let arrival = Arrival { slot, path: connection, ecn, bytes };
                if self.flows[usize::from(flow)].split.is_some() {
                    return self.deliver_to_leg(flow, arrival);
                }
                let state = &mut self.flows[usize::from(flow)];
                let end = if direction == state.direction { End::Receiver } else { End::Sender };
                state.call(flow, &mut self.network, |protocol, host| protocol.receive(end, arrival, host));
            }
        }
    }

    /// Hands the packets that the tunnel has delivered to their hosts.
    pub(super) fn deliver_all(&mut self) {
        let mut delivered = std::mem::take(&mut self.network.delivered);
        delivered.drain(..).for_each(|descriptor| self.deliver(descriptor));
        self.network.delivered = delivered;
    }

    /// Wakes an end of a flow: the sender also at its start and its stop.
    pub(super) fn wake(&mut self, flow: u16, end: End) {
        let state = &mut self.flows[usize::from(flow)];
        if state.split.is_some() {
            return self.wake_leg(flow, end);
        }
        state.call(flow, &mut self.network, |protocol, host| protocol.wake(end, host));
    }
}
