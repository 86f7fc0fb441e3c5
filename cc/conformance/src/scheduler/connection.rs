//! A random MPTCP connection over paths that lose, delay and duplicate packets, and fail.

use super::CheckedScheduler;
use crate::Violation;
use control::Ecn;
use params::AlgorithmError;
use schedule::SchedulerEntry;
use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;
use transport::mptcp::{
    Ack, ConnectionConfig, Input, MptcpStack, Output, Receiver, Segment, SendBufferRule, Sender, SubflowConfig,
};
use transport::tcp::{receiver::ReceiverConfig, sender::LossRecovery, sender::SenderConfig};
use units::{Instant, RngStream, Span};

/// Number of data packets of a connection.
const PACKETS: u64 = 400;
/// Virtual time within which all data must arrive. It allows for the retransmission timeouts of many lost packets in a
/// row.
const LIMIT: Span = Span::from_secs(3600);
const MSS: u32 = 1000;

/// One direction of a path that a packet takes.
#[derive(Debug)]
struct Path {
    delay: Span,
    transmission: Span,
    loss: f64,
    duplication: f64,
    jitter: f64,
    /// Start and end of the outage, during which nothing is delivered.
    outage: (Instant, Instant),
    /// Time at which the bottleneck has sent all its queued packets.
    idle_at: Instant,
}

enum Packet {
    Segment(Segment),
    Ack(Ack),
}

/// The connection and the packets in transit, by arrival time.
struct Connection {
    sender: Sender,
    receiver: Receiver,
    paths: Vec<Path>,
    under_way: BTreeMap<(Instant, u64), Packet>,
    sent: u64,
    now: Instant,
    rng: RngStream,
}

/// Runs the connection for this seed.
pub(super) fn check(entry: &SchedulerEntry, seed: u64) -> Result<(), Violation> {
    let mut rng = RngStream::named(seed, "conformance");
    let paths: Vec<Path> = (0..1 + rng.below(4)).map(|index| Path::random(&mut rng, index == 0)).collect();
    let config = config(&mut rng, paths.len());
    let steps = describe(seed, &config, &paths);
    let mut connection = Connection::new(entry, config, paths, rng)?;
    crate::panics::caught(|| connection.run()).map_err(|violation| Violation { steps, ..violation })
}

fn config(rng: &mut RngStream, paths: usize) -> ConnectionConfig {
    let subflow = |index: usize, rng: &mut RngStream| SubflowConfig {
        backup: index > 0 && rng.chance(0.2),
        join: if index == 0 { Span::ZERO } else { Span::from_millis(rng.below(300)) },
        leave: (index > 0 && rng.chance(0.2)).then(|| Span::from_millis(301 + rng.below(1000))),
    };
    let subflows = (0..paths).map(|index| subflow(index, rng)).collect();
    let opportunistic = rng.chance(0.5);
    ConnectionConfig {
        tcp: SenderConfig {
            release: control::LinuxRelease::V6_1,
            mss: MSS,
            packet_bytes: MSS + 72,
            max_header: SenderConfig::MAX_HEADER,
            initial_window: 10,
            timestamps: true,
            sack: true,
            ecn: false,
            accurate_ecn: false,
            pacing: false,
            tso: true,
            offload: false,
            small_queues: true,
            send_buffer: if rng.chance(0.2) { 10 + rng.below(30) } else { 10_000 },
            initial_send_buffer: 16 << 10,
            notsent_lowat: u64::MAX,
            slow_start_after_idle: true,
            early_retrans: true,
            reordering: 3,
            max_reordering: 300,
            tick: Span::from_millis(1),
            recovery: LossRecovery::Rack,
            handshake: true,
            initial_rto: Span::from_secs(1),
            window_clamp: 200,
        },
        subflows,
        stack: if rng.chance(0.5) { MptcpStack::Upstream } else { MptcpStack::OutOfTree },
        send_buffer: SendBufferRule::Sum,
        opportunistic_retransmission: opportunistic,
        penalisation: opportunistic,
    }
}

fn describe(seed: u64, config: &ConnectionConfig, paths: &[Path]) -> Vec<String> {
    let path = |(index, path): (usize, &Path)| format!("path {index}: {:?}, {path:?}", config.subflows[index]);
    let connection = format!("connection {seed}: {PACKETS} packets of data, stack {:?}", config.stack);
    std::iter::once(connection).chain(paths.iter().enumerate().map(path)).collect()
}

impl Path {
    fn random(rng: &mut RngStream, first: bool) -> Self {
        let start = Instant::ZERO + Span::from_millis(1050 + rng.below(1000));
        let outage = match rng.below(3) {
            0 if !first => (start, Instant::NEVER),
            1 => (start, start + Span::from_millis(rng.below(3000))),
            _ => (Instant::NEVER, Instant::NEVER),
        };
        let [loss, duplication, jitter] = [0.1, 0.05, 0.1].map(|max| rng.unit() * max);
        let (delay, transmission) = (Span::from_millis(1 + rng.below(80)), Span::from_micros(20 + rng.below(400)));
        Self { delay, transmission, loss, duplication, jitter, outage, idle_at: Instant::ZERO }
    }

