//! The modes, and the cycle of ProbeBW: down, cruise, refill, up.

use super::bandwidth::BBR_UNIT;
use super::{AckInfo, Bbr3};
use crate::Context;
use units::{Instant, Span};

/// State of BBR's state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubles the rate every round trip.
    Startup,
    /// Empties the queue that startup built.
    Drain,
    /// Sends below the bandwidth, until there is headroom.
    ProbeBwDown,
    /// Sends at the bandwidth.
    ProbeBwCruise,
    /// Fills the path without a queue, before the probe.
    ProbeBwRefill,
    /// Probes for more bandwidth.
    ProbeBwUp,
    /// Reduces the queue to measure the path's RTT.
    ProbeRtt,
}

/// Twice the bandwidth-delay product: room for delayed and stretched acknowledgements.
const CWND_GAIN: u32 = 512;
/// A quarter of the bandwidth-delay product more, so that the window does not limit the probe.
const UP_CWND_GAIN: u32 = 576;
/// Maximum number of rounds before a probe, as many as a Reno flow with that many packets has between losses.
const MAX_PROBE_ROUNDS: u32 = 63;
/// Maximum number of these that is drawn at random, so that flows do not probe at the same time.
const PROBE_RAND_ROUNDS: u64 = 2;
/// Maximum number of doublings of the long-term bound's growth.
const MAX_PROBE_UP_ROUNDS: u32 = 30;

impl Mode {
    /// Whether the mode is one of the ProbeBW cycle.
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    /// Whether the mode probes for more bandwidth, so that its losses do not lower the short-term bounds.
    pub(super) fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    pub(super) fn cwnd_gain(self) -> u32 {
        match self {
            Self::ProbeBwUp => UP_CWND_GAIN,
            Self::ProbeRtt => BBR_UNIT,
            _ => CWND_GAIN,
        }
    }
}

/// Relation of the incoming acknowledgements to the latest bandwidth probe (BBR.ack_phase).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// No probe has been made, or all acknowledgements of the latest one have arrived.
    #[default]
    Init,
    /// The acknowledged packets were sent before the probe.
    Refilling,
    /// The probe began less than a round trip ago.
    ProbeStarting,
    /// The acknowledged packets were sent during the probe.
    ProbeFeedback,
    /// The probe is over, but its acknowledgements still arrive.
    ProbeStopping,
}

/// Progress of the ProbeBW cycle.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// Whether losses found now may be due to the probe.
    pub(super) prior_probe_ok: bool,
    /// Whether the latest probe had too much in flight.
    pub(super) prior_probe_too_high: bool,
    /// Whether the latest probe was stopped at inflight_hi only as a precaution.
    pub(super) stopped_risky_probe: bool,
    cycle_stamp: Instant,
    probe_wait: Span,
    rounds_since_probe: u32,
    pub(super) probe_up: ProbeUp,
}

/// Growth of the long-term bound while it limits a probe.
#[derive(Debug, Default)]
pub(super) struct ProbeUp {
    /// Acknowledged packets per packet of growth.
    cnt: u32,
    acks: u32,
    rounds: u32,
}

impl Cycle {
    /// Counts a round trip that began.
    pub(super) fn count_round(&mut self) {
        self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
    }
}

impl ProbeUp {
    /// Doubles the growth of inflight_hi for the next round.
    pub(super) fn raise_slope(&mut self, cwnd: u32) {
        self.cnt = (cwnd >> self.rounds).max(1);
        self.rounds = (self.rounds + 1).min(MAX_PROBE_UP_ROUNDS);
    }

    /// Packets by which inflight_hi grows for `acked` packets.
    pub(super) fn increase(&mut self, acked: u32) -> u32 {
        self.acks += acked;
        let increase = self.acks / self.cnt.max(1);
        self.acks -= increase * self.cnt.max(1);
        increase
    }
}

impl Bbr3 {
    pub(super) fn start_probe_bw_down(&mut self, cx: &mut Context<'_>) {
        self.congestion.reset();
        self.cycle.rounds_since_probe = cx.rng.below(PROBE_RAND_ROUNDS) as u32;
        self.cycle.probe_wait = self.constants.probe_wait + Span::from_secs_f64(cx.rng.unit());
        self.cycle.cycle_stamp = self.delivered_at;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.round.next_round_delivered = self.delivered;
        self.mode = Mode::ProbeBwDown;
    }

    pub(super) fn start_probe_bw_cruise(&mut self) {
        if self.rules.cruise_bounds_inflight_lo && self.bounds.inflight_lo < u32::MAX {
            self.bounds.inflight_lo = self.bounds.inflight_lo.min(self.bounds.inflight_hi);
        }
        self.mode = Mode::ProbeBwCruise;
    }

    pub(super) fn start_probe_bw_refill(&mut self) {
        self.bounds.reset_lower_bounds();
        self.cycle.probe_up = ProbeUp::default();
        self.cycle.stopped_risky_probe = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.round.next_round_delivered = self.delivered;
        self.mode = Mode::ProbeBwRefill;
    }

