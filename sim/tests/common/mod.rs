//! Small experiments, built in code.
#![allow(dead_code, reason = "each test binary uses its own part")]

use link::{LossModel, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit, RateTrace};
use scenario::model::{
    Application, Change, Distribution, Experiment, Flow, FlowKind, Host, Link, Mptcp, MptcpStack, Multipath,
    MultipathTransport, Nuisances, Path, Requests, Resequence, Route, Subflow, Tunnel,
};
use units::{Instant, Rate, RngStream, Span};

/// Ethernet's preamble, header, checksum and gap.
pub(crate) const OVERHEAD: u32 = 38;

/// A drop-tail pipe.
pub(crate) fn pipe(rate: Rate, delay: Span, packets: u64) -> PipeConfig {
    PipeConfig {
        rate: Some(rate),
        delay,
        overhead: OVERHEAD,
        queue: QueueConfig { limit: QueueLimit::Packets(packets), ..QueueConfig::default() },
        ..PipeConfig::default()
    }
}

/// A bulk TCP flow over path 0.
pub(crate) fn bulk(name: &str, algorithm: &str) -> Flow {
    Flow {
        name: name.to_owned(),
        copy_of: None,
        route: Route::Path(0),
        start: Instant::ZERO,
        start_within: Span::ZERO,
        reverse: false,
        stop: None,
        kind: FlowKind::Tcp {
            congestion: algorithm.into(),
            application: Application::Greedy,
            size: None,
            multipath: None,
            host: Box::default(),
        },
    }
}

/// One flow over one link, the same in both directions.
pub(crate) fn one_link(algorithm: &str, pipe: PipeConfig, seconds: u64) -> Experiment {
    let mut experiment = Experiment {
        name: "one link".to_owned(),
        duration: Span::from_secs(seconds),
        sample: None,
        links: Vec::new(),
        paths: Vec::new(),
        tunnel: None,
        flows: vec![bulk("flow", algorithm)],
        events: Vec::new(),
    };
    add_path(&mut experiment, ["link", "path"], pipe, &[]);
    experiment
}

/// The column of a series.
pub(crate) fn column<'a>(run: &'a record::Run, subject: &str, name: &str) -> &'a [f64] {
    let series = run.series.iter().find(|series| series.subject == subject).expect("the subject was sampled");
    let index = series.columns.iter().position(|column| column == name).expect("the column exists");
    &series.values[index]
}

/// The flow's TCP settings.
pub(crate) fn host(flow: &mut Flow) -> &mut Host {
    match &mut flow.kind {
        FlowKind::Tcp { host, .. } => host,
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => panic!("a TCP flow"),
    }
}

/// The flow's segments leave one by one, and windows alone limit it: its send buffer is large from the start.
pub(crate) fn segment_by_segment(flow: &mut Flow) {
    let host = host(flow);
    (host.tso, host.initial_send_buffer) = (false, host.send_buffer);
}

/// The flow's application.
pub(crate) fn application(flow: &mut Flow) -> &mut Application {
    match &mut flow.kind {
        FlowKind::Tcp { application, .. } => application,
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => panic!("a TCP flow"),
    }
}

/// A flow of requests over path 0: fixed size and time to think.
pub(crate) fn requests(algorithm: &str, bytes: u32, think: Span, new_connections: bool) -> Flow {
    let [size, think] = [f64::from(bytes), think.as_nanos() as f64].map(Distribution::Fixed);
    let mut flow = bulk("web", algorithm);
    *application(&mut flow) = Application::Requests(Requests { size, think, new_connections });
    flow
}

/// Datagrams of `packet` bytes at a constant rate over path 0.
pub(crate) fn datagrams(name: &str, rate: Rate, packet: u32) -> Flow {
    Flow { kind: FlowKind::ConstantRate { rate, packet }, ..bulk(name, "") }
}

/// Sets the number of bytes that a TCP flow sends.
pub(crate) fn set_size(flow: &mut Flow, bytes: u64) {
    match &mut flow.kind {
        FlowKind::Tcp { size, .. } => *size = Some(bytes),
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => panic!("a TCP flow"),
    }
}

/// A run with seed 1.
pub(crate) fn run(experiment: &Experiment) -> record::Run {
    ropewalk_sim::run(experiment, 1).expect("the algorithms are registered")
}

