//! Startup and drain: whether the path has been filled.

use super::cycle::Mode;
use super::{Ack, Bbr3};
use crate::single::bbr::aggregation;
use crate::{CaState, Context};

/// Growth that shows that the pipe is not full, in 1/256...
const STILL_GROWING: u128 = 320;
/// ...and how many round trips without it show that it is.
const FLAT_ROUNDS: u32 = 3;
/// Acknowledgements with loss in one round that make its loss more than an accident.
const LOSS_EVENTS: u32 = 6;

/// Whether the path is full, and has ever been.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    bandwidth: u64,
    flat_rounds: u32,
    /// Full since the last restart.
    pub(super) now: bool,
    pub(super) reached: bool,
}

impl FullPipe {
    /// Counts flat rounds anew, against this bandwidth; what was reached stays.
    pub(super) fn restart(&mut self, bandwidth: u64) {
        *self = Self { bandwidth, reached: self.reached, ..Self::default() };
    }

    /// Excess acknowledgements of startup count for a short time only: the bandwidth still grows.
    pub(super) fn excess_rounds(&self) -> u32 {
        if self.reached { aggregation::SLOT_ROUNDS } else { 1 }
    }

    fn sample(&mut self, rate: u64, round: bool) {
        if u128::from(rate) >= (u128::from(self.bandwidth) * STILL_GROWING) >> 8 {
            self.restart(rate);
        } else if round {
            self.flat_rounds += 1;
            self.now = self.flat_rounds >= FLAT_ROUNDS;
            self.reached |= self.now;
        }
    }
}

impl Bbr3 {
    /// By plateau.
    pub(super) fn check_full_pipe(&mut self, ack: &Ack<'_>) {
        if ack.rs.is_some_and(|rs| !rs.app_limited) && !self.full_pipe.now {
            self.full_pipe.sample(ack.rate, self.round.begun);
        }
    }

    /// By loss: at the end of a round in recovery.
    pub(super) fn check_startup_loss(&mut self, ack: &Ack<'_>) {
        if self.full_pipe.reached {
            return;
        }
        self.signals.loss_events += u32::from(ack.sample.lost > 0);
        if self.signals.over {
            let lossy = std::mem::take(&mut self.signals.loss_events) >= LOSS_EVENTS;
            if lossy && ack.sample.ca_state == CaState::Recovery && self.is_too_much(&ack.flight) {
                self.end_startup_full();
            }
        }
    }

    /// The path is more than full: what it carried is the long-term bound.
    pub(super) fn end_startup_full(&mut self) {
        self.full_pipe.reached = true;
        self.bounds.long = self.in_flight_at(self.greatest_bandwidth()).max(self.signals.delivered);
    }

    pub(super) fn check_drain(&mut self, ack: &Ack<'_>, cx: &mut Context<'_>) {
        let full = self.in_flight_at(self.greatest_bandwidth());
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            self.ssthresh = full;
            self.signals.reset();
        }
        if self.mode == Mode::Drain && ack.sample.in_flight <= full {
            self.go_down(cx);
        }
    }
}
