//! Dotted keys, `path.eno2.delay`, in a tree of TOML values that remembers where each of them was written.
//!
//! Elements of arrays go by their `name`, or by their position from 0 where they have none (`event.0.at`); `*` is every
//! element (`flow.*.congestion`), `web*` every one whose name begins so. A value put into the tree keeps the position it
//! comes from, so that an error found later points at the sweep or the `--set`.

use parse::{Diagnostic, Node, element_name};
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A dotted key and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Key<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) span: Range<usize>,
}

/// Whether an element called `name` is one that `part` of a key stands for.
pub(crate) fn stands_for(part: &str, name: &str) -> bool {
    part.strip_suffix('*').map_or(part == name, |beginning| name.starts_with(beginning))
}

/// The top-level keys that hold arrays of tables.
const ARRAYS: [&str; 8] = ["path", "link", "flow", "event", "table", "figure", "claim", "fit"];

/// The top-level keys of the report.
const REPORT: [&str; 4] = ["table", "figure", "claim", "fit"];

/// The report's part of a file.
pub(crate) fn report(mut root: Node<'_>) -> Node<'_> {
    let mut report = DeTable::new();
    if let DeValue::Table(table) = root.get_mut() {
        for key in REPORT {
            table.remove(key).map(|value| report.insert(Spanned::new(value.span(), key.into()), value));
        }
    }
    Spanned::new(root.span(), DeValue::Table(report))
}

/// Removes the report's part of a file, and its unknowns: what does not belong to an experiment.
pub(crate) fn remove_report(root: &mut Node<'_>) {
    if let DeValue::Table(table) = root.get_mut() {
        REPORT.iter().chain(&["free"]).for_each(|key| drop(table.remove(*key)));
    }
}

/// Sets `key` to `value`; tables on the way to it that are missing are created.
pub(crate) fn put<'t>(root: &mut Node<'t>, key: &Key<'t>, value: Node<'t>) -> Result<(), Diagnostic> {
    put_below(root, "", &key.text, &key.span, value).map_err(|diagnostic| diagnostic.with_key(key.text.as_ref()))
}

/// Sets `key`, relative to `node`, to `value`; `parent` is the name of `node` for messages.
fn put_below<'t>(
    node: &mut Node<'t>,
    parent: &str,
    key: &str,
    span: &Range<usize>,
    value: Node<'t>,
) -> Result<(), Diagnostic> {
    let (part, rest) = key.split_once('.').map_or((key, None), |(part, rest)| (part, Some(rest)));
    let insert_one = |node: &mut Node<'t>, value| match rest {
        Some(rest) => put_below(node, part, rest, span, value),
        None => {
            *node = value;
            Ok(())
        }
    };
    match node.get_mut() {
        DeValue::Array(items) if part.ends_with('*') => {
            let names: Vec<String> = (0..items.len()).map(|index| element_name(items, index)).collect();
            let mut items = items.as_mut().iter_mut().zip(&names).filter(|(_, name)| stands_for(part, name)).peekable();
            if items.peek().is_none() {
                return Err(unknown_name(span, parent, part, &names));
            }
            items.try_for_each(|(item, _)| insert_one(item, value.clone()))
        }
        DeValue::Table(table) if rest.is_none() => {
            table.insert(Spanned::new(span.clone(), Cow::Owned(part.to_owned())), value);
            Ok(())
        }
        _ => insert_one(child_mut(node, parent, part, span)?, value),
    }
}

/// Whether `child` is `key` or a key below it, so that a value set at `key` overwrites it.
pub(crate) fn covers(key: &str, child: &str) -> bool {
    let mut child = child.split('.');
    key.split('.').all(|part| child.next().is_some_and(|child_part| stands_for(part, child_part)))
}

