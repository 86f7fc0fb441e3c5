//! Worlds drawn by seed.

use crate::config::{Config, ConfigError, Kind, PathRanges, Range, Ranges, Worlds};
use link::{LossModel, PipeConfig, QueueConfig, QueueLimit, RateTrace};
use policy::{MEAN_WEIGHT, Share};
use scenario::model::{
    Application, Experiment, Flow, FlowKind, Host, Link, Mptcp, MptcpStack, Multipath, MultipathTransport, Path, Route,
    Subflow,
};
use units::{Instant, Rate, RngStream, Span};

/// A world: an experiment, and the flows of it that learn.
#[derive(Clone, Debug)]
pub struct World {
    /// Links, flows and duration. The learning flows have the algorithms that the environment does not decide.
    pub experiment: Experiment,
    /// The learning flows by their places in the experiment.
    pub learners: Vec<usize>,
    /// The cell of the scenario, if it is one's; otherwise 0.
    pub cell: usize,
    /// The seed of its run.
    pub seed: u64,
    /// The capacity that the world offers each learning flow.
    pub shares: Vec<Share>,
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
    let mut world = draw_unprepared(config, seed);
    for learner in &world.learners {
        prepare(&mut world.experiment.flows[*learner], config.kind);
    }
    world
}

/// The world in which the learning flows have a classical algorithm: a congestion control, or a scheduler where the
/// actions are a scheduler's. Without a name they keep what the scenario gives them.
///
/// # Errors
/// A name that no algorithm has.
pub(crate) fn draw_baseline(config: &Config, seed: u64, name: Option<&str>) -> Result<World, ConfigError> {
    let mut world = draw_unprepared(config, seed);
    let Some(name) = name else { return Ok(world) };
    let (is_known, names): (_, Vec<_>) = match config.kind.is_scheduler() {
        true => (schedule::find(name).is_some(), schedule::names().collect()),
        false => (control::registry::find(name).is_some(), control::registry::names().collect()),
    };
    if !is_known {
        let kind = if config.kind.is_scheduler() { "scheduler" } else { "congestion control" };
        let help = parse::suggest(name, &names);
        return Err(ConfigError::new("baseline", format!("no {kind} is called `{name}`; {help}")));
    }
    for learner in &world.learners {
        let FlowKind::Tcp { congestion, multipath, .. } = &mut world.experiment.flows[*learner].kind else { continue };
        match multipath {
            Some(multipath) if config.kind.is_scheduler() => multipath.scheduler = name.into(),
            _ => *congestion = name.into(),
        }
    }
    Ok(world)
}

/// The world of a configuration and a seed, in which the learning flows have the algorithms that the scenario gives them, in
/// drawn worlds CUBIC and `minrtt`.
#[must_use]
pub fn draw_unprepared(config: &Config, seed: u64) -> World {
    match &config.worlds {
        Worlds::Drawn(ranges) => draw_from(ranges, config, seed),
        Worlds::Scenario(worlds) => worlds.draw(seed),
    }
}

/// Gives a learning flow what the environment's decisions build on: the scheduler that is steered, or for a congestion
/// control that is replaced, one without peculiarities.
fn prepare(flow: &mut Flow, kind: Kind) {
    let FlowKind::Tcp { congestion, multipath, .. } = &mut flow.kind else { return };
    match (kind, multipath) {
        (Kind::Weights, Some(multipath)) => {
            multipath.scheduler = "weighted".into();
            multipath.scheduler.parameters.insert("strict".to_owned(), params::ParamValue::Number(1.0));
            multipath.weights = vec![MEAN_WEIGHT; multipath.subflows.len()];
        }
        (Kind::Path | Kind::Packet, Some(multipath)) => multipath.scheduler = "fixed".into(),
        _ => *congestion = "cubic".into(),
    }
}

