//! `setup remove`.

use super::record::Record;
use super::{environment, is_confirmed};
use crate::{Failure, output};

pub(super) fn remove(name: &str, is_dry_run: bool, is_agreed: bool) -> Result<(), Failure> {
    let record = Record::read(name).map_err(environment)?;
    let Some(record) = record else {
        return Err(Failure::Environment(format!("no tunnel {name} was set up here: --name names another one")));
    };
    let lines: String = record.undo.iter().rev().map(|undo| format!("  {undo}\n")).collect();
    output::print(&format!("The setup of {name} is undone:\n\n{lines}"))?;
    if is_dry_run || !is_confirmed(is_agreed)? {
        return Ok(());
    }
    let failures = record.undo();
    Record::remove(name).map_err(environment)?;
    if failures.is_empty() {
        return output::print(&format!("\n{name}: removed\n"));
    }
    Err(Failure::Environment(format!("removed, except:\n  {}", failures.join("\n  "))))
}
