//! What loss and marks say: about a flight (was it too much?) and about a round (what was delivered nevertheless?).

use super::cycle::Mode;
use super::model::{Bounds, share};
use super::{Ack, Bbr3};
use crate::{AckSample, Context, RateSample, SendState};

/// Marks are too much above this share of what was delivered, in 1/256.
const TOO_MANY_MARKS: u32 = 128;

/// What happened to the packets in flight together with one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) in_flight: u32,
    pub(super) lost: u32,
    pub(super) marked: u32,
    pub(super) delivered: u32,
    pub(super) app_limited: bool,
}

/// The round of loss under way: it begins with the first loss, so that a round's signals are those of one flight.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Greatest rate and delivery of the round.
    rate: u64,
    pub(super) delivered: u32,
    /// A sample of a packet sent when this many were delivered ends the round.
    end: u64,
    /// This acknowledgement ended a round.
    pub(super) over: bool,
    pub(super) loss_in_round: bool,
    pub(super) mark_in_round: bool,
    /// Packets lost in the round, as far as acknowledgements said.
    lost: u32,
    /// Acknowledgements with loss in the round.
    pub(super) loss_events: u32,
}

impl Signals {
    /// The flight of the newest packet delivered; without the sender's notes, what was delivered and lost in its round.
    pub(super) fn flight(&self, sample: &AckSample, rs: Option<&RateSample>) -> Flight {
        let delivered = rs.map_or(0, |rs| rs.delivered);
        match sample.newest_delivered {
            Some(sent) => Flight { delivered, ..Flight::of(&sent) },
            None => Flight {
                in_flight: delivered + self.lost,
                lost: self.lost,
                marked: sample.marked,
                delivered,
                app_limited: rs.is_some_and(|rs| rs.app_limited),
            },
        }
    }

    /// What is known of a round that has nothing to do with the next mode.
    pub(super) fn reset(&mut self) {
        (self.loss_in_round, self.mark_in_round) = (false, false);
        (self.rate, self.delivered) = (0, 0);
    }
}

impl Flight {
    fn of(sent: &SendState) -> Self {
        let SendState { tx_in_flight: in_flight, lost, marked, app_limited } = *sent;
        Self { in_flight, lost, marked, delivered: 0, app_limited }
    }

    /// More than `threshold` (in 1/256) was lost.
    fn lost_too_much(&self, threshold: u32) -> bool {
        self.in_flight > 0 && self.lost > share(self.in_flight, threshold)
    }

    /// The packets in flight at which the losses crossed the threshold, the latest of them being `count` packets.
    pub(super) fn level(&self, count: u32, threshold: u32) -> u32 {
        let before = self.in_flight.saturating_sub(count);
        let lost_before = self.lost.saturating_sub(count);
        let budget = (u64::from(before) * u64::from(threshold)).div_ceil(256) as u32;
        before + budget.saturating_sub(lost_before) * 256 / (256 - threshold)
    }
}

impl Bbr3 {
    pub(super) fn is_too_much(&self, flight: &Flight) -> bool {
        let too_many_marks = self.ecn.eligible
            && flight.marked > 0
            && flight.delivered > 0
            && flight.marked > share(flight.delivered, TOO_MANY_MARKS);
        flight.lost_too_much(self.tuning.loss_threshold) || too_many_marks
    }

    /// Before anything else of an acknowledgement: losses begin a round of loss, and may end a probe.
    pub(super) fn note_losses(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        if sample.lost == 0 && sample.newest_lost.is_none() {
            return;
        }
        self.begin_loss_round();
        self.signals.lost += sample.lost;
        let flight = match &sample.newest_lost {
            Some(sent) => Flight::of(sent),
            None => self.signals.flight(sample, sample.rate_sample.as_ref()),
        };
        if self.cycle.probed && self.is_too_much(&flight) {
            // Of several losses the first one that is too much counts.
            let lost = flight.lost.min(share(flight.in_flight, self.tuning.loss_threshold) + 1);
            let level = Flight { lost, ..flight }.level(1, self.tuning.loss_threshold);
            self.on_too_much(level, flight.app_limited, cx);
        }
    }

    fn begin_loss_round(&mut self) {
        if !self.signals.loss_in_round {
            self.signals.end = self.delivered;
        }
        self.signals.loss_in_round = true;
    }

    /// A tail-loss probe repaired one loss, which nobody saw: as if it had been the last packet of the latest flight.
    pub(super) fn on_probe_repair(&mut self, cx: &mut Context<'_>) {
        self.begin_loss_round();
        let flight = Flight { in_flight: self.signals.delivered + 1, lost: 1, ..Flight::default() };
        if self.cycle.probed && self.is_too_much(&flight) {
            self.on_too_much(flight.in_flight, false, cx);
        }
    }

    /// Greatest delivery of the round, and whether the round is over.
    pub(super) fn update_latest(&mut self, ack: &Ack<'_>) {
        self.signals.over = false;
        let Some(rs) = &ack.rs else { return };
        self.signals.rate = self.signals.rate.max(ack.rate);
        self.signals.delivered = self.signals.delivered.max(rs.delivered);
        if rs.prior_delivered >= self.signals.end {
            self.signals.end = ack.sample.delivered;
            self.signals.over = true;
        }
    }

    /// The next round's delivery begins with this sample.
    pub(super) fn forget_latest(&mut self, ack: &Ack<'_>) {
        if let (true, Some(rs)) = (self.signals.over, &ack.rs) {
            (self.signals.rate, self.signals.delivered) = (ack.rate, rs.delivered);
        }
    }

    /// At the end of a round: the short-term bounds.
    pub(super) fn update_bounds(&mut self, ack: &Ack<'_>) {
        self.signals.loss_in_round |= ack.sample.lost > 0;
        if !self.signals.over {
            return;
        }
        if !self.mode.is_probing() {
            self.lower_bounds();
        }
        (self.signals.loss_in_round, self.signals.mark_in_round, self.signals.lost) = (false, false, 0);
    }

    /// A mode that probes for more expects loss; in any other it means that there is less.
    fn lower_bounds(&mut self) {
        let (loss, mark) = (self.signals.loss_in_round, self.signals.mark_in_round);
        if !(loss || mark) {
            return;
        }
        let (cwnd, greatest) = (self.cwnd, self.greatest_bandwidth());
        let Bounds { bandwidth, short, .. } = &mut self.bounds;
        if *short == Bounds::NONE.short {
            *short = cwnd;
        }
        let marked_down = if mark { share(*short, self.ecn.kept()) } else { u32::MAX };
        if loss {
            if *bandwidth == Bounds::NONE.bandwidth {
                *bandwidth = greatest;
            }
            let kept = (u128::from(*bandwidth) * u128::from(self.tuning.kept)) >> 8;
            *bandwidth = self.signals.rate.max(kept as u64).max(1);
            *short = self.signals.delivered.max(share(*short, self.tuning.kept));
        }
        *short = (*short).min(marked_down);
    }

    /// A flight of `level` packets was too much: once a probe, that is the long-term bound.
    pub(super) fn on_too_much(&mut self, level: u32, app_limited: bool, cx: &mut Context<'_>) {
        (self.cycle.too_much, self.cycle.probed) = (true, false);
        if !app_limited {
            self.bounds.long = level.max(share(self.target_in_flight(), self.tuning.kept));
        }
        if self.mode == Mode::Up {
            self.go_down(cx);
        }
    }
}
