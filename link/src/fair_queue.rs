//! A queue for each flow, served by deficit round robin with new and old flows (DRR++), as in FQ-CoDel and CAKE.
//!
//! RFC 8290, section 4. Flows are hashed to queues. A queue that gets a packet while it is on neither list is *new*.
//! New queues go first until they have sent a `quantum`; then they are *old* and take turns. A flow that sends less
//! than a quantum per round therefore never waits for the backlogs of others. An empty queue leaves the lists. If it
//! was new, it first becomes old, so that no flow stays new for ever. When the queue is full, the flow queue with the
//! most bytes loses packets from its head. All other drops and marks are made by the [`HeadDropAqm`] of each flow
//! queue.
//!
//! CAKE differs as follows ([`FairConfig::CAKE`]). Its hash is eight-way set-associative, so that flows share a queue
//! only if nine of them fall into one set. Overflow drops one packet at a time, and the quantum shrinks on slow links.
//! These parts of CAKE are not modelled: tins (DiffServ), fairness between hosts, the ACK filter, the shaper (the
//! link's own rate takes its place), and that an empty queue does not become old.

use super::aqm::{HeadDropAqm, SharedBacklog};
use super::egress::Egress;
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::{Backlog, PacketQueue, QueuedPacket};
use super::qdisc::Qdisc;
use std::collections::VecDeque;
use units::{Instant, Rate};

/// Parameters in which FQ-CoDel and CAKE differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct FairConfig {
    queues: usize,
    /// Number of queues in a set; a flow of the set may be in any of them. It divides `queues`.
    ways: usize,
    /// Maximum number of packets dropped at once on overflow; dropping ends when half of the queue's bytes are dropped.
    drop_batch: u32,
    /// Bytes that a flow queue may send per round.
    quantum: u64,
    /// Whether the quantum is limited to the bytes that the link sends in a 4096th of a second, but at least 300 bytes.
    adapts_quantum: bool,
}

/// A queue for each flow, and the lists of new and old flows.
#[derive(Debug)]
pub(super) struct FairQueue<P, A> {
    config: FairConfig,
    quantum: i64,
    seed: u64,
    flows: Vec<FlowQueue<P, A>>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    packets: u64,
    bytes: u64,
    /// The largest packet so far, bytes.
    max_packet: u64,
    last_arrival: Instant,
}

/// The queue of a flow.
#[derive(Debug)]
struct FlowQueue<P, A> {
    packets: PacketQueue<P>,
    aqm: A,
    deficit: i64,
    /// Whether the queue is in the list of new or of old flows.
    is_listed: bool,
    /// Hash of the flow that used the queue last.
    tag: u64,
}

impl FairConfig {
    /// FQ-CoDel with these parameters. `drop_batch` is Linux's (RFC 8290, section 4.1).
    pub(super) fn fq_codel(flows: u32, quantum: u32) -> Self {
        Self { queues: flows as usize, ways: 1, drop_batch: 64, quantum: u64::from(quantum), adapts_quantum: false }
    }

    /// CAKE in Linux 6.1.
    pub(super) const CAKE: Self = Self { queues: 1024, ways: 8, drop_batch: 1, quantum: 1514, adapts_quantum: true };

    fn quantum(&self, rate: Option<Rate>) -> i64 {
        let max =
            rate.filter(|_| self.adapts_quantum).map_or(self.quantum, |rate| (rate.as_bits() / 8 / 4096).max(300));
        self.quantum.min(max) as i64
    }
}

impl<P: Packet, A: HeadDropAqm> FairQueue<P, A> {
    /// Empty queues, each with a copy of `aqm` at its head; `seed` is the seed of the hash.
    pub(super) fn new(config: FairConfig, aqm: &A, rate: Option<Rate>, seed: u64) -> Self {
        let mut aqm = aqm.clone();
        aqm.set_rate(rate);
        let flow =
            || FlowQueue { packets: PacketQueue::default(), aqm: aqm.clone(), deficit: 0, is_listed: false, tag: 0 };
        Self {
            config,
            quantum: config.quantum(rate),
            seed,
            flows: (0..config.queues).map(|_| flow()).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packets: 0,
            bytes: 0,
            max_packet: 0,
            last_arrival: Instant::ZERO,
        }
    }

