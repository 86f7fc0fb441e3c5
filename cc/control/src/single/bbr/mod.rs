//! BBR, version 1: model the path instead of filling its queue.
//!
//! Two measurements make the model: the **bandwidth** (greatest delivery rate of the last ten round trips) and the
//! **least RTT** (of the last ten seconds). The sender paces at `gain * bandwidth` and keeps at most
//! `gain * bandwidth * least RTT` in flight.
//! - *Startup*: gain 2.89 until the bandwidth has not grown by a quarter for three round trips; *drain*: the inverse.
//! - *Bandwidth probing*: eight phases of one least RTT each, at 1.25, 0.75 and six times 1.
//! - *RTT probing*: if ten seconds brought no new least RTT, four packets in flight for 200 ms.
//!
//! Loss moves the model only where it looks like a policer (`policer.rs`); in the first round of recovery the window
//! follows what is delivered. What is acknowledged beyond the model's expectation (`aggregation.rs`) is added to the
//! window.
//!
//! Source: Cardwell et al., "BBR: congestion-based congestion control" (ACM Queue 2016); constants, integer units and
//! the order of one acknowledgement as in Linux 6.1 (`tcp_bbr.c`).
//! Departure from Linux: when the pacer will release its next packet is not known here, so packets in flight "by then"
//! are those in flight now (at most one burst more).

pub(super) mod aggregation;
pub(super) mod bandwidth;
mod cwnd;
mod mode;
mod policer;
pub(super) mod rtt_probe;
#[cfg(test)]
mod tests;

use crate::frame::WindowedMax;
use crate::{
    AckSample, AlgorithmEntry, CaState, Cause, Constructor, Context, Decision, PathController, PathEvent, PathInfo,
    RateSample,
};
use aggregation::Aggregation;
use bandwidth::GAIN_ONE;
pub(crate) use mode::Cruise;
use mode::{FullPipe, LeastRtt, Mode};
use policer::{Policer, Totals};
use rtt_probe::RttProbe;
use units::{INFINITE_SSTHRESH, Instant, Rate, Span};

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bbr",
    aliases: &["bbr1", "bbrv1"],
    title: "BBR v1: paces at the measured bandwidth, probes it and the RTT in turn",
    source: "Cardwell et al., ACM Queue 2016; Linux 6.1 tcp_bbr.c",
    parameters: &[],
    make: Constructor::Single(|_| Box::new(Bbr::new())),
};

/// 2/ln 2: the least gain that doubles the delivery rate every round trip.
const HIGH_GAIN: u32 = 739;
/// The bandwidth is the greatest of this many round trips: a cycle of eight phases and two for measuring.
const BANDWIDTH_ROUNDS: u64 = 10;
/// The least window: keeps the acknowledgements of a delaying receiver coming.
pub(crate) const MIN_WINDOW: u32 = 4;
/// Linux's initial window: what a path without RTT may hold, and what startup may always send.
const INITIAL_WINDOW: u32 = 10;

/// The model, the mode, and what follows from them.
#[derive(Debug)]
pub struct Bbr {
    cwnd: u32,
    /// Set when startup ends, for those who look; BBR itself does not use it.
    ssthresh: u32,
    /// Bytes a second.
    pacing_rate: u64,
    pacing_saw_rtt: bool,
    mss: u32,

    /// Packets a microsecond, times 2^24.
    bandwidth: WindowedMax,
    least_rtt: LeastRtt,
    rounds: Rounds,
    totals: Totals,
    policer: Policer,
    aggregation: Aggregation,

    mode: Mode,
    /// The phase of bandwidth probing, and since when.
    cycle_idx: usize,
    phase_start: Instant,
    pacing_gain: u32,
    window_gain: u32,
    cruise: Cruise,
    full_pipe: FullPipe,
    rtt_probe: RttProbe,
    restarted: bool,

