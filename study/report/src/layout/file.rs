//! The report's part of a scenario file: the TOML tables of tables, figures and claims.
//!
//! The doc comments here are the descriptions in the JSON Schema, written for authors of scenarios.

use super::model::{Column, HeatMap, Test};
use super::reference::ReferenceTable;
use parse::{Diagnostic, Percent, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The top-level keys of a scenario file that are the report's.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct LayoutFile {
    /// Tables of the report.
    pub(super) table: Vec<TableFile>,
    /// Figures of the report.
    pub(super) figure: Vec<FigureFile>,
    /// Claims, which the report decides.
    pub(super) claim: Vec<ClaimFile>,
    /// Constants that were fitted, for `ropewalk fit`.
    pub(super) fit: Vec<FitFile>,
}

/// Declares a table with the keys of a [`Scope`]. (serde's `flatten` would lose positions and the refusal of unknown
/// keys.)
macro_rules! with_scope_keys {
    ($(#[$meta:meta])* $name:ident { $($extra:tt)* }) => {
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(super) struct $name {
            $($extra)*
            /// Only cells with these values of swept keys, as the sweep shows them: { case = ["a", "b"] }. Where rows,
            /// columns, lines or of is "flow": these flows and subflows.
            #[serde(default)]
            only: BTreeMap<String, Spanned<Vec<String>>>,
            /// The flow, if there are several; "FLOW/PATH" is an MPTCP flow's subflow over a path. Default:
            /// the first flow's.
            flow: Option<Spanned<String>>,
            /// Only the time from this instant on, from the time series.
            from: Option<Spanned<Time>>,
            /// Only the time until this instant, from the time series.
            until: Option<Spanned<Time>>,
            /// Payload's share of the bytes on the links. A value in Mbit/s is then shown as a share of what is
            /// attainable: this share of capacity_mbps, what all paths together can carry.
            attainable: Option<Spanned<Percent>>,
        }

        impl $name {
            pub(super) fn scope(&self) -> ScopeFile<'_> {
                let (only, flow, times) = (&self.only, &self.flow, [&self.from, &self.until]);
                ScopeFile { only, flow, times, attainable: &self.attainable }
            }
        }
    };
}

/// The keys of a scope.
pub(super) struct ScopeFile<'a> {
    pub(super) only: &'a BTreeMap<String, Spanned<Vec<String>>>,
    pub(super) flow: &'a Option<Spanned<String>>,
    pub(super) times: [&'a Option<Spanned<Time>>; 2],
    pub(super) attainable: &'a Option<Spanned<Percent>>,
}

with_scope_keys! {
    /// A table of the report.
    #[schemars(rename = "table")]
    TableFile {
        /// Title. Default: the name of the value.
        #[serde(default)]
        pub(super) title: String,
        /// The swept key whose values are the rows, or several, whose combinations are; or "flow".
        pub(super) rows: Spanned<Keys>,
        /// The swept key whose values are the columns; or "flow". Without it the columns are the values.
        pub(super) columns: Option<Spanned<String>>,
        /// The value shown: a field of the result of a flow or subflow, such as goodput_mbps; several, if there are no
        /// columns: [{ label = "RTT, ms", value = "srtt_ms.mean", flow = "mptcp/lte" }].
        pub(super) value: Spanned<Values>,
        /// Small cells with two decimals, coloured on a fixed scale.
        pub(super) heat_map: Option<Spanned<HeatMapFile>>,
        /// Published or measured values to compare with.
        #[serde(default)]
        pub(super) reference: Vec<ReferenceTable>,
    }
}

with_scope_keys! {
    /// A chart over time, with a line for each value of a swept key; or, across a swept key, a bar for each value of
    /// another; or the distribution of a value over all cells, a curve for each value of a swept key.
    #[schemars(rename = "figure")]
    FigureFile {
        /// Title. Default: the name of the value.
        #[serde(default)]
        pub(super) title: String,
        /// The swept key whose values are lines over time; or "flow".
        pub(super) lines: Option<Spanned<String>>,
        /// Instead of lines: the swept key whose values are bars; or "flow".
        pub(super) bars: Option<Spanned<String>>,
        /// With bars: the swept key whose values are along the axis; or "flow".
        pub(super) across: Option<Spanned<String>>,
        /// Instead of lines: the swept key for each value of which there is the distribution over all cells; or "flow".
        pub(super) distribution: Option<Spanned<String>>,
        /// With a distribution: a value to mark.
        pub(super) threshold: Option<Spanned<f64>>,
        /// Of lines a column of a flow's time series, such as cwnd_packets; else a value as in a table.
        pub(super) value: Spanned<String>,
    }
}

