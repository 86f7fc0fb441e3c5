//! A connection over the test network whose packets are marked and never lost, so that there are no retransmissions.

use control::registry::find;
use control::{CaState, Cause, Decision, ParamValue, PathInfo, Reduction};
use std::collections::BTreeMap;
use testnet::{LinkConfig, Network};
use transport::path::{AckedPackets, ControllerHandle, Outstanding, PathSender};
use transport::recovery::{PendingRateSample, SendSnapshot};
use units::{Instant, PathId, Rate, RngStream, Span};

const MSS: u32 = 1448;

/// The bottleneck and the delay of a path.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// Transmission time of a packet, in microseconds.
    pub(crate) transmission_us: u32,
    /// The rest of the round-trip time.
    pub(crate) delay: Span,
    /// Every `mark_every`th packet is CE-marked; none if zero.
    pub(crate) mark_every: u64,
    /// Packets sent with more than this number in flight are CE-marked.
    pub(crate) mark_above: u32,
}

/// 1 ms a packet, 20 ms round trip: 20 packets fill the path.
pub(crate) const LINK: Link =
    Link { transmission_us: 1000, delay: Span::from_millis(19), mark_every: 0, mark_above: u32::MAX };

impl Link {
    /// At 8 Mbit/s a byte takes a microsecond.
    fn config(self) -> [LinkConfig; 2] {
        let rate = (self.transmission_us > 0).then(|| Rate::from_mbit(8));
        [LinkConfig { rate, delay: self.delay, ..LinkConfig::ideal() }, LinkConfig::ideal()]
    }
}

#[derive(Clone)]
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
    pub(crate) una: u64,
    next: u64,
    /// Times of the reductions.
    pub(crate) reductions: Vec<Instant>,
}

impl Path {
    fn in_flight(&self) -> u32 {
        (self.next - self.una) as u32
    }

    fn outstanding(&self) -> Outstanding {
        let packets = self.in_flight();
        Outstanding { in_flight: packets, packets_out: packets, snd_una: self.una, snd_nxt: self.next }
    }

    /// When the next packet may be sent.
    fn next_send_time(&self) -> Instant {
        if self.sender.has_room(self.in_flight()) { self.sender.next_send_time() } else { Instant::NEVER }
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
        let set: BTreeMap<_, _> = set.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let controller = find(algorithm).expect("registered").controller(&set).expect("allowed");
        let rng = RngStream::named(1, "controller");
        let mut controller = ControllerHandle { controller: Some(controller), rng };
        let path = |(id, link): (u16, &Link)| {
            let mut sender = PathSender::new(PathId(id), initial_window, Span::from_secs(1));
            let info = PathInfo {
                mss: MSS,
                initial_window,
                rtt: Some(link.delay + Span::from_micros(u64::from(link.transmission_us))),
                tick: Span::from_millis(1),
                cwnd_clamp: u32::MAX / 2,
                reduction: Reduction::Proportional,
            };
            sender.start(Instant::ZERO, info, &mut controller);
            Path { sender, link: *link, una: 0, next: 0, reductions: Vec::new() }
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
    fn step(&mut self) {
        (0..self.paths.len()).for_each(|path| self.send(path));
        let next_send = self.paths.iter().map(Path::next_send_time).min().expect("there is a path");
        self.now = self.now.max(next_send.min(self.network.next_event_at()));
        if let Some(arrival) = self.network.receive(self.now) {
            self.acknowledge(arrival.path, &arrival.datagram);
        }
    }

    fn send(&mut self, index: usize) {
        let (now, path) = (self.now, &mut self.paths[index]);
        while path.next_send_time() <= now {
            path.sender.before_send(now, path.in_flight(), &mut self.controller);
            path.next += 1;
            let snapshot = path.sender.on_sent(now, path.in_flight() > 1, path.in_flight());
            let every = path.link.mark_every;
            let marked = every > 0 && path.next.is_multiple_of(every) || path.in_flight() > path.link.mark_above;
            let packet = Packet { seq: path.next, sent: now, marked, snapshot };
            self.network.send_copies(now, (0, index), path.link.transmission_us, packet, vec![Span::ZERO]);
            if let Some(rate) = path.sender.decision().pacing_rate {
                path.sender.pace(now, MSS, rate, MSS);
            }
        }
        path.sender.validate_cwnd(now, &path.outstanding(), false, &mut self.controller);
    }

    fn acknowledge(&mut self, index: usize, packet: &Packet) {
        let (now, controller, path) = (self.now, &mut self.controller, &mut self.paths[index]);
        let prior = path.sender.prior_state(path.in_flight());
        path.una += 1;
        let rtt = now.since(packet.sent);
        path.sender.update_rtt(rtt, path.una, path.next);
        path.sender.update_min_rtt(now, rtt);
        let mut rate_sample = PendingRateSample::default();
        path.sender.on_delivered(&mut rate_sample, packet.seq, packet.sent, &packet.snapshot);
        let outstanding = path.outstanding();
        if packet.marked && path.sender.ca_state() == CaState::Open {
            path.sender.enter_reduction(now, Cause::EcnMark, CaState::Cwr, &outstanding, controller);
            path.reductions.push(now);
        }
        if path.sender.ca_state() == CaState::Cwr && path.una >= path.sender.high_seq() {
            path.sender.leave_reduction(now, true, controller);
        }
        let acked = AckedPackets {
            rate_sample,
            marked: u32::from(packet.marked),
            pkts_acked: 1,
            rtt: Some(rtt),
            one_way_delay: Some(rtt.saturating_sub(path.link.delay / 2)),
            advanced: true,
            may_raise_cwnd: true,
            ..AckedPackets::default()
        };
        path.sender.finish_ack(now, &prior, &acked, &outstanding, controller);
    }
}
