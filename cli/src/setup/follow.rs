//! A client follows its server to another address, and to another key.
//!
//! Through the tunnel the client tells the server its version and its host's name, and the server answers what it announces:
//! further endpoints, and its next key. The client keeps that. When no path works any more, it tries the endpoints and keys
//! that it knows one after the other, by a reload of its configuration, until the server answers at one of them.

use super::plan::replace_text;
use super::record::Record;
use super::{config_file, environment, host};
use crate::tunnel::runtime_directory;
use crate::{Failure, output};
use daemon::config::{self, Announcement, Mode};
use daemon::control_plane::{Client, Hello, greet};
use daemon::event::CauseKind;
use daemon::status::{PathState, TunnelStatus};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the client asks for the announcement.
const INTERVAL: Duration = Duration::from_secs(600);
/// When it asks again after a first failure; then twice as late each time. A server of an earlier version never answers.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// How often it looks at the tunnel.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// The time without a path after which the next place is tried: several handshakes.
const PATIENCE: Duration = Duration::from_secs(8);

/// Where a server may be, and with which key: values of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The value of `endpoint`, in TOML.
    pub(super) endpoint: String,
    /// The server's public key.
    pub(super) key: String,
}

/// What a client knows of its server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Follow {
    /// The latest announcement.
    pub(super) announcement: Announcement,
    /// The places, that of the latest answer first.
    pub(super) places: Vec<Place>,
}

/// Follows until the process ends.
pub(super) fn run(interface: &str) {
    let mut follower = Follower::default();
    loop {
        std::thread::sleep(LOOK_INTERVAL);
        follower.look(interface).unwrap_or_else(|error| output::warn(&format!("following the server: {error}")));
    }
}

#[derive(Debug, Default)]
struct Follower {
    /// When the server is asked again; `None` since no path works.
    ask_at: Option<Instant>,
    /// The time before that.
    pause: Duration,
    /// Since when no path works.
    silent: Option<Instant>,
}

impl Follower {
    fn look(&mut self, interface: &str) -> Result<(), String> {
        let Some(record) = of_client(interface)? else { return Ok(()) };
        let Ok(status) = Client::new(&runtime_directory(), interface).status() else { return Ok(()) };
        if status.paths().any(|(_, path)| path.state == PathState::Up) {
            self.silent = None;
            if self.ask_at.is_none_or(|time| time <= Instant::now()) {
                let is_answered = fetch_into(interface, record).is_ok();
                self.pause = if is_answered { INTERVAL } else { (self.pause * 2).clamp(RETRY_INTERVAL, INTERVAL) };
                self.ask_at = Some(Instant::now() + self.pause);
            }
            return Ok(());
        }
        (self.ask_at, self.pause) = (None, Duration::ZERO);
        let since = *self.silent.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE || !is_server_silent(&status) {
            return Ok(());
        }
        self.silent = Some(Instant::now());
        try_next(interface, &record)
    }
}

/// The record of a client that is set up.
fn of_client(interface: &str) -> Result<Option<Record>, String> {
    Ok(Record::read(interface)?.filter(|record| record.is_complete && record.server.is_none()))
}

/// Whether a path sends without an answer: the others have a fault of this host.
fn is_server_silent(status: &TunnelStatus) -> bool {
    status.paths().any(|(_, path)| match &path.cause {
        None => true,
        Some(cause) => matches!(
            cause.kind,
            CauseKind::Refused
                | CauseKind::Unresolved
                | CauseKind::SilentPath
                | CauseKind::NoHandshake
                | CauseKind::SilentPeer
        ),
    })
}

/// `setup follow`: fetches the announcement now.
pub(super) fn fetch(interface: &str) -> Result<(), Failure> {
    let record = of_client(interface).map_err(environment)?;
    let record = record.ok_or_else(|| environment(format!("{interface} is no client of `ropewalk setup client`")))?;
    let announcement = fetch_into(interface, record).map_err(environment)?;
    let next_key = announcement.next_key.as_deref().unwrap_or("none");
    let endpoints = announcement.endpoints.join(", ");
    let endpoints = if endpoints.is_empty() { "none" } else { &endpoints };
    output::print(&format!("further endpoints of the server: {endpoints}\nits next key: {next_key}\n"))
}

/// Asks the server for its announcement, and keeps it.
fn fetch_into(interface: &str, mut record: Record) -> Result<Announcement, String> {
    let server = record.promises.client.server.first().copied().ok_or("the server's inner address is not known")?;
    let earlier = record.follow.announcement.clone();
    let hello = |known: &Announcement| Hello::new(crate::VERSION, &host::name(), known);
    let announcement = greet(server, &hello(&earlier)).map_err(|error| error.to_string())?;
    let place = current_place(interface)?;
    let places = places(&place, &announcement);
    let follow = Follow { announcement: announcement.clone(), places };
    if follow != record.follow {
        record.follow = follow;
        record.write()?;
    }
    if announcement != earlier {
        // So the server knows that this client has it.
        greet(server, &hello(&announcement)).map_err(|error| error.to_string())?;
    }
    Ok(announcement)
}

