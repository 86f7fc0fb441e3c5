//! Signals of loss and marks, for a flight (whether it was too large) and for a round (its deliveries).

use super::cycle::Mode;
use super::model::{Bounds, share};
use super::{AckInfo, Bbr3};
use crate::{AckSample, Context, RateSample, SendState};

/// Maximum fraction of marked packets, in 1/256.
const ECN_THRESH: u32 = 128;

/// Losses and marks among the packets in flight together with one packet (`RS.tx_in_flight`, `RS.lost`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TxRecord {
    pub(super) tx_in_flight: u32,
    pub(super) lost: u32,
    pub(super) marked: u32,
    /// Packets delivered over the interval of the rate sample.
    pub(super) delivered: u32,
    pub(super) app_limited: bool,
}

/// The current round of loss. It begins with the first loss, so that a round's signals are those of one flight.
#[derive(Debug, Default)]
pub(super) struct CongestionSignals {
    /// Maximum rate of the round, packets per microsecond times 2^24.
    bw_latest: u64,
    /// Maximum delivery of a rate sample of the round, packets.
    pub(super) inflight_latest: u32,
    /// The round ends with a sample of a packet that was sent after this many had been delivered.
    loss_round_delivered: u64,
    /// Whether this acknowledgement ended a round.
    pub(super) loss_round_start: bool,
    pub(super) loss_in_round: bool,
    pub(super) ecn_in_round: bool,
    /// Packets lost in the round, as acknowledgements reported.
    lost: u32,
    /// Acknowledgements with loss in the round.
    pub(super) loss_events_in_round: u32,
}

impl CongestionSignals {
    /// Send state of the newest packet delivered. If the sender does not record it, the packets delivered and lost in
    /// its round.
    pub(super) fn tx_record(&self, sample: &AckSample, rate_sample: Option<&RateSample>) -> TxRecord {
        let delivered = rate_sample.map_or(0, |rate_sample| rate_sample.delivered);
        match sample.newest_delivered {
            Some(sent) => TxRecord { delivered, ..TxRecord::of(&sent) },
            None => TxRecord {
                tx_in_flight: delivered + self.lost,
                lost: self.lost,
                marked: sample.marked,
                delivered,
                app_limited: rate_sample.is_some_and(|rate_sample| rate_sample.app_limited),
            },
        }
    }

    /// Resets the signals of the round at a change of mode.
    pub(super) fn reset(&mut self) {
        (self.loss_in_round, self.ecn_in_round) = (false, false);
        (self.bw_latest, self.inflight_latest) = (0, 0);
    }
}

impl TxRecord {
    fn of(sent: &SendState) -> Self {
        let SendState { tx_in_flight, lost, marked, app_limited } = *sent;
        Self { tx_in_flight, lost, marked, delivered: 0, app_limited }
    }

    /// The packets in flight at which the losses crossed the threshold; the latest loss is `count` packets.
    pub(super) fn inflight_hi_from_lost_packet(&self, count: u32, threshold: u32) -> u32 {
        let inflight_prev = self.tx_in_flight.saturating_sub(count);
        let lost_prev = self.lost.saturating_sub(count);
        let lost_budget = (u64::from(inflight_prev) * u64::from(threshold)).div_ceil(256) as u32;
        inflight_prev + lost_budget.saturating_sub(lost_prev) * 256 / (256 - threshold)
    }
}

impl Bbr3 {
    pub(super) fn is_inflight_too_high(&self, record: &TxRecord) -> bool {
        let ecn_too_high = self.ecn.ecn_eligible
            && record.marked > 0
            && record.delivered > 0
            && record.marked > share(record.delivered, ECN_THRESH);
        let loss_too_high = record.tx_in_flight > 0 && record.lost > self.constants.loss_budget(record.tx_in_flight);
        loss_too_high || ecn_too_high
    }

    /// Handles the losses of an acknowledgement, before everything else: they begin a round of loss, and may end a
    /// probe.
    pub(super) fn handle_lost_packets(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        if sample.lost == 0 && sample.newest_lost.is_none() {
            return;
        }
        self.begin_loss_round();
        self.congestion.lost += sample.lost;
        let record = match &sample.newest_lost {
            Some(sent) => TxRecord::of(sent),
            None => self.congestion.tx_record(sample, sample.rate_sample.as_ref()),
        };
        if self.cycle.prior_probe_ok && self.is_inflight_too_high(&record) {
            // If there are several losses, the first beyond the threshold counts.
            let lost = record.lost.min(self.constants.loss_budget(record.tx_in_flight) + 1);
            let inflight = TxRecord { lost, ..record }.inflight_hi_from_lost_packet(1, self.constants.loss_thresh);
            self.handle_inflight_too_high(inflight, record.app_limited, cx);
        }
    }

