//! Import of MPT's configuration files.
//!
//! MPT (draft-lencse-tsvwg-mpt) has an `interface.conf` and one file for each connection in `connections/`. All of their
//! keys are known here; keys without a counterpart are noted.

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

/// Converts MPT's files in `directory` or its `conf` subdirectory. `wanted` names the connection if there are several.
///
/// # Errors
/// A file that cannot be read, an error in a file with its line, or no such connection.
pub fn import(directory: &Path, wanted: Option<&str>) -> Result<Import, Error> {
    let conf = directory.join("conf");
    let directory = if conf.join("interface.conf").exists() { conf.as_path() } else { directory };
    let interface = read(&directory.join("interface.conf"))?;
    let connection = select_connection(connections(&directory.join("connections"))?, wanted, directory)?;
    convert::convert(&interface, &connection)
}

fn read(path: &Path) -> Result<Ini, Error> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::unreadable(&origin, format!("cannot read MPT's file: {error}")))?;
    Ini::read(&origin, &text)
}

/// All files with the extension `conf`, sorted by name.
fn connections(directory: &Path) -> Result<Vec<Ini>, Error> {
    let unreadable = |error| {
        let message = format!("cannot read MPT's connections: {error}");
        Error::unreadable(&directory.display().to_string(), message)
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn select_connection(mut all: Vec<Ini>, wanted: Option<&str>, directory: &Path) -> Result<Ini, Error> {
    let name = |ini: &Ini| ini.text("connection", "name").unwrap_or("connection").to_owned();
    let names: Vec<_> = all.iter().map(name).collect();
    let refuse = |message: String| Err(Error::unreadable(&directory.display().to_string(), message));
    match (wanted, names.as_slice()) {
        (None, [_]) => Ok(all.remove(0)),
        (Some(wanted), _) if names.iter().any(|name| name == wanted) => {
            Ok(all.remove(names.iter().position(|name| name == wanted).unwrap_or(0)))
        }
        (_, []) => refuse("no connections/*.conf: nothing to import".into()),
        (None, _) => refuse(format!("several connections, name one with --connection: {}", names.join(", "))),
        (Some(wanted), _) => refuse(format!("no connection `{wanted}`; there is: {}", names.join(", "))),
    }
}
