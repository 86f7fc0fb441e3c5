//! A connection over the test network whose packets are marked, or refused by the host's own queue, and never lost on
//! the way, so that there are no retransmissions.

use ropewalk_control::registry::find;
use ropewalk_control::{CaState, Cause, Decision, LinuxRelease, ParamValue, PathInfo, Reduction};
use sender::path::{AckedPackets, ControllerHandle, Outstanding, PathSender};
use sender::recovery::{PendingRateSample, SendSnapshot};
use std::collections::BTreeMap;
use testnet::{LinkConfig, Network};
use units::{Instant, PathId, Rate, RngStream, Span};

const MSS: u32 = 1448;
/// Acknowledgements that a receiver sends without delay at the start.
const QUICK_ACKS: u64 = 16;

/// The bottleneck and the delay of a path.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// Transmission time of a packet.
    pub(crate) transmission: Span,
    /// The rest of the round-trip time.
    pub(crate) delay: Span,
    /// Every `mark_every`th packet is CE-marked; none if zero.
    pub(crate) mark_every: u64,
    /// Packets sent with more than this number in flight are CE-marked.
    pub(crate) mark_above: u32,
    /// Limit of the queue of the sender's own interface, packets; it refuses packets beyond (Linux's NET_XMIT_CN).
    pub(crate) queue: u64,
    /// Whether the receiver acknowledges every second packet only.
    pub(crate) delayed_acks: bool,
}

/// 1 ms a packet, 20 ms round trip: 20 packets fill the path.
pub(crate) const LINK: Link = Link {
    transmission: Span::from_millis(1),
    delay: Span::from_millis(19),
    mark_every: 0,
    mark_above: u32::MAX,
    queue: u64::MAX,
    delayed_acks: false,
};

impl Link {
    /// At 8 Gbit/s a byte takes a nanosecond.
    fn config(self) -> [LinkConfig; 2] {
        let rate = (self.transmission > Span::ZERO).then(|| Rate::from_mbit(8000));
        [LinkConfig { rate, delay: self.delay, ..LinkConfig::ideal() }, LinkConfig::ideal()]
    }
}

#[derive(Clone, Debug)]
struct Packet {
    seq: u64,
    sent: Instant,
    marked: bool,
    snapshot: SendSnapshot,
}

/// The sender's side of one path.
pub(crate) struct Path {
    sender: PathSender,
    pub(crate) link: Link,
    /// Packets acknowledged.
    pub(crate) snd_una: u64,
    snd_nxt: u64,
    /// Received packets that a delayed acknowledgement will cover.
    unacked: Vec<Packet>,
    /// Time at which the bottleneck has sent all queued packets.
    idle_at: Instant,
    /// Whether the queue has refused a packet since the latest arrival.
    local_drop: bool,
    /// Times of the reductions that the algorithm has not asked for.
    pub(crate) reductions: Vec<Instant>,
}

impl Path {
    fn in_flight(&self) -> u32 {
        (self.snd_nxt - self.snd_una) as u32
    }

    fn outstanding(&self) -> Outstanding {
        let packets = self.in_flight();
        let (snd_una, snd_nxt) = (self.snd_una, self.snd_nxt);
        Outstanding { in_flight: packets, packets_out: packets, sacked: 0, snd_una, snd_nxt }
    }

    /// Time at which the next packet may be sent.
    fn next_send_time(&self) -> Instant {
        let may_send = !self.local_drop && self.sender.has_room(self.in_flight());
        if may_send { self.sender.next_send_time() } else { Instant::NEVER }
    }

    /// Packets in the queue.
    fn backlog(&self, now: Instant) -> u64 {
        self.idle_at.since(now).as_nanos().div_ceil(self.link.transmission.as_nanos().max(1))
    }

    fn reduce(&mut self, now: Instant, cause: Cause, controller: &mut ControllerHandle) {
        if self.sender.ca_state() == CaState::Open {
            self.sender.enter_reduction(now, cause, false, CaState::Cwr, &self.outstanding(), controller);
            self.reductions.extend((cause != Cause::Requested).then_some(now));
        }
    }
}

/// A bulk sender over one or more paths.
pub(crate) struct Connection {
    controller: ControllerHandle,
    network: Network<Packet>,
    pub(crate) paths: Vec<Path>,
    pub(crate) now: Instant,
}

impl Connection {
    pub(crate) fn new(algorithm: &str, set: &[(&str, ParamValue)], initial_window: u32, links: &[Link]) -> Self {
        Self::seeded(1, algorithm, set, initial_window, links)
    }

    /// As [`Self::new`], with a seed for what the algorithm draws.
    pub(crate) fn seeded(
        seed: u64,
        algorithm: &str,
        set: &[(&str, ParamValue)],
        initial_window: u32,
        links: &[Link],
    ) -> Self {
        let set: BTreeMap<_, _> = set.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let controller = find(algorithm).expect("registered").controller(&set).expect("allowed");
        let rng = RngStream::named(seed, "controller");
        let mut controller = ControllerHandle { controller: Some(controller), rng };
        let path = |(id, link): (u16, &Link)| {
            let mut sender = PathSender::new(PathId(id), initial_window, Span::from_secs(1));
            let info = PathInfo {
                mss: MSS,
                initial_window,
                rtt: Some(link.delay + link.transmission),
                tick: Span::from_millis(1),
                cwnd_clamp: u32::MAX / 2,
                reduction: Reduction::Proportional,
                release: LinuxRelease::V6_18,
            };
            sender.start(Instant::ZERO, info, &mut controller);
            Path {
                sender,
                link: *link,
                snd_una: 0,
                snd_nxt: 0,
                unacked: Vec::new(),
                idle_at: Instant::ZERO,
                local_drop: false,
                reductions: Vec::new(),
            }
        };
        let paths = (0..).zip(links).map(path).collect();
        let network = Network::new(1, links.iter().map(|link| link.config()).collect());
        Self { controller, network, paths, now: Instant::ZERO }
    }

