//! The difference of two statuses of a tunnel, as events.

use crate::event::{Event, EventKind, EventLevel};
use crate::status::{PathState, PathStatus, PeerStatus, TunnelStatus};
use std::collections::BTreeMap;
use tracing::debug;

/// Two ages of a handshake differ by more than this only if it is another handshake, milliseconds.
const SAME_HANDSHAKE_MS: f64 = 500.0;

/// The events that lead from one status to the next. Without an earlier one, peers and paths are as configured, and none
/// of them works.
pub(super) fn changes(previous: Option<&TunnelStatus>, status: &TunnelStatus) -> Vec<Event> {
    let mut events = Vec::new();
    let earlier_peers = previous.iter().flat_map(|previous| &previous.peers);
    let earlier_peers: BTreeMap<_, _> = earlier_peers.map(|peer| (&peer.public_key, peer)).collect();
    for peer in &status.peers {
        let earlier = earlier_peers.get(&peer.public_key).copied();
        let elapsed_ms = previous.map_or(0.0, |previous| (status.uptime_s - previous.uptime_s) * 1e3);
        let mut peer_events = Vec::new();
        handshake(earlier, peer, elapsed_ms, &mut peer_events);
        // Each takes the session from the other again and again.
        if let (None, Some((text, remedy))) = (earlier.and_then(PeerStatus::shared_key), peer.shared_key()) {
            let event = Event::new(EventLevel::Warn, EventKind::SharedKey, text);
            peer_events.push(Event { remedy: Some(remedy), ..event });
        }
        let earlier_paths = earlier.map_or(&[][..], |earlier| &earlier.paths);
        // Paths of the configuration that the daemon started with were not added.
        paths(earlier_paths, &peer.paths, earlier.is_some(), &mut peer_events);
        reachability(earlier_paths, peer, &mut peer_events);
        if (earlier.and_then(|earlier| earlier.active), peer.active) == (Some(false), Some(true)) {
            let message = format!("carries the packets of {} now", peer.allowed_ips.join(", "));
            peer_events.push(Event::new(EventLevel::Warn, EventKind::ServerMoved, message));
        }
        for event in &mut peer_events {
            event.peer.clone_from(&peer.public_key);
            event.peer_name.clone_from(&peer.name);
        }
        events.extend(peer_events);
    }
    events
}

fn handshake(earlier: Option<&PeerStatus>, peer: &PeerStatus, elapsed_ms: f64, events: &mut Vec<Event>) {
    let Some(age_ms) = peer.handshake_age_ms else { return };
    let earlier_age_ms = earlier.and_then(|earlier| earlier.handshake_age_ms);
    let cipher = peer.cipher.as_deref().unwrap_or("no cipher");
    match earlier_age_ms {
        Some(earlier_age_ms) if age_ms + SAME_HANDSHAKE_MS > earlier_age_ms + elapsed_ms => {}
        // A session is renewed every two minutes.
        Some(_) if earlier.is_some_and(is_reachable) => {
            debug!(kind = "handshake", peer = peer.public_key, "session renewed, {cipher}");
        }
        _ => events.push(Event::new(EventLevel::Info, EventKind::Handshake, format!("handshake done, {cipher}"))),
    }
}

fn is_reachable(peer: &PeerStatus) -> bool {
    peer.paths.iter().any(|path| path.state == PathState::Up)
}

fn paths(earlier: &[PathStatus], paths: &[PathStatus], additions: bool, events: &mut Vec<Event>) {
    for gone in earlier.iter().filter(|old| paths.iter().all(|path| path.name != old.name)) {
        events.push(path_event(gone, EventLevel::Info, EventKind::PathRemoved, "removed".into()));
    }
    for path in paths {
        let old = earlier.iter().find(|old| old.name == path.name);
        if old.is_none() && (additions || path.opened_by_peer) {
            let by = if path.opened_by_peer { " by the peer" } else { "" };
            events.push(path_event(path, EventLevel::Info, EventKind::PathAdded, format!("added{by}{}", remote(path))));
        }
        path_changes(old, path, events);
    }
}

