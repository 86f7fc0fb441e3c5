//! The estimated cost of a run: the packets that its links carry.
//!
//! The simulator's work is proportional to packets times links. For each flow and path, the rate is the minimum of the rate
//! of the links, the rate of the application, the rate that the receive window allows (half its maximum size per RTT) and,
//! under random loss p, MSS / RTT * sqrt(3 / (2 p)) (Mathis et al., "The Macroscopic Behavior of the TCP Congestion
//! Avoidance Algorithm", CCR 1997, equation 3). A link carries at most its own rate. What an algorithm makes of a path
//! beyond that is not foreseen.

use scenario::model::{
    Application, Distribution, Experiment, Flow, FlowKind, Host, HostedRequests, Path, Requests, Route,
};
use std::collections::BTreeMap;

/// Size of a packet, bytes.
const PACKET_BYTES: f64 = 1500.0;
/// The rate of a flow on links without rates, bit/s.
const UNLIMITED_RATE: f64 = 1e9;
/// The minimum round-trip time, seconds: that of hosts and timers.
const LEAST_RTT_S: f64 = 1e-3;
/// Work before the first packet, in packets of one link.
const SETUP_PACKETS: f64 = 100.0;

/// The estimate, in packets times links.
pub(crate) fn estimate(experiment: &Experiment) -> u64 {
    let mut loads: BTreeMap<usize, f64> = BTreeMap::new();
    for flow in &experiment.flows {
        for (path, bytes) in loads_of(experiment, flow) {
            experiment.paths[path].links.iter().for_each(|link| *loads.entry(*link).or_default() += bytes);
        }
    }
    let seconds = experiment.duration.as_secs_f64();
    let carried = |(link, bytes): (&usize, &f64)| {
        let rate = experiment.links[*link].forward.sustained_rate(experiment.duration);
        rate.map_or(*bytes, |rate| bytes.min(rate.as_bits() as f64 / 8.0 * seconds)) / PACKET_BYTES
    };
    (SETUP_PACKETS + loads.iter().map(carried).sum::<f64>()) as u64
}

/// The bytes that a flow sends over each of its paths.
fn loads_of(experiment: &Experiment, flow: &Flow) -> Vec<(usize, f64)> {
    let paths: Vec<usize> = match flow.route {
        Route::Path(path) => vec![path],
        Route::Tunnel => experiment.tunnel.as_ref().map(|tunnel| tunnel.paths.clone()).unwrap_or_default(),
        Route::Subflows => flow.kind.subflows().iter().map(|subflow| subflow.path).collect(),
    };
    let end = flow.stop.map_or(experiment.duration.as_secs_f64(), |stop| stop.0 as f64 / 1e9);
    let seconds = (end - flow.start.0 as f64 / 1e9).max(0.0);
    let (count, limit) = (paths.len().max(1) as f64, source_rate(flow));
    let bytes = |path: usize| {
        let rate = path_rate(experiment, &experiment.paths[path], flow).min(limit / count);
        (path, (rate / 8.0 * seconds).min(size(flow) / count))
    };
    paths.into_iter().map(bytes).collect()
}

/// The rate of a flow on a path, bit/s.
fn path_rate(experiment: &Experiment, path: &Path, flow: &Flow) -> f64 {
    let links = || path.links.iter().map(|link| &experiment.links[*link]);
    let sustained = links().filter_map(|link| link.forward.sustained_rate(experiment.duration)).min();
    let sustained = sustained.map_or(UNLIMITED_RATE, |rate| rate.as_bits() as f64);
    let FlowKind::Tcp { host, .. } = &flow.kind else { return sustained };
    let rtt = links().map(|link| (link.forward.delay + link.reverse.delay).as_secs_f64()).sum::<f64>();
    let delivered = links().map(|link| 1.0 - link.forward.loss.mean()).product::<f64>();
    sustained.min(window_rate(host, rtt.max(LEAST_RTT_S))).min(loss_rate(1.0 - delivered, rtt.max(LEAST_RTT_S)))
}

fn window_rate(host: &Host, rtt: f64) -> f64 {
    host.receive_buffer.max as f64 / 2.0 * 8.0 / rtt
}

fn loss_rate(loss: f64, rtt: f64) -> f64 {
    if loss > 0.0 { PACKET_BYTES * 8.0 / rtt * (1.5 / loss).sqrt() } else { f64::INFINITY }
}

/// The rate at which the source of a flow writes, bit/s.
fn source_rate(flow: &Flow) -> f64 {
    match &flow.kind {
        FlowKind::ConstantRate { rate, .. } => rate.as_bits() as f64,
        FlowKind::Hosted(hosted) => match &hosted.requests {
            Some(HostedRequests { requests, streams }) => requests_rate(requests) * f64::from(*streams),
            None => hosted.rate.map_or(f64::INFINITY, |rate| rate.as_bits() as f64),
        },
        FlowKind::Tcp { application, .. } => match application {
            Application::Greedy => f64::INFINITY,
            Application::Steady { rate, .. } => rate.as_bits() as f64,
            Application::Requests(requests) => requests_rate(requests),
            Application::Video(video) => video.ladder.last().map_or(0.0, |rate| rate.as_bits() as f64),
        },
    }
}

/// One response per pause; without a pause, as much as the path carries.
fn requests_rate(requests: &Requests) -> f64 {
    mean(requests.size) * 8.0 / (mean(requests.think) / 1e9).max(1e-9)
}

fn mean(distribution: Distribution) -> f64 {
    match distribution {
        Distribution::Fixed(value) | Distribution::Exponential(value) => value,
        Distribution::Pareto { min, shape } => min * shape / (shape - 1.0),
    }
}

/// Maximum number of bytes that a flow sends.
fn size(flow: &Flow) -> f64 {
    match &flow.kind {
        FlowKind::Tcp { size: Some(size), .. } => *size as f64,
        _ => f64::INFINITY,
    }
}
