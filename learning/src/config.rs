//! The configuration of an environment.

use crate::message::{read, shortened};
use crate::packets;
use crate::scenario_worlds::{ScenarioFile, ScenarioWorlds};
use link::RateTrace;
use policy::{Action, Interval, Observation, Reward, Settings};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use units::Span;

/// The configuration of an environment, as written in JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    paths: Option<Vec<PathRanges>>,
    rivals: Option<Rivals>,
    duration_s: Option<f64>,
    #[serde(rename = "agents")]
    learners: Option<usize>,
    /// The scenario whose runs are the worlds, instead of ranges.
    scenario: Option<ScenarioFile>,
    /// The flows of the scenario that learn.
    flow: Option<Vec<String>>,
    #[serde(rename = "decides")]
    kind: Option<Kind>,
    observation: Option<String>,
    history: Option<usize>,
    #[serde(default = "rate_change")]
    action: String,
    #[serde(default = "ten_ms")]
    interval: String,
    #[serde(default)]
    reward: RewardFile,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a name is expected, or a table of terms and their weights")]
enum RewardFile {
    Preset(String),
    Terms(BTreeMap<String, f64>),
}

impl Default for RewardFile {
    fn default() -> Self {
        Self::Preset("aurora".to_owned())
    }
}

/// Length of an episode in drawn worlds, seconds.
const DURATION_S: f64 = 10.0;

fn rate_change() -> String {
    "rate_change".to_owned()
}

fn ten_ms() -> String {
    "10ms".to_owned()
}

/// The kind of a learning flow, and what its actions change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// TCP over the first path.
    #[default]
    Single,
    /// MPTCP over all paths. One number per subflow changes its rate or window.
    Subflows,
    /// MPTCP over all paths with its own congestion control (in drawn worlds CUBIC on each). One number `a` per subflow
    /// sets its weight in the strict `weighted` scheduler, `8^a`.
    Weights,
    /// As `weights`, but one number chooses the path of the `fixed` scheduler: the subflow's place, from 0.
    Path,
    /// As `path`, but a number chooses the path of one packet. A step is a choice.
    Packet,
}

impl Kind {
    /// The name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Subflows => "subflows",
            Self::Weights => "weights",
            Self::Path => "path",
            Self::Packet => "packet",
        }
    }

    /// Whether an action is the place of a path.
    #[must_use]
    pub fn chooses_path(self) -> bool {
        matches!(self, Self::Path | Self::Packet)
    }

    /// Whether an action changes the scheduler, and not rates or windows.
    #[must_use]
    pub fn is_scheduler(self) -> bool {
        matches!(self, Self::Weights | Self::Path | Self::Packet)
    }
}

/// The worlds of an environment.
#[derive(Clone, Debug)]
pub enum Worlds {
    /// Drawn from ranges.
    Drawn(Ranges),
    /// The runs of a scenario.
    Scenario(ScenarioWorlds),
}

/// The ranges from which worlds are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranges {
    /// Ranges of the paths.
    pub paths: Vec<PathRanges>,
    /// Classical flows.
    pub rivals: Rivals,
    /// Length of an episode.
    pub duration: Span,
}

/// A range from which a number is drawn: `[least, greatest]`, or a number that stands for both.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Range(pub f64, pub f64);

impl TryFrom<Value> for Range {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let bounds = match value.as_array().map(Vec::as_slice) {
            Some([least, greatest]) => least.as_f64().zip(greatest.as_f64()),
            _ => value.as_f64().map(|number| (number, number)),
        };
        let message = || format!("{}: a number is expected, or a range [least, greatest]", shortened(&value));
        bounds.map(|(least, greatest)| Self(least, greatest)).ok_or_else(message)
    }
}

impl Range {
    fn check(self, key: &str, [least, greatest]: [f64; 2]) -> Result<(), ConfigError> {
        let is_good = least <= self.0 && self.0 <= self.1 && self.1 <= greatest;
        let problem =
            format!("[{}, {}]: a range has to be [least, greatest] within {least} to {greatest}", self.0, self.1);
        if is_good { Ok(()) } else { Err(ConfigError { key: key.to_owned(), problem }) }
    }
}

