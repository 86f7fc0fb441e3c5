//! A lane for each flow, served in turns: DRR++ with new and old lanes, as in FQ-CoDel and CAKE.
//!
//! RFC 8290, section 4. Flows are hashed to lanes. A lane that gets a packet while it is on neither list is *new*, and
//! new lanes go first, until they have sent a `quantum`; then they are *old* and take turns. So a flow that sends less
//! than a quantum a round never waits for the others' backlogs. An empty lane leaves the lists; one that was new passes
//! through the old ones first, so that nobody stays new for ever. When the queue is full, the lane with most bytes
//! loses packets from its head. What else is dropped or marked in a lane is its [`Head`]'s business.
//!
//! CAKE differs in this ([`Plan::CAKE`]): its hash is eight-way set-associative, so that flows share a lane only when
//! nine of them fall into one set; overflow takes one packet at a time; the quantum shrinks on slow links.
//! Of CAKE is not here: tins (DiffServ), fairness between hosts, the ACK filter, the shaper (the link's own rate takes
//! its place), and that an empty lane is not passed through the old ones.

use super::bound::Bound;
use super::head::{Around, Head};
use super::lane::{Lane, Waiting};
use super::outlet::Outlet;
use super::serviced::Store;
use super::{Packet, Verdict};
use std::collections::VecDeque;
use units::{Instant, Rate};

/// What FQ-CoDel and CAKE differ in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    lanes: usize,
    /// Lanes that a flow may have: its own, or one next to it. Divides `lanes`.
    ways: usize,
    /// Packets dropped at once on overflow, at most; half of the lane's bytes is enough.
    batch: u32,
    quantum: u64,
    /// The quantum is at most what the link sends in a 4096th of a second, but 300 bytes at least.
    shrinks: bool,
}

/// Lanes, and their turns.
#[derive(Debug)]
pub(super) struct Fair<P, H> {
    plan: Plan,
    quantum: i64,
    seed: u64,
    flows: Vec<Flow<P, H>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: u64,
    bytes: u64,
    /// The largest packet so far, bytes.
    largest: u64,
    last_arrival: Instant,
}

/// One lane, with what it may still send.
#[derive(Debug)]
struct Flow<P, H> {
    lane: Lane<P>,
    head: H,
    deficit: i64,
    /// It is among the new or the old ones.
    listed: bool,
    /// Hash of the flow that it was given to last.
    tag: u64,
}

impl Plan {
    /// Overflow: RFC 8290, section 4.1; Linux's `drop_batch`.
    pub(super) fn fq_codel(flows: u32, quantum: u32) -> Self {
        Self { lanes: flows as usize, ways: 1, batch: 64, quantum: u64::from(quantum), shrinks: false }
    }

    /// Linux 6.1.
    pub(super) const CAKE: Self = Self { lanes: 1024, ways: 8, batch: 1, quantum: 1514, shrinks: true };

    fn quantum(&self, rate: Option<Rate>) -> i64 {
        let most = rate.filter(|_| self.shrinks).map_or(self.quantum, |rate| (rate.as_bits() / 8 / 4096).max(300));
        self.quantum.min(most) as i64
    }
}

impl<P: Packet, H: Head> Fair<P, H> {
    /// Empty lanes with `head` each; `seed` is that of the hash.
    pub(super) fn new(plan: Plan, head: &H, rate: Option<Rate>, seed: u64) -> Self {
        let mut head = head.clone();
        head.set_rate(rate);
        let flow = || Flow { lane: Lane::default(), head: head.clone(), deficit: 0, listed: false, tag: 0 };
        Self {
            plan,
            quantum: plan.quantum(rate),
            seed,
            flows: (0..plan.lanes).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            largest: 0,
            last_arrival: Instant::ZERO,
        }
    }

