//! Three hundred small random experiments, and a hundred with a tunnel that relays TCP. Every run checks what holds in every
//! run itself; checked here: no panic, the same digest twice, the second time with longer traces, no more goodput than
//! capacity, and every situation that matters comes up.

use crate::common::{
    self, PrintOnPanic, application, bulk, datagrams, host, multipath, one_link, pipe, run_twice, set_subflows,
};
use link::{
    CakeConfig, CoDelConfig, DualPi2Config, FqCodelConfig, GrantConfig, Jitter, LossModel, PieConfig, PipeConfig,
    PolicerConfig, QueueConfig, QueueDiscipline, QueueLimit, RateTrace, RedConfig, SlotConfig,
};
use scenario::model::{
    Application, Change, Device, Directions, Distribution, Experiment, Flow, FlowKind, Handover, Link, LossRecovery,
    Mptcp, MptcpStack, MultipathTransport, Nuisances, Path, Quic, RateWalk, Relay, Requests, Resequence, Ropewalk,
    Route, Tunnel, WakeUp,
};
use std::collections::BTreeSet;
use units::{Instant, Rate, RngStream, Span};

const EXPERIMENTS: u64 = 300;
const RELAYED_EXPERIMENTS: u64 = 100;
const DURATION: Span = Span::from_secs(3);

const SITUATIONS: [&str; 27] = [
    "queue drop",
    "head drop",
    "policer drop",
    "wire loss",
    "duplicate",
    "corrupted packet",
    "overtaking packet",
    "CoDel drop",
    "RED mark",
    "PIE drop",
    "DualPI2 drop",
    "FQ-CoDel drop",
    "CAKE overflow",
    "resequencer timeout",
    "overflow",
    "late packet",
    "device ring full",
    "retransmission timeout",
    "recovery undone",
    "requests on one connection",
    "requests on many connections",
    "competition",
    "data that waited for another subflow's",
    "copies",
    "reinjection",
    "a copy that came first",
    "a failed subflow",
];

/// Runs an experiment twice; checks that the flows get no more than the paths can carry.
fn run_within_capacity(experiment: &Experiment, seed: u64) -> record::Run {
    let run = run_twice(experiment, seed);
    let delivered: u64 = run.flows.iter().map(|flow| flow.delivered_bytes).sum();
    let capacity = capacity(&experiment.with_seed(seed));
    assert!(delivered <= capacity, "{delivered} bytes of {capacity}");
    run
}

#[test]
fn random_experiments_conserve_packets_and_reach_every_situation() {
    let mut reached_situations = BTreeSet::new();
    let seeds = testing::campaign(EXPERIMENTS);
    for seed in seeds.range() {
        let experiment = Generator(RngStream::named(seed, "swarm")).experiment();
        let print_on_panic = PrintOnPanic(seed, &experiment);
        let run = run_within_capacity(&experiment, seed);
        reached_situations.extend(situations(&experiment, &run));
        drop(print_on_panic);
    }
    let missing: Vec<_> = SITUATIONS.iter().filter(|situation| !reached_situations.contains(**situation)).collect();
    assert!(missing.is_empty() || !seeds.reach_every_situation(), "never reached: {missing:?}");
}

/// Here, too: no panic, which a byte out of order and memory beyond its bound would be.
#[test]
fn random_experiments_with_a_relay_deliver_no_more_than_was_sent_nor_than_the_paths_carry() {
    let mut completed = 0;
    let seeds = testing::campaign(RELAYED_EXPERIMENTS);
    for seed in seeds.range() {
        let experiment = Generator(RngStream::named(seed, "relayed swarm")).relayed_experiment();
        let print_on_panic = PrintOnPanic(seed, &experiment);
        let run = run_within_capacity(&experiment, seed);
        for (flow, result) in experiment.flows.iter().zip(&run.flows) {
            let FlowKind::Tcp { size, application, .. } = &flow.kind else { continue };
            // A flow of requests has a size for each response.
            let size = size.filter(|_| !matches!(application, Application::Requests(_)));
            assert!(result.delivered_bytes <= size.unwrap_or(result.sent_packets * 1460), "{result:?}");
            completed += usize::from(result.completion_s.is_some());
        }
        let relayed = experiment.flows.iter().filter(|flow| experiment.relay_of(flow).is_some()).count() as u64;
        assert!(
            run.tunnel
                .as_ref()
                .is_some_and(|tunnel| tunnel.ropewalk.map_or(0, |counted| counted.relayed_connections) <= relayed),
            "{:?}",
            run.tunnel
        );
        drop(print_on_panic);
    }
    assert!(completed > 10 || !seeds.reach_every_situation(), "{completed} flows of limited size have completed");
}

