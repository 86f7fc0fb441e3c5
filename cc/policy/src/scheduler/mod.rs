//! Schedulers that a learned policy decides.
//!
//! - [`SchedulerFile`] is a policy's file whose action is a scheduler's; `entry`: the scheduler `policy` of the registry.
//! - `packet`: a decision for each packet; `interval`: one for each monitor interval.

mod entry;
mod file;
mod interval;
mod packet;

pub(crate) use entry::register;
pub use file::{SchedulerDecision, SchedulerFile};
pub use interval::{MEAN_WEIGHT, weights_of};
pub use packet::{
    CONNECTION_FEATURES, PATH_FEATURES, PacketFeature, PacketRule, observe_packet, packet_observation_len,
};

use crate::{ModelPolicy, Policy as _};
use units::PathId;

/// A model that answers for the paths of a connection, until it fails.
#[derive(Debug)]
struct Answers {
    policy: ModelPolicy,
    numbers: Vec<f32>,
    failure: Option<String>,
}

impl Answers {
    fn new(policy: ModelPolicy) -> Self {
        Self { numbers: vec![0.0; policy.action_len()], policy, failure: None }
    }

    /// One number per path; `None` once the policy has failed.
    fn to(&mut self, observation: &[f32]) -> Option<&[f32]> {
        if self.failure.is_some() {
            return None;
        }
        if let Err(error) = self.policy.act(observation, &mut self.numbers) {
            self.fail(&error.0);
        } else if let Some(number) = self.numbers.iter().find(|number| !number.is_finite()) {
            let message = format!("the policy answered {number}");
            self.fail(&message);
        }
        self.failure.is_none().then_some(&*self.numbers)
    }

    /// Refuses a connection with more paths than the policy decides for.
    fn check_paths(&mut self, count: usize) {
        let paths = self.numbers.len();
        if count > paths && self.failure.is_none() {
            self.fail(&format!("the policy decides for {paths} paths, but there are more"));
        }
    }

    fn fail(&mut self, reason: &str) {
        self.failure = Some(format!("scheduler: {reason}"));
    }
}

/// The path with the greatest number, the first of equal ones.
fn greatest(numbers: &[f32]) -> Option<PathId> {
    let beats = |best: usize, next: usize| if numbers[next] > numbers[best] { next } else { best };
    (0..numbers.len()).reduce(beats).map(|path| PathId(path as u16))
}
