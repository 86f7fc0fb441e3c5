//! The ingress queue: inner packets wait here for a path, with fair queueing and CoDel (RFC 8290), one queue per
//! stream.
//!
//! The tunnel's paths have congestion windows. Packets beyond them wait here and not in the network's buffers. A sparse
//! stream goes first and never waits behind another's backlog; CoDel marks or drops packets of a stream whose sojourn
//! time exceeds the target. Streams take turns by bytes (deficit round robin). With a [real-time
//! class](super::realtime), its streams go ahead of all others while the class has credit.

use super::config::TunnelOptions;
use super::packet::{Payload, QueueRelation};
use super::realtime::{FlowRate, is_marked};
use super::status::EndpointCounters;
use crate::streams::StreamTable;
use link::{CoDelAction, CoDelState};
use std::collections::VecDeque;
use units::{Instant, Span};

/// Number of streams.
pub(super) const STREAMS: usize = 256;
/// Bytes per turn: a full packet (RFC 8290, section 5.2.3).
const QUANTUM: i64 = 1514;
/// CoDel drops nothing from a queue of at most this many bytes (RFC 8289: one packet).
const MAX_PACKET: u64 = 1514;

/// Number of the latest packets of a queue that are searched for an acknowledgement superseded by a new one: flows with
/// the same hash share a queue.
const MAX_SEARCHED: usize = 16;

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
    list: FlowList,
    codel: CoDelState,
    rate: FlowRate,
}

impl<P: Payload> FlowQueue<P> {
    /// The place of the acknowledgement that `packet` supersedes: the latest packet of its flow, unless that is a duplicate.
    /// So packets of a flow never overtake each other, and successive acknowledgements keep one place in the queue
    /// instead of moving back.
    fn superseded_by(&self, packet: &P) -> Option<usize> {
        let waiting = self.packets.iter().map(|queued| &queued.packet).enumerate().rev().take(MAX_SEARCHED);
        let related =
            |packet: &P, earlier: &P| Some(packet.relation(earlier)).filter(|it| *it != QueueRelation::Unrelated);
        let mut of_flow = waiting.filter_map(|(place, earlier)| Some((place, related(packet, earlier)?, earlier)));
        let (place, relation, latest) = of_flow.next()?;
        let is_duplicate =
            of_flow.next().is_some_and(|(_, _, before)| latest.relation(before) == QueueRelation::Duplicate);
        (relation == QueueRelation::Supersedes && !is_duplicate).then_some(place)
    }
}

/// The list that a flow is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowList {
    None,
    /// New or old flows (RFC 8290, section 4.2).
    Bulk,
    /// Flows of the real-time class. The list of old flows may still have such a flow; that entry is ignored.
    Realtime,
}

/// The queues of all streams.
#[derive(Debug)]
pub(super) struct IngressQueue<P> {
    flows: StreamTable<FlowQueue<P>>,
    new_flows: VecDeque<u8>,
    old_flows: VecDeque<u8>,
    /// Flows of the real-time class: none if there is no such class.
    realtime_flows: VecDeque<u8>,
    has_realtime: bool,
    /// Whether real-time flows may go ahead of others now.
    pub(super) realtime_credit: bool,
    /// Whether packets were left when the paths could take no more. If so, acknowledgements are thinned.
    pub(super) has_backlog: bool,
    ack_filter: bool,
    pub(super) packet_count: u64,
    pub(super) bytes: u64,
    /// Memory of all packets, bytes.
    pub(super) memory: u64,
    max_memory: u64,
    target: Span,
    interval: Span,
}

