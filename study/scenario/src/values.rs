//! The values of a scenario by their dotted keys, as a `--set` writes them.

use parse::{Node, element_name};
use toml::de::DeValue;

/// The keys and values below `node`, whose own key is `key`. A list of tables goes by the names of its elements, any other list is
/// one value.
pub(crate) fn collect(node: &Node<'_>, key: &str, values: &mut Vec<(String, String)>) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match node.get_ref() {
        DeValue::Table(table) => table.iter().for_each(|(name, child)| collect(child, &below(name.get_ref()), values)),
        DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &below(&element_name(items, index)), values);
            }
        }
        value => values.push((key.to_owned(), text(value))),
    }
}

/// A value as it stands behind `KEY=`: text without quotes.
fn text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            let element = |item: &Node<'_>| match item.get_ref() {
                DeValue::String(text) => format!("{text:?}"),
                value => self::text(value),
            };
            format!("[{}]", items.iter().map(element).collect::<Vec<_>>().join(", "))
        }
        DeValue::Table(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Overrides, parse};
    use std::path::Path;

    #[test]
    fn values_are_those_of_the_first_cell_and_set_again_they_change_nothing() {
        let text = "name = \"v\"\nduration = \"1s\"\nseeds = [3, 4]\n[[path]]\nname = \"a\"\nrate = \"8mbit\"\nloss = { to_bad = \"1%\", \
                    to_good = \"10%\", bad = \"100%\", good = \"0%\" }\n[[path]]\nname = \"b\"\n[[flow]]\nname = \"f\"\nkind = \"mptcp\"\n\
                    paths = [\"a\", \"b\"]\n[sweep]\n\"path.b.rate\" = [\"5mbit\", \"6mbit\"]\n[[table]]\nrows = \"path.b.rate\"\n\
                    value = \"goodput_mbps\"\n";
        let read = |sets| parse("v", text, Path::new(""), &Overrides { sets, quick: false }).unwrap();
        let scenario = read(vec!["path.a.rate=9mbit".to_owned()]);
        let values = scenario.values();
        for (key, value) in [
            ("path.a.rate", "9mbit"),
            ("path.b.rate", "5mbit"),
            ("path.a.loss.to_good", "10%"),
            ("flow.f.paths", "[\"a\", \"b\"]"),
            ("seeds", "[3, 4]"),
        ] {
            assert!(values.contains(&(key.to_owned(), value.to_owned())), "{key}: {values:?}");
        }
        assert!(values.iter().all(|(key, _)| !key.starts_with("table")), "{values:?}");
        let is_settable = |key: &str| key.contains('.') && !key.ends_with(".name");
        let sets = values.iter().filter(|(key, _)| is_settable(key)).map(|(key, value)| format!("{key}={value}"));
        assert_eq!(read(sets.collect()).cells[0].experiment, scenario.cells[0].experiment);
    }
}
