//! Learned congestion control and scheduling: a policy observes the measurements of a monitor interval and answers with an action.
//!
//! - `monitor`: the measurements of a path over one interval; `feature`: the features that a policy observes, by name;
//!   `observation`: presets of features, and their history; `interval`: when it is asked; `action`: the effect of the
//!   answer; `reward`: the reward
//!   that training maximises.
//! - `controller`: [`PolicyController`], the [`control::Controller`] of a group of paths. It asks a [`Policy`], or a
//!   learning environment decides from outside; both give the same decisions, bit for bit.
//! - [`onnx`] reads a trained model, and evaluates it with the same bits on every machine; `file`: the policy's
//!   metadata in that model; `entry`: the congestion control `policy` of the registry.
//! - `scheduler`: schedulers that a policy decides, packet by packet or at each interval.

mod action;
mod controller;
mod entry;
mod feature;
mod file;
mod interval;
mod monitor;
mod observation;
pub mod onnx;
mod per_path;
mod reward;
mod scheduler;
#[cfg(test)]
mod tests;

pub use action::{Action, ActionEntry, ActionError};
pub use controller::{PolicyController, Settings};
pub use entry::register;
pub use feature::{Feature, Statistic, WindowedSignal};
pub use file::{ModelPolicy, PolicyFile};
pub use interval::Interval;
pub use monitor::Summary;
pub use observation::{Observation, ObservationError};
pub use per_path::PerPath;
pub use reward::{Reward, RewardError, Share};
pub use scheduler::{
    CONNECTION_FEATURES, MEAN_WEIGHT, PATH_FEATURES, PacketFeature, PacketRule, SchedulerDecision, SchedulerFile,
    observe_packet, packet_observation_len, weights_of,
};

use std::fmt;

/// Answers each observation with an action.
pub trait Policy: fmt::Debug + Send + Sync {
    /// Writes the action for an observation. `observation` has [`Settings::observation_len`] values, `action` has
    /// [`Settings::action_len`], zero when called.
    ///
    /// # Errors
    /// The model fails. The controller falls back to CUBIC, as it does for an action that is not finite.
    fn act(&mut self, observation: &[f32], action: &mut [f32]) -> Result<(), PolicyError>;
}

/// The reason why a policy gave no action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(pub String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}
