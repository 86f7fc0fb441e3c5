//! The keys of the scenario file, from its JSON Schema: a heading for each, its type, its default and its description.

use super::markdown::wrapped;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Tables whose keys are named after a page of their own, and that page. All others are described below the key that
/// contains them.
const TABLES: &[(&str, &str, &str)] = &[
    ("path", "path", "path.md"),
    ("link", "link", "path.md"),
    ("reverse", "reverse", "path.md"),
    ("queue", "queue", "queue.md"),
    ("fat-tree", "fat_tree", "fat-tree.md"),
    ("tunnel", "tunnel", "tunnel.md"),
    ("flow", "flow", "flow.md"),
    ("subflow", "flow.subflow", "flow.md"),
    ("mptcp", "flow.mptcp", "flow.md"),
    ("quic", "flow.quic", "flow.md"),
    ("requests", "flow.requests", "requests.md"),
    ("video", "flow.video", "video.md"),
    ("host", "host", "host.md"),
    ("event", "event", "event.md"),
    ("table", "table", "report.md"),
    ("reference", "table.reference", "report.md"),
    ("figure", "figure", "report.md"),
    ("claim", "claim", "claim.md"),
    ("fit", "fit", "fit.md"),
];
/// Tables that have the keys of `path`, which the pages do not repeat.
const AS_PATH: &[&str] = &["link", "reverse", "fat-tree"];
/// Tables that have the keys of `table` by which a part of the results is chosen, which the pages do not repeat.
const SCOPED: &[&str] = &["figure", "claim", "fit"];
const SCOPE: &[&str] = &["only", "flow", "from", "until", "attainable", "section"];
/// Shown instead of a default.
const REQUIRED: &str = "required";
/// The name of the file itself in a mark.
const FILE: &str = "scenario";

/// The schema, and the keys that have been written.
pub(super) struct Keys {
    schema: Value,
    written: BTreeMap<String, BTreeSet<String>>,
}

impl Keys {
    pub(super) fn new(schema: &str) -> Result<Self, String> {
        let schema = serde_json::from_str(schema).map_err(|error| format!("the schema: {error}"))?;
        Ok(Self { schema, written: BTreeMap::new() })
    }

    /// The section of a mark, `TABLE: KEY, KEY ...` or `TABLE`, for a page that is `depth` folders below the reference's.
    pub(super) fn section(&mut self, mark: &str, depth: usize) -> Result<String, String> {
        let (table, names) = mark.split_once(": ").unwrap_or((mark, ""));
        let definition = if table == FILE { self.schema.clone() } else { self.schema["$defs"][table].clone() };
        let properties = definition["properties"].as_object().ok_or(format!("the schema has no table `{table}`"))?;
        let names: Vec<&str> = match names {
            "" => properties.keys().map(String::as_str).collect(),
            names => names.split(", ").collect(),
        };
        let prefix = TABLES.iter().find(|(name, ..)| *name == table).map_or("", |(_, prefix, _)| prefix);
        let mut text = String::new();
        for name in names {
            let key = properties.get(name).ok_or(format!("`{table}` has no key `{name}`"))?;
            if !self.written.entry(table.to_owned()).or_default().insert(name.to_owned()) {
                return Err(format!("key `{name}` of `{table}` is on the pages twice"));
            }
            let full = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
            text += &self.entry(&full, key, requires(&definition, name), 3, depth);
        }
        Ok(text)
    }

    /// Whether every key of every table has been written.
    pub(super) fn complete(&self) -> Result<(), String> {
        let path = properties(&self.schema["$defs"]["path"]);
        let tables = TABLES.iter().map(|(name, ..)| (*name, &self.schema["$defs"][*name]));
        for (name, definition) in tables.chain([(FILE, &self.schema)]) {
            let written = self.written.get(name).cloned().unwrap_or_default();
            let is_shared = |key: &String| {
                AS_PATH.contains(&name) && path.contains(key) || SCOPED.contains(&name) && SCOPE.contains(&key.as_str())
            };
            let missing: Vec<_> =
                properties(definition).into_iter().filter(|key| !written.contains(key) && !is_shared(key)).collect();
            if !missing.is_empty() {
                return Err(format!("no page has these keys of `{name}`: {}", missing.join(", ")));
            }
        }
        Ok(())
    }

    /// A key, and below it the keys of its table, if its value may be a table.
    fn entry(&self, name: &str, key: &Value, is_required: bool, level: usize, depth: usize) -> String {
        let (text, default) = with_default(key["description"].as_str().unwrap_or_default());
        let default = match (default, &key["default"]) {
            (Some(text), _) => text,
            (None, Value::Null) if is_required => REQUIRED.to_owned(),
            (None, Value::Null | Value::Object(_)) => String::new(),
            (None, Value::String(text)) if text.is_empty() => String::new(),
            (None, Value::Array(values)) if values.is_empty() => String::new(),
            (None, value) => format!("`{value}`"),
        };
        let mut entry = format!("{} `{name}`\n\n{}\n\n", "#".repeat(level), wrapped(&text, ""));
        _ = writeln!(entry, "- Type: {}", self.kind(key, depth));
        if default == REQUIRED {
            entry += "- Required\n";
        } else if !default.is_empty() {
            entry += &wrapped(&format!("- Default: {default}"), "  ");
            entry.push('\n');
        }
        for (word, about) in self.choices(key) {
            entry += &wrapped(&format!("- `\"{word}\"`: {about}"), "  ");
            entry.push('\n');
        }
        entry.push('\n');
        for table in self.tables(key) {
            for (inner, schema) in table["properties"].as_object().into_iter().flatten() {
                entry += &self.entry(&format!("{name}.{inner}"), schema, requires(&table, inner), level + 1, depth);
            }
        }
        entry
    }

