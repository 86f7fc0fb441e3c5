//! The runs of a scenario as worlds: one of its flows learns.

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

/// The cells of a scenario, of which the seed of an episode draws one, and the flow that learns.
#[derive(Clone, Debug)]
pub struct ScenarioWorlds {
    cells: Vec<Cell>,
    subflows: usize,
}

#[derive(Clone, Debug)]
struct Cell {
    parameters: Vec<(String, String)>,
    experiment: Experiment,
    /// The learning flow by its place.
    flow: usize,
    share: Share,
}

impl ScenarioWorlds {
    /// The worlds of a scenario in which `flow` learns; without a name, its only flow that can. `kind` is by default the
    /// congestion control. Returns the kind, too.
    pub(crate) fn new(
        file: &ScenarioFile,
        flow: Option<&str>,
        kind: Option<Kind>,
    ) -> Result<(Self, Kind), ConfigError> {
        let overrides = Overrides { sets: file.sets.clone(), quick: file.quick };
        let scenario = scenario::parse(&file.origin, &file.text, file.base.as_ref(), &overrides)
            .map_err(|error| ConfigError::new("scenario", error.to_string()))?;
        let cells: Vec<Cell> = scenario
            .cells
            .into_iter()
            .map(|cell| Cell::new(cell.parameters, cell.experiment, flow))
            .collect::<Result<_, _>>()?;
        let subflows = cells[0].subflows();
        if let Some(other) = cells.iter().find(|cell| cell.subflows() != subflows) {
            let (name, count) = (other.name(), other.subflows());
            let problem = format!("`{name}` has {subflows} paths in one cell and {count} in another; set one of them");
            return Err(ConfigError::new("flow", problem));
        }
        let kind = cells[0].kind(kind)?;
        Ok((Self { cells, subflows: subflows.max(1) }, kind))
    }

    /// Number of paths of the learning flow.
    #[must_use]
    pub fn subflows(&self) -> usize {
        self.subflows
    }

    /// The name of the learning flow.
    #[must_use]
    pub fn flow(&self) -> &str {
        self.cells[0].name()
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
        let Cell { experiment, flow, share, .. } = &self.cells[index];
        let seed = seed & (u64::MAX >> 1);
        World { experiment: experiment.clone(), learners: vec![*flow], cell: index, seed, share: *share }
    }

    /// Checks that there is a capacity by which a reward divides.
    pub(crate) fn check_reward(&self, reward: &Reward) -> Result<(), ConfigError> {
        let needs_capacity = matches!(reward, Reward::Sage | Reward::SageFriendliness);
        match self.cells.iter().find(|cell| needs_capacity && cell.share.capacity == 0.0) {
            Some(cell) => {
                let problem = "divides by the capacity of the flow's paths, and no link of one has a rate";
                Err(ConfigError::new("reward", format!("`{}`: {problem}; take another", cell.name())))
            }
            None => Ok(()),
        }
    }
}

impl Cell {
    fn new(parameters: Vec<(String, String)>, experiment: Experiment, name: Option<&str>) -> Result<Self, ConfigError> {
        let flow = find(&experiment, name)?;
        let mut simulation =
            Simulation::new(&experiment, 0).map_err(|error| ConfigError::new("scenario", error.to_string()))?;
        simulation.controller(flow).ok_or_else(|| ConfigError::new("flow", "it has no congestion control"))?;
        let share = share(&experiment, &experiment.flows[flow]);
        Ok(Self { parameters, experiment, flow, share })
    }

    fn name(&self) -> &str {
        &self.experiment.flows[self.flow].name
    }

    /// Number of subflows; 0 for a flow over one path.
    fn subflows(&self) -> usize {
        self.experiment.flows[self.flow].kind.subflows().len()
    }

    /// The kind of the learner, if the flow can be one of that kind.
    fn kind(&self, wanted: Option<Kind>) -> Result<Kind, ConfigError> {
        let own = if self.subflows() > 0 { Kind::Subflows } else { Kind::Single };
        let wanted = wanted.unwrap_or(own);
        if (wanted == Kind::Single) == (own == Kind::Single) {
            return Ok(wanted);
        }
        let (name, kind) = (self.name(), wanted.name());
        Err(ConfigError::new(
            "decides",
            match own {
                Kind::Single => format!("`{kind}`, but `{name}` has one path, and no scheduler; `single` is right"),
                _ => format!(
                    "`{kind}`, but `{name}` has several paths; `subflows`, `weights`, `path` or `packet` are right"
                ),
            },
        ))
    }
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
