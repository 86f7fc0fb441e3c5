//! Control clients of the tunnels that arguments name.

use crate::Failure;
use daemon::control_plane::{Client, ClientError, RUNTIME_DIRECTORY};
use std::path::{Path, PathBuf};

/// The directory of the sockets; `ROPEWALK_RUN` names another one.
pub(super) fn runtime_directory() -> PathBuf {
    std::env::var_os("ROPEWALK_RUN").map_or_else(|| PathBuf::from(RUNTIME_DIRECTORY), PathBuf::from)
}

/// A client of the daemon of an interface, or of a configuration file.
pub(super) fn client(tunnel: &str) -> Client {
    let path = Path::new(tunnel);
    let is_file = path.extension().is_some_and(|extension| extension == "toml") || tunnel.contains('/');
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // A file that cannot be read has the interface of its name.
    let interface_of_file = || daemon::config::load(path).map_or_else(|_| stem(), |config| config.interface.name);
    Client::new(&runtime_directory(), &if is_file { interface_of_file() } else { tunnel.to_owned() })
}

/// A client of the named daemon, or of the only one that runs.
pub(super) fn client_or_only(tunnel: Option<&str>) -> Result<Client, Failure> {
    let interfaces = Client::interfaces(&runtime_directory());
    match (tunnel, interfaces.as_slice()) {
        (Some(name), _) => Ok(client(name)),
        (None, [name]) => Ok(client(name)),
        (None, []) => Err(Failure::Environment("no tunnel is up (`ropewalk up FILE` starts one)".into())),
        (None, several) => Err(Failure::Usage(format!("several tunnels are up, name one: {}", several.join(", ")))),
    }
}

pub(super) fn failure(error: &ClientError) -> Failure {
    Failure::Environment(error.to_string())
}