    /// The type of a value, in words.
    fn kind(&self, schema: &Value, depth: usize) -> String {
        if let Some(name) = reference(schema) {
            if let Some((_, _, page)) = TABLES.iter().find(|(table, ..)| *table == name.trim_end_matches('2')) {
                return format!("[table]({}{page})", if depth == 0 { "scenario/" } else { "" });
            }
            let definition = &self.schema["$defs"][name];
            let about = definition["description"].as_str().unwrap_or_default();
            return match about.strip_prefix("a ") {
                Some(about) if definition["type"] == "string" => quoted_as_code(about),
                _ if name == "algorithm" => "name, or table of a `name` and parameters".to_owned(),
                _ => self.kind(definition, depth),
            };
        }
        if schema.get("oneOf").is_some() || schema.get("const").is_some() {
            return "one of the words below".to_owned();
        }
        if let Some(forms) = schema["anyOf"].as_array() {
            let forms = forms.iter().filter(|form| form["type"] != "null").map(|form| self.kind(form, depth));
            return forms.collect::<Vec<_>>().join(", or ");
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find_map(|kind| kind.as_str().filter(|kind| *kind != "null")),
            kind => kind.as_str(),
        };
        match kind.unwrap_or_default() {
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "array" if schema["items"].is_object() => list(&self.kind(&schema["items"], depth)),
            "array" => "list".to_owned(),
            "object" => "table".to_owned(),
            _ => "string".to_owned(),
        }
    }

    /// The words that a key may have, with their descriptions.
    fn choices(&self, schema: &Value) -> Vec<(String, String)> {
        let one = |form: &Value| Some((form["const"].as_str()?.to_owned(), form["description"].as_str()?.to_owned()));
        match reference(schema) {
            Some(name) => self.choices(&self.schema["$defs"][name]),
            None if schema.get("const").is_some() => one(schema).into_iter().collect(),
            None => {
                let forms = ["oneOf", "anyOf"].into_iter().filter_map(|forms| schema[forms].as_array());
                forms.flatten().flat_map(|form| self.choices(form)).collect()
            }
        }
    }

    /// The tables that a value may be, if they have no page.
    fn tables(&self, schema: &Value) -> Vec<Value> {
        if let Some(name) = reference(schema) {
            let has_page = TABLES.iter().any(|(table, ..)| *table == name.trim_end_matches('2'));
            return if has_page || name == "algorithm" { Vec::new() } else { self.tables(&self.schema["$defs"][name]) };
        }
        if schema["properties"].is_object() {
            return vec![schema.clone()];
        }
        let forms = schema["anyOf"].as_array().into_iter().flatten().chain(schema.get("items"));
        forms.flat_map(|form| self.tables(form)).collect()
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn properties(definition: &Value) -> BTreeSet<String> {
    definition["properties"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
}

fn requires(table: &Value, key: &str) -> bool {
    table["required"].as_array().is_some_and(|required| required.iter().any(|name| name == key))
}

/// A list of values of this kind.
fn list(kind: &str) -> String {
    match kind {
        "string" | "number" | "whole number" => format!("list of {kind}s"),
        kind if kind.contains("table](") => format!("list of {}", kind.replace("table]", "tables]")),
        kind => format!("list, each a {kind}"),
    }
}

/// A description without the default at its end, and that.
fn with_default(description: &str) -> (String, Option<String>) {
    let text = description.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.rsplit_once("Default: ") {
        Some((text, default)) => (text.trim_end().to_owned(), Some(code_of_numbers(default.trim_end_matches('.')))),
        None => (text, None),
    }
}

/// A default that is only a number, as code.
fn code_of_numbers(default: &str) -> String {
    if default.parse::<f64>().is_ok() { format!("`{default}`") } else { default.to_owned() }
}

/// `a time such as "10ms"` with its examples as code.
fn quoted_as_code(text: &str) -> String {
    let parts = text.split('"').enumerate();
    parts.map(|(index, part)| if index % 2 == 1 { format!("`\"{part}\"`") } else { part.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{
        "properties": {"name": {"description": "A name.", "type": "string"}},
        "required": ["name"],
        "$defs": {
            "Time": {"description": "a time such as \"10ms\"", "type": "string"},
            "grants": {"properties": {"period": {"$ref": "#/$defs/Time", "description": "The pause."}}},
            "path": {"properties": {
                "delay": {"$ref": "#/$defs/Time", "description": "One way.\nDefault: `\"0s\"`."},
                "grants": {"anyOf": [{"$ref": "#/$defs/grants"}, {"type": "null"}], "description": "In turns."}
            }}
        }
    }"##;

    #[test]
    fn a_key_has_its_type_and_its_default_and_a_table_its_keys() {
        let text = Keys::new(SCHEMA).and_then(|mut keys| keys.section("path", 0)).expect("a section");
        assert!(
            text.contains("### `path.delay`\n\nOne way.\n\n- Type: time such as `\"10ms\"`\n- Default: `\"0s\"`\n")
        );
        assert!(text.contains("### `path.grants`\n") && text.contains("#### `path.grants.period`\n"), "{text}");
    }

    #[test]
    fn a_key_that_no_page_has_is_named_and_one_that_two_have_is_refused() {
        let mut keys = Keys::new(SCHEMA).expect("a schema");
        assert!(keys.section("path: delay", 0).is_ok());
        assert!(keys.complete().is_err_and(|error| error.contains("grants")));
        assert!(keys.section("path: delay", 0).is_err_and(|error| error.contains("twice")));
        assert!(keys.section("path: rate", 0).is_err_and(|error| error.contains("no key `rate`")));
    }
}
