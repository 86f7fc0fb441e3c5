//! The report's part of a scenario file: the TOML tables of tables, figures and claims.
//!
//! The doc comments here are the descriptions in the JSON Schema, written for authors of scenarios.

use super::figure::Scale;
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
            /// Use only the cells with these values of swept keys, as the sweep shows them: `{ case = ["a", "b"] }`.
            /// Where `rows`, `columns`, `lines` or `of` is `"flow"`, it may name flows and subflows. Default: all
            /// cells.
            #[serde(default)]
            only: BTreeMap<String, Spanned<Vec<String>>>,
            /// The flow whose result is used. `"FLOW/PATH"` is the subflow of an MPTCP flow over that path. Default:
            /// the first flow.
            flow: Option<Spanned<String>>,
            /// Use only the time from this instant on. The values then come from the time series. A multiple of
            /// `sample`. Default: the start of the run.
            from: Option<Spanned<Time>>,
            /// Use only the time until this instant. The values then come from the time series. A multiple of
            /// `sample`. Default: the end of the run.
            until: Option<Spanned<Time>>,
            /// Share of the bytes on the links that is payload, such as `"92%"`. A value in Mbit/s is then shown as a
            /// share of this share of `capacity_mbps`, which all paths together can carry. Not for `lines`. Default:
            /// none.
            attainable: Option<Spanned<Percent>>,
            /// The section of the page, such as `"5.1.2 Bufferbloat"`. A page with sections shows one at a time. Default:
            /// none.
            #[serde(default)]
            section: String,
        }

        impl $name {
            pub(super) fn scope(&self) -> ScopeFile<'_> {
                let (only, flow, times) = (&self.only, &self.flow, [&self.from, &self.until]);
                ScopeFile { only, flow, times, attainable: &self.attainable, section: &self.section }
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
    pub(super) section: &'a str,
}

with_scope_keys! {
    /// A table of the report.
    #[schemars(rename = "table")]
    TableFile {
        /// Title of the table. Default: the name of the value.
        #[serde(default)]
        pub(super) title: String,
        /// The swept key whose values are the rows, or `"flow"`. A list of keys makes a row for each combination.
        /// There is one table for each setting of the other swept keys.
        pub(super) rows: Spanned<Keys>,
        /// The swept key whose values are the columns, or `"flow"`. Default: none; the columns are the values.
        pub(super) columns: Option<Spanned<String>>,
        /// The value shown: a number of a flow, of a subflow or of the run, such as `"goodput_mbps"` or
        /// `"rtt_ms.p95"`. Without `columns` it may be a list of names and of `{ label, value, flow }`.
        pub(super) value: Spanned<Values>,
        /// Draws small cells with two decimals, coloured on a fixed scale: `{ min = 0, max = 1, threshold = 0.9 }`.
        /// Default: none.
        pub(super) heat_map: Option<Spanned<HeatMapFile>>,
        /// Published or measured values, shown next to those of the runs. Default: none.
        #[serde(default)]
        pub(super) reference: Vec<ReferenceTable>,
    }
}

with_scope_keys! {
    /// A figure of one kind: lines over time or across a swept key, bars, a distribution, a scatter plot, or shares
    /// over time. There is one chart for each setting of the swept keys that the figure does not name.
    #[schemars(rename = "figure")]
    FigureFile {
        /// Title of the figure. Default: the name of the value.
        #[serde(default)]
        pub(super) title: String,
        /// One line for each value of this swept key, for each `"flow"`, or for each `"subflow"`: over time, from the first
        /// seed of each cell; or with `across`, the mean with its 95 % confidence interval at each value of that key.
        pub(super) lines: Option<Spanned<String>>,
        /// Instead of `lines`: one bar for each value of this swept key, or for each `"flow"`. Whiskers are 95 %
        /// confidence intervals, dots are single runs.
        pub(super) bars: Option<Spanned<String>>,
        /// With `bars` and `lines`: the swept key along the axis. Of bars it may be `"flow"`; of lines its values are
        /// numbers.
        pub(super) across: Option<Spanned<String>>,
        /// Instead of `lines`: one cumulative distribution (CDF) for each value of this swept key, or for each
        /// `"flow"`. A delay with samples, such as `"rtt_ms"`, has the distribution of all samples of all seeds. Any
        /// other value, such as `"goodput_mbps"` or `"rtt_ms.p95"`, has one number per cell and the distribution over
        /// all cells.
        pub(super) distribution: Option<Spanned<String>>,
        /// With `distribution`: a value to mark. The figure says how much reaches it.
        pub(super) threshold: Option<Spanned<f64>>,
        /// Instead of `lines`: one marker for each value of this swept key, or for each `"flow"`: the mean of `value`
        /// over the mean of `against`, with the ellipse of one standard deviation over the runs. An axis of time is
        /// reversed, so that up and right is better.
        pub(super) scatter: Option<Spanned<String>>,
        /// With `scatter`: the value along the horizontal axis, such as `"rtt_ms.p50"`.
        pub(super) against: Option<Spanned<String>>,
        /// Instead of `lines`: `"flow"` stacks the share of each flow, or of the subflows that `only` names, over time.
        /// It shows the first seed of each cell.
        pub(super) stacked: Option<Spanned<String>>,
        /// `"log"`: a logarithmic axis of the key `across`, with `lines`. `"ccdf"`: the complementary distribution of a
        /// delay's samples, the share above each value on a logarithmic axis. Default: `"linear"`.
        pub(super) scale: Option<Spanned<Scale>>,
        /// With `lines` over time and `stacked`: a column of the time series of a flow, such as `"cwnd_packets"`. With
        /// `distribution`: also a delay with samples. Otherwise a value as in a table.
        pub(super) value: Spanned<String>,
    }
}

