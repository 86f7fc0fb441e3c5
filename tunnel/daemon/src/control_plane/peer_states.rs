//! The state of the peers and their paths, from the data plane's events. This file turns those typed events into the
//! events that users see.

use super::monitor::{PathKey, SILENCE};
use crate::data_plane::{Change, PathChange, PathName, PeerChange, PeerName, Refusal, TunnelEvent};
use crate::event::{Event, EventKind, EventLevel};
use crate::status::{PathState, PathStatus, TAKEOVER, TunnelStatus, shared_key};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;
use tracing::debug;
use units::Span;

/// The peers, by their public key.
#[derive(Debug, Default)]
pub(super) struct PeerStates(BTreeMap<String, PeerState>);

#[derive(Debug, Default)]
struct PeerState {
    name: Option<String>,
    /// The paths by name.
    paths: BTreeMap<String, TrackedPath>,
    /// Whether the peer was reported as working.
    is_reachable: bool,
    /// Whether the handshake was reported: the session is renewed every two minutes.
    has_session: bool,
    /// When two hosts last used its key, milliseconds since the Unix epoch.
    latest_takeover: Option<u64>,
}

/// A path that was reported.
#[derive(Debug)]
struct TrackedPath {
    name: PathName,
    phase: Phase,
    /// Since when the status has contradicted the reported state.
    doubted_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The path has not worked yet.
    Validating,
    Up,
    /// The path worked before its peer restarted, or before it got another endpoint.
    Revalidating,
    Down,
}

impl PeerStates {
    /// The events for users that an event of the data plane causes. `is_lost` returns whether a removed path stays in
    /// view because its uplink is lost.
    pub(super) fn on_event(&mut self, event: TunnelEvent, is_lost: impl Fn(&PathKey) -> bool) -> Vec<Event> {
        let TunnelEvent { unix_ms, change } = event;
        let mut events = match change {
            Change::Refused(refusal) => vec![refused(refusal)],
            Change::Peer(PeerName { public_key, .. }, PeerChange::Removed) => {
                self.0.remove(&public_key.map(|key| key.to_string()).unwrap_or_default());
                Vec::new()
            }
            Change::Peer(PeerName { public_key, name }, change) => {
                let key = public_key.map(|key| key.to_string()).unwrap_or_default();
                let peer = self.0.entry(key.clone()).or_default();
                peer.name = name;
                let events = peer.on_change(&key, unix_ms, change, |path| is_lost(&(key.clone(), path.to_owned())));
                peer.named(&key, events)
            }
        };
        events.iter_mut().for_each(|event| event.unix_ms = unix_ms);
        events
    }

    /// Reports a state that the status has shown for long enough, although no event did: a path did not come back after
    /// its peer had restarted, or its peer caused more events than are reported.
    pub(super) fn settle(&mut self, status: &TunnelStatus, now: Instant) -> Vec<Event> {
        let mut events = Vec::new();
        for (key, peer) in &mut self.0 {
            let is_it = |public_key: Option<&String>| public_key.map_or("", String::as_str) == key;
            let Some(status) = status.peers.iter().find(|status| is_it(status.public_key.as_ref())) else { continue };
            let told = peer.settle(&status.paths, now);
            events.extend(peer.named(key, told));
        }
        events
    }

    /// Whether a path was last reported as working.
    pub(super) fn is_up(&self, (peer, path): &PathKey) -> bool {
        self.path(peer, path).is_some_and(|path| path.phase == Phase::Up)
    }

    /// A path that was reported.
    pub(super) fn name(&self, (peer, path): &PathKey) -> Option<&PathName> {
        self.path(peer, path).map(|path| &path.name)
    }

    fn path(&self, peer: &str, path: &str) -> Option<&TrackedPath> {
        self.0.get(peer)?.paths.get(path)
    }
}

