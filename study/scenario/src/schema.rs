//! The JSON Schema of a scenario file, except the report's part.

use crate::defaults;
use crate::file::File;
use serde_json::{Value, json};

/// The JSON Schema of a scenario file, in which the tables, figures, claims and fits are still open.
///
/// A default that depends on another key is given in the description, and for programs in `x-default-by`: that key, and
/// the default for each of its values.
#[must_use]
pub fn schema() -> Value {
    let mut schema = Value::from(schemars::schema_for!(File));
    for (table, key, default) in defaults::fixed() {
        property(&mut schema, table, key)["default"] = default;
    }
    for (table, key, by, values) in defaults::dependent() {
        let defaults_text: Vec<String> = values.iter().map(|(value, default)| format!("{default} ({value})")).collect();
        let property = property(&mut schema, table, key);
        let description = property["description"].as_str().unwrap_or_default();
        property["description"] = json!(format!("{description} Default: {}.", defaults_text.join(", ")));
        let values: serde_json::Map<String, Value> =
            values.into_iter().map(|(value, default)| (value.to_owned(), default)).collect();
        property["x-default-by"] = json!({ "key": by, "values": values });
    }
    schema
}

/// The schema of a key; the outermost table is called `scenario`.
fn property<'s>(schema: &'s mut Value, table: &str, key: &str) -> &'s mut Value {
    let table = if table == "scenario" { schema } else { &mut schema["$defs"][table] };
    let property = &mut table["properties"][key];
    assert!(property.is_object(), "`{key}` is not a key of the schema");
    property
}
