//! A path's moves to other addresses of the peer, and what may be sent to one that is not validated.

use super::candidate::{AMPLIFICATION_LIMIT, Candidate, CandidateOutcome, CandidateValidation};
use super::sent_packets::FragmentOutcomes;
use super::{PhantomQueue, TunnelPath};
use crate::entropy::Entropy;
use control::PathEvent;
use sender::path::ControllerHandle;
use units::{Instant, Span};

/// The candidate of a path, and counters of earlier ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Migration {
    pub(super) candidate: Option<CandidateValidation>,
    /// No other candidate before, while the path works.
    next_candidate: Instant,
    /// Bytes that may still be sent on a path that the peer opened, until it is validated; `None` without a limit.
    pub(super) budget: Option<u64>,
    pub(super) moves: u64,
    pub(super) refused: u64,
}

impl TunnelPath {
    /// The peer opened the path: it is limited until it is validated.
    pub(crate) fn limit_until_validated(&mut self) {
        self.migration.budget = Some(0);
    }

    /// A datagram of so many bytes arrived from the present address.
    pub(crate) fn on_received_bytes(&mut self, bytes: usize) {
        let budget = &mut self.migration.budget;
        *budget = budget.map(|budget| budget.saturating_add(bytes as u64 * AMPLIFICATION_LIMIT));
    }

    /// Maximum size of a datagram that may be sent to the present address now, bytes.
    pub(crate) fn max_control_bytes(&self) -> u64 {
        self.migration.budget.unwrap_or(u64::MAX)
    }

    /// A datagram of so many bytes is sent to the present address.
    pub(crate) fn on_control_sent(&mut self, bytes: u64) {
        self.migration.budget = self.migration.budget.map(|budget| budget.saturating_sub(bytes));
    }

    /// Begins to validate another address of the peer. False if another one is being validated, or was until less than
    /// a probe timeout ago.
    pub(crate) fn set_candidate(&mut self, now: Instant, candidate: Candidate) -> bool {
        let is_taken = self.migration.candidate.as_ref().is_some_and(|candidate| !candidate.is_configured());
        if is_taken || self.is_up() && now < self.migration.next_candidate {
            return false;
        }
        let timeout = self.answer_timeout();
        self.migration.next_candidate = now + timeout;
        self.migration.candidate = Some(CandidateValidation::new(now, timeout, candidate));
        true
    }

    /// Time in which an answer to a ping is expected: the probe timeout, which is that of acknowledgements by the
    /// fastest path, and more than the latest round trip of a ping.
    fn answer_timeout(&self) -> Span {
        let ping_rtt = self.validation.latest_rtt.unwrap_or(Span::ZERO);
        self.bounded_pto().max(ping_rtt + ping_rtt / 4)
    }

    /// A datagram of so many bytes arrived from the candidate.
    pub(crate) fn on_candidate_bytes(&mut self, bytes: usize) {
        if let Some(candidate) = &mut self.migration.candidate {
            candidate.on_received(bytes);
        }
    }

    /// A datagram with the newest packet number arrived from the present address. Returns whether that refutes the
    /// candidate: the peer still sends from there.
    pub(crate) fn on_present_address(&mut self) -> bool {
        let is_heard = self.migration.candidate.as_ref().is_some_and(|candidate| !candidate.is_configured());
        self.is_up() && is_heard && self.refuse_candidate()
    }

    /// Forgets the candidate. Returns whether there was one.
    pub(crate) fn refuse_candidate(&mut self) -> bool {
        let Some(candidate) = self.migration.candidate.take() else { return false };
        self.migration.refused += u64::from(!candidate.is_configured());
        true
    }

    /// Forgets the candidate, which is no address of the peer any more.
    pub(crate) fn clear_candidate(&mut self) {
        self.migration.candidate = None;
    }

    /// The token of a ping to send to the candidate now.
    pub(crate) fn poll_candidate_ping(&mut self, now: Instant, entropy: &mut Entropy) -> Option<u64> {
        self.migration.candidate.as_mut()?.poll(now, entropy)
    }

    /// The token of a ping to send to the present address now, because there is a candidate.
    pub(super) fn poll_present_ping(&mut self, now: Instant, entropy: &mut Entropy) -> Option<u64> {
        let candidate = self.migration.candidate.as_mut()?;
        let is_due = std::mem::take(&mut candidate.is_present_ping_due);
        is_due.then(|| self.validation.ping(now, None, entropy))
    }

    /// When a ping to the candidate is due, or the outcome of its validation certain.
    #[inline]
    pub(super) fn candidate_deadline(&self) -> Instant {
        let up = self.is_up();
        self.migration.candidate.as_ref().map_or(Instant::NEVER, |candidate| candidate.deadline(up))
    }

    /// The outcome of the candidate's validation, if it is certain by now. The caller [moves](Self::migrate) the path.
    pub(crate) fn poll_candidate(&mut self, now: Instant) -> Option<CandidateOutcome> {
        let outcome = self.migration.candidate.as_ref()?.outcome(now, self.is_up())?;
        if outcome == CandidateOutcome::Refused {
            self.refuse_candidate();
        }
        Some(outcome)
    }

    /// Moves the path to the candidate. What was in flight is lost. If it has another IP address, or the path was down,
    /// congestion state, round trips and path MTU begin anew (RFC 9000, section 9.4). Returns whether the path was down.
    pub(crate) fn migrate(
        &mut self,
        now: Instant,
        outcomes: &mut FragmentOutcomes,
        controller: &mut ControllerHandle,
    ) -> bool {
        let Some(candidate) = self.migration.candidate.take() else { return false };
        let rtt = candidate.rtt().unwrap_or(Span::ZERO);
        let was_down = !self.is_up();
        self.migration.moves += 1;
        self.migration.budget = None;
        self.validation.on_moved(now, rtt);
        (self.pto_count, self.pto_start) = (0, now);
        if candidate.is_same_host() && !was_down {
            self.sent.abandon_in_flight(&mut self.sender, outcomes);
            return false;
        }
        self.sent.on_path_failed(&mut self.sender, outcomes);
        if !was_down {
            self.sender.notify(now, &PathEvent::PathDown, controller);
        }
        self.validation.restart_pmtud(now);
        self.sent.on_probe(now, rtt, &mut self.sender);
        self.phantom_queue = PhantomQueue::default();
        self.on_validated(now, rtt, controller);
        was_down
    }
}