impl PeerState {
    fn on_change(&mut self, key: &str, unix_ms: u64, change: PeerChange, is_lost: impl Fn(&str) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        match change {
            PeerChange::Established { restarted, cipher } => {
                let cipher = cipher.map_or("no cipher", |cipher| cipher.name());
                if restarted {
                    self.revalidate();
                }
                if restarted || !std::mem::replace(&mut self.has_session, true) {
                    self.has_session = true;
                    events.push(Event::new(
                        EventLevel::Info,
                        EventKind::Handshake,
                        format!("handshake done, {cipher}"),
                    ));
                } else {
                    debug!(kind = "handshake", peer = key, "session renewed, {cipher}");
                }
            }
            PeerChange::KeyShared => {
                let is_quiet = |latest: u64| unix_ms.saturating_sub(latest) >= TAKEOVER.as_millis() as u64;
                if self.latest_takeover.replace(unix_ms).is_none_or(is_quiet) {
                    let (text, remedy) = shared_key(key, self.name.as_deref());
                    let event = Event::new(EventLevel::Warn, EventKind::SharedKey, text);
                    events.push(Event { remedy: Some(remedy), ..event });
                }
            }
            PeerChange::Closed => events.extend(self.close()),
            PeerChange::Removed => {}
            PeerChange::Active(networks) => {
                let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
                let message = format!("carries the packets of {} now", networks.join(", "));
                events.push(Event::new(EventLevel::Warn, EventKind::ServerMoved, message));
            }
            PeerChange::ControllerFailed(reason) => {
                let message = format!("a policy failed, a classical algorithm takes its place: {reason}");
                events.push(Event::new(EventLevel::Warn, EventKind::ControllerFailed, message));
            }
            PeerChange::Path(path, change) => {
                let is_lost = change == PathChange::Removed && is_lost(&path.name);
                events.extend(self.on_path(path, if is_lost { PathChange::Down } else { change }));
            }
        }
        events.extend(self.reachability());
        events
    }

    /// The event about a change of a path.
    fn on_path(&mut self, path: PathName, change: PathChange) -> Option<Event> {
        let is_known = self.paths.contains_key(&path.name);
        // The path was removed, which is reported.
        if path.opened_by_peer && !is_known && matches!(change, PathChange::Removed | PathChange::Down) {
            return None;
        }
        if change == PathChange::Removed {
            self.paths.remove(&path.name);
            return Some(path_event(&path, EventLevel::Info, EventKind::PathRemoved, "removed".into()));
        }
        let phase = Phase::Validating;
        let new = || TrackedPath { name: path.clone(), phase, doubted_since: None };
        let tracked = self.paths.entry(path.name.clone()).or_insert_with(new);
        let old = tracked.phase;
        tracked.name = path;
        let remote = tracked.name.remote.map_or_else(String::new, |remote| format!(" to {remote}"));
        let (level, kind, message) = match change {
            PathChange::Configured => return None,
            PathChange::Added if is_known => return None,
            PathChange::Added => {
                let by = if tracked.name.opened_by_peer { " by the peer" } else { "" };
                (EventLevel::Info, EventKind::PathAdded, format!("added{by}{remote}"))
            }
            PathChange::Replaced => {
                tracked.revalidate();
                return None;
            }
            PathChange::Up(rtt) => {
                tracked.phase = Phase::Up;
                if matches!(old, Phase::Up | Phase::Revalidating) {
                    return None;
                }
                let rtt = rtt.map(Span::as_millis_f64).map_or_else(String::new, |rtt| format!(", RTT {rtt:.1} ms"));
                (EventLevel::Info, EventKind::PathUp, format!("up{remote}{rtt}"))
            }
            PathChange::Down if old == Phase::Down => return None,
            PathChange::Down => {
                tracked.phase = Phase::Down;
                (EventLevel::Warn, EventKind::PathDown, format!("down{remote}"))
            }
            PathChange::Moved(from) => {
                let from = from.as_ref().map_or_else(|| "an unknown address".to_owned(), SocketAddr::to_string);
                (EventLevel::Info, EventKind::PathMoved, format!("moved from {from}{remote}"))
            }
            PathChange::Removed => return None,
        };
        Some(path_event(&tracked.name, level, kind, message))
    }

