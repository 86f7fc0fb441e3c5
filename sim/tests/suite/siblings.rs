//! What a sibling does to the path that carries a connection's data, for every coupled algorithm of the registry, over MPTCP,
//! multipath QUIC and Ropewalk's tunnel.
//!
//! One that is not in use does nothing: a backup or a metered path that is idle, a path that has stalled. One that is in use,
//! slow or just joined, takes from the path no more than it adds (RFC 6356, section 2, goal 1), and the connection
//! takes no more of the path than TCP would (goal 2).
//!
//! Each path loses 1 % at random and nobody else is there, so that the square-root law gives Reno's rate: of 100 losses
//! at least, which make a mean uncertain by 5 %, and a ratio of two by 7. Discern tells random losses from others, and its rate
//! is no law of theirs but one of its experiments': 14 % from seed to seed, so that eight seeds have the same uncertainty. wVegas
//! follows the delay that it found before a sibling stalled: 12 % from seed to seed.

use crate::common::{self, bulk, column, links, mean, multipath, pipe, set_up, subflow};
use link::{LossModel, PipeConfig};
use scenario::model::{Experiment, Flow, MultipathTransport, Quic, Ropewalk, Route, Subflow, Tunnel};
use std::ops::RangeInclusive;
use units::{Rate, Span};

/// Seconds of a run; those before `START_S` do not count.
const SECONDS: u64 = 50;
const START_S: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Transport {
    Mptcp,
    Quic,
    Tunnel,
}

/// What the connection has in addition to the path that carries data.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sibling {
    None,
    Backup,
    /// Of a tunnel.
    Metered,
    /// Of a tunnel: it carries what the first path cannot.
    Secondary,
    /// Used for five seconds, and then without an answer.
    Stalled,
    /// 400 ms.
    Slow,
    /// Slow, from `START_S` on.
    JustJoined,
}

impl Sibling {
    fn pipe(self) -> PipeConfig {
        match self {
            Self::Slow | Self::JustJoined | Self::Secondary => lossy(200),
            _ => lossy(1),
        }
    }
}

/// A path of 6 Mbit/s with this delay.
fn lossy(delay_ms: u64) -> PipeConfig {
    PipeConfig { loss: LossModel::Random(0.01), ..pipe(Rate::from_mbit(6), Span::from_millis(delay_ms), 500) }
}

fn connection(transport: Transport, algorithm: &str, sibling: Sibling) -> Experiment {
    let mut experiment = links(algorithm, &[lossy(20), sibling.pipe()], SECONDS);
    let multipath = multipath(&mut experiment.flows[0]);
    multipath.scheduler.name = "minrtt".to_owned();
    let join = if sibling == Sibling::JustJoined { Span::from_secs(START_S) } else { Span::ZERO };
    multipath.subflows[1] = Subflow { backup: sibling == Sibling::Backup, join, ..subflow(1) };
    multipath.subflows.truncate(if sibling == Sibling::None { 1 } else { 2 });
    if transport == Transport::Quic {
        multipath.transport = MultipathTransport::Quic(Quic { streams: 1, adaptive_loss_thresholds: true, undo: true });
    }
    experiment
}

fn tunnel(algorithm: &str, sibling: Sibling) -> Experiment {
    let mut experiment = links("cubic", &[lossy(20), sibling.pipe()], SECONDS);
    let with = |is_so: bool| if is_so { vec![1] } else { Vec::new() };
    let mut ropewalk = Ropewalk {
        backup: with(sibling == Sibling::Backup),
        metered: with(sibling == Sibling::Metered),
        secondary: with(sibling == Sibling::Secondary),
        ..Ropewalk::default()
    };
    ropewalk.options.congestion = algorithm.into();
    let paths = if sibling == Sibling::None { 1 } else { 2 };
    experiment.tunnel =
        Some(Tunnel { overhead: 28, mtu: 1438, ropewalk: Some(Box::new(ropewalk)), ..common::tunnel(paths) });
    experiment.flows = vec![Flow { route: Route::Tunnel, ..bulk("flow", "cubic") }];
    experiment
}

