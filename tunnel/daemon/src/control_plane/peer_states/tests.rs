use super::*;
use seal::PrivateKey;
use std::time::Duration;

/// A peer to which things happen.
#[derive(Default)]
struct World {
    states: PeerStates,
    lost: Vec<String>,
}

fn key() -> seal::PublicKey {
    PrivateKey::from_bytes([1; 32]).public_key()
}

fn name(path: &str) -> PathName {
    let opened_by_peer = path.starts_with("path-");
    PathName { name: path.to_owned(), opened_by_peer, remote: "192.0.2.1:4754".parse().ok(), ..PathName::default() }
}

impl World {
    /// The events of a change at a time: kind, path and time.
    fn at(&mut self, unix_ms: u64, change: PeerChange) -> Vec<(EventKind, String, u64)> {
        let peer = PeerName { public_key: Some(key()), name: Some("office".into()) };
        let event = TunnelEvent { unix_ms, change: Change::Peer(peer, change) };
        let events = self.states.on_event(event, |(_, path)| self.lost.contains(path));
        for event in &events {
            assert_eq!((&event.peer, event.peer_name.as_deref()), (&Some(key().to_string()), Some("office")));
        }
        events.into_iter().map(|event| (event.kind, event.path.unwrap_or_default(), event.unix_ms)).collect()
    }

    fn kinds(&mut self, change: PeerChange) -> Vec<EventKind> {
        self.at(1, change).into_iter().map(|(kind, ..)| kind).collect()
    }

    fn path(&mut self, path: &str, change: PathChange) -> Vec<EventKind> {
        self.kinds(PeerChange::Path(name(path), change))
    }
}

const UP: PathChange = PathChange::Up(None);

fn established(restarted: bool) -> PeerChange {
    PeerChange::Established { restarted, cipher: None }
}

#[test]
fn a_peer_comes_with_its_first_path_and_goes_with_its_last_one() {
    use EventKind::{Handshake, PathAdded, PathDown, PathRemoved, PathUp, PeerLost, PeerUp};
    let mut world = World::default();
    assert_eq!(world.kinds(established(true)), [Handshake]);
    assert_eq!(world.path("a", UP), [PathUp, PeerUp]);
    assert_eq!(world.path("b", UP), [PathUp]);
    assert_eq!(world.path("path-3", PathChange::Down), [], "it was never there");
    assert_eq!(world.path("path-3", PathChange::Added), [PathAdded]);
    assert_eq!(world.path("path-3", PathChange::Removed), [PathRemoved]);
    assert_eq!(world.path("a", PathChange::Removed), [PathRemoved]);
    assert_eq!(world.path("b", PathChange::Down), [PathDown, PeerLost]);
    assert_eq!(world.path("b", PathChange::Down), []);
    assert_eq!(world.path("b", UP), [PathUp, PeerUp]);
    assert_eq!(world.path("b", PathChange::Moved(None)), [EventKind::PathMoved]);
    assert_eq!(world.kinds(PeerChange::Closed), [PeerLost]);
}

#[test]
fn two_flaps_within_a_second_are_four_events_with_their_own_times() {
    let mut world = World::default();
    world.path("a", UP);
    world.path("b", UP);
    let flap = |time, change| (time, PeerChange::Path(name("b"), change));
    let changes = [flap(5100, PathChange::Down), flap(5300, UP), flap(5500, PathChange::Down), flap(5900, UP)];
    let told: Vec<_> = changes.into_iter().flat_map(|(time, change)| world.at(time, change)).collect();
    let event = |kind, time| (kind, "b".to_owned(), time);
    let (down, up) = (EventKind::PathDown, EventKind::PathUp);
    assert_eq!(told, [event(down, 5100), event(up, 5300), event(down, 5500), event(up, 5900)]);
}

#[test]
fn a_handshake_is_one_event_and_its_renewal_none() {
    let mut world = World::default();
    assert_eq!(world.kinds(established(true)), [EventKind::Handshake]);
    // Both ends have initiated.
    assert_eq!(world.kinds(established(false)), []);
    world.path("a", UP);
    assert_eq!(world.kinds(established(false)), [], "after two minutes");
    world.path("a", PathChange::Down);
    assert_eq!(world.kinds(established(false)), [EventKind::Handshake], "the session was lost");
    assert_eq!(world.kinds(established(false)), []);
}

#[test]
fn a_peer_that_restarts_is_not_lost_unless_its_paths_stay_away() {
    let mut world = World::default();
    world.kinds(established(true));
    world.path("a", UP);
    world.path("b", UP);
    assert_eq!(world.kinds(established(true)), [EventKind::Handshake]);
    assert_eq!(world.path("a", UP), [], "it has worked all the time, as far as anybody saw");
    let path = |name: &str, state| PathStatus { name: name.into(), state, ..PathStatus::default() };
    let paths = vec![path("a", PathState::Up), path("b", PathState::Validating)];
    let peer = crate::status::PeerStatus { public_key: Some(key().to_string()), paths, ..Default::default() };
    let status = TunnelStatus { peers: vec![peer], ..TunnelStatus::default() };
    let start = Instant::now();
    let mut settle = |after| world.states.settle(&status, start + after).into_iter().map(|event| event.kind).collect();
    let kinds: [Vec<EventKind>; 3] = [Duration::ZERO, SILENCE, 2 * SILENCE].map(&mut settle);
    assert_eq!(kinds, [vec![], vec![EventKind::PathDown], vec![]]);
}

#[test]
fn a_lost_uplink_is_a_path_that_is_down_and_comes_back() {
    let mut world = World::default();
    world.path("a", UP);
    world.path("b", UP);
    world.lost.push("b".into());
    assert_eq!(world.path("b", PathChange::Removed), [EventKind::PathDown]);
    world.lost.clear();
    assert_eq!(world.path("b", PathChange::Added), []);
    assert_eq!(world.path("b", UP), [EventKind::PathUp]);
}

#[test]
fn a_failed_policy_a_shared_key_and_a_refusal_are_events_with_what_mends_them() {
    let mut world = World::default();
    assert_eq!(world.kinds(PeerChange::ControllerFailed("nan".into())), [EventKind::ControllerFailed]);
    let shared = [1, 200_000, 400_000, 700_000].map(|time| world.at(time, PeerChange::KeyShared).len());
    assert_eq!(shared, [1, 0, 0, 1], "once, until it has been quiet for five minutes");
    let change = Change::Refused(Refusal::UnknownPeer);
    let events = world.states.on_event(TunnelEvent { unix_ms: 7, change }, |_| false);
    assert_eq!((events[0].kind, events[0].unix_ms), (EventKind::HandshakeRefused, 7));
    assert!(events[0].remedy.as_deref().is_some_and(|remedy| remedy.contains("ropewalk pubkey")));
}
