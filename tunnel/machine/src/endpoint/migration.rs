//! The peer's other addresses: candidates, to which a path moves once they are validated.

use super::Endpoint;
use crate::config::PathConfig;
use crate::packet::Payload;
use crate::path::{Candidate, CandidateOutcome, TunnelPath};
use crate::status::EndpointEvent;
use units::{Instant, PathId};

impl<P: Payload> Endpoint<P> {
    /// Adds a path that the peer opened. Until a ping on it is answered, at most three times as many bytes are sent on
    /// it as [arrived](Self::on_received_bytes) (RFC 9000, section 8.1).
    ///
    /// # Panics
    /// With a path number of [`MAX_PATHS`](crate::MAX_PATHS) or more.
    pub fn add_learned_path(&mut self, id: PathId, config: PathConfig) {
        self.set_path(id, config);
        self.path_mut(id).into_iter().for_each(TunnelPath::limit_until_validated);
    }

    /// A datagram of `bytes` bytes of UDP payload arrived from the present address of a path.
    pub fn on_received_bytes(&mut self, id: PathId, bytes: usize) {
        self.path_mut(id).into_iter().for_each(|path| path.on_received_bytes(bytes));
    }

    /// Begins to validate another address of the peer on a path; its pings have [`Destination::Candidate`]. False if
    /// there is a candidate, or was one less than a probe timeout ago. A configured candidate is replaced.
    ///
    /// [`Destination::Candidate`]: crate::Destination::Candidate
    pub fn set_candidate(&mut self, now: Instant, id: PathId, candidate: Candidate) -> bool {
        self.control_deadline = Instant::ZERO;
        self.path_mut(id).is_some_and(|path| path.set_candidate(now, candidate))
    }

    /// A datagram of `bytes` bytes of UDP payload arrived from the candidate.
    pub fn on_candidate_bytes(&mut self, id: PathId, bytes: usize) {
        self.path_mut(id).into_iter().for_each(|path| path.on_candidate_bytes(bytes));
    }

    /// A datagram with the newest packet number of the path arrived from its present address: a candidate that does not
    /// work better is refused.
    pub fn on_present_address(&mut self, id: PathId) {
        if self.path_mut(id).is_some_and(TunnelPath::on_present_address) {
            self.candidate_outcomes.push_back((id, CandidateOutcome::Refused));
        }
    }

    /// Forgets the candidate of a path.
    pub fn clear_candidate(&mut self, id: PathId) {
        self.path_mut(id).into_iter().for_each(TunnelPath::clear_candidate);
        self.candidate_outcomes.retain(|(path, _)| *path != id);
    }

    /// The next outcome of the validation of a candidate, to be called after each input and before
    /// [`poll_transmit`](Self::poll_transmit): the driver changes the address.
    pub fn poll_candidate_outcome(&mut self) -> Option<(PathId, CandidateOutcome)> {
        self.candidate_outcomes.pop_front()
    }

    /// Whether the path exists and works.
    #[must_use]
    pub fn is_up(&self, id: PathId) -> bool {
        self.path(id).is_some_and(TunnelPath::is_up)
    }

    /// Moves paths whose candidates are validated, and forgets silent candidates.
    pub(super) fn handle_candidates(&mut self, now: Instant) {
        for index in 0..self.paths.len() {
            let Some(path) = &mut self.paths[index] else { continue };
            let Some(outcome) = path.poll_candidate(now) else { continue };
            let id = PathId(index as u16);
            self.candidate_outcomes.push_back((id, outcome));
            if outcome == CandidateOutcome::Moved {
                let was_down = path.migrate(now, &mut self.outcomes, &mut self.controller);
                self.events.extend(was_down.then_some(EndpointEvent::PathUp(id)));
                self.burst = None;
                self.update_excess_one_way_delays();
            }
        }
    }

    fn path_mut(&mut self, id: PathId) -> Option<&mut TunnelPath> {
        self.paths.get_mut(id.index()).and_then(Option::as_mut)
    }
}
