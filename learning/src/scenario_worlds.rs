//! The runs of a scenario as worlds: one or several of its flows learn.

use crate::config::{ConfigError, Kind};
use crate::world::World;
use link::PipeConfig;
use policy::{Reward, Share};
use scenario::Overrides;
use scenario::model::{Application, Experiment, Flow, FlowKind, Path, Route};
use serde::Deserialize;
use sim::Simulation;
use units::RngStream;

/// A scenario in a configuration: what its reader takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioFile {
    /// The name of the text in errors.
    origin: String,
    text: String,
    /// The folder of the files that it names.
    base: String,
    /// KEY=VALUE each.
    sets: Vec<String>,
    quick: bool,
}

/// The cells of a scenario, of which the seed of an episode draws one, and the flows that learn.
#[derive(Clone, Debug)]
pub struct ScenarioWorlds {
    cells: Vec<Cell>,
    subflows: usize,
}

#[derive(Clone, Debug)]
struct Cell {
    parameters: Vec<(String, String)>,
    experiment: Experiment,
    /// The learning flows by their places.
    flows: Vec<usize>,
    /// One per learning flow.
    shares: Vec<Share>,
}

impl ScenarioWorlds {
    /// The worlds of a scenario in which these flows learn; without names, its only flow that can. `kind` is by default
    /// the congestion control. Returns the kind, too.
    pub(crate) fn new(
        file: &ScenarioFile,
        flows: Option<&[String]>,
        kind: Option<Kind>,
    ) -> Result<(Self, Kind), ConfigError> {
        let overrides = Overrides { sets: file.sets.clone(), quick: file.quick };
        let scenario = scenario::parse(&file.origin, &file.text, file.base.as_ref(), &overrides)
            .map_err(|error| ConfigError::new("scenario", error.to_string()))?;
        let cells: Vec<Cell> = scenario
            .cells
            .into_iter()
            .map(|cell| Cell::new(cell.parameters, cell.experiment, flows))
            .collect::<Result<_, _>>()?;
        let (name, subflows) = cells[0].learners().next().expect("one learns at least");
        if let Some((other, count)) = cells.iter().flat_map(Cell::learners).find(|(_, count)| *count != subflows) {
            let (subflows, count) = (subflows.max(1), count.max(1));
            let problem = match other == name {
                true => format!("`{name}` has {subflows} paths in one cell and {count} in another; set one of them"),
                false => format!("`{name}` has {subflows} paths and `{other}` {count}; let flows alike learn together"),
            };
            return Err(ConfigError::new("flow", problem));
        }
        let kind = kind_of(name, subflows, kind)?;
        cells.iter().try_for_each(|cell| cell.check_scheduler(kind))?;
        Ok((Self { cells, subflows: subflows.max(1) }, kind))
    }

    /// Number of paths of each learning flow.
    #[must_use]
    pub fn subflows(&self) -> usize {
        self.subflows
    }

    /// The names of the learning flows.
    #[must_use]
    pub fn flows(&self) -> Vec<&str> {
        self.cells[0].learners().map(|(name, _)| name).collect()
    }

    /// The swept keys and shown values of a cell.
    #[must_use]
    pub fn parameters(&self, cell: usize) -> &[(String, String)] {
        &self.cells[cell].parameters
    }

    /// The world of a seed: a cell that it draws, whose run has the seed without its highest bit, which a scenario's text
    /// cannot hold.
    pub(crate) fn draw(&self, seed: u64) -> World {
        let index = RngStream::named(seed, "cell").below(self.cells.len() as u64) as usize;
        let Cell { experiment, flows, shares, .. } = &self.cells[index];
        let seed = seed & (u64::MAX >> 1);
        let (learners, shares) = (flows.clone(), shares.clone());
        World { experiment: experiment.clone(), learners, cell: index, seed, shares }
    }

