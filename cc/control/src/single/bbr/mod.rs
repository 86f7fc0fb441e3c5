//! BBR, version 1: rate and window from a model of the path.
//!
//! The model has two measurements: the **bandwidth** (maximum delivery rate of the last ten round trips) and the
//! **minimum RTT** (of the last ten seconds). The sender paces at `gain * bandwidth` and keeps at most
//! `gain * bandwidth * minimum RTT` in flight.
//! - *Startup*: gain 2.89 until the bandwidth has not grown by a quarter for three round trips; *drain*: the inverse.
//! - *Bandwidth probing*: eight phases of one minimum RTT each, at 1.25, 0.75 and six times 1.
//! - *RTT probing*: if there was no new minimum RTT for ten seconds, four packets in flight for 200 ms.
//!
//! Loss changes the model only if it indicates a policer (`lt_bw.rs`). In the first round of recovery the window
//! follows packet conservation. Packets acknowledged in excess of the expected ones (`aggregation.rs`) are added to the
//! window.
//!
//! Source: Cardwell et al., "BBR: congestion-based congestion control" (ACM Queue 2016); constants, integer units and
//! the order of one acknowledgement as in Linux 6.1 (`tcp_bbr.c`). Deviation from Linux: the release time of the
//! pacer's next packet is not known, so the packets in flight at that time are assumed to be those in flight now (at
//! most one burst more).

pub(super) mod aggregation;
pub(super) mod bandwidth;
mod cwnd;
pub(super) mod episode;
mod lt_bw;
mod mode;
pub(super) mod probe_rtt;
mod standing_queue;
#[cfg(test)]
mod tests;

use crate::common::WindowedMax;
use crate::{
    AckSample, AlgorithmEntry, CaState, Cause, Constructor, Context, Decision, Deviation, PathController, PathEvent,
    PathInfo, Properties, RateSample,
};
use aggregation::Aggregation;
use bandwidth::BBR_UNIT;
use episode::Episode;
use lt_bw::{LtBw, Totals};
pub(crate) use mode::ProbeBwGains;
use mode::{FullBw, MinRtt, Mode};
use probe_rtt::ProbeRtt;
use standing_queue::StandingQueue;
use units::{INFINITE_SSTHRESH, Instant, Rate, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bbr",
    aliases: &["bbr1", "bbrv1"],
    title: "BBR v1: paces at the measured bandwidth, probes it and the RTT in turn",
    source: "Cardwell et al., ACM Queue 2016; Linux 6.1 tcp_bbr.c",
    parameters: &[],
    properties: Properties {
        min_cwnd: 4,
        deviations: &[
            (
                Deviation::RaisesUnfilledCwnd,
                "the window follows the model; samples of an idle application do not enter it",
            ),
            (Deviation::KeepsCwndOnUndo, "loss does not reduce the window"),
        ],
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|_| Box::new(Bbr::linux())),
};

/// 2/ln 2: the minimum gain that doubles the delivery rate every round trip.
const HIGH_GAIN: u32 = 739;
/// The bandwidth is the maximum over this many round trips: a cycle of eight phases and two for measuring.
const BW_RTTS: u64 = 10;
/// Minimum window, enough for a receiver with delayed acknowledgements, packets.
pub(crate) const MIN_CWND: u32 = 4;
/// Linux's initial window: the limit for a path without RTT, and what startup may always send.
const TCP_INIT_CWND: u32 = 10;

/// BBR v1 on one path.
#[derive(Debug)]
pub struct Bbr {
    cwnd: u32,
    /// Set when Startup ends, for reports; BBR itself does not use it.
    ssthresh: u32,
    /// Bytes per second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    mss: u32,
    /// The host's timer tick, which determines when the minimum RTT expires and ProbeRTT ends.
    tick: Span,

    /// Packets per microsecond, times 2^24.
    bw: WindowedMax,
    min_rtt: MinRtt,
    rounds: Rounds,
    totals: Totals,
    lt_bw: LtBw,
    ack_aggregation: Aggregation,

    mode: Mode,
    /// Phase of the gain cycle of ProbeBW.
    cycle_idx: usize,
    /// Start of the phase.
    cycle_mstamp: Instant,
    pacing_gain: u32,
    cwnd_gain: u32,
    probe_bw_gains: ProbeBwGains,
    full_bw: FullBw,
    probe_rtt: ProbeRtt,
    idle_restart: bool,

    /// As in Linux since 4.20: phases end by the packets in flight when the next burst departs.
    since_4_20: bool,
    /// Bytes of the largest burst.
    gso_max_size: u64,
    /// Whether the path belongs to a tunnel, with the deviations of [`bbr_path`](super::bbr_path).
    for_tunnel_path: bool,
    standing_queue: StandingQueue,
    /// The sender's state at the previous acknowledgement.
    prev_ca_state: CaState,
    episode: Episode,
    /// Whether one packet is sent for each delivered one, as in the first round of recovery.
    packet_conservation: bool,
    /// The window to restore after recovery and ProbeRTT.
    prior_cwnd: u32,
}

