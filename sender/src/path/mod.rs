//! The congestion-controlled sender of one path, the same for TCP, MPTCP's subflows and the tunnel's paths.
//!
//! [`PathSender`] measures the path (RTT, minimum RTT, delivery rate), paces, validates the congestion window, keeps
//! the congestion state, and notifies the controller of every event. An algorithm therefore sees the same quantities
//! everywhere. The machine knows which packets are outstanding, which are lost and what a timer means: sequence
//! numbers, SACK and RACK in TCP, packet numbers and RFC 9002's thresholds in the tunnel.

mod ack;
mod limited;
#[cfg(test)]
mod tests;

pub use ack::{AckedPackets, PriorState};
pub use limited::{Limit, LimitTimer, LimitTimes, LimitedTimes, SenderState};

use crate::recovery::{CwndValidation, Pacer, RateSampler, RttEstimator, SendSnapshot, SendTotals, WindowedMin};
use control::{CaState, Cause, Context, Controller, Decision, PathEvent, PathInfo};
use units::{INFINITE_SSTHRESH, Instant, PathId, Rate, RngStream, Span};

/// Window of the minimum RTT filter (`tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);

/// The congestion controller of a connection or tunnel with its random stream. The connection owns it and passes it to
/// each call that may notify it of an event.
#[derive(Debug)]
pub struct ControllerHandle {
    /// The controller of all paths; `None` means sending without congestion control.
    pub controller: Option<Box<dyn Controller>>,
    /// The random stream that the controller draws from.
    pub rng: RngStream,
}

/// Packets outstanding on a path, as its machine knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Packets in the network: RFC 6675's pipe.
    pub in_flight: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of these, packets delivered out of order (Linux `sacked_out`); zero if delivered packets are no longer
    /// outstanding.
    pub sacked: u32,
    /// The oldest unacknowledged packet.
    pub snd_una: u64,
    /// The next new packet.
    pub snd_nxt: u64,
}

/// A limit of a sender other than a full congestion window and the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLimit {
    /// The congestion window has room for less than a super-segment; the sender waits for an acknowledgement.
    CongestionWindow,
    /// The queue of the sending host holds enough packets of the connection (Linux `TSQ_THROTTLED`).
    HostQueue,
    /// The receive window (Linux `TCP_CHRONO_RWND_LIMITED`).
    ReceiveWindow,
    /// The host's send buffer, while the application has more to send (Linux `TCP_CHRONO_SNDBUF_LIMITED`).
    SendBuffer,
}

/// The congestion-controlled sender of one path.
///
/// The methods are enough for a transport. The public fields are for machines that follow Linux's TCP step by step, as
/// `ropewalk-transport` does: they change a part of the state where the kernel does.
#[derive(Clone, Debug)]
pub struct PathSender {
    id: PathId,
    /// The controller's latest decision.
    pub decision: Decision,
    /// The congestion state (Linux `icsk_ca_state`).
    pub ca_state: CaState,
    /// `snd_nxt` when the current congestion state was entered; the state ends once it is acknowledged.
    pub high_seq: u64,
    /// SRTT, RTTVAR and RTO.
    pub rtt: RttEstimator,
    min_rtt: WindowedMin,
    /// Counts of delivered packets, and the delivery rate.
    pub rate: RateSampler,
    /// The pacer.
    pub pacer: Pacer,
    cwnd_validation: CwndValidation,
    /// Packets sent since the last acknowledgement sample, or since the start of the reduction if that is later.
    pub sent_since_sample: u32,
    sent_since_validation: bool,
    last_sent: Instant,
    /// Whether the window restarts after an idle period, and shrinks while it is unused (RFC 2861).
    pub slow_start_after_idle: bool,
    /// The host's timer tick, the unit of idle times.
    pub tick: Span,
    /// Packets marked lost so far.
    pub lost: u64,
    marked: u64,
}

impl PathSender {
    /// A sender that may have `cwnd` packets in flight until its controller makes a decision.
    #[must_use]
    pub fn new(id: PathId, cwnd: u32, initial_rto: Span) -> Self {
        Self {
            id,
            decision: Decision { cwnd, ssthresh: INFINITE_SSTHRESH, pacing_rate: None },
            ca_state: CaState::Open,
            high_seq: 0,
            rtt: RttEstimator::new(initial_rto),
            min_rtt: WindowedMin::default(),
            rate: RateSampler::default(),
            pacer: Pacer::default(),
            cwnd_validation: CwndValidation::default(),
            sent_since_sample: 0,
            sent_since_validation: false,
            last_sent: Instant::ZERO,
            slow_start_after_idle: true,
            tick: Span(1),
            lost: 0,
            marked: 0,
        }
    }

