//! The layout of a report: tables, figures of lines or bars, and claims.

use super::figure::Figure;
use super::reference::Reference;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The tables, figures and claims of a report, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Tables.
    pub tables: Vec<Table>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Claims.
    pub claims: Vec<Claim>,
}

impl Layout {
    /// The sections of the page, in the order of tables, figures and claims.
    pub(crate) fn sections(&self) -> Vec<&str> {
        let scopes = self.tables.iter().map(|table| &table.scope);
        let scopes = scopes.chain(self.figures.iter().map(|figure| &figure.scope));
        let scopes = scopes.chain(self.claims.iter().map(|claim| &claim.scope));
        let mut sections: Vec<&str> = Vec::new();
        for scope in scopes {
            if !scope.section.is_empty() && !sections.contains(&scope.section.as_str()) {
                sections.push(&scope.section);
            }
        }
        sections
    }
}

/// The key, in the place of a swept key, of a table, figure or claim that goes by flow, and by subflow if subflows are
/// named.
pub const BY_FLOW: &str = "flow";

/// The key of a figure that goes by subflow: [`BY_FLOW`] with all subflows.
pub(crate) const BY_SUBFLOW: &str = "subflow";

/// A table: one swept key or several down; across, another swept key or several values. Each key may be [`BY_FLOW`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Title; if empty, the name of the value is shown.
    pub title: String,
    /// The swept keys whose values, or combinations of values, are the rows.
    #[serde(deserialize_with = "one_or_several")]
    pub rows: Vec<String>,
    /// The swept key whose values are the columns; without it the columns are the `values`.
    pub columns: Option<String>,
    /// The values shown; one, if there are `columns`.
    pub values: Vec<Column>,
    /// The part of the study that is shown.
    pub scope: Scope,
    /// Published or measured values to compare with.
    pub references: Vec<Reference>,
    /// The scale of a heat map; without it full colour is the greatest value of the table, or of each of several
    /// values.
    #[serde(default)]
    pub heat_map: Option<HeatMap>,
}

/// The fixed scale of a heat map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// The value at the scale's lower end.
    pub min: f64,
    /// The value at the scale's upper end.
    pub max: f64,
    /// The value from which on a cell has another colour.
    pub threshold: Option<f64>,
    /// The value without colour: both sides of it get stronger towards their ends, each in a colour of its own.
    #[serde(default)]
    pub even: Option<f64>,
}

/// The row keys of a table: a manifest that was written before there could be several has text.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Keys {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Keys::deserialize(deserializer)? {
        Keys::One(key) => vec![key],
        Keys::Several(keys) => keys,
    })
}

/// A value that a table shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The name of the value, such as `goodput_mbps`.
    pub value: String,
    /// Heading; if empty, the name of the value is shown.
    pub label: String,
    /// The flow or subflow, if not that of the scope.
    pub flow: Option<String>,
}

/// A statement about the values of a swept key, and the test that decides it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The statement, in the source's words or close to them.
    pub says: String,
    /// The source, or empty.
    pub source: String,
    /// The value that is compared, such as `goodput_mbps`: the mean over all cells in scope.
    pub value: String,
    /// The swept key whose values are compared, or [`BY_FLOW`].
    pub of: String,
    /// A swept key for each value of which the claim gets a verdict of its own.
    pub each: Option<String>,
    /// A swept key that the source does not give: the claim has one verdict over its values.
    #[serde(default)]
    pub unknown: Option<String>,
    /// The part of the study that counts.
    pub scope: Scope,
    /// The test that decides the claim.
    pub test: Test,
    /// Of [`Test::Highest`], [`Test::Lowest`] and [`Test::Order`]: values that differ by this share of their mean count as
    /// equal.
    #[serde(default)]
    pub within: f64,
    /// The numbers that the source gives, in its words, or empty.
    pub published: String,
    /// A note on the verdict, or empty.
    pub note: String,
    /// Why the claim is known not to hold of some of what it is put to, or empty. A failure is then shown and does not count as one.
    #[serde(default)]
    pub expected_failure: String,
}

/// The condition under which a claim holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Test {
    /// These have the maximum values, in any order.
    Highest(Vec<String>),
    /// These have the minimum values, in any order.
    Lowest(Vec<String>),
    /// Each one's value is at least that of the next.
    Order(Vec<String>),
    /// The maximum and the minimum of these differ by at most a share of their mean.
    Alike {
        /// Values of the swept key.
        names: Vec<String>,
        /// The share, 0 to 1.
        within: f64,
    },
    /// The value of each of these lies in a range.
    Range {
        /// Values of the swept key.
        names: Vec<String>,
        /// The minimum value that is allowed.
        #[serde(alias = "least")]
        min: f64,
        /// The maximum value that is allowed.
        #[serde(alias = "most")]
        max: Option<f64>,
    },
    /// The value of the first over that of the second lies in a range.
    Ratio {
        /// Two values of the swept key.
        of: [String; 2],
        /// The minimum ratio that is allowed.
        #[serde(alias = "least")]
        min: f64,
        /// The maximum ratio that is allowed.
        #[serde(alias = "most")]
        max: Option<f64>,
        /// The maximum value of the first that is allowed whatever the ratio.
        #[serde(default)]
        or_max: Option<f64>,
    },
}

/// A part of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// Only cells with one of these values of a swept key; of [`BY_FLOW`], these flows and subflows.
    pub only: BTreeMap<String, Vec<String>>,
    /// The flow, if not the first; `FLOW/PATH` is the subflow of an MPTCP flow over a path. Of a flow with copies, the name
    /// without a number is all of them.
    pub flow: Option<String>,
    /// The flows that have copies: where one of these is the first, all of its copies are meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<String>,
    /// Start of the time range, seconds.
    pub from_s: Option<f64>,
    /// End of the time range, seconds.
    pub until_s: Option<f64>,
    /// Rates are shares of this share of the paths' capacity ([`record::Run::capacity_mbps`]).
    #[serde(default)]
    pub attainable: Option<f64>,
    /// The section of the page that shows it, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
}

impl Scope {
    /// Whether the scope is a part of the run's time: then values come from the time series.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.from_s.is_some() || self.until_s.is_some()
    }

    /// Whether a cell with these parameters is in the scope.
    #[must_use]
    pub fn contains(&self, parameters: &BTreeMap<String, String>) -> bool {
        self.only.iter().all(|(key, values)| parameters.get(key).is_none_or(|value| values.contains(value)))
    }
}

impl Test {
    /// The key of the test in a scenario file.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Highest(_) => "highest",
            Self::Lowest(_) => "lowest",
            Self::Order(_) => "order",
            Self::Alike { .. } => "alike",
            Self::Range { .. } => "range",
            Self::Ratio { .. } => "ratio",
        }
    }

    /// The values of the swept key that the test names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::Highest(names) | Self::Lowest(names) | Self::Order(names) => names,
            Self::Alike { names, .. } | Self::Range { names, .. } => names,
            Self::Ratio { of, .. } => of,
        }
    }
}
