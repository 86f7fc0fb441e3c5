//! TCP over random networks, as long as some packets get through: every segment arrives, in order, and the connection
//! ends. Counters over many seeds show that the rare situations are reached.

use crate::impairments::RandomImpairments;
use crate::random_ack;
use crate::tcp_connection::{Connection, FilterOutcome, ONE_WAY_DELAY, Options, new_sender};
use control::Ecn;
use ropewalk_transport::tcp::sender::{Input, LossRecovery, Output, SenderCounters};
use units::{Instant, RngStream, Span};

/// Impairments of a network.
#[derive(Clone, Copy, Debug)]
struct Impairments {
    random: RandomImpairments,
    /// Extra delay of all packets in every fourth half second, milliseconds.
    stall_ms: u64,
}

fn impairments(rng: &mut RngStream) -> Impairments {
    Impairments { random: RandomImpairments::draw(rng, [0.2, 0.1, 0.3]), stall_ms: rng.below(2) * 400 }
}

fn filter_outcome(impairments: Impairments, now: Instant, rng: &mut RngStream) -> FilterOutcome {
    let is_stalled = (now.as_millis() / 500) % 4 == 3;
    let delay = ONE_WAY_DELAY + Span::from_millis(if is_stalled { impairments.stall_ms } else { 0 });
    let copies = impairments.random.copies(rng).into_iter().map(|extra| delay + extra).collect();
    FilterOutcome { copies, marked: rng.chance(0.01) }
}

fn run(seed: u64) -> SenderCounters {
    let mut rng = RngStream::named(seed, "any network");
    let options = Options {
        segments: 300,
        sack: !rng.chance(0.2),
        timestamps: !rng.chance(0.3),
        ecn: rng.chance(0.3),
        echo: [Ecn::Classic, Ecn::PerPacket, Ecn::L4s][(seed % 3) as usize],
        send_buffer: if rng.chance(0.2) { 1 + rng.below(3) } else { 1000 },
        tso: seed % 5 != 4,
        offload: seed % 3 == 2,
        recovery: if seed % 4 == 3 { LossRecovery::Fack } else { LossRecovery::Rack },
        handshake: seed % 8 != 7,
        quick_ack: seed % 16 == 15,
    };
    let (forward, back) = (impairments(&mut rng), impairments(&mut rng));
    let mut back_rng = RngStream::named(seed, "back");
    let mut connection = Connection::new(
        options,
        Box::new(move |now, _| filter_outcome(forward, now, &mut rng)),
        Box::new(move |now, _| filter_outcome(back, now, &mut back_rng)),
    );
    assert!(connection.run(Span::from_secs(3600)), "seed {seed}: {options:?} {forward:?} {back:?} does not end");
    assert_eq!((connection.receiver.delivered(), connection.sender.acknowledged()), (300, 300), "seed {seed}");
    let counters = connection.sender.counters();
    assert_eq!(counters.sent, 300 + counters.retransmitted, "seed {seed}");
    assert!(
        counters.lost >= counters.lost_retransmissions && counters.undone <= counters.recoveries + counters.timeouts,
        "seed {seed}: {counters:?}"
    );
    counters
}

#[test]
fn every_segment_arrives_and_every_kind_of_recovery_occurs() {
    let seeds = testing::campaign(600);
    let runs: Vec<SenderCounters> = seeds.range().map(run).collect();
    if !seeds.reach_every_situation() {
        return;
    }
    let reached = |counter: fn(&SenderCounters) -> u64| runs.iter().filter(|counters| counter(counters) > 0).count();
    assert!(reached(|counters| counters.recoveries) > 100);
    assert!(reached(|counters| counters.timeouts) > 100);
    assert!(reached(|counters| counters.tlp_probes) > 100);
    assert!(reached(|counters| counters.undone) > 20);
    assert!(reached(|counters| counters.spurious_timeouts) > 5);
    assert!(reached(|counters| counters.tlp_recoveries) > 5);
    assert!(reached(|counters| counters.lost_retransmissions) > 20);
    assert!(reached(|counters| counters.duplicates) > 100);
}

#[test]
fn random_acknowledgements_are_handled() {
    for seed in testing::campaign(300).range() {
        let mut rng = RngStream::named(seed, "garbage");
        let options = Options { sack: !rng.chance(0.2), ecn: true, ..Options::default() };
        let mut sender = new_sender(options);
        let mut now = Instant::ZERO + Span::from_secs(1);
        sender.handle(now, Input::Connect);
        for step in 0..500 {
            while let Output::Transmit(_) = sender.poll(now) {}
            let ack = random_ack::ack(&mut rng, step < 2);
            sender.handle(now, Input::Ack(&ack));
            now += Span::from_millis(rng.below(40));
            sender.handle(now, Input::Timeout);
            let pipe = sender.pipe();
            assert!(pipe.sacked_out + pipe.lost_out <= pipe.packets_out, "seed {seed}: {pipe:?}");
        }
    }
}
