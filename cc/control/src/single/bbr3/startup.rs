//! Startup and Drain: detection of a full pipe.

use super::cycle::Mode;
use super::{AckInfo, Bbr3};
use crate::single::bbr::aggregation;
use crate::{CaState, Context};

/// Growth of the bandwidth while the pipe is not full, in 1/256.
const FULL_BW_THRESH: u128 = 320;
/// Round trips without that growth after which the pipe is full.
const FULL_BW_CNT: u32 = 3;
/// Acknowledgements with loss in a round before its losses count.
const FULL_LOSS_CNT: u32 = 6;

/// Detection of a full pipe.
#[derive(Debug, Default)]
pub(super) struct FullBw {
    full_bw: u64,
    full_bw_cnt: u32,
    /// Whether the pipe has become full since the last restart.
    pub(super) full_bw_now: bool,
    pub(super) full_bw_reached: bool,
}

impl FullBw {
    /// Restarts the count of rounds without growth, from this bandwidth.
    pub(super) fn restart(&mut self, bandwidth: u64) {
        *self = Self { full_bw: bandwidth, full_bw_reached: self.full_bw_reached, ..Self::default() };
    }

    /// Excess acknowledgements of Startup are kept only for a short time, because the bandwidth grows.
    pub(super) fn extra_acked_win_rtts(&self) -> u32 {
        if self.full_bw_reached { aggregation::EXTRA_ACKED_WIN_RTTS } else { 1 }
    }

    fn update(&mut self, rate: u64, round_start: bool, by_rounds: bool) {
        if by_rounds && !round_start {
            return;
        }
        if u128::from(rate) >= (u128::from(self.full_bw) * FULL_BW_THRESH) >> 8 {
            self.restart(rate);
        } else if round_start {
            self.full_bw_cnt += 1;
            self.full_bw_now = self.full_bw_cnt >= FULL_BW_CNT;
            self.full_bw_reached |= self.full_bw_now;
        }
    }
}

impl Bbr3 {
    /// Ends Startup at a plateau of the bandwidth.
    pub(super) fn check_full_bw_reached(&mut self, ack: &AckInfo<'_>) {
        if ack.rate_sample.is_some_and(|rate_sample| !rate_sample.app_limited) && !self.full_bw.full_bw_now {
            self.full_bw.update(ack.rate, self.round.round_start, self.rules.plateau_by_rounds);
        }
    }

    /// Ends Startup because of loss, at the end of a round in recovery.
    pub(super) fn check_startup_high_loss(&mut self, ack: &AckInfo<'_>) {
        if self.full_bw.full_bw_reached {
            return;
        }
        self.congestion.loss_events_in_round += u32::from(ack.ack_sample.lost > 0);
        if self.congestion.loss_round_start {
            let high_loss = std::mem::take(&mut self.congestion.loss_events_in_round) >= FULL_LOSS_CNT;
            if high_loss && ack.ack_sample.ca_state == CaState::Recovery && self.is_inflight_too_high(&ack.tx) {
                self.undo_mode = Some(Mode::Startup);
                self.end_startup_by_congestion();
            }
        }
    }

    /// Ends Startup because the path is more than full: the packets delivered in the round are the long-term bound.
    pub(super) fn end_startup_by_congestion(&mut self) {
        (self.full_bw.full_bw_now, self.full_bw.full_bw_reached) = (true, true);
        self.bounds.inflight_hi = self.estimated_bdp(self.max_bw()).max(self.congestion.inflight_latest);
    }

    pub(super) fn check_drain(&mut self, ack: &AckInfo<'_>, cx: &mut Context<'_>) {
        let by_short_term_model = self.rules.drain_by_short_term_model;
        let full_inflight = self.inflight(if by_short_term_model { self.bw() } else { self.max_bw() });
        if self.mode == Mode::Startup && self.full_bw.full_bw_reached {
            (self.mode, self.drain_start_round) = (Mode::Drain, self.round.round_count);
            self.ssthresh = full_inflight;
            if !by_short_term_model {
                self.congestion.reset();
            }
        }
        let rounds = self.round.round_count - self.drain_start_round;
        if self.mode == Mode::Drain && (ack.ack_sample.in_flight <= full_inflight || rounds > self.rules.drain_rounds) {
            self.start_probe_bw_down(cx);
        }
    }
}
