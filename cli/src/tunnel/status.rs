//! `show`, `top` and `ping`.

use super::target::{client_or_only, failure, runtime_directory};
use crate::{Failure, output};
use daemon::control_plane::{Client, restart_command, running_tunnel};
use daemon::show;
use daemon::status::{PathStatus, TunnelStatus};
use std::time::Duration;

pub(super) fn show(tunnel: Option<&str>, dump: bool, json: bool) -> Result<(), Failure> {
    // `ropewalk show dump` works as `wg show all dump`.
    let (tunnel, dump) = if tunnel == Some("dump") { (None, true) } else { (tunnel, dump) };
    let all = match tunnel {
        Some(_) => vec![status(&client_or_only(tunnel)?)?],
        None => Client::interfaces(&runtime_directory())
            .iter()
            .map(|name| status(&client_or_only(Some(name))?))
            .collect::<Result<_, _>>()?,
    };
    if json {
        return if tunnel.is_some() { output::json(&all[0]) } else { output::json(&all) };
    }
    if all.is_empty() {
        output::warn("no tunnel is up (`ropewalk up FILE` starts one)");
    }
    let format_status = |status| if dump { show::dump(status) } else { show::show(status, output::width()) };
    output::print(&all.iter().map(format_status).collect::<Vec<_>>().join(if dump { "" } else { "\n" }))?;
    all.iter().filter_map(outdated).for_each(|(text, remedy)| output::warn(&format!("note: {text}: {remedy}")));
    Ok(())
}

/// Notes that a daemon runs another version of the program than this one, as after an upgrade, and how to fix that.
pub(super) fn outdated(status: &TunnelStatus) -> Option<(String, String)> {
    let running = status.program_version.as_deref().unwrap_or("an earlier version");
    if running == crate::VERSION {
        return None;
    }
    let name = &status.interface.name;
    let pid = running_tunnel(&runtime_directory(), name).map_or(0, |state| state.pid);
    let text = format!("{name} runs version {running}, but {} is installed", crate::VERSION);
    Some((text, restart_command(name, pid)))
}

fn status(client: &Client) -> Result<TunnelStatus, Failure> {
    client.status().map_err(|error| failure(&error))
}

pub(super) fn top(tunnel: Option<&str>) -> Result<(), Failure> {
    let client = client_or_only(tunnel)?;
    status(&client)?;
    let request = || client.status().map_err(|error| error.to_string());
    daemon::top(request).map_err(|error| Failure::Environment(format!("the terminal: {error}")))
}

pub(super) fn ping(tunnel: Option<&str>, path: Option<&str>, count: Option<u32>) -> Result<(), Failure> {
    let client = client_or_only(tunnel)?;
    for round in 1..=count.unwrap_or(u32::MAX) {
        let status = status(&client)?;
        let paths: Vec<&PathStatus> = status
            .paths()
            .map(|(_, path_status)| path_status)
            .filter(|path_status| path.is_none_or(|name| path_status.name == name))
            .collect();
        if paths.is_empty() {
            let path_names: Vec<_> = status.paths().map(|(_, path_status)| path_status.name.as_str()).collect();
            return Err(Failure::Usage(format!("no such path; the paths are {}", path_names.join(", "))));
        }
        output::print(&paths.into_iter().map(|path| line(round, path)).collect::<String>())?;
        if Some(round) != count {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    Ok(())
}

/// The output line of `ping` for a path.
fn line(round: u32, path: &PathStatus) -> String {
    let rtt = path.probe_rtt_ms.or(path.srtt_ms).map_or("no answer yet".into(), |rtt| format!("{rtt:.2} ms"));
    format!("{}: round {round}, {rtt}, {}\n", path.name, path.state.as_str())
}
