//! Multipath QUIC over fixed and over random paths: as long as some packets get through, all data arrives, once and in
//! the order of its stream, with every scheduler.

use crate::impairments::RandomImpairments;
use crate::mptcp_connection::path;
use crate::quic_connection::{Connection, Copies, Options, new_receiver, new_sender};
use ropewalk_transport::quic::{
    AckRanges, ConnectionCounters, Content, Input, Output, Packet, PathAck, PathConfig, PathCounters, PathState,
    ReceiverCounters, Reply, ReplyContent,
};
use testnet::LinkConfig;
use units::{Instant, RngStream, Span};

const CHUNKS: u64 = 600;

fn pass() -> Copies {
    vec![Span::ZERO]
}

/// Impairments of a path in one direction.
#[derive(Clone, Copy, Debug)]
struct Impairments {
    random: RandomImpairments,
    /// Start and end of the time without any delivery.
    outage_ms: (u64, u64),
}

impl Impairments {
    fn draw(rng: &mut RngStream, is_first: bool) -> Self {
        let start = 1050 + rng.below(1000);
        let outage_ms = match rng.below(3) {
            0 if !is_first => (start, u64::MAX),
            1 => (start, start + rng.below(3000)),
            _ => (u64::MAX, u64::MAX),
        };
        Self { random: RandomImpairments::draw(rng, [0.1, 0.05, 0.1]), outage_ms }
    }

    fn copies(self, now: Instant, rng: &mut RngStream) -> Copies {
        let is_dead = (self.outage_ms.0..self.outage_ms.1).contains(&now.as_millis());
        if is_dead { Vec::new() } else { self.random.copies(rng) }
    }
}

/// Counters of a run.
struct RunCounters {
    flow_control_limited: Span,
    sender: ConnectionCounters,
    receiver: ReceiverCounters,
    paths: Vec<PathCounters>,
}

fn options(seed: u64, rng: &mut RngStream) -> (Options, Vec<[LinkConfig; 2]>) {
    let count = 1 + rng.below(4) as usize;
    let path_config = |rng: &mut RngStream, is_first: bool| PathConfig {
        backup: !is_first && rng.chance(0.2),
        join: if is_first { Span::ZERO } else { Span::from_millis(rng.below(300)) },
        leave: (!is_first && rng.chance(0.2)).then(|| Span::from_millis(301 + rng.below(1000))),
    };
    let paths = (0..count).map(|index| path_config(rng, index == 0)).collect();
    let links = (0..count).map(|_| path(1 + rng.below(80), 20 + rng.below(400))).collect();
    let algorithms = ["reno", "lia", "olia", "balia", "wvegas", "coupled-bbr", "bbr", "cubic"];
    let options = Options {
        chunks: CHUNKS,
        paths,
        streams: [1, 1, 2, 7, 64][rng.below(5) as usize],
        scheduler: schedule::REGISTRY[seed as usize % schedule::REGISTRY.len()].name,
        congestion: algorithms[rng.below(algorithms.len() as u64) as usize],
        window: if rng.chance(0.3) { 12 + rng.below(30) } else { 2000 },
    };
    (options, links)
}

fn run(seed: u64) -> RunCounters {
    let mut rng = RngStream::named(seed, "any paths");
    let (options, links) = options(seed, &mut rng);
    let impairments: Vec<[Impairments; 2]> = (0..links.len())
        .map(|index| [Impairments::draw(&mut rng, index == 0), Impairments::draw(&mut rng, index == 0)])
        .collect();
    let filter = move |now, path: usize, direction: usize| impairments[path][direction].copies(now, &mut rng);
    let mut connection = Connection::new(&options, &links, Box::new(filter));
    assert!(
        connection.run(CHUNKS, Span::from_secs(3600)),
        "seed {seed} does not end: {} {:?} {:?} {options:?}",
        connection.sender.acknowledged(),
        connection.sender.counters(),
        connection.receiver.counters()
    );
    assert_eq!(connection.receiver.delivered(), CHUNKS, "seed {seed}");
    assert_eq!(connection.delays, CHUNKS, "seed {seed}: each chunk is acknowledged once");
    assert_eq!(connection.receiver.counters().beyond_window, 0, "seed {seed}: flow control is kept to");
    RunCounters {
        flow_control_limited: connection.sender.limited_times(connection.now).receive_window,
        sender: *connection.sender.counters(),
        receiver: *connection.receiver.counters(),
        paths: connection.sender.paths().map(|path| path.counters).collect(),
    }
}

