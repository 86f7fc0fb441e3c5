//! A bulk flow over one path: a bottleneck with a drop-tail queue at the sender, a fixed delay, a receiver that may delay
//! acknowledgements. Marks instead of losses, so that there are no retransmissions.

use control::registry::find;
use control::{
    AckSample, CaState, Cause, Context, Controller, Decision, ParamValue, PathEvent, PathInfo, RateSample, Reduction,
    SendState,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::{Instant, PathId, RngStream, Span};

/// Acknowledgements that a receiver sends without delay at the start.
const QUICK_ACKS: u64 = 16;
const MSS: u32 = 1448;

/// The path of a flow.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// Time of one packet on the bottleneck.
    pub(crate) service: Span,
    /// The rest of the round-trip time.
    pub(crate) delay: Span,
    /// Limit of the queue, packets; the sender's own interface drops packets beyond it.
    pub(crate) queue: u64,
    /// Every `mark_every`th packet is marked with ECN; none if zero.
    pub(crate) mark_every: u64,
    /// Whether the receiver acknowledges every second packet only.
    pub(crate) delayed_acks: bool,
}

/// 1 ms a packet, 20 ms round trip: 20 packets fill the path.
pub(crate) const LINK: Link = Link {
    service: Span::from_millis(1),
    delay: Span::from_millis(19),
    queue: 1_000,
    mark_every: 0,
    delayed_acks: false,
};

struct Packet {
    sent: Instant,
    arrives: Instant,
    marked: bool,
    in_flight: u32,
    /// The rate sampler's snapshot: delivered, when, and the send time of the packet delivered last.
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
}

/// A flow and its path.
pub(crate) struct Flow {
    /// Of all paths of the connection.
    controller: Rc<RefCell<Box<dyn Controller>>>,
    path: PathId,
    rng: RngStream,
    pub(crate) link: Link,
    pub(crate) now: Instant,
    link_free_at: Instant,
    next_send_time: Instant,
    local_drop: bool,
    packets: VecDeque<Packet>,
    unacked: u32,
    sent: u32,
    pub(crate) una: u64,
    next: u64,
    delivered_at: Instant,
    first_sent: Instant,
    srtt: Span,
    min_rtt: Span,
    ca_state: CaState,
    high_seq: u64,
    /// Times of the reductions.
    pub(crate) reductions: Vec<Instant>,
}

impl Flow {
    pub(crate) fn new(algorithm: &str, set: &[(&str, ParamValue)], initial_window: u32, link: Link) -> Self {
        Self::group(algorithm, set, initial_window, &[link]).remove(0)
    }

    /// One connection over several paths, each with a link of its own: a flow for each.
    pub(crate) fn group(algorithm: &str, set: &[(&str, ParamValue)], initial_window: u32, links: &[Link]) -> Vec<Self> {
        let set: BTreeMap<_, _> = set.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let entry = find(algorithm).expect("registered");
        let controller = Rc::new(RefCell::new(entry.controller(&set).expect("allowed")));
        let paths = (0..).map(PathId).zip(links);
        paths.map(|(path, link)| Self::on(controller.clone(), path, initial_window, *link)).collect()
    }

    fn on(controller: Rc<RefCell<Box<dyn Controller>>>, path: PathId, initial_window: u32, link: Link) -> Self {
        let mut flow = Self {
            controller,
            path,
            rng: RngStream::named(1, "controller"),
            link,
            now: Instant::ZERO,
            link_free_at: Instant::ZERO,
            next_send_time: Instant::ZERO,
            local_drop: false,
            packets: VecDeque::new(),
            unacked: 0,
            sent: 0,
            una: 0,
            next: 0,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            ca_state: CaState::Open,
            high_seq: 0,
            reductions: Vec::new(),
        };
        flow.notify(&PathEvent::PathUp(PathInfo {
            mss: MSS,
            initial_window,
            rtt: Some(link.service + link.delay),
            tick: Span::from_millis(1),
            cwnd_clamp: u32::MAX / 2,
            reduction: Reduction::Proportional,
        }));
        flow
    }

    pub(crate) fn decision(&self) -> Decision {
        self.controller.borrow().decision(self.path)
    }

    fn notify(&mut self, event: &PathEvent) {
        let mut cx = Context { now: self.now, rng: &mut self.rng };
        self.controller.borrow_mut().on_event(self.path, event, &mut cx);
    }

