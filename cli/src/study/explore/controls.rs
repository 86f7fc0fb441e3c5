//! A scenario's keys as the page shows them: each key that the schema allows, for every path, link and flow that the scenario
//! has, with its value, its default and its description.

use control::registry;
use scenario::Scenario;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A key of the scenario.
#[derive(Debug, Serialize)]
pub(super) struct Control {
    /// The dotted key, as `--set` takes it.
    pub(super) key: String,
    /// Its description in the schema.
    about: String,
    /// Its value; none if the scenario leaves it to the default.
    value: Option<String>,
    /// The default as text; empty if it depends on other keys.
    default: String,
    /// The names among which it chooses; empty for a quantity or text.
    choices: Vec<String>,
    /// Whether the page shows it without a search.
    is_main: bool,
}

/// The tables that the page changes; those with names are lists of tables.
const TABLES: [(&str, &str, bool); 5] = [
    ("path", "path", true),
    ("link", "link", true),
    ("flow", "flow", true),
    ("tunnel", "tunnel", false),
    ("host", "host", false),
];

/// The keys that are shown without a search, by table.
const MAIN: [(&str, &[&str]); 5] = [
    ("path", &["rate", "delay", "loss", "queue.discipline", "queue.limit"]),
    ("link", &["rate", "delay", "loss", "queue.discipline", "queue.limit"]),
    ("flow", &["congestion", "scheduler", "count"]),
    ("tunnel", &["congestion", "scheduler"]),
    ("host", &["send_buffer", "receive_buffer"]),
];

/// The greatest number of tables within one another.
const MAX_DEPTH: usize = 3;

/// The keys of the scenario's first cell.
pub(super) fn controls(scenario: &Scenario) -> Vec<Control> {
    let schema = report::schema();
    let values: BTreeMap<String, String> = scenario.values().into_iter().collect();
    let mut walk = Walk { schema: &schema, values: &values, controls: Vec::new() };
    walk.key(&schema["properties"]["duration"], "duration", true);
    walk.key(&schema["properties"]["sample"], "sample", false);
    for (table, definition, is_list) in TABLES {
        let names = names(&values, table, is_list);
        let main = MAIN.iter().find(|(main, _)| *main == table).map_or(&[][..], |(_, keys)| keys);
        for name in names {
            let first = walk.controls.len();
            walk.table(&schema["$defs"][definition], &name, (&name, main), 1);
            let rank = |control: &Control| main.iter().position(|key| control.key[name.len() + 1..] == **key);
            walk.controls[first..].sort_by_key(|control| rank(control).unwrap_or(main.len()));
        }
    }
    walk.controls
}

/// The prefixes of a table's keys: that of each element of a list. A tunnel that the scenario lacks has none.
fn names(values: &BTreeMap<String, String>, table: &str, is_list: bool) -> Vec<String> {
    let below = format!("{table}.");
    let elements = values.keys().filter_map(|key| key.strip_prefix(&below)?.split('.').next());
    let elements: BTreeSet<&str> = elements.collect();
    match is_list {
        true => elements.into_iter().map(|name| format!("{below}{name}")).collect(),
        false if elements.is_empty() && table != "host" => Vec::new(),
        false => vec![table.to_owned()],
    }
}

/// A walk over the tables of the schema.
struct Walk<'s> {
    schema: &'s Value,
    values: &'s BTreeMap<String, String>,
    controls: Vec<Control>,
}

impl<'s> Walk<'s> {
    /// The keys of a table below `prefix`; those that are `main` below `element` are shown without a search.
    fn table(&mut self, table: &'s Value, prefix: &str, (element, main): (&str, &[&str]), depth: usize) {
        for (name, property) in table["properties"].as_object().into_iter().flatten() {
            let key = format!("{prefix}.{name}");
            if name == "name" {
                continue;
            }
            let alternatives = self.alternatives(property);
            let is_main = main.iter().any(|main| key.strip_prefix(element).is_some_and(|rest| rest[1..] == **main));
            if alternatives.iter().any(|alternative| alternative["properties"].is_null()) {
                self.key(property, &key, is_main);
            }
            let is_algorithm = name == "congestion" || name == "scheduler";
            for alternative in alternatives.iter().filter(|_| depth < MAX_DEPTH && !is_algorithm) {
                self.table(alternative, &key, (element, main), depth + 1);
            }
        }
    }

    fn key(&mut self, property: &'s Value, key: &str, is_main: bool) {
        let value = self.values.get(key).or_else(|| self.values.get(&format!("{key}.name"))).cloned();
        let default = match &property["default"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let about = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        self.controls.push(Control {
            choices: self.choices(property, key),
            is_main: is_main && self.applies(key),
            key: key.to_owned(),
            about,
            value,
            default,
        });
    }

    /// Whether a key has a meaning for what the scenario is: a trace has no rate, and one TCP flow no scheduler.
    fn applies(&self, key: &str) -> bool {
        let (element, name) = key.rsplit_once('.').unwrap_or(("", key));
        let is = |name: &str, values: &[&str]| {
            self.values.get(&format!("{element}.{name}")).is_some_and(|value| values.contains(&value.as_str()))
        };
        let has = |name: &str| self.values.keys().any(|key| key.starts_with(&format!("{element}.{name}")));
        match name {
            "scheduler" => is("kind", &["mptcp", "quic"]) || element == "tunnel",
            "congestion" if element == "tunnel" => is("kind", &["ropewalk"]),
            "congestion" => !is("kind", &["udp"]),
            "rate" => !has("trace") && !has("links"),
            "delay" | "loss" => !has("links"),
            "discipline" | "limit" => {
                !self.values.contains_key(&format!("{}.links", element.trim_end_matches(".queue")))
            }
            _ => true,
        }
    }

    /// The types that a property may have, without references.
    fn alternatives(&self, property: &'s Value) -> Vec<&'s Value> {
        if let Some(name) = property["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return self.alternatives(&self.schema["$defs"][name]);
        }
        let several = property["anyOf"].as_array().or_else(|| property["oneOf"].as_array());
        several.map_or_else(|| vec![property], |types| types.iter().flat_map(|one| self.alternatives(one)).collect())
    }

    fn choices(&self, property: &'s Value, key: &str) -> Vec<String> {
        match key.rsplit('.').next() {
            Some("congestion") => return registry::entries().iter().map(|entry| entry.name.to_owned()).collect(),
            Some("scheduler") => {
                let without_file = schedule::entries().into_iter().filter(|entry| !entry.needs_file());
                return without_file.map(|entry| entry.name.to_owned()).collect();
            }
            _ => {}
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let of = |one: &'s Value| match (&one["const"], one["enum"].as_array(), &one["type"]) {
            (Value::Null, Some(names), _) => names.iter().map(text).collect(),
            (Value::Null, None, kind) if kind == "boolean" || kind[0] == "boolean" => {
                vec!["true".to_owned(), "false".to_owned()]
            }
            (Value::Null, ..) => Vec::new(),
            (name, ..) => vec![text(name)],
        };
        self.alternatives(property).into_iter().flat_map(of).collect()
    }
}