#[test]
fn all_data_arrives_and_every_kind_of_recovery_occurs() {
    let seeds = testing::campaign(600);
    let runs: Vec<RunCounters> = seeds.range().map(run).collect();
    if !seeds.reach_every_situation() {
        return;
    }
    let reached = |counter: fn(&RunCounters) -> u64| runs.iter().filter(|run| counter(run) > 0).count();
    let reached_on_path = |counter: fn(&PathCounters) -> u64| {
        runs.iter().filter(|run| run.paths.iter().any(|path| counter(path) > 0)).count()
    };
    assert!(reached(|run| run.sender.copies) > 30);
    assert!(reached(|run| run.sender.reinjected) > 100);
    assert!(reached(|run| run.flow_control_limited.as_micros()) > 50);
    assert!(reached(|run| run.receiver.duplicates) > 100);
    assert!(reached(|run| run.receiver.copies_arrived_first) > 30);
    assert!(reached_on_path(|path| path.failures) > 50);
    assert!(reached_on_path(|path| path.spurious_losses) > 50);
    assert!(reached_on_path(|path| path.probe_timeouts) > 100);
    assert!(reached_on_path(|path| path.persistent_congestions) > 10);
}

#[test]
fn over_one_path_data_takes_a_handshake_and_a_round_trip() {
    let options = Options { chunks: 10, ..Options::with_paths(1) };
    let mut connection = Connection::new(&options, &[path(10, 0)], Box::new(|_, _, _| pass()));
    assert!(connection.run(10, Span::from_secs(10)));
    assert!(connection.reassembly_delays.iter().all(|wait| *wait == Span::ZERO));
    // 1200 bytes of the Initial packet with 28 of headers at 8 Mbit/s, 10 ms each way; then 1500 bytes a packet.
    let elapsed = connection.now.since(Instant::ZERO + Span::from_secs(1));
    assert_eq!(elapsed.as_micros(), 1228 + 20_000 + 10 * 1500 + 20_000);
}

#[test]
fn a_backup_is_used_when_no_other_path_is_usable() {
    let backup = PathConfig { backup: true, ..PathConfig::default() };
    let options = Options { paths: vec![PathConfig::default(), backup], ..Options::with_paths(2) };
    let paths = [path(20, 100), path(5, 100)];
    let mut connection = Connection::new(&options, &paths, Box::new(|_, _, _| pass()));
    assert!(connection.run(1000, Span::from_secs(100)));
    let has_data = |packet: &&(Instant, Packet)| packet.1.path == 1 && packet.1.has_data();
    assert_eq!(connection.sent.iter().filter(has_data).count(), 0, "though it is faster");
    let dead = |now: Instant, path: usize, _| if path == 0 && now.as_millis() > 1300 { Vec::new() } else { pass() };
    let mut connection = Connection::new(&options, &paths, Box::new(dead));
    assert!(connection.run(1000, Span::from_secs(100)));
    let first = connection.sent.iter().find(has_data).expect("the backup carries the rest").0;
    // The queue of what Reno's window has in flight when the path dies is less than half a second of probe timeout.
    assert!((1300..2000).contains(&first.as_millis()), "{}", first.as_millis());
    assert_eq!(connection.sender.paths().next().map(|path| path.counters.failures), Some(1));
}

#[test]
fn the_data_of_an_abandoned_path_goes_out_on_the_other_at_once() {
    let leave = PathConfig { leave: Some(Span::from_millis(300)), ..PathConfig::default() };
    let options = Options { chunks: 2000, paths: vec![PathConfig::default(), leave], ..Options::with_paths(2) };
    let mut connection = Connection::new(&options, &[path(10, 100), path(40, 100)], Box::new(|_, _, _| pass()));
    assert!(connection.run(2000, Span::from_secs(100)));
    let leave_time = Instant::ZERO + Span::from_millis(1300);
    assert!(connection.sent.iter().all(|(time, packet)| packet.path == 0 || *time < leave_time));
    assert_eq!(connection.sender.paths().nth(1).map(|path| path.state), Some(PathState::Removed));
    assert!(connection.sender.counters().reinjected > 0);
    assert_eq!(connection.sender.paths().next().map(|path| path.counters.probe_timeouts), Some(0));
}