    /// Checks that there is a capacity by which a reward divides.
    pub(crate) fn check_reward(&self, reward: &Reward) -> Result<(), ConfigError> {
        let needs_capacity = matches!(reward, Reward::Sage | Reward::SageFriendliness);
        let learners = self.cells.iter().flat_map(|cell| cell.learners().zip(&cell.shares));
        match learners.into_iter().find(|(_, share)| needs_capacity && share.capacity == 0.0) {
            Some(((name, _), _)) => {
                let problem = "divides by the capacity of the flow's paths, and no link of one has a rate";
                Err(ConfigError::new("reward", format!("`{name}`: {problem}; take another")))
            }
            None => Ok(()),
        }
    }
}

impl Cell {
    fn new(
        parameters: Vec<(String, String)>,
        experiment: Experiment,
        names: Option<&[String]>,
    ) -> Result<Self, ConfigError> {
        let flows = match names {
            Some(names) => names.iter().map(|name| find(&experiment, Some(name))).collect::<Result<Vec<_>, _>>()?,
            None => vec![find(&experiment, None)?],
        };
        if let Some(twice) = (1..flows.len()).find(|place| flows[..*place].contains(&flows[*place])) {
            let name = &experiment.flows[flows[twice]].name;
            return Err(ConfigError::new("flow", format!("`{name}` is given twice")));
        }
        let mut simulation =
            Simulation::new(&experiment, 0).map_err(|error| ConfigError::new("scenario", error.to_string()))?;
        for flow in &flows {
            simulation.controller(*flow).ok_or_else(|| ConfigError::new("flow", "it has no congestion control"))?;
        }
        let shares = flows.iter().map(|flow| share(&experiment, &experiment.flows[*flow])).collect();
        Ok(Self { parameters, experiment, flows, shares })
    }

    /// Checks that a flow whose congestion control is replaced has a scheduler that does not watch it.
    fn check_scheduler(&self, kind: Kind) -> Result<(), ConfigError> {
        let watches = |flow: &&Flow| {
            let FlowKind::Tcp { multipath: Some(multipath), .. } = &flow.kind else { return false };
            let choice = &multipath.scheduler;
            let scheduler = schedule::find(&choice.name).map(|entry| entry.scheduler(&[], 0, &choice.parameters));
            scheduler.and_then(Result::ok).is_some_and(|scheduler| scheduler.watches())
        };
        let flow = self.flows.iter().map(|flow| &self.experiment.flows[*flow]).find(watches);
        match flow {
            Some(Flow { name, .. }) if !kind.is_scheduler() => {
                let problem =
                    "has a scheduler that decides by what its congestion control measures, which is replaced here";
                Err(ConfigError::new("flow", format!("`{name}` {problem}; give it another `scheduler`")))
            }
            _ => Ok(()),
        }
    }

    /// The names of the learning flows and their numbers of subflows, which are 0 over one path.
    fn learners(&self) -> impl Iterator<Item = (&str, usize)> {
        let flows = self.flows.iter().map(|flow| &self.experiment.flows[*flow]);
        flows.map(|flow| (flow.name.as_str(), flow.kind.subflows().len()))
    }
}

/// The kind of the learners, if a flow of this number of subflows can be one of that kind.
fn kind_of(name: &str, subflows: usize, wanted: Option<Kind>) -> Result<Kind, ConfigError> {
    let own = if subflows > 0 { Kind::Subflows } else { Kind::Single };
    let wanted = wanted.unwrap_or(own);
    if (wanted == Kind::Single) == (own == Kind::Single) {
        return Ok(wanted);
    }
    let kind = wanted.name();
    let problem = match own {
        Kind::Single => format!("`{kind}`, but `{name}` has one path, and no scheduler; `single` is right"),
        _ => {
            format!("`{kind}`, but `{name}` has several paths; `subflows`, `weights`, `path` or `packet` are right")
        }
    };
    Err(ConfigError::new("decides", problem))
}