    /// The controller's latest decision.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The congestion state (Linux `icsk_ca_state`).
    #[must_use]
    pub fn ca_state(&self) -> CaState {
        self.ca_state
    }

    /// `snd_nxt` when the current congestion state was entered.
    #[must_use]
    pub fn high_seq(&self) -> u64 {
        self.high_seq
    }

    /// The RTT estimator.
    #[must_use]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The minimum RTT; [`Span::MAX`] before the first sample.
    #[must_use]
    pub fn min_rtt(&self) -> Span {
        self.min_rtt.get()
    }

    /// Packets delivered so far.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.rate.delivered()
    }

    /// Packets marked lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets reported as CE-marked so far.
    #[must_use]
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// Time at which the last packet was sent.
    #[must_use]
    pub fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// True if the congestion window has room for one more packet than `in_flight`.
    #[must_use]
    pub fn has_room(&self, in_flight: u32) -> bool {
        in_flight < self.decision.cwnd
    }

    /// Notifies the controller of an event and stores its decision.
    #[inline]
    pub fn notify(&mut self, now: Instant, event: &PathEvent, controller: &mut ControllerHandle) {
        let ControllerHandle { controller: Some(inner), rng } = controller else { return };
        inner.on_event(self.id, event, &mut Context { now, rng });
        self.decision = inner.decision(self.id);
    }

    /// Brings the path up: sending begins in the state Open.
    pub fn start(&mut self, now: Instant, info: PathInfo, controller: &mut ControllerHandle) {
        (self.ca_state, self.pacer, self.last_sent) = (CaState::Open, Pacer::default(), now);
        self.cwnd_validation.restart(now);
        self.notify(now, &PathEvent::PathUp(info), controller);
    }

    /// Resets the RTT estimates: a path that has failed may have a different RTT when it comes back.
    pub fn reset_rtt(&mut self) {
        (self.rtt, self.min_rtt) = (RttEstimator::default(), WindowedMin::default());
    }

    /// Restarts SRTT, RTTVAR and RTO with this sample.
    pub fn restart_rtt(&mut self, now: Instant, rtt: Span, snd_una: u64, snd_nxt: u64) {
        self.rtt = RttEstimator::default();
        self.update_rtt(rtt, snd_una, snd_nxt);
        self.update_min_rtt(now, rtt);
    }

    /// Adds an RTT sample to SRTT, RTTVAR and RTO.
    pub fn update_rtt(&mut self, rtt: Span, snd_una: u64, snd_nxt: u64) {
        self.rtt.update(rtt, snd_una, snd_nxt);
    }

    /// Adds an RTT sample to the minimum filter.
    #[inline]
    pub fn update_min_rtt(&mut self, now: Instant, rtt: Span) {
        self.min_rtt.update(MIN_RTT_WINDOW, now, rtt);
    }

    /// Called before a packet is sent with `in_flight` packets in flight, by a machine that does not see the
    /// application's writes: [`restart_after_idle`](Self::restart_after_idle) and [`begin_sending`](Self::begin_sending).
    /// The path was idle unless packets are `outstanding`, all of them SACKed or lost.
    pub fn before_send(&mut self, now: Instant, in_flight: u32, outstanding: bool, controller: &mut ControllerHandle) {
        if in_flight == 0 && !outstanding {
            self.restart_after_idle(now, self.rto_in_ticks(), controller);
        }
        self.begin_sending(now, in_flight, outstanding, controller);
    }

    /// Restarts the window if nothing was sent for longer than `rto`. Called when the application writes into an empty
    /// buffer while no packet is outstanding (RFC 2861, Linux `tcp_slow_start_after_idle_check`).
    pub fn restart_after_idle(&mut self, now: Instant, rto: Span, controller: &mut ControllerHandle) {
        let idle = self.ticks_since(now, self.last_sent);
        if self.slow_start_after_idle && idle > rto {
            self.cwnd_validation.restart(now);
            self.notify(now, &PathEvent::WindowRestart { idle, rto }, controller);
        }
    }

    /// Notifies the controller if a packet is sent with no packets in flight, although some may be `outstanding` (Linux
    /// `tcp_event_data_sent`).
    pub fn begin_sending(
        &mut self,
        now: Instant,
        in_flight: u32,
        outstanding: bool,
        controller: &mut ControllerHandle,
    ) {
        if in_flight > 0 {
            return;
        }
        let idle = self.ticks_since(now, self.last_sent);
        let rto = if self.slow_start_after_idle && !outstanding { self.rto_in_ticks() } else { Span::MAX };
        let app_limited = self.rate.is_app_limited();
        self.notify(now, &PathEvent::IdleRestart { idle, rto, app_limited }, controller);
    }

    /// The ticks of the host's timer between two times (Linux `tcp_jiffies32`).
    fn ticks_since(&self, now: Instant, then: Instant) -> Span {
        let tick = self.tick.0.max(1);
        Span((now.0 / tick - then.0 / tick) * tick)
    }

    /// The retransmission timeout in whole ticks, to which backoff applies (Linux `icsk_rto`).
    #[must_use]
    #[inline]
    pub fn rto_in_ticks(&self) -> Span {
        Span(self.rtt.rto().0.next_multiple_of(self.tick.0.max(1)))
    }

    /// Called when a packet that counts as `segments` segments is sent. `in_flight` includes it; `outstanding` says
    /// whether there are other packets outstanding. The returned snapshot must be stored with the packet.
    pub fn on_sent(&mut self, now: Instant, outstanding: bool, in_flight: u32, segments: u32) -> SendSnapshot {
        self.sent_since_sample += segments;
        self.sent_since_validation = true;
        self.last_sent = now;
        self.rate.on_sent(now, outstanding, self.totals(in_flight))
    }

    /// The controller's pacing rate, or otherwise Linux's (`sk_pacing_rate`): cwnd over SRTT, times 2 early in slow
    /// start and times 1.2 later (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`). Zero without an RTT sample.
    #[must_use]
    #[inline]
    pub fn pacing_rate(&self, packet_bytes: u32, packets_out: u32) -> Rate {
        self.decision.pacing_rate.unwrap_or_else(|| {
            let Decision { cwnd, ssthresh, .. } = self.decision;
            let percent = if cwnd < ssthresh / 2 { 200 } else { 120 };
            let bytes = u64::from(packet_bytes) * u64::from(cwnd.max(packets_out));
            Rate::of(bytes * percent / 100, self.rtt.srtt())
        })
    }

    /// Time at which the pacer allows the next packet.
    #[must_use]
    pub fn next_send_time(&self) -> Instant {
        self.pacer.next_send_time()
    }

    /// Packets per burst at `rate`, with `payload` bytes per packet.
    #[must_use]
    pub fn burst(&self, rate: Rate, payload: u32) -> u32 {
        self.burst_of_at_least(2, rate, payload)
    }

    /// As [`burst`](Self::burst), with at least `packets` packets.
    #[must_use]
    #[inline]
    pub fn burst_of_at_least(&self, packets: u32, rate: Rate, payload: u32) -> u32 {
        Pacer::burst(rate, self.min_rtt.get(), payload, packets)
    }

    /// Charges the pacer for a packet of `bytes`, sent at `send_time`. `payload` is the number of bytes per packet for
    /// the size of a burst.
    pub fn pace(&mut self, send_time: Instant, bytes: u32, rate: Rate, payload: u32) {
        let burst = self.burst(rate, payload);
        self.pace_burst_of(burst, send_time, bytes, rate);
    }

    /// As [`pace`](Self::pace), with a burst of `packets` if the packet begins one.
    pub fn pace_burst_of(&mut self, packets: u32, send_time: Instant, bytes: u32, rate: Rate) {
        self.pacer.on_sent(send_time, bytes, rate, packets);
    }

    /// Ends a burst, because there is nothing more to send.
    pub fn end_burst(&mut self) {
        self.pacer.end_burst();
    }

    /// Validates the congestion window after packets were sent (Linux `tcp_cwnd_validate`). Returns whether the window
    /// limits the sender now.
    #[inline]
    pub fn validate_cwnd(
        &mut self,
        now: Instant,
        outstanding: &Outstanding,
        limit: Option<SendLimit>,
        controller: &mut ControllerHandle,
    ) -> bool {
        let cwnd_full = limit == Some(SendLimit::CongestionWindow) || !self.has_room(outstanding.in_flight);
        if self.sent_since_validation || cwnd_full {
            let Outstanding { packets_out, snd_una, snd_nxt, .. } = *outstanding;
            self.cwnd_validation.on_sent(cwnd_full, packets_out, snd_una, snd_nxt);
            let is_cwnd_limited = self.is_cwnd_limited();
            if let Some(cwnd_used) =
                self.cwnd_validation.application_limited(now, is_cwnd_limited, packets_out, self.rtt.rto())
                && self.ca_state == CaState::Open
                && self.slow_start_after_idle
                && !matches!(limit, Some(SendLimit::SendBuffer | SendLimit::HostQueue))
            {
                self.notify(now, &PathEvent::ApplicationLimited { cwnd_used }, controller);
            }
        }
        self.sent_since_validation = false;
        cwnd_full
    }

    /// Marks delivery-rate samples as application-limited until the packets in flight are delivered.
    pub fn mark_app_limited(&mut self, in_flight: u32) {
        self.rate.mark_app_limited(in_flight);
    }

    #[inline]
    fn is_cwnd_limited(&self) -> bool {
        let slow_start = self.decision.cwnd < self.decision.ssthresh;
        self.cwnd_validation.is_cwnd_limited(self.decision.cwnd, slow_start)
    }

    /// Counts packets as lost.
    pub fn count_lost(&mut self, packets: u32) {
        self.lost += u64::from(packets);
    }

    /// Whether the controller asks for a reduction, which begins the state CWR. Called after
    /// [`finish_ack`](Self::finish_ack).
    #[must_use]
    #[inline]
    pub fn is_asked_to_reduce(&self, handle: &ControllerHandle) -> bool {
        self.ca_state < CaState::Cwr
            && handle.controller.as_ref().is_some_and(|controller| controller.requests_reduction(self.id))
    }

    /// Begins a window reduction in `state` (CWR or Recovery), or continues that of CWR (Linux
    /// `tcp_init_cwnd_reduction`). `by_timer` if the cause is not an acknowledgement.
    pub fn enter_reduction(
        &mut self,
        now: Instant,
        cause: Cause,
        by_timer: bool,
        state: CaState,
        outstanding: &Outstanding,
        controller: &mut ControllerHandle,
    ) {
        if self.ca_state != CaState::Cwr {
            self.high_seq = outstanding.snd_nxt;
            self.sent_since_sample = 0;
        }
        let in_flight = outstanding.in_flight;
        self.notify(now, &PathEvent::Congestion { cause, reduce_cwnd: true, in_flight, by_timer }, controller);
        self.ca_state = state;
    }

    /// Handles a retransmission timeout: enters the state Loss; `reduce_cwnd` if the window should be reduced (Linux
    /// `tcp_enter_loss`).
    pub fn enter_loss(
        &mut self,
        now: Instant,
        reduce_cwnd: bool,
        outstanding: &Outstanding,
        controller: &mut ControllerHandle,
    ) {
        self.high_seq = outstanding.snd_nxt;
        self.sent_since_sample = 0;
        self.cwnd_validation.renew(now);
        let in_flight = outstanding.in_flight;
        let cause = Cause::Timeout;
        self.notify(now, &PathEvent::Congestion { cause, reduce_cwnd, in_flight, by_timer: true }, controller);
        self.ca_state = CaState::Loss;
    }

    /// Ends a window reduction and returns to Open; `to_ssthresh` if the window becomes the threshold (Linux
    /// `tcp_end_cwnd_reduction`).
    pub fn leave_reduction(&mut self, now: Instant, to_ssthresh: bool, controller: &mut ControllerHandle) {
        self.ca_state = CaState::Open;
        self.cwnd_validation.renew(now);
        self.notify(now, &PathEvent::Recovered { to_ssthresh }, controller);
    }

    /// Undoes a reduction whose losses were spurious and returns to Open. Losses from packet `high_seq` on begin
    /// another reduction.
    pub fn undo_reduction(&mut self, now: Instant, high_seq: u64, controller: &mut ControllerHandle) {
        (self.ca_state, self.high_seq) = (CaState::Open, high_seq);
        self.cwnd_validation.renew(now);
        self.notify(now, &PathEvent::SpuriousLoss, controller);
    }

    /// Ends the state Loss and returns to Open.
    pub fn leave_loss(&mut self) {
        self.ca_state = CaState::Open;
    }

    fn totals(&self, in_flight: u32) -> SendTotals {
        SendTotals { in_flight, lost: self.lost as u32, marked: self.marked as u32 }
    }
}