    /// The sender's state at the acknowledgement before.
    ca_state: CaState,
    /// First round of recovery: the window follows what is delivered.
    conserve: bool,
    /// The last good window, to return to after recovery and RTT probing.
    prior_cwnd: u32,
}

/// Packet-timed round trips, by the count of delivered packets.
#[derive(Debug, Default)]
struct Rounds {
    count: u64,
    /// A sample of a packet sent when this many were delivered ends the round.
    end: u64,
    /// This acknowledgement began a round.
    begun: bool,
}

impl Bbr {
    pub(crate) fn new() -> Self {
        Self {
            cwnd: INITIAL_WINDOW,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: 0,
            pacing_saw_rtt: false,
            mss: 1448,
            bandwidth: WindowedMax::default(),
            least_rtt: LeastRtt::default(),
            rounds: Rounds::default(),
            totals: Totals::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            mode: Mode::Startup,
            cycle_idx: 0,
            phase_start: Instant::ZERO,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            cruise: Cruise::default(),
            full_pipe: FullPipe::default(),
            rtt_probe: RttProbe::default(),
            restarted: false,
            ca_state: CaState::Open,
            conserve: false,
            prior_cwnd: 0,
        }
    }

    /// From now on, cruise like this.
    pub(crate) fn set_cruise(&mut self, cruise: Cruise) {
        self.cruise = cruise;
    }

    /// The greatest delivery rate of the last ten round trips, bytes a second.
    pub(crate) fn measured_bandwidth(&self) -> f64 {
        self.bandwidth.get() as f64 * f64::from(self.mss) * 1e6 / f64::from(1 << 24)
    }

    /// Payload of a full packet, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// What `gain` of the measured bandwidth is, in packets a least RTT.
    pub(crate) fn packets_at(&self, gain: u32) -> u64 {
        self.product(self.bandwidth.get(), gain)
    }

    fn start(&mut self, path: &PathInfo, now: Instant) {
        (self.cwnd, self.mss) = (path.initial_window, path.mss);
        self.least_rtt = LeastRtt { micros: path.rtt.map(Span::as_micros), since: now };
        self.totals.at = now;
        self.aggregation.restart(now);
        self.pace_by_window(path.rtt.unwrap_or(Span::ZERO));
    }

    /// The bandwidth in use, packets a microsecond times 2^24.
    fn bandwidth(&self) -> u64 {
        self.policer.rate().unwrap_or(self.bandwidth.get())
    }

    fn on_feedback(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        self.totals.delivered = sample.delivered;
        self.totals.lost += u64::from(sample.lost);
        if sample.acked > 0 {
            self.totals.at = cx.now;
        }
        let rs = self.valid_rate_sample(sample);
        self.rounds.begun = false;
        if let Some(rs) = &rs {
            self.update_bandwidth(rs, sample, cx);
            self.update_aggregation(sample);
        }
        self.update_phase(sample);
        self.check_full_pipe(rs.as_ref());
        self.check_drain(sample, cx);
        self.update_least_rtt(sample, rs.as_ref(), cx);
        self.update_gains();
        self.update_pacing(sample.srtt);
        self.update_window(sample);
    }

    /// The delivery-rate sample, marked where RTT probing held the sender back.
    fn valid_rate_sample(&self, sample: &AckSample) -> Option<RateSample> {
        let rs = sample.rate_sample.filter(|rs| rs.interval.as_micros() > 0)?;
        let app_limited = rs.app_limited || self.rtt_probe.held_back(rs.prior_delivered);
        Some(RateSample { app_limited, ..rs })
    }

