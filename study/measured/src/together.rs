//! What was measured of several paths at once.

use crate::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One TCP flow on each of several paths at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Together {
    /// The repetition, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The direction of the data.
    pub direction: Direction,
    /// The congestion control of all flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The length, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The flows.
    pub flows: Vec<SharedFlow>,
    /// Whether the paths share a bottleneck; absent if the flows do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bottleneck: Option<bool>,
}

/// One of the flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedFlow {
    /// The name of its path.
    pub path: String,
    /// Goodput next to the others, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_mbps: Option<f64>,
    /// Median goodput of the same flow alone, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_mbps: Option<f64>,
}
