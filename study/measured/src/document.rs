//! The document: paths, paths together, and how they were measured.

use crate::{Direction, MeasuredPath, Together};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the document that this program writes. It reads this one and those before.
pub const VERSION: u32 = 1;

/// Measurements of one or more paths between two ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Measurements of links")]
pub struct Measured {
    /// Version of the document: 1.
    pub version: u32,
    /// The start of the measurement, UTC, as in RFC 3339: `2026-11-29T10:20:37Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The program that measured, with its version: `ropewalk 0.1.0`, `iperf 3.18`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The names of both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
    /// The options of the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
    /// What was measured of each path alone.
    pub paths: Vec<MeasuredPath>,
    /// What was measured of several paths at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Together>,
    /// The stages in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What could not be measured, or not be read from a file of another program: one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<String>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            version: VERSION,
            when: None,
            program: None,
            ends: None,
            options: None,
            paths: Vec::new(),
            together: Vec::new(),
            stages: Vec::new(),
            not_measured: Vec::new(),
        }
    }
}

impl Measured {
    /// The path of this name, which is added if there is none.
    pub fn path_mut(&mut self, name: &str) -> &mut MeasuredPath {
        let index = self.paths.iter().position(|path| path.name == name).unwrap_or_else(|| {
            self.paths.push(MeasuredPath { name: name.to_owned(), ..MeasuredPath::default() });
            self.paths.len() - 1
        });
        &mut self.paths[index]
    }

    /// Adds another document: measurements of a path go to the path of the same name. Of `when`, `program`, `ends` and
    /// `options`, those of this document stay. Times of stages stay those of their own document.
    pub fn merge(&mut self, other: Self) {
        self.when = self.when.take().or(other.when);
        self.program = self.program.take().or(other.program);
        self.ends = self.ends.take().or(other.ends);
        self.options = self.options.take().or(other.options);
        for path in other.paths {
            self.path_mut(&path.name.clone()).merge(path);
        }
        self.together.extend(other.together);
        self.stages.extend(other.stages);
        self.not_measured.extend(other.not_measured);
    }
}

/// The names of both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// The end that measured.
    pub here: String,
    /// The other end.
    pub there: String,
}

/// The options of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The seed of the order of stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Repetitions of each stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// The most that all stages together may send and receive, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
    /// The most that the stages could take by the plan, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_bytes: Option<u64>,
}

/// What a stage measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageKind {
    /// Round-trip times without load.
    IdleRtt,
    /// Datagrams at a low rate.
    Udp,
    /// One TCP flow.
    Tcp,
    /// Several TCP flows on one path at a time.
    Parallel,
    /// Small datagrams next to a bulk flow.
    Call,
    /// Several paths at once.
    Together,
}

impl StageKind {
    /// The name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::IdleRtt => "idle-rtt",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Parallel => "parallel",
            Self::Call => "call",
            Self::Together => "together",
        }
    }
}

/// One stage, in the order in which they ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// What it measured.
    pub kind: StageKind,
    /// The paths that it loaded.
    pub paths: Vec<String>,
    /// The direction of the data, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The congestion control of its TCP flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The repetition, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The start since the start of the measurement, seconds.
    pub start_s: f64,
    /// The length, seconds.
    pub seconds: f64,
    /// Payload of transport in both directions, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Why it measured nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
