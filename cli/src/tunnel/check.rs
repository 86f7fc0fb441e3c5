//! `check FILE`.

use crate::{Failure, output};
use daemon::config::{self, Config, Mode};
use std::path::Path;

pub(super) fn check(file: &Path) -> Result<(), Failure> {
    let config = config::load(file).map_err(Failure::Configuration)?;
    for warning in config.warnings.iter().chain(&of_this_system(&config)) {
        output::complain(&format!("warning: {warning}"));
    }
    let Config { interface, peers, paths, mode, .. } = &config;
    let mode = if matches!(mode, Mode::Mpt(_)) { "mpt" } else { "ropewalk" };
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let counts = [many(peers.len(), "peer"), many(paths.len(), "path")].join(", ");
    output::print(&format!("{}: fine: {} ({mode}), {counts}\n", file.display(), interface.name))
}

/// What the file cannot know.
fn of_this_system(config: &Config) -> Vec<String> {
    let devices: Vec<_> = config.paths.iter().filter_map(|path| path.interface.as_ref()).collect();
    let missing = devices.iter().filter(|device| !Path::new("/sys/class/net").join(device).exists());
    let missing = missing.map(|device| format!("there is no device {device} at present; its path waits for it"));
    let strict = devices.iter().filter(|device| devices.len() > 1 && daemon::control::strict_reverse_path(device));
    let strict = strict.map(|device| format!("{device} has rp_filter = 1: sysctl net.ipv4.conf.{device}.rp_filter=2"));
    missing.chain(strict).collect()
}
