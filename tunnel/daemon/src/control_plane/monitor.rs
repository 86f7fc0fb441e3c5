//! Watches the tunnel: reports the data plane's events as they happen, and examines the host each second to find out
//! why paths carry no data.

use super::diagnosis::{Devices, Probe, Subject, by_translation, local_cause, return_route, silence};
use super::events::{EventLog, unix_ms};
use super::handle::DataPlaneHandle;
use super::lost_uplinks::LostPath;
use super::peer_states::PeerStates;
use super::quality::{Quality, QualityWatch};
use super::resolver::Resolver;
use super::routes::Routes;
use super::server::request_status;
use crate::data_plane::{EventReceiver, LinkEvent, TunnelEvent};
use crate::event::{Cause, CauseKind, Event, EventKind, EventLevel};
use crate::status::{Notice, PathState, PathStatus, PeerStatus, QuotaStatus, TunnelStatus};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interval of reading the status.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time for which a path may be silent before that is reported as a cause: a handshake takes one RTT, its repetition 5
/// s.
pub(super) const SILENCE: Duration = Duration::from_secs(6);
/// The intervals of probes to a peer that does not answer grow from the first to the last.
const PROBE_INTERVALS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(64)];
/// Events in the status.
const STATUS_EVENTS: usize = 8;

/// A path: the peer's public key (empty in `mpt` mode) and the path's name.
pub(super) type PathKey = (String, String);

/// The knowledge about a tunnel in addition to the data plane's own numbers.
#[derive(Debug, Default)]
pub struct Observer {
    /// The events.
    pub events: EventLog,
    causes: Mutex<BTreeMap<PathKey, Cause>>,
    lost: Mutex<Vec<LostPath>>,
    notices: Mutex<Vec<Notice>>,
    /// Quotas by the path's name.
    quotas: Mutex<BTreeMap<String, QuotaStatus>>,
    /// How well the paths work that answer.
    qualities: Mutex<BTreeMap<PathKey, Quality>>,
    /// The conditions of the paths, and of the peers with an empty name of a path, and since when they hold, milliseconds
    /// since the Unix epoch.
    conditions: Mutex<BTreeMap<PathKey, (String, u64)>>,
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
        drop(causes);
        self.add_qualities(&mut status);
        self.add_conditions(&mut status);
        (status.unix_ms, status.events) = (unix_ms(), self.events.latest(STATUS_EVENTS));
        status
    }

    /// Adds how well the paths work.
    fn add_qualities(&self, status: &mut TunnelStatus) {
        let qualities = lock(&self.qualities);
        for peer in &mut status.peers {
            let key = peer.public_key.clone().unwrap_or_default();
            for path in &mut peer.paths {
                let Some(quality) = qualities.get(&(key.clone(), path.name.clone())) else { continue };
                if path.state == PathState::Up {
                    path.capacity_bps = quality.capacity_bps;
                    path.cause.clone_from(&quality.cause);
                }
            }
        }
    }

    /// Adds the conditions of paths and peers, and since when they hold.
    fn add_conditions(&self, status: &mut TunnelStatus) {
        let conditions = lock(&self.conditions);
        let since = |key: &PathKey, condition: &str| {
            conditions.get(key).filter(|(before, _)| before == condition).map(|(_, since)| *since)
        };
        for peer in &mut status.peers {
            let key = peer.public_key.clone().unwrap_or_default();
            for path in &mut peer.paths {
                path.judge();
                path.since_unix_ms = since(&(key.clone(), path.name.clone()), &path.condition.to_string());
            }
            peer.judge();
            peer.since_unix_ms = since(&(key, String::new()), &peer.condition.to_string());
        }
    }

    /// Notes the conditions of a status that [`annotate`](Self::annotate) has returned.
    fn note_conditions(&self, status: &TunnelStatus) {
        let mut before = lock(&self.conditions);
        let paths =
            status.paths().map(|(peer, path)| (path_key(peer.public_key.as_deref(), path), path.condition.to_string()));
        let peers = status
            .peers
            .iter()
            .map(|peer| ((peer.public_key.clone().unwrap_or_default(), String::new()), peer.condition.to_string()));
        let now = paths.chain(peers).map(|(key, condition)| {
            let since =
                before.get(&key).filter(|(old, _)| *old == condition).map_or(status.unix_ms, |(_, since)| *since);
            (key, (condition, since))
        });
        *before = now.collect();
    }

    /// Adds the used quotas of the paths.
    fn add_quotas(&self, status: &mut TunnelStatus) {
        let quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        for path in status.peers.iter_mut().flat_map(|peer| &mut peer.paths).filter(|path| !path.opened_by_peer) {
            path.quota = quotas.get(&path.name).copied().or(path.quota);
        }
    }

    /// Sets the used quotas of the paths.
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

    /// Sets the notices about this host, and reports new ones as events.
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

    /// Why a lost uplink is lost; `None` if it is not.
    fn lost_cause(&self, (key, name): &PathKey) -> Option<Cause> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.iter().find(|(peer, path)| peer == key && path.name == *name)?.1.cause.clone()
    }

    fn set_cause(&self, key: PathKey, cause: Option<Cause>) {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        match cause {
            Some(cause) => causes.insert(key, cause),
            None => causes.remove(&key),
        };
    }
}

