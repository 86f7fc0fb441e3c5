//! What happens in the network of a traced run, as events.

use super::Network;
use crate::packet::{Content, Direction, Packet, PacketDescriptor, Route};
use crate::trace::{Crossing, CrossingStep, TraceEvent, Traced, TracedContent, TracedPacket};
use link::Packet as _;
use std::collections::BTreeMap;
use units::Instant;
use world::{Step, Tap};

/// The events of a traced run since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    events: Vec<TraceEvent>,
    /// The link whose packets are traced one by one.
    watched: Option<WatchedLink>,
}

/// The link whose packets are traced one by one.
#[derive(Debug)]
struct WatchedLink {
    link: usize,
    /// The number of the next packet that enters it.
    next: u64,
    /// The number of each packet in it, by slot.
    entries: BTreeMap<u32, u64>,
}

impl WatchedLink {
    /// The number of a packet on the link, if it is there, and its step.
    fn crossing(&mut self, slot: u32, step: Step) -> Option<(u64, CrossingStep)> {
        match step {
            Step::Enters { .. } => {
                let entry = self.next;
                self.next += 1;
                self.entries.insert(slot, entry);
                Some((entry, CrossingStep::Enters))
            }
            Step::Leaves { is_copy, .. } => {
                let entry = if is_copy { self.entries.get(&slot).copied() } else { self.entries.remove(&slot) };
                Some((entry?, CrossingStep::Leaves { is_copy }))
            }
            Step::Lost { cause, .. } => Some((self.entries.remove(&slot)?, CrossingStep::Lost(cause))),
            Step::Sent | Step::Marked { .. } | Step::Delivered => None,
        }
    }
}

impl Tracer {
    pub(crate) fn take(&mut self) -> Vec<TraceEvent> {
        std::mem::take(&mut self.events)
    }

    fn push(&mut self, at: Instant, what: Traced) {
        self.events.push(TraceEvent { at, what });
    }

    /// Traces a packet on the watched link.
    fn trace_crossing(&mut self, at: Instant, packet: &Packet, descriptor: PacketDescriptor, pipe: u32, step: Step) {
        let (link, direction) = link_of(pipe);
        let watched = self.watched.as_mut().filter(|watched| watched.link == link);
        let Some((entry, step)) = watched.and_then(|watched| watched.crossing(descriptor.slot(), step)) else { return };
        let crossing = Crossing {
            packet: traced(packet, descriptor),
            path: usize::from(packet.path),
            tunnel_seq: packet.content.tunnel_seq,
            direction,
            entry,
            step,
            is_corrupted: descriptor.is_corrupted(),
        };
        self.push(at, Traced::Crossing(crossing));
    }
}

/// Packets of hosts are traced by the hosts when they are sent and delivered, because a tunnel may be between.
impl Tap<Content> for Tracer {
    fn on_step(&mut self, at: Instant, packet: &Packet, descriptor: PacketDescriptor, step: Step) {
        match step {
            Step::Sent => {
                let packet = traced(packet, descriptor);
                if packet.content == TracedContent::Tunnel {
                    self.push(at, Traced::Sent(packet));
                }
            }
            Step::Enters { pipe } | Step::Leaves { pipe, .. } => {
                self.trace_crossing(at, packet, descriptor, pipe, step);
            }
            Step::Lost { pipe, cause } => {
                self.push(at, Traced::Lost { packet: traced(packet, descriptor), link: pipe.map(link_of), cause });
                if let Some(pipe) = pipe {
                    self.trace_crossing(at, packet, descriptor, pipe, step);
                }
            }
            Step::Marked { .. } | Step::Delivered => {}
        }
    }

    fn on_queue(&mut self, at: Instant, pipe: u32, packets: u64) {
        self.push(at, Traced::Queue { link: link_of(pipe), packets });
    }
}

impl Network {
    /// Traces from now on, before the first packet.
    pub(crate) fn start_trace(&mut self) {
        self.world.set_tap(Tracer::default());
        self.tunnel.iter_mut().for_each(|tunnel| tunnel.start_trace());
    }

    /// Traces the packets of a link one by one, by its number in the experiment.
    pub(crate) fn watch(&mut self, link: usize) {
        if let Some(tracer) = self.world.tap() {
            tracer.watched = Some(WatchedLink { link, next: 0, entries: BTreeMap::new() });
        }
    }

    /// Traces a packet that a host sends.
    #[cold]
    pub(super) fn trace_sent(&mut self, route: Route, descriptor: PacketDescriptor) {
        let path = if let Route::Path(path) = route { Some(usize::from(path)) } else { None };
        let packet = traced(self.world.slab.get(descriptor.slot()), descriptor);
        self.push_trace(Traced::Sent(TracedPacket { path, ..packet }));
    }

    /// Traces a packet that reaches its host.
    #[inline]
    pub(crate) fn trace_delivery(&mut self, descriptor: PacketDescriptor) {
        if self.world.is_tapped() {
            self.push_trace(Traced::Delivered(traced(self.world.slab.get(descriptor.slot()), descriptor)));
        }
    }

    /// Adds an event to the trace, if there is one.
    #[cold]
    pub(crate) fn push_trace(&mut self, what: Traced) {
        let at = self.world.now;
        if let Some(tracer) = self.world.tap() {
            tracer.push(at, what);
        }
    }
}

fn traced(packet: &Packet, descriptor: PacketDescriptor) -> TracedPacket {
    let path = Some(usize::from(packet.path)).filter(|_| packet.content.tunnel_seq.is_none());
    TracedPacket::new(packet, path, descriptor.bytes(), descriptor.ecn())
}

/// The link of a pipe by its number in the experiment, and the direction.
fn link_of(pipe: u32) -> (usize, Direction) {
    (pipe as usize / 2, if pipe.is_multiple_of(2) { Direction::Forward } else { Direction::Reverse })
}
