//! What happens in the network of a traced run, as events.

use super::Network;
use crate::packet::{Direction, Packet, PacketDescriptor, Route};
use crate::trace::{Crossing, CrossingStep, LossCause, TraceEvent, Traced, TracedContent, TracedPacket};
use link::Packet as _;
use std::collections::BTreeMap;
use units::Instant;

/// The link whose packets are traced one by one.
#[derive(Debug)]
pub(super) struct WatchedLink {
    link: usize,
    /// The number of the next packet that enters it.
    next: u64,
    /// The number of each packet in it, by slot.
    entries: BTreeMap<u32, u64>,
}

impl Network {
    /// Traces from now on, before the first packet.
    pub(crate) fn start_trace(&mut self) {
        (self.trace, self.horizon) = (Some(Vec::new()), Instant::ZERO);
        self.tunnel.iter_mut().for_each(|tunnel| tunnel.start_trace());
    }

    /// Traces a packet that the network discards: in the pipe `pipe`, or where it leaves its path.
    pub(super) fn trace_loss(&mut self, descriptor: PacketDescriptor, pipe: Option<u32>, cause: LossCause) {
        if self.trace.is_none() {
            return;
        }
        let packet = self.traced(descriptor);
        self.push_trace(Traced::Lost { packet, link: pipe.map(link_of), cause });
        if let Some(pipe) = pipe {
            self.trace_exit(pipe, descriptor, Some(cause));
        }
    }

    /// Traces the packets of a link one by one, by its number in the experiment.
    pub(crate) fn watch(&mut self, link: usize) {
        self.watched = Some(WatchedLink { link, next: 0, entries: BTreeMap::new() });
    }

    /// Traces a packet that enters a pipe of the watched link.
    #[cold]
    pub(super) fn trace_entry(&mut self, pipe: u32, descriptor: PacketDescriptor) {
        let Some(watched) = self.watched.as_mut().filter(|watched| watched.link == link_of(pipe).0) else { return };
        let entry = watched.next;
        watched.next += 1;
        watched.entries.insert(descriptor.slot(), entry);
        self.trace_crossing(pipe, descriptor, entry, CrossingStep::Enters);
    }

    /// Traces a packet that leaves a pipe of the watched link: at its far end, or because it is lost.
    #[cold]
    pub(super) fn trace_exit(&mut self, pipe: u32, descriptor: PacketDescriptor, cause: Option<LossCause>) {
        let Some(watched) = self.watched.as_mut().filter(|watched| watched.link == link_of(pipe).0) else { return };
        let is_copy = descriptor.is_new_copy();
        let entry = match is_copy {
            true => watched.entries.get(&descriptor.slot()).copied(),
            false => watched.entries.remove(&descriptor.slot()),
        };
        let step = cause.map_or(CrossingStep::Leaves { is_copy }, CrossingStep::Lost);
        entry.into_iter().for_each(|entry| self.trace_crossing(pipe, descriptor, entry, step));
    }

    fn trace_crossing(&mut self, pipe: u32, descriptor: PacketDescriptor, entry: u64, step: CrossingStep) {
        let &Packet { path, tunnel_seq, .. } = self.slab.get(descriptor.slot());
        let (packet, is_corrupted) = (self.traced(descriptor), descriptor.is_corrupted());
        let (direction, path) = (link_of(pipe).1, usize::from(path));
        self.push_trace(Traced::Crossing(Crossing { packet, path, tunnel_seq, direction, entry, step, is_corrupted }));
    }

    /// Traces a packet that a host sends.
    #[cold]
    pub(super) fn trace_sent(&mut self, route: Route, descriptor: PacketDescriptor) {
        let path = if let Route::Path(path) = route { Some(usize::from(path)) } else { None };
        self.push_trace(Traced::Sent(TracedPacket { path, ..self.traced(descriptor) }));
    }

    /// Traces a tunnel's datagram when it is sent. Packets of hosts are traced when the hosts send them.
    #[cold]
    pub(super) fn trace_datagram(&mut self, descriptor: PacketDescriptor) {
        let packet = self.traced(descriptor);
        if packet.content == TracedContent::Tunnel {
            self.push_trace(Traced::Sent(packet));
        }
    }

    /// Traces the queues of the path that a packet enters or has crossed.
    #[cold]
    pub(super) fn trace_queues(&mut self, descriptor: PacketDescriptor) {
        let &Packet { path, direction, .. } = self.slab.get(descriptor.slot());
        for hop in 0..=u8::MAX {
            let Some(pipe) = self.topology.hop(path, direction, hop) else { return };
            let packets = self.topology.pipes[pipe as usize].queued_packets(self.now);
            self.settle(pipe);
            if self.traced_queues.insert(pipe, packets).unwrap_or(0) != packets {
                self.push_trace(Traced::Queue { link: link_of(pipe), packets });
            }
        }
    }

    /// Traces a packet that reaches its host.
    #[inline]
    pub(crate) fn trace_delivery(&mut self, descriptor: PacketDescriptor) {
        if self.trace.is_some() {
            self.trace_queues(descriptor);
            let packet = self.traced(descriptor);
            self.push_trace(Traced::Delivered(packet));
        }
    }

    fn traced(&self, descriptor: PacketDescriptor) -> TracedPacket {
        let packet = self.slab.get(descriptor.slot());
        let path = Some(usize::from(packet.path)).filter(|_| packet.tunnel_seq.is_none());
        TracedPacket::new(packet, path, descriptor.bytes(), descriptor.ecn())
    }

    /// Adds an event to the trace, if there is one.
    #[cold]
    pub(crate) fn push_trace(&mut self, what: Traced) {
        let at = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(TraceEvent { at, what });
        }
    }
}

/// The link of a pipe by its number in the experiment, and the direction.
fn link_of(pipe: u32) -> (usize, Direction) {
    (pipe as usize / 2, if pipe.is_multiple_of(2) { Direction::Forward } else { Direction::Reverse })
}