/// The flow that learns: that of this name, or the only one that can.
fn find(experiment: &Experiment, name: Option<&str>) -> Result<usize, ConfigError> {
    let can_learn = |flow: &&Flow| refusal(flow).is_none();
    let candidates: Vec<&str> = experiment.flows.iter().filter(can_learn).map(|flow| flow.name.as_str()).collect();
    let wanted = match (name, &candidates[..]) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => return Err(ConfigError::new("flow", "no flow of the scenario is one that a policy can steer")),
        (None, several) => {
            let problem = format!("is missing; several flows can learn: {}", several.join(", "));
            return Err(ConfigError::new("flow", problem));
        }
    };
    let Some(index) = experiment.flows.iter().position(|flow| flow.name == wanted) else {
        let help = parse::suggest(wanted, &candidates);
        return Err(ConfigError::new("flow", format!("no flow is called `{wanted}`; {help}")));
    };
    match refusal(&experiment.flows[index]) {
        Some(reason) => Err(ConfigError::new("flow", format!("`{wanted}` {reason}"))),
        None => Ok(index),
    }
}

/// Why a policy cannot steer a flow, if it cannot.
fn refusal(flow: &Flow) -> Option<&'static str> {
    match &flow.kind {
        FlowKind::ConstantRate { .. } => {
            Some("sends UDP at a constant rate; a policy steers flows of TCP, MPTCP and multipath QUIC")
        }
        FlowKind::Hosted(_) => Some("is a hosted stack's; a policy steers flows of TCP, MPTCP and multipath QUIC"),
        FlowKind::Tcp { application: Application::Requests(requests), .. } if requests.new_connections => Some(
            "opens a connection for each request, and a policy steers one; set its `requests.connection` to \"persistent\"",
        ),
        FlowKind::Tcp { .. } => None,
    }
}

/// What the paths of a flow can carry, and its fair share among the flows with which it shares links and that answer to congestion.
fn share(experiment: &Experiment, flow: &Flow) -> Share {
    let mut bottlenecks: Vec<(usize, f64)> =
        paths(experiment, flow).filter_map(|path| bottleneck(experiment, path, flow.reverse)).collect();
    bottlenecks.sort_by_key(|(link, _)| *link);
    bottlenecks.dedup_by_key(|(link, _)| *link);
    let capacity = bottlenecks.iter().map(|(_, mbps)| mbps).sum();
    let links = |flow: &Flow| paths(experiment, flow).flat_map(|path| path.links.iter().copied()).collect::<Vec<_>>();
    let own = links(flow);
    let is_rival = |other: &&Flow| {
        matches!(other.kind, FlowKind::Tcp { .. } | FlowKind::Hosted(_))
            && other.reverse == flow.reverse
            && links(other).iter().any(|link| own.contains(link))
    };
    let flows = experiment.flows.iter().filter(is_rival).count().max(1);
    Share { capacity, fair: capacity / flows as f64 }
}

/// The paths that the packets of a flow take.
fn paths<'e>(experiment: &'e Experiment, flow: &'e Flow) -> impl Iterator<Item = &'e Path> {
    let indices: Vec<usize> = match (flow.route, &experiment.tunnel) {
        (Route::Path(path), _) => vec![path],
        (Route::Subflows, _) => flow.kind.subflows().iter().map(|subflow| subflow.path).collect(),
        (Route::Tunnel, Some(tunnel)) => tunnel.paths.clone(),
        (Route::Tunnel, None) => Vec::new(),
    };
    indices.into_iter().map(|index| &experiment.paths[index])
}

/// The slowest link of a path in the direction of the data, with its rate in Mbit/s.
fn bottleneck(experiment: &Experiment, path: &Path, is_reverse: bool) -> Option<(usize, f64)> {
    let rate = |(place, link): (usize, &usize)| {
        let is_forward = (place < path.turn) != is_reverse;
        let pipe: &PipeConfig =
            if is_forward { &experiment.links[*link].forward } else { &experiment.links[*link].reverse };
        Some((*link, pipe.sustained_rate(experiment.duration)?.as_mbps()))
    };
    path.links.iter().enumerate().filter_map(rate).min_by(|a, b| a.1.total_cmp(&b.1))
}
