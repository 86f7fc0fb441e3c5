//! MPTCP over random paths, as long as some packets get through on one of them: all data arrives, once and in order,
//! with every scheduler and both stacks. Counters over many seeds show that the rare situations are reached.

use crate::impairments::RandomImpairments;
use crate::mptcp_connection::{Connection, Copies, Options, new_receiver, new_sender, path};
use crate::random_ack;
use crate::tcp_connection::MSS;
use ropewalk_transport::mptcp::{
    Ack, ConnectionCounters, Input, MptcpStack, Output, ReceiverCounters, Segment, SendBufferRule, SubflowConfig,
};
use ropewalk_transport::path::LimitedTimes;
use ropewalk_transport::tcp::{self, SegmentKind};
use testnet::LinkConfig;
use units::{Instant, RngStream, Span};

const SEGMENTS: u64 = 600;

/// Impairments of a path.
#[derive(Clone, Copy, Debug)]
struct Impairments {
    random: RandomImpairments,
    /// Start and end of the time without any delivery.
    outage_ms: (u64, u64),
}

fn impairments(rng: &mut RngStream, first: bool) -> Impairments {
    let start = 1050 + rng.below(1000);
    let outage_ms = match rng.below(3) {
        0 if !first => (start, u64::MAX),
        1 => (start, start + rng.below(3000)),
        _ => (u64::MAX, u64::MAX),
    };
    Impairments { random: RandomImpairments::draw(rng, [0.1, 0.05, 0.1]), outage_ms }
}

fn copies(impairments: Impairments, now: Instant, rng: &mut RngStream) -> Copies {
    let is_dead = (impairments.outage_ms.0..impairments.outage_ms.1).contains(&now.as_millis());
    if is_dead { Vec::new() } else { impairments.random.copies(rng) }
}

/// Counters of a run.
struct RunCounters {
    limited: LimitedTimes,
    sender: ConnectionCounters,
    receiver: ReceiverCounters,
    failures: u64,
}

fn options(seed: u64, rng: &mut RngStream) -> (Options, Vec<[LinkConfig; 2]>) {
    let paths = 1 + rng.below(4) as usize;
    let subflow = |rng: &mut RngStream, first: bool| SubflowConfig {
        backup: !first && rng.chance(0.2),
        join: if first { Span::ZERO } else { Span::from_millis(rng.below(300)) },
        leave: (!first && rng.chance(0.2)).then(|| Span::from_millis(301 + rng.below(1000))),
    };
    let subflows = (0..paths).map(|index| subflow(rng, index == 0)).collect();
    let paths = (0..paths).map(|_| path(1 + rng.below(80), 20 + rng.below(400))).collect();
    let algorithms = ["reno", "lia", "olia", "balia", "wvegas", "coupled-bbr", "bbr", "cubic"];
    let options = Options {
        segments: SEGMENTS,
        subflows,
        scheduler: schedule::REGISTRY[seed as usize % schedule::REGISTRY.len()].name,
        congestion: algorithms[rng.below(algorithms.len() as u64) as usize],
        stack: if rng.chance(0.5) { MptcpStack::Upstream } else { MptcpStack::OutOfTree },
        send_buffer_rule: if seed % 4 < 2 { SendBufferRule::Sum } else { SendBufferRule::Largest },
        opportunistic: rng.chance(0.5),
        buffer: if rng.chance(0.3) { 60_000 } else { 1 << 22 },
        send_buffer: if rng.chance(0.2) { 10 + rng.below(30) } else { 10_000 },
        mss: MSS,
        option_bytes: 0,
        window: 200,
    };
    (options, paths)
}

