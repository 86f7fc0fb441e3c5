//! The parameters.

use crate::{ParamKind, Parameter, Params};
use units::Span;

const SWITCH: &[&str] = &["on", "off"];

/// What the registry declares.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "polite",
        description: "keep no standing queue while nobody else fills the bottleneck's",
        kind: ParamKind::Choice(SWITCH),
    },
    Parameter {
        name: "experiment",
        description: "find out by backing off whether losses without delay are random; off: all of them are",
        kind: ParamKind::Choice(SWITCH),
    },
    Parameter {
        name: "couple",
        description: "one CUBIC window for all paths that share a bottleneck",
        kind: ParamKind::Choice(SWITCH),
    },
    Parameter {
        name: "resume",
        description: "begin a path that comes up again within 5 minutes with half of its earlier window (RFC 9959)",
        kind: ParamKind::Choice(SWITCH),
    },
    Parameter {
        name: "weight",
        description: "CUBIC flows whose share a path takes: at most the flows that it carries for different people (RFC 2914)",
        kind: ParamKind::Number { default: 1.0, min: 1.0, max: 16.0 },
    },
    Parameter {
        name: "theta",
        description: "part of the greatest queueing delay from which a loss is congestion; at 0 a sixteenth of the base RTT",
        kind: ParamKind::Number { default: 0.0, min: 0.0, max: 1.0 },
    },
    Parameter {
        name: "back_off",
        description: "part of the window that an experiment leaves",
        kind: ParamKind::Number { default: 0.5, min: 0.1, max: 0.9 },
    },
    Parameter {
        name: "evidence",
        description: "lost packets, without delay, from which an experiment can follow; fewer are congestion",
        kind: ParamKind::Number { default: 5.0, min: 1.0, max: 100.0 },
    },
    Parameter {
        name: "respond",
        description: "part of the loss rate that has to remain in an experiment for the losses to be random",
        kind: ParamKind::Number { default: 0.5, min: 0.0, max: 1.0 },
    },
    Parameter {
        name: "revalidate",
        description: "seconds after which a known random loss rate is put to the experiment again; 0 is never",
        kind: ParamKind::Number { default: 0.0, min: 0.0, max: 3600.0 },
    },
];

/// The values of the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) polite: bool,
    pub(super) experiment: bool,
    pub(super) couple: bool,
    pub(super) resume: bool,
    pub(super) weight: f64,
    pub(super) theta: f64,
    pub(super) back_off: f64,
    pub(super) evidence: f64,
    pub(super) respond: f64,
    pub(super) revalidate: Option<Span>,
}

impl Config {
    pub(super) fn new(params: &Params) -> Self {
        let is_on = |name| params.choice(name) == SWITCH[0];
        let revalidate = params.number("revalidate");
        Self {
            polite: is_on("polite"),
            experiment: is_on("experiment"),
            couple: is_on("couple"),
            resume: is_on("resume"),
            weight: params.number("weight"),
            theta: params.number("theta"),
            back_off: params.number("back_off"),
            evidence: params.number("evidence"),
            respond: params.number("respond"),
            revalidate: (revalidate > 0.0).then(|| Span::from_secs_f64(revalidate)),
        }
    }
}