/// The most bytes that all paths together can carry.
fn capacity(experiment: &Experiment) -> u64 {
    let link = |index: &usize| {
        let pipe = &experiment.links[*index].forward;
        let rates = experiment.events.iter().filter(|event| event.link == *index).filter_map(|event| event.rate);
        let rate = rates.chain(pipe.rate).max().map_or(0, |rate| rate.bytes_in(DURATION));
        let trace = pipe
            .trace
            .as_ref()
            .map_or(0, |trace| 1500 * trace.opportunities.len() as u64 * (DURATION.as_millis() / trace.period_ms + 1));
        rate + trace
    };
    let capacity: u64 = experiment.paths.iter().filter_map(|path| path.links.iter().map(link).min()).sum();
    // UDP delivers a datagram that a wire duplicates twice.
    let duplicates = experiment.links.iter().any(|link| link.forward.duplicate > 0.0);
    if duplicates { 2 * capacity } else { capacity }
}

fn situations(experiment: &Experiment, run: &record::Run) -> Vec<&'static str> {
    let queue = experiment.links[0].forward.queue;
    let dropped = run.paths.iter().any(|path| path.dropped_packets > 0);
    let tunnel = run.tunnel.clone().unwrap_or_default();
    let manages = !matches!(queue.discipline, QueueDiscipline::DropTail | QueueDiscipline::DropHead);
    let early = dropped && queue.limit == ENDLESS && !experiment.links.iter().any(is_policed);
    let reached = [
        dropped && queue.discipline == QueueDiscipline::DropTail,
        dropped && queue.discipline == QueueDiscipline::DropHead && !experiment.links.iter().any(is_policed),
        dropped && !manages && queue.limit == ENDLESS,
        run.paths.iter().any(|path| path.lost_packets > 0),
        run.paths.iter().any(|path| path.duplicated_packets > Some(0)),
        run.paths.iter().any(|path| path.corrupted_packets > Some(0)),
        experiment.links.iter().any(|link| link.forward.reorder.share > 0.0) && run.paths[0].delivered_packets > 1000,
        early && matches!(queue.discipline, QueueDiscipline::CoDel(_)),
        run.paths.iter().any(|path| path.marked_packets > 0) && matches!(queue.discipline, QueueDiscipline::Red(_)),
        early && matches!(queue.discipline, QueueDiscipline::Pie(_)),
        early && matches!(queue.discipline, QueueDiscipline::DualPi2(_)),
        early && matches!(queue.discipline, QueueDiscipline::FqCodel(_)),
        dropped && matches!(queue.discipline, QueueDiscipline::Cake(_)) && queue.limit != ENDLESS,
        tunnel.timeouts > 0,
        tunnel.overflows > 0,
        tunnel.late_packets > 0,
        tunnel.dropped_packets > 0,
        run.flows.iter().any(|flow| flow.timeouts > 0),
        run.flows.iter().any(|flow| flow.spurious_recoveries > 0),
        requested(experiment, run, false),
        requested(experiment, run, true),
        run.jain.is_some(),
        run.flows.iter().filter_map(|flow| flow.multipath).any(|data| data.head_of_line_delay_ms.max > 0.0),
        run.flows.iter().filter_map(|flow| flow.multipath).any(|data| data.redundant_packets > 0),
        run.flows.iter().filter_map(|flow| flow.multipath).any(|data| data.reinjected_packets > 0),
        run.flows.iter().filter_map(|flow| flow.multipath).any(|data| data.redundant_first_packets > 0),
        run.subflows.iter().any(|subflow| subflow.failures > Some(0)),
    ];
    SITUATIONS.into_iter().zip(reached).filter_map(|(name, reached)| reached.then_some(name)).collect()
}

fn is_policed(link: &Link) -> bool {
    link.forward.policer.is_some()
}

/// Whether a flow got several responses, on one connection or each on a `new` one.
fn requested(experiment: &Experiment, run: &record::Run, new: bool) -> bool {
    let matches_kind = |flow: &Flow| match &flow.kind {
        FlowKind::Tcp { application: Application::Requests(requests), .. } => requests.new_connections == new,
        _ => false,
    };
    experiment
        .flows
        .iter()
        .zip(&run.flows)
        .any(|(flow, result)| matches_kind(flow) && result.requests.is_some_and(|requests| requests.requests > 1))
}

