//! `check FILE`.

use super::target::configuration_file;
use crate::{Failure, output};
use daemon::config::{self, TunnelConfig};
use daemon::control_plane::overlapping_networks;
use daemon::status::Notice;
use std::path::Path;

pub(super) fn check(file: &Path, live: bool) -> Result<(), Failure> {
    let file = &configuration_file(file);
    if is_scenario(file) {
        let file = file.display();
        let message =
            format!("{file} is a scenario, not a tunnel's configuration: `ropewalk run {file}` checks and runs it");
        return Err(Failure::Usage(message));
    }
    let config = config::load(file).map_err(Failure::Configuration)?;
    for warning in config.warnings.iter().chain(&system_warnings(&config)) {
        output::warn(&format!("warning: {warning}"));
    }
    // `--live` reports them with everything else.
    for Notice { text, remedy, .. } in overlapping_networks(&config).iter().filter(|_| !live) {
        output::warn(&format!("warning: {text}: {remedy}"));
    }
    let TunnelConfig { interface, peers, paths, .. } = &config;
    let mode = if config.mpt().is_some() { "mpt" } else { "ropewalk" };
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let counts = [count(peers.len(), "peer"), count(paths.len(), "path")].join(", ");
    let found = if interface.uplinks.is_some() { ", uplinks as they are found" } else { "" };
    output::print(&format!("{}: valid: {} ({mode}), {counts}{found}\n", file.display(), interface.name))?;
    if live { super::live::check(&config, file) } else { Ok(()) }
}

/// Whether the file has tables of a scenario and none that only a tunnel's configuration has.
fn is_scenario(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let has_table = |name: &str| {
        let headings = [format!("[{name}]"), format!("[[{name}]]"), format!("[{name}.")];
        text.lines().any(|line| headings.iter().any(|heading| line.trim_start().starts_with(heading.as_str())))
    };
    !has_table("interface")
        && !has_table("peer")
        && ["flow", "link", "sweep", "host"].iter().any(|name| has_table(name))
}

/// Warnings about this system: missing devices, reverse path filtering, a kernel without seccomp.
fn system_warnings(config: &TunnelConfig) -> Vec<String> {
    let devices: Vec<_> = config.paths.iter().filter_map(|path| path.interface.as_ref()).collect();
    let missing = devices.iter().filter(|device| !Path::new("/sys/class/net").join(device).exists());
    let missing = missing.map(|device| format!("there is no device {device}; its path waits until there is one"));
    let strict =
        devices.iter().filter(|device| devices.len() > 1 && daemon::control_plane::has_strict_reverse_path(device));
    let strict = strict.map(|device| format!("{device} has rp_filter = 1: sysctl net.ipv4.conf.{device}.rp_filter=2"));
    // The file exists if the kernel has seccomp filters (seccomp(2)).
    let seccomp = Path::new("/proc/sys/kernel/seccomp/actions_avail").exists();
    let unrestricted = "this kernel has no seccomp: the daemon's system calls are not restricted";
    missing.chain(strict).chain((!seccomp).then(|| unrestricted.to_owned())).collect()
}
