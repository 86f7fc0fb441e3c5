//! The JSON Schema of a scenario file, but for the report's part.

use crate::file::File;

/// The JSON Schema of a scenario file, in which the tables, figures and claims are still open.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).into()
}