const ENDLESS: QueueLimit = QueueLimit::Packets(u64::MAX);

/// Draws random experiments.
struct Generator(RngStream);

impl Generator {
    fn experiment(&mut self) -> Experiment {
        let queue = self.queue();
        let links: Vec<Link> = (0..self.between(1, 3)).map(|index| self.link(index, queue)).collect();
        // Each link a path of its own, and one through all of them.
        let mut paths: Vec<Vec<usize>> = (0..links.len()).map(|link| vec![link]).collect();
        paths.push((0..links.len()).collect());
        let paths = paths.into_iter().enumerate();
        let paths: Vec<Path> = paths
            .map(|(index, links)| Path { name: format!("path {index}"), turn: links.len(), links, mtu: 1500 })
            .collect();
        let tunnel = self.chance(0.5).then(|| self.tunnel(paths.len()));
        let flows = (0..self.between(1, 4)).map(|index| self.flow(index, paths.len(), tunnel.is_some())).collect();
        let mut events: Vec<Change> = (0..self.between(0, 4)).map(|_| self.change(links.len())).collect();
        events.sort_by_key(|event| event.at);
        let sample = self.chance(0.3).then(|| Span::from_millis(50));
        Experiment { duration: DURATION, sample, links, paths, tunnel, flows, events, ..one_link("", plain(), 0) }
    }

    /// An experiment with a Ropewalk tunnel that relays TCP, at local links of any rate and delay.
    fn relayed_experiment(mut self) -> Experiment {
        let relay = Relay {
            congestion: self.algorithm().into(),
            rate: Rate::from_mbit(self.between(1, 1000)),
            delay: self.millis(0, 5),
        };
        let settings = Ropewalk { relay: Some(relay), ..Ropewalk::default() };
        let mut experiment = self.experiment();
        let paths: Vec<usize> = (0..experiment.paths.len()).collect();
        let tunnel = common::tunnel(paths.len());
        experiment.tunnel = Some(Tunnel { overhead: 28, mtu: 1438, ropewalk: Some(Box::new(settings)), ..tunnel });
        for flow in experiment.flows.iter_mut().filter(|flow| flow.route != Route::Subflows) {
            flow.route = Route::Tunnel;
            if let FlowKind::Tcp { application, host, .. } = &mut flow.kind {
                host.handshake = true;
                if matches!(application, Application::Requests(_)) {
                    *application = Application::Greedy;
                }
            }
        }
        experiment
    }

    /// All queues of an experiment are alike, so that it is clear which discipline dropped.
    fn queue(&mut self) -> QueueConfig {
        let codel = CoDelConfig { target: self.millis(1, 10), interval: self.millis(10, 100), ce_threshold: None };
        let discipline = match self.between(0, 7) {
            0 => QueueDiscipline::DropTail,
            1 => QueueDiscipline::CoDel(codel),
            2 => QueueDiscipline::Red(RedConfig {
                min: 5_000,
                max: 60_000,
                probability: 0.1,
                weight: 0.01,
                hard_drop: true,
            }),
            3 => QueueDiscipline::Pie(PieConfig {
                target: codel.target,
                tupdate: self.millis(5, 15),
                alpha: 0.125,
                beta: 1.25,
            }),
            4 => QueueDiscipline::FqCodel(FqCodelConfig { flows: 4, quantum: 300, codel }),
            5 => QueueDiscipline::DropHead,
            6 => QueueDiscipline::DualPi2(DualPi2Config { target: codel.target, ..DualPi2Config::default() }),
            _ => QueueDiscipline::Cake(CakeConfig { rtt: codel.interval }),
        };
        let limit = match self.between(0, 3) {
            0 => QueueLimit::Packets(self.between(0, 50)),
            1 => QueueLimit::Bytes(self.between(2_000, 80_000)),
            2 => QueueLimit::Time(self.millis(1, 100)),
            _ => ENDLESS,
        };
        QueueConfig { limit, discipline, ecn: self.chance(0.5) }
    }

    fn link(&mut self, index: u64, queue: QueueConfig) -> Link {
        let [forward, reverse] = [0, 1].map(|_| self.pipe(queue));
        let mut link = Link::new(format!("link {index}"), forward, reverse);
        link.handover = self.chance(0.1).then(|| Handover {
            period: self.millis(300, 900),
            outage: self.millis(0, 80),
            delay: self.chance(0.8).then(|| (self.millis(0, 10), self.millis(10, 50))),
        });
        let walks = self.chance(0.1) && link.forward.rate.is_some() && link.forward.grants.is_none();
        link.rate_walks[0] = walks.then(|| RateWalk {
            min: Rate::from_mbit(1),
            max: Rate::from_mbit(15),
            deviation: Rate::from_mbit(self.between(1, 10)),
            interval: self.millis(10, 100),
        });
        link
    }