/// A run with seed 1 and a sample every so often.
pub(crate) fn run_sampled(experiment: Experiment, sample: Span) -> record::Run {
    run(&Experiment { sample: Some(sample), ..experiment })
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Makes a TCP flow an MPTCP flow over these paths, as Linux 6.1 would have it.
pub(crate) fn set_subflows(flow: &mut Flow, paths: &[usize]) {
    let FlowKind::Tcp { multipath, .. } = &mut flow.kind else { panic!("a TCP flow") };
    flow.route = Route::Subflows;
    *multipath = Some(Box::new(Multipath {
        subflows: paths.iter().map(|path| subflow(*path)).collect(),
        scheduler: "linger".into(),
        weights: Vec::new(),
        transport: MultipathTransport::Mptcp(Mptcp {
            stack: MptcpStack::Upstream,
            opportunistic_retransmission: false,
            penalisation: false,
            dss_option_bytes: 24,
        }),
    }));
}

/// A subflow that is there from the beginning to the end.
pub(crate) fn subflow(path: usize) -> Subflow {
    Subflow { path, backup: false, join: Span::ZERO, leave: None }
}

/// The configuration of an MPTCP flow.
pub(crate) fn multipath(flow: &mut Flow) -> &mut Multipath {
    match &mut flow.kind {
        FlowKind::Tcp { multipath: Some(multipath), .. } => multipath,
        _ => panic!("an MPTCP flow"),
    }
}

/// The settings of an MPTCP flow's protocol.
pub(crate) fn mptcp(flow: &mut Flow) -> &mut Mptcp {
    match &mut multipath(flow).transport {
        MultipathTransport::Mptcp(mptcp) => mptcp,
        MultipathTransport::Quic(_) => panic!("an MPTCP flow"),
    }
}

/// One MPTCP flow over paths of one link each.
pub(crate) fn links(algorithm: &str, pipes: &[PipeConfig], seconds: u64) -> Experiment {
    let mut experiment = one_link(algorithm, pipes[0].clone(), seconds);
    (experiment.links, experiment.paths) = (Vec::new(), Vec::new());
    for (index, pipe) in pipes.iter().enumerate() {
        add_path(&mut experiment, [&format!("link {index}"), &format!("path {index}")], pipe.clone(), &[]);
    }
    set_subflows(&mut experiment.flows[0], &(0..pipes.len()).collect::<Vec<_>>());
    experiment
}

/// Adds a link, the same in both directions, and a path over it and then over `further_links`.
pub(crate) fn add_path(
    experiment: &mut Experiment,
    [link, path]: [&str; 2],
    pipe: PipeConfig,
    further_links: &[usize],
) {
    let reverse = PipeConfig { local: false, loss: LossModel::None, ..pipe.clone() };
    let links: Vec<_> = std::iter::once(experiment.links.len()).chain(further_links.iter().copied()).collect();
    experiment.links.push(Link::new(link.to_owned(), pipe, reverse));
    experiment.paths.push(Path { name: path.to_owned(), turn: links.len(), links, mtu: 1500 });
}

/// A tunnel over so many paths that neither adds to packets nor puts them in order.
pub(crate) fn tunnel(paths: usize) -> Tunnel {
    Tunnel {
        paths: (0..paths).collect(),
        mpt_scheduler: "packet-round-robin".into(),
        weights: vec![1; paths],
        first: 0,
        stray_packets: 0,
        overhead: 0,
        mtu: 1440,
        resequence: None,
        device: None,
        nuisances: Nuisances::default(),
        ropewalk: None,
    }
}

/// Adds a second path of one link, and a tunnel over both that puts packets in order.
pub(crate) fn add_striping_tunnel(experiment: &mut Experiment, second: PipeConfig, window: u32, timeout: Span) {
    add_path(experiment, ["second"; 2], second, &[]);
    let resequence = Some(Resequence { window, timeout, deliver_late: false });
    experiment.tunnel = Some(Tunnel { resequence, ..tunnel(2) });
}

/// The change that sets the link up or down at `ms`.
pub(crate) fn set_up(link: usize, ms: u64, up: bool) -> Change {
    Change { at: Instant::ZERO + Span::from_millis(ms), link, up: Some(up), ..Change::default() }
}

/// Prints the experiment if the test panics.
pub(crate) struct PrintOnPanic<'a>(pub u64, pub &'a Experiment);

impl Drop for PrintOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}: {:#?}", self.0, self.1);
        }
    }
}

/// Runs an experiment twice, the second time with longer traces; checks that both runs are the same, and that no loss was
/// false where packets stay in order. The simulator checks what holds in every run (`sim/src/invariants.rs`).
pub(crate) fn run_twice(experiment: &Experiment, seed: u64) -> record::Run {
    let run = |experiment: &Experiment| ropewalk_sim::run(experiment, seed).expect("all are registered");
    let (first, second) = (run(experiment), run(&with_longer_traces(experiment)));
    assert_eq!(first.digest, second.digest);
    for (path, again) in first.paths.iter().zip(&second.paths) {
        // Busy time is counted at the trace's mean rate, which is a whole number of bits a second.
        assert!((path.utilisation - again.utilisation).abs() < 1e-5, "{path:?} and {again:?}");
    }
    check_limits(experiment, seed, &first);
    if keeps_order(experiment) && first.flows.iter().any(is_undone) {
        // The duplicate of a tail-loss probe counts for a retransmission of an earlier recovery, as in Linux.
        let without_probes = run(&without_probes(experiment));
        let undone = without_probes.flows.iter().find(|flow| is_undone(flow));
        assert!(undone.is_none(), "a recovery was undone in a network that keeps order: {undone:?}");
    }
    first
}

