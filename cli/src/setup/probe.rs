//! Tests a new client: each path in both directions, its RTT and MTU, and the tunnel as a whole.

use super::config_file;
use super::service::wait;
use super::token::Token;
use crate::tunnel::runtime_directory;
use crate::{Failure, output};
use daemon::control_plane::{Client, ENROLMENT_PORT};
use daemon::status::{PathState, PathStatus};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The time for the server's answer through the tunnel.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Waits for the paths, tests them, and prints a table.
pub(super) fn report(name: &str, token: &Token, expected: usize) -> Result<(), Failure> {
    let client = Client::new(&runtime_directory(), name);
    let paths = || -> Vec<PathStatus> {
        client
            .status()
            .map_or_else(|_| Vec::new(), |status| status.peers.into_iter().flat_map(|peer| peer.paths).collect())
    };
    let is_measured = |path: &PathStatus| path.state == PathState::Up && path.pmtu_bytes.is_some();
    wait(|| {
        let paths = paths();
        paths.len() >= expected && paths.iter().all(is_measured)
    });
    let paths = paths();
    let rtt = through_tunnel(token);
    output::print(&table(&paths))?;
    output::print(&backups(name, &paths))?;
    let up = paths.iter().filter(|path| path.state == PathState::Up).count();
    match rtt {
        Some(rtt) => output::print(&format!(
            "\nThe server answers through the tunnel, over {up} of {expected} paths, in {:.1} ms.\n",
            rtt.as_secs_f64() * 1e3
        )),
        None => Err(Failure::Environment(format!(
            "the server does not answer through the tunnel: the traffic of this machine goes as before.{}\n  help: the same \
             command tries again, and `ropewalk setup remove` undoes what it has done; `ropewalk show {name}` shows more",
            causes(&paths)
        ))),
    }
}

/// The reasons why paths do not work, one per line.
fn causes(paths: &[PathStatus]) -> String {
    let causes = paths.iter().filter_map(|path| Some((&path.name, path.cause.as_ref()?)));
    causes.map(|(name, cause)| format!("\n  {name}: {} ({})", cause.text, cause.remedy)).collect()
}

/// Whether the server answers through the tunnel.
pub(super) fn answers(token: &Token) -> bool {
    through_tunnel(token).is_some()
}

/// The time of a connection to the server's inner address: packets arrive in both directions.
fn through_tunnel(token: &Token) -> Option<Duration> {
    let server = SocketAddr::new(*token.server_addresses().first()?, ENROLMENT_PORT);
    let start = Instant::now();
    TcpStream::connect_timeout(&server, TIMEOUT).ok().map(|_| start.elapsed())
}

/// One line per path.
fn table(paths: &[PathStatus]) -> String {
    let cells = |path: &PathStatus| {
        let both = if path.state == PathState::Up { "both directions" } else { "no answer" };
        let rtt = path.min_rtt_ms.map_or_else(|| "-".into(), |rtt| format!("{rtt:.1} ms"));
        let mtu = path.pmtu_bytes.map_or_else(|| "-".into(), |bytes| format!("{bytes} bytes"));
        let used = if path.backup || path.metered { "as a backup" } else { "always" };
        [path.name.clone(), both.to_owned(), rtt, mtu, used.to_owned()]
    };
    let heading = ["path", "works", "round trip", "path MTU", "used"].map(String::from);
    let rows: Vec<[String; 5]> = std::iter::once(heading).chain(paths.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let line = |row: &[String; 5]| {
        let cells: Vec<_> = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column))).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Notes which uplinks are backups because they are metered, and how to change that.
fn backups(name: &str, paths: &[PathStatus]) -> String {
    let line = |path: &PathStatus| {
        let device = path.interface.as_deref().unwrap_or(&path.name);
        format!(
            "\n{device} is metered, as the system, its kind or its name tells: it carries data only while no other path works.\n\
             To bond it with the others:\n  \
             sed -i 's/^uplinks = .*/uplinks = {{ unmetered = [\"{device}\"] }}/' {} && ropewalk reload {name}\n",
            config_file(name).display()
        )
    };
    paths.iter().filter(|path| path.metered).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::status::TunnelStatus;

    #[test]
    fn a_metered_uplink_is_told_to_be_a_backup() {
        let mut paths = TunnelStatus::example().peers[0].paths.clone();
        paths.iter_mut().for_each(|path| (path.backup, path.metered) = (false, false));
        assert_eq!(backups("rw0", &paths), "");
        assert!(table(&paths).lines().skip(1).all(|line| line.ends_with("always")));
        (paths[1].metered, paths[1].interface) = (true, Some("wwan0".into()));
        assert!(table(&paths).lines().nth(2).is_some_and(|line| line.ends_with("as a backup")));
        let text = backups("rw0", &paths);
        assert!(text.contains("wwan0 is metered") && text.contains("/etc/ropewalk/rw0.toml"), "{text}");
    }
}