    /// The index of a flow's queue: the one in its set that the flow already has, or an unused one. Otherwise it shares
    /// the queue of another flow (in Linux the new flow takes over the queue, and the other flow may get another one).
    fn classify(&mut self, flow: u16) -> usize {
        let hash = splitmix64_mix(self.seed ^ u64::from(flow));
        let hashed_index = (hash % self.config.queues as u64) as usize;
        let (set, way) = (hashed_index - hashed_index % self.config.ways, hashed_index % self.config.ways);
        let candidates = (0..self.config.ways).map(|k| set + (way + k) % self.config.ways);
        let assigned = candidates.clone().find(|index| self.flows[*index].tag == hash);
        let unused = || candidates.clone().find(|index| !self.flows[*index].is_listed);
        match assigned.or_else(unused) {
            Some(index) => {
                self.flows[index].tag = hash;
                index
            }
            None => hashed_index,
        }
    }

    /// Drops from the head of the flow queue with the most bytes (Linux `fq_codel_drop`). Returns its index.
    fn drop_from_longest(&mut self, now: Instant, egress: &mut Egress<P>) -> Option<usize> {
        let backlog_bytes = |index: usize| self.flows[index].packets.bytes();
        let longer =
            |longest: usize, index: usize| if backlog_bytes(index) > backlog_bytes(longest) { index } else { longest };
        let longest = self.new_flows.iter().chain(&self.old_flows).copied().reduce(longer)?;
        let max_bytes = backlog_bytes(longest) / 2;
        let (mut count, mut bytes) = (0, 0);
        let flow = &mut self.flows[longest];
        while count == 0 || (count < self.config.drop_batch && bytes < max_bytes) {
            let Some(waiting) = flow.packets.pop() else { break };
            (count, bytes) = (count + 1, bytes + waiting.size);
            egress.discard_dropped(waiting.packet);
        }
        flow.aqm.on_overflow(now, count);
        self.packets -= u64::from(count);
        self.bytes -= bytes;
        (count > 0).then_some(longest)
    }

    /// The next packet that a flow queue delivers after its active queue management.
    fn dequeue_flow(&mut self, now: Instant, index: usize, egress: &mut Egress<P>) -> Option<QueuedPacket<P>> {
        let flow = &mut self.flows[index];
        let (packets, bytes) = (flow.packets.packets(), flow.packets.bytes());
        let shared = SharedBacklog { other_bytes: self.bytes - bytes, max_packet: self.max_packet };
        let packet = flow.aqm.dequeue(now, &mut flow.packets, shared, egress);
        self.packets -= packets - flow.packets.packets();
        self.bytes -= bytes - flow.packets.bytes();
        packet
    }
}

impl<P: Packet, A: HeadDropAqm> Qdisc<P> for FairQueue<P, A> {
    fn enqueue(&mut self, packet: QueuedPacket<P>, limit: Option<&EffectiveLimit>, egress: &mut Egress<P>) -> Verdict {
        let (now, index) = (packet.arrived, self.classify(packet.packet.flow()));
        self.packets += 1;
        self.bytes += packet.size;
        self.max_packet = self.max_packet.max(packet.size);
        self.last_arrival = now;
        let flow = &mut self.flows[index];
        flow.packets.push(packet);
        if !flow.is_listed {
            (flow.is_listed, flow.deficit) = (true, self.quantum);
            flow.aqm.on_activated(now);
            self.new_flows.push_back(index);
        }
        let mut verdict = Verdict::Accepted;
        while limit.is_some_and(|limit| !limit.allows(self.packets, self.bytes)) {
            let dropped_from = self.drop_from_longest(now, egress);
            // The packet is the last in its flow queue: it was dropped only if nothing is left.
            if dropped_from == Some(index) && self.flows[index].packets.is_empty() {
                verdict = Verdict::Dropped;
            }
        }
        verdict
    }