    /// The peer has restarted: paths that worked are validated again, which takes one RTT.
    fn revalidate(&mut self) {
        self.paths.values_mut().for_each(TrackedPath::revalidate);
    }

    /// The peer closed the tunnel: the paths that it opened are gone.
    fn close(&mut self) -> Vec<Event> {
        self.has_session = false;
        self.paths.values_mut().for_each(|path| path.phase = Phase::Validating);
        let opened: Vec<_> =
            self.paths.values().filter(|path| path.name.opened_by_peer).map(|path| path.name.clone()).collect();
        opened.into_iter().filter_map(|path| self.on_path(path, PathChange::Removed)).collect()
    }

    fn settle(&mut self, statuses: &[PathStatus], now: Instant) -> Vec<Event> {
        let mut changes = Vec::new();
        for path in self.paths.values_mut() {
            let state = statuses.iter().find(|status| status.name == path.name.name).map(|status| status.state);
            let change = match (path.phase, state) {
                (_, None) => PathChange::Removed,
                (Phase::Up, Some(PathState::Up)) => {
                    path.doubted_since = None;
                    continue;
                }
                (Phase::Up | Phase::Revalidating, Some(PathState::Down | PathState::Validating)) => PathChange::Down,
                (_, Some(PathState::Up)) => PathChange::Up(None),
                (Phase::Validating | Phase::Down, Some(_)) => {
                    path.doubted_since = None;
                    continue;
                }
            };
            if now - *path.doubted_since.get_or_insert(now) >= SILENCE {
                path.doubted_since = None;
                changes.push((path.name.clone(), change));
            }
        }
        let mut events: Vec<_> = changes.into_iter().filter_map(|(path, change)| self.on_path(path, change)).collect();
        events.extend(self.reachability());
        events
    }

    /// The event if the peer has become reachable or unreachable.
    fn reachability(&mut self) -> Option<Event> {
        let is_reachable = self.paths.values().any(|path| matches!(path.phase, Phase::Up | Phase::Revalidating));
        match (std::mem::replace(&mut self.is_reachable, is_reachable), is_reachable) {
            (false, true) => Some(Event::new(EventLevel::Info, EventKind::PeerUp, "reachable")),
            (true, false) => {
                // A handshake is reported again, as the peer may have restarted.
                self.has_session = false;
                Some(Event::new(EventLevel::Error, EventKind::PeerLost, "lost: no path works"))
            }
            _ => None,
        }
    }

    fn named(&self, key: &str, mut events: Vec<Event>) -> Vec<Event> {
        for event in &mut events {
            event.peer = Some(key.to_owned()).filter(|key| !key.is_empty());
            event.peer_name.clone_from(&self.name);
        }
        events
    }
}

impl TrackedPath {
    fn revalidate(&mut self) {
        if self.phase == Phase::Up {
            self.phase = Phase::Revalidating;
        }
    }
}

fn path_event(path: &PathName, level: EventLevel, kind: EventKind, message: String) -> Event {
    Event { path: Some(path.name.clone()), ..Event::new(level, kind, message) }
}

/// The event about a refused handshake: its cause, and the fix.
fn refused(refusal: Refusal) -> Event {
    let (text, remedy) = match refusal {
        Refusal::UnknownPeer => (
            "a handshake arrived with a public key that no [[peer]] has",
            "compare `public-key` here with `ropewalk pubkey < KEYFILE` on the other end",
        ),
        Refusal::OtherPublicKey => (
            "a handshake arrived from an end that has another public key for this one",
            "compare `public-key` on the other end with `public key` in `ropewalk show` here",
        ),
        Refusal::Outdated => (
            "a handshake arrived whose time is not later than that of the peer's latest one",
            "set the clock of the other end, which was set back: `timedatectl set-ntp true` there; or restart this end, which \
             forgets the time",
        ),
        Refusal::NoCommonCipher => {
            ("a handshake arrived without a cipher that this end accepts", "use the same version on both ends")
        }
    };
    Event { remedy: Some(remedy.into()), ..Event::new(EventLevel::Warn, EventKind::HandshakeRefused, text) }
}

#[cfg(test)]
mod tests;
