//! The effective scenario: the text that makes, without options, the cells that a file makes with `--set` and `--quick`.
//!
//! It is the file with the short form laid over it, the values of `--set` in their places, and the sweep that is left.
//! `[derived]` names its source. A `--set` overrides the cells of a sweep and cases, so its value is put into those that
//! would hide it. The caller checks that the text makes the same cells.

use super::{Axis, CASE, Entry, QUICK, SWEEP, SweepTemplate};
use crate::edit::{overlay, put, put_in_value, touches};
use crate::source::Source;
use parse::Node;
use toml::de::DeValue;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// The table that names the source of a derived scenario.
pub(crate) const DERIVED: &str = "derived";

/// The text; none if the text of the file cannot hold a change.
pub(crate) fn text(source: &Source, file_name: &str, options: &[String]) -> Option<String> {
    let mut document: DocumentMut = source.text.parse().ok()?;
    if source.quick {
        let quick = document.remove(QUICK)?;
        overlay(document.as_table_mut(), quick.as_table_like()?);
    }
    let before = source.without_sets();
    let [before, after] = [SweepTemplate::read(&before).ok()?, SweepTemplate::read(source).ok()?];
    let table = document.as_table_mut();
    for (key, node) in &after.sets {
        match key.text.as_ref() {
            "seeds" => drop(table.remove("repetitions")),
            "repetitions" => drop(table.remove("seeds")),
            _ => {}
        }
        let value = value(source, node)?;
        put(table, &key.text, &value)?;
        put_into_cases(table, &key.text, &value)?;
    }
    if !same_axes(source, &before, &after) || hides(&after) {
        remove_skipped_cases(table, &after);
        write_axes(source, table, &after)?;
    }
    table.insert(DERIVED, Item::Table(derived(file_name, options)));
    Some(document.to_string())
}

fn derived(file_name: &str, options: &[String]) -> Table {
    let mut table = Table::new();
    table.insert("from", toml_edit::value(file_name));
    table.insert("with", toml_edit::value(options.iter().map(String::as_str).collect::<Array>()));
    table.decor_mut().set_prefix("\n# Ropewalk wrote this text from a file and the options of a command line.\n");
    table
}

/// A node of the source as a value of the text.
fn value(source: &Source, node: &Node<'_>) -> Option<Value> {
    match node.get_ref() {
        DeValue::String(text) => Some(text.as_ref().into()),
        _ => source.slice(&node.span()).trim().parse().ok(),
    }
}

/// Puts a value into each case that would hide it.
fn put_into_cases(table: &mut Table, key: &str, value: &Value) -> Option<()> {
    let Some(cases) = table.get_mut(CASE).and_then(Item::as_table_like_mut) else { return Some(()) };
    for (_, case) in cases.iter_mut() {
        let case = case.as_table_like_mut()?;
        if touches(case, key) {
            put(case, key, value)?;
        }
    }
    Some(())
}

/// Whether both have the same axes with the same entries.
fn same_axes(source: &Source, before: &SweepTemplate<'_>, after: &SweepTemplate<'_>) -> bool {
    let axes = |template: &SweepTemplate<'_>| -> Vec<(String, Vec<_>)> {
        let entry =
            |entry: &Entry<'_>| (entry.label.clone(), value(source, &entry.value).map(|value| value.to_string()));
        let axis = |axis: &Axis<'_>| (axis.key.text.to_string(), axis.entries.iter().map(entry).collect());
        template.axes.iter().map(axis).collect()
    };
    axes(before) == axes(after)
}

/// Whether a `--set` goes below a swept key, so that it has to stand in the entries of the sweep.
fn hides(template: &SweepTemplate<'_>) -> bool {
    template.axes.iter().any(|axis| template.sets.iter().any(|(set, _)| below(&axis.key.text, &set.text).is_some()))
}

/// The part of `key` below the swept key `axis`.
fn below<'k>(axis: &str, key: &'k str) -> Option<&'k str> {
    key.strip_prefix(axis)?.strip_prefix('.')
}

fn remove_skipped_cases(table: &mut Table, template: &SweepTemplate<'_>) {
    let Some(axis) = template.axes.iter().find(|axis| axis.key.text == CASE) else { return };
    let labels = axis.labels();
    let Some(cases) = table.get_mut(CASE).and_then(Item::as_table_like_mut) else { return };
    let skipped: Vec<String> =
        cases.iter().map(|(name, _)| name.to_owned()).filter(|name| !labels.contains(&name.as_str())).collect();
    skipped.iter().for_each(|name| drop(cases.remove(name)));
}

/// Writes the axes that are left: those of all cases into `[sweep]`, others into their case.
fn write_axes(source: &Source, table: &mut Table, template: &SweepTemplate<'_>) -> Option<()> {
    let mut sweep = Table::new();
    for axis in template.axes.iter().filter(|axis| axis.case.is_none()) {
        let array = match axis.key.text.as_ref() {
            CASE => axis.labels().into_iter().collect(),
            _ => array(source, template, axis)?,
        };
        sweep.insert(&axis.key.text, toml_edit::value(array));
    }
    match (table.get_mut(SWEEP).and_then(Item::as_table_mut), sweep.is_empty()) {
        (_, true) => drop(table.remove(SWEEP)),
        (Some(previous), false) => {
            sweep.set_position(previous.position());
            *sweep.decor_mut() = previous.decor().clone();
            *previous = sweep;
        }
        (None, false) => drop(table.insert(SWEEP, Item::Table(sweep))),
    }
    let Some(cases) = table.get_mut(CASE).and_then(Item::as_table_like_mut) else { return Some(()) };
    for (name, case) in cases.iter_mut() {
        let case = case.as_table_like_mut()?;
        let mut sweep = InlineTable::new();
        for axis in template.axes.iter().filter(|axis| axis.case.as_deref() == Some(name.get())) {
            sweep.insert(axis.key.text.as_ref(), array(source, template, axis)?.into());
        }
        case.remove(SWEEP);
        if !sweep.is_empty() {
            case.insert(SWEEP, toml_edit::value(sweep));
        }
    }
    Some(())
}

/// The entries of an axis: a value, or `{ label, value }` if the value is not its own label.
fn array(source: &Source, template: &SweepTemplate<'_>, axis: &Axis<'_>) -> Option<Array> {
    let entry = |entry: &Entry<'_>| -> Option<Value> {
        let mut value = value(source, &entry.value)?.decorated("", "");
        let parent = axis.key.text.rsplit('.').next().unwrap_or_default();
        for (key, node) in &template.sets {
            if let Some(rest) = below(&axis.key.text, &key.text) {
                put_in_value(&mut value, parent, rest, &self::value(source, node)?)?;
            }
        }
        if value.as_str().map_or_else(|| value.to_string(), str::to_owned) == entry.label {
            return Some(value);
        }
        let mut labelled = InlineTable::new();
        labelled.insert("label", entry.label.as_str().into());
        labelled.insert("value", value);
        labelled.fmt();
        Some(labelled.into())
    };
    let mut array: Array = axis.entries.iter().map(entry).collect::<Option<_>>()?;
    array.fmt();
    Some(array)
}
