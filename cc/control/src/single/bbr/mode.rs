//! The modes: startup, drain, bandwidth probing, RTT probing, and what leads from one to the next.

use super::bandwidth::GAIN_ONE;
use super::rtt_probe::RttProbe;
use super::{Bbr, HIGH_GAIN, MIN_WINDOW};
use crate::{AckSample, Context, RateSample};
use units::{Instant, Span};

/// What the sender is after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubling the rate every round trip.
    Startup,
    /// Emptying the queue that startup built.
    Drain,
    /// Cycling around the bandwidth.
    ProbeBandwidth,
    /// Emptying the path to see its RTT.
    ProbeRtt,
}

/// The inverse of the startup gain.
const DRAIN_GAIN: u32 = 88;
/// Twice the bandwidth-delay product: room for delayed and stretched acknowledgements.
const CRUISE_WINDOW_GAIN: u32 = 512;
/// One cycle: ask for more, give it back, cruise.
const CYCLE: [u32; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
/// The first phase that cruises.
const CRUISE: usize = 2;
/// Growth that shows that the pipe is not full, in 1/256...
const STILL_GROWING: u64 = 320;
/// ...and how many round trips without it show that it is.
const FLAT_ROUNDS: u32 = 3;
/// How long a least RTT holds.
const RTT_HOLDS: Span = Span::from_secs(10);
/// How long the path is kept empty.
const RTT_PROBE: Span = Span::from_millis(200);

/// The phases that cruise, as a coupling of paths sets them; BBR's own by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cruise {
    /// Of the bandwidth, 1/256.
    pub(crate) pacing_gain: u32,
    /// Of the bandwidth-delay product, 1/256.
    pub(crate) window_gain: u32,
    /// No more packets in flight than this.
    pub(crate) most: u32,
}

impl Default for Cruise {
    fn default() -> Self {
        Self { pacing_gain: GAIN_ONE, window_gain: CRUISE_WINDOW_GAIN, most: u32::MAX }
    }
}

/// Whether the path has ever been full.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    pub(super) bandwidth: u64,
    flat_rounds: u32,
    pub(super) reached: bool,
}

impl FullPipe {
    /// Counts flat rounds anew; what was reached stays.
    pub(super) fn start_over(&mut self) {
        (self.bandwidth, self.flat_rounds) = (0, 0);
    }

    fn round(&mut self, bandwidth: u64) {
        if u128::from(bandwidth) >= (u128::from(self.bandwidth) * u128::from(STILL_GROWING)) >> 8 {
            (self.bandwidth, self.flat_rounds) = (bandwidth, 0);
        } else {
            self.flat_rounds += 1;
            self.reached = self.flat_rounds >= FLAT_ROUNDS;
        }
    }
}

/// The least RTT and when it was seen.
#[derive(Debug, Default)]
pub(super) struct LeastRtt {
    pub(super) micros: Option<u64>,
    pub(super) since: Instant,
}

impl Bbr {
    pub(super) fn is_probing_for_more(&self) -> bool {
        self.mode == Mode::ProbeBandwidth && self.cycle_idx == 0
    }

    pub(super) fn is_cruising(&self) -> bool {
        self.mode == Mode::ProbeBandwidth && self.cycle_idx >= CRUISE
    }

    /// The phase of bandwidth probing, 0 to 7.
    pub(crate) fn probing_phase(&self) -> Option<usize> {
        (self.mode == Mode::ProbeBandwidth).then_some(self.cycle_idx)
    }

    /// Bandwidth probing from a phase drawn at random, but not from the one that gives back what was never taken.
    pub(super) fn probe_bandwidth(&mut self, cx: &mut Context<'_>) {
        self.mode = Mode::ProbeBandwidth;
        self.cycle_idx = CYCLE.len() - 1 - cx.rng.below(CYCLE.len() as u64 - 1) as usize;
        self.next_phase();
    }