    /// Runs until `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        while self.now < end {
            self.step();
        }
    }

    /// Runs all flows until `end`, in the order of their events.
    pub(crate) fn run_together(flows: &mut [Self], end: Instant) {
        let next = |flows: &mut [Self]| (0..flows.len()).min_by_key(|&index| flows[index].next_event());
        while let Some(index) = next(flows).filter(|&index| flows[index].next_event() < end) {
            flows[index].step();
        }
    }

    fn arrival(&self) -> Instant {
        self.packets.front().map_or(Instant::NEVER, |packet| packet.arrives)
    }

    fn next_event(&self) -> Instant {
        let may_send = !self.local_drop && self.in_flight() < self.decision().cwnd;
        if may_send { self.now.max(self.next_send_time).min(self.arrival()) } else { self.arrival() }
    }

    /// The next event: a packet is sent, or one arrives.
    pub(crate) fn step(&mut self) {
        let (arrival, departure) = (self.arrival(), self.now.max(self.next_send_time));
        if !self.local_drop && self.in_flight() < self.decision().cwnd && departure <= arrival {
            self.now = departure;
            self.send();
        } else {
            self.now = arrival;
            self.receive();
        }
    }

    fn in_flight(&self) -> u32 {
        self.packets.len() as u32 + self.unacked
    }

    fn send(&mut self) {
        let backlog = self.link_free_at.since(self.now).as_nanos().div_ceil(self.link.service.as_nanos().max(1));
        if backlog > self.link.queue {
            self.local_drop = true;
            return self.on_congestion(Cause::LocalDrop);
        }
        if self.in_flight() == 0 {
            (self.delivered_at, self.first_sent) = (self.now, self.now);
        }
        self.link_free_at = self.link_free_at.max(self.now) + self.link.service;
        self.next += 1;
        self.sent += 1;
        self.packets.push_back(Packet {
            sent: self.now,
            arrives: self.link_free_at + self.link.delay,
            marked: self.link.mark_every > 0 && self.next.is_multiple_of(self.link.mark_every),
            in_flight: self.in_flight() + 1,
            delivered: self.una,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
        });
        if let Some(rate) = self.decision().pacing_rate {
            self.next_send_time = self.now + rate.time_for(u64::from(MSS));
        }
    }

    fn receive(&mut self) {
        let packet = self.packets.pop_front().expect("a window is never zero, so something is under way");
        self.unacked += 1;
        self.local_drop = false;
        let waits = self.link.delayed_acks && self.una >= QUICK_ACKS && self.unacked < 2 && !self.packets.is_empty();
        if !waits {
            self.acknowledge(&packet);
        }
    }

    fn acknowledge(&mut self, newest: &Packet) {
        let prior_in_flight = self.in_flight();
        let acked = std::mem::take(&mut self.unacked);
        self.una += u64::from(acked);
        let rtt = self.now.since(newest.sent);
        self.measure_rtt(rtt);
        let rate_sample = self.sample(newest);
        (self.delivered_at, self.first_sent) = (self.now, newest.sent);
        if newest.marked {
            self.on_congestion(Cause::EcnMark);
        }
        if self.ca_state == CaState::Cwr && self.una >= self.high_seq {
            self.ca_state = CaState::Open;
            self.notify(&PathEvent::Recovered { to_ssthresh: true });
        }
        let sample = AckSample {
            acked,
            pkts_acked: acked,
            marked: if newest.marked { acked } else { 0 },
            newest_delivered: Some(SendState { tx_in_flight: newest.in_flight, ..SendState::default() }),
            one_way_delay: Some(rtt.saturating_sub(self.link.delay / 2)),
            sent: std::mem::take(&mut self.sent),
            prior_in_flight,
            in_flight: self.in_flight(),
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            rate_sample,
            delivered: self.una,
            snd_una: self.una,
            snd_nxt: self.next,
            una_advanced: true,
            cwnd_limited: self.is_cwnd_limited(prior_in_flight),
            may_raise_cwnd: true,
            ca_state: self.ca_state,
            ..AckSample::default()
        };
        self.notify(&PathEvent::Ack(sample));
    }

    /// A sender that is not paced always fills its window. In slow start, half is enough, as in Linux.
    fn is_cwnd_limited(&self, in_flight: u32) -> bool {
        let Decision { cwnd: window, ssthresh: threshold, pacing_rate: pacing } = self.decision();
        pacing.is_none() || in_flight >= window || window < threshold && window < 2 * in_flight
    }

    fn measure_rtt(&mut self, rtt: Span) {
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt = if self.srtt == Span::ZERO { rtt } else { (self.srtt * 7 + rtt) / 8 };
    }

    fn sample(&self, newest: &Packet) -> Option<RateSample> {
        let interval = newest.sent.since(newest.first_sent).max(self.now.since(newest.delivered_at));
        let sample = RateSample {
            delivered: (self.una - newest.delivered) as u32,
            interval,
            prior_delivered: newest.delivered,
            app_limited: false,
            ack_delayed: false,
        };
        (interval >= self.min_rtt).then_some(sample)
    }

    fn on_congestion(&mut self, cause: Cause) {
        if self.ca_state < CaState::Cwr {
            self.notify(&PathEvent::Congestion { cause, reduce_cwnd: true, in_flight: self.in_flight() });
            (self.ca_state, self.high_seq, self.sent) = (CaState::Cwr, self.next, 0);
            self.reductions.push(self.now);
        }
    }
}