    fn update_bandwidth(&mut self, rs: &RateSample, sample: &AckSample, cx: &mut Context<'_>) {
        if rs.prior_delivered >= self.rounds.end {
            self.rounds = Rounds { count: self.rounds.count + 1, end: sample.delivered, begun: true };
            self.conserve = false;
        }
        self.sample_policer(sample.lost > 0, rs.app_limited, cx);
        let rate = bandwidth::rate(rs.delivered, rs.interval);
        if !rs.app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds.count, rate);
        }
    }

    fn sample_policer(&mut self, lossy: bool, app_limited: bool, cx: &mut Context<'_>) {
        let probing = self.mode == Mode::ProbeBandwidth;
        let round = self.rounds.begun;
        if self.policer.sample(self.totals, policer::Sample { lossy, app_limited, round, probing }, self.mss) {
            self.probe_bandwidth(cx);
        }
    }

    fn update_aggregation(&mut self, sample: &AckSample) {
        if sample.acked > 0 {
            let (bandwidth, cwnd, round) = (self.bandwidth(), self.cwnd, self.rounds.begun);
            let slot = round.then_some(aggregation::SLOT_ROUNDS);
            self.aggregation.update(sample.acked, bandwidth, cwnd, slot, self.totals.at);
        }
    }

    /// `gain * bandwidth`; until the pipe was full once, only upwards.
    fn update_pacing(&mut self, srtt: Span) {
        if !self.pacing_saw_rtt && srtt > Span::ZERO {
            self.pace_by_window(srtt);
        }
        let rate = bandwidth::bytes_per_second(self.bandwidth(), self.mss, self.pacing_gain);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The first rate, before anything was measured: a window a round trip (a millisecond if that is unknown).
    fn pace_by_window(&mut self, srtt: Span) {
        self.pacing_saw_rtt = srtt > Span::ZERO;
        let rtt = if self.pacing_saw_rtt { srtt.max(Span::from_micros(1)) } else { Span::from_millis(1) };
        self.pacing_rate = bandwidth::bytes_per_second(bandwidth::rate(self.cwnd, rtt), self.mss, HIGH_GAIN);
    }

    fn on_congestion(&mut self, cause: Cause, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        if cut {
            self.save_window();
        }
        if cause == Cause::Timeout {
            self.cwnd = in_flight + 1;
            self.ca_state = CaState::Loss;
            self.full_pipe.bandwidth = 0;
            self.rounds.begun = true;
            self.sample_policer(true, false, cx);
        }
    }

    fn on_spurious_loss(&mut self) {
        self.full_pipe.start_over();
        self.policer.restart(self.totals);
    }

    fn on_restart(&mut self, cx: &mut Context<'_>) {
        self.restarted = true;
        self.totals.at = cx.now;
        self.aggregation.restart(cx.now);
        match self.mode {
            Mode::ProbeBandwidth => {
                let rate = bandwidth::bytes_per_second(self.bandwidth(), self.mss, GAIN_ONE);
                self.pacing_rate = rate;
            }
            Mode::ProbeRtt => self.check_rtt_probe_over(cx),
            Mode::Startup | Mode::Drain => {}
        }
    }
}

impl PathController for Bbr {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        match event {
            PathEvent::Ack(sample) => self.on_feedback(sample, cx),
            PathEvent::PathUp(path) => self.start(path, cx.now),
            PathEvent::Congestion { cause, cut, in_flight } => self.on_congestion(*cause, *cut, *in_flight, cx),
            PathEvent::SpuriousLoss => self.on_spurious_loss(),
            PathEvent::IdleRestart { .. } => self.on_restart(cx),
            PathEvent::MssChanged { mss } => self.mss = *mss,
            // The window is the model's: recovery and an idle application do not settle it.
            PathEvent::PathDown
            | PathEvent::Recovered { .. }
            | PathEvent::ApplicationLimited { .. }
            | PathEvent::Penalise => {}
        }
    }

    fn decision(&self) -> Decision {
        // A byte a second at least: a rate of zero would never send again.
        let pacing_rate = Rate::from_bits(self.pacing_rate.max(1).saturating_mul(8));
        let most = if self.is_cruising() { self.cruise.most } else { u32::MAX };
        Decision { cwnd: self.cwnd.min(most), ssthresh: self.ssthresh, pacing_rate: Some(pacing_rate) }
    }
}
