//! The minimum RTT, and ProbeRTT to measure it.

use super::bandwidth::BBR_UNIT;
use super::cycle::{AckPhase, Mode};
use super::model::MIN_PIPE_CWND;
use super::{AckInfo, Bbr3};
use crate::Context;
use crate::single::bbr::probe_rtt::ProbeRtt;
use units::{Instant, Span};

/// Window of the model's minimum RTT.
const MIN_RTT_FILTER_LEN: Span = Span::from_secs(10);
/// Time without a new minimum of the shorter filter after which ProbeRTT starts (Linux `bbr_probe_rtt_win_ms`).
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// Duration of ProbeRTT.
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// Congestion window in ProbeRTT, as a fraction of the bandwidth-delay product.
const PROBE_RTT_CWND_GAIN: u32 = BBR_UNIT / 2;

/// A minimum RTT and the time of its sample.
#[derive(Clone, Copy, Debug, Default)]
struct RttSample {
    rtt_us: Option<u64>,
    stamp: Instant,
}

/// Minimum RTT of the model, and the shorter filter that schedules ProbeRTT.
#[derive(Debug, Default)]
pub(super) struct MinRtt {
    min_rtt: RttSample,
    probe_rtt_min_delay: RttSample,
}

impl MinRtt {
    pub(super) fn new(rtt: Option<Span>, now: Instant) -> Self {
        let sample = RttSample { rtt_us: rtt.map(Span::as_micros), stamp: now };
        Self { min_rtt: sample, probe_rtt_min_delay: sample }
    }

    /// The model's minimum RTT, microseconds.
    pub(super) fn micros(&self) -> Option<u64> {
        self.min_rtt.rtt_us
    }

    /// Updates both filters. An equal minimum replaces the model's if it `refreshes`. Returns whether ProbeRTT is due,
    /// because there was no new minimum for [`PROBE_RTT_INTERVAL`].
    fn update(&mut self, rtt: Option<u64>, is_ack_delayed: bool, refreshes: bool, now: Instant) -> bool {
        let probe_rtt_expired = now > self.probe_rtt_min_delay.stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (self.probe_rtt_min_delay.rtt_us.is_none_or(|min_rtt| rtt < min_rtt)
                || probe_rtt_expired && !is_ack_delayed)
        {
            self.probe_rtt_min_delay = RttSample { rtt_us: Some(rtt), stamp: now };
        }
        let replaces_min_rtt = match (self.probe_rtt_min_delay.rtt_us, self.min_rtt.rtt_us) {
            (Some(recent), Some(current)) => recent < current || refreshes && recent == current,
            (recent, _) => recent.is_some(),
        };
        if replaces_min_rtt || now > self.min_rtt.stamp + MIN_RTT_FILTER_LEN {
            self.min_rtt = self.probe_rtt_min_delay;
        }
        probe_rtt_expired
    }
}

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, ack: &AckInfo<'_>, cx: &mut Context<'_>) {
        let refreshes = self.rules.min_rtt_refreshes;
        let is_ack_delayed = refreshes && ack.rate_sample.is_some_and(|rate_sample| rate_sample.ack_delayed);
        let rtt = ack.ack_sample.rtt.map(Span::as_micros);
        let probe_rtt_expired = self.min_rtt.update(rtt, is_ack_delayed, refreshes, ack.now);
        if probe_rtt_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.round.next_round_delivered = self.delivered;
            self.probe_rtt = ProbeRtt { app_limited: Some((self.delivered, 0)), ..ProbeRtt::default() };
        }
        if self.mode == Mode::ProbeRtt {
            self.handle_probe_rtt(ack, cx);
        }
        self.idle_restart &= ack.ack_sample.acked == 0;
    }

    fn handle_probe_rtt(&mut self, ack: &AckInfo<'_>, cx: &mut Context<'_>) {
        let reached_probe_rtt_cwnd = ack.ack_sample.in_flight <= self.probe_rtt_cwnd();
        let probe = &mut self.probe_rtt;
        if let Some((_, last)) = &mut probe.app_limited {
            *last = self.delivered + u64::from(ack.ack_sample.in_flight);
        }
        if probe.probe_rtt_done_stamp.is_some() {
            probe.probe_rtt_round_done |= self.round.round_start;
            if probe.probe_rtt_round_done {
                self.check_probe_rtt_done(cx);
            }
        } else if reached_probe_rtt_cwnd {
            probe.probe_rtt_done_stamp = Some(cx.now + PROBE_RTT_DURATION);
            self.round.next_round_delivered = self.delivered;
        }
    }

    /// Half of the bandwidth-delay product.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        let half_bdp = self.bdp(self.bw(), PROBE_RTT_CWND_GAIN);
        u32::try_from(half_bdp).unwrap_or(u32::MAX / 2).max(MIN_PIPE_CWND)
    }

    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut Context<'_>) {
        if self.probe_rtt.probe_rtt_done_stamp.is_none_or(|done_stamp| cx.now <= done_stamp) {
            return;
        }
        self.min_rtt.probe_rtt_min_delay.stamp = cx.now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.reset_lower_bounds();
        if self.full_bw.full_bw_reached {
            // Fewer packets are in flight than the path holds, so there is nothing to drain.
            self.start_probe_bw_down(cx);
            self.start_probe_bw_cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }
}
