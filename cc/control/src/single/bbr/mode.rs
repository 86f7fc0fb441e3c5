//! The modes Startup, Drain, ProbeBW and ProbeRTT, and the transitions between them.

use super::bandwidth::{BBR_UNIT, packets_in};
use super::probe_rtt::ProbeRtt;
use super::{Bbr, HIGH_GAIN, MIN_CWND};
use crate::{AckSample, Context, RateSample};
use units::{Instant, Span};

/// State of BBR's state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubles the rate every round trip.
    Startup,
    /// Empties the queue that startup built.
    Drain,
    /// Cycles around the bandwidth.
    ProbeBw,
    /// Empties the path to measure its RTT.
    ProbeRtt,
}

/// The inverse of the startup gain.
const DRAIN_GAIN: u32 = 88;
/// Twice the bandwidth-delay product: room for delayed and stretched acknowledgements.
const CWND_GAIN: u32 = 512;
/// One cycle: probe, drain, cruise.
const PACING_GAIN_CYCLE: [u32; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
/// The first phase of the cycle with gain 1.
const CRUISE_IDX: usize = 2;
/// Growth of the bandwidth while the pipe is not full, in 1/256.
const FULL_BW_THRESH: u32 = 320;
/// Round trips without that growth after which the pipe is full.
const FULL_BW_CNT: u32 = 3;
/// Window of the minimum RTT's filter.
pub(super) const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// Duration of ProbeRTT.
const PROBE_RTT_DURATION: Span = Span::from_millis(200);

/// Gains of the ProbeBW phases other than probing and draining; a coupling of paths may set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeBwGains {
    /// Pacing gain, in 1/256.
    pub(crate) pacing_gain: u32,
    /// cwnd gain, in 1/256 of the bandwidth-delay product.
    pub(crate) cwnd_gain: u32,
    /// Maximum window, packets.
    pub(crate) max_cwnd: u32,
}

impl Default for ProbeBwGains {
    fn default() -> Self {
        Self { pacing_gain: BBR_UNIT, cwnd_gain: CWND_GAIN, max_cwnd: u32::MAX }
    }
}

/// Detection of a full pipe.
#[derive(Debug, Default)]
pub(super) struct FullBw {
    pub(super) full_bw: u64,
    full_bw_cnt: u32,
    pub(super) full_bw_reached: bool,
    /// Whether a sample shows the path's bandwidth and not the application's: the latest sample, or on a tunnel's path
    /// any sample of the round.
    path_limited: bool,
}

impl FullBw {
    /// Restarts the count of rounds without growth.
    pub(super) fn reset(&mut self) {
        (self.full_bw, self.full_bw_cnt) = (0, 0);
    }

    fn update(&mut self, bandwidth: u64) {
        if u128::from(bandwidth) >= (u128::from(self.full_bw) * u128::from(FULL_BW_THRESH)) >> 8 {
            (self.full_bw, self.full_bw_cnt) = (bandwidth, 0);
        } else {
            self.full_bw_cnt += 1;
            self.full_bw_reached = self.full_bw_cnt >= FULL_BW_CNT;
        }
    }
}

/// Minimum RTT, and the time until which it is valid.
#[derive(Debug, Default)]
pub(super) struct MinRtt {
    pub(super) min_rtt_us: Option<u64>,
    pub(super) expires: Instant,
}

impl Bbr {
    pub(super) fn is_probing_for_more(&self) -> bool {
        self.mode == Mode::ProbeBw && self.cycle_idx == 0
    }

    pub(super) fn is_cruising(&self) -> bool {
        self.mode == Mode::ProbeBw && self.cycle_idx >= CRUISE_IDX
    }

    /// Index in the gain cycle of ProbeBW, 0 to 7.
    pub(crate) fn cycle_idx(&self) -> Option<usize> {
        (self.mode == Mode::ProbeBw).then_some(self.cycle_idx)
    }

    /// Enters ProbeBW at a random phase other than the draining one (Linux `bbr_reset_probe_bw_mode`).
    pub(super) fn enter_probe_bw(&mut self, cx: &mut Context<'_>) {
        self.mode = Mode::ProbeBw;
        self.cycle_idx = PACING_GAIN_CYCLE.len() - 1 - cx.rng.below(PACING_GAIN_CYCLE.len() as u64 - 1) as usize;
        self.advance_cycle_phase();
    }

    fn advance_cycle_phase(&mut self) {
        self.cycle_idx = (self.cycle_idx + 1) % PACING_GAIN_CYCLE.len();
        self.cycle_mstamp = self.totals.delivered_mstamp;
    }

    pub(super) fn update_cycle_phase(&mut self, sample: &AckSample) {
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(sample) {
            self.advance_cycle_phase();
        }
    }

    fn is_next_cycle_phase(&self, sample: &AckSample) -> bool {
        let min_rtt = self.min_rtt.min_rtt_us.unwrap_or(u64::MAX);
        let full_length = self.totals.delivered_mstamp.since(self.cycle_mstamp).as_micros() > min_rtt;
        let in_flight = self.in_net_at_departure(sample.prior_in_flight, sample);
        let gain = self.pacing_gain;
        if self.is_cruising() {
            full_length
        } else if gain > BBR_UNIT {
            full_length && (sample.lost > 0 || in_flight >= self.inflight(gain))
        } else if gain < BBR_UNIT {
            full_length || in_flight <= self.inflight(BBR_UNIT)
        } else {
            full_length
        }
    }

