//! `ropewalk kernel check`: the conditions of loading, as a table.

use super::alone;
use crate::{Failure, output};
use kernel::Condition;
use serde::Serialize;
use std::fmt::Write;

/// One condition, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    found: &'a str,
    remedy: Option<&'a str>,
    required: bool,
}

/// Prints the conditions. It fails if one of them keeps programs from being loaded.
pub(super) fn check(json: bool) -> Result<(), Failure> {
    let conditions = kernel::check();
    if json {
        output::json(&conditions.iter().map(row).collect::<Vec<_>>())?;
    } else {
        output::print(&table(&conditions))?;
    }
    let obstacles: Vec<&str> =
        conditions.iter().filter(|condition| condition.is_obstacle()).map(|condition| condition.name).collect();
    if obstacles.is_empty() {
        return Ok(());
    }
    Err(Failure::Environment(format!("no program can be loaded here: {}", obstacles.join(", "))))
}

fn row(condition: &Condition) -> Row<'_> {
    let Condition { name, found, remedy, required } = condition;
    Row { name, found, remedy: remedy.as_deref(), required: *required }
}

fn table(conditions: &[Condition]) -> String {
    let mut text = String::new();
    for condition in conditions {
        let verdict = match (&condition.remedy, condition.required) {
            (None, _) => "yes",
            (Some(_), true) => "NO",
            (Some(_), false) => "no",
        };
        let _ = writeln!(text, "{verdict:3}  {:13} {}", condition.name, condition.found);
        if let Some(remedy) = &condition.remedy {
            let _ = writeln!(text, "     {:13} help: {remedy}", "");
        }
    }
    if !conditions.iter().any(Condition::is_obstacle) {
        let _ = writeln!(text, "\nPrograms can be loaded: {} load lia", alone::words());
    }
    text
}
