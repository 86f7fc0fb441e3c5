//! The addresses of the peer's paths: the one in use, the one being validated, and the configured one.
//!
//! The machine decides when a path moves ([`machine::Candidate`]); this file has the addresses.

use crate::node::Node;
use crate::peer::{Address, NodeEvent, Peer, Route};
use machine::{Candidate, CandidateOutcome, PathConfig, Payload};
use seal::PeerId;
use units::{Instant, PathId, Span};

/// Time for which a refused address does not become a candidate again while the path works.
const REFUSED_TIME: Span = Span::from_secs(10);

/// A path of a peer with its routes.
#[derive(Clone, Debug)]
pub(crate) struct RoutedPath<A> {
    pub(crate) config: PathConfig,
    /// The route in use.
    pub(crate) route: Route<A>,
    /// The configured route; `None` if the peer opened the path.
    pub(crate) configured: Option<Route<A>>,
    /// The largest packet number received on it: the peer is where that datagram came from.
    largest_packet_number: Option<u64>,
    /// Another route to the peer, which is being validated.
    candidate: Option<Route<A>>,
    /// The route refused last, and until when it cannot be a candidate.
    refused: Option<(Route<A>, Instant)>,
}

impl<A: Address> RoutedPath<A> {
    pub(crate) fn new(config: PathConfig, route: Route<A>, configured: Option<Route<A>>) -> Self {
        Self { config, route, configured, largest_packet_number: None, candidate: None, refused: None }
    }

    pub(crate) fn is_configured(&self) -> bool {
        self.configured.is_some()
    }

    /// The peer has restarted: its packet numbers begin at zero again.
    pub(crate) fn restart(&mut self) {
        (self.largest_packet_number, self.candidate, self.refused) = (None, None, None);
    }

    /// The route of the candidate's datagrams, if there is one.
    pub(crate) fn candidate(&self) -> Option<&Route<A>> {
        self.candidate.as_ref()
    }

    /// Whether a datagram by `arrived` counts as one by `route`. A configured path has its own local address.
    fn is_by(&self, route: &Route<A>, arrived: &Route<A>) -> bool {
        if self.is_configured() { route.has_same_destination(arrived) } else { route == arrived }
    }
}

impl<P: Payload, A: Address> Peer<P, A> {
    /// An authentic datagram of `bytes` bytes arrived by `route` on path `id`. True if it opened the path.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        (id, packet_number): (u8, u64),
        route: &Route<A>,
        bytes: usize,
        learned_path_config: &dyn Fn(&Route<A>) -> PathConfig,
    ) -> bool {
        let path_id = PathId(u16::from(id));
        let mut is_opened = false;
        let path = self.paths.entry(id).or_insert_with(|| {
            is_opened = true;
            let config = learned_path_config(route);
            self.endpoint.add_learned_path(path_id, config);
            RoutedPath::new(config, route.clone(), None)
        });
        if !self.endpoint.has_path(path_id) {
            // The peer had removed it, and uses it again.
            is_opened = true;
            (path.candidate, path.refused) = (None, None);
            match path.configured {
                Some(_) => self.endpoint.set_path(path_id, path.config),
                None => self.endpoint.add_learned_path(path_id, path.config),
            }
        }
        let is_newest = Some(packet_number) > path.largest_packet_number;
        path.largest_packet_number = path.largest_packet_number.max(Some(packet_number));
        if path.is_by(&path.route, route) {
            self.endpoint.on_received_bytes(path_id, bytes);
            if is_newest {
                self.endpoint.on_present_address(path_id);
            }
        } else if path.candidate.as_ref().is_some_and(|candidate| path.is_by(candidate, route)) {
            self.endpoint.on_candidate_bytes(path_id, bytes);
        } else if is_newest {
            self.on_other_address(now, id, route, bytes);
        }
        is_opened
    }

    /// The newest datagram of path `id` arrived by another route: the peer may have moved.
    fn on_other_address(&mut self, now: Instant, id: u8, route: &Route<A>, bytes: usize) {
        let path_id = PathId(u16::from(id));
        let Some(path) = self.paths.get_mut(&id) else { return };
        let is_refused =
            path.refused.as_ref().is_some_and(|(refused, until)| path.is_by(refused, route) && now < *until);
        let is_other_socket = path.is_configured() && path.route.socket != route.socket;
        if is_other_socket || is_refused && self.endpoint.is_up(path_id) {
            return;
        }
        let remote = if path.is_configured() { route.remote.without_local() } else { route.remote.clone() };
        let route = Route { socket: route.socket, remote };
        let is_same_host = path.route.socket == route.socket && path.route.remote.is_same_host(&route.remote);
        if self.endpoint.set_candidate(now, path_id, Candidate::Heard { bytes, is_same_host }) {
            path.candidate = Some(route);
        }
    }

    /// Applies the outcomes of validations; returns the paths that moved.
    fn apply_outcomes(&mut self, now: Instant, learned_path_config: &dyn Fn(&Route<A>) -> PathConfig) -> Vec<PathId> {
        let mut moved = Vec::new();
        while let Some((id, outcome)) = self.endpoint.poll_candidate_outcome() {
            let Some(path) = self.paths.get_mut(&(id.0 as u8)) else { continue };
            let Some(candidate) = path.candidate.take() else { continue };
            if outcome == CandidateOutcome::Refused {
                path.refused = Some((candidate, now + REFUSED_TIME));
                self.validate_configured(now);
                continue;
            }
            (path.route, path.refused) = (candidate, None);
            if !path.is_configured() {
                path.config = learned_path_config(&path.route);
                self.endpoint.set_path(id, path.config);
            }
            moved.push(id);
        }
        moved
    }

    /// Starts to validate the configured address of each path that is down at another address.
    pub(crate) fn validate_configured(&mut self, now: Instant) {
        for (id, path) in &mut self.paths {
            let id = PathId(u16::from(*id));
            let Some(configured) = path.configured.as_ref().filter(|_| path.candidate.is_none()) else { continue };
            if !path.route.has_same_destination(configured)
                && !self.endpoint.is_up(id)
                && self.endpoint.set_candidate(now, id, Candidate::Configured)
            {
                path.candidate = Some(configured.clone());
            }
        }
    }

    /// Forgets candidates by a socket that is closed.
    pub(crate) fn clear_candidates(&mut self, socket: u16) {
        for (id, path) in &mut self.paths {
            if path.candidate.take_if(|candidate| candidate.socket == socket).is_some() {
                self.endpoint.clear_candidate(PathId(u16::from(*id)));
            }
        }
    }
}

impl<P: Payload, A: Address> Node<P, A> {
    /// Applies the outcomes of validations, before the next datagrams are sent to the resulting addresses.
    pub(crate) fn migrate(&mut self, now: Instant, id: PeerId) {
        let Some((peer, _)) = self.peers.get_mut(&id) else { return };
        let moved = peer.apply_outcomes(now, &*self.learned_path_config);
        self.events.extend(moved.into_iter().map(|path| (id, NodeEvent::PathMigrated(path))));
    }
}
