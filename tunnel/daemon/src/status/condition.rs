//! How paths and peers work, in one word each.

use super::{PathState, PathStatus, PeerStatus};
use crate::event::CauseKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a path works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Works as usual.
    Up,
    /// Works, and carries data only while other paths are full or down.
    Standby,
    /// Works, has used its quota, and carries data only while no other path works.
    OverQuota,
    /// Probes were sent, none was answered yet.
    #[default]
    Validating,
    /// Works, with less than half of its usual rate, or with much more loss or delay than usual.
    Degraded,
    /// Works, and went down several times in the last minutes.
    Flapping,
    /// Does not answer, or its device is down.
    Down,
}

/// How a peer is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PeerCondition {
    /// By all of its paths.
    Up,
    /// No path has worked yet.
    #[default]
    Connecting,
    /// A path works, and another one is down, degraded or flapping.
    Degraded,
    /// No path works any more.
    Lost,
}

/// The word in the JSON.
macro_rules! as_word {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    };
}
as_word!(Condition);
as_word!(PeerCondition);

impl Condition {
    /// Whether the path answers.
    #[must_use]
    pub fn works(self) -> bool {
        !matches!(self, Self::Validating | Self::Down)
    }

    /// Whether an operator should look at the path.
    #[must_use]
    pub fn is_trouble(self) -> bool {
        self >= Self::Degraded
    }
}

impl PathStatus {
    /// The condition that follows from the other fields.
    pub(crate) fn judge(&mut self) {
        let cause = self.cause.as_ref().map(|cause| cause.kind);
        let is_exceeded = self.quota.is_some_and(|quota| quota.exceeded);
        self.condition = match self.state {
            PathState::Down => Condition::Down,
            PathState::Validating => Condition::Validating,
            PathState::Up if cause == Some(CauseKind::Flapping) => Condition::Flapping,
            PathState::Up if cause.is_some() => Condition::Degraded,
            PathState::Up if is_exceeded => Condition::OverQuota,
            PathState::Up if self.backup || self.secondary => Condition::Standby,
            PathState::Up => Condition::Up,
        };
    }
}

impl PeerStatus {
    /// The condition that follows from those of the paths.
    pub(crate) fn judge(&mut self) {
        let has = |test: fn(&PathStatus) -> bool| self.paths.iter().any(test);
        self.condition = if has(|path| path.condition.works()) {
            if has(|path| path.condition.is_trouble()) { PeerCondition::Degraded } else { PeerCondition::Up }
        } else if has(|path| path.state == PathState::Down) || self.handshake_age_ms.is_some() {
            PeerCondition::Lost
        } else {
            PeerCondition::Connecting
        };
    }

    /// The number of paths that work.
    #[must_use]
    pub fn working_paths(&self) -> usize {
        self.paths.iter().filter(|path| path.state == PathState::Up).count()
    }

    /// The sums of the rates of its paths: sent and received, bit/s.
    #[must_use]
    pub fn rates_bps(&self) -> [u64; 2] {
        let sum = |rate: fn(&PathStatus) -> u64| self.paths.iter().map(rate).sum();
        [sum(|path| path.send_rate_bps), sum(|path| path.receive_rate_bps)]
    }

    /// The smallest round-trip time of its paths, ms.
    #[must_use]
    pub fn srtt_ms(&self) -> Option<f64> {
        self.paths.iter().filter_map(|path| path.srtt_ms).min_by(f64::total_cmp)
    }

    /// The greatest loss of its paths, 0 to 1.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        self.paths.iter().filter_map(|path| path.loss_ratio).max_by(f64::total_cmp)
    }
}