with_scope_keys! {
    /// A claim, and the test that decides it: one of highest, lowest, order, alike, range, ratio.
    #[schemars(rename = "claim")]
    ClaimFile {
        /// The statement, in the source's words.
        pub(super) says: Spanned<String>,
        /// The source.
        #[serde(default)]
        pub(super) source: String,
        /// The numbers of the source.
        #[serde(default)]
        pub(super) published: String,
        /// A note on the verdict.
        #[serde(default)]
        pub(super) note: String,
        /// Why the claim is known not to hold of some of what it is put to. A failure then counts as an expected one.
        #[serde(default)]
        pub(super) expected_failure: String,
        /// The value that is compared, as in a table.
        pub(super) value: String,
        /// The swept key whose values are compared; or "flow".
        pub(super) of: Spanned<String>,
        /// A swept key for each value of which there is a verdict.
        pub(super) each: Option<Spanned<String>>,
        /// A swept key that the source does not give. The claim has one verdict: at which of its values it holds.
        pub(super) unknown: Option<Spanned<String>>,
        /// These have the greatest values, in any order.
        pub(super) highest: Option<Spanned<Vec<String>>>,
        /// These have the least values, in any order.
        pub(super) lowest: Option<Spanned<Vec<String>>>,
        /// Each one's value is at least that of the next.
        pub(super) order: Option<Spanned<Vec<String>>>,
        /// These differ by at most `within` of their mean.
        pub(super) alike: Option<Spanned<Vec<String>>>,
        /// For `alike`: the share of their mean. For `highest`, `lowest` and `order`: values that differ by no more count
        /// as equal. Default: 0.
        pub(super) within: Option<Spanned<Percent>>,
        /// The value of each of these is `min` or more, `max` or less.
        pub(super) range: Option<Spanned<Vec<String>>>,
        /// The first one's value over the second one's is `min` or more, `max` or less.
        pub(super) ratio: Option<Spanned<[String; 2]>>,
        /// For `range` and `ratio`. Default: 0.
        pub(super) min: Option<Spanned<f64>>,
        /// For `range` and `ratio`. Default: no limit.
        pub(super) max: Option<Spanned<f64>>,
        /// For `ratio`: the claim also holds if the first one's value is this or less.
        pub(super) or_max: Option<Spanned<f64>>,
    }
}

with_scope_keys! {
    /// A constant of the file that was chosen so that a value reaches a target. `ropewalk fit` says whether it still
    /// does, and which constant would.
    #[schemars(rename = "fit")]
    FitFile {
        /// What the constant was chosen for.
        pub(super) says: Spanned<String>,
        /// The source of the target.
        #[serde(default)]
        pub(super) source: String,
        /// The key of the constant, as `--set` takes it: "path.*.jitter".
        pub(super) key: Spanned<String>,
        /// The constant, as the file has it: "250us".
        pub(super) chosen: Spanned<String>,
        /// The bounds of a search for another one, in the same unit: ["100us", "400us"].
        pub(super) between: Spanned<[String; 2]>,
        /// The value that has a target, as in a table: the mean over the cells and seeds.
        pub(super) value: String,
        /// The target.
        pub(super) target: Spanned<f64>,
        /// How precisely the target is known, as a share of it.
        pub(super) within: Spanned<Percent>,
    }
}

/// The fixed scale of a heat map.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "heat_map")]
pub(super) struct HeatMapFile {
    /// The value at the scale's lower end.
    #[serde(default)]
    min: f64,
    /// The value at the scale's upper end. Default: 1.
    max: Option<f64>,
    /// The value from which on a cell has another colour.
    threshold: Option<f64>,
    /// Instead of a threshold, the value that is even, such as 0.5 of a share: it has no colour, and both sides of it get
    /// stronger towards their ends.
    even: Option<f64>,
}

impl HeatMapFile {
    /// The scale, if its values ascend.
    pub(super) fn checked(given: &Spanned<Self>) -> Result<HeatMap, Diagnostic> {
        let Self { min, max, threshold, even } = *given.get();
        let max = max.unwrap_or(1.0);
        if threshold.is_some() && even.is_some() {
            let diagnostic = Diagnostic::new(given.span(), "a heat map has either a threshold or an even value");
            return Err(diagnostic.with_help("leave out `threshold` or `even`"));
        }
        if min < max && threshold.or(even).is_none_or(|middle| min < middle && middle < max) {
            return Ok(HeatMap { min, max, threshold, even });
        }
        let diagnostic = Diagnostic::new(given.span(), "the scale of a heat map does not ascend");
        Err(diagnostic.with_help("min < threshold < max, for example { min = 0, max = 1, threshold = 0.9 }"))
    }
}

