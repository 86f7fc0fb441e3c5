//! Values to compare a run with: a paper's table, a kernel's measurements.

use parse::{Diagnostic, Spanned};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Published or measured values a run is compared with: a table of the same shape as the scenario's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Short name: "published", "Linux 6.1".
    pub name: String,
    /// The source of the values.
    pub source: String,
    /// The unit of the values.
    pub unit: String,
    /// The columns, as the sweep shows their values.
    pub columns: Vec<String>,
    /// The rows in the source's order, as the sweep shows their values; `None` where there is no value.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// A note on the comparison.
    pub note: String,
}

/// Published or measured values to compare with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reference")]
pub(super) struct ReferenceTable {
    /// Short name, such as `"published"`.
    name: String,
    /// Where the values are published.
    source: String,
    /// Unit of the values.
    unit: String,
    /// Labels of the columns, as the sweep shows their values.
    columns: Vec<String>,
    /// A list of values for each label of a row, as the sweep shows it. Write `nan` where there is no value.
    rows: Spanned<Rows>,
    /// A note on the comparison.
    #[serde(default)]
    note: String,
}

/// Rows in file order.
#[derive(Clone, Debug)]
struct Rows(Vec<(String, Vec<f64>)>);

impl ReferenceTable {
    /// The reference, if every row has a value for every column.
    pub(super) fn checked(&self) -> Result<Reference, Diagnostic> {
        let Self { name, source, unit, columns, rows, note } = self.clone();
        if let Some((row, values)) = rows.get().0.iter().find(|(_, values)| values.len() != columns.len()) {
            let message = format!("row `{row}` has {} values for {} columns", values.len(), columns.len());
            return Err(Diagnostic::new(rows.span(), message).with_help("write `nan` where there is no value"));
        }
        let finite = |value: &f64| (!value.is_nan()).then_some(*value);
        let rows =
            rows.get().0.iter().map(|(row, values)| (row.clone(), values.iter().map(finite).collect())).collect();
        Ok(Reference { name, source, unit, columns, rows, note })
    }
}

struct RowsVisitor;

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = Rows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows of numbers by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rows, A::Error> {
        let mut rows = Vec::new();
        while let Some(row) = map.next_entry()? {
            rows.push(row);
        }
        Ok(Rows(rows))
    }
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RowsVisitor)
    }
}

impl JsonSchema for Rows {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "rows".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": { "type": "array", "items": { "type": "number" } } })
    }
}