    fn pipe(&mut self, queue: QueueConfig) -> PipeConfig {
        let trace = self.chance(0.1).then(|| RateTrace { opportunities: [0, 3, 3, 4, 9].into(), period_ms: 10 });
        let span = if self.chance(0.3) { self.millis(0, 10) } else { Span::ZERO };
        let jitter = Jitter { span, reorders: self.chance(0.3), ..Jitter::default() };
        let loss = match self.between(0, 3) {
            0 => LossModel::Random(0.02),
            1 => LossModel::GilbertElliott { to_bad: 0.01, to_good: 0.2, loss_bad: 0.5, loss_good: 0.0 },
            _ => LossModel::None,
        };
        PipeConfig {
            rate: trace.is_none().then(|| Rate::from_mbit(self.between(1, 15))),
            grants: (trace.is_none() && self.chance(0.1))
                .then(|| GrantConfig { period: self.millis(1, 20), request: self.millis(0, 20) }),
            trace_offset: if trace.is_some() { self.millis(0, 30) } else { Span::ZERO },
            trace,
            delay: self.millis(0, 60),
            jitter,
            loss,
            duplicate: if self.chance(0.1) { 0.02 } else { 0.0 },
            corrupt: if self.chance(0.1) { 0.02 } else { 0.0 },
            reorder: if self.chance(0.1) { 0.02 } else { 0.0 }.into(),
            overhead: self.between(0, 40) as u32,
            policer: self.chance(0.25).then(|| PolicerConfig {
                rate: Rate::from_mbit(self.between(1, 15)),
                burst: self.between(1_600, 50_000),
            }),
            queue,
            local: self.chance(0.3),
            wire_limit: (queue.limit != ENDLESS && self.chance(0.1)).then(|| self.between(5, 100) as u32),
            slot: self.chance(0.1).then(|| SlotConfig {
                min: self.millis(1, 2),
                max: self.millis(2, 5),
                packets: Some(self.between(5, 40) as u32),
                bytes: None,
            }),
        }
    }

    fn tunnel(&mut self, paths: usize) -> Tunnel {
        let resequence = self.chance(0.8).then(|| Resequence {
            window: self.between(2, 400) as u32,
            timeout: self.millis(1, 300),
            deliver_late: self.chance(0.3),
        });
        let device = self.chance(0.5);
        let device = device.then(|| Device { ring: self.between(1, 60) as u32, socket: self.between(1, 30) as u32 });
        Tunnel {
            paths: (0..paths).collect(),
            mpt_scheduler: if self.chance(0.5) { "packet-round-robin" } else { "byte-deficit" }.into(),
            weights: (0..paths).map(|_| self.between(1, 9) as u32).collect(),
            first: self.between(0, 3) as u32,
            stray_packets: self.between(0, 3) as u32,
            overhead: 36,
            mtu: 1440,
            resequence,
            device,
            nuisances: self.nuisances(device.is_some()),
            ropewalk: None,
        }
    }

    fn nuisances(&mut self, has_device: bool) -> Nuisances {
        let least = self.between(0, 100_000);
        let wake_up = WakeUp { least: Span(least), mean: Span(least + self.between(0, 1_000_000)) };
        let mut nuisances = Nuisances {
            draw_first: self.chance(0.3),
            stray_interval: self.chance(0.3).then(|| self.millis(1, 3000)),
            wake_up: (has_device && self.chance(0.5)).then_some(wake_up),
            reader: self.chance(0.5).then_some(wake_up),
            preemption: None,
        };
        nuisances.preemption = nuisances.reader.is_none().then_some(1000);
        nuisances
    }

