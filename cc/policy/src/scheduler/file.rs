//! The file of a scheduler's policy: an ONNX model whose metadata describes what it observes and decides.

use super::entry::PacketScheduler;
use super::interval::IntervalScheduler;
use super::packet::packet_observation_len;
use crate::file::{MAX_PATHS, check_lengths, check_version, count, intervals, text};
use crate::onnx::{Model, ModelError};
use crate::{Action, ModelPolicy, Settings};
use schedule::Scheduler;
use std::sync::Arc;

/// Minimum and maximum number of paths of a scheduler.
const PATHS: [usize; 2] = [2, MAX_PATHS];
/// The observation and the interval of a policy that decides at each packet.
const PACKET: &str = "packet";

/// What a scheduler's policy decides.
#[derive(Clone, Debug, PartialEq)]
pub enum SchedulerDecision {
    /// The path of each packet: that with the greatest number of the answer.
    Packet,
    /// At each interval the path of its packets: that with the greatest number.
    Path(Settings),
    /// At each interval the weights of the paths, one number each.
    Weights(Settings),
}

/// A scheduler's policy that was read from a file.
#[derive(Clone, Debug)]
pub struct SchedulerFile {
    model: Arc<Model>,
    decision: SchedulerDecision,
}

impl SchedulerFile {
    /// The actions of schedulers.
    pub const ACTIONS: [&'static str; 2] = ["path", "weights"];

    /// Reads an ONNX file with the keys of [`PolicyFile`](crate::PolicyFile), whose action is `path` or `weights`, and
    /// whose observation and interval may both be `packet`.
    ///
    /// # Errors
    /// As of [`PolicyFile::read`](crate::PolicyFile::read).
    pub fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        let model = Model::read(bytes)?;
        check_version(&model)?;
        let action = action(&model)?;
        let paths = count(&model, "ropewalk.paths", PATHS)?;
        let decision = decision(&model, action, paths)?;
        let observation = match &decision {
            SchedulerDecision::Packet => packet_observation_len(paths),
            SchedulerDecision::Path(settings) | SchedulerDecision::Weights(settings) => settings.observation_len(),
        };
        check_lengths(&model, observation, paths)?;
        Ok(Self { model: Arc::new(model), decision })
    }

    /// What the policy decides.
    #[must_use]
    pub fn decision(&self) -> &SchedulerDecision {
        &self.decision
    }

    /// A scheduler of one connection.
    pub(super) fn scheduler(&self) -> Box<dyn Scheduler> {
        let policy = ModelPolicy::new(self.model.clone()).expect("the file has been checked");
        let notes = self.model.notes();
        match &self.decision {
            SchedulerDecision::Packet => Box::new(PacketScheduler::new(policy, notes)),
            SchedulerDecision::Path(settings) => Box::new(IntervalScheduler::of_path(settings, policy, notes)),
            SchedulerDecision::Weights(settings) => Box::new(IntervalScheduler::of_weights(settings, policy, notes)),
        }
    }
}

fn action(model: &Model) -> Result<&str, ModelError> {
    let action = text(model, "ropewalk.action")?;
    if SchedulerFile::ACTIONS.contains(&action) {
        return Ok(action);
    }
    let message = match Action::parse(action) {
        Ok(_) => format!("`{action}` is a congestion control's; name the file in `congestion`, not in `scheduler`"),
        Err(_) => format!("`{action}` is not an action of a scheduler; those are `path` and `weights`"),
    };
    Err(ModelError::Metadata("ropewalk.action", message))
}

fn decision(model: &Model, action: &str, paths: usize) -> Result<SchedulerDecision, ModelError> {
    let [observation, interval] = [text(model, "ropewalk.observation")?, text(model, "ropewalk.interval")?];
    if observation != PACKET && interval != PACKET {
        let (observation, interval) = intervals(model)?;
        let settings = Settings { observation, action: Action::UNUSED, interval, paths };
        return Ok(if action == "path" {
            SchedulerDecision::Path(settings)
        } else {
            SchedulerDecision::Weights(settings)
        });
    }
    let history = text(model, "ropewalk.history")?;
    let wrong = |key, message: String| Err(ModelError::Metadata(key, message));
    match (observation, interval, action, history) {
        (PACKET, PACKET, "path", "1") => Ok(SchedulerDecision::Packet),
        (PACKET, PACKET, "path", _) => wrong("ropewalk.history", format!("`{history}`; at a packet there is only 1")),
        (PACKET, PACKET, ..) => wrong("ropewalk.action", format!("`{action}`; at a packet it is `path`")),
        (PACKET, ..) => {
            wrong("ropewalk.interval", format!("`{interval}`; the observation `packet` is of each `packet`"))
        }
        _ => wrong("ropewalk.observation", format!("`{observation}`; what is decided at a packet observes `packet`")),
    }
}
