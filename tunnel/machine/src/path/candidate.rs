//! Validation of another address of the peer before the path moves to it (RFC 9000, sections 8.2 and 9.3).
//!
//! Datagrams with the newest packet numbers of a path come from another address if the peer's NAT has another mapping,
//! if its host is in another network, or if somebody copies its datagrams. So that address, the *candidate*, and the
//! present address are pinged. The path moves when the candidate has answered, and the present address has been silent
//! for a probe timeout after that. If the present address answers, its datagrams are being copied (RFC 9000, section
//! 9.3.3), and the path stays. Only pings are sent to a candidate.

use super::PING_BYTES;
use crate::entropy::Entropy;
use units::{Instant, Span};

/// What is sent to an address that is not validated is at most this many times what arrived from it (RFC 9000, section
/// 8.1).
pub(super) const AMPLIFICATION_LIMIT: u64 = 3;
/// Pings to a candidate that is silent, a probe timeout apart; a probe timeout after the last one it is given up (RFC
/// 9000, section 8.2.4).
const MAX_PINGS: usize = 3;

/// Another address that the peer may have on a path. Which one is known to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// An authentic datagram arrived from it.
    Heard {
        /// UDP payload of that datagram, bytes.
        bytes: usize,
        /// Whether only the port differs from the present address: a NAT has another mapping, but the network path is
        /// the same (RFC 9000, section 9.4).
        is_same_host: bool,
    },
    /// It is configured, and pinged while the path is down.
    Configured,
}

/// The outcome of a candidate's validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateOutcome {
    /// It is the present address from now on.
    Moved,
    /// The present address works, or the candidate does not.
    Refused,
}

/// The validation of a candidate.
#[derive(Clone, Debug)]
pub(super) struct CandidateValidation {
    started: Instant,
    /// Time for an answer.
    timeout: Span,
    /// Bytes that may still be sent to it; `None` without a limit, to a configured address.
    budget: Option<u64>,
    is_same_host: bool,
    /// Tokens of the pings sent, and when.
    pings: Vec<(u64, Instant)>,
    next_ping: Instant,
    /// When it answered, and the round trip.
    answer: Option<(Instant, Span)>,
    /// Whether the present address is to be pinged.
    pub(super) is_present_ping_due: bool,
}

impl CandidateValidation {
    /// A validation that begins now; `timeout` is the path's probe timeout.
    pub(super) fn new(now: Instant, timeout: Span, candidate: Candidate) -> Self {
        let (budget, is_same_host) = match candidate {
            Candidate::Heard { bytes, is_same_host } => (Some(bytes as u64 * AMPLIFICATION_LIMIT), is_same_host),
            Candidate::Configured => (None, false),
        };
        let pings = Vec::with_capacity(MAX_PINGS);
        Self {
            started: now,
            timeout,
            budget,
            is_same_host,
            pings,
            next_ping: now,
            answer: None,
            is_present_ping_due: budget.is_some(),
        }
    }

    pub(super) fn is_configured(&self) -> bool {
        self.budget.is_none()
    }

    pub(super) fn is_same_host(&self) -> bool {
        self.is_same_host
    }

    /// A datagram of so many bytes arrived from it.
    pub(super) fn on_received(&mut self, bytes: usize) {
        self.budget = self.budget.map(|budget| budget.saturating_add(bytes as u64 * AMPLIFICATION_LIMIT));
    }

    /// Makes a ping due now: the present address, which is down, is pinged too.
    pub(super) fn ping_now(&mut self, now: Instant) {
        self.next_ping = now;
    }

    /// The token of a ping to the candidate, if one is to be sent now.
    pub(super) fn poll(&mut self, now: Instant, entropy: &mut Entropy) -> Option<u64> {
        if self.ping_deadline() > now {
            return None;
        }
        if self.is_configured() {
            self.next_ping = Instant::NEVER;
            self.pings.truncate(MAX_PINGS - 1);
        } else {
            self.next_ping = now + self.timeout;
        }
        self.budget = self.budget.map(|budget| budget - PING_BYTES);
        let token = entropy.bits();
        self.pings.insert(0, (token, now));
        Some(token)
    }

    fn ping_deadline(&self) -> Instant {
        let may_ping = self.is_configured()
            || self.pings.len() < MAX_PINGS && self.budget.is_some_and(|budget| budget >= PING_BYTES);
        if may_ping && self.answer.is_none() { self.next_ping } else { Instant::NEVER }
    }

    /// Handles a pong; true if it is the candidate's. The present address is then pinged once more, as the first ping
    /// may be lost.
    pub(super) fn on_pong(&mut self, now: Instant, token: u64) -> bool {
        let Some((_, sent)) = self.pings.iter().find(|ping| ping.0 == token) else { return false };
        if self.answer.is_none() {
            (self.answer, self.is_present_ping_due) = (Some((now, now.since(*sent))), true);
        }
        true
    }

    /// Whether a pong to a ping sent to the present address at `sent` ends the validation: the present address works.
    pub(super) fn is_refused_by(&self, sent: Instant) -> bool {
        self.is_configured() || sent >= self.started
    }

    /// The round trip to the candidate, once it has answered.
    pub(super) fn rtt(&self) -> Option<Span> {
        self.answer.map(|answer| answer.1)
    }

    /// When a ping is due, or the outcome certain; `up` if the present address is not known to be silent.
    pub(super) fn deadline(&self, up: bool) -> Instant {
        self.ping_deadline().min(self.outcome_time(up))
    }

    fn outcome_time(&self, up: bool) -> Instant {
        match self.answer {
            Some((answered, _)) if up => answered + self.timeout,
            Some((answered, _)) => answered,
            None if self.is_configured() => Instant::NEVER,
            None => self.started + self.timeout * MAX_PINGS as u64,
        }
    }

    /// The outcome, if it is certain by now.
    pub(super) fn outcome(&self, now: Instant, up: bool) -> Option<CandidateOutcome> {
        let outcome = if self.answer.is_some() { CandidateOutcome::Moved } else { CandidateOutcome::Refused };
        (self.outcome_time(up) <= now).then_some(outcome)
    }
}
