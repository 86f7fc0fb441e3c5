//! The JSON Schema of a scenario file with the report's part.

use super::file::LayoutFile;
use serde_json::Value;

/// The JSON Schema of a scenario file: completion and hints in editors.
#[must_use]
pub fn schema() -> Value {
    let (mut schema, mut layout_schema) = (scenario::schema(), Value::from(schemars::schema_for!(LayoutFile)));
    for part in ["properties", "$defs"] {
        if let (Value::Object(schema), Value::Object(layout_schema)) = (&mut schema[part], &mut layout_schema[part]) {
            schema.append(layout_schema);
        }
    }
    schema
}
