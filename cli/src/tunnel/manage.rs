//! `up`, `down`, `reload`.

use super::target::{client, configuration_file, failure, runtime_directory};
use crate::{Failure, output};
use daemon::{config, log};
use std::path::Path;

pub(super) fn up(file: &Path, log_as_json: bool, parent: Option<u32>) -> Result<(), Failure> {
    parent.map_or(Ok(()), daemon::end_with_parent).map_err(|error| Failure::Environment(error.to_string()))?;
    let file = &configuration_file(file);
    let config = config::load(file).map_err(Failure::Configuration)?;
    log::start(log_as_json);
    let file = std::path::absolute(file).map_err(|error| Failure::Environment(error.to_string()))?;
    daemon::up(config, file, &runtime_directory(), crate::VERSION)
        .map_err(|error| Failure::Environment(error.to_string()))
}

pub(super) fn down(tunnel: &str) -> Result<(), Failure> {
    client(tunnel).down().map_err(|error| failure(&error))
}

pub(super) fn reload(tunnel: &str) -> Result<(), Failure> {
    let changes = client(tunnel).request("POST", "/v1/reload", "").map_err(|error| failure(&error))?;
    output::print(&changes)
}

/// The process that runs a hook for the daemon.
pub(super) fn notify_hook(hook: &Path) -> Result<(), Failure> {
    log::start(false);
    daemon::notify::run_hooks(hook).map_err(|error| Failure::Environment(error.to_string()))
}
