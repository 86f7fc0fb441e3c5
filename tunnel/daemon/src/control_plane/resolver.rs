//! Asks for the addresses of endpoints again: of names that had none, and of peers that are silent.

use super::handle::DataPlaneHandle;
use super::monitor::Observer;
use crate::event::{CauseKind, Event, EventKind, EventLevel};
use crate::status::{PathState, TunnelStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first and the longest wait for the next attempt; each is twice the one before.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// The wait while every name has an address and a peer is silent: a name server's answer may have changed.
const SILENT_PEER_WAIT: Duration = Duration::from_secs(15);

/// When names are resolved again.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    /// The time of the next attempt, and the wait after it; `None` while nothing is to be resolved.
    next: Option<(Instant, Duration)>,
}

impl Resolver {
    /// Starts an attempt if one is due. It runs on a thread of its own; what it finds is an event.
    pub(super) fn update(
        &mut self,
        status: &TunnelStatus,
        data_plane: &Arc<dyn DataPlaneHandle>,
        observer: &Arc<Observer>,
    ) {
        let is_unresolved = |cause: &crate::event::Cause| cause.kind == CauseKind::Unresolved;
        let unresolved = status.paths().any(|(_, path)| path.cause.as_ref().is_some_and(is_unresolved));
        let has_endpoint = |path: &crate::status::PathStatus| !path.opened_by_peer;
        let silent = status.peers.iter().any(|peer| {
            peer.paths.iter().any(has_endpoint) && peer.paths.iter().all(|path| path.state != PathState::Up)
        });
        if !unresolved && !silent {
            self.next = None;
            return;
        }
        let now = Instant::now();
        let [first, longest] = WAITS;
        let first_wait = if unresolved { first } else { SILENT_PEER_WAIT };
        let (due, wait) = *self.next.get_or_insert((now + first_wait, first_wait));
        if now < due {
            return;
        }
        let wait = (wait * 2).min(longest);
        self.next = Some((now + wait, wait));
        let observer = Arc::clone(observer);
        data_plane.resolve(Box::new(move |changes| {
            for change in changes {
                observer.events.push(Event::new(EventLevel::Info, EventKind::Endpoint, change));
            }
        }));
    }
}
