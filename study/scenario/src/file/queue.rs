//! The table of a queue as the scenario file has it.
//!
//! Like those of `file`, the doc comments here are descriptions in the JSON Schema.

use parse::{Percent, QueueSize, Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// A queue.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "queue")]
pub(crate) struct Queue {
    /// The limit: "100p", "64kB", "50ms" at the link's rate, or "1bdp": the bottleneck rate of the (first) path
    /// over this link times that path's round-trip time without queues.
    pub(crate) limit: Option<Spanned<QueueSize>>,
    /// The queue discipline.
    #[serde(default)]
    pub(crate) discipline: Discipline,
    /// Mark ECN-capable packets where the discipline would drop them early.
    pub(crate) ecn: Option<bool>,
    /// CoDel, FQ-CoDel, PIE, DualPI2: acceptable standing delay; of DualPI2 in the Classic queue.
    pub(crate) target: Option<Spanned<Time>>,
    /// CoDel, FQ-CoDel: time in which it must be reached once.
    pub(crate) interval: Option<Spanned<Time>>,
    /// CoDel, FQ-CoDel: mark every ECN-capable packet that waited for longer than this. Default: never.
    pub(crate) ce_threshold: Option<Spanned<Time>>,
    /// FQ-CoDel: queues that flows are hashed into.
    pub(crate) flows: Option<Spanned<u32>>,
    /// FQ-CoDel: what a flow may send each round.
    pub(crate) quantum: Option<Spanned<Size>>,
    /// PIE, DualPI2: time between two updates of the drop probability.
    pub(crate) tupdate: Option<Spanned<Time>>,
    /// PIE, DualPI2: weight of the distance from the target, 1/s. `tc` writes that of PIE in sixteenths.
    pub(crate) alpha: Option<Spanned<f64>>,
    /// PIE, DualPI2: weight of the change since the last update, 1/s. `tc` writes that of PIE in sixteenths.
    pub(crate) beta: Option<Spanned<f64>>,
    /// DualPI2: factor from the base probability, whose square Classic packets meet, to the marking of L4S packets.
    pub(crate) coupling_factor: Option<Spanned<f64>>,
    /// DualPI2: delay above which every L4S packet is marked.
    pub(crate) step_thresh: Option<Spanned<Time>>,
    /// DualPI2: share of the rate that Classic packets have beside a full L4S queue.
    pub(crate) classic_protection: Option<Spanned<Percent>>,
    /// CAKE: the round-trip time it is tuned for.
    pub(crate) rtt: Option<Spanned<Time>>,
    /// RED: no early drop below this average.
    pub(crate) min: Option<Spanned<Size>>,
    /// RED: always drop or mark above this average.
    pub(crate) max: Option<Spanned<Size>>,
    /// RED: probability at `max`.
    pub(crate) probability: Option<Spanned<Percent>>,
    /// RED: weight of the newest sample in the average, 0 to 1.
    pub(crate) weight: Option<Spanned<f64>>,
    /// RED: packets that could be marked are dropped above `max`. The recipe for DCTCP has false.
    pub(crate) hard_drop: Option<Spanned<bool>>,
}

/// A queue discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "discipline")]
pub(crate) enum Discipline {
    /// First in, first out, drop the newcomer when full.
    #[default]
    DropTail,
    /// First in, first out, drop the packets at the head when full.
    DropHead,
    /// RFC 8289.
    CoDel,
    /// Random early detection.
    Red,
    /// RFC 8033.
    Pie,
    /// RFC 9332: two queues, for L4S and for all others.
    DualPi2,
    /// RFC 8290.
    #[serde(rename = "fq-codel")]
    FqCodel,
    /// Flow isolation and COBALT as in CAKE.
    Cake,
}