/// Packet-timed round trips, by the count of delivered packets.
#[derive(Debug, Default)]
struct Rounds {
    rtt_cnt: u64,
    /// The round ends with a sample of a packet that was sent after this many had been delivered.
    next_rtt_delivered: u64,
    /// Whether this acknowledgement began a round.
    round_start: bool,
}

impl Bbr {
    /// BBR as in Linux 4.14, on which MPTCP's coupled algorithms were built.
    pub(crate) fn new() -> Self {
        Self {
            cwnd: TCP_INIT_CWND,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: 0,
            has_seen_rtt: false,
            mss: 1448,
            tick: Span::from_millis(1),
            bw: WindowedMax::default(),
            min_rtt: MinRtt::default(),
            rounds: Rounds::default(),
            totals: Totals::default(),
            lt_bw: LtBw::default(),
            ack_aggregation: Aggregation::default(),
            mode: Mode::Startup,
            cycle_idx: 0,
            cycle_mstamp: Instant::ZERO,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            probe_bw_gains: ProbeBwGains::default(),
            full_bw: FullBw::default(),
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
            since_4_20: false,
            gso_max_size: bandwidth::GSO_MAX_SIZE,
            for_tunnel_path: false,
            standing_queue: StandingQueue::default(),
            prev_ca_state: CaState::Open,
            episode: Episode::default(),
            packet_conservation: false,
            prior_cwnd: 0,
        }
    }

    /// BBR as in the measured Linux 6.1.
    fn linux() -> Self {
        Self { since_4_20: true, gso_max_size: bandwidth::MEASURED_GSO_MAX_SIZE, ..Self::new() }
    }

    /// BBR for a path of a tunnel.
    pub(in crate::single) fn for_tunnel_path() -> Self {
        Self { for_tunnel_path: true, ..Self::new() }
    }

    /// Sets the gains of the cruising phases.
    pub(crate) fn set_probe_bw_gains(&mut self, gains: ProbeBwGains) {
        self.probe_bw_gains = gains;
    }

    /// The maximum delivery rate of the last ten round trips, bytes per second.
    pub(crate) fn max_bw(&self) -> f64 {
        self.bw.get() as f64 * f64::from(self.mss) * 1e6 / f64::from(1 << 24)
    }

    /// Payload of a full packet, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Packets in a minimum RTT at `gain` (in 1/256) of the measured bandwidth.
    pub(crate) fn bdp_packets(&self, gain: u32) -> u64 {
        self.bdp(self.bw.get(), gain)
    }

    fn init(&mut self, path: &PathInfo, now: Instant) {
        (self.cwnd, self.mss, self.tick) = (path.initial_window, path.mss, path.tick);
        let expires = self.after(now, mode::MIN_RTT_WINDOW);
        self.min_rtt = MinRtt { min_rtt_us: path.rtt.map(Span::as_micros), expires };
        self.totals.delivered_mstamp = now;
        self.ack_aggregation.restart(now);
        self.init_pacing_rate_from_rtt(path.rtt.unwrap_or(Span::ZERO));
    }

    /// The bandwidth in use, packets per microsecond times 2^24.
    fn bandwidth(&self) -> u64 {
        self.lt_bw.rate().unwrap_or(self.bw.get())
    }

    fn on_ack(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        self.totals.delivered = sample.delivered;
        self.totals.lost += u64::from(sample.lost);
        if sample.acked > 0 {
            self.totals.delivered_mstamp = cx.now;
        }
        let rs = self.valid_rate_sample(sample);
        self.rounds.round_start = false;
        if let Some(rs) = &rs {
            self.update_bw(rs, sample, cx);
            self.update_ack_aggregation(sample);
        }
        self.update_cycle_phase(sample);
        self.check_full_bw_reached(rs.as_ref(), sample);
        self.check_drain(sample, cx);
        self.update_min_rtt(sample, rs.as_ref(), cx);
        if self.for_tunnel_path {
            self.update_cruise_gain(sample);
        }
        self.update_gains();
        self.set_pacing_rate(sample.srtt);
        self.set_cwnd(sample);
        self.episode.set_ca_state(sample.ca_state);
    }

    /// The delivery-rate sample; application-limited if ProbeRTT limited the sender.
    fn valid_rate_sample(&self, sample: &AckSample) -> Option<RateSample> {
        let rs = sample.rate_sample.filter(|rs| rs.interval.as_micros() > 0)?;
        let app_limited = rs.app_limited || self.probe_rtt.is_app_limited(rs.prior_delivered);
        Some(RateSample { app_limited, ..rs })
    }

