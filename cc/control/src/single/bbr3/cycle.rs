//! The modes, and the cycle of bandwidth probing: down, cruise, refill, up.

use super::bandwidth::GAIN_ONE;
use super::{Ack, Bbr3, STARTUP_GAIN};
use crate::Context;
use units::{Instant, Span};

/// What the sender is after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubling the rate every round trip.
    Startup,
    /// Emptying the queue that startup built.
    Drain,
    /// Sending less than the path carries, until there is headroom.
    Down,
    /// Sending what the path carries.
    Cruise,
    /// Filling the path without a queue, so that the probe meets a full one.
    Refill,
    /// Probing for more.
    Up,
    /// Emptying the path to see its RTT.
    ProbeRtt,
}

const DRAIN_GAIN: u32 = 88;
const DOWN_GAIN: u32 = 232;
const UP_GAIN: u32 = 320;
/// Twice the bandwidth-delay product: room for delayed and stretched acknowledgements.
const WINDOW_GAIN: u32 = 512;
/// ...and a quarter more, so that the window does not hinder the probe.
const UP_WINDOW_GAIN: u32 = 576;
/// A probe comes after this many rounds at the latest: as often as a Reno flow on a path of so many packets loses.
const MOST_ROUNDS: u32 = 63;
/// Up to so many of them are drawn at random, so that flows do not probe together.
const RANDOM_ROUNDS: u64 = 2;
/// Greatest doubling of the growth of the long-term bound.
const MOST_DOUBLINGS: u32 = 30;

impl Mode {
    /// One of the cycle.
    pub(super) fn is_cycling(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Looking for more bandwidth: loss is expected, and lowers no short-term bound.
    pub(super) fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    pub(super) fn pacing_gain(self) -> u32 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::Down => DOWN_GAIN,
            Self::Up => UP_GAIN,
            Self::Cruise | Self::Refill | Self::ProbeRtt => GAIN_ONE,
        }
    }

    pub(super) fn window_gain(self) -> u32 {
        match self {
            Self::Up => UP_WINDOW_GAIN,
            Self::ProbeRtt => GAIN_ONE,
            _ => WINDOW_GAIN,
        }
    }
}

/// What the acknowledgements coming in have to do with the latest probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Acks {
    /// Nothing.
    #[default]
    Other,
    /// Sent before the probe.
    Refilling,
    /// The probe began less than a round trip ago.
    Starting,
    /// Sent in the probe.
    Feedback,
    /// The probe is over, its acknowledgements still come.
    Stopping,
}

/// The progress of the cycle.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub(super) acks: Acks,
    /// The losses that are seen now may be the probe's.
    pub(super) probed: bool,
    /// The latest probe was too much.
    pub(super) too_much: bool,
    /// It was stopped at the long-term bound, for caution only.
    pub(super) cautious: bool,
    since: Instant,
    wait: Span,
    rounds: u32,
    pub(super) growth: BoundGrowth,
}

/// How the long-term bound grows while a probe meets it.
#[derive(Debug, Default)]
pub(super) struct BoundGrowth {
    /// Packets acked for one more packet.
    period: u32,
    acked: u32,
    doublings: u32,
}

impl Cycle {
    /// A round trip began.
    pub(super) fn count_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }
}

impl BoundGrowth {
    /// In the next round twice as much.
    pub(super) fn quicken(&mut self, cwnd: u32) {
        self.period = (cwnd >> self.doublings).max(1);
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    pub(super) fn packets(&mut self, acked: u32) -> u32 {
        self.acked += acked;
        let packets = self.acked / self.period.max(1);
        self.acked -= packets * self.period.max(1);
        packets
    }
}

impl Bbr3 {
    pub(super) fn go_down(&mut self, cx: &mut Context<'_>) {
        self.signals.reset();
        self.cycle.rounds = cx.rng.below(RANDOM_ROUNDS) as u32;
        self.cycle.wait = self.tuning.probe_wait + Span::from_secs_f64(cx.rng.unit());
        self.cycle.since = self.delivered_at;
        self.cycle.acks = Acks::Stopping;
        self.round.end = self.delivered;
        self.mode = Mode::Down;
    }

    pub(super) fn cruise(&mut self) {
        if self.bounds.short < u32::MAX {
            self.bounds.short = self.bounds.short.min(self.bounds.long);
        }
        self.mode = Mode::Cruise;
    }

