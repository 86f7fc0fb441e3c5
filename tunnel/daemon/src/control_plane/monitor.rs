//! Watches the tunnel's status: turns its changes into events, and finds out why paths carry no data.

use super::changes::changes;
use super::diagnosis::{Devices, Probe, Subject, by_translation, local_cause, return_route, silence};
use super::events::{EventLog, unix_ms};
use super::handle::DataPlaneHandle;
use super::lost_uplinks::LostPath;
use super::resolver::Resolver;
use super::routes::Routes;
use super::server::request_status;
use crate::data_plane::LinkEvent;
use crate::event::{Cause, CauseKind, Event, EventKind, EventLevel};
use crate::status::{Notice, PathState, PathStatus, PeerStatus, QuotaStatus, TunnelStatus};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval of reading the status.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time for which a path may be silent before that is a cause: a handshake takes one round trip, its repetition 5 s.
const SILENCE: Duration = Duration::from_secs(6);
/// The intervals of probes to a peer that does not answer grow from the first to the last.
const PROBE_INTERVALS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(64)];
/// A reason for which handshakes are refused is told again after this time.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);
/// Events in the status.
const STATUS_EVENTS: usize = 8;

/// A path: the peer's public key (empty in `mpt` mode) and the path's name.
type PathKey = (String, String);

/// What is known of a tunnel beside the data plane's own numbers.
#[derive(Debug, Default)]
pub struct Observer {
    /// The events.
    pub events: EventLog,
    causes: Mutex<BTreeMap<PathKey, Cause>>,
    lost: Mutex<Vec<LostPath>>,
    notices: Mutex<Vec<Notice>>,
    /// By the path's name.
    quotas: Mutex<BTreeMap<String, QuotaStatus>>,
}

impl Observer {
    /// Adds the causes, the latest events and the time to a status of the data plane.
    #[must_use]
    pub fn annotate(&self, mut status: TunnelStatus) -> TunnelStatus {
        self.add_lost(&mut status);
        self.add_quotas(&mut status);
        status.notices.clone_from(&self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        let causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        for peer in &mut status.peers {
            for path in peer.paths.iter_mut().filter(|path| path.state != PathState::Up && path.cause.is_none()) {
                path.cause = causes.get(&path_key(peer.public_key.as_deref(), path)).cloned();
            }
        }
        (status.unix_ms, status.events) = (unix_ms(), self.events.latest(STATUS_EVENTS));
        status
    }

    /// Adds how much of their quotas paths have used.
    fn add_quotas(&self, status: &mut TunnelStatus) {
        let quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        for path in status.peers.iter_mut().flat_map(|peer| &mut peer.paths).filter(|path| !path.opened_by_peer) {
            path.quota = quotas.get(&path.name).copied().or(path.quota);
        }
    }

    /// Sets how much of their quotas paths have used.
    pub(super) fn set_quotas(&self, quotas: BTreeMap<String, QuotaStatus>) {
        *self.quotas.lock().unwrap_or_else(PoisonError::into_inner) = quotas;
    }

    /// Adds the uplinks that are lost, as paths that are down.
    fn add_lost(&self, status: &mut TunnelStatus) {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, path) in &*lost {
            let peer = status.peers.iter_mut().find(|peer| peer.public_key.as_ref() == Some(key));
            // The uplink may be a path again.
            peer.filter(|peer| peer.paths.iter().all(|other| other.name != path.name))
                .into_iter()
                .for_each(|peer| peer.paths.push(path.clone()));
        }
    }

    /// Sets what there is to say of this host, and tells of what is new.
    pub(super) fn set_notices(&self, notices: Vec<Notice>) {
        let before =
            std::mem::replace(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner), notices.clone());
        for Notice { level, text, remedy } in notices.into_iter().filter(|notice| !before.contains(notice)) {
            let remedy = Some(remedy);
            self.events.push(Event { remedy, ..Event::new(level, EventKind::Notice, text) });
        }
    }

    /// Sets the uplinks that are lost.
    pub(super) fn set_lost(&self, paths: Vec<LostPath>) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }

    /// Adds to the uplinks that are lost, before their paths are removed.
    pub(super) fn extend_lost(&self, paths: Vec<LostPath>) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.retain(|(key, path)| !paths.iter().any(|(other, new)| other == key && new.name == path.name));
        lost.extend(paths);
    }

    fn set_cause(&self, key: PathKey, cause: Option<Cause>) {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        match cause {
            Some(cause) => causes.insert(key, cause),
            None => causes.remove(&key),
        };
    }
}

fn path_key(peer: Option<&str>, path: &PathStatus) -> PathKey {
    (peer.unwrap_or_default().to_owned(), path.name.clone())
}