    fn start_probe_bw_up(&mut self, rate: u64) {
        self.cycle.prior_probe_ok = true;
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.round.next_round_delivered = self.delivered;
        self.full_bw.restart(rate);
        self.cycle.cycle_stamp = self.delivered_at;
        self.cycle.probe_up.raise_slope(self.cwnd);
        self.mode = Mode::ProbeBwUp;
    }

    pub(super) fn update_probe_bw_cycle_phase(&mut self, ack: &AckInfo<'_>, cx: &mut Context<'_>) {
        if !self.full_bw.full_bw_reached || self.adapt_upper_bounds(ack, cx) {
            return;
        }
        // This includes the next burst if the gain is above 1.
        let burst =
            if self.rules.up_includes_burst && self.mode == Mode::ProbeBwUp { self.send_quantum() as u32 } else { 0 };
        let in_flight = ack.ack_sample.prior_in_flight.saturating_add(burst);
        match self.mode {
            Mode::ProbeBwDown | Mode::ProbeBwCruise if self.is_time_to_probe_bw() => self.start_probe_bw_refill(),
            Mode::ProbeBwDown if self.is_time_to_cruise(in_flight) => self.start_probe_bw_cruise(),
            Mode::ProbeBwRefill if self.round.round_start => self.start_probe_bw_up(ack.rate),
            Mode::ProbeBwUp => self.check_time_to_go_down(ack, in_flight, cx),
            _ => {}
        }
    }

    /// Adapts the long-term bound to the probe's acknowledgements. True if that began the next probe.
    fn adapt_upper_bounds(&mut self, ack: &AckInfo<'_>, cx: &mut Context<'_>) -> bool {
        if self.round.round_start && self.cycle.ack_phase == AckPhase::ProbeStarting {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.round.round_start && self.cycle.ack_phase == AckPhase::ProbeStopping && self.end_probe_feedback(ack) {
            return true;
        }
        if self.is_inflight_too_high(&ack.tx) {
            if self.rules.deliveries_end_probes && self.cycle.prior_probe_ok {
                self.handle_inflight_too_high(ack.tx.tx_in_flight, ack.is_app_limited(), cx);
            }
        } else {
            self.probe_inflight_hi_upward(ack);
        }
        false
    }

    /// Called when all packets of a probe are acknowledged. True if there was no loss, so that the next probe begins at
    /// once.
    fn end_probe_feedback(&mut self, ack: &AckInfo<'_>) -> bool {
        (self.cycle.prior_probe_ok, self.cycle.ack_phase) = (false, AckPhase::Init);
        if self.mode.is_probe_bw() && !ack.is_app_limited() {
            self.advance_max_bw_filter();
        }
        let restarts = self.mode.is_probe_bw() && self.cycle.stopped_risky_probe && !self.cycle.prior_probe_too_high;
        if restarts {
            self.start_probe_bw_refill();
        }
        restarts
    }

    /// Raises inflight_hi to the packets in flight of a probe without much loss, and further if it limits the probe.
    fn probe_inflight_hi_upward(&mut self, ack: &AckInfo<'_>) {
        if self.bounds.inflight_hi == u32::MAX {
            return;
        }
        self.bounds.inflight_hi = self.bounds.inflight_hi.max(ack.tx.tx_in_flight);
        if self.mode != Mode::ProbeBwUp {
            return;
        }
        if !self.is_limited_by_inflight_hi(ack) {
            if self.rules.growth_restarts {
                self.cycle.probe_up.acks = 0;
            }
            return;
        }
        self.bounds.inflight_hi =
            self.bounds.inflight_hi.saturating_add(self.cycle.probe_up.increase(ack.ack_sample.acked));
        if self.round.round_start {
            self.cycle.probe_up.raise_slope(self.cwnd);
        }
    }

    fn is_limited_by_inflight_hi(&self, ack: &AckInfo<'_>) -> bool {
        ack.ack_sample.cwnd_limited && self.cwnd >= self.bounds.inflight_hi
    }

    /// Whether the wait is over, or a Reno flow with this window would have had a loss.
    fn is_time_to_probe_bw(&self) -> bool {
        let waited = self.delivered_at > self.cycle.cycle_stamp + self.cycle.probe_wait;
        waited || self.cycle.rounds_since_probe >= self.target_inflight().min(MAX_PROBE_ROUNDS)
    }

    fn is_time_to_cruise(&self, in_flight: u32) -> bool {
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw())
    }

    fn check_time_to_go_down(&mut self, ack: &AckInfo<'_>, in_flight: u32, cx: &mut Context<'_>) {
        let stopped_at_bound = self.cycle.prior_probe_too_high && in_flight >= self.bounds.inflight_hi;
        self.cycle.stopped_risky_probe |= stopped_at_bound;
        if !stopped_at_bound && self.is_limited_by_inflight_hi(ack) {
            // The bound, not the path, limits the bandwidth.
            self.full_bw.restart(ack.rate);
        } else if stopped_at_bound || self.full_bw.full_bw_now {
            self.cycle.prior_probe_too_high = false;
            self.start_probe_bw_down(cx);
        }
    }
}
