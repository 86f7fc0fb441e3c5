//! A check of JSON against a JSON Schema, of what schemas of this workspace use.

use serde_json::Value;

/// What of a document is not as its schema says: one line each, with the place.
#[must_use]
pub fn violations(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, document, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = name.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => check(root, target, value, place, found),
            None => found.push(format!("{place}: no {name}")),
        }
    }
    let fits = |schema: &Value| {
        let mut found = Vec::new();
        check(root, schema, value, place, &mut found);
        found.is_empty()
    };
    for choice in ["anyOf", "oneOf"] {
        if schema[choice].as_array().is_some_and(|schemas| !schemas.iter().any(fits)) {
            found.push(format!("{place}: {value} is none of the choices"));
        }
    }
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| schema.get("type").cloned().into_iter().collect());
    if !types.is_empty() && !types.iter().any(|name| has_type(value, name.as_str().unwrap_or_default())) {
        found.push(format!("{place}: {value} is not of {types:?}"));
    }
    let is_listed = |values: &Vec<Value>| values.contains(value);
    if schema["enum"].as_array().is_some_and(|values| !is_listed(values))
        || schema.get("const").is_some_and(|one| one != value)
    {
        found.push(format!("{place}: {value} is not allowed"));
    }
    if value.as_f64().zip(schema["minimum"].as_f64()).is_some_and(|(number, least)| number < least) {
        found.push(format!("{place}: {value} is too small"));
    }
    if let Some(values) = value.as_array() {
        values
            .iter()
            .enumerate()
            .for_each(|(index, value)| check(root, &schema["items"], value, &format!("{place}/{index}"), found));
    }
    if let Some(fields) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing = required.filter(|key| !fields.contains_key(*key));
        found.extend(missing.map(|key| format!("{place}: no {key}")));
        for (key, value) in fields {
            match schema["properties"].get(key) {
                Some(schema) => check(root, schema, value, &format!("{place}/{key}"), found),
                None if schema.get("properties").is_some() => found.push(format!("{place}: {key} is not described")),
                None => {}
            }
        }
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_as_the_schema_says_is_found() {
        let schema = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "rtt": {"type": ["number", "null"], "minimum": 0},
                "paths": {"type": "array", "items": {"$ref": "#/$defs/Path"}},
            },
            "$defs": {"Path": {"anyOf": [{"const": "up"}, {"type": "null"}]}},
        });
        let count = |document: Value| violations(&schema, &document).len();
        assert_eq!(count(json!({"name": "a", "rtt": null, "paths": ["up", null]})), 0);
        assert_eq!(count(json!({"rtt": -1, "paths": ["down"], "more": 1})), 4);
        assert_eq!(count(json!([])), 1);
    }
}
