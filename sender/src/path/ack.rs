//! The acknowledgement sample of a path for its controller.

use super::{ControllerHandle, Outstanding, PathSender};
use crate::recovery::{PendingRateSample, SendSnapshot};
use control::{AckProgress, AckSample, CaState, PathEvent, RateSample};
use units::{Instant, Span};

/// A path's state before an acknowledgement (Linux `tcp_ack`: `prior_in_flight`, `delivered`, `lost`).
#[derive(Clone, Copy, Debug)]
pub struct PriorState {
    delivered: u64,
    lost: u64,
    in_flight: u32,
    ca_state: CaState,
}

/// Results of an acknowledgement, or of the reordering timer, as the machine reports them.
#[derive(Clone, Debug, Default)]
pub struct AckedPackets {
    /// The newest packet delivered.
    pub rate_sample: PendingRateSample,
    /// Send snapshot of the newest packet marked lost.
    pub newest_lost: Option<SendSnapshot>,
    /// Packets newly reported as CE-marked.
    pub marked: u32,
    /// Packets removed from the head of the send queue or newly delivered, as in Linux's `pkts_acked`.
    pub pkts_acked: u32,
    /// As in [`AckProgress::is_predicted`].
    pub is_predicted: bool,
    /// RTT sample of the newest packet.
    pub rtt: Option<Span>,
    /// One-way delay of the newest packet, if both ends share a clock.
    pub one_way_delay: Option<Span>,
    /// As in [`AckSample::return_queueing`].
    pub return_queueing: Span,
    /// Whether `snd_una` moved.
    pub advanced: bool,
    /// Whether the acknowledgement may raise the congestion window.
    pub may_raise_cwnd: bool,
    /// Whether the receiver seems to have delayed the acknowledgement.
    pub ack_delayed: bool,
}

impl PathSender {
    /// The state before an acknowledgement is processed, with `in_flight` packets in flight.
    #[must_use]
    pub fn prior_state(&self, in_flight: u32) -> PriorState {
        PriorState { delivered: self.rate.delivered(), lost: self.lost, in_flight, ca_state: self.ca_state }
    }

    /// Packets newly delivered.
    #[must_use]
    pub fn delivered_since(&self, prior: &PriorState) -> u32 {
        (self.rate.delivered() - prior.delivered) as u32
    }

    /// Packets newly marked lost.
    #[must_use]
    pub fn lost_since(&self, prior: &PriorState) -> u32 {
        (self.lost - prior.lost) as u32
    }

    /// Reports the delivery of packet `seq`, which was sent at `sent` and counts as `segments` segments.
    pub fn on_delivered(
        &mut self,
        sample: &mut PendingRateSample,
        seq: u64,
        sent: Instant,
        segments: u32,
        snapshot: &SendSnapshot,
    ) {
        self.rate.count(segments);
        self.rate.on_delivered(sample, seq, sent, snapshot);
    }

    /// Reports the progress of an acknowledgement to the controller, before an episode begins or ends.
    #[inline(never)]
    pub fn report_progress(
        &mut self,
        now: Instant,
        prior: &PriorState,
        acked_packets: &AckedPackets,
        outstanding: &Outstanding,
        controller: &mut ControllerHandle,
    ) {
        let progress = AckProgress {
            acked: self.delivered_since(prior),
            pkts_acked: acked_packets.pkts_acked,
            marked: acked_packets.marked,
            in_flight: outstanding.in_flight,
            sacked: outstanding.sacked,
            rtt: acked_packets.rtt,
            one_way_delay: acked_packets.one_way_delay,
            snd_una: outstanding.snd_una,
            snd_nxt: outstanding.snd_nxt,
            is_predicted: acked_packets.is_predicted,
        };
        self.notify(now, &PathEvent::AckProgress(progress), controller);
    }

    /// Ends an acknowledgement: builds the sample and notifies the controller. Returns the delivery rate if it is
    /// valid.
    #[inline]
    pub fn finish_ack(
        &mut self,
        now: Instant,
        prior: &PriorState,
        acked_packets: &AckedPackets,
        outstanding: &Outstanding,
        controller: &mut ControllerHandle,
    ) -> Option<RateSample> {
        let AckedPackets { rate_sample, newest_lost, marked, .. } = acked_packets;
        if acked_packets.may_raise_cwnd && !matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
            self.cwnd_validation.renew(now);
        }
        let acked = self.delivered_since(prior);
        self.marked += u64::from(*marked);
        let totals = self.totals(outstanding.in_flight);
        let delivery = self.rate.finish(now, rate_sample, acked, self.min_rtt.get(), acked_packets.ack_delayed);
        let sample = AckSample {
            acked,
            pkts_acked: acked_packets.pkts_acked,
            lost: self.lost_since(prior),
            marked: *marked,
            sent: std::mem::take(&mut self.sent_since_sample),
            prior_in_flight: prior.in_flight,
            in_flight: outstanding.in_flight,
            sacked: outstanding.sacked,
            last_sent: self.last_sent,
            rto: self.rtt.rto(),
            until_departure: self.pacer.next_send_time().since(now),
            rtt: acked_packets.rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.min_rtt.get(),
            one_way_delay: acked_packets.one_way_delay,
            return_queueing: acked_packets.return_queueing,
            rate_sample: delivery,
            newest_delivered: rate_sample.newest().map(|snapshot| snapshot.sending(totals)),
            newest_lost: newest_lost.map(|snapshot| snapshot.sending(totals)),
            delivered: self.rate.delivered(),
            snd_una: outstanding.snd_una,
            snd_nxt: outstanding.snd_nxt,
            una_advanced: acked_packets.advanced,
            is_predicted: acked_packets.is_predicted,
            cwnd_limited: self.is_cwnd_limited(),
            may_raise_cwnd: acked_packets.may_raise_cwnd,
            prior_ca_state: prior.ca_state,
            ca_state: self.ca_state,
        };
        self.notify(now, &PathEvent::Ack(sample), controller);
        delivery
    }
}
