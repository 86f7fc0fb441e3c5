//! A link that gets a fifth more than it carries, with drop-tail and with CoDel: the delay of the queue, and the drops.
//!
//!     cargo run --package ropewalk-link --example queues

use ropewalk_link::{CoDelConfig, EcnField, Packet, Pipe, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit};
use units::{Instant, Rate, RngStream, Span};

/// A full packet of Ethernet, with its time of sending.
#[derive(Clone, Debug)]
struct Datagram {
    sent: Instant,
}

impl Packet for Datagram {
    fn bytes(&self) -> u32 {
        1250
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

/// The delay of the last packet that arrives within 20 s, and the share of packets that were dropped.
fn overload(discipline: QueueDiscipline) -> (Span, f64) {
    let queue = QueueConfig { discipline, limit: QueueLimit::Packets(1000), ..QueueConfig::new(discipline) };
    let rate = Some(Rate::from_mbit(10));
    let config = PipeConfig { rate, delay: Span::from_millis(10), queue, ..PipeConfig::default() };
    let mut pipe: Pipe<Datagram> = Pipe::new(&config, RngStream::named(1, "pipe"));
    // A packet takes 1 ms, and there are six in 5 ms.
    let interval = Span::from_micros(833);
    let (end, mut send_at, mut delay) = (Instant::ZERO + Span::from_secs(20), Instant::ZERO, Span::ZERO);
    loop {
        let now = send_at.min(pipe.next_event_at());
        if now > end {
            let counters = pipe.counters();
            return (delay, counters.dropped as f64 / counters.offered as f64);
        }
        while let Some(packet) = pipe.dequeue_arrived(now) {
            delay = now.since(packet.sent);
        }
        while pipe.take_discarded().is_some() {}
        if now == send_at {
            pipe.enqueue(now, Datagram { sent: now });
            send_at += interval;
        }
    }
}

fn main() {
    let disciplines =
        [("drop-tail", QueueDiscipline::DropTail), ("CoDel", QueueDiscipline::CoDel(CoDelConfig::default()))];
    for (name, discipline) in disciplines {
        let (delay, dropped) = overload(discipline);
        println!("{name:10} delay {:6.1} ms, dropped {:.1} %", delay.as_millis_f64(), dropped * 100.0);
    }
}

#[test]
fn a_full_queue_delays_by_its_length_and_codel_by_less() {
    let (tail, dropped) = overload(QueueDiscipline::DropTail);
    // 1000 packets of 1 ms, and the propagation.
    assert!(tail.as_millis_f64() > 1009.0 && tail.as_millis_f64() <= 1012.0, "{tail:?}");
    assert!(dropped > 0.0 && dropped < 1.0 / 6.0, "a sixth does not fit, but for what the queue holds: {dropped}");
    let (codel, _) = overload(QueueDiscipline::CoDel(CoDelConfig::default()));
    assert!(codel < tail);
}