/// Watches until the data plane ends, and passes each status on to `record`. `port` is this end's UDP port.
pub(super) async fn watch(
    data_plane: Arc<dyn DataPlaneHandle>,
    observer: Arc<Observer>,
    routes: Routes,
    port: u16,
    mut record: impl FnMut(&TunnelStatus),
) {
    let mut monitor = Monitor {
        data_plane: Arc::clone(&data_plane),
        observer,
        routes,
        port,
        previous: None,
        watched: BTreeMap::new(),
        refusals: BTreeMap::new(),
        resolver: Resolver::default(),
    };
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        interval.tick().await;
        // The control loop ends the tunnel if the data plane does not answer.
        if let Some(mut status) = request_status(&*data_plane).await {
            monitor.resolver.update(&status, &data_plane, &monitor.observer);
            monitor.observer.add_lost(&mut status);
            record(&status);
            monitor.update(status).await;
        }
    }
}

struct Monitor {
    data_plane: Arc<dyn DataPlaneHandle>,
    observer: Arc<Observer>,
    routes: Routes,
    /// This end's UDP port, if others know it.
    port: u16,
    previous: Option<TunnelStatus>,
    /// Paths that are not up.
    watched: BTreeMap<PathKey, WatchedPath>,
    /// When the refusal of handshakes was told of last, by reason.
    refusals: BTreeMap<String, Instant>,
    resolver: Resolver,
}

/// A path that is not up.
struct WatchedPath {
    since: Instant,
    cause: Option<Cause>,
    probe: Option<Probe>,
    next_probe: Instant,
    probe_interval: Duration,
    /// What the latest probe came back with.
    refusal: Option<Cause>,
}

impl Monitor {
    /// Compares a status with the previous one.
    async fn update(&mut self, status: TunnelStatus) {
        let now = Instant::now();
        let changed_causes = self.diagnose(&status, now).await;
        let mut events = changes(self.previous.as_ref(), &status);
        for event in &mut events {
            if event.kind != EventKind::PathDown {
                continue;
            }
            let key = (event.peer.clone().unwrap_or_default(), event.path.clone().unwrap_or_default());
            if let Some(cause) = self.watched.get(&key).and_then(|watched| watched.cause.clone()) {
                event.message = format!("down: {}", cause.text);
                event.remedy = Some(cause.remedy);
            }
        }
        for (key, cause) in changed_causes {
            let is_told = |event: &Event| {
                event.kind == EventKind::PathDown
                    && (event.peer.as_deref().unwrap_or_default(), event.path.as_deref())
                        == (key.0.as_str(), Some(key.1.as_str()))
            };
            if !events.iter().any(is_told) {
                events.push(Event {
                    remedy: Some(cause.remedy),
                    peer_name: status
                        .peers
                        .iter()
                        .find(|peer| peer.public_key.as_ref() == Some(&key.0))
                        .and_then(|peer| peer.name.clone()),
                    peer: Some(key.0).filter(|key| !key.is_empty()),
                    path: Some(key.1),
                    ..Event::new(EventLevel::Warn, EventKind::PathCause, cause.text)
                });
            }
        }
        events.extend(self.refused_handshakes(&status, now));
        events.into_iter().for_each(|event| self.observer.events.push(event));
        self.previous = Some(status);
    }

    /// Finds out why configured paths carry no data; returns the causes that have changed.
    async fn diagnose(&mut self, status: &TunnelStatus, now: Instant) -> Vec<(PathKey, Cause)> {
        let is_watched = |path: &PathStatus| path.state != PathState::Up;
        let subjects: BTreeMap<PathKey, (&PeerStatus, &PathStatus)> = status
            .paths()
            .filter(|(_, path)| is_watched(path))
            .map(|(peer, path)| (path_key(peer.public_key.as_deref(), path), (peer, path)))
            .collect();
        let ended: Vec<_> = self.watched.keys().filter(|key| !subjects.contains_key(*key)).cloned().collect();
        for key in ended {
            self.watched.remove(&key);
            self.observer.set_cause(key, None);
        }
        let devices = if subjects.is_empty() { Devices::default() } else { Devices::read() };
        let mut changed = Vec::new();
        for (key, (peer, path)) in subjects {
            let watched = self.watched.entry(key.clone()).or_insert_with(|| WatchedPath::new(now));
            let cause = match (&path.cause, Subject::of(path)) {
                (Some(cause), _) => Some(cause.clone()),
                (None, _) if path.opened_by_peer => {
                    // Peers may leave many paths behind.
                    if watched.is_probe_due(now) {
                        watched.refusal = return_route(path, self.port, &devices, &self.routes).await;
                    }
                    watched.refusal.clone()
                }
                (None, None) => None,
                (None, Some(subject)) => {
                    let local = local_cause(&subject, &devices, &self.routes, &status.interface.name).await;
                    let mut remote = || watched.remote_cause(&subject, peer, path, now);
                    local.or_else(|| Some(by_translation(&subject, remote()?)))
                }
            };
            if cause != watched.cause {
                let is_missing = |cause: &Cause| matches!(cause.kind, CauseKind::NoRoute | CauseKind::NoAddress);
                if let (true, Some(device)) = (watched.cause.as_ref().is_some_and(is_missing), &path.interface) {
                    // The path is probed now, and not when its interval of a minute at most is over.
                    self.data_plane.on_link_event(device, LinkEvent::Up);
                }
                watched.cause.clone_from(&cause);
                self.observer.set_cause(key.clone(), cause.clone());
                changed.extend(cause.map(|cause| (key, cause)));
            }
        }
        changed
    }

