//! What the report makes of a sweep: tables, figures over time, claims with a verdict.

use crate::at::At;
use crate::error::Fault;
use crate::quantity::{Percent, Time};
use crate::reference::{self, Reference};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod resolve;
pub(crate) use resolve::resolve;

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

/// A table: one swept key down; across, another swept key or several values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What stands above it, or empty: then the value says it.
    pub title: String,
    /// The swept key whose values are the rows.
    pub rows: String,
    /// The swept key whose values are the columns; without it the columns are the `values`.
    pub columns: Option<String>,
    /// What stands in the table, such as `goodput_mbps`; one, if there are `columns`.
    pub values: Vec<String>,
    /// What part of the study.
    pub scope: Scope,
    /// Published or measured values to compare with.
    pub references: Vec<Reference>,
}

/// A chart over time with a line for each value of a swept key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What stands above it, or empty: then the value says it.
    pub title: String,
    /// The swept key whose values are the lines.
    pub lines: String,
    /// The column of the time series, such as `window_packets`.
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
    /// The swept key whose values are compared.
    pub of: String,
    /// A swept key for each value of which the claim gets a verdict of its own.
    pub each: Option<String>,
    /// What part of the study.
    pub scope: Scope,
    /// When it holds.
    pub test: Test,
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
    /// The value of the first over that of the second lies in a range.
    Ratio {
        /// Which.
        of: [String; 2],
        /// The least ratio.
        least: f64,
        /// The greatest ratio.
        most: Option<f64>,
    },
}

/// A part of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// Only cells with one of these values of a swept key.
    pub only: BTreeMap<String, Vec<String>>,
    /// The flow, where there are several.
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
            Self::Highest(names) | Self::Lowest(names) | Self::Order(names) | Self::Alike { names, .. } => names,
            Self::Ratio { of, .. } => of,
        }
    }
}

/// Declares a table with the keys of a [`Scope`]. (serde's `flatten` would lose positions and the refusal of unknown
/// keys.)
macro_rules! with_scope_keys {
    ($(#[$meta:meta])* $name:ident { $($extra:tt)* }) => {
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $name {
            $($extra)*
            /// Only cells with these values of swept keys, as the sweep shows them: { case = ["a", "b"] }.
            #[serde(default)]
            only: BTreeMap<String, At<Vec<String>>>,
            /// Whose result, where there are several flows. Default: the first flow's.
            flow: Option<At<String>>,
            /// Only what happens from then on, from the time series.
            from: Option<At<Time>>,
            /// Only what happens until then, from the time series.
            until: Option<At<Time>>,
        }

        impl $name {
            fn scope(&self) -> WrittenScope<'_> {
                WrittenScope { only: &self.only, flow: &self.flow, times: [&self.from, &self.until] }
            }
        }
    };
}

struct WrittenScope<'a> {
    only: &'a BTreeMap<String, At<Vec<String>>>,
    flow: &'a Option<At<String>>,
    times: [&'a Option<At<Time>>; 2],
}

with_scope_keys! {
    /// A table of the report.
    #[schemars(rename = "table")]
    WrittenTable {
        /// What stands above it. Default: what the value is called.
        #[serde(default)]
        title: String,
        /// The swept key whose values are the rows.
        rows: At<String>,
        /// The swept key whose values are the columns. Without it the columns are the values.
        columns: Option<At<String>>,
        /// What stands in the table: a field of a flow's result, such as goodput_mbps; several, if there are no columns.
        value: At<Values>,
        /// Published or measured values to compare with.
        #[serde(default)]
        reference: Vec<reference::Written>,
    }
}

with_scope_keys! {
    /// A chart over time, with a line for each value of a swept key.
    #[schemars(rename = "figure")]
    WrittenFigure {
        /// What stands above it. Default: what the value is called.
        #[serde(default)]
        title: String,
        /// The swept key whose values are the lines.
        lines: At<String>,
        /// A column of a flow's time series, such as window_packets.
        value: String,
    }
}

with_scope_keys! {
    /// Something that was claimed, and when it holds: one of highest, lowest, order, alike, ratio.
    #[schemars(rename = "claim")]
    WrittenClaim {
        /// In the source's words.
        says: At<String>,
        /// Where it stands.
        #[serde(default)]
        source: String,
        /// What is compared: as in a table.
        value: String,
        /// The swept key whose values are compared.
        of: At<String>,
        /// A swept key for each value of which there is a verdict.
        each: Option<At<String>>,
        /// These have the greatest values, in any order.
        highest: Option<At<Vec<String>>>,
        /// These have the least values, in any order.
        lowest: Option<At<Vec<String>>>,
        /// Each one's value is at least that of the next.
        order: Option<At<Vec<String>>>,
        /// These differ by at most `within` of their mean.
        alike: Option<At<Vec<String>>>,
        /// For `alike`.
        within: Option<Percent>,
        /// The first one's value over the second one's is `least` or more, `most` or less.
        ratio: Option<At<[String; 2]>>,
        /// For `ratio`. Default: 0.
        least: Option<f64>,
        /// For `ratio`. Default: no limit.
        most: Option<f64>,
    }
}

/// One value or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Values {
    One(String),
    Several(Vec<String>),
}

impl WrittenClaim {
    /// The one test that is written.
    fn test(&self) -> Result<Test, Fault> {
        let list = |names: &Option<At<Vec<String>>>, test: fn(Vec<String>) -> Test| {
            names.as_ref().map(|names| test(names.get().clone()))
        };
        let within = self.within.map_or(0.0, |within| within.0);
        let alike = self.alike.as_ref().map(|names| Test::Alike { names: names.get().clone(), within });
        let least = self.least.unwrap_or(0.0);
        let ratio = self.ratio.as_ref().map(|of| Test::Ratio { of: of.get().clone(), least, most: self.most });
        let [highest, lowest] = [list(&self.highest, Test::Highest), list(&self.lowest, Test::Lowest)];
        let tests = [highest, lowest, list(&self.order, Test::Order), alike, ratio];
        let mut tests: Vec<Test> = tests.into_iter().flatten().collect();
        match (tests.len(), tests.pop()) {
            (1, Some(test)) if !test.names().is_empty() => Ok(test),
            _ => {
                let fault = Fault::at(self.says.span(), "a claim says when it holds, in one way");
                Err(fault.help("one of highest, lowest, order, alike (with within), ratio (with least or most)"))
            }
        }
    }
}
