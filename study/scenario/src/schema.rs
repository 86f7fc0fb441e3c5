//! The JSON Schema of a scenario file: completion and hints in editors.

use crate::file::File;

/// The JSON Schema of a scenario file.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).into()
}