    /// Handshakes that were refused since the previous status.
    fn refused_handshakes(&mut self, status: &TunnelStatus, now: Instant) -> Vec<Event> {
        let Some(previous) = &self.previous else { return Vec::new() };
        let mut events = Vec::new();
        for (reason, text, remedy) in REFUSALS {
            let count = |status: &TunnelStatus| {
                status.drops.iter().find(|drop| drop.reason == *reason).map_or(0, |drop| drop.packets)
            };
            let is_quiet = self.refusals.get(*reason).is_none_or(|told| now - *told >= REFUSAL_INTERVAL);
            // The copies that come by other paths of an initiation that is answered look like replays, too.
            let is_copy = *reason == REPLAYED
                && status.peers.iter().any(|peer| peer.handshake_age_ms.is_some_and(|age_ms| age_ms < COPY_TIME_MS));
            if count(status) > count(previous) && is_quiet && !is_copy {
                self.refusals.insert((*reason).to_owned(), now);
                events.push(Event {
                    remedy: Some((*remedy).to_owned()),
                    ..Event::new(EventLevel::Warn, EventKind::HandshakeRefused, *text)
                });
            }
        }
        events
    }
}

/// Handshakes that are not later than the latest one of the same peer.
const REPLAYED: &str = "replayed-initiation";
/// Copies of an initiation arrive within this time of the first one, milliseconds.
const COPY_TIME_MS: f64 = 10_000.0;

/// Reasons of drops that somebody's configuration mends, with what they mean and the remedy.
const REFUSALS: &[(&str, &str, &str)] = &[
    (
        "unknown-peer",
        "a handshake came with a public key that no [[peer]] has",
        "compare `public-key` here with `ropewalk pubkey < KEYFILE` on the other end",
    ),
    (
        "invalid-mac1",
        "a handshake came from an end that has another public key for this one",
        "compare `public-key` on the other end with `public key` in `ropewalk show` here",
    ),
    (
        REPLAYED,
        "a handshake came whose time is not later than that of the peer's latest one",
        "set the clock of the other end, which was set back: `timedatectl set-ntp true` there; or restart this end, which \
         forgets the time",
    ),
    (
        "no-common-cipher",
        "a handshake came without a cipher that this end accepts",
        "use the same version on both ends",
    ),
];

impl WatchedPath {
    fn new(now: Instant) -> Self {
        let [probe_interval, _] = PROBE_INTERVALS;
        Self { since: now, cause: None, probe: None, next_probe: now + probe_interval, probe_interval, refusal: None }
    }

    /// Whether a probe is due; the next one is later.
    fn is_probe_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next_probe;
        if is_due {
            self.probe_interval = (self.probe_interval * 2).min(PROBE_INTERVALS[1]);
            self.next_probe = now + self.probe_interval;
        }
        is_due
    }

    /// What keeps the peer's answers away, as far as this host can tell.
    fn remote_cause(&mut self, subject: &Subject, peer: &PeerStatus, path: &PathStatus, now: Instant) -> Option<Cause> {
        if let Some(refusal) = self.probe.as_ref().and_then(Probe::refusal) {
            self.refusal = Some(refusal);
            self.probe = None;
        }
        if self.is_probe_due(now) {
            // A probe that nothing came back from tells that it was not refused.
            if self.probe.take().is_some() {
                self.refusal = None;
            }
            match Probe::send(subject) {
                Ok(probe) => self.probe = Some(probe),
                Err(cause) => self.refusal = Some(cause),
            }
        }
        self.refusal.clone().or_else(|| {
            let answers_elsewhere = peer.paths.iter().any(|other| other.state == PathState::Up);
            let has_answered = path.state == PathState::Down || peer.handshake_age_ms.is_some();
            (now - self.since >= SILENCE).then(|| silence(subject, answers_elsewhere, has_answered))
        })
    }
}