/// One swept key or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a swept key, or a list of them")]
#[schemars(inline)]
pub(super) enum Keys {
    One(String),
    Several(Vec<String>),
}

impl Keys {
    /// The keys as a list.
    pub(super) fn list(&self) -> &[String] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Several(keys) => keys,
        }
    }
}

/// One value or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a value, or a list of values and of { label, value, flow }")]
#[schemars(inline)]
pub(super) enum Values {
    One(String),
    Several(Vec<ColumnFile>),
}

/// A value: its name, or more about it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a value, or { label, value, flow }")]
#[schemars(inline)]
pub(super) enum ColumnFile {
    Plain(String),
    Labelled(LabelledValue),
}

/// A value with a label.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "column")]
pub(super) struct LabelledValue {
    /// Heading.
    label: String,
    /// A field of the result of a flow or subflow.
    value: String,
    /// The flow or subflow. Default: as the table.
    flow: Option<String>,
}

impl From<&ColumnFile> for Column {
    fn from(column: &ColumnFile) -> Self {
        match column {
            ColumnFile::Plain(value) => Self { value: value.clone(), ..Self::default() },
            ColumnFile::Labelled(LabelledValue { label, value, flow }) => {
                Self { value: value.clone(), label: label.clone(), flow: flow.clone() }
            }
        }
    }
}

impl ClaimFile {
    /// The one test that is written.
    pub(super) fn test(&self) -> Result<Test, Diagnostic> {
        let list = |names: &Option<Spanned<Vec<String>>>, test: fn(Vec<String>) -> Test| {
            names.as_ref().map(|names| test(names.get().clone()))
        };
        let within = self.within();
        let alike = self.alike.as_ref().map(|names| Test::Alike { names: names.get().clone(), within });
        let min = self.min.as_ref().map_or(0.0, |min| *min.get());
        let [max, or_max] = [&self.max, &self.or_max].map(|limit| limit.as_ref().map(|limit| *limit.get()));
        let range = self.range.as_ref().map(|names| Test::Range { names: names.get().clone(), min, max });
        let ratio = self.ratio.as_ref().map(|of| Test::Ratio { of: of.get().clone(), min, max, or_max });
        let [highest, lowest] = [list(&self.highest, Test::Highest), list(&self.lowest, Test::Lowest)];
        let tests = [highest, lowest, list(&self.order, Test::Order), alike, range, ratio];
        let mut tests: Vec<Test> = tests.into_iter().flatten().collect();
        match (tests.len(), tests.pop()) {
            (1, Some(test)) if !test.names().is_empty() => self.check_limits(&test).map(|()| test),
            _ => {
                let diagnostic = Diagnostic::new(self.says.span(), "a claim says when it holds, in one way");
                Err(diagnostic
                    .with_help("one of highest, lowest, order, alike (with within), range or ratio (with min or max)"))
            }
        }
    }
    /// The share of their mean by which values may differ.
    pub(super) fn within(&self) -> f64 {
        self.within.as_ref().map_or(0.0, |within| within.get().0)
    }

    /// Refuses limits that have no meaning for the test.
    fn check_limits(&self, test: &Test) -> Result<(), Diagnostic> {
        let has_limits = matches!(test, Test::Range { .. } | Test::Ratio { .. });
        let without_meaning = |span, key: &str, help: &str| {
            let diagnostic = Diagnostic::new(span, format!("`{key}` has no meaning for this test"));
            Err(diagnostic.with_help(help))
        };
        if let (Some(limit), false) = (&self.or_max, matches!(test, Test::Ratio { .. })) {
            return without_meaning(limit.span(), "or_max", "only ratio has `or_max`; range has `max`");
        }
        match (&self.within, &self.min, &self.max) {
            (Some(within), ..) if has_limits => {
                without_meaning(within.span(), "within", "`min` and `max` are the limits of range and ratio")
            }
            (_, Some(limit), _) | (_, None, Some(limit)) if !has_limits => {
                let key = if self.min.is_some() { "min" } else { "max" };
                without_meaning(limit.span(), key, "only range and ratio have `min` and `max`; others have `within`")
            }
            (_, Some(min), Some(max)) if min.get() > max.get() => {
                Err(Diagnostic::new(min.span(), "`min` is more than `max`").with_help("min <= max"))
            }
            _ => Ok(()),
        }
    }
}