/// Goodput of the flow and throughput of the first path, Mbit/s.
fn rates(transport: Transport, algorithm: &str, sibling: Sibling) -> [f64; 2] {
    let mut experiment = match transport {
        Transport::Tunnel => tunnel(algorithm, sibling),
        Transport::Mptcp | Transport::Quic => connection(transport, algorithm, sibling),
    };
    experiment.sample = Some(Span::from_secs(1));
    experiment.events = if sibling == Sibling::Stalled { vec![set_up(1, 5_000, false)] } else { Vec::new() };
    let runs: Vec<record::Run> =
        seeds(algorithm).map(|seed| ropewalk_sim::run(&experiment, seed).expect("registered")).collect();
    [("flow flow", "goodput_mbps"), ("path path 0", "throughput_mbps")].map(|(subject, name)| {
        let rates: Vec<f64> = runs.iter().map(|run| mean(&column(run, subject, name)[START_S as usize..])).collect();
        mean(&rates)
    })
}

fn seeds(algorithm: &str) -> RangeInclusive<u64> {
    1..=if ["discern", "wvegas"].contains(&algorithm) { 8 } else { 1 }
}

/// Calls `check` with each coupled algorithm, transport and sibling, and with the rates in relation to those alone.
fn for_each(siblings: [&[Sibling]; 2], check: impl Fn(&str, [f64; 2], &str)) {
    let [of_connection, of_tunnel] = siblings;
    let transports =
        [(Transport::Mptcp, of_connection), (Transport::Quic, of_connection), (Transport::Tunnel, of_tunnel)];
    let coupled = control::registry::REGISTRY.iter().filter(|entry| entry.is_coupled());
    for (algorithm, (transport, siblings)) in coupled.flat_map(|entry| transports.map(|it| (entry.name, it))) {
        let alone = rates(transport, algorithm, Sibling::None);
        for &sibling in siblings {
            let beside = rates(transport, algorithm, sibling);
            let ratios = [0, 1].map(|index| beside[index] / alone[index]);
            let label = format!("{algorithm}, {transport:?}, {sibling:?}: {alone:.2?} Mbit/s alone, {beside:.2?}");
            println!("{label}, {ratios:.2?}");
            check(algorithm, ratios, &label);
        }
    }
}

/// A sibling that counts, although it is not in use, leaves LIA, OLIA and BALIA half of the rate at most.
#[test]
fn a_sibling_that_is_not_in_use_changes_nothing() {
    let siblings: [&[Sibling]; 2] =
        [&[Sibling::Backup, Sibling::Stalled], &[Sibling::Backup, Sibling::Metered, Sibling::Stalled]];
    for_each(siblings, |_, [goodput, _], label| assert!((0.8..1.3).contains(&goodput), "{label}"));
}

/// Without goal 1, as the algorithm does not make up for different round-trip times: RFC 6356, section 3, is why LIA does.
const SLOWED_DOWN: [&str; 3] = ["ewtcp", "semicoupled", "fully-coupled"];
/// Without goal 2: of its windows only the largest is halved.
const MORE_THAN_TCP: [&str; 1] = ["dmctcp"];

#[test]
fn a_sibling_that_is_slow_or_has_just_joined_takes_no_more_than_it_adds() {
    let siblings: [&[Sibling]; 2] = [&[Sibling::Slow, Sibling::JustJoined], &[Sibling::Slow, Sibling::Secondary]];
    for_each(siblings, |algorithm, [goodput, first], label| {
        assert!(goodput > 0.8 || SLOWED_DOWN.contains(&algorithm), "goal 1: {label}");
        assert!(first < 1.2 || MORE_THAN_TCP.contains(&algorithm), "goal 2: {label}");
    });
}