    fn begin_loss_round(&mut self) {
        if !self.congestion.loss_in_round {
            self.congestion.loss_round_delivered = self.delivered;
        }
        self.congestion.loss_in_round = true;
    }

    /// Handles a loss that a tail-loss probe repaired, as the loss of the last packet of the latest flight.
    pub(super) fn on_tlp_recovery(&mut self, cx: &mut Context<'_>) {
        self.begin_loss_round();
        let record = TxRecord { tx_in_flight: self.congestion.inflight_latest + 1, lost: 1, ..TxRecord::default() };
        if self.cycle.prior_probe_ok && self.is_inflight_too_high(&record) {
            self.handle_inflight_too_high(record.tx_in_flight, false, cx);
        }
    }

    /// Updates the maximum rate and delivery of the round, and whether the round is over.
    pub(super) fn update_latest_delivery_signals(&mut self, ack: &AckInfo<'_>) {
        self.congestion.loss_round_start = false;
        let Some(rate_sample) = &ack.rate_sample else { return };
        self.congestion.bw_latest = self.congestion.bw_latest.max(ack.rate);
        self.congestion.inflight_latest = self.congestion.inflight_latest.max(rate_sample.delivered);
        if rate_sample.prior_delivered >= self.congestion.loss_round_delivered {
            self.congestion.loss_round_delivered = ack.ack_sample.delivered;
            self.congestion.loss_round_start = true;
        }
    }

    /// Begins the next round's delivery signals with this sample.
    pub(super) fn advance_latest_delivery_signals(&mut self, ack: &AckInfo<'_>) {
        if let (true, Some(rate_sample)) = (self.congestion.loss_round_start, &ack.rate_sample) {
            (self.congestion.bw_latest, self.congestion.inflight_latest) = (ack.rate, rate_sample.delivered);
        }
    }

    /// Adapts the short-term bounds at the end of a round.
    pub(super) fn update_congestion_signals(&mut self, ack: &AckInfo<'_>) {
        self.congestion.loss_in_round |= ack.ack_sample.lost > 0;
        if !self.congestion.loss_round_start {
            return;
        }
        if !self.mode.is_probing_bw() {
            self.adapt_lower_bounds();
        }
        (self.congestion.loss_in_round, self.congestion.ecn_in_round, self.congestion.lost) = (false, false, 0);
    }

    /// Lowers the short-term bounds, except in a mode that probes for bandwidth.
    fn adapt_lower_bounds(&mut self) {
        let (loss, mark) = (self.congestion.loss_in_round, self.congestion.ecn_in_round);
        if !(loss || mark) {
            return;
        }
        let (cwnd, max_bw) = (self.cwnd, self.max_bw());
        let Bounds { bw_lo, inflight_lo, .. } = &mut self.bounds;
        if *inflight_lo == Bounds::NONE.inflight_lo {
            *inflight_lo = cwnd;
        }
        let ecn_inflight_lo = if mark { share(*inflight_lo, self.ecn.ecn_cut()) } else { u32::MAX };
        if loss {
            if *bw_lo == Bounds::NONE.bw_lo {
                *bw_lo = max_bw;
            }
            let reduced_bw_lo = (u128::from(*bw_lo) * u128::from(self.constants.beta)) >> 8;
            *bw_lo = self.congestion.bw_latest.max(reduced_bw_lo as u64).max(1);
            *inflight_lo = self.congestion.inflight_latest.max(share(*inflight_lo, self.constants.beta));
        }
        *inflight_lo = (*inflight_lo).min(ecn_inflight_lo);
    }

    /// Handles a flight of `inflight` packets that was too large: once per probe, it sets the long-term bound.
    pub(super) fn handle_inflight_too_high(&mut self, inflight: u32, app_limited: bool, cx: &mut Context<'_>) {
        (self.cycle.prior_probe_too_high, self.cycle.prior_probe_ok) = (true, false);
        if !app_limited {
            self.bounds.inflight_hi = inflight.max(share(self.target_inflight(), self.constants.beta));
        }
        if self.mode == Mode::ProbeBwUp {
            self.undo_mode = Some(Mode::ProbeBwUp);
            self.start_probe_bw_down(cx);
        }
    }
}