with_scope_keys! {
    /// A claim, and the test that decides it: one of highest, lowest, order, alike, range, ratio.
    #[schemars(rename = "claim")]
    ClaimFile {
        /// The claim in words.
        pub(super) says: Spanned<String>,
        /// Where the claim is published.
        #[serde(default)]
        pub(super) source: String,
        /// The numbers that the source gives.
        #[serde(default)]
        pub(super) published: String,
        /// A note on the verdict.
        #[serde(default)]
        pub(super) note: String,
        /// Why the claim is known not to hold for some algorithms. A failure is then shown and counted as expected.
        #[serde(default)]
        pub(super) expected_failure: String,
        /// The value that is compared, as in a table. It is the mean over the cells and seeds.
        pub(super) value: String,
        /// The swept key whose values are compared, or `"flow"` to compare the flows and subflows of a cell.
        pub(super) of: Spanned<String>,
        /// A swept key for each value of which there is a verdict.
        pub(super) each: Option<Spanned<String>>,
        /// A swept key that the source does not give, such as the delay of its paths. The claim then has one verdict:
        /// the values of this key at which it holds.
        pub(super) unknown: Option<Spanned<String>>,
        /// Holds if these have the largest values, in any order. A tie counts.
        pub(super) highest: Option<Spanned<Vec<String>>>,
        /// Holds if these have the smallest values, in any order. A tie counts.
        pub(super) lowest: Option<Spanned<Vec<String>>>,
        /// Holds if each value is at least as large as the next one.
        pub(super) order: Option<Spanned<Vec<String>>>,
        /// Holds if the largest and the smallest of these values differ by at most `within` of their mean.
        pub(super) alike: Option<Spanned<Vec<String>>>,
        /// With `alike`: the largest difference, as a share of the mean. With `highest`, `lowest` and `order`: values
        /// that differ by at most this share of their mean count as equal. Default: 0.
        pub(super) within: Option<Spanned<Percent>>,
        /// Holds if each of these values is at least `min` and at most `max`.
        pub(super) range: Option<Spanned<Vec<String>>>,
        /// Holds if the first value divided by the second is at least `min` and at most `max`: `["a", "b"]`.
        pub(super) ratio: Option<Spanned<[String; 2]>>,
        /// With `range` and `ratio`: the lower limit. Default: 0.
        pub(super) min: Option<Spanned<f64>>,
        /// With `range` and `ratio`: the upper limit. Default: no limit.
        pub(super) max: Option<Spanned<f64>>,
        /// With `ratio`: the claim also holds if the first value is at most this.
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
        /// Where the target is published.
        #[serde(default)]
        pub(super) source: String,
        /// The constant, by the key that `--set` takes: `"path.*.jitter"`.
        pub(super) key: Spanned<String>,
        /// The constant, as the file has it: `"250us"`.
        pub(super) chosen: Spanned<String>,
        /// Bounds of the search for another constant, in the same unit: `["100us", "400us"]`.
        pub(super) between: Spanned<[String; 2]>,
        /// The value that has a target, as in a table. It is the mean over the cells and seeds.
        pub(super) value: String,
        /// The target.
        pub(super) target: Spanned<f64>,
        /// How precisely the target is known, as a share of it: `"2%"`.
        pub(super) within: Spanned<Percent>,
    }
}

/// The fixed scale of a heat map.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "heat_map")]
pub(super) struct HeatMapFile {
    /// Value at the lower end of the scale.
    #[serde(default)]
    min: f64,
    /// Value at the upper end of the scale. Default: 1.
    max: Option<f64>,
    /// Cells below this value, before rounding, have another colour, and a mark in the terminal. The table says how
    /// many cells reach it. Default: none.
    threshold: Option<f64>,
    /// Instead of `threshold`: the value without a colour, such as 0.5 of a share. Colours get stronger on both sides
    /// of it. Default: none.
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
    /// Heading of the column.
    label: String,
    /// A value of a flow, of a subflow or of the run.
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
