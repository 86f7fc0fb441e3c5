//! The JSON Schema of a scenario file with the report's part.

use super::file::LayoutFile;
use serde_json::Value;

/// The JSON Schema of a scenario file: completion and hints in editors.
#[must_use]
pub fn schema() -> Value {
    let (mut whole, mut own) = (scenario::schema(), Value::from(schemars::schema_for!(LayoutFile)));
    for part in ["properties", "$defs"] {
        if let (Value::Object(whole), Value::Object(own)) = (&mut whole[part], &mut own[part]) {
            whole.append(own);
        }
    }
    whole
}
