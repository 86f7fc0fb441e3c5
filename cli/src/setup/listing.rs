//! `setup server --list`: the clients, from the list of peers and from the running daemon.

use super::clients::{Server, date};
use super::rotate::known_clients;
use crate::tunnel::runtime_directory;
use crate::{Failure, output};
use daemon::config::{EnrolledPeer, unix_time};
use daemon::control_plane::{Client, KnownClient};
use daemon::status::{PathState, PeerStatus};
use ipnet::IpNet;
use serde::Serialize;

/// A client, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    public_key: String,
    /// Its inner addresses, and the networks behind it.
    addresses: Vec<IpNet>,
    state: State,
    /// The end of a token that was not used, Unix time in seconds.
    token_expires_unix_s: Option<u64>,
    /// The end of the client's time; null if it has none.
    expires_unix_s: Option<u64>,
    /// When the server last had a session with it, to ten minutes; null if never.
    last_seen_unix_s: Option<u64>,
    /// What the client says of itself; null for earlier versions.
    version: Option<String>,
    host_name: Option<String>,
    /// Whether it knows the endpoints and the key that the server announces.
    has_announcement: bool,
    /// Paths that work, and all; null while the daemon is down.
    paths_up: Option<usize>,
    paths: Option<usize>,
    /// Bytes of datagrams on its present paths; null while the daemon is down.
    sent_bytes: Option<u64>,
    received_bytes: Option<u64>,
}

/// What a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    TokenNotUsed,
    TokenExpired,
    Expired,
    Connected,
    NotConnected,
}

/// Prints the clients, one per line, or as JSON.
pub(super) fn list(server: &Server, interface: &str, json: bool) -> Result<(), Failure> {
    let status = Client::new(&runtime_directory(), interface).status().ok();
    let known = known_clients(interface);
    let now = unix_time();
    let rows: Vec<Row> = server
        .peers_without_lock()?
        .iter()
        .map(|peer| {
            let key = peer.public_key.to_string();
            let of_status = status.as_ref().map(|status| {
                status.peers.iter().find(|other| other.public_key.as_deref() == Some(&key)).cloned().unwrap_or_default()
            });
            row(peer, of_status.as_ref(), known.iter().find(|client| client.public_key == key), now)
        })
        .collect();
    if json {
        return output::json(&rows);
    }
    output::print(&rows.iter().map(line).collect::<String>())
}

fn row(peer: &EnrolledPeer, status: Option<&PeerStatus>, known: Option<&KnownClient>, now: u64) -> Row {
    let is_up = |status: &PeerStatus| status.paths.iter().any(|path| path.state == PathState::Up);
    let is_over = |end: Option<u64>| end.is_some_and(|end| end <= now);
    let state = match peer.token_expires {
        Some(end) if end <= now => State::TokenExpired,
        Some(_) => State::TokenNotUsed,
        None if is_over(peer.expires) => State::Expired,
        None if status.is_some_and(is_up) => State::Connected,
        None => State::NotConnected,
    };
    let handshake = status.and_then(|status| status.handshake_age_ms).map(|age| now.saturating_sub((age / 1e3) as u64));
    let seen = if state == State::Connected { Some(now) } else { handshake.max(known.map(|known| known.seen_unix_s)) };
    Row {
        name: peer.name.clone(),
        public_key: peer.public_key.to_string(),
        addresses: peer.allowed_ips.clone(),
        state,
        token_expires_unix_s: peer.token_expires,
        expires_unix_s: peer.expires,
        last_seen_unix_s: seen.filter(|_| peer.token_expires.is_none()),
        version: known.map(|known| known.version.clone()),
        host_name: known.map(|known| known.host_name.clone()),
        has_announcement: known.is_some_and(|known| known.has_announcement),
        paths_up: status.map(|status| status.paths.iter().filter(|path| path.state == PathState::Up).count()),
        paths: status.map(|status| status.paths.len()),
        sent_bytes: status.map(|status| status.paths.iter().map(|path| path.sent.bytes).sum()),
        received_bytes: status.map(|status| status.paths.iter().map(|path| path.received.bytes).sum()),
    }
}

fn line(row: &Row) -> String {
    let end = |end: Option<u64>| end.map(date).unwrap_or_default();
    let mut words = vec![match row.state {
        State::TokenNotUsed => format!("token not used, valid until {}", end(row.token_expires_unix_s)),
        State::TokenExpired => format!("token expired {}", end(row.token_expires_unix_s)),
        State::Expired => format!("expired {}", end(row.expires_unix_s)),
        State::Connected => {
            format!("enrolled, connected by {} of {} paths", row.paths_up.unwrap_or(0), row.paths.unwrap_or(0))
        }
        State::NotConnected => "enrolled, not connected".to_owned(),
    }];
    match (row.state, row.last_seen_unix_s) {
        (State::NotConnected | State::Expired, Some(seen)) => words.push(format!("last seen {}", date(seen))),
        (State::NotConnected, None) => words.push("not seen yet".to_owned()),
        _ => {}
    }
    words.extend(row.version.as_ref().map(|version| format!("version {version}")));
    words.extend(row.host_name.as_ref().map(|host| format!("host {host}")));
    if let (Some(sent), Some(received), State::Connected) = (row.sent_bytes, row.received_bytes, row.state) {
        words.push(format!("{} MB to it, {} MB from it", sent / 1_000_000, received / 1_000_000));
    }
    if row.state != State::Expired {
        words.extend(row.expires_unix_s.map(|end| format!("expires {}", date(end))));
    }
    if row.has_announcement {
        words.push("has the announcement".to_owned());
    }
    let addresses: Vec<_> = row.addresses.iter().map(ToString::to_string).collect();
    format!("{:<20}  {:<40}  {}\n", row.name, addresses.join(", "), words.join(", "))
}
