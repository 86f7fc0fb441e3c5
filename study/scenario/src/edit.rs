//! Changes to the text of a scenario that keep its comments: a value put at a dotted key, and a fragment laid over it.
//! They follow `keys`, which does the same to the tree of one cell.

use crate::keys::stands_for;
use toml_edit::{Array, InlineTable, Item, Table, TableLike, Value};

/// Sets `key` below `table`; nothing if the key cannot be set.
pub(crate) fn put(table: &mut dyn TableLike, key: &str, value: &Value) -> Option<()> {
    let (part, rest) = split(key);
    let Some(rest) = rest else {
        insert(table, part, Item::Value(value.clone()));
        return Some(());
    };
    if !table.contains_key(part) {
        table.insert(part, Item::Value(InlineTable::new().into()));
    }
    put_in_item(table.get_mut(part)?, part, rest, value)
}

/// Sets `key` below `item`, which is called `parent`.
fn put_in_item(item: &mut Item, parent: &str, key: &str, value: &Value) -> Option<()> {
    if let Some(array) = item.as_value_mut().and_then(Value::as_array_mut) {
        let places = places(tables(array), key)?;
        return places.into_iter().try_for_each(|index| match split(key).1 {
            Some(rest) => put_in_value(array.get_mut(index)?, parent, rest, value),
            None => {
                array.replace(index, value.clone());
                Some(())
            }
        });
    }
    if let Some(array) = item.as_array_of_tables_mut() {
        let places = places(array.iter().map(|table| Some(table as &dyn TableLike)), key)?;
        return places.into_iter().try_for_each(|index| match split(key).1 {
            Some(rest) => put(array.get_mut(index)?, rest, value),
            None => replace_table(array.get_mut(index)?, value),
        });
    }
    match item {
        Item::Table(table) => put(table, key, value),
        Item::Value(inner) => put_in_value(inner, parent, key, value),
        _ => None,
    }
}

/// As [`put_in_item`], below a value. `congestion = "cubic"` is short for `congestion = { name = "cubic" }`.
pub(crate) fn put_in_value(item: &mut Value, parent: &str, key: &str, value: &Value) -> Option<()> {
    if parent == "congestion" && item.is_str() {
        let mut table = InlineTable::new();
        table.insert("name", item.clone().decorated("", ""));
        *item = table.into();
    }
    put(item.as_inline_table_mut()?, key, value)
}

/// The indices of the elements that the first part of `key` names.
fn places<'t>(elements: impl Iterator<Item = Option<&'t dyn TableLike>>, key: &str) -> Option<Vec<usize>> {
    let part = split(key).0;
    let name = |table: Option<&dyn TableLike>| table?.get("name")?.as_str().map(str::to_owned);
    let named = elements.enumerate().map(|(index, table)| (index, name(table).unwrap_or_else(|| index.to_string())));
    let places: Vec<usize> = named.filter(|(_, name)| stands_for(part, name)).map(|(index, _)| index).collect();
    (!places.is_empty()).then_some(places)
}

/// Whether `table` holds a part of `key` that would hide a value put at `key` above it.
pub(crate) fn touches(table: &dyn TableLike, key: &str) -> bool {
    let (part, rest) = split(key);
    match (table.get(part), rest) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(item), Some(rest)) => match item {
            Item::Table(table) => touches(table, rest),
            Item::Value(Value::InlineTable(table)) => touches(table, rest),
            Item::ArrayOfTables(array) => {
                places(array.iter().map(|table| Some(table as &dyn TableLike)), rest).is_some()
            }
            Item::Value(Value::Array(array)) => places(tables(array), rest).is_some(),
            _ => true,
        },
    }
}

/// The elements of a list that are tables.
fn tables(array: &Array) -> impl Iterator<Item = Option<&dyn TableLike>> {
    array.iter().map(|value| value.as_inline_table().map(|table| table as &dyn TableLike))
}

/// Lays `fragment` over `table`: tables are merged, and so are elements of lists that have the same name; elements
/// without a name, or with a new one, are added; anything else is replaced.
pub(crate) fn overlay(table: &mut dyn TableLike, fragment: &dyn TableLike) {
    for (key, value) in fragment.iter() {
        match table.get_mut(key) {
            Some(item) => overlay_item(item, value),
            None => drop(table.insert(key, value.clone())),
        }
    }
}

fn overlay_item(item: &mut Item, over: &Item) {
    if let (Some(table), Some(over)) = (item.as_table_like_mut(), over.as_table_like()) {
        return overlay(table, over);
    }
    let Some(elements) = elements(over) else {
        return replace(item, over.clone());
    };
    match item {
        Item::ArrayOfTables(array) => {
            for element in elements {
                match places(array.iter().map(|table| Some(table as &dyn TableLike)), &name(&element)) {
                    Some(place) if element.contains_key("name") => {
                        array.get_mut(place[0]).into_iter().for_each(|table| overlay(table, &element));
                    }
                    _ => array.push(element),
                }
            }
        }
        Item::Value(Value::Array(array)) => elements.into_iter().for_each(|element| add(array, element)),
        _ => replace(item, over.clone()),
    }
}

/// Adds an element to a list of inline tables, or lays it over the one with its name.
fn add(array: &mut Array, element: Table) {
    let place = places(tables(array), &name(&element)).filter(|_| element.contains_key("name"));
    match place.and_then(|place| array.get_mut(place[0])).and_then(Value::as_inline_table_mut) {
        Some(table) => overlay(table, &element),
        None => array.push(element.into_inline_table()),
    }
}

/// The elements of a list of tables; none if the item is anything else.
fn elements(item: &Item) -> Option<Vec<Table>> {
    match item {
        Item::ArrayOfTables(array) => Some(array.iter().cloned().collect()),
        Item::Value(Value::Array(array)) if array.iter().any(Value::is_inline_table) => {
            array.iter().map(|value| value.as_inline_table().map(|table| table.clone().into_table())).collect()
        }
        _ => None,
    }
}

fn name(table: &Table) -> String {
    table.get("name").and_then(Item::as_str).unwrap_or_default().to_owned()
}

/// Inserts a value; a comment next to an earlier one stays.
fn insert(table: &mut dyn TableLike, key: &str, value: Item) {
    match table.get_mut(key) {
        Some(item) => replace(item, value),
        None => drop(table.insert(key, value)),
    }
}

/// Replaces an item; a comment next to it stays.
fn replace(item: &mut Item, mut new: Item) {
    if let (Some(value), Some(new)) = (item.as_value(), new.as_value_mut()) {
        *new.decor_mut() = value.decor().clone();
    }
    *item = new;
}

/// Replaces a table by a value, in its place.
fn replace_table(table: &mut Table, value: &Value) -> Option<()> {
    let mut new = value.as_inline_table()?.clone().into_table();
    new.set_position(table.position());
    *new.decor_mut() = table.decor().clone();
    *table = new;
    Some(())
}

fn split(key: &str) -> (&str, Option<&str>) {
    key.split_once('.').map_or((key, None), |(part, rest)| (part, Some(rest)))
}