    /// The lane of a flow: the one in its set that is already its own, or an unused one; else it is a guest in another's,
    /// who keeps it (in Linux the guest takes it over, and the owner may find itself in yet another lane).
    fn classify(&mut self, flow: u16) -> usize {
        let hash = scramble(self.seed ^ u64::from(flow));
        let direct = (hash % self.plan.lanes as u64) as usize;
        let (set, way) = (direct - direct % self.plan.ways, direct % self.plan.ways);
        let candidates = (0..self.plan.ways).map(|k| set + (way + k) % self.plan.ways);
        let own = candidates.clone().find(|index| self.flows[*index].tag == hash);
        let unused = || candidates.clone().find(|index| !self.flows[*index].listed);
        match own.or_else(unused) {
            Some(index) => {
                self.flows[index].tag = hash;
                index
            }
            None => direct,
        }
    }

    /// Drops from the head of the fattest lane; which one it was.
    fn prune(&mut self, now: Instant, outlet: &mut Outlet<P>) -> Option<usize> {
        let bytes_of = |index: usize| self.flows[index].lane.bytes();
        let fatter = |best: usize, index: usize| if bytes_of(index) > bytes_of(best) { index } else { best };
        let fattest = self.new.iter().chain(&self.old).copied().reduce(fatter)?;
        let enough = bytes_of(fattest) / 2;
        let (mut count, mut bytes) = (0, 0);
        let flow = &mut self.flows[fattest];
        while count == 0 || (count < self.plan.batch && bytes < enough) {
            let Some(waiting) = flow.lane.pop() else { break };
            (count, bytes) = (count + 1, bytes + waiting.size);
            outlet.drop_packet(waiting.packet);
        }
        flow.head.on_overflow(now, count);
        self.packets -= u64::from(count);
        self.bytes -= bytes;
        (count > 0).then_some(fattest)
    }

    /// What the head of a lane lets go.
    fn leave(&mut self, now: Instant, index: usize, outlet: &mut Outlet<P>) -> Option<Waiting<P>> {
        let flow = &mut self.flows[index];
        let (packets, bytes) = (flow.lane.packets(), flow.lane.bytes());
        let around = Around { others: self.bytes - bytes, largest: self.largest };
        let left = flow.head.leave(now, &mut flow.lane, around, outlet);
        self.packets -= packets - flow.lane.packets();
        self.bytes -= bytes - flow.lane.bytes();
        left
    }
}

impl<P: Packet, H: Head> Store<P> for Fair<P, H> {
    fn push(&mut self, newcomer: Waiting<P>, bound: Option<&Bound>, outlet: &mut Outlet<P>) -> Verdict {
        let (now, index) = (newcomer.arrived, self.classify(newcomer.packet.flow()));
        self.packets += 1;
        self.bytes += newcomer.size;
        self.largest = self.largest.max(newcomer.size);
        self.last_arrival = now;
        let flow = &mut self.flows[index];
        flow.lane.push(newcomer);
        if !flow.listed {
            (flow.listed, flow.deficit) = (true, self.quantum);
            flow.head.on_return(now);
            self.new.push_back(index);
        }
        let mut verdict = Verdict::Accepted;
        while bound.is_some_and(|bound| !bound.holds(self.packets, self.bytes)) {
            let pruned = self.prune(now, outlet);
            // The newcomer stands last: it is gone only if nothing is left.
            if pruned == Some(index) && self.flows[index].lane.is_empty() {
                verdict = Verdict::Dropped;
            }
        }
        verdict
    }

