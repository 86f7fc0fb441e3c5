//! Worlds drawn by seed.

use crate::config::{Config, Kind, Range};
use link::{LossModel, PipeConfig, QueueConfig, QueueLimit, RateTrace};
use policy::Share;
use scenario::model::{
    Application, Experiment, Flow, FlowKind, Host, Link, Mptcp, MptcpStack, Multipath, MultipathTransport, Path, Route,
    Subflow,
};
use units::{Instant, Rate, RngStream, Span};

/// A world: an experiment that begins with the learning flows.
#[derive(Clone, Debug)]
pub struct World {
    /// Links, flows and duration.
    pub experiment: Experiment,
    /// The capacity that the world offers a learning flow.
    pub share: Share,
}

/// Bytes of a full packet on a link: Ethernet's preamble, header, checksum and gap included.
const PACKET: u64 = 1538;
const MTU: u32 = 1500;
/// Ethernet's preamble, header, checksum and gap, bytes.
const OVERHEAD: u32 = 38;
/// Minimum queue, packets.
const MIN_QUEUE: u64 = 4;
/// Bytes of the DSS option on a data segment, as Linux sends it.
const DSS_OPTION: u32 = 20;

fn uniform(rng: &mut RngStream, Range(least, greatest): Range) -> f64 {
    least + (greatest - least) * rng.unit()
}

fn log_uniform(rng: &mut RngStream, Range(least, greatest): Range) -> f64 {
    // If the bounds are equal, the value is exactly theirs, without rounding.
    if least == greatest { least } else { least * libm::exp(rng.unit() * libm::log(greatest / least)) }
}

/// The world of a configuration and a seed.
#[must_use]
pub fn draw(config: &Config, seed: u64) -> World {
    let mut rng = RngStream::named(seed, "world");
    let mut experiment = Experiment {
        name: "learning".to_owned(),
        duration: config.duration,
        sample: None,
        links: Vec::with_capacity(config.paths.len()),
        paths: Vec::with_capacity(config.paths.len()),
        tunnel: None,
        flows: Vec::new(),
        events: Vec::new(),
    };
    let mut capacity = 0.0;
    for index in 0..config.paths.len() {
        let (forward, reverse) = draw_path(config, index, &mut rng);
        let rate = forward.sustained_rate(config.duration);
        if config.kind != Kind::Single || index == 0 {
            capacity += rate.map_or(0.0, Rate::as_mbps);
        }
        experiment.links.push(Link::new(format!("link {index}"), forward, reverse));
        experiment.paths.push(Path { name: format!("path {index}"), links: vec![index], turn: 1, mtu: MTU });
    }
    experiment.flows.extend((0..config.learners).map(|index| learner(config, index)));
    let (least, greatest) = config.rivals.count;
    let rivals = least + rng.below(u64::from(greatest - least) + 1) as u32;
    for index in 0..rivals {
        let algorithm = rng.below(config.rivals.algorithms.len() as u64) as usize;
        let path = rng.below(config.paths.len() as u64) as usize;
        let start = Instant::ZERO + Span::from_secs_f64(uniform(&mut rng, config.rivals.start_s));
        let name = format!("rival {index}");
        experiment.flows.push(flow(name, Route::Path(path), start, &config.rivals.algorithms[algorithm], None));
    }
    let fair = capacity / (config.learners as f64 + f64::from(rivals));
    World { experiment, share: Share { capacity, fair } }
}

fn draw_path(config: &Config, index: usize, rng: &mut RngStream) -> (PipeConfig, PipeConfig) {
    let ranges = &config.paths[index];
    let rate = ranges.rate_mbps.map(|range| Rate::from_bits((log_uniform(rng, range) * 1e6) as u64));
    let rtt = Span::from_secs_f64(log_uniform(rng, ranges.rtt_ms) / 1e3);
    let loss = uniform(rng, ranges.loss);
    let queue_bdp = uniform(rng, ranges.queue_bdp);
    let traces = &ranges.traces;
    let trace = (!traces.is_empty()).then(|| traces[rng.below(traces.len() as u64) as usize].clone());
    let trace_offset = trace.as_ref().map_or(Span::ZERO, |trace| draw_offset(ranges.trace_offset_s, trace, rng));
    let traced_rate = trace.as_ref().map(RateTrace::mean_rate);
    let mean_rate = traced_rate.or(rate).expect("a path has a rate or traces");
    let packets = ((queue_bdp * mean_rate.bytes_in(rtt) as f64) as u64).div_ceil(PACKET).max(MIN_QUEUE);
    let pipe = |rate, limit| PipeConfig {
        rate,
        delay: Span(rtt.0 / 2),
        overhead: OVERHEAD,
        queue: QueueConfig { limit: QueueLimit::Packets(limit), ..QueueConfig::default() },
        ..PipeConfig::default()
    };
    let loss = if loss > 0.0 { LossModel::Random(loss) } else { LossModel::None };
    let forward = PipeConfig { loss, ..pipe(rate.filter(|_| trace.is_none()), packets) };
    // Acknowledgements must not be a bottleneck: the reverse direction is never slower than the data direction.
    let reverse = pipe(rate.max(Some(mean_rate)), packets.max(1000));
    (PipeConfig { trace, trace_offset, ..forward }, reverse)
}

/// The offset in a trace at which an episode begins: in a range of seconds, or anywhere.
fn draw_offset(range: Option<Range>, trace: &RateTrace, rng: &mut RngStream) -> Span {
    match range {
        Some(seconds) => Span::from_millis((uniform(rng, seconds) * 1e3) as u64),
        None => Span::from_millis(rng.below(trace.period_ms)),
    }
}

fn learner(config: &Config, index: usize) -> Flow {
    let name = format!("learner {index}");
    match config.kind {
        Kind::Single => flow(name, Route::Path(0), Instant::ZERO, "cubic", None),
        Kind::Subflows | Kind::Weights => {
            let multipath = multipath(config.paths.len(), config.kind);
            flow(name, Route::Subflows, Instant::ZERO, "cubic", Some(Box::new(multipath)))
        }
    }
}

fn multipath(paths: usize, kind: Kind) -> Multipath {
    let mut scheduler: scenario::model::AlgorithmChoice = "minrtt".into();
    let mut weights = Vec::new();
    if kind == Kind::Weights {
        scheduler = "weighted".into();
        scheduler.parameters.insert("strict".to_owned(), params::ParamValue::Number(1.0));
        weights = vec![1; paths];
    }
    Multipath {
        subflows: (0..paths).map(|path| Subflow { path, backup: false, join: Span::ZERO, leave: None }).collect(),
        scheduler,
        weights,
        transport: MultipathTransport::Mptcp(Mptcp {
            stack: MptcpStack::Upstream,
            opportunistic_retransmission: false,
            penalisation: false,
            dss_option_bytes: DSS_OPTION,
        }),
    }
}

fn flow(name: String, route: Route, start: Instant, algorithm: &str, multipath: Option<Box<Multipath>>) -> Flow {
    let kind = FlowKind::Tcp {
        congestion: algorithm.into(),
        application: Application::Greedy,
        size: None,
        host: Box::<Host>::default(),
        multipath,
    };
    Flow { name, copy_of: None, route, start, start_within: Span::ZERO, stop: None, reverse: false, kind }
}