/// Poisoned only if this code panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn path_key(peer: Option<&str>, path: &PathStatus) -> PathKey {
    (peer.unwrap_or_default().to_owned(), path.name.clone())
}

/// The state of the monitor.
pub(super) struct Monitor {
    data_plane: Arc<dyn DataPlaneHandle>,
    observer: Arc<Observer>,
    routes: Routes,
    /// The tunnel's own device.
    interface: String,
    /// This end's UDP port, if others know it.
    port: u16,
    states: PeerStates,
    /// Paths that are not up.
    watched: BTreeMap<PathKey, WatchedPath>,
    resolver: Resolver,
    quality: QualityWatch,
}

/// A path that is not up.
struct WatchedPath {
    since: Instant,
    cause: Option<Cause>,
    probe: Option<Probe>,
    next_probe: Instant,
    probe_interval: Duration,
    /// The refusal of the latest probe, if there was one.
    refusal: Option<Cause>,
}

impl Monitor {
    pub(super) fn new(
        data_plane: Arc<dyn DataPlaneHandle>,
        observer: Arc<Observer>,
        routes: Routes,
        interface: String,
        port: u16,
    ) -> Self {
        let (states, watched, resolver, quality) = Default::default();
        Self { data_plane, observer, routes, interface, port, states, watched, resolver, quality }
    }

