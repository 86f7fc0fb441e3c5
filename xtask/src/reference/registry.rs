//! Algorithms and schedulers, from `ropewalk list NAME --json`.

use super::markdown::{sentence, wrapped};
use crate::shell;
use serde_json::Value;

/// The section of a mark: one heading per entry, or a table of all schedulers.
pub(super) fn section(program: &str, mark: &str) -> Result<String, String> {
    let list = |name: &str| -> Result<Vec<Value>, String> {
        let text = shell::output(&format!("{program} list {name} --json"))?;
        serde_json::from_str(&text).map_err(|error| format!("list {name}: {error}"))
    };
    match mark {
        "algorithms" | "schedulers" => Ok(list(mark)?.iter().map(entry).collect()),
        "table of schedulers" => Ok(table(&list("schedulers")?)),
        unknown => Err(format!("nothing generates `{unknown}`")),
    }
}

fn entry(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let aliases: Vec<String> = entry["aliases"].as_array().into_iter().flatten().map(code).collect();
    let facts = [
        ("Controls", text("controls").to_owned()),
        ("Needs", text("needs").to_owned()),
        ("Fills", text("fills").to_owned()),
        ("Source", text("source").to_owned()),
        ("Equations", text("equations").to_owned()),
        ("Other names", aliases.join(", ")),
    ];
    let facts = facts.iter().filter(|(_, fact)| !fact.is_empty());
    let facts: String = facts.map(|(name, fact)| wrapped(&format!("- {name}: {fact}"), "  ") + "\n").collect();
    let parameters: Vec<&Value> = entry["parameters"].as_array().into_iter().flatten().collect();
    let list: String = parameters.iter().map(|given| wrapped(&parameter(given), "  ") + "\n").collect();
    let list = if list.is_empty() { list } else { format!("\nParameters:\n\n{list}") };
    format!("### `{}`\n\n{}\n\n{facts}{list}\n", text("name"), wrapped(&sentence(text("title")), ""))
}

/// A parameter as an item of a list: its values, its default, its meaning.
fn parameter(parameter: &Value) -> String {
    let values = match parameter["choices"].as_array() {
        Some(choices) => choices.iter().map(code).collect::<Vec<_>>().join(", "),
        None if parameter["min"].is_number() => {
            format!("{} to {}", number(&parameter["min"]), number(&parameter["max"]))
        }
        None => "a file".to_owned(),
    };
    let default = match &parameter["default"] {
        Value::Null => String::new(),
        Value::String(word) if word.is_empty() => String::new(),
        Value::String(word) => format!(", default `{word}`"),
        value => format!(", default {}", number(value)),
    };
    let about = sentence(parameter["description"].as_str().unwrap_or_default());
    format!("- {} ({values}{default}): {about}", code(&parameter["name"]))
}

/// `1.0` as `1`.
fn number(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |number| number.to_string())
}

fn code(word: &Value) -> String {
    format!("`{}`", word.as_str().unwrap_or_default())
}

fn table(schedulers: &[Value]) -> String {
    let row = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        format!("| `{}` | {} | {} | {} |\n", text("name"), text("title"), text("needs"), text("fills"))
    };
    let rows: String = schedulers.iter().map(row).collect();
    format!("| name | which path carries the next packet | needs | fills |\n|---|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_has_its_facts_and_its_parameters() {
        let parameters = json!([
            {"name": "beta", "min": 0.1, "max": 1.0, "default": 0.7, "description": "window after a loss"},
            {"name": "hystart", "choices": ["on", "off"], "default": "on", "description": "leave early"},
        ]);
        let text = entry(&json!({"name": "cubic", "title": "cubic growth", "aliases": [], "parameters": parameters}));
        assert!(text.starts_with("### `cubic`\n\nCubic growth.\n"), "{text}");
        assert!(text.contains("- `beta` (0.1 to 1, default 0.7): Window after a loss.\n"), "{text}");
        assert!(text.contains("- `hystart` (`on`, `off`, default `on`): Leave early.\n"), "{text}");
    }
}