/// Ranges of one path: a link with a drop-tail queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRanges {
    /// Rate of the link in both directions, Mbit/s; uniform on a logarithmic scale. A path has either this or traces.
    pub rate_mbps: Option<Range>,
    /// Round-trip time without queues, ms; uniform on a logarithmic scale.
    pub rtt_ms: Range,
    /// Loss probability of a packet towards the receiver; uniform.
    #[serde(default = "no_loss")]
    pub loss: Range,
    /// Queue, in bandwidth-delay products; uniform, and never below four packets.
    #[serde(default = "one_bdp")]
    pub queue_bdp: Range,
    /// Queue in packets, instead; uniform on a logarithmic scale, and never below four.
    pub queue_packets: Option<Range>,
    /// Queue in ms at the rate of the link, instead; uniform, and never below four packets.
    pub queue_ms: Option<Range>,
    /// Traces. If there are any, one is drawn for the data direction, and the queue is sized by its mean rate.
    #[serde(default, deserialize_with = "crate::trace::list")]
    pub traces: Vec<RateTrace>,
    /// Offset in the (repeating) trace at which an episode begins, seconds; uniform. If it is omitted, anywhere in the
    /// trace.
    pub trace_offset_s: Option<Range>,
}

fn no_loss() -> Range {
    Range(0.0, 0.0)
}

fn one_bdp() -> Range {
    Range(1.0, 1.0)
}

/// Competing flows of classical algorithms. Each draws its algorithm, its path and its start.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rivals {
    /// Their number: minimum and maximum.
    #[serde(default, deserialize_with = "counts")]
    pub count: (u32, u32),
    /// Names in the registry of algorithms.
    #[serde(default = "cubic")]
    pub algorithms: Vec<String>,
    /// Start, seconds; uniform.
    #[serde(default = "no_loss")]
    pub start_s: Range,
}

/// Reads a whole number, or a range of them.
fn counts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(u32, u32), D::Error> {
    let value = Value::deserialize(deserializer)?;
    let whole = |value: &Value| value.as_u64()?.try_into().ok();
    let bounds = match value.as_array().map(Vec::as_slice) {
        Some([least, greatest]) => whole(least).zip(whole(greatest)),
        _ => whole(&value).map(|count| (count, count)),
    };
    let message = || format!("{}: a whole number is expected, or a range [least, greatest]", shortened(&value));
    bounds.ok_or_else(|| D::Error::custom(message()))
}

fn cubic() -> Vec<String> {
    vec!["cubic".to_owned()]
}

impl Default for Rivals {
    fn default() -> Self {
        Self { count: (0, 0), algorithms: cubic(), start_s: no_loss() }
    }
}

/// The configuration of an environment, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The worlds.
    pub worlds: Worlds,
    /// Number of learning flows.
    pub learners: usize,
    /// The kind of the learning flows.
    pub kind: Kind,
    /// The policy's observation and action.
    pub settings: Settings,
    /// The reward that training maximises.
    pub reward: Reward,
    /// The text from which it was read.
    pub text: Arc<str>,
}

/// The reason why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key; empty if the text is not a configuration at all.
    pub key: String,
    /// The problem with its value, and what would be right.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.problem) } else { write!(f, "{}: {}", self.key, self.problem) }
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    pub(crate) fn new(key: &str, problem: impl Into<String>) -> Self {
        Self { key: key.to_owned(), problem: problem.into() }
    }
}

