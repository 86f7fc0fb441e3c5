//! A key that is given its default, as the schema tells it, changes nothing: key by key.

use crate::common::read;
use ropewalk_scenario::schema;
use serde_json::Value;

/// A scenario in which `line` stands in the table `table`, where `selector` is the value of the key that it depends on.
fn text(table: &str, line: &str, selector: &str) -> Option<String> {
    let inline = |keys: &str| if line.is_empty() { keys.to_owned() } else { format!("{keys}, {line}") };
    let path = |keys: &str| format!("[[path]]\nname = \"a\"\nrate = \"10mbit\"\n{keys}\n");
    let flow = |keys: &str| format!("{}[[flow]]\nname = \"f\"\n{keys}\n", path(""));
    let queue = || {
        let red = if selector == "red" { ", min = \"3kB\", max = \"9kB\"" } else { "" };
        path(&format!("queue = {{ {} }}", inline(&format!("discipline = \"{selector}\"{red}"))))
    };
    let body = match table {
        "scenario" => return Some(format!("name = \"x\"\nduration = \"1s\"\n{line}\n{}", flow(""))),
        "path" => path(line),
        "link" => format!("{}[[link]]\nname = \"b\"\n{line}\n", path("")),
        "burst-loss" => path(&format!("loss = {{ {} }}", inline("to_bad = \"1%\", to_good = \"9%\""))),
        "queue" => queue(),
        "tunnel" if selector == "relay" => {
            format!("{}[tunnel]\nmode = \"ropewalk\"\nrelay = \"tcp\"\n{line}\n", path(""))
        }
        "tunnel" => format!("{}[tunnel]\nmode = \"{selector}\"\n{line}\n", path("")),
        "host" => format!("{}[host]\n{line}\n", path("")),
        "flow" if selector.is_empty() => flow(line),
        "flow" => flow(&format!("kind = \"mptcp\"\nmptcp = {{ stack = \"{selector}\" }}\n{line}")),
        "subflow" => flow(&format!("kind = \"mptcp\"\nsubflow = [{{ {} }}]", inline("path = \"a\""))),
        "mptcp" if selector.is_empty() => flow(&format!("kind = \"mptcp\"\nmptcp = {{ {line} }}")),
        "mptcp" => flow(&format!("kind = \"mptcp\"\nmptcp = {{ {} }}", inline(&format!("stack = \"{selector}\"")))),
        "quic" => flow(&format!("kind = \"mpquic\"\nquic = {{ {line} }}")),
        "requests" => flow(&format!("requests = {{ {} }}", inline("size = \"1kB\""))),
        "video" => flow(&format!("video = {{ {} }}", inline(&format!("rate = \"1mbit\", kind = \"{selector}\"")))),
        _ => return None,
    };
    let flow = if body.contains("[[flow]]") { "" } else { "[[flow]]\nname = \"f\"\npath = \"a\"\n" };
    Some(format!("name = \"x\"\nduration = \"1s\"\n{body}{flow}"))
}

/// The value of the key that tells which keys a table may have.
fn selector(table: &str, key: &str) -> &'static str {
    match (table, key) {
        ("queue", "interval") => "codel",
        ("queue", "flows" | "quantum") => "fq-codel",
        ("queue", "coupling_factor" | "step_thresh" | "classic_protection") => "dualpi2",
        ("queue", "rtt") => "cake",
        ("queue", "probability" | "weight" | "hard_drop") => "red",
        ("tunnel", "kind" | "first" | "stray_packets") => "mpt",
        ("tunnel", "relay_congestion" | "relay_rate" | "relay_delay") => "relay",
        ("tunnel", _) => "ropewalk",
        ("video", "latency") => "live",
        ("video", _) => "stored",
        _ => "",
    }
}

/// With the default and without it the same comes out. Keys that choose between kinds, which the type itself defaults,
/// stand in their tables anyway.
fn check(table: &str, key: &str, default: &Value, selector: &str) -> bool {
    let (Some(with), Some(without)) = (text(table, &format!("{key} = {default}"), selector), text(table, "", selector))
    else {
        return false;
    };
    let [with, without] = [with, without].map(|text| read(&text, &[]));
    assert_eq!((&with.cells, &with.seeds), (&without.cells, &without.seeds), "{table}.{key} = {default} ({selector})");
    true
}

#[test]
fn every_default_of_the_schema_is_what_an_absent_key_means() {
    let schema = schema();
    let tables = schema["$defs"].as_object().unwrap().iter().map(|(name, table)| (name.as_str(), table));
    let mut checked = 0;
    for (table, definition) in tables.chain([("scenario", &schema)]) {
        for (key, property) in definition["properties"].as_object().into_iter().flatten() {
            let chooses =
                ["kind", "mode", "discipline"].contains(&key.as_str()) && (table, key.as_str()) != ("tunnel", "kind");
            if let Some(default) = property.get("default").filter(|default| !chooses && !default.is_null()) {
                checked += usize::from(check(table, key, default, selector(table, key)));
            }
            for (value, default) in property["x-default-by"]["values"].as_object().into_iter().flatten() {
                checked += usize::from(check(table, key, default, value));
            }
        }
    }
    println!("{checked} defaults");
    assert!(checked >= 75, "{checked}");
}

#[test]
fn the_tunnels_defaults_are_the_machines() {
    let schema = schema();
    let options = machine::TunnelOptions::default();
    let default = |key: &str| &schema["$defs"]["tunnel"]["properties"][key]["default"];
    let scheduler = &schema["$defs"]["tunnel"]["properties"]["scheduler"]["x-default-by"]["values"]["ropewalk"];
    assert_eq!(scheduler, options.scheduler.name.as_str());
    assert_eq!(default("codel_target"), &options.codel_target.to_string());
    assert_eq!(default("codel_interval"), &options.codel_interval.to_string());
}
