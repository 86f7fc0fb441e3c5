//! Import of MPT's configuration files.
//!
//! MPT (draft-lencse-tsvwg-mpt) has an `interface.conf` and one file for each connection in `connections/`. All of
//! their keys are known here; keys without a counterpart are noted.

#![expect(clippy::disallowed_methods, reason = "MPT's configuration is a folder")]

mod convert;
mod ini;

use ini::Ini;
use parse::Error;
use std::path::Path;

/// A converted configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The configuration file.
    pub toml: String,
    /// Keys that were not converted, one sentence each.
    pub notes: Vec<String>,
}

/// Converts MPT's files in `directory` or its `conf` subdirectory. `name` selects the connection if there are several.
///
/// # Errors
/// A file that cannot be read, an error in a file with its line, or no such connection.
pub fn import(directory: &Path, name: Option<&str>) -> Result<Import, Error> {
    let conf_directory = directory.join("conf");
    let directory = if conf_directory.join("interface.conf").exists() { conf_directory.as_path() } else { directory };
    let interface = read(&directory.join("interface.conf"))?;
    let connection = select_connection(connections(&directory.join("connections"))?, name, directory)?;
    convert::convert(&interface, &connection)
}

fn read(path: &Path) -> Result<Ini, Error> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::unreadable(&origin, format!("cannot read MPT's file: {error}")))?;
    Ini::parse(&origin, &text)
}

/// All files with the extension `conf`, sorted by name.
fn connections(directory: &Path) -> Result<Vec<Ini>, Error> {
    let to_error = |error| {
        let message = format!("cannot read MPT's connections: {error}");
        Error::unreadable(&directory.display().to_string(), message)
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(to_error)? {
        paths.push(entry.map_err(to_error)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn select_connection(mut connections: Vec<Ini>, name: Option<&str>, directory: &Path) -> Result<Ini, Error> {
    let connection_name = |ini: &Ini| ini.text("connection", "name").unwrap_or("connection").to_owned();
    let names: Vec<_> = connections.iter().map(connection_name).collect();
    let error = |message: String| Err(Error::unreadable(&directory.display().to_string(), message));
    match (name, names.as_slice()) {
        (None, [_]) => Ok(connections.remove(0)),
        (Some(name), _) if names.iter().any(|other| other == name) => {
            Ok(connections.remove(names.iter().position(|other| other == name).unwrap_or(0)))
        }
        (_, []) => error("no connections/*.conf: nothing to import".into()),
        (None, _) => error(format!("several connections, name one with --connection: {}", names.join(", "))),
        (Some(name), _) => error(format!("no connection `{name}`; there is: {}", names.join(", "))),
    }
}