impl Config {
    /// Reads a configuration in JSON.
    ///
    /// # Errors
    /// An unknown key, an invalid value, a trace that cannot be read, or a scenario or a flow of it that cannot be had; with
    /// the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, ConfigError> {
        let file = read(json)?;
        let learners = file.learners.or(file.flow.as_ref().map(Vec::len)).unwrap_or(1);
        if !(1..=64).contains(&learners) {
            return Err(ConfigError::new("agents", format!("{learners}: 1 to 64 are allowed")));
        }
        let (worlds, kind, subflows) = worlds(&file)?;
        let settings = Settings {
            observation: Observation::parse(file.observation.as_deref().unwrap_or("aurora"), file.history)
                .map_err(|fault| ConfigError::new("observation", fault.to_string()))?,
            action: Action::parse(&file.action).map_err(|fault| ConfigError::new("action", fault.to_string()))?,
            interval: Interval::parse(&file.interval).map_err(|problem| ConfigError::new("interval", problem))?,
            paths: subflows,
        };
        let given = [("observation", file.observation.is_some()), ("history", file.history.is_some())];
        if let (Kind::Packet, Some((key, _))) = (kind, given.iter().find(|(_, is_given)| *is_given)) {
            let problem = "a scheduler of packets sees the paths as they are; see `packet_features`";
            return Err(ConfigError::new(key, problem));
        }
        let reward = reward(&file.reward)?;
        if let Worlds::Scenario(worlds) = &worlds {
            worlds.check_reward(&reward)?;
        }
        Ok(Self { worlds, learners, kind, settings, reward, text: json.into() })
    }

    /// Number of values in one learner's observation.
    #[must_use]
    pub fn observation_len(&self) -> usize {
        if self.kind == Kind::Packet {
            policy::packet_observation_len(self.settings.paths)
        } else {
            self.settings.observation_len()
        }
    }

    /// Number of values in one learner's action.
    #[must_use]
    pub fn action_len(&self) -> usize {
        if self.kind.chooses_path() { 1 } else { self.settings.action_len() }
    }

    /// Observation, history, action, interval and paths, as the metadata of a policy's file has them.
    #[must_use]
    pub fn meaning(&self) -> (String, usize, String, String, usize) {
        let Settings { observation, action, interval, paths } = &self.settings;
        let action = match self.kind {
            Kind::Packet => return ("packet".to_owned(), 1, "path".to_owned(), "packet".to_owned(), *paths),
            Kind::Path | Kind::Weights => self.kind.name().to_owned(),
            Kind::Single | Kind::Subflows => action.to_string(),
        };
        (observation.to_string(), observation.history(), action, interval.to_string(), *paths)
    }

    /// The largest absolute value of an action.
    #[must_use]
    pub fn action_limit(&self) -> f32 {
        match self.kind {
            Kind::Weights => 1.0,
            Kind::Path | Kind::Packet => (self.settings.paths - 1) as f32,
            Kind::Single | Kind::Subflows => self.settings.action.limit(),
        }
    }

    /// The smallest and the largest possible value of each number of an observation.
    #[must_use]
    pub fn observation_range(&self) -> Vec<[f32; 2]> {
        if self.kind == Kind::Packet {
            return packets::observation_range(self.settings.paths);
        }
        let features = self.settings.observation.features();
        let path = (0..self.settings.observation.history()).flat_map(|_| features.iter().map(|it| it.range()));
        let path: Vec<[f32; 2]> = path.collect();
        path.repeat(self.settings.paths)
    }
}

/// The worlds of a configuration, the kind of its learners, and the number of paths that each decides for.
fn worlds(file: &File) -> Result<(Worlds, Kind, usize), ConfigError> {
    if let Some(scenario) = &file.scenario {
        let unused = [("paths", file.paths.is_some()), ("rivals", file.rivals.is_some())].into_iter();
        let unused = unused.chain([("duration_s", file.duration_s.is_some()), ("agents", file.learners.is_some())]);
        if let Some((key, _)) = unused.into_iter().find(|(_, is_given)| *is_given) {
            return Err(ConfigError::new(key, "the scenario says that; change the scenario, by `set` for example"));
        }
        let (worlds, kind) = ScenarioWorlds::new(scenario, file.flow.as_deref(), file.kind)?;
        let subflows = worlds.subflows();
        return Ok((Worlds::Scenario(worlds), kind, subflows));
    }
    if file.flow.is_some() {
        return Err(ConfigError::new("flow", "there is no scenario, whose flow it would be"));
    }
    let (ranges, kind) = (ranges(file)?, file.kind.unwrap_or_default());
    let paths = ranges.paths.len();
    if kind == Kind::Single && paths > 1 {
        let problem = format!("{paths} paths for a flow over one path; give one, or take MPTCP flows");
        return Err(ConfigError::new("paths", problem));
    }
    Ok((Worlds::Drawn(ranges), kind, if kind == Kind::Single { 1 } else { paths }))
}