fn path_changes(old: Option<&PathStatus>, path: &PathStatus, events: &mut Vec<Event>) {
    let old_state = old.map_or(PathState::Validating, |old| old.state);
    // A path of the same name whose counters began anew is another path.
    let failed = old.is_some_and(|old| path.failures > old.failures);
    if path.state == PathState::Down && (old_state != PathState::Down || failed) {
        events.push(path_event(path, EventLevel::Warn, EventKind::PathDown, format!("down{}", remote(path))));
    } else if failed && path.state == PathState::Up && old_state == PathState::Up {
        let message = "was down for less than a second".into();
        events.push(path_event(path, EventLevel::Warn, EventKind::PathDown, message));
    }
    if path.state == PathState::Up && (old_state != PathState::Up || failed) {
        let rtt = path.probe_rtt_ms.or(path.srtt_ms).map_or_else(String::new, |rtt| format!(", RTT {rtt:.1} ms"));
        let message = format!("up{}{rtt}", remote(path));
        events.push(path_event(path, EventLevel::Info, EventKind::PathUp, message));
    }
    if let Some(old) = old.filter(|old| path.moves > old.moves) {
        let from = old.remote.as_deref().unwrap_or("an unknown address");
        let message = format!("moved from {from}{}", remote(path));
        events.push(path_event(path, EventLevel::Info, EventKind::PathMoved, message));
    }
}

fn remote(path: &PathStatus) -> String {
    path.remote.as_ref().map_or_else(String::new, |remote| format!(" to {remote}"))
}

fn path_event(path: &PathStatus, level: EventLevel, kind: EventKind, message: String) -> Event {
    Event { path: Some(path.name.clone()), ..Event::new(level, kind, message) }
}

/// Whether the peer has come or gone as a whole.
fn reachability(earlier: &[PathStatus], peer: &PeerStatus, events: &mut Vec<Event>) {
    let was_reachable = earlier.iter().any(|path| path.state == PathState::Up);
    match (was_reachable, is_reachable(peer)) {
        (false, true) => events.push(Event::new(EventLevel::Info, EventKind::PeerUp, "reachable")),
        (true, false) => {
            events.push(Event::new(EventLevel::Error, EventKind::PeerLost, "lost: no path works"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uptime_s: f64, handshake_age_ms: Option<f64>, paths: &[(&str, PathState, u64)]) -> TunnelStatus {
        let path = |(name, state, failures): &(&str, PathState, u64)| PathStatus {
            name: (*name).into(),
            state: *state,
            failures: *failures,
            ..PathStatus::default()
        };
        let peer = PeerStatus {
            public_key: Some("key".into()),
            handshake_age_ms,
            paths: paths.iter().map(path).collect(),
            ..PeerStatus::default()
        };
        TunnelStatus { uptime_s, peers: vec![peer], ..TunnelStatus::default() }
    }

    fn kinds(previous: Option<&TunnelStatus>, status: &TunnelStatus) -> Vec<(EventKind, Option<String>)> {
        changes(previous, status).into_iter().map(|event| (event.kind, event.path)).collect()
    }

    #[test]
    fn a_peer_comes_with_its_first_path_and_goes_with_its_last_one() {
        use PathState::{Down, Up, Validating};
        let named = |kind, path: &str| (kind, Some(path.to_owned()));
        let first = status(1.0, None, &[("a", Validating, 0), ("b", Validating, 0)]);
        assert!(kinds(None, &first).is_empty());
        let one = status(2.0, Some(400.0), &[("a", Up, 0), ("b", Validating, 0)]);
        let expected = [(EventKind::Handshake, None), named(EventKind::PathUp, "a"), (EventKind::PeerUp, None)];
        assert_eq!(kinds(Some(&first), &one), expected);
        assert_eq!(kinds(None, &one), expected);
        let both = status(3.0, Some(1400.0), &[("a", Up, 0), ("b", Up, 0)]);
        assert_eq!(kinds(Some(&one), &both), [named(EventKind::PathUp, "b")]);
        let renewed = status(4.0, Some(10.0), &[("a", Up, 0), ("b", Up, 0)]);
        assert!(kinds(Some(&both), &renewed).is_empty());
        let left = status(5.0, Some(1010.0), &[("b", Down, 1)]);
        let expected =
            [named(EventKind::PathRemoved, "a"), named(EventKind::PathDown, "b"), (EventKind::PeerLost, None)];
        assert_eq!(kinds(Some(&renewed), &left), expected);
        let again = status(9.0, Some(10.0), &[("b", Up, 1), ("c", Validating, 0)]);
        let expected = [
            (EventKind::Handshake, None),
            named(EventKind::PathUp, "b"),
            named(EventKind::PathAdded, "c"),
            (EventKind::PeerUp, None),
        ];
        assert_eq!(kinds(Some(&left), &again), expected);
        let mut shared = again.clone();
        shared.peers[0].takeover_age_ms = Some(10.0);
        assert_eq!(kinds(Some(&again), &shared), [(EventKind::SharedKey, None)]);
        assert!(kinds(Some(&shared), &shared).is_empty());
        let flapped = status(10.0, Some(1010.0), &[("b", Up, 2), ("c", Validating, 0)]);
        assert_eq!(kinds(Some(&again), &flapped), [named(EventKind::PathDown, "b"), named(EventKind::PathUp, "b")]);
    }
}