    /// Packets in flight when the next burst departs. They include that burst if the gain is above one, and exclude
    /// packets delivered until then (Linux `bbr_packets_in_net_at_edt`).
    pub(super) fn in_net_at_departure(&self, in_flight: u32, sample: &AckSample) -> u64 {
        let burst = if self.pacing_gain > BBR_UNIT { self.tso_segs_goal() } else { 0 };
        let delivered = if self.since_4_20 { packets_in(self.bandwidth(), sample.until_departure) } else { 0 };
        (u64::from(in_flight) + burst).saturating_sub(delivered)
    }

    pub(super) fn check_full_bw_reached(&mut self, rs: Option<&RateSample>, sample: &AckSample) {
        let Some(rs) = rs else { return };
        if self.for_tunnel_path {
            self.full_bw.path_limited |= !rs.app_limited || self.overfilled_path(sample);
        } else {
            self.full_bw.path_limited = !rs.app_limited;
        }
        if !self.rounds.round_start {
            return;
        }
        if std::mem::take(&mut self.full_bw.path_limited) && !self.full_bw.full_bw_reached {
            self.full_bw.update(self.bw.get());
        }
    }

    /// Whether the packets in flight were a quarter more than the bandwidth-delay product when the newest delivered
    /// packet was sent.
    fn overfilled_path(&self, sample: &AckSample) -> bool {
        let tx_in_flight = sample.newest_delivered.map_or(0, |sending| sending.tx_in_flight);
        u64::from(tx_in_flight) > self.bdp(self.bw.get(), FULL_BW_THRESH)
    }

    pub(super) fn check_drain(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        if self.mode == Mode::Startup && self.full_bw.full_bw_reached {
            self.mode = Mode::Drain;
            self.ssthresh = u32::try_from(self.inflight(BBR_UNIT)).unwrap_or(u32::MAX);
        }
        let in_flight = sample.in_flight;
        let in_net = if self.since_4_20 { self.in_net_at_departure(in_flight, sample) } else { u64::from(in_flight) };
        if self.mode == Mode::Drain && in_net <= self.inflight(BBR_UNIT) {
            self.enter_probe_bw(cx);
        }
    }

    pub(super) fn update_min_rtt(&mut self, sample: &AckSample, rs: Option<&RateSample>, cx: &mut Context<'_>) {
        let expired = cx.now >= self.min_rtt.expires;
        let is_ack_delayed = rs.is_some_and(|rs| rs.ack_delayed);
        if let Some(rtt) = sample.rtt.map(Span::as_micros)
            && (self.min_rtt.min_rtt_us.is_none_or(|min_rtt| rtt < min_rtt) || expired && !is_ack_delayed)
        {
            self.min_rtt = MinRtt { min_rtt_us: Some(rtt), expires: self.after(cx.now, MIN_RTT_WINDOW) };
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt = ProbeRtt { app_limited: Some((sample.delivered, 0)), ..ProbeRtt::default() };
        }
        if self.mode == Mode::ProbeRtt {
            self.handle_probe_rtt(sample, cx);
        }
        self.idle_restart &= sample.acked == 0;
    }

    /// Time at which more than `span` has passed by the host's ticks, counted from the current one (Linux
    /// `after(tcp_jiffies32, ...)`).
    pub(super) fn after(&self, now: Instant, span: Span) -> Instant {
        let tick = self.tick.0;
        Instant((now.0 / tick + span.0.div_ceil(tick) + 1) * tick)
    }

    fn handle_probe_rtt(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        let probe = &mut self.probe_rtt;
        if let Some((_, last)) = &mut probe.app_limited {
            *last = sample.delivered + u64::from(sample.in_flight);
        }
        if probe.probe_rtt_done_stamp.is_some() {
            probe.probe_rtt_round_done |= self.rounds.round_start;
            if probe.probe_rtt_round_done {
                self.check_probe_rtt_done(cx);
            }
        } else if sample.in_flight <= MIN_CWND {
            self.probe_rtt.probe_rtt_done_stamp = Some(self.after(cx.now, PROBE_RTT_DURATION));
            self.rounds.next_rtt_delivered = sample.delivered;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut Context<'_>) {
        if self.probe_rtt.probe_rtt_done_stamp.is_none_or(|done_stamp| cx.now < done_stamp) {
            return;
        }
        self.min_rtt.expires = self.after(cx.now, MIN_RTT_WINDOW);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw.full_bw_reached {
            self.enter_probe_bw(cx);
        } else {
            self.mode = Mode::Startup;
        }
    }

    pub(super) fn update_cruise_gain(&mut self, sample: &AckSample) {
        if self.is_cruising() {
            sample.rtt.into_iter().for_each(|rtt| self.standing_queue.on_cruise_rtt(rtt.as_micros()));
        } else if self.is_probing_for_more()
            && let Some(min_rtt) = self.min_rtt.min_rtt_us
        {
            let gain = &mut self.probe_bw_gains.pacing_gain;
            *gain = self.standing_queue.next_gain(*gain, min_rtt, self.bw.get());
        }
    }

    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.lt_bw.rate().is_some() => (BBR_UNIT, CWND_GAIN),
            Mode::ProbeBw if self.is_cruising() => (self.probe_bw_gains.pacing_gain, self.probe_bw_gains.cwnd_gain),
            Mode::ProbeBw => (PACING_GAIN_CYCLE[self.cycle_idx], CWND_GAIN),
            Mode::ProbeRtt => (BBR_UNIT, BBR_UNIT),
        };
    }
}
