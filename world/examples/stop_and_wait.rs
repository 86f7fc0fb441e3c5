//! A transport of one's own in virtual time: stop-and-wait, over a link that loses packets, with a tap that counts them.
//!
//!     cargo run --package ropewalk-world --example stop_and_wait

use link::{LossModel, PipeConfig};
use ropewalk_world::{Arrival, Endpoint, Hosts, Outbox, Outgoing, Packet, PacketDescriptor, Step, Tap, Topology};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use units::{Instant, Rate, RngStream, Span};

const DATA_BYTES: u32 = 1250;
const ACK_BYTES: u32 = 40;
const TIMEOUT: Span = Span::from_millis(50);

/// What packets carry: a number of a packet, or that it has arrived.
#[derive(Clone, Copy, Debug)]
enum Content {
    Data(u64),
    Ack(u64),
}

/// A sender, or a receiver, which never has a deadline.
#[derive(Debug)]
struct Arq {
    /// Packets sent and acknowledged, or received, without those that came twice.
    done: u64,
    deadline: Instant,
}

impl Arq {
    fn send(&mut self, outbox: &mut Outbox<'_, Content>) {
        self.deadline = outbox.now() + TIMEOUT;
        outbox.send(Outgoing::new(0, DATA_BYTES, Content::Data(self.done)));
    }
}

impl Endpoint for Arq {
    type Content = Content;

    fn deadline(&self, _now: Instant) -> Instant {
        self.deadline
    }

    fn on_timeout(&mut self, outbox: &mut Outbox<'_, Content>) {
        self.send(outbox);
    }

    fn receive(&mut self, arrival: Arrival<Content>, outbox: &mut Outbox<'_, Content>) {
        match arrival.content {
            Content::Data(number) => {
                self.done += u64::from(number == self.done);
                outbox.send(Outgoing::new(arrival.path, ACK_BYTES, Content::Ack(number)));
            }
            Content::Ack(number) if number == self.done => {
                self.done += 1;
                self.send(outbox);
            }
            Content::Ack(_) => {}
        }
    }
}

/// Counts the packets that are lost.
#[derive(Debug)]
struct Losses(Arc<AtomicU64>);

impl Tap<Content> for Losses {
    fn on_step(&mut self, _: Instant, _: &Packet<Content>, _: PacketDescriptor, step: Step) {
        if matches!(step, Step::Lost { .. }) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}

/// Packets that are acknowledged within ten seconds, and those that are lost, over 10 Mbit/s and 10 ms each way.
fn run(loss: f64) -> (u64, u64) {
    let config = PipeConfig {
        rate: Some(Rate::from_mbit(10)),
        delay: Span::from_millis(10),
        loss: if loss > 0.0 { LossModel::Random(loss) } else { LossModel::None },
        ..PipeConfig::default()
    };
    let mut topology = Topology::default();
    let [there, back] = ["there", "back"].map(|name| topology.add_pipe(&config, RngStream::named(1, name)));
    topology.add_path([vec![there], vec![back]]);
    let ends = [Instant::ZERO, Instant::NEVER].map(|deadline| Arq { done: 0, deadline });
    let mut hosts = Hosts::new(topology, vec![[0, 1]], ends.into());
    let losses = Arc::new(AtomicU64::new(0));
    hosts.set_tap(Losses(losses.clone()));
    hosts.run_until(Instant::ZERO + Span::from_secs(10));
    hosts.assert_conserved();
    (hosts.hosts[0].done, losses.load(Relaxed))
}

fn main() {
    for loss in [0.0, 0.01, 0.1] {
        let (done, lost) = run(loss);
        println!("loss {:2.0} %: {done} packets, {lost} lost", loss * 100.0);
    }
}

#[test]
fn a_packet_takes_a_round_trip_and_a_loss_a_timeout() {
    // 1 ms and 32 us of transmission, and 20 ms of propagation.
    let round = Span::from_micros(21_032);
    let ten = Span::from_secs(10).0;
    assert_eq!(run(0.0), (ten / round.0, 0));
    let (done, lost) = run(0.1);
    // All of the time but that of the last packet goes to rounds and timeouts.
    let time = done * round.0 + lost * TIMEOUT.0;
    assert!(lost > 0 && time <= ten && ten - time <= TIMEOUT.0, "{done} packets, {lost} lost");
}