    /// The decision for the first path.
    pub(crate) fn decision(&self) -> Decision {
        self.paths[0].sender.decision()
    }

    /// The congestion window of each path.
    pub(crate) fn windows(&self) -> Vec<u32> {
        self.paths.iter().map(|path| path.sender.decision().cwnd).collect()
    }

    /// Runs until `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        while self.now < end {
            self.step();
        }
    }

    /// Runs until the first path has had so many reductions.
    pub(crate) fn run_until_reductions(&mut self, count: usize) {
        while self.paths[0].reductions.len() < count {
            self.step();
        }
    }

    /// Sends what may be sent, and goes on to the next acknowledgement or send time.
    pub(crate) fn step(&mut self) {
        (0..self.paths.len()).for_each(|path| self.send(path));
        let next_send = self.paths.iter().map(Path::next_send_time).min().expect("there is a path");
        self.now = self.now.max(next_send.min(self.network.next_event_time()));
        if let Some(arrival) = self.network.receive(self.now) {
            self.receive(arrival.path, arrival.datagram);
        }
    }

    fn send(&mut self, index: usize) {
        let (now, path) = (self.now, &mut self.paths[index]);
        while path.next_send_time() <= now {
            if path.backlog(now) > path.link.queue {
                path.local_drop = true;
                path.reduce(now, Cause::LocalDrop, &mut self.controller);
                break;
            }
            path.idle_at = path.idle_at.max(now) + path.link.transmission;
            path.sender.before_send(now, path.in_flight(), false, &mut self.controller);
            path.snd_nxt += 1;
            let snapshot = path.sender.on_sent(now, path.in_flight() > 1, path.in_flight(), 1);
            let mark_every = path.link.mark_every;
            let marked =
                mark_every > 0 && path.snd_nxt.is_multiple_of(mark_every) || path.in_flight() > path.link.mark_above;
            let packet = Packet { seq: path.snd_nxt, sent: now, marked, snapshot };
            let bytes = path.link.transmission.as_nanos() as u32;
            self.network.send_copies(now, (0, index), bytes, packet, vec![Span::ZERO]);
            if let Some(rate) = path.sender.decision().pacing_rate {
                path.sender.pace(now, MSS, rate, MSS);
            }
        }
        path.sender.validate_cwnd(now, &path.outstanding(), None, &mut self.controller);
    }

    fn receive(&mut self, index: usize, packet: Packet) {
        let path = &mut self.paths[index];
        path.local_drop = false;
        path.unacked.push(packet);
        let packets = path.unacked.len() as u64;
        let more_in_flight = u64::from(path.in_flight()) > packets;
        let is_delayed = path.link.delayed_acks && path.snd_una >= QUICK_ACKS && packets < 2 && more_in_flight;
        if !is_delayed {
            let packets = std::mem::take(&mut path.unacked);
            self.acknowledge(index, &packets);
        }
    }

    fn acknowledge(&mut self, index: usize, packets: &[Packet]) {
        let (now, controller, path) = (self.now, &mut self.controller, &mut self.paths[index]);
        let newest = packets.last().expect("an acknowledgement covers a packet");
        let prior_state = path.sender.prior_state(path.in_flight());
        path.snd_una += packets.len() as u64;
        let rtt = now.since(newest.sent);
        path.sender.update_rtt(rtt, path.snd_una, path.snd_nxt);
        path.sender.update_min_rtt(now, rtt);
        let mut rate_sample = PendingRateSample::default();
        for packet in packets {
            path.sender.on_delivered(&mut rate_sample, packet.seq, packet.sent, 1, &packet.snapshot);
        }
        let marked = packets.iter().filter(|packet| packet.marked).count() as u32;
        let acked = AckedPackets {
            rate_sample,
            marked,
            pkts_acked: packets.len() as u32,
            rtt: Some(rtt),
            one_way_delay: Some(rtt.saturating_sub(path.link.delay / 2)),
            return_queueing: Span::ZERO,
            advanced: true,
            may_raise_cwnd: true,
            ..AckedPackets::default()
        };
        path.sender.report_progress(now, &prior_state, &acked, &path.outstanding(), controller);
        if marked > 0 {
            path.reduce(now, Cause::EcnMark, controller);
        }
        if path.sender.ca_state() == CaState::Cwr && path.snd_una >= path.sender.high_seq() {
            path.sender.leave_reduction(now, true, controller);
        }
        path.sender.finish_ack(now, &prior_state, &acked, &path.outstanding(), controller);
        if path.sender.is_asked_to_reduce(controller) {
            path.reduce(now, Cause::Requested, controller);
        }
    }
}