fn ranges(file: &File) -> Result<Ranges, ConfigError> {
    let paths = file.paths.clone().ok_or_else(|| ConfigError::new("paths", "is missing"))?;
    if paths.is_empty() || paths.len() > 32 {
        return Err(ConfigError::new("paths", format!("{} paths; 1 to 32 are allowed", paths.len())));
    }
    paths.iter().enumerate().try_for_each(|(index, path)| check_path(index, path))?;
    let rivals = file.rivals.clone().unwrap_or_default();
    check_rivals(&rivals)?;
    let duration_s = file.duration_s.unwrap_or(DURATION_S);
    if !(0.1..=86_400.0).contains(&duration_s) {
        return Err(ConfigError::new("duration_s", format!("{duration_s}: an episode takes 0.1 to 86400 seconds")));
    }
    Ok(Ranges { paths, rivals, duration: Span::from_secs_f64(duration_s) })
}

fn reward(file: &RewardFile) -> Result<Reward, ConfigError> {
    let reward = match file {
        RewardFile::Preset(name) => Reward::preset(name),
        RewardFile::Terms(terms) if terms.is_empty() => {
            return Err(ConfigError::new("reward", "no terms; give at least one, as in {\"throughput_mbps\": 1.0}"));
        }
        RewardFile::Terms(terms) => Reward::terms(terms.iter().map(|(name, weight)| (name.as_str(), *weight))),
    };
    reward.map_err(|fault| ConfigError::new("reward", fault.to_string()))
}

fn check_path(index: usize, path: &PathRanges) -> Result<(), ConfigError> {
    let key = |name: &str| format!("paths[{index}].{name}");
    if path.rate_mbps.is_none() && path.traces.is_empty() {
        let problem = "is missing: a path has `rate_mbps`, or `traces`".to_owned();
        return Err(ConfigError { key: key("rate_mbps"), problem });
    }
    if path.trace_offset_s.is_some() && path.traces.is_empty() {
        return Err(ConfigError { key: key("trace_offset_s"), problem: "the path has no `traces`".to_owned() });
    }
    path.rate_mbps.map_or(Ok(()), |rate| rate.check(&key("rate_mbps"), [0.1, 100_000.0]))?;
    path.rtt_ms.check(&key("rtt_ms"), [0.1, 10_000.0])?;
    path.loss.check(&key("loss"), [0.0, 0.9])?;
    path.queue_bdp.check(&key("queue_bdp"), [0.0, 1000.0])?;
    if path.queue_packets.is_some() && path.queue_ms.is_some() {
        return Err(ConfigError { key: key("queue_ms"), problem: "the path has `queue_packets`; give one".to_owned() });
    }
    path.queue_packets.map_or(Ok(()), |queue| queue.check(&key("queue_packets"), [1.0, 1e6]))?;
    path.queue_ms.map_or(Ok(()), |queue| queue.check(&key("queue_ms"), [0.0, 1e5]))?;
    path.trace_offset_s.map_or(Ok(()), |offset| offset.check(&key("trace_offset_s"), [0.0, 1e7]))
}

fn check_rivals(rivals: &Rivals) -> Result<(), ConfigError> {
    let error = |key: &str, problem: String| Err(ConfigError { key: key.to_owned(), problem });
    rivals.start_s.check("rivals.start_s", [0.0, 86_400.0])?;
    let (least, greatest) = rivals.count;
    if least > greatest || greatest > 100 {
        return error("rivals.count", format!("[{least}, {greatest}]: it has to be [least, greatest] within 0 to 100"));
    }
    if rivals.algorithms.is_empty() {
        return error("rivals.algorithms", "at least one is needed".to_owned());
    }
    let unknown = rivals.algorithms.iter().find(|name| control::registry::find(name).is_none());
    match unknown {
        Some(name) => error("rivals.algorithms", format!("no congestion control is called `{name}`")),
        None => Ok(()),
    }
}