    fn pop(&mut self, now: Instant, outlet: &mut Outlet<P>) -> Option<Waiting<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            if self.flows[index].deficit <= 0 {
                self.flows[index].deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            if let Some(head) = self.leave(now, index, outlet) {
                self.flows[index].deficit -= head.size as i64;
                return Some(head);
            }
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            self.flows[index].head.on_empty(now);
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                self.flows[index].listed = false;
            }
        }
    }

    fn discard(&mut self) -> Option<Waiting<P>> {
        let index = self.new.iter().chain(&self.old).copied().find(|index| !self.flows[*index].lane.is_empty())?;
        let waiting = self.flows[index].lane.pop()?;
        self.packets -= 1;
        self.bytes -= waiting.size;
        Some(waiting)
    }

    fn waiting(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    fn since(&self) -> Option<Instant> {
        (self.packets > 0).then_some(self.last_arrival)
    }

    /// All lanes are found empty, and leave the lists.
    fn rest(&mut self, now: Instant) {
        for index in self.new.drain(..).chain(self.old.drain(..)) {
            self.flows[index].head.on_empty(now);
            self.flows[index].listed = false;
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.quantum = self.plan.quantum(Some(rate));
        self.flows.iter_mut().for_each(|flow| flow.head.set_rate(Some(rate)));
    }
}

/// A bijection that spreads neighbours all over the numbers (SplitMix64's finaliser; Steele, Lea, Flood 2014).
fn scramble(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cobalt::Cobalt;
    use crate::tests::Numbered;
    use units::Span;

    /// How many of `flows` busy flows share a lane with another one, summed over hash seeds.
    fn sharing(plan: Plan, flows: u16, seeds: u64) -> f64 {
        let of_seed = |seed| {
            let head = Cobalt::new(Span::from_millis(100), true);
            let mut fair: Fair<Numbered, _> = Fair::new(plan, &head, None, scramble(seed));
            let mut guests = vec![0u32; plan.lanes];
            for flow in 0..flows {
                let index = fair.classify(flow);
                fair.flows[index].listed = true;
                guests[index] += 1;
            }
            guests.iter().filter(|guests| **guests > 1).sum::<u32>()
        };
        (0..seeds).map(of_seed).map(f64::from).sum()
    }

    #[test]
    fn flows_share_lanes_as_birthdays_and_with_eight_ways_hardly_ever() {
        // Each of 100 flows meets none of the 99 others in 1024 lanes with probability (1023/1024)^99 = 0.908.
        let (flows, seeds) = (100.0, 200.0);
        let alone = libm::pow(1023.0 / 1024.0, 99.0);
        let seen = sharing(Plan::fq_codel(1024, 1514), 100, 200) / (flows * seeds);
        // Sharers come in pairs: twice the binomial variance at most.
        let error = (2.0 * alone * (1.0 - alone) / (flows * seeds)).sqrt();
        assert!((seen - (1.0 - alone)).abs() < 5.0 * error, "{seen} for {}", 1.0 - alone);
        // Nine of 100 in one of 128 sets: 128 x C(100, 9) / 128^9 = 2.6e-5 a seed at most, half a percent for 200.
        assert_eq!(sharing(Plan::CAKE, 100, 200), 0.0);
    }

    #[test]
    fn a_flow_finds_its_lane_again_and_a_ninth_in_a_set_shares() {
        let plan = Plan { lanes: 8, ..Plan::CAKE };
        let head = Cobalt::new(Span::from_millis(100), true);
        let mut fair: Fair<Numbered, _> = Fair::new(plan, &head, None, 7);
        let lanes: Vec<usize> = (0..8)
            .map(|flow| {
                let index = fair.classify(flow);
                fair.flows[index].listed = true;
                index
            })
            .collect();
        let mut distinct = lanes.clone();
        distinct.sort_unstable();
        assert!(distinct.into_iter().eq(0..8));
        let guest = fair.classify(8);
        assert!((0..8).all(|flow| fair.classify(flow) == lanes[usize::from(flow)]), "all keep their lanes");
        assert_eq!(fair.classify(8), guest);
    }

    #[test]
    fn cakes_quantum_is_what_a_slow_link_sends_in_a_quarter_of_a_millisecond() {
        let quantum = |mbit| Plan::CAKE.quantum(Some(Rate::from_mbit(mbit)));
        assert_eq!([1, 20, 100].map(quantum), [300, 610, 1514]);
        assert_eq!(Plan::CAKE.quantum(None), 1514);
        assert_eq!(Plan::fq_codel(1024, 1514).quantum(Some(Rate::from_mbit(1))), 1514);
    }
}