    fn next_phase(&mut self) {
        self.cycle_idx = (self.cycle_idx + 1) % CYCLE.len();
        self.phase_start = self.totals.at;
    }

    pub(super) fn update_phase(&mut self, sample: &AckSample) {
        if self.mode == Mode::ProbeBandwidth && self.phase_is_over(sample) {
            self.next_phase();
        }
    }

    fn phase_is_over(&self, sample: &AckSample) -> bool {
        let least_rtt = self.least_rtt.micros.unwrap_or(u64::MAX);
        let full_length = self.totals.at.since(self.phase_start).as_micros() > least_rtt;
        let in_flight = u64::from(sample.prior_in_flight);
        let gain = self.pacing_gain;
        if self.is_cruising() {
            full_length
        } else if gain > GAIN_ONE {
            // The burst about to leave counts.
            full_length && (sample.lost > 0 || in_flight + self.burst() >= self.in_flight_at(gain))
        } else if gain < GAIN_ONE {
            full_length || in_flight <= self.in_flight_at(GAIN_ONE)
        } else {
            full_length
        }
    }

    pub(super) fn check_full_pipe(&mut self, rs: Option<&RateSample>) {
        let app_limited = rs.is_some_and(|rs| rs.app_limited);
        if self.rounds.begun && !self.full_pipe.reached && !app_limited {
            self.full_pipe.round(self.bandwidth.get());
        }
    }

    pub(super) fn check_drain(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            self.ssthresh = u32::try_from(self.in_flight_at(GAIN_ONE)).unwrap_or(u32::MAX);
        }
        if self.mode == Mode::Drain && u64::from(sample.in_flight) <= self.in_flight_at(GAIN_ONE) {
            self.probe_bandwidth(cx);
        }
    }

    pub(super) fn update_least_rtt(&mut self, sample: &AckSample, rs: Option<&RateSample>, cx: &mut Context<'_>) {
        let expired = cx.now > self.least_rtt.since + RTT_HOLDS;
        let delayed = rs.is_some_and(|rs| rs.ack_delayed);
        if let Some(rtt) = sample.rtt.map(Span::as_micros)
            && (self.least_rtt.micros.is_none_or(|least| rtt < least) || expired && !delayed)
        {
            self.least_rtt = LeastRtt { micros: Some(rtt), since: cx.now };
        }
        if expired && !self.restarted && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window();
            self.rtt_probe = RttProbe { held: Some((sample.delivered, 0)), ..RttProbe::default() };
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(sample, cx);
        }
        self.restarted &= sample.acked == 0;
    }

    fn probe_rtt(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        let probe = &mut self.rtt_probe;
        if let Some((_, last)) = &mut probe.held {
            *last = sample.delivered + u64::from(sample.in_flight);
        }
        if probe.until.is_some() {
            probe.round_done |= self.rounds.begun;
            if probe.round_done {
                self.check_rtt_probe_over(cx);
            }
        } else if sample.in_flight <= MIN_WINDOW {
            probe.until = Some(cx.now + RTT_PROBE);
            self.rounds.end = sample.delivered;
        }
    }

    pub(super) fn check_rtt_probe_over(&mut self, cx: &mut Context<'_>) {
        if self.rtt_probe.until.is_none_or(|until| cx.now <= until) {
            return;
        }
        self.least_rtt.since = cx.now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_pipe.reached {
            self.probe_bandwidth(cx);
        } else {
            self.mode = Mode::Startup;
        }
    }

    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (GAIN_ONE, CRUISE_WINDOW_GAIN),
            Mode::ProbeBandwidth if self.is_cruising() => (self.cruise.pacing_gain, self.cruise.window_gain),
            Mode::ProbeBandwidth => (CYCLE[self.cycle_idx], CRUISE_WINDOW_GAIN),
            Mode::ProbeRtt => (GAIN_ONE, GAIN_ONE),
        };
    }
}
