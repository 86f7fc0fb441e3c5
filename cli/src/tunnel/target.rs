//! Which tunnel is meant.

use crate::Failure;
use daemon::control::{Client, ClientError, RUN};
use std::path::{Path, PathBuf};

/// Where the sockets lie; `ROPEWALK_RUN` names another folder.
pub(super) fn folder() -> PathBuf {
    std::env::var_os("ROPEWALK_RUN").map_or_else(|| PathBuf::from(RUN), PathBuf::from)
}

/// The daemon of an interface, or of the one that a configuration file describes.
pub(super) fn client(tunnel: &str) -> Client {
    let path = Path::new(tunnel);
    let is_file = path.extension().is_some_and(|it| it == "toml") || tunnel.contains('/');
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // A file that cannot be read any more names its tunnel all the same.
    let of_file = || daemon::config::load(path).map_or_else(|_| stem(), |config| config.interface.name);
    Client::new(&folder(), &if is_file { of_file() } else { tunnel.to_owned() })
}

/// The daemon that is meant, which may go unsaid if there is one alone.
pub(super) fn the(tunnel: Option<&str>) -> Result<Client, Failure> {
    let up = Client::interfaces(&folder());
    match (tunnel, up.as_slice()) {
        (Some(name), _) => Ok(client(name)),
        (None, [name]) => Ok(client(name)),
        (None, []) => Err(Failure::Environment("no tunnel is up (`ropewalk up FILE` starts one)".into())),
        (None, several) => Err(Failure::Usage(format!("several tunnels are up, which one? {}", several.join(", ")))),
    }
}

pub(super) fn failure(error: &ClientError) -> Failure {
    Failure::Environment(error.to_string())
}
