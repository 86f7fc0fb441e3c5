//! Looks up addresses of endpoints again: for names that had none, and the next address for a silent path.

use super::handle::{DataPlaneHandle, SilentPath};
use super::monitor::Observer;
use crate::event::{CauseKind, Event, EventKind, EventLevel};
use crate::status::{PathState, PathStatus, PeerStatus, TunnelStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first and the longest wait while a name has no address; each wait is twice the previous one.
const UNRESOLVED_WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// The same for a silent path: the next address may answer, or the name server may return another one. The longest wait
/// is short, because the only working address may be the last one to be tried.
const SILENT_WAITS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(20)];

/// The times at which addresses are looked up again.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    /// `None` while every name has an address.
    unresolved: Option<Attempt>,
    silent: BTreeMap<SilentPath, Attempt>,
}

/// The time of the next attempt, and the wait that led to it.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    at: Instant,
    wait: Duration,
}

impl Attempt {
    fn first(now: Instant, [first, _]: [Duration; 2]) -> Self {
        Self { at: now + first, wait: first }
    }

    /// Whether the attempt is due; if so, the next one is scheduled.
    fn is_due(&mut self, now: Instant, [_, longest]: [Duration; 2]) -> bool {
        let is_due = now >= self.at;
        if is_due {
            self.wait = (self.wait * 2).min(longest);
            self.at = now + self.wait;
        }
        is_due
    }
}

impl Resolver {
    /// Starts an attempt if one is due. It runs on a separate thread and reports its result as an event.
    pub(super) fn update(
        &mut self,
        status: &TunnelStatus,
        data_plane: &Arc<dyn DataPlaneHandle>,
        observer: &Arc<Observer>,
    ) {
        let now = Instant::now();
        let (silent, is_unresolved) = self.due(status, now);
        if silent.is_empty() && !is_unresolved {
            return;
        }
        let observer = Arc::clone(observer);
        data_plane.resolve(
            silent,
            Box::new(move |changes| {
                for change in changes {
                    observer.events.push(Event::new(EventLevel::Info, EventKind::Endpoint, change));
                }
            }),
        );
    }

    /// The silent paths whose next address is due, and whether an attempt for names without one is.
    fn due(&mut self, status: &TunnelStatus, now: Instant) -> (BTreeSet<SilentPath>, bool) {
        let is_unresolved = |path: &PathStatus| cause(path) == Some(CauseKind::Unresolved);
        self.unresolved = status
            .paths()
            .any(|(_, path)| is_unresolved(path))
            .then(|| self.unresolved.unwrap_or_else(|| Attempt::first(now, UNRESOLVED_WAITS)));
        let is_unresolved = self.unresolved.as_mut().is_some_and(|attempt| attempt.is_due(now, UNRESOLVED_WAITS));
        let key =
            |peer: &PeerStatus, path: &PathStatus| (peer.public_key.clone().unwrap_or_default(), path.name.clone());
        let silent: BTreeSet<SilentPath> =
            status.paths().filter(|(_, path)| is_silent(path)).map(|(peer, path)| key(peer, path)).collect();
        self.silent.retain(|path, _| silent.contains(path));
        let is_due = |path: &SilentPath| {
            let attempt = self.silent.entry(path.clone()).or_insert_with(|| Attempt::first(now, SILENT_WAITS));
            attempt.is_due(now, SILENT_WAITS)
        };
        (silent.into_iter().filter(is_due).collect(), is_unresolved)
    }
}

fn cause(path: &PathStatus) -> Option<CauseKind> {
    path.cause.as_ref().map(|cause| cause.kind)
}

/// Whether the peer does not answer at the path's address. While the device is down no address would help.
fn is_silent(path: &PathStatus) -> bool {
    let has_device = !matches!(
        cause(path),
        Some(CauseKind::NoDevice | CauseKind::LinkDown | CauseKind::NoCarrier | CauseKind::Unresolved)
    );
    path.state != PathState::Up && !path.opened_by_peer && has_device
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Cause;

    #[test]
    fn a_silent_path_is_asked_for_after_five_seconds_and_then_less_often_until_it_works() {
        let path = |state, kind: Option<CauseKind>| PathStatus {
            name: "a".into(),
            state,
            cause: kind.map(|kind| Cause { kind, ..Cause::default() }),
            ..PathStatus::default()
        };
        let status = |path| TunnelStatus {
            peers: vec![PeerStatus { public_key: Some("key".into()), paths: vec![path], ..PeerStatus::default() }],
            ..TunnelStatus::default()
        };
        let mut resolver = Resolver::default();
        let start = Instant::now();
        let mut asked = |seconds: u64, state, kind| {
            let (silent, is_unresolved) =
                resolver.due(&status(path(state, kind)), start + Duration::from_secs(seconds));
            assert!(!is_unresolved);
            !silent.is_empty()
        };
        let times: Vec<u64> = (0..60).filter(|s| asked(*s, PathState::Validating, None)).collect();
        assert_eq!(times, [5, 15, 35, 55]);
        assert!(!asked(60, PathState::Up, None));
        assert!(!asked(61, PathState::Down, Some(CauseKind::SilentPeer)));
        assert!(!asked(70, PathState::Down, Some(CauseKind::NoCarrier)), "no address would help");
        assert!(!asked(71, PathState::Down, Some(CauseKind::SilentPath)), "the wait begins when the device is there");
        assert!(asked(76, PathState::Down, Some(CauseKind::SilentPath)));
    }
}