    fn update_bw(&mut self, rs: &RateSample, sample: &AckSample, cx: &mut Context<'_>) {
        if rs.prior_delivered >= self.rounds.next_rtt_delivered {
            self.rounds =
                Rounds { rtt_cnt: self.rounds.rtt_cnt + 1, next_rtt_delivered: sample.delivered, round_start: true };
            self.packet_conservation = false;
        }
        self.sample_lt_bw(sample.lost > 0, rs.app_limited, cx);
        let rate = bandwidth::rate(rs.delivered, rs.interval);
        if !rs.app_limited || rate >= self.bw.get() {
            self.bw.update(BW_RTTS, self.rounds.rtt_cnt, rate);
        }
    }

    fn sample_lt_bw(&mut self, has_loss: bool, app_limited: bool, cx: &mut Context<'_>) {
        let in_probe_bw = self.mode == Mode::ProbeBw;
        let round_start = self.rounds.round_start;
        if self.lt_bw.update(self.totals, lt_bw::Sample { has_loss, app_limited, round_start, in_probe_bw }, self.mss) {
            self.enter_probe_bw(cx);
        }
    }

    fn update_ack_aggregation(&mut self, sample: &AckSample) {
        if sample.acked > 0 {
            let (bandwidth, cwnd) = (self.bandwidth(), self.cwnd);
            let slot_rounds = self.rounds.round_start.then_some(aggregation::EXTRA_ACKED_WIN_RTTS);
            self.ack_aggregation.update(sample.acked, bandwidth, cwnd, slot_rounds, self.totals.delivered_mstamp);
        }
    }

    /// Sets the pacing rate to `gain * bandwidth`. Until the pipe has been full once, it only raises the rate.
    fn set_pacing_rate(&mut self, srtt: Span) {
        if !self.has_seen_rtt && srtt > Span::ZERO {
            self.init_pacing_rate_from_rtt(srtt);
        }
        let rate = bandwidth::bytes_per_second(self.bandwidth(), self.mss, self.pacing_gain);
        if self.full_bw.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn init_pacing_rate_from_rtt(&mut self, srtt: Span) {
        self.has_seen_rtt = srtt > Span::ZERO;
        self.pacing_rate = bandwidth::initial_pacing_rate(self.cwnd, srtt, self.mss, HIGH_GAIN);
    }

    fn on_congestion(&mut self, cause: Cause, reduce_cwnd: bool, in_flight: u32, cx: &mut Context<'_>) {
        if self.episode.on_congestion(cause, reduce_cwnd, self.cwnd, self.ssthresh) {
            self.save_cwnd();
        }
        if cause == Cause::Timeout {
            self.cwnd = in_flight + 1;
            self.prev_ca_state = CaState::Loss;
            self.full_bw.full_bw = 0;
            self.rounds.round_start = true;
            self.sample_lt_bw(true, false, cx);
        }
    }

    fn on_spurious_loss(&mut self) {
        if let Some(ssthresh) = self.episode.on_spurious_loss() {
            self.ssthresh = self.ssthresh.max(ssthresh);
            self.full_bw.reset();
            self.lt_bw.restart(self.totals);
        }
    }

    fn on_idle_restart(&mut self, cx: &mut Context<'_>) {
        self.idle_restart = true;
        self.totals.delivered_mstamp = cx.now;
        self.ack_aggregation.restart(cx.now);
        match self.mode {
            Mode::ProbeBw => {
                let rate = bandwidth::bytes_per_second(self.bandwidth(), self.mss, BBR_UNIT);
                self.pacing_rate = rate;
            }
            Mode::ProbeRtt => self.check_probe_rtt_done(cx),
            Mode::Startup | Mode::Drain => {}
        }
    }
}

impl PathController for Bbr {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        match event {
            PathEvent::Ack(sample) => self.on_ack(sample, cx),
            PathEvent::PathUp(path) => self.init(path, cx.now),
            PathEvent::Congestion { cause, reduce_cwnd, in_flight, .. } => {
                self.on_congestion(*cause, *reduce_cwnd, *in_flight, cx);
            }
            PathEvent::SpuriousLoss => self.on_spurious_loss(),
            PathEvent::Recovered { .. } => self.episode.set_ca_state(CaState::Open),
            PathEvent::IdleRestart { app_limited: true, .. } => self.on_idle_restart(cx),
            PathEvent::MssChanged { mss } => self.mss = *mss,
            // The model determines the window, not recovery or an idle application.
            PathEvent::PathDown
            | PathEvent::AckProgress(_)
            | PathEvent::WindowRestart { .. }
            | PathEvent::IdleRestart { .. }
            | PathEvent::ApplicationLimited { .. }
            | PathEvent::Penalise => {}
        }
    }

    fn decision(&self) -> Decision {
        // At least one byte per second, because a rate of zero would stop the sender.
        let pacing_rate = Rate::from_bits(self.pacing_rate.max(1).saturating_mul(8));
        let max_cwnd = if self.is_cruising() { self.probe_bw_gains.max_cwnd } else { u32::MAX };
        Decision { cwnd: self.cwnd.min(max_cwnd), ssthresh: self.ssthresh, pacing_rate: Some(pacing_rate) }
    }
}
