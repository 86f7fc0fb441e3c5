//! MPT's configuration files, read and written again as ours.
//!
//! MPT (draft-lencse-tsvwg-mpt) keeps `interface.conf` and one file for each connection in `connections/`. All of their
//! keys are known here; what has no counterpart is told, not dropped in silence.

mod convert;
mod ini;

use crate::config::Faults;
use ini::Ini;
use parse::Error;
use std::path::Path;

/// A configuration made from MPT's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Our file.
    pub toml: String,
    /// What could not be carried over, a sentence each.
    pub notes: Vec<String>,
}

/// Reads MPT's files in `folder`, or in `conf` below it, and the connection called `wanted` if there are several.
///
/// # Errors
/// A file that cannot be read, or what is wrong in it with its line; several connections and none of them wanted.
pub fn mpt(folder: &Path, wanted: Option<&str>) -> Result<Import, Faults> {
    let below = folder.join("conf");
    let folder = if below.join("interface.conf").exists() { below.as_path() } else { folder };
    let interface = read(&folder.join("interface.conf"))?;
    let connection = pick(connections(&folder.join("connections"))?, wanted, folder)?;
    convert::convert(&interface, &connection).map_err(Faults::from)
}

fn read(path: &Path) -> Result<Ini, Faults> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Faults::from(Error::unreadable(&origin, format!("cannot read MPT's file: {error}"))))?;
    Ini::read(&origin, &text).map_err(Faults::from)
}

/// Every file whose name ends in `.conf`, in the order of names.
fn connections(folder: &Path) -> Result<Vec<Ini>, Faults> {
    let unreadable = |error| {
        let message = format!("cannot read MPT's connections: {error}");
        Faults::from(Error::unreadable(&folder.display().to_string(), message))
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|it| it == "conf"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn pick(mut all: Vec<Ini>, wanted: Option<&str>, folder: &Path) -> Result<Ini, Faults> {
    let name = |ini: &Ini| ini.text("connection", "name").unwrap_or("connection").to_owned();
    let names: Vec<_> = all.iter().map(name).collect();
    let refuse = |message: String| Err(Faults::from(Error::unreadable(&folder.display().to_string(), message)));
    match (wanted, names.as_slice()) {
        (None, [_]) => Ok(all.remove(0)),
        (Some(wanted), _) if names.iter().any(|name| name == wanted) => {
            Ok(all.remove(names.iter().position(|name| name == wanted).unwrap_or(0)))
        }
        (_, []) => refuse("no connections/*.conf: nothing to import".into()),
        (None, _) => refuse(format!("several connections, choose with --connection: {}", names.join(", "))),
        (Some(wanted), _) => refuse(format!("no connection `{wanted}`; there is: {}", names.join(", "))),
    }
}