    fn refill(&mut self) {
        self.bounds.forget_short_term();
        self.cycle.growth = BoundGrowth::default();
        self.cycle.cautious = false;
        self.cycle.acks = Acks::Refilling;
        self.round.end = self.delivered;
        self.mode = Mode::Refill;
    }

    fn go_up(&mut self, rate: u64) {
        self.cycle.probed = true;
        self.cycle.acks = Acks::Starting;
        self.round.end = self.delivered;
        self.full_pipe.restart(rate);
        self.cycle.since = self.delivered_at;
        self.cycle.growth.quicken(self.cwnd);
        self.mode = Mode::Up;
    }

    pub(super) fn update_cycle(&mut self, ack: &Ack<'_>, cx: &mut Context<'_>) {
        if !self.full_pipe.reached || self.follow_probe(ack, cx) {
            return;
        }
        // The burst about to leave counts where more is sent than arrives.
        let burst = if self.mode == Mode::Up { self.burst() as u32 } else { 0 };
        let in_flight = ack.sample.prior_in_flight.saturating_add(burst);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe() => self.refill(),
            Mode::Down if self.is_time_to_cruise(in_flight) => self.cruise(),
            Mode::Refill if self.round.begun => self.go_up(ack.rate),
            Mode::Up => self.check_up(ack, in_flight, cx),
            _ => {}
        }
    }

    /// Learns from the probe as its acknowledgements come in. True if that began the next one.
    fn follow_probe(&mut self, ack: &Ack<'_>, cx: &mut Context<'_>) -> bool {
        if self.round.begun && self.cycle.acks == Acks::Starting {
            self.cycle.acks = Acks::Feedback;
        }
        if self.round.begun && self.cycle.acks == Acks::Stopping && self.end_feedback(ack) {
            return true;
        }
        if self.is_too_much(&ack.flight) {
            if self.cycle.probed {
                self.on_too_much(ack.flight.in_flight, ack.is_app_limited(), cx);
            }
        } else {
            self.raise_bound(ack);
        }
        false
    }

    /// All that a probe sent is acknowledged. True if there was no harm in it, so that the next one begins at once.
    fn end_feedback(&mut self, ack: &Ack<'_>) -> bool {
        (self.cycle.probed, self.cycle.acks) = (false, Acks::Other);
        if self.mode.is_cycling() && !ack.is_app_limited() {
            self.advance_bandwidth();
        }
        let again = self.mode.is_cycling() && self.cycle.cautious && !self.cycle.too_much;
        if again {
            self.refill();
        }
        again
    }

    /// What did no harm is allowed; in a probe that meets the bound, more.
    fn raise_bound(&mut self, ack: &Ack<'_>) {
        if self.bounds.long == u32::MAX {
            return;
        }
        self.bounds.long = self.bounds.long.max(ack.flight.in_flight);
        if self.mode != Mode::Up {
            return;
        }
        if !self.is_at_long_term_bound(ack) {
            self.cycle.growth.acked = 0;
            return;
        }
        self.bounds.long = self.bounds.long.saturating_add(self.cycle.growth.packets(ack.sample.acked));
        if self.round.begun {
            self.cycle.growth.quicken(self.cwnd);
        }
    }

    fn is_at_long_term_bound(&self, ack: &Ack<'_>) -> bool {
        ack.sample.cwnd_limited && self.cwnd >= self.bounds.long
    }

    /// The wait is over, or a Reno flow of this size would have had its loss.
    fn is_time_to_probe(&self) -> bool {
        let waited = self.delivered_at > self.cycle.since + self.cycle.wait;
        waited || self.cycle.rounds >= self.target_in_flight().min(MOST_ROUNDS)
    }

    fn is_time_to_cruise(&self, in_flight: u32) -> bool {
        in_flight <= self.with_headroom() && in_flight <= self.in_flight_at(self.greatest_bandwidth())
    }

    fn check_up(&mut self, ack: &Ack<'_>, in_flight: u32, cx: &mut Context<'_>) {
        let cautious = self.cycle.too_much && in_flight >= self.bounds.long;
        self.cycle.cautious |= cautious;
        if !cautious && self.is_at_long_term_bound(ack) {
            // The bound, not the path, keeps the bandwidth flat.
            self.full_pipe.restart(ack.rate);
        } else if cautious || self.full_pipe.now {
            self.cycle.too_much = false;
            self.go_down(cx);
        }
    }
}