fn draw_from(ranges: &Ranges, config: &Config, seed: u64) -> World {
    let mut rng = RngStream::named(seed, "world");
    let mut experiment = Experiment {
        name: "learning".to_owned(),
        duration: ranges.duration,
        sample: None,
        links: Vec::with_capacity(ranges.paths.len()),
        paths: Vec::with_capacity(ranges.paths.len()),
        tunnel: None,
        flows: Vec::new(),
        events: Vec::new(),
    };
    let mut capacity = 0.0;
    for index in 0..ranges.paths.len() {
        let (forward, reverse) = draw_path(ranges, index, &mut rng);
        let rate = forward.sustained_rate(ranges.duration);
        if config.kind != Kind::Single || index == 0 {
            capacity += rate.map_or(0.0, Rate::as_mbps);
        }
        experiment.links.push(Link::new(format!("link-{index}"), forward, reverse));
        experiment.paths.push(Path { name: format!("path-{index}"), links: vec![index], turn: 1, mtu: MTU });
    }
    experiment.flows.extend((0..config.learners).map(|index| learner(ranges, config.kind, index)));
    let rivals = &ranges.rivals;
    let (least, greatest) = rivals.count;
    let count = least + rng.below(u64::from(greatest - least) + 1) as u32;
    for index in 0..count {
        let algorithm = rng.below(rivals.algorithms.len() as u64) as usize;
        let path = rng.below(ranges.paths.len() as u64) as usize;
        let start = Instant::ZERO + Span::from_secs_f64(uniform(&mut rng, rivals.start_s));
        let name = format!("rival-{index}");
        experiment.flows.push(flow(name, Route::Path(path), start, &rivals.algorithms[algorithm], None));
    }
    let fair = capacity / (config.learners as f64 + f64::from(count));
    let shares = vec![Share { capacity, fair }; config.learners];
    World { experiment, learners: (0..config.learners).collect(), cell: 0, seed, shares }
}

fn draw_path(ranges: &Ranges, index: usize, rng: &mut RngStream) -> (PipeConfig, PipeConfig) {
    let ranges = &ranges.paths[index];
    let rate = ranges.rate_mbps.map(|range| Rate::from_bits((log_uniform(rng, range) * 1e6) as u64));
    let rtt = Span::from_secs_f64(log_uniform(rng, ranges.rtt_ms) / 1e3);
    let loss = uniform(rng, ranges.loss);
    let queue = draw_queue(ranges, rng);
    let traces = &ranges.traces;
    let trace = (!traces.is_empty()).then(|| traces[rng.below(traces.len() as u64) as usize].clone());
    let trace_offset = trace.as_ref().map_or(Span::ZERO, |trace| draw_offset(ranges.trace_offset_s, trace, rng));
    let traced_rate = trace.as_ref().map(RateTrace::mean_rate);
    let mean_rate = traced_rate.or(rate).expect("a path has a rate or traces");
    let packets = queue.packets(mean_rate, rtt).max(MIN_QUEUE);
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

/// The size of a queue.
enum Queue {
    Bdp(f64),
    Packets(f64),
    Seconds(f64),
}

fn draw_queue(ranges: &PathRanges, rng: &mut RngStream) -> Queue {
    match (ranges.queue_packets, ranges.queue_ms) {
        (Some(packets), _) => Queue::Packets(log_uniform(rng, packets)),
        (None, Some(ms)) => Queue::Seconds(uniform(rng, ms) / 1e3),
        (None, None) => Queue::Bdp(uniform(rng, ranges.queue_bdp)),
    }
}

impl Queue {
    fn packets(&self, rate: Rate, rtt: Span) -> u64 {
        let bytes = match self {
            Self::Packets(packets) => return *packets as u64,
            Self::Bdp(bdp) => bdp * rate.bytes_in(rtt) as f64,
            Self::Seconds(seconds) => rate.bytes_in(Span::from_secs_f64(*seconds)) as f64,
        };
        (bytes as u64).div_ceil(PACKET)
    }
}

/// The offset in a trace at which an episode begins: in a range of seconds, or anywhere.
fn draw_offset(range: Option<Range>, trace: &RateTrace, rng: &mut RngStream) -> Span {
    match range {
        Some(seconds) => Span::from_millis((uniform(rng, seconds) * 1e3) as u64),
        None => Span::from_millis(rng.below(trace.period_ms)),
    }
}

fn learner(ranges: &Ranges, kind: Kind, index: usize) -> Flow {
    let name = format!("learner-{index}");
    let multipath = (kind != Kind::Single).then(|| Box::new(multipath(ranges.paths.len())));
    let route = if multipath.is_some() { Route::Subflows } else { Route::Path(0) };
    flow(name, route, Instant::ZERO, "cubic", multipath)
}

fn multipath(paths: usize) -> Multipath {
    Multipath {
        subflows: (0..paths).map(|path| Subflow { path, backup: false, join: Span::ZERO, leave: None }).collect(),
        scheduler: "minrtt".into(),
        weights: Vec::new(),
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
