//! Small experiments, built in code.
#![allow(dead_code, reason = "each test binary uses its own part")]

use link::{LossModel, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit};
use scenario::model::{
    Application, Distribution, Experiment, Flow, FlowKind, Host, Link, MptcpStack, Multipath, Path, Requests,
    Resequence, Route, Subflow, Tunnel,
};
use units::{Instant, Rate, Span};

/// Ethernet's preamble, header, checksum and gap.
pub(crate) const OVERHEAD: u32 = 38;

/// A drop-tail pipe.
pub(crate) fn pipe(rate: Rate, delay: Span, packets: u64) -> PipeConfig {
    PipeConfig {
        rate: Some(rate),
        trace: None,
        delay,
        jitter: Span::ZERO,
        loss: LossModel::None,
        overhead: OVERHEAD,
        queue: QueueConfig { limit: QueueLimit::Packets(packets), discipline: QueueDiscipline::DropTail, ecn: false },
        local: false,
        wire_limit: None,
    }
}

/// A bulk TCP flow over path 0.
pub(crate) fn bulk(name: &str, algorithm: &str) -> Flow {
    Flow {
        name: name.to_owned(),
        route: Route::Path(0),
        start: Instant::ZERO,
        start_within: Span::ZERO,
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
    let reverse = PipeConfig { local: false, loss: LossModel::None, ..pipe.clone() };
    Experiment {
        name: "one link".to_owned(),
        duration: Span::from_secs(seconds),
        sample: None,
        links: vec![Link { name: "link".to_owned(), forward: pipe, reverse }],
        paths: vec![Path { name: "path".to_owned(), links: vec![0], mtu: 1500 }],
        tunnel: None,
        flows: vec![bulk("flow", algorithm)],
        events: Vec::new(),
    }
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
        FlowKind::ConstantRate { .. } => panic!("a TCP flow"),
    }
}

/// The flow's application.
pub(crate) fn application(flow: &mut Flow) -> &mut Application {
    match &mut flow.kind {
        FlowKind::Tcp { application, .. } => application,
        FlowKind::ConstantRate { .. } => panic!("a TCP flow"),
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

/// A run with seed 1.
pub(crate) fn run(experiment: &Experiment) -> record::Run {
    ropewalk_sim::run(experiment, 1).expect("the algorithms are registered")
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Makes a TCP flow an MPTCP flow over these paths, as Linux 6.1 would have it.
pub(crate) fn over(flow: &mut Flow, paths: &[usize]) {
    let FlowKind::Tcp { multipath, .. } = &mut flow.kind else { panic!("a TCP flow") };
    flow.route = Route::Subflows;
    *multipath = Some(Box::new(Multipath {
        subflows: paths.iter().map(|path| subflow(*path)).collect(),
        scheduler: "linger".into(),
        weights: Vec::new(),
        stack: MptcpStack::Upstream,
        opportunistic_retransmission: false,
        penalisation: false,
        dss_option_bytes: 24,
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

/// One flow over so many paths of one link each.
pub(crate) fn links(algorithm: &str, pipes: &[PipeConfig], seconds: u64) -> Experiment {
    let mut experiment = one_link(algorithm, pipes[0].clone(), seconds);
    let link = |(index, pipe): (usize, &PipeConfig)| Link {
        name: format!("link {index}"),
        forward: pipe.clone(),
        reverse: PipeConfig { local: false, loss: LossModel::None, ..pipe.clone() },
    };
    experiment.links = pipes.iter().enumerate().map(link).collect();
    let path = |index: usize| Path { name: format!("path {index}"), links: vec![index], mtu: 1500 };
    experiment.paths = (0..pipes.len()).map(path).collect();
    over(&mut experiment.flows[0], &(0..pipes.len()).collect::<Vec<_>>());
    experiment
}

/// Adds a second path of one link, and a tunnel over both that puts packets in order.
pub(crate) fn stripe_over(experiment: &mut Experiment, second: PipeConfig, window: u32, timeout: Span) {
    experiment.links.extend(one_link("", second, 1).links);
    experiment.links[1].name = "second".to_owned();
    experiment.paths.push(Path { name: "second".to_owned(), links: vec![1], mtu: 1500 });
    experiment.tunnel = Some(Tunnel {
        paths: vec![0, 1],
        mpt_scheduler: "packet-round-robin".into(),
        weights: vec![1, 1],
        first: 0,
        stray_packets: 0,
        overhead: 0,
        mtu: 1440,
        resequence: Some(Resequence { window, timeout, deliver_late: false }),
        device: None,
        ropewalk: None,
    });
}