    fn dequeue(&mut self, now: Instant, egress: &mut Egress<P>) -> Option<QueuedPacket<P>> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            if self.flows[index].deficit <= 0 {
                self.flows[index].deficit += self.quantum;
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            if let Some(head) = self.dequeue_flow(now, index, egress) {
                self.flows[index].deficit -= head.size as i64;
                return Some(head);
            }
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            list.pop_front();
            self.flows[index].aqm.on_empty(now);
            if is_new && !self.old_flows.is_empty() {
                self.old_flows.push_back(index);
            } else {
                self.flows[index].is_listed = false;
            }
        }
    }

    fn remove_head(&mut self) -> Option<QueuedPacket<P>> {
        let index = self
            .new_flows
            .iter()
            .chain(&self.old_flows)
            .copied()
            .find(|index| !self.flows[*index].packets.is_empty())?;
        let waiting = self.flows[index].packets.pop()?;
        self.packets -= 1;
        self.bytes -= waiting.size;
        Some(waiting)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets, bytes: self.bytes }
    }

    fn head_arrival(&self) -> Option<Instant> {
        (self.packets > 0).then_some(self.last_arrival)
    }

    /// Removes all flow queues from the lists, because they are empty.
    fn on_idle(&mut self, now: Instant) {
        for index in self.new_flows.drain(..).chain(self.old_flows.drain(..)) {
            self.flows[index].aqm.on_empty(now);
            self.flows[index].is_listed = false;
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.quantum = self.config.quantum(Some(rate));
        self.flows.iter_mut().for_each(|flow| flow.aqm.set_rate(Some(rate)));
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijective hash.
fn splitmix64_mix(value: u64) -> u64 {
    let mixed = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cobalt::Cobalt;
    use crate::tests::TestPacket;
    use units::Span;

    /// Number of `flows` backlogged flows that share a queue with another one, summed over hash seeds.
    fn colliding_flows(config: FairConfig, flows: u16, seeds: u64) -> f64 {
        let colliding = |seed| {
            let head = Cobalt::new(Span::from_millis(100), true);
            let mut fair: FairQueue<TestPacket, _> = FairQueue::new(config, &head, None, splitmix64_mix(seed));
            let mut flows_of_queue = vec![0u32; config.queues];
            for flow in 0..flows {
                let index = fair.classify(flow);
                fair.flows[index].is_listed = true;
                flows_of_queue[index] += 1;
            }
            flows_of_queue.iter().filter(|flows_of_queue| **flows_of_queue > 1).sum::<u32>()
        };
        (0..seeds).map(colliding).map(f64::from).sum()
    }

    #[test]
    fn flows_share_queues_as_in_the_birthday_problem_and_with_eight_ways_hardly_ever() {
        // Each of 100 flows meets none of the 99 others in 1024 queues with probability (1023/1024)^99 = 0.908.
        let (flows, seeds) = (100.0, 200.0);
        let no_collision = libm::pow(1023.0 / 1024.0, 99.0);
        let share = colliding_flows(FairConfig::fq_codel(1024, 1514), 100, 200) / (flows * seeds);
        // Sharers come in pairs: twice the binomial variance at most.
        let error = (2.0 * no_collision * (1.0 - no_collision) / (flows * seeds)).sqrt();
        assert!((share - (1.0 - no_collision)).abs() < 5.0 * error, "{share} for {}", 1.0 - no_collision);
        // Nine of 100 in one of 128 sets: 128 x C(100, 9) / 128^9 = 2.6e-5 a seed at most, half a percent for 200.
        assert_eq!(colliding_flows(FairConfig::CAKE, 100, 200), 0.0);
    }

    #[test]
    fn a_flow_finds_its_queue_again_and_a_ninth_in_a_set_shares() {
        let config = FairConfig { queues: 8, ..FairConfig::CAKE };
        let head = Cobalt::new(Span::from_millis(100), true);
        let mut fair: FairQueue<TestPacket, _> = FairQueue::new(config, &head, None, 7);
        let queues: Vec<usize> = (0..8)
            .map(|flow| {
                let index = fair.classify(flow);
                fair.flows[index].is_listed = true;
                index
            })
            .collect();
        let mut sorted = queues.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..8));
        let shared = fair.classify(8);
        assert!((0..8).all(|flow| fair.classify(flow) == queues[usize::from(flow)]), "all keep their queues");
        assert_eq!(fair.classify(8), shared);
    }

    #[test]
    fn cakes_quantum_is_what_a_slow_link_sends_in_a_quarter_of_a_millisecond() {
        let quantum = |mbit| FairConfig::CAKE.quantum(Some(Rate::from_mbit(mbit)));
        assert_eq!([1, 20, 100].map(quantum), [300, 610, 1514]);
        assert_eq!(FairConfig::CAKE.quantum(None), 1514);
        assert_eq!(FairConfig::fq_codel(1024, 1514).quantum(Some(Rate::from_mbit(1))), 1514);
    }
}