/// Every tenth packet on the slow path is lost: with one stream everything behind it waits, with ten a tenth.
#[test]
fn streams_wait_less_for_losses_than_one_stream() {
    let waits = |streams| {
        let options = Options { streams, chunks: 2000, ..Options::with_paths(1) };
        let mut count = 0;
        let lossy = move |_, _, direction| {
            count += u64::from(direction == 0);
            if direction == 0 && count % 50 == 0 { Vec::new() } else { pass() }
        };
        let mut connection = Connection::new(&options, &[path(20, 100)], Box::new(lossy));
        assert!(connection.run(2000, Span::from_secs(100)));
        connection.reassembly_delays.iter().filter(|wait| **wait > Span::ZERO).count()
    };
    let (one, ten) = (waits(1), waits(10));
    // With ten streams only the chunks of the lost one's stream wait: a tenth, and no fewer.
    assert!(ten * 5 < one && ten * 20 > one, "{one} {ten}");
}

#[test]
fn random_replies_are_handled() {
    for seed in testing::campaign(300).range() {
        let mut rng = RngStream::named(seed, "garbage");
        let mut sender = new_sender(&options(seed, &mut rng).0);
        let mut now = Instant::ZERO + Span::from_secs(1);
        sender.handle(now, Input::Connect);
        for step in 0..300 {
            while let Output::Transmit(_) = sender.poll(now) {}
            let path = rng.below(5) as u16;
            let content = match (step, rng.below(20)) {
                (0..8, 0..10) | (_, 0) => ReplyContent::Handshake { number: rng.below(3) },
                (0..8, _) | (_, 1) => ReplyContent::PathResponse { number: rng.below(3) },
                _ => ReplyContent::Ack(random_ack(&mut rng)),
            };
            sender.handle(now, Input::Reply(&Reply { path, content }));
            now += Span::from_millis(rng.below(40));
            sender.handle(now, Input::Timeout);
            assert!(sender.acknowledged() <= CHUNKS, "seed {seed}");
        }
    }
}

fn random_ack(rng: &mut RngStream) -> PathAck {
    let mut ranges = AckRanges::default();
    let mut end = if rng.chance(0.1) { rng.bits() } else { rng.below(400) };
    for _ in 0..rng.below(12) {
        let start = end - rng.below(5).min(end);
        ranges.push(start, end);
        let Some(next) = start.checked_sub(2 + rng.below(5)) else { break };
        end = next;
    }
    PathAck {
        path: rng.below(5) as u16,
        delay_us: rng.bits() as u32,
        ranges,
        ce_count: rng.below(50) as u32,
        max_data: if rng.chance(0.1) { rng.bits() } else { rng.below(1000) },
        one_way_delay_us: rng.bits() as u32,
    }
}

#[test]
fn random_packets_are_handled() {
    for seed in testing::campaign(300).range() {
        let mut rng = RngStream::named(seed, "garbage for a receiver");
        let mut receiver = new_receiver(&options(seed, &mut rng).0);
        let mut now = Instant::ZERO + Span::from_secs(1);
        for _ in 0..1000 {
            let number = if rng.chance(0.05) { rng.bits() } else { rng.below(600) };
            let chunk = if rng.chance(0.05) { rng.bits() } else { rng.below(600) };
            let content = match rng.below(10) {
                0 => Content::Ping,
                1 => Content::PathChallenge,
                2 => Content::Initial,
                _ => Content::Stream { chunk, copy: rng.chance(0.5), is_again: false },
            };
            let sent = now - Span::from_millis(rng.below(100));
            // Paths that do not exist, too.
            let packet = Packet { path: rng.below(6) as u16, number, sent, content };
            let prior_delivered = receiver.delivered();
            if let Some(reply) = receiver.handle(now, &packet, rng.chance(0.1)) {
                assert!(reply.path == packet.path && reply.bytes(20, 1432) <= 1248, "seed {seed}");
            }
            assert!(receiver.delivered() >= prior_delivered, "seed {seed}");
            now += Span::from_millis(rng.below(40));
            while receiver.on_timeout(now).is_some() {}
        }
        assert!(receiver.counters().max_out_of_order <= 2600, "seed {seed}: {:?}", receiver.counters());
    }
}
