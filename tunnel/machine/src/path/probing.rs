//! Pings of a path, and their answers.

use super::phantom_queue::PhantomQueue;
use super::{INITIAL_WINDOW, PingPolicy, TICK, TunnelPath};
use crate::entropy::Entropy;
use control::{LinuxRelease, PathEvent, PathInfo, Reduction};
use sender::path::ControllerHandle;
use units::{Instant, Span};

/// The result of [`TunnelPath::on_pong`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PongOutcome {
    /// Whether the path was down until now.
    pub(crate) was_down: bool,
    /// The path MTU if it grew, bytes.
    pub(crate) plpmtu: Option<u32>,
    /// Whether it showed that the peer still is at its present address, and not at the candidate.
    pub(crate) refused_candidate: bool,
}

impl TunnelPath {
    /// A ping was answered.
    pub(crate) fn on_pong(&mut self, now: Instant, token: u64, controller: &mut ControllerHandle) -> PongOutcome {
        if self.migration.candidate.as_mut().is_some_and(|candidate| candidate.on_pong(now, token)) {
            return PongOutcome::default();
        }
        let Some(pong) = self.validation.on_pong(now, token) else { return PongOutcome::default() };
        let is_refuted = self.migration.candidate.as_ref().is_some_and(|candidate| candidate.is_refused_by(pong.sent));
        let refused = is_refuted && self.refuse_candidate();
        self.migration.budget = None;
        self.sent.on_probe(now, pong.rtt, &mut self.sender);
        if pong.was_down {
            self.on_validated(now, pong.rtt, controller);
        }
        if pong.plpmtu.is_some() && self.mss != self.fragment_size() {
            self.mss = self.fragment_size();
            self.sender.notify(now, &PathEvent::MssChanged { mss: self.full_packet_bytes() }, controller);
        }
        PongOutcome { was_down: pong.was_down, plpmtu: pong.plpmtu, refused_candidate: refused }
    }

    pub(super) fn on_validated(&mut self, now: Instant, rtt: Span, controller: &mut ControllerHandle) {
        self.mss = self.fragment_size();
        (self.pto_count, self.phantom_queue) = (0, PhantomQueue::default());
        let info = PathInfo {
            mss: self.full_packet_bytes(),
            initial_window: INITIAL_WINDOW,
            rtt: Some(rtt),
            tick: TICK,
            cwnd_clamp: u32::MAX / 2,
            reduction: Reduction::Proportional,
            release: LinuxRelease::V6_18,
        };
        self.sender.start(now, info, controller);
    }

    /// The token of a ping to send now, and the datagram's size if the ping probes the path MTU, bytes.
    pub(crate) fn poll_ping(
        &mut self,
        now: Instant,
        policy: PingPolicy,
        entropy: &mut Entropy,
    ) -> Option<(u64, Option<u32>)> {
        if let Some(token) = self.poll_present_ping(now, entropy) {
            return Some((token, None));
        }
        let ping = self.validation.poll(now, self.policy(policy), entropy);
        if let (Some(_), false, Some(candidate)) = (ping, self.validation.up, &mut self.migration.candidate)
            && candidate.is_configured()
        {
            candidate.ping_now(now);
        }
        ping
    }

    /// Makes the next ping due now.
    pub(crate) fn ping_now(&mut self) {
        self.validation.ping_now();
    }

    pub(super) fn policy(&self, policy: PingPolicy) -> PingPolicy {
        PingPolicy { tunnel_in_use: policy.tunnel_in_use && !self.is_metered(), ..policy }
    }
}