/// Whether a recovery was undone though no timeout occurred: one may be spurious where a queue grows.
fn is_undone(flow: &record::Flow) -> bool {
    flow.timeouts == 0 && flow.spurious_recoveries + flow.quic.map_or(0, |losses| losses.spurious_losses) > 0
}

/// The experiment with hosts that send no tail-loss probes.
fn without_probes(experiment: &Experiment) -> Experiment {
    let mut without = experiment.clone();
    for flow in &mut without.flows {
        if let FlowKind::Tcp { host, .. } = &mut flow.kind {
            host.early_retrans = false;
        }
    }
    without
}

/// Checks that the limits of a flow and of its subflows last as long as the flow, and that a flow which always has data is
/// never limited by its application.
fn check_limits(experiment: &Experiment, seed: u64, run: &record::Run) {
    for (flow, recorded) in experiment.flows.iter().zip(&run.flows) {
        let FlowKind::Tcp { application, size, .. } = &flow.kind else { continue };
        let offset = RngStream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1);
        let start = flow.start + Span(offset);
        let end = (Instant::ZERO + experiment.duration).min(flow.stop.unwrap_or(Instant::NEVER));
        let is_relayed = experiment.relay_of(flow).is_some();
        let duration = recorded.completion_s.filter(|_| !is_relayed).unwrap_or(end.since(start).as_secs_f64());
        let subflows = run.subflows.iter().filter(|subflow| subflow.flow == flow.name);
        for limits in subflows.map(|subflow| subflow.limited_s).chain([recorded.limited_s]) {
            let limits = limits.expect("the simulator measures them");
            let is_shorter = is_relayed && limits.total() <= duration;
            assert!(
                is_shorter || (limits.total() - duration).abs() < 1e-6,
                "{}: {limits:?} of {duration} s",
                flow.name
            );
            assert!(limits.as_array().iter().all(|time| *time >= 0.0), "{}: {limits:?}", flow.name);
            let is_greedy = *application == Application::Greedy && size.is_none() && end > start;
            assert!(!is_greedy || limits.application == 0.0, "{}: {limits:?}", flow.name);
        }
    }
}

/// Whether packets of a connection stay in order: delays are constant, nothing is copied, no tunnel or queue discipline
/// takes a later packet first.
fn keeps_order(experiment: &Experiment) -> bool {
    let is_constant = |pipe: &PipeConfig| {
        let keeps_queue = !matches!(pipe.queue.discipline, QueueDiscipline::DualPi2(_) | QueueDiscipline::Cake(_));
        pipe.jitter.span == Span::ZERO && pipe.reorder.share == 0.0 && pipe.duplicate == 0.0 && keeps_queue
    };
    let changes_delay = experiment.events.iter().any(|event| event.delay.is_some());
    let are_constant = experiment.links.iter().all(|link| is_constant(&link.forward) && is_constant(&link.reverse));
    experiment.tunnel.is_none() && !changes_delay && are_constant
}

/// The experiment with traces that go on after a run's end, and after all that it decides before its end. The rest has
/// another rate, but where a queue's limit is a time or its discipline has a rate: both are by the trace's mean rate.
fn with_longer_traces(experiment: &Experiment) -> Experiment {
    let mut experiment = experiment.clone();
    let used_ms = 20 * experiment.duration.as_millis();
    let pipes = experiment.links.iter_mut().flat_map(|link| [&mut link.forward, &mut link.reverse]);
    for pipe in pipes {
        let Some(trace) = &mut pipe.trace else { continue };
        let period = trace.period_ms;
        let repeated = (0..=used_ms / period)
            .flat_map(|repetition| trace.opportunities.iter().map(move |ms| repetition * period + ms));
        let end = (used_ms / period + 1) * period;
        let needs_rate = matches!(pipe.queue.limit, QueueLimit::Time(_))
            || matches!(
                pipe.queue.discipline,
                QueueDiscipline::Red(_) | QueueDiscipline::FqCodel(_) | QueueDiscipline::Cake(_)
            );
        let of_rest = if needs_rate { trace.opportunities.len() } else { 1000 };
        let rest = std::iter::repeat_n(end + period, of_rest);
        *trace = RateTrace { opportunities: repeated.chain(rest).collect(), period_ms: end + period };
    }
    experiment
}
