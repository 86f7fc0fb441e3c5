//! `setup dashboard`: serves the dashboard of a tunnel, or no longer. The daemon starts again with it.

use super::plan::replace_text;
use super::record::{Record, Undo};
use super::{CONFIG_FOLDER, audit, config_file, environment, key_file, rotate};
use crate::{Failure, output};
use daemon::config;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the token of the dashboard is.
fn token_file(name: &str) -> PathBuf {
    PathBuf::from(CONFIG_FOLDER).join(format!("{name}.dashboard-token"))
}

/// Serves the dashboard at `address`, with a token if that is asked for or the address is not on loopback; without an address
/// it is not served.
pub(super) fn change(interface: &str, address: Option<SocketAddr>, with_token: bool) -> Result<(), Failure> {
    let record = Record::read(interface).map_err(environment)?.filter(|record| record.is_complete);
    let mut record = record.ok_or_else(|| environment(format!("no tunnel {interface} was set up here")))?;
    let file = config_file(interface);
    let at_file = |error: std::io::Error| environment(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(&file).map_err(at_file)?;
    let has_token = address.is_some_and(|address| with_token || !address.ip().is_loopback());
    let token = token_file(interface);
    if has_token && !token.exists() {
        record.undo.push(Undo::DaemonFile(token.clone()));
        record.write().map_err(environment)?;
        rotate::write_as(&token, &daemon::keys::genpsk(), &key_file(interface)).map_err(environment)?;
    }
    let new = with_dashboard(&text, address, has_token.then_some(&token));
    config::parse(&file.display().to_string(), &new, &file).map_err(Failure::Configuration)?;
    let object = address.map_or("off".to_owned(), |address| address.to_string());
    audit::note(interface, "dashboard", interface, &object)?;
    replace_text(&file, &new).map_err(environment)?;
    rotate::restart(interface).map_err(environment)?;
    output::print(&match address {
        None => format!("{interface}: no dashboard\n"),
        Some(address) if has_token => {
            format!("{interface}: http://{address}/, with the token in {}\n", token.display())
        }
        Some(address) => format!("{interface}: http://{address}/, for this machine alone\n"),
    })
}

/// A configuration whose [interface] has these keys in place of the earlier ones.
fn with_dashboard(text: &str, address: Option<SocketAddr>, token: Option<&PathBuf>) -> String {
    let keys = address.map(|address| format!("dashboard = \"{address}\"\n"));
    let token = token.map(|file| format!("dashboard-token-file = \"{}\"\n", file.display()));
    let keys = keys.into_iter().chain(token).collect::<String>();
    let is_old = |line: &&str| matches!(line.split(['=', ' ']).next(), Some("dashboard" | "dashboard-token-file"));
    let line = |line: &str| if line.trim() == "[interface]" { format!("{line}\n{keys}") } else { format!("{line}\n") };
    text.lines().filter(|line| !is_old(line)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dashboard_is_put_in_the_place_of_the_earlier_one_and_nothing_else_changes() {
        let text = "# kept\n[interface]\naddress = \"10.77.0.1/24\"\ndashboard-x = 1\n\n[[peer]]\nname = \"a\"\n";
        let address = "0.0.0.0:9780".parse().ok();
        let token = PathBuf::from("/etc/ropewalk/rw0.dashboard-token");
        let served = with_dashboard(text, address, Some(&token));
        let keys = "dashboard = \"0.0.0.0:9780\"\ndashboard-token-file = \"/etc/ropewalk/rw0.dashboard-token\"\n";
        assert_eq!(served, text.replace("[interface]\n", &format!("[interface]\n{keys}")));
        assert_eq!(with_dashboard(&served, address, Some(&token)), served);
        assert_eq!(with_dashboard(&served, None, None), text);
    }
}
