//! A sender over a link of 10 Mbit/s with 40 ms of RTT and a queue of 1 s: what each algorithm delivers, and its RTT.
//!
//!     cargo run --package ropewalk-sender --example bottleneck -- cubic bbr3
//!
//! Nothing is lost, so that only the calls of every transport are here: see the crate's documentation for losses.

use control::registry;
use link::{EcnField, Packet, Pipe, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit};
use ropewalk_sender::path::{AckedPackets, ControllerHandle, Outstanding, PathSender};
use ropewalk_sender::recovery::SendSnapshot;
use std::collections::BTreeMap;
use units::{Instant, PathId, Rate, RngStream, Span};

const BYTES: u32 = 1250;
const MBIT: u64 = 10;
const RTT: Span = Span::from_millis(40);

#[derive(Clone, Debug)]
struct Datagram {
    number: u64,
    sent: Instant,
    snapshot: SendSnapshot,
}

impl Packet for Datagram {
    fn bytes(&self) -> u32 {
        BYTES
    }
    fn flow(&self) -> u16 {
        0
    }
    fn ecn(&self) -> EcnField {
        EcnField::NotEct
    }
    fn mark(&mut self) {}
    fn duplicate(&mut self) -> Self {
        self.clone()
    }
    fn corrupt(&mut self) {}
}

/// The sender, and the link to a receiver whose acknowledgements take no time.
struct Flow {
    path: PathSender,
    controller: ControllerHandle,
    pipe: Pipe<Datagram>,
    sent: u64,
    delivered: u64,
}

impl Flow {
    fn new(algorithm: &str) -> Option<Self> {
        let controller = registry::find(algorithm)?.controller(&BTreeMap::new()).ok()?;
        let limit = QueueLimit::Time(Span::from_secs(1));
        let queue = QueueConfig { limit, ..QueueConfig::new(QueueDiscipline::DropTail) };
        let rate = Some(Rate::from_mbit(MBIT));
        let config = PipeConfig { rate, delay: RTT, queue, ..PipeConfig::default() };
        let mut flow = Self {
            path: PathSender::new(PathId(0), 10, Span::from_secs(1)),
            controller: ControllerHandle { controller: Some(controller), rng: RngStream::named(1, "controller") },
            pipe: Pipe::new(&config, RngStream::named(1, "pipe")),
            sent: 0,
            delivered: 0,
        };
        // As much as the path and its queue hold: nothing is lost.
        let cwnd_clamp = 800;
        let info = control::PathInfo { mss: BYTES, cwnd_clamp, ..control::PathInfo::DEFAULT };
        flow.path.start(Instant::ZERO, info, &mut flow.controller);
        Some(flow)
    }

    fn in_flight(&self) -> u32 {
        (self.sent - self.delivered) as u32
    }

    fn outstanding(&self) -> Outstanding {
        let packets = self.in_flight();
        let (snd_una, snd_nxt) = (self.delivered, self.sent);
        Outstanding { in_flight: packets, packets_out: packets, sacked: 0, snd_una, snd_nxt }
    }

    /// The time at which the next packet may be sent.
    fn next_send_time(&self) -> Instant {
        if self.path.has_room(self.in_flight()) { self.path.next_send_time() } else { Instant::NEVER }
    }

    fn send(&mut self, now: Instant) {
        while self.next_send_time() <= now {
            self.path.before_send(now, self.in_flight(), false, &mut self.controller);
            let snapshot = self.path.on_sent(now, self.in_flight() > 0, self.in_flight() + 1, 1);
            self.pipe.enqueue(now, Datagram { number: self.sent, sent: now, snapshot });
            self.sent += 1;
            if let Some(rate) = self.path.decision().pacing_rate {
                self.path.pace(now, BYTES, rate, BYTES);
            }
        }
        self.path.validate_cwnd(now, &self.outstanding(), None, &mut self.controller);
    }

    fn acknowledge(&mut self, now: Instant, packet: &Datagram) {
        let prior = self.path.prior_state(self.in_flight());
        let mut acked = AckedPackets { advanced: true, may_raise_cwnd: true, ..AckedPackets::default() };
        self.path.on_delivered(&mut acked.rate_sample, packet.number, packet.sent, 1, &packet.snapshot);
        self.delivered += 1;
        let (rtt, outstanding) = (now.since(packet.sent), self.outstanding());
        (acked.pkts_acked, acked.rtt) = (1, Some(rtt));
        self.path.update_rtt(rtt, outstanding.snd_una, outstanding.snd_nxt);
        self.path.update_min_rtt(now, rtt);
        self.path.finish_ack(now, &prior, &acked, &outstanding, &mut self.controller);
    }

    /// Runs until `end`; returns the smoothed RTT then, and the goodput, Mbit/s.
    fn run(mut self, end: Instant) -> (Span, f64) {
        let mut now = Instant::ZERO;
        while now < end {
            self.send(now);
            now = self.next_send_time().min(self.pipe.next_event_at());
            while let Some(packet) = self.pipe.dequeue_arrived(now) {
                self.acknowledge(now, &packet);
            }
        }
        let bits = self.delivered * u64::from(BYTES) * 8;
        (self.path.rtt().srtt(), bits as f64 / now.since(Instant::ZERO).as_nanos() as f64 * 1e3)
    }
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let names = if given.is_empty() { vec!["cubic".to_owned(), "bbr3".to_owned()] } else { given };
    for name in names {
        match Flow::new(&name) {
            Some(flow) => {
                let (srtt, goodput) = flow.run(Instant::ZERO + Span::from_secs(20));
                println!("{name:12} {goodput:5.2} Mbit/s, RTT {:5.1} ms", srtt.as_millis_f64());
            }
            None => println!("no algorithm `{name}` without a file"),
        }
    }
}

#[test]
fn cubic_fills_the_queue_and_bbr_does_not() {
    let run = |name| Flow::new(name).expect("built in").run(Instant::ZERO + Span::from_secs(20));
    let ((cubic_rtt, cubic), (bbr_rtt, bbr)) = (run("cubic"), run("bbr3"));
    for goodput in [cubic, bbr] {
        assert!(goodput > 0.95 * MBIT as f64 && goodput <= MBIT as f64, "{goodput}");
    }
    // A window of 800 packets of 1 ms; BBR has at most two bandwidth-delay products in flight.
    assert!(cubic_rtt > Span::from_millis(750) && bbr_rtt <= RTT * 2 + Span::from_millis(2), "{cubic_rtt} {bbr_rtt}");
}