fn run(seed: u64) -> RunCounters {
    let mut rng = RngStream::named(seed, "any paths");
    let (options, paths) = options(seed, &mut rng);
    let impairments: Vec<Impairments> = (0..paths.len()).map(|index| impairments(&mut rng, index == 0)).collect();
    let back = impairments.clone();
    let mut back_rng = RngStream::named(seed, "back");
    let mut connection = Connection::new(
        &options,
        &paths,
        Box::new(move |now, segment| copies(impairments[usize::from(segment.subflow)], now, &mut rng)),
        Box::new(move |now, ack| copies(back[usize::from(ack.subflow)], now, &mut back_rng)),
    );
    assert!(
        connection.run(SEGMENTS, Span::from_secs(3600)),
        "seed {seed} does not end: {} {:?} {:?}",
        connection.sender.acknowledged(),
        connection.sender.counters(),
        connection.receiver.counters()
    );
    assert_eq!(connection.receiver.delivered(), SEGMENTS, "seed {seed}");
    assert_eq!(connection.delays.len() as u64, SEGMENTS, "seed {seed}: each segment is acknowledged once");
    let failures = (0..paths.len()).map(|subflow| connection.sender.failures(subflow)).sum();
    let limited = connection.sender.limited_times(connection.now);
    RunCounters { limited, sender: *connection.sender.counters(), receiver: *connection.receiver.counters(), failures }
}

#[test]
fn all_data_arrives_and_every_kind_of_recovery_occurs() {
    let seeds = testing::campaign(600);
    let runs: Vec<RunCounters> = seeds.range().map(run).collect();
    if !seeds.reach_every_situation() {
        return;
    }
    let reached = |counter: fn(&RunCounters) -> u64| runs.iter().filter(|run| counter(run) > 0).count();
    assert!(reached(|run| run.sender.copies) > 30);
    assert!(reached(|run| run.sender.reinjected) > 100);
    assert!(reached(|run| run.sender.opportunistic_retransmissions) > 20);
    assert!(reached(|run| run.receiver.duplicates) > 100);
    assert!(reached(|run| run.receiver.copies_arrived_first) > 100);
    assert!(reached(|run| run.failures) > 50);
    assert!(reached(|run| run.limited.receive_window.as_micros()) > 50);
    assert!(reached(|run| run.limited.send_buffer.as_micros()) > 50);
}

#[test]
fn random_acknowledgements_are_handled() {
    for seed in testing::campaign(300).range() {
        let mut rng = RngStream::named(seed, "garbage");
        let options = options(seed, &mut rng).0;
        let mut sender = new_sender(&options);
        let mut now = Instant::ZERO + Span::from_secs(1);
        sender.handle(now, Input::Connect);
        for step in 0..300 {
            while let Output::Transmit(_) = sender.poll(now) {}
            let tcp = random_ack::ack(&mut rng, step < 8);
            let ack = Ack { subflow: rng.below(5) as u16, tcp, data_ack: random_ack::number(&mut rng) };
            sender.handle(now, Input::Ack(&ack));
            now += Span::from_millis(rng.below(40));
            sender.handle(now, Input::Timeout);
            assert!(sender.acknowledged() <= SEGMENTS, "seed {seed}");
        }
    }
}

#[test]
fn random_segments_are_handled() {
    for seed in testing::campaign(300).range() {
        let mut rng = RngStream::named(seed, "garbage for a receiver");
        let mut receiver = new_receiver(&options(seed, &mut rng).0);
        let mut now = Instant::ZERO + Span::from_secs(1);
        for _ in 0..1000 {
            let kinds =
                [SegmentKind::Data, SegmentKind::Data, SegmentKind::Data, SegmentKind::Syn, SegmentKind::HandshakeAck];
            let tcp = tcp::Segment {
                kind: kinds[rng.below(5) as usize],
                seq: random_ack::number(&mut rng),
                tsval: random_ack::number(&mut rng) as u32,
                tsecr: rng.bits() as u32,
                cwr: rng.chance(0.1),
                retransmission: rng.chance(0.1),
                psh: rng.chance(0.5),
            };
            // Subflows that do not exist, too.
            let (subflow, data) = (rng.below(6) as u16, random_ack::number(&mut rng));
            let segment = Segment { subflow, tcp, data_seq: data, copy: rng.chance(0.5) };
            let prior_delivered = receiver.delivered();
            if let Some(ack) = receiver.handle(now, &segment, rng.chance(0.1)) {
                assert_eq!((ack.subflow, ack.data_ack), (segment.subflow, receiver.delivered()), "seed {seed}");
            }
            assert!(receiver.delivered() >= prior_delivered, "seed {seed}");
            now += Span::from_millis(rng.below(40));
            while receiver.on_timeout(now).is_some() {}
        }
        assert!(receiver.counters().max_out_of_order < 5 * 200 + 5 * 1000, "seed {seed}: {:?}", receiver.counters());
    }
}