    fn flow(&mut self, index: u64, paths: usize, tunnel: bool) -> Flow {
        let name = format!("flow {index}");
        let mut flow = if self.chance(0.2) {
            datagrams(&name, Rate::from_bits(self.between(100_000, 8_000_000)), self.between(60, 1440) as u32)
        } else {
            let mut flow = bulk(&name, self.algorithm());
            let host = host(&mut flow);
            (host.ecn, host.sack, host.timestamps) = (self.chance(0.5), self.chance(0.8), self.chance(0.8));
            (host.quick_ack, host.pacing, host.tso) = (self.chance(0.2), self.chance(0.2), self.chance(0.8));
            (host.handshake, host.window) = (self.chance(0.8), self.chance(0.2).then_some(40));
            host.recovery = if self.chance(0.2) { LossRecovery::Fack } else { LossRecovery::Rack };
            if let FlowKind::Tcp { size, .. } = &mut flow.kind {
                *size = self.chance(0.2).then(|| self.between(1, 500_000));
            }
            *application(&mut flow) = self.application();
            flow
        };
        let reconnects = matches!(
            &flow.kind,
            FlowKind::Tcp { application: Application::Requests(requests), .. } if requests.new_connections
        );
        if !reconnects && matches!(flow.kind, FlowKind::Tcp { .. }) && self.chance(0.3) {
            self.subflows(&mut flow, paths);
        } else if tunnel && self.chance(0.8) {
            flow.route = Route::Tunnel;
        } else {
            flow.route = Route::Path(self.0.below(paths as u64) as usize);
        }
        flow.start = Instant::ZERO + self.millis(0, 500);
        flow.stop = self.chance(0.2).then(|| flow.start + self.millis(1, 3000));
        flow
    }

    fn algorithm(&mut self) -> &'static str {
        control::registry::REGISTRY[self.0.below(control::registry::REGISTRY.len() as u64) as usize].name
    }

    fn subflows(&mut self, flow: &mut Flow, paths: usize) {
        let count = self.between(1, 3);
        set_subflows(flow, &(0..count).map(|_| self.0.below(paths as u64) as usize).collect::<Vec<_>>());
        let entry = schedule::REGISTRY[self.0.below(schedule::REGISTRY.len() as u64) as usize];
        let is_bulk = matches!(application(flow), Application::Greedy | Application::Steady { .. });
        let multipath = multipath(flow);
        multipath.scheduler.name = entry.name.to_owned();
        let stack = if self.chance(0.5) { MptcpStack::Upstream } else { MptcpStack::OutOfTree };
        let (opportunistic_retransmission, penalisation) = (self.chance(0.5), self.chance(0.5));
        multipath.transport = MultipathTransport::Mptcp(Mptcp {
            stack,
            opportunistic_retransmission,
            penalisation,
            dss_option_bytes: 24,
        });
        if is_bulk && self.chance(0.4) {
            multipath.transport = MultipathTransport::Quic(Quic {
                streams: self.between(1, 8) as u32,
                adaptive_loss_thresholds: self.chance(0.5),
                undo: self.chance(0.5),
            });
        }
        for subflow in multipath.subflows.iter_mut().skip(1) {
            subflow.backup = self.chance(0.2);
            subflow.join = self.millis(0, 1000);
            subflow.leave = self.chance(0.2).then(|| subflow.join + self.millis(1, 1500));
        }
    }

    fn application(&mut self) -> Application {
        match self.between(0, 9) {
            0 | 1 => {
                let write = self.chance(0.5).then(|| self.between(1, 30_000));
                Application::Steady { rate: Rate::from_bits(self.between(100_000, 5_000_000)), write }
            }
            2..=4 => {
                let size = match self.between(0, 2) {
                    0 => Distribution::Fixed(self.between(1, 50_000) as f64),
                    1 => Distribution::Exponential(20_000.0),
                    _ => Distribution::Pareto { min: 5_000.0, shape: 1.2 },
                };
                let think = Distribution::Exponential(self.millis(0, 200).as_nanos() as f64);
                Application::Requests(Requests { size, think, new_connections: self.chance(0.5) })
            }
            _ => Application::Greedy,
        }
    }

    fn change(&mut self, links: usize) -> Change {
        let directions = [Directions::Forward, Directions::Reverse, Directions::Both][self.0.below(3) as usize];
        let mut change = Change {
            at: Instant::ZERO + self.millis(0, 3000),
            link: self.0.below(links as u64) as usize,
            directions,
            ..Change::default()
        };
        match self.between(0, 3) {
            0 => change.up = Some(self.chance(0.5)),
            1 => change.rate = Some(Rate::from_mbit(self.between(0, 15))),
            2 => change.delay = Some(self.millis(0, 80)),
            _ => change.loss = Some(LossModel::Random(0.05)),
        }
        change
    }

    fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.0.below(max - min + 1)
    }

    fn millis(&mut self, min: u64, max: u64) -> Span {
        Span::from_millis(self.between(min, max))
    }

    fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }
}

fn plain() -> PipeConfig {
    pipe(Rate::from_mbit(1), Span::ZERO, 0)
}
