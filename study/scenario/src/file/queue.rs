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
    /// Size of the queue: `"100p"`, `"64kB"`, `"50ms"` at the rate of the link (of a trace, its mean), or `"1bdp"`
    /// (the bottleneck rate of the first path over this link, times the RTT of that path without queues). Default:
    /// `"1000p"`; dualpi2 `"10000p"`, fq-codel `"10240p"`, cake `"4MiB"`.
    pub(crate) limit: Option<Spanned<QueueSize>>,
    /// The queue discipline.
    #[serde(default)]
    pub(crate) discipline: Discipline,
    /// Mark ECN-capable packets when the discipline would drop them early. DualPI2 always does. Default: `false`;
    /// dualpi2, fq-codel and cake `true`.
    pub(crate) ecn: Option<bool>,
    /// CoDel, FQ-CoDel, PIE, DualPI2: acceptable standing delay. For DualPI2 it is that of the Classic queue. Default:
    /// `"5ms"`; pie and dualpi2 `"15ms"`.
    pub(crate) target: Option<Spanned<Time>>,
    /// CoDel, FQ-CoDel: the time in which the delay must fall to the target at least once. Default: `"100ms"`.
    pub(crate) interval: Option<Spanned<Time>>,
    /// CoDel, FQ-CoDel: mark every ECN-capable packet that waited longer than this (the step of DCTCP). Default:
    /// never.
    pub(crate) ce_threshold: Option<Spanned<Time>>,
    /// FQ-CoDel: number of queues into which flows are hashed. Default: 1024.
    pub(crate) flows: Option<Spanned<u32>>,
    /// FQ-CoDel: bytes that each flow may send per round. Default: `"1514b"`.
    pub(crate) quantum: Option<Spanned<Size>>,
    /// PIE, DualPI2: time between two updates of the drop probability. Default: `"15ms"`; dualpi2 `"16ms"`.
    pub(crate) tupdate: Option<Spanned<Time>>,
    /// PIE, DualPI2: weight of the distance from the target, 1/s. `tc pie` writes it in sixteenths: 2 is 0.125 here.
    /// Default: 0.125; dualpi2 0.16.
    pub(crate) alpha: Option<Spanned<f64>>,
    /// PIE, DualPI2: weight of the change of the delay, 1/s. `tc pie` writes it in sixteenths: 20 is 1.25 here.
    /// Default: 1.25; dualpi2 3.2.
    pub(crate) beta: Option<Spanned<f64>>,
    /// DualPI2: factor k from the base probability p' to the probability with which L4S packets are marked. Other
    /// packets meet the square of p'. Default: 2.
    pub(crate) coupling_factor: Option<Spanned<f64>>,
    /// DualPI2: delay above which every L4S packet is marked. Default: `"1ms"`.
    pub(crate) step_thresh: Option<Spanned<Time>>,
    /// DualPI2: share of the rate that Classic packets get while the L4S queue is full. Default: `"10%"`.
    pub(crate) classic_protection: Option<Spanned<Percent>>,
    /// CAKE: the RTT for which it is tuned. It is the interval of CoDel, and 20 times its target. Default: `"100ms"`.
    pub(crate) rtt: Option<Spanned<Time>>,
    /// RED (required): average queue below which no packet is dropped early.
    pub(crate) min: Option<Spanned<Size>>,
    /// RED (required): average queue above which every packet is dropped or marked.
    pub(crate) max: Option<Spanned<Size>>,
    /// RED: drop probability at `max`. Default: `"2%"`.
    pub(crate) probability: Option<Spanned<Percent>>,
    /// RED: weight of the newest sample in the average, 0 to 1. Default: 0.002.
    pub(crate) weight: Option<Spanned<f64>>,
    /// RED with `ecn`: drop packets above `max` (`harddrop` of `tc-red`). With `false` they are marked, as Linux does
    /// without that word. The recipe for DCTCP (`max` one packet above `min`) needs `false`. Default: `true`.
    pub(crate) hard_drop: Option<Spanned<bool>>,
}

/// A queue discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "discipline")]
pub(crate) enum Discipline {
    /// First in, first out. Drops the arriving packet when full.
    #[default]
    DropTail,
    /// First in, first out. Drops the packets at the head when full, so that the sender notices a loss sooner
    /// (`pfifo_head_drop`; Lakshman, Neidhardt and Ott 1996).
    DropHead,
    /// Drops or marks at the head, ever faster while the delay stays above the target (RFC 8289).
    CoDel,
    /// Drops on arrival. The longer the average queue, the likelier (Floyd and Jacobson 1993).
    Red,
    /// Drops on arrival, with a probability that a controller sets by the delay (RFC 8033). It uses time stamps, not a
    /// rate estimate.
    Pie,
    /// A short queue for L4S packets (ECT(1), CE), and one for all others. They are coupled so that flows of both get
    /// about the same rate (RFC 9332, Appendix A; parameters of Linux 6.17).
    DualPi2,
    /// A queue for each flow, with CoDel in each. The queues are served in turns, sparse flows first. When full, the
    /// longest queue loses packets (RFC 8290).
    #[serde(rename = "fq-codel")]
    FqCodel,
    /// As `fq-codel`, with eight-way set-associative hashing, and COBALT (CoDel and BLUE) in each queue
    /// (Høiland-Jørgensen et al. 2018).
    Cake,
}
