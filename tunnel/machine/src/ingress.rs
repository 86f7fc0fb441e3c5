//! The ingress queue: inner packets wait here for a path, with fair queueing and CoDel (RFC 8290), one queue per
//! stream.
//!
//! The tunnel's paths have congestion windows, so that packets beyond them wait here and not in the network's buffers.
//! A sparse stream goes first and never waits behind another's backlog; CoDel marks or drops packets of a stream whose
//! sojourn time exceeds the target. Streams take turns by bytes (deficit round robin).

use super::packet::Payload;
use super::status::EndpointCounters;
use link::{CoDelAction, CoDelState};
use std::collections::VecDeque;
use units::{Instant, Span};

/// Number of streams.
pub(super) const STREAMS: usize = 256;
/// Bytes per turn: a full packet (RFC 8290, section 5.2.3).
const QUANTUM: i64 = 1514;
/// CoDel drops nothing from a queue of at most this many bytes (RFC 8289: one packet).
const MAX_PACKET: u64 = 1514;

#[derive(Debug)]
struct QueuedPacket<P> {
    enqueued: Instant,
    packet: P,
}

#[derive(Debug)]
struct FlowQueue<P> {
    packets: VecDeque<QueuedPacket<P>>,
    /// Memory of the packets, bytes.
    memory: u64,
    deficit: i64,
    is_listed: bool,
    codel: CoDelState,
}

/// The queues of all streams.
#[derive(Debug)]
pub(super) struct IngressQueue<P> {
    flows: Vec<FlowQueue<P>>,
    new_flows: VecDeque<u8>,
    old_flows: VecDeque<u8>,
    pub(super) packet_count: u64,
    pub(super) bytes: u64,
    /// Memory of all packets, bytes.
    pub(super) memory: u64,
    max_memory: u64,
    target: Span,
    interval: Span,
}

impl<P: Payload> IngressQueue<P> {
    /// Empty queues whose packets may use `max_memory` bytes together.
    pub(super) fn new(target: Span, interval: Span, max_memory: u64) -> Self {
        let flow = || FlowQueue {
            packets: VecDeque::new(),
            memory: 0,
            deficit: 0,
            is_listed: false,
            codel: CoDelState::new(target, interval),
        };
        let flows = (0..STREAMS).map(|_| flow()).collect();
        Self {
            flows,
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packet_count: 0,
            bytes: 0,
            memory: 0,
            max_memory,
            target,
            interval,
        }
    }

    /// Sets CoDel's target and interval.
    pub(super) fn set_codel(&mut self, target: Span, interval: Span) {
        (self.target, self.interval) = (target, interval);
    }

    /// Queues a packet from the device. If there is no room, packets of the longest queue are dropped from its head.
    pub(super) fn push(&mut self, now: Instant, stream: u8, packet: P, counters: &mut EndpointCounters) {
        let (bytes, memory) = (u64::from(packet.len()), packet.memory_bytes());
        let flow = &mut self.flows[usize::from(stream)];
        flow.packets.push_back(QueuedPacket { enqueued: now, packet });
        flow.memory += memory;
        if !flow.is_listed {
            (flow.is_listed, flow.deficit) = (true, QUANTUM);
            // A flow whose packet takes more than one turn is not sparse: it would delay the sparse ones behind it.
            let list = if bytes > QUANTUM as u64 { &mut self.old_flows } else { &mut self.new_flows };
            list.push_back(stream);
        }
        self.packet_count += 1;
        self.bytes += bytes;
        self.memory += memory;
        counters.ingress_packets += 1;
        while self.memory > self.max_memory && self.drop_from_longest(counters) {}
    }

    /// Counts again what is charged and held.
    pub(super) fn check(&self) {
        let packets = || self.flows.iter().flat_map(|flow| &flow.packets);
        assert_eq!(self.memory, packets().map(|queued| queued.packet.memory_bytes()).sum::<u64>());
        assert_eq!(self.bytes, packets().map(|queued| u64::from(queued.packet.len())).sum::<u64>());
        assert!(self.memory <= self.max_memory, "{} bytes", self.memory);
    }

    fn drop_from_longest(&mut self, counters: &mut EndpointCounters) -> bool {
        let active_streams = self.new_flows.iter().chain(&self.old_flows);
        let Some(longest) = active_streams.copied().max_by_key(|stream| self.flows[usize::from(*stream)].memory) else {
            return false;
        };
        counters.ingress_dropped_packets += 1;
        self.take_head(longest).is_some()
    }

    fn take_head(&mut self, stream: u8) -> Option<QueuedPacket<P>> {
        let flow = &mut self.flows[usize::from(stream)];
        let head = flow.packets.pop_front()?;
        let memory = head.packet.memory_bytes();
        flow.memory -= memory;
        self.memory -= memory;
        self.bytes -= u64::from(head.packet.len());
        self.packet_count -= 1;
        Some(head)
    }

    /// Whether the next packet is of a sparse stream and has at most `max_bytes`.
    pub(super) fn next_is_sparse(&self, max_bytes: u32) -> bool {
        let head = self.new_flows.front().map(|stream| &self.flows[usize::from(*stream)]);
        head.filter(|flow| flow.deficit > 0)
            .and_then(|flow| flow.packets.front())
            .is_some_and(|head| head.packet.len() <= max_bytes)
    }

    /// The next packet, with its stream.
    pub(super) fn pop(&mut self, now: Instant, counters: &mut EndpointCounters) -> Option<(u8, P)> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let stream = *list.front()?;
            let flow = &mut self.flows[usize::from(stream)];
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                list.pop_front();
                self.old_flows.push_back(stream);
                continue;
            }
            if let Some(packet) = self.dequeue(now, stream, counters) {
                self.flows[usize::from(stream)].deficit -= i64::from(packet.len());
                return Some((stream, packet));
            }
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            list.pop_front();
            if is_new && !self.old_flows.is_empty() {
                self.old_flows.push_back(stream);
            } else {
                self.flows[usize::from(stream)].is_listed = false;
            }
        }
    }

    /// Takes the next packet of a queue that CoDel does not drop. A packet that is marked or trimmed instead is
    /// returned.
    fn dequeue(&mut self, now: Instant, stream: u8, counters: &mut EndpointCounters) -> Option<P> {
        loop {
            let Some(mut head) = self.take_head(stream) else {
                self.flows[usize::from(stream)].codel.on_empty();
                return None;
            };
            let nearly_empty = self.bytes <= MAX_PACKET;
            let codel = &mut self.flows[usize::from(stream)].codel;
            codel.set_params(self.target, self.interval);
            let ok_to_drop = codel.ok_to_drop(now, now.since(head.enqueued), nearly_empty);
            let action = codel.next_action(now, ok_to_drop);
            if action == CoDelAction::Pass {
                return Some(head.packet);
            }
            if action == CoDelAction::Drop {
                codel.schedule_next_drop();
            }
            if head.packet.signal_congestion() {
                counters.ingress_marked_or_trimmed_packets += 1;
                return Some(head.packet);
            }
            counters.ingress_dropped_packets += 1;
        }
    }
}

#[cfg(test)]
mod tests;