/// All places: each endpoint with each key, the current one first.
fn places(current: &Place, announcement: &Announcement) -> Vec<Place> {
    let announced = match &announcement.endpoints[..] {
        [] => None,
        [endpoint] => Some(format!("\"{endpoint}\"")),
        endpoints => Some(format!("[{}]", endpoints.iter().map(|e| format!("\"{e}\"")).collect::<Vec<_>>().join(", "))),
    };
    let endpoints = [Some(current.endpoint.clone()), announced];
    let keys = [Some(current.key.clone()), announcement.next_key.clone()];
    let mut places: Vec<Place> = Vec::new();
    for key in keys.iter().flatten() {
        for endpoint in endpoints.iter().flatten() {
            let place = Place { endpoint: endpoint.clone(), key: key.clone() };
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// The place in the configuration.
fn current_place(interface: &str) -> Result<Place, String> {
    let file = config_file(interface);
    let text = read(&file)?;
    place_of(&text).ok_or_else(|| format!("{} has no single peer with a key and an endpoint", file.display()))
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// The values of a configuration with one peer, as `setup client` writes it.
fn place_of(text: &str) -> Option<Place> {
    (text.lines().filter(|line| line.trim() == "[[peer]]").count() == 1).then_some(())?;
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
        let value = lines.next().map(|value| value.trim().to_owned());
        value.filter(|_| lines.next().is_none())
    };
    let key = value("public-key")?.trim_matches('"').to_owned();
    Some(Place { endpoint: value("endpoint")?, key })
}

/// The text with the values of a place.
fn with_place(text: &str, place: &Place) -> String {
    let line = |line: &str| match line.split(['=', ' ']).next() {
        Some("endpoint") => format!("endpoint = {}\n", place.endpoint),
        Some("public-key") => format!("public-key = \"{}\"\n", place.key),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Changes the configuration to the place after the current one, and has it read.
fn try_next(interface: &str, record: &Record) -> Result<(), String> {
    let places = &record.follow.places;
    if places.len() < 2 {
        return Ok(());
    }
    let file = config_file(interface);
    let text = read(&file)?;
    let Some(current) = place_of(&text) else { return Ok(()) };
    let index = places.iter().position(|place| *place == current).map_or(0, |index| (index + 1) % places.len());
    let next = with_place(&text, &places[index]);
    // A place that the daemon refuses is not left in the file.
    let config = config::parse(&file.display().to_string(), &next, &file).map_err(|errors| errors.to_string())?;
    if !matches!(config.mode, Mode::Ropewalk { .. }) {
        return Ok(());
    }
    replace_text(&file, &next)?;
    output::warn(&format!(
        "no path works: trying the server at {} with the key {}",
        places[index].endpoint, places[index].key
    ));
    Client::new(&runtime_directory(), interface)
        .request("POST", "/v1/reload", "")
        .map_err(|error| error.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[interface]\nprivate-key-file = \"rw0.key\"\n\n[[peer]]\nname = \"server\"\npublic-key = \"A\"\n\
                        preshared-key-file = \"rw0.psk\"\nallowed-ips = [\"10.77.0.0/24\"]\nendpoint = \"192.0.2.1:4754\"\n";

    fn place(endpoint: &str, key: &str) -> Place {
        Place { endpoint: endpoint.into(), key: key.into() }
    }

    #[test]
    fn a_configuration_changes_in_the_endpoint_and_the_key_of_its_peer_alone() {
        let current = place("\"192.0.2.1:4754\"", "A");
        assert_eq!(place_of(TEXT), Some(current.clone()));
        assert_eq!(with_place(TEXT, &current), TEXT);
        let next = place("[\"198.51.100.1:4754\", \"[2001:db8::1]:4754\"]", "B");
        assert_eq!(place_of(&with_place(TEXT, &next)), Some(next));
        // With several peers or endpoints in a file, it is unknown which are the server's.
        assert_eq!(place_of(&format!("{TEXT}[[peer]]\n")), None);
        assert_eq!(place_of(&format!("{TEXT}[[path]]\nendpoint = \"192.0.2.9:4754\"\n")), None);
    }

    #[test]
    fn the_places_are_each_endpoint_with_each_key_once() {
        let current = place("\"192.0.2.1:4754\"", "A");
        assert_eq!(places(&current, &Announcement::default()), std::slice::from_ref(&current));
        let announcement = Announcement { endpoints: vec!["198.51.100.1:4754".into()], next_key: Some("B".into()) };
        let new = "\"198.51.100.1:4754\"";
        let expected = [current.clone(), place(new, "A"), place(&current.endpoint, "B"), place(new, "B")];
        assert_eq!(places(&current, &announcement), expected);
        let same = Announcement { endpoints: vec!["192.0.2.1:4754".into()], next_key: Some("A".into()) };
        assert_eq!(places(&current, &same), [current]);
    }
}
