//! What an acknowledgement or a loss changes: the path's timers, and the events of its controller.

use super::TunnelPath;
use super::sent_packets::FragmentOutcomes;
use control::{CaState, Cause};
use sender::path::{AckedPackets, ControllerHandle, PriorState};
use units::{Instant, Rate};
use wire::frame::Ack;

impl TunnelPath {
    /// Handles the peer's acknowledgement of packets of this path. False if it is malformed.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack,
        outcomes: &mut FragmentOutcomes,
        controller: &mut ControllerHandle,
    ) -> bool {
        let prior = self.sender.prior_state(self.sent.in_flight);
        let before = outcomes.counts();
        let Some(acked) = self.sent.on_ack(now, ack, &mut self.sender, outcomes) else { return false };
        let [delivered, lost] = outcomes.counts_since(before);
        if delivered > 0 {
            self.validation.on_delivered(now);
            (self.pto_count, self.pto_start) = (0, now);
        }
        self.count_losses(now, lost, delivered);
        self.finish_ack(now, &prior, acked, controller);
        true
    }

    /// Notifies the controller of an acknowledgement or of losses: progress, the undo or the end of a recovery period,
    /// congestion, the sample.
    pub(super) fn finish_ack(
        &mut self,
        now: Instant,
        prior: &PriorState,
        mut acked: AckedPackets,
        controller: &mut ControllerHandle,
    ) {
        let outstanding = self.sent.outstanding();
        let largest_lost = self.sent.newest_lost.map(|(number, _)| number);
        if self.sender.ca_state() != CaState::Open || largest_lost.is_some() || acked.marked > 0 {
            self.sender.report_progress(now, prior, &acked, &outstanding, controller);
        }
        self.end_period(now, acked.marked > 0, controller);
        // No reaction to packets that were sent before the latest period (RFC 9002, section 7.3.1 and appendix B.6).
        if largest_lost.is_some_and(|lost| lost >= self.sender.high_seq()) {
            let by_timer = self.sender.delivered_since(prior) == 0;
            self.begin_period(now, Cause::Loss, by_timer, controller);
        } else if acked.marked > 0 && self.sender.ca_state() == CaState::Open {
            self.begin_period(now, Cause::EcnMark, false, controller);
        }
        acked.pkts_acked = self.sender.delivered_since(prior);
        acked.may_raise_cwnd = acked.pkts_acked > 0;
        if let Some(delivery) = self.sender.finish_ack(now, prior, &acked, &outstanding, controller) {
            self.delivery_rate = Rate::of(self.sent.sampled_bytes, delivery.interval);
            self.phantom_queue.on_delivery(now, self.delivery_rate, self.is_saturated(), self.srtt());
        }
        if self.sender.is_asked_to_reduce(controller) {
            self.begin_period(now, Cause::Requested, false, controller);
        }
    }

    /// Undoes the recovery period if all that it lost has arrived, or ends it once all that was sent before it is acknowledged or
    /// lost.
    fn end_period(&mut self, now: Instant, has_marks: bool, controller: &mut ControllerHandle) {
        let period = &mut self.sent.lost.period;
        if has_marks {
            period.keep();
        }
        if let Some(first) = period.take_spurious() {
            self.sender.undo_reduction(now, first, controller);
        }
        if self.sender.ca_state() != CaState::Open && self.sent.outstanding().snd_una >= self.sender.high_seq() {
            self.sender.leave_reduction(now, true, controller);
        }
    }

    fn begin_period(&mut self, now: Instant, cause: Cause, by_timer: bool, controller: &mut ControllerHandle) {
        let state = if cause == Cause::Loss { CaState::Recovery } else { CaState::Cwr };
        self.sender.enter_reduction(now, cause, by_timer, state, &self.sent.outstanding(), controller);
        self.sent.lost.period.begin(self.sender.high_seq(), cause == Cause::Loss);
    }
}

#[cfg(test)]
mod tests;