impl<P: Payload> IngressQueue<P> {
    /// Empty queues.
    pub(super) fn new(options: &TunnelOptions) -> Self {
        let (target, interval, max_memory) = (options.codel_target, options.codel_interval, options.memory_bytes);
        Self {
            flows: StreamTable::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            realtime_flows: VecDeque::new(),
            has_realtime: options.realtime.is_some(),
            realtime_credit: true,
            has_backlog: false,
            ack_filter: options.ack_filter,
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
        let (target, interval) = (self.target, self.interval);
        let flow = self.flows.get_or_insert_with(stream, || FlowQueue {
            packets: VecDeque::new(),
            memory: 0,
            deficit: 0,
            list: FlowList::None,
            codel: CoDelState::new(target, interval),
            rate: FlowRate::default(),
        });
        flow.rate.count(now, bytes);
        if self.ack_filter
            && self.has_backlog
            && let Some(earlier) = flow.superseded_by(&packet)
        {
            let earlier = std::mem::replace(&mut flow.packets[earlier].packet, packet);
            flow.memory = flow.memory + memory - earlier.memory_bytes();
            self.memory = self.memory + memory - earlier.memory_bytes();
            self.bytes = self.bytes + bytes - u64::from(earlier.len());
            counters.ingress_packets += 1;
            counters.thinned_acks += 1;
            return;
        }
        flow.packets.push_back(QueuedPacket { enqueued: now, packet });
        flow.memory += memory;
        let is_realtime = self.has_realtime && (is_marked(stream) || flow.rate.is_sparse());
        if is_realtime && flow.list != FlowList::Realtime && flow.packets.len() == 1 {
            (flow.list, flow.deficit) = (FlowList::Realtime, QUANTUM);
            self.realtime_flows.push_back(stream);
        } else if !is_realtime && flow.list == FlowList::Realtime {
            self.realtime_flows.retain(|listed| *listed != stream);
            self.demote(stream);
        } else if flow.list == FlowList::None {
            (flow.list, flow.deficit) = (FlowList::Bulk, QUANTUM);
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

    /// Checks the counters of packets, bytes and memory by counting again.
    pub(super) fn check(&self) {
        let packets = || self.flows.iter().flat_map(|(_, flow)| &flow.packets);
        assert_eq!(self.memory, packets().map(|queued| queued.packet.memory_bytes()).sum::<u64>());
        assert_eq!(self.bytes, packets().map(|queued| u64::from(queued.packet.len())).sum::<u64>());
        assert!(self.memory <= self.max_memory, "{} bytes", self.memory);
    }

    fn drop_from_longest(&mut self, counters: &mut EndpointCounters) -> bool {
        let active_streams = self.new_flows.iter().chain(&self.old_flows).chain(&self.realtime_flows);
        let Some(longest) = active_streams.copied().max_by_key(|stream| self.flows[*stream].memory) else {
            return false;
        };
        counters.ingress_dropped_packets += 1;
        self.take_head(longest).is_some()
    }

    fn take_head(&mut self, stream: u8) -> Option<QueuedPacket<P>> {
        let flow = &mut self.flows[stream];
        let head = flow.packets.pop_front()?;
        let memory = head.packet.memory_bytes();
        flow.memory -= memory;
        self.memory -= memory;
        self.bytes -= u64::from(head.packet.len());
        self.packet_count -= 1;
        Some(head)
    }

    /// An estimate of the length of the next packet that [`pop`](Self::pop) returns: flows whose turn is over are not
    /// skipped, and CoDel may drop the packet.
    pub(super) fn next_len(&self) -> Option<u32> {
        let mut streams = self.new_flows.iter().chain(&self.old_flows);
        streams.find_map(|stream| self.flows[*stream].packets.front()).map(|head| head.packet.len())
    }

    /// Whether the next packet is of a sparse stream and has at most `max_bytes`. A stream is not sparse merely because
    /// its queue is often empty: it may fill a slow path.
    pub(super) fn next_is_sparse(&self, max_bytes: u32) -> bool {
        let head = self.new_flows.front().map(|stream| &self.flows[*stream]);
        head.filter(|flow| flow.deficit > 0 && flow.rate.is_sparse())
            .and_then(|flow| flow.packets.front())
            .is_some_and(|head| head.packet.len() <= max_bytes)
    }

    /// Makes a real-time flow take turns with bulk flows.
    fn demote(&mut self, stream: u8) {
        self.flows[stream].list = FlowList::Bulk;
        if !self.old_flows.contains(&stream) && !self.new_flows.contains(&stream) {
            self.old_flows.push_back(stream);
        }
    }

    /// Whether packets of the real-time class wait.
    pub(super) fn has_realtime_packets(&self) -> bool {
        !self.realtime_flows.is_empty()
    }

    /// The first real-time stream whose next packet has at most `max_bytes` and for which `may_send` is true.
    /// `may_send` gets the stream and whether it is sparse.
    pub(super) fn next_realtime(&self, max_bytes: u32, may_send: impl Fn(u8, bool) -> bool) -> Option<u8> {
        let fits = |stream: &u8| {
            let flow = &self.flows[*stream];
            let fits = flow.packets.front().is_some_and(|head| head.packet.len() <= max_bytes);
            fits && may_send(*stream, flow.rate.is_sparse())
        };
        self.realtime_flows.iter().copied().filter(|_| self.realtime_credit).find(fits)
    }

    /// Takes the next packet of a real-time stream, unless CoDel drops it.
    pub(super) fn pop_realtime(&mut self, now: Instant, stream: u8, counters: &mut EndpointCounters) -> Option<P> {
        let mut head = self.take_head(stream)?;
        let nearly_empty = self.bytes <= MAX_PACKET;
        let flow = &mut self.flows[stream];
        flow.deficit -= i64::from(head.packet.len());
        flow.codel.set_params(self.target, self.interval);
        let ok_to_drop = flow.codel.ok_to_drop(now, now.since(head.enqueued), nearly_empty);
        let action = flow.codel.next_action(now, ok_to_drop);
        if action == CoDelAction::Drop {
            flow.codel.schedule_next_drop();
        }
        if flow.packets.is_empty() {
            flow.codel.on_empty();
            flow.list = FlowList::None;
            self.realtime_flows.retain(|listed| *listed != stream);
        } else if flow.deficit <= 0 {
            flow.deficit += QUANTUM;
            self.realtime_flows.retain(|listed| *listed != stream);
            self.realtime_flows.push_back(stream);
        }
        let is_kept = action == CoDelAction::Pass || head.packet.signal_congestion();
        if is_kept {
            counters.realtime.count(head.packet.len(), now.since(head.enqueued));
        }
        counters.ingress_marked_or_trimmed_packets += u64::from(is_kept && action != CoDelAction::Pass);
        counters.ingress_dropped_packets += u64::from(!is_kept);
        is_kept.then_some(head.packet)
    }

    /// Whether [`pop`](Self::pop) returns a packet of the real-time class, unless CoDel drops it.
    pub(super) fn next_is_realtime(&self) -> bool {
        self.has_realtime_packets() && self.realtime_credit
    }

    /// The next packet, with its stream and whether it is of the real-time class; `only_realtime` if no other may leave.
    pub(super) fn pop(
        &mut self,
        now: Instant,
        only_realtime: bool,
        counters: &mut EndpointCounters,
    ) -> Option<(u8, bool, P)> {
        while !self.realtime_flows.is_empty() && !self.realtime_credit {
            let stream = self.realtime_flows.pop_front()?;
            self.demote(stream);
        }
        while let Some(stream) = self.realtime_flows.front().copied() {
            // Its packet is larger than a fragment, or waits for a congestion window as this one does.
            match self.pop_realtime(now, stream, counters) {
                Some(packet) => return Some((stream, true, packet)),
                None if self.realtime_flows.front() == Some(&stream) && self.flows[stream].packets.is_empty() => {
                    self.realtime_flows.pop_front();
                    self.flows[stream].list = FlowList::None;
                }
                None => {}
            }
        }
        if only_realtime {
            return None;
        }
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let stream = *list.front()?;
            let flow = &mut self.flows[stream];
            if flow.list != FlowList::Bulk {
                list.pop_front();
                continue;
            }
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                list.pop_front();
                self.old_flows.push_back(stream);
                continue;
            }
            if let Some(packet) = self.dequeue(now, stream, counters) {
                self.flows[stream].deficit -= i64::from(packet.len());
                return Some((stream, false, packet));
            }
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            list.pop_front();
            if is_new && !self.old_flows.is_empty() {
                self.old_flows.push_back(stream);
            } else {
                self.flows[stream].list = FlowList::None;
            }
        }
    }

    /// Takes the next packet of a queue that CoDel does not drop. A packet that is marked or trimmed instead is
    /// returned.
    fn dequeue(&mut self, now: Instant, stream: u8, counters: &mut EndpointCounters) -> Option<P> {
        loop {
            let Some(mut head) = self.take_head(stream) else {
                self.flows[stream].codel.on_empty();
                return None;
            };
            let nearly_empty = self.bytes <= MAX_PACKET;
            let codel = &mut self.flows[stream].codel;
            codel.set_params(self.target, self.interval);
            let wait = now.since(head.enqueued);
            let ok_to_drop = codel.ok_to_drop(now, wait, nearly_empty);
            let action = codel.next_action(now, ok_to_drop);
            if action == CoDelAction::Pass {
                counters.bulk.count(head.packet.len(), wait);
                return Some(head.packet);
            }
            if action == CoDelAction::Drop {
                codel.schedule_next_drop();
            }
            if head.packet.signal_congestion() {
                counters.ingress_marked_or_trimmed_packets += 1;
                counters.bulk.count(head.packet.len(), wait);
                return Some(head.packet);
            }
            counters.ingress_dropped_packets += 1;
        }
    }
}

#[cfg(test)]
mod tests;