    /// The arrival times of the copies of a packet with this transmission time.
    fn arrivals(&mut self, now: Instant, transmission: Span, rng: &mut RngStream) -> Vec<Instant> {
        if (self.outage.0..self.outage.1).contains(&now) {
            return Vec::new();
        }
        let leaves = if transmission > Span::ZERO { now.max(self.idle_at) + transmission } else { now };
        self.idle_at = self.idle_at.max(leaves);
        let mut copy = |probability: f64| {
            let jitter = if rng.chance(self.jitter) { Span::from_micros(rng.below(30_000)) } else { Span::ZERO };
            rng.chance(probability).then(|| leaves + self.delay + jitter)
        };
        [copy(1.0 - self.loss), copy(self.duplication)].into_iter().flatten().collect()
    }
}

impl Connection {
    fn new(
        entry: &SchedulerEntry,
        config: ConnectionConfig,
        paths: Vec<Path>,
        rng: RngStream,
    ) -> Result<Self, Violation> {
        let scheduler = CheckedScheduler::new(entry, |violation| AlgorithmError(Box::new(violation)).raise())?;
        let reno = control::registry::find("reno").expect("built in");
        let controller = reno.controller(&BTreeMap::new()).expect("no parameters");
        let receiver = ReceiverConfig {
            mss: MSS,
            option_bytes: 0,
            timestamps: true,
            sack: true,
            quick_ack: false,
            gro: 1,
            buffer: [1 << 22; 2],
            release: control::LinuxRelease::V6_1,
            ecn: Ecn::Classic,
            tick: Span::from_millis(1),
        };
        let receiver = Receiver::new(receiver, paths.len(), config.stack);
        let control_rng = RngStream::named(1, "paths");
        let mut sender = Sender::new(config, controller, control_rng, Box::new(scheduler), entry.fill);
        sender.handle(Instant::ZERO, Input::Write(PACKETS));
        let now = Instant::ZERO + Span::from_secs(1);
        Ok(Self { sender, receiver, paths, under_way: BTreeMap::new(), sent: 0, now, rng })
    }

    /// Runs until everything is acknowledged.
    fn run(&mut self) -> Result<(), Violation> {
        let end = self.now + LIMIT;
        self.sender.handle(self.now, Input::Connect);
        loop {
            let deadline = self.poll();
            if self.sender.acknowledged() >= PACKETS {
                return Ok(());
            }
            let timer = deadline.min(self.receiver.deadline());
            let next = self.under_way.first_key_value().map_or(timer, |((arrival, _), _)| timer.min(*arrival));
            if next > end {
                let message = format!("{} of {PACKETS} packets arrived in {LIMIT}", self.sender.acknowledged());
                return Err(Violation { rule: "all data arrives", message, steps: Vec::new() });
            }
            self.now = self.now.max(next);
            self.advance(timer);
        }
    }

    fn poll(&mut self) -> Instant {
        loop {
            match self.sender.poll(self.now) {
                Output::Transmit(segment) => self.send(segment.subflow, || Packet::Segment(segment)),
                Output::WaitUntil(deadline) => return deadline,
            }
        }
    }

    fn send(&mut self, subflow: u16, packet: impl Fn() -> Packet) {
        let path = &mut self.paths[usize::from(subflow)];
        let transmission = if matches!(packet(), Packet::Segment(_)) { path.transmission } else { Span::ZERO };
        for arrival in path.arrivals(self.now, transmission, &mut self.rng) {
            self.sent += 1;
            self.under_way.insert((arrival, self.sent), packet());
        }
    }

    /// Handles the packet that arrives now, or otherwise the timers.
    fn advance(&mut self, timer: Instant) {
        let arrived = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now).map(OccupiedEntry::remove);
        match arrived {
            Some(Packet::Segment(segment)) => {
                let ack = self.receiver.handle(self.now, &segment, false);
                self.receiver.drain_reassembly_delays(|_| ());
                ack.into_iter().for_each(|ack| self.send(ack.subflow, || Packet::Ack(ack)));
            }
            Some(Packet::Ack(ack)) => {
                self.sender.handle(self.now, Input::Ack(&ack));
                self.sender.drain_delays(|_, _| ());
            }
            None if timer <= self.now => {
                self.sender.handle(self.now, Input::Timeout);
                while let Some(ack) = self.receiver.on_timeout(self.now) {
                    self.send(ack.subflow, || Packet::Ack(ack));
                }
            }
            None => {}
        }
    }
}