/// Lays `fragment` over `node`: tables are merged, and so are elements of lists that have the same name; elements
/// without a name, or with a new one, are added; anything else is replaced.
pub(crate) fn overlay<'t>(node: &mut Node<'t>, fragment: Node<'t>) {
    let span = fragment.span();
    match (node.get_mut(), fragment.into_inner()) {
        (DeValue::Table(table), DeValue::Table(over)) => {
            for (key, value) in over {
                match table.get_mut(key.get_ref().as_ref()) {
                    Some(child) => overlay(child, value),
                    None => drop(table.insert(key, value)),
                }
            }
        }
        (DeValue::Array(items), DeValue::Array(over)) if over.iter().any(|item| item.get_ref().is_table()) => {
            over.into_iter().for_each(|item| add(items, item));
        }
        (_, value) => *node = Spanned::new(span, value),
    }
}

/// Adds an element to a list, or lays it over the one with its name.
fn add<'t>(items: &mut DeArray<'t>, item: Node<'t>) {
    let name = |item: &Node<'t>| item.get_ref().get("name").and_then(|name| name.get_ref().as_str()).map(str::to_owned);
    let existing = name(&item)
        .and_then(|name_of_item| items.iter().position(|existing| name(existing).as_ref() == Some(&name_of_item)));
    match existing {
        Some(index) => overlay(&mut items.as_mut()[index], item),
        None => items.push(item),
    }
}

/// The node called `part` below `node`, which is called `parent`.
fn child_mut<'n, 't>(
    node: &'n mut Node<'t>,
    parent: &str,
    part: &str,
    span: &Range<usize>,
) -> Result<&'n mut Node<'t>, Diagnostic> {
    if parent == "congestion" && node.get_ref().is_str() {
        name_becomes_table(node);
    }
    match node.get_mut() {
        DeValue::Table(table) => {
            if parent.is_empty() && ARRAYS.contains(&part) && !table.contains_key(part) {
                return Err(Diagnostic::new(span.clone(), format!("the scenario has no [[{part}]]")));
            }
            let key = Spanned::new(span.clone(), Cow::Owned(part.to_owned()));
            Ok(table.entry(key).or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new()))))
        }
        DeValue::Array(items) => {
            let names: Vec<String> = (0..items.len()).map(|index| element_name(items, index)).collect();
            match names.iter().position(|name| name == part) {
                Some(index) => Ok(&mut items.as_mut()[index]),
                None => Err(unknown_name(span, parent, part, &names)),
            }
        }
        _ => Err(Diagnostic::new(span.clone(), format!("`{parent}` has no keys below it"))),
    }
}

fn unknown_name(span: &Range<usize>, parent: &str, part: &str, names: &[String]) -> Diagnostic {
    Diagnostic::unknown_name(span.clone(), parent, part, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `congestion = "cubic"` is short for `congestion = { name = "cubic" }`.
fn name_becomes_table(node: &mut Node<'_>) {
    let span = node.span();
    let name = std::mem::replace(node.get_mut(), DeValue::Table(DeTable::new()));
    if let DeValue::Table(table) = node.get_mut() {
        table.insert(Spanned::new(span.clone(), "name".into()), Spanned::new(span, name));
    }
}

/// The position of `key`, or of the nearest table above it.
pub(crate) fn locate(root: &Node<'_>, key: &str) -> Range<usize> {
    let mut node = root;
    for part in key.split('.') {
        match child(node, part).or_else(|| child(node, before_count(part))) {
            Some(child) => node = child,
            None => break,
        }
    }
    node.span()
}

fn child<'n, 't>(node: &'n Node<'t>, part: &str) -> Option<&'n Node<'t>> {
    match node.get_ref() {
        DeValue::Table(table) => table.get(part),
        DeValue::Array(items) => {
            (0..items.len()).find(|index| element_name(items, *index) == part).map(|index| &items[index])
        }
        _ => None,
    }
}

/// `tcp` for `tcp-3`, the third of `count` flows.
fn before_count(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((flow, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => flow,
        _ => name,
    }
}
