//! What a report shows of a study: tables, figures of lines and bars, claims with a verdict.

use super::reference::Reference;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the report shows of a study, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Tables.
    pub tables: Vec<Table>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Claims.
    pub claims: Vec<Claim>,
}

/// Instead of a swept key: what is shown goes by flow, and by subflow where these are named.
pub const BY_FLOW: &str = "flow";

/// A table: one swept key down; across, another swept key or several values. Either may be [`BY_FLOW`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What stands above it, or empty: then the value says it.
    pub title: String,
    /// The swept key whose values are the rows.
    pub rows: String,
    /// The swept key whose values are the columns; without it the columns are the `values`.
    pub columns: Option<String>,
    /// What stands in the table; one, if there are `columns`.
    pub values: Vec<Column>,
    /// What part of the study.
    pub scope: Scope,
    /// Published or measured values to compare with.
    pub references: Vec<Reference>,
}

/// A value that a table shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Such as `goodput_mbps`.
    pub value: String,
    /// What it is called, or empty: then the value says it.
    pub label: String,
    /// Of which flow or subflow, if not that of the scope.
    pub flow: Option<String>,
}

/// A chart with a line or bar for each value of a swept key, or for each flow ([`BY_FLOW`]): lines over time, or bars at each
/// value of another key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What stands above it, or empty: then the value says it.
    pub title: String,
    /// The swept key whose values are the lines, or the bars.
    pub lines: String,
    /// Of bars, the swept key along the axis.
    #[serde(default)]
    pub across: Option<String>,
    /// Of lines a column of the time series, such as `cwnd_packets`; of bars a value as in a table.
    pub value: String,
    /// What part of the study. A setting of the keys that are left makes a chart.
    pub scope: Scope,
}

/// Something that was said about the values of a swept key, and how to find out whether it holds here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// In the source's words, or near to them.
    pub says: String,
    /// Where it stands, or empty.
    pub source: String,
    /// What is compared, such as `goodput_mbps`: the mean over all cells in scope.
    pub value: String,
    /// The swept key whose values are compared, or [`BY_FLOW`].
    pub of: String,
    /// A swept key for each value of which the claim gets a verdict of its own.
    pub each: Option<String>,
    /// What part of the study.
    pub scope: Scope,
    /// When it holds.
    pub test: Test,
    /// The numbers that the source gives, in its words, or empty.
    pub published: String,
    /// What a reader must know about the verdict, or empty.
    pub note: String,
}

/// When a claim holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Test {
    /// These have the greatest values, in any order.
    Highest(Vec<String>),
    /// These have the least values, in any order.
    Lowest(Vec<String>),
    /// Each one's value is at least that of the next.
    Order(Vec<String>),
    /// The greatest and the least of these differ by at most a share of their mean.
    Alike {
        /// Which.
        names: Vec<String>,
        /// The share, 0 to 1.
        within: f64,
    },
    /// The value of each of these lies in a range.
    Range {
        /// Which.
        names: Vec<String>,
        /// The least value that is allowed.
        #[serde(alias = "least")]
        min: f64,
        /// The greatest value that is allowed.
        #[serde(alias = "most")]
        max: Option<f64>,
    },
    /// The value of the first over that of the second lies in a range.
    Ratio {
        /// Which.
        of: [String; 2],
        /// The least ratio that is allowed.
        #[serde(alias = "least")]
        min: f64,
        /// The greatest ratio that is allowed.
        #[serde(alias = "most")]
        max: Option<f64>,
    },
}

/// A part of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// Only cells with one of these values of a swept key; of [`BY_FLOW`], these flows and subflows.
    pub only: BTreeMap<String, Vec<String>>,
    /// The flow, where there are several; `FLOW/PATH` is the subflow of an MPTCP flow over a path.
    pub flow: Option<String>,
    /// From this second of the run on.
    pub from_s: Option<f64>,
    /// Until this second of the run.
    pub until_s: Option<f64>,
}

impl Scope {
    /// Whether a part of the run's time is meant, so that values come from the time series.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.from_s.is_some() || self.until_s.is_some()
    }

    /// Whether a cell with these parameters belongs to it.
    #[must_use]
    pub fn has(&self, parameters: &BTreeMap<String, String>) -> bool {
        self.only.iter().all(|(key, values)| parameters.get(key).is_none_or(|value| values.contains(value)))
    }
}

impl Test {
    /// The values of the swept key that it names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::Highest(names) | Self::Lowest(names) | Self::Order(names) => names,
            Self::Alike { names, .. } | Self::Range { names, .. } => names,
            Self::Ratio { of, .. } => of,
        }
    }
}
