//! What the report makes of a sweep: tables, figures of lines and bars, claims with a verdict.

use crate::reference::{self, Reference};
use parse::At;
use parse::Fault;
use parse::{Percent, Time};
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
        /// The least value.
        least: f64,
        /// The greatest value.
        most: Option<f64>,
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

/// Declares a table with the keys of a [`Scope`]. (serde's `flatten` would lose positions and the refusal of unknown
/// keys.)
macro_rules! with_scope_keys {
    ($(#[$meta:meta])* $name:ident { $($extra:tt)* }) => {
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $name {
            $($extra)*
            /// Only cells with these values of swept keys, as the sweep shows them: { case = ["a", "b"] }. Where rows,
            /// columns, lines or of is "flow": these flows and subflows.
            #[serde(default)]
            only: BTreeMap<String, At<Vec<String>>>,
            /// Whose result, where there are several flows; "FLOW/PATH" is an MPTCP flow's subflow over a path. Default:
            /// the first flow's.
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
        /// The swept key whose values are the rows; or "flow".
        rows: At<String>,
        /// The swept key whose values are the columns; or "flow". Without it the columns are the values.
        columns: Option<At<String>>,
        /// What stands in the table: a field of the result of a flow or subflow, such as goodput_mbps; several, if there are
        /// no columns: [{ label = "RTT, ms", value = "srtt_ms.mean", flow = "mptcp/lte" }].
        value: At<Values>,
        /// Published or measured values to compare with.
        #[serde(default)]
        reference: Vec<reference::Written>,
    }
}

with_scope_keys! {
    /// A chart over time, with a line for each value of a swept key; or, across a swept key, a bar for each value of another.
    #[schemars(rename = "figure")]
    WrittenFigure {
        /// What stands above it. Default: what the value is called.
        #[serde(default)]
        title: String,
        /// The swept key whose values are lines over time; or "flow".
        lines: Option<At<String>>,
        /// Instead of lines: the swept key whose values are bars; or "flow".
        bars: Option<At<String>>,
        /// With bars: the swept key whose values are along the axis; or "flow".
        across: Option<At<String>>,
        /// Of lines a column of a flow's time series, such as cwnd_packets; of bars a value as in a table.
        value: At<String>,
    }
}

with_scope_keys! {
    /// Something that was claimed, and when it holds: one of highest, lowest, order, alike, range, ratio.
    #[schemars(rename = "claim")]
    WrittenClaim {
        /// In the source's words.
        says: At<String>,
        /// Where it stands.
        #[serde(default)]
        source: String,
        /// The numbers that stand there.
        #[serde(default)]
        published: String,
        /// What a reader must know about the verdict.
        #[serde(default)]
        note: String,
        /// What is compared: as in a table.
        value: String,
        /// The swept key whose values are compared; or "flow".
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
        /// The value of each of these is `least` or more, `most` or less.
        range: Option<At<Vec<String>>>,
        /// The first one's value over the second one's is `least` or more, `most` or less.
        ratio: Option<At<[String; 2]>>,
        /// For `range` and `ratio`. Default: 0.
        least: Option<f64>,
        /// For `range` and `ratio`. Default: no limit.
        most: Option<f64>,
    }
}

/// One value or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Values {
    One(String),
    Several(Vec<WrittenColumn>),
}

/// A value: its name, or more about it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum WrittenColumn {
    Plain(String),
    Labelled(Labelled),
}

/// A value with a label.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "column")]
struct Labelled {
    /// What it is called.
    label: String,
    /// A field of the result of a flow or subflow.
    value: String,
    /// Whose. Default: as the table.
    flow: Option<String>,
}

impl From<&WrittenColumn> for Column {
    fn from(column: &WrittenColumn) -> Self {
        match column {
            WrittenColumn::Plain(value) => Self { value: value.clone(), ..Self::default() },
            WrittenColumn::Labelled(Labelled { label, value, flow }) => {
                Self { value: value.clone(), label: label.clone(), flow: flow.clone() }
            }
        }
    }
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
        let most = self.most;
        let range = self.range.as_ref().map(|names| Test::Range { names: names.get().clone(), least, most });
        let ratio = self.ratio.as_ref().map(|of| Test::Ratio { of: of.get().clone(), least, most });
        let [highest, lowest] = [list(&self.highest, Test::Highest), list(&self.lowest, Test::Lowest)];
        let tests = [highest, lowest, list(&self.order, Test::Order), alike, range, ratio];
        let mut tests: Vec<Test> = tests.into_iter().flatten().collect();
        match (tests.len(), tests.pop()) {
            (1, Some(test)) if !test.names().is_empty() => Ok(test),
            _ => {
                let fault = Fault::at(self.says.span(), "a claim says when it holds, in one way");
                Err(fault
                    .help("one of highest, lowest, order, alike (with within), range or ratio (with least or most)"))
            }
        }
    }
}
