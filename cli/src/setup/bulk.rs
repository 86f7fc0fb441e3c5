//! Changes of a server's clients, one by the command line or many by a table: all are checked before the first is made.

use super::SetupServer;
use super::clients::{NewClient, NewRow, Server, date};
use super::csv::{self, Row, RowErrors};
use super::{environment, expiry, promises, tokens};
use crate::{Failure, output};
use ipnet::IpNet;
use std::path::Path;

/// Why clients are not changed.
pub(super) enum BulkError {
    /// What is wrong in which line.
    Rows(RowErrors),
    /// Anything else.
    Other(Failure),
}

impl From<Failure> for BulkError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

/// The failure of a table, or of the command line.
pub(super) fn failure(table: Option<&Path>, error: BulkError) -> Failure {
    match (error, table) {
        (BulkError::Other(failure), _) => failure,
        (BulkError::Rows(errors), Some(table)) => csv::failure(table, &errors),
        (BulkError::Rows(errors), None) => {
            Failure::Usage(errors.into_iter().map(|(_, error)| error).collect::<Vec<_>>().join("; "))
        }
    }
}

/// Whether a change of clients is asked for.
pub(super) fn is_asked(arguments: &SetupServer) -> bool {
    let texts = [&arguments.add, &arguments.revoke, &arguments.rename, &arguments.expire];
    let tables = [&arguments.add_from, &arguments.revoke_from, &arguments.rename_from, &arguments.expire_from];
    texts.iter().any(|text| text.is_some()) || tables.iter().any(|table| table.is_some())
}

/// Makes the change that is asked for.
pub(super) fn change(arguments: &SetupServer) -> Result<(), Failure> {
    let mut server = Server::open(&arguments.name)?;
    if let Some(table) = &arguments.add_from {
        return add_from(&mut server, arguments, table);
    }
    if let Some(name) = &arguments.add {
        let expires = arguments.expires.as_deref().map(expiry::parse).transpose();
        let expires = expires.map_err(|error| Failure::Usage(format!("--expires: {error}")))?.flatten();
        return server.add(name, &NewClient { expires, ..arguments.new_client() }, &arguments.lan);
    }
    let table =
        [&arguments.revoke_from, &arguments.rename_from, &arguments.expire_from].into_iter().find_map(Option::as_deref);
    let done = if arguments.revoke.is_some() || arguments.revoke_from.is_some() {
        revoke(&mut server, arguments.revoke.as_deref(), table)
    } else if arguments.rename.is_some() || arguments.rename_from.is_some() {
        rename(&mut server, arguments.rename.as_deref(), table)
    } else {
        expire(&mut server, arguments.expire.as_deref(), table)
    };
    output::print(&done.map_err(|error| failure(table, error))?)
}

/// Adds the clients of a table.
fn add_from(server: &mut Server, arguments: &SetupServer, table: &Path) -> Result<(), Failure> {
    let rows = csv::read(table, &["name"], &["lan", "expires"])?;
    let (mut new, mut errors) = (Vec::new(), Vec::new());
    for row in rows {
        match new_row(&row) {
            Ok(row) => new.push(row),
            Err(error) => errors.push((row.line, error)),
        }
    }
    if !errors.is_empty() {
        return Err(csv::failure(table, &errors));
    }
    let tokens = server.add_all(&new, arguments.token_hours).map_err(|error| failure(Some(table), error))?;
    if arguments.json { tokens::print_as_json(&tokens) } else { tokens::print_tokens(&tokens, arguments.token_hours) }
}

fn new_row(row: &Row) -> Result<NewRow, String> {
    let lans = row.fields[1].split_whitespace().map(promises::network).collect::<Result<Vec<IpNet>, _>>()?;
    let expires = match row.fields[2].as_str() {
        "" => None,
        text => expiry::parse(text)?,
    };
    Ok(NewRow { line: row.line, name: row.fields[0].clone(), lans, expires })
}

/// The rows of the command line, which has `words` separated by `=`, or of a table.
fn rows(text: Option<&str>, table: Option<&Path>, columns: &[&str]) -> Result<Vec<Row>, BulkError> {
    let Some(text) = text else {
        let table = table.ok_or_else(|| environment("there is no table".into()))?;
        return Ok(csv::read(table, columns, &[])?);
    };
    let fields: Vec<_> = text.split('=').map(str::to_owned).collect();
    if fields.len() != columns.len() {
        let form = columns.join("=").to_uppercase();
        return Err(Failure::Usage(format!("`{}` is not {form}", text.escape_debug())).into());
    }
    Ok(vec![Row { line: 0, fields }])
}

fn revoke(server: &mut Server, text: Option<&str>, table: Option<&Path>) -> Result<String, BulkError> {
    let rows = match text {
        // A name with a `=` is wrong, too.
        Some(name) => vec![Row { line: 0, fields: vec![name.to_owned()] }],
        None => rows(None, table, &["name"])?,
    };
    let names: Vec<_> = rows.into_iter().map(|row| (row.line, row.fields[0].clone())).collect();
    server.revoke_all(&names)?;
    Ok(names.iter().map(|(_, name)| format!("{name}: removed\n")).collect())
}

fn rename(server: &mut Server, text: Option<&str>, table: Option<&Path>) -> Result<String, BulkError> {
    let rows = rows(text, table, &["name", "new-name"])?;
    let names: Vec<_> = rows.into_iter().map(|row| (row.line, row.fields[0].clone(), row.fields[1].clone())).collect();
    server.rename_all(&names)?;
    Ok(names.iter().map(|(_, old, new)| format!("{old}: is {new} now\n")).collect())
}

fn expire(server: &mut Server, text: Option<&str>, table: Option<&Path>) -> Result<String, BulkError> {
    let (mut ends, mut errors) = (Vec::new(), Vec::new());
    for row in rows(text, table, &["name", "expires"])? {
        match expiry::parse(&row.fields[1]) {
            Ok(end) => ends.push((row.line, row.fields[0].clone(), end)),
            Err(error) => errors.push((row.line, error)),
        }
    }
    if !errors.is_empty() {
        return Err(BulkError::Rows(errors));
    }
    server.expire_all(&ends)?;
    let line = |(_, name, end): &(usize, String, Option<u64>)| match end {
        Some(end) => format!("{name}: expires {}\n", date(*end)),
        None => format!("{name}: has no end\n"),
    };
    Ok(ends.iter().map(line).collect())
}