    /// Watches until the data plane ends, and passes the status of each second on to `record`.
    pub(super) async fn watch(mut self, mut events: EventReceiver, mut record: impl FnMut(&TunnelStatus)) {
        let mut interval = tokio::time::interval(INTERVAL);
        loop {
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(event) => self.on_event(event).await,
                    None => return,
                },
                _ = interval.tick() => {
                    // The control loop ends the tunnel if the data plane does not answer.
                    if let Some(mut status) = request_status(&*self.data_plane).await {
                        self.resolver.update(&status, &self.data_plane, &self.observer);
                        self.observer.add_lost(&mut status);
                        self.update(&status).await;
                        let status = self.observer.annotate(status);
                        self.observer.note_conditions(&status);
                        record(&status);
                    }
                }
            }
        }
    }

    /// Reports an event of the data plane; for a path that is down, with its cause if that is on this host.
    async fn on_event(&mut self, event: TunnelEvent) {
        let observer = Arc::clone(&self.observer);
        for event in self.states.on_event(event, |path| observer.lost_cause(path).is_some()) {
            self.tell(event).await;
        }
    }

    async fn tell(&mut self, mut event: Event) {
        if let (EventKind::PathDown, Some(path)) = (event.kind, &event.path) {
            let key = (event.peer.clone().unwrap_or_default(), path.clone());
            if let Some(cause) = self.cause_of(&key).await {
                event.message = format!("down: {}", cause.text);
                event.remedy = Some(cause.remedy.clone());
                let watched = self.watched.entry(key.clone()).or_insert_with(|| WatchedPath::new(Instant::now()));
                watched.cause = Some(cause.clone());
                self.observer.set_cause(key, Some(cause));
            }
        }
        self.observer.events.push(event);
    }

    /// Why a path went down, if that is on this host.
    async fn cause_of(&self, key: &PathKey) -> Option<Cause> {
        if let Some(cause) = self.observer.lost_cause(key) {
            return Some(cause);
        }
        let subject = Subject::of(self.states.name(key).filter(|path| !path.opened_by_peer)?)?;
        local_cause(&subject, &Devices::read(), &self.routes, &self.interface).await
    }

    /// Finds the causes of paths that do not work, and changes that no event has reported.
    async fn update(&mut self, status: &TunnelStatus) {
        let now = Instant::now();
        for (key, cause) in self.diagnose(status, now).await {
            let is_it = |peer: &&PeerStatus| peer.public_key.as_ref() == Some(&key.0);
            self.observer.events.push(Event {
                remedy: Some(cause.remedy),
                peer_name: status.peers.iter().find(is_it).and_then(|peer| peer.name.clone()),
                peer: Some(key.0).filter(|key| !key.is_empty()),
                path: Some(key.1),
                ..Event::new(EventLevel::Warn, EventKind::PathCause, cause.text)
            });
        }
        for event in self.states.settle(status, now) {
            self.tell(event).await;
        }
        self.quality.update(status).into_iter().for_each(|event| self.observer.events.push(event));
        *lock(&self.observer.qualities) = self.quality.qualities();
    }

    /// Finds out why configured paths carry no data; returns the causes that have changed.
    async fn diagnose(&mut self, status: &TunnelStatus, now: Instant) -> Vec<(PathKey, Cause)> {
        // A path that was reported as working is reported as down first.
        let is_watched = |key: &PathKey, path: &PathStatus| path.state != PathState::Up && !self.states.is_up(key);
        let subjects: BTreeMap<PathKey, (&PeerStatus, &PathStatus)> = status
            .paths()
            .map(|(peer, path)| (path_key(peer.public_key.as_deref(), path), (peer, path)))
            .filter(|(key, (_, path))| is_watched(key, path))
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
            let cause = match (&path.cause, self.states.name(&key).and_then(Subject::of)) {
                (Some(cause), _) => Some(cause.clone()),
                (None, None) => None,
                (None, Some(subject)) if path.opened_by_peer => {
                    // Peers may leave many paths behind.
                    if watched.is_probe_due(now) {
                        watched.refusal = return_route(&subject, self.port, &devices, &self.routes).await;
                    }
                    watched.refusal.clone()
                }
                (None, Some(subject)) => {
                    let local = local_cause(&subject, &devices, &self.routes, &self.interface).await;
                    let mut remote = || watched.remote_cause(&subject, peer, path, now);
                    local.or_else(|| Some(by_translation(&subject, remote()?)))
                }
            };
            if cause != watched.cause {
                let is_missing = |cause: &Cause| matches!(cause.kind, CauseKind::NoRoute | CauseKind::NoAddress);
                if let (true, Some(device)) = (watched.cause.as_ref().is_some_and(is_missing), &path.interface) {
                    // Probes the path now instead of at the end of its interval of at most a minute.
                    self.data_plane.on_link_event(device, LinkEvent::Up);
                }
                watched.cause.clone_from(&cause);
                self.observer.set_cause(key.clone(), cause.clone());
                changed.extend(cause.map(|cause| (key, cause)));
            }
        }
        changed
    }
}

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

    /// The cause of missing answers of the peer, as far as this host can determine it.
    fn remote_cause(&mut self, subject: &Subject, peer: &PeerStatus, path: &PathStatus, now: Instant) -> Option<Cause> {
        if let Some(refusal) = self.probe.as_ref().and_then(Probe::refusal) {
            self.refusal = Some(refusal);
            self.probe = None;
        }
        if self.is_probe_due(now) {
            // A probe without an error shows that it was not refused.
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
