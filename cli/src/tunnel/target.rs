//! Control clients of the tunnels that arguments name.

use crate::Failure;
use daemon::control_plane::{Client, ClientError, RUNTIME_DIRECTORY};
use std::path::{Path, PathBuf};

/// The folder of the configurations of this host's tunnels.
const CONFIGURATIONS: &str = "/etc/ropewalk";

/// The directory of the sockets; `ROPEWALK_RUN` names another one.
pub(crate) fn runtime_directory() -> PathBuf {
    std::env::var_os("ROPEWALK_RUN").map_or_else(|| PathBuf::from(RUNTIME_DIRECTORY), PathBuf::from)
}

/// A client of the daemon of an interface, or of a configuration file.
pub(super) fn client(tunnel: &str) -> Client {
    let path = Path::new(tunnel);
    let is_file = path.extension().is_some_and(|extension| extension == "toml") || tunnel.contains('/');
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // A file that cannot be read is taken to have the interface of its name.
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
    match error {
        ClientError::Configuration(_) => Failure::ReloadedConfiguration(error.to_string()),
        _ => Failure::Environment(error.to_string()),
    }
}

/// The configuration that an argument refers to: the file, or that of an interface in `/etc/ropewalk`.
pub(super) fn configuration_file(argument: &Path) -> PathBuf {
    let is_name = argument.components().count() == 1 && argument.extension().is_none() && !argument.exists();
    if !is_name {
        return argument.to_owned();
    }
    let mut name = argument.as_os_str().to_owned();
    name.push(".toml");
    Path::new(CONFIGURATIONS).join(name)
}
