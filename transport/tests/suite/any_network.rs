//! Whatever the network does, as long as some packets get through: every segment arrives, in order, and it ends.
//! A campaign over many seeds also shows that the rare situations are really reached.

use crate::garbage;
use crate::lockstep::{Connection, Fate, ONE_WAY, Options, new_sender};
use control::Ecn;
use ropewalk_transport::tcp::sender::{Input, LossRecovery, Output, SenderCounters};
use units::{Instant, RngStream, Span};

/// How unkind a network is.
#[derive(Clone, Copy, Debug)]
struct Impairments {
    loss: f64,
    duplication: f64,
    lateness: f64,
    /// Now and then everything stands still for this long, milliseconds.
    stall: u64,
}

fn impairments(stream: &mut RngStream) -> Impairments {
    Impairments {
        loss: stream.unit() * 0.2,
        duplication: stream.unit() * 0.1,
        lateness: stream.unit() * 0.3,
        stall: stream.below(2) * 400,
    }
}

fn fate(impairments: Impairments, now: Instant, stream: &mut RngStream) -> Fate {
    let mut copies = Vec::new();
    let stalled = (now.as_millis() / 500) % 4 == 3;
    for copy in 0..2 {
        if stream.chance(if copy == 0 { 1.0 - impairments.loss } else { impairments.duplication }) {
            let late = if stream.chance(impairments.lateness) { stream.below(30_000) } else { 0 };
            let stall = if stalled { impairments.stall } else { 0 };
            copies.push(ONE_WAY + Span::from_micros(late) + Span::from_millis(stall));
        }
    }
    Fate { copies, marked: stream.chance(0.01) }
}

fn run(seed: u64) -> SenderCounters {
    let mut stream = RngStream::named(seed, "any network");
    let options = Options {
        segments: 300,
        sack: !stream.chance(0.2),
        timestamps: !stream.chance(0.3),
        ecn: stream.chance(0.3),
        echo: if seed.is_multiple_of(2) { Ecn::Classic } else { Ecn::PerPacket },
        send_buffer: if stream.chance(0.2) { 1 + stream.below(3) } else { 1000 },
        recovery: if seed % 4 == 3 { LossRecovery::Fack } else { LossRecovery::Rack },
        handshake: seed % 8 != 7,
        quick_ack: seed % 16 == 15,
    };
    let (forward, back) = (impairments(&mut stream), impairments(&mut stream));
    let mut rng = RngStream::named(seed, "back");
    let mut connection = Connection::new(
        options,
        Box::new(move |now, _| fate(forward, now, &mut stream)),
        Box::new(move |now, _| fate(back, now, &mut rng)),
    );
    assert!(connection.run(Span::from_secs(3600)), "seed {seed}: {options:?} {forward:?} {back:?} does not end");
    assert_eq!((connection.receiver.delivered(), connection.sender.acknowledged()), (300, 300), "seed {seed}");
    let c = connection.sender.counters();
    assert_eq!(c.sent, 300 + c.retransmitted, "seed {seed}");
    assert!(c.lost >= c.lost_retransmissions && c.undone <= c.recoveries + c.timeouts, "seed {seed}: {c:?}");
    c
}

#[test]
fn every_segment_arrives_and_every_kind_of_repair_is_reached() {
    let all: Vec<SenderCounters> = (0..600).map(run).collect();
    let reached = |what: fn(&SenderCounters) -> u64| all.iter().filter(|counters| what(counters) > 0).count();
    assert!(reached(|c| c.recoveries) > 100);
    assert!(reached(|c| c.timeouts) > 100);
    assert!(reached(|c| c.tlp_probes) > 100);
    assert!(reached(|c| c.undone) > 20);
    assert!(reached(|c| c.spurious_timeouts) > 5);
    assert!(reached(|c| c.tlp_recoveries) > 5);
    assert!(reached(|c| c.lost_retransmissions) > 20);
    assert!(reached(|c| c.duplicates) > 100);
}

#[test]
fn acknowledgements_made_up_at_random_do_no_harm() {
    for seed in 0..300 {
        let mut stream = RngStream::named(seed, "garbage");
        let options = Options { sack: !stream.chance(0.2), ecn: true, ..Options::default() };
        let mut sender = new_sender(options);
        let mut now = Instant::ZERO + Span::from_secs(1);
        sender.handle(now, Input::Connect);
        for step in 0..500 {
            while let Output::Transmit(_) = sender.poll(now) {}
            let ack = garbage::ack(&mut stream, step < 2);
            sender.handle(now, Input::Ack(&ack));
            now += Span::from_millis(stream.below(40));
            sender.handle(now, Input::Timeout);
            let pipe = sender.pipe();
            assert!(pipe.sacked_out + pipe.lost_out <= pipe.packets_out, "seed {seed}: {pipe:?}");
        }
    }
}
