//! The configuration of an environment.

use crate::message::{read, shortened};
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
    paths: Vec<PathRanges>,
    #[serde(default)]
    rivals: Rivals,
    #[serde(default = "ten")]
    duration_s: f64,
    #[serde(default = "one", rename = "agents")]
    learners: usize,
    #[serde(default, rename = "decides")]
    kind: Kind,
    #[serde(default = "aurora")]
    observation: String,
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

fn one() -> usize {
    1
}

fn ten() -> f64 {
    10.0
}

fn aurora() -> String {
    "aurora".to_owned()
}

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
    /// MPTCP over all paths with CUBIC on each. One number `a` per subflow sets its weight in the strict `weighted`
    /// scheduler, `8^a`.
    Weights,
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
    /// Ranges of the paths.
    pub paths: Vec<PathRanges>,
    /// Classical flows.
    pub rivals: Rivals,
    /// Length of an episode.
    pub duration: Span,
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

impl Config {
    /// Reads a configuration in JSON.
    ///
    /// # Errors
    /// An unknown key, an invalid value, or a trace that cannot be read; with the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, ConfigError> {
        let file = read(json)?;
        let error = |key: &str, problem: String| ConfigError { key: key.to_owned(), problem };
        if file.paths.is_empty() || file.paths.len() > 32 {
            return Err(error("paths", format!("{} paths; 1 to 32 are allowed", file.paths.len())));
        }
        if file.kind == Kind::Single && file.paths.len() > 1 {
            let problem = format!("{} paths for a flow over one path; give one, or take MPTCP flows", file.paths.len());
            return Err(error("paths", problem));
        }
        file.paths.iter().enumerate().try_for_each(|(index, path)| check_path(index, path))?;
        check_rivals(&file.rivals)?;
        if !(0.1..=86_400.0).contains(&file.duration_s) {
            return Err(error("duration_s", format!("{}: an episode takes 0.1 to 86400 seconds", file.duration_s)));
        }
        if !(1..=64).contains(&file.learners) {
            return Err(error("agents", format!("{}: 1 to 64 are allowed", file.learners)));
        }
        let observation = Observation::parse(&file.observation, file.history);
        let action = match file.kind {
            Kind::Weights => "cubic_steering",
            Kind::Single | Kind::Subflows => &file.action,
        };
        let settings = Settings {
            observation: observation.map_err(|fault| error("observation", fault.to_string()))?,
            action: Action::parse(action).map_err(|fault| error("action", fault.to_string()))?,
            interval: Interval::parse(&file.interval).map_err(|problem| error("interval", problem))?,
            paths: if file.kind == Kind::Single { 1 } else { file.paths.len() },
        };
        let reward = match &file.reward {
            RewardFile::Preset(name) => Reward::preset(name),
            RewardFile::Terms(terms) if terms.is_empty() => {
                return Err(error(
                    "reward",
                    "no terms; give at least one, as in {\"throughput_mbps\": 1.0}".to_owned(),
                ));
            }
            RewardFile::Terms(terms) => Reward::terms(terms.iter().map(|(name, weight)| (name.as_str(), *weight))),
        };
        Ok(Self {
            paths: file.paths,
            rivals: file.rivals,
            duration: Span::from_secs_f64(file.duration_s),
            learners: file.learners,
            kind: file.kind,
            settings,
            reward: reward.map_err(|fault| error("reward", fault.to_string()))?,
            text: json.into(),
        })
    }

    /// Number of values in one learner's observation.
    #[must_use]
    pub fn observation_len(&self) -> usize {
        self.settings.observation_len()
    }

    /// Number of values in one learner's action.
    #[must_use]
    pub fn action_len(&self) -> usize {
        self.settings.action_len()
    }

    /// The largest absolute value of an action.
    #[must_use]
    pub fn action_limit(&self) -> f32 {
        if self.kind == Kind::Weights { 1.0 } else { self.settings.action.limit() }
    }

    /// The smallest and the largest possible value of each number of an observation.
    #[must_use]
    pub fn observation_range(&self) -> Vec<[f32; 2]> {
        let features = self.settings.observation.features();
        let path = (0..self.settings.observation.history()).flat_map(|_| features.iter().map(|it| it.range()));
        let path: Vec<[f32; 2]> = path.collect();
        path.repeat(self.settings.paths)
    }
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
