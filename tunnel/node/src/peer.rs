//! One peer: its endpoint, and the routes of its paths.

use crate::migration::RoutedPath;
use machine::{Destination, Endpoint, MAX_PATHS, PathConfig, PathStatus, Payload, Transmit};
use std::collections::BTreeMap;
use std::fmt::Debug;
use units::{Instant, PathId, Span};

/// Time without a datagram after which a path that the peer opened is removed.
const SILENT_PATH_TIMEOUT: Span = Span::from_secs(60);
/// Minimum interval of the announcements to a peer that still uses a removed path.
const REMOVAL_INTERVAL: Span = Span::from_millis(200);

/// The driver's type of a peer's address.
pub trait Address: Clone + PartialEq + Debug {
    /// Appends the octets of IP address and port, which cookies are bound to.
    fn octets(&self, octets: &mut Vec<u8>);

    /// Whether both are the same address of the peer; local addresses may differ.
    fn is_same_remote(&self, other: &Self) -> bool {
        self == other
    }

    /// Whether the peer's IP address and the local one are the same in both: only the port may differ.
    fn is_same_host(&self, other: &Self) -> bool;

    /// The same address of the peer, without a local address.
    #[must_use]
    fn without_local(&self) -> Self {
        self.clone()
    }
}

/// The route of a path to the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Route<A> {
    /// The driver's number of the socket.
    pub socket: u16,
    /// The peer's address.
    pub remote: A,
}

impl<A: Address> Route<A> {
    pub(crate) fn has_same_destination(&self, other: &Self) -> bool {
        self.socket == other.socket && self.remote.is_same_remote(&other.remote)
    }
}

/// Configuration of a path that the peer opened by a route.
pub type LearnedPathConfig<A> = Box<dyn Fn(&Route<A>) -> PathConfig + Send>;

/// Creates the configuration of a new endpoint, at the start and when the peer restarts.
pub type NewEndpointConfig = Box<dyn Fn() -> machine::EndpointConfig + Send>;

/// A change of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// A session was established. Everything in flight is lost if the peer has restarted.
    Established {
        /// Whether the peer has restarted, or this is its first session.
        numbers_reset: bool,
    },
    /// The peer uses another address on a path (connection migration).
    PathMigrated(PathId),
    /// The peer opened a path, or uses one again that was removed.
    PathOpened(PathId),
    /// This host removed a path that the peer opened: it was silent, or its socket was closed.
    PathForgotten(PathId),
    /// An event of its endpoint.
    Tunnel(machine::EndpointEvent),
}

/// The state of a peer.
#[derive(Debug)]
pub(crate) struct Peer<P, A> {
    pub(crate) endpoint: Endpoint<P>,
    /// The paths by number.
    pub(crate) paths: BTreeMap<u8, RoutedPath<A>>,
    /// Whether there is a session.
    pub(crate) has_session: bool,
    /// Number of restarts of the peer.
    pub(crate) restarts: u64,
    /// When the removal of each path was last announced; `None` for paths that were not removed.
    pub(crate) removals: [Option<Instant>; MAX_PATHS],
}

impl<P: Payload, A: Address> Peer<P, A> {
    pub(crate) fn new(config: machine::EndpointConfig) -> Self {
        let endpoint = Endpoint::new(config);
        Self { endpoint, paths: BTreeMap::new(), has_session: false, restarts: 0, removals: [None; MAX_PATHS] }
    }

    /// The id of the path by this route. Cookies and counts of failed responses are stored by it.
    pub(crate) fn route_path_id(&self, route: &Route<A>) -> Option<u8> {
        let mut paths = self.paths.iter();
        paths.find(|(_, path)| path.route.has_same_destination(route)).map(|(path_id, _)| *path_id)
    }

    /// The peer has restarted: creates a new endpoint, with the configured paths only.
    pub(crate) fn restart(&mut self, config: machine::EndpointConfig) {
        self.endpoint = Endpoint::new(config);
        self.restarts += 1;
        self.removals = [None; MAX_PATHS];
        self.paths.retain(|_, path| path.is_configured());
        for (id, path) in &mut self.paths {
            path.restart();
            self.endpoint.set_path(PathId(u16::from(*id)), path.config);
        }
    }

    /// Removes silent paths that the peer opened, if another path works, and returns them.
    pub(crate) fn remove_silent_paths(&mut self, now: Instant) -> Vec<PathId> {
        let status = self.endpoint.status();
        let mut removed = Vec::new();
        if !status.paths.iter().any(|path| path.up) {
            return removed;
        }
        let is_silent = |path: &&PathStatus| {
            !path.up && now.since(path.last_received.unwrap_or(Instant::ZERO)) >= SILENT_PATH_TIMEOUT
        };
        for path in status.paths.iter().filter(is_silent).map(|path| path.path) {
            if self.paths.get(&(path.0 as u8)).is_some_and(|path| !path.is_configured()) {
                self.endpoint.forget_path(now, path);
                self.paths.remove(&(path.0 as u8));
                removed.push(path);
            }
        }
        removed
    }

    /// A datagram arrived on a removed path: it was in flight, or the peer does not know yet.
    pub(crate) fn on_removed_path(&mut self, now: Instant, id: u8) {
        let announcement = &mut self.removals[usize::from(id)];
        if announcement.is_some_and(|time| now.since(time) >= REMOVAL_INTERVAL) {
            *announcement = Some(now);
            self.endpoint.announce_removal(PathId(u16::from(id)));
        }
    }

    /// The route of a datagram to be sent.
    pub(crate) fn transmit_route(&self, transmit: &Transmit<P>) -> Option<&Route<A>> {
        let path = self.paths.get(&(transmit.path.0 as u8))?;
        match transmit.destination {
            Destination::Present => Some(&path.route),
            Destination::Candidate => path.candidate(),
        }
    }

    /// The next datagram to send, if there is a session.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<P>> {
        if self.has_session { self.endpoint.poll_transmit(now) } else { None }
    }
}
