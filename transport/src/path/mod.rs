//! The congestion-controlled sender of one path, the same for TCP, MPTCP's subflows and the tunnel's paths.
//!
//! [`PathSender`] measures the path (RTT, minimum RTT, delivery rate), paces, validates the congestion window, keeps
//! the congestion state, and notifies the controller of every event. An algorithm therefore sees the same quantities
//! everywhere. The machine knows which packets are outstanding, which are lost and what a timer means: sequence
//! numbers, SACK and RACK in TCP, packet numbers and RFC 9002's thresholds in the tunnel.
//!
//! # Order of calls
//!
//! A window that does not grow is nearly always a call that is missing here.
//!
//! 1. Once the path can carry packets: [`start`](PathSender::start).
//! 2. For each packet, while [`has_room`](PathSender::has_room) and once
//!    [`next_send_time`](PathSender::next_send_time) has come: [`before_send`](PathSender::before_send), then
//!    [`on_sent`](PathSender::on_sent), whose snapshot the machine keeps with the packet, then
//!    [`pace`](PathSender::pace) if the [decision](PathSender::decision) has a pacing rate.
//! 3. When nothing more is sent: [`mark_app_limited`](PathSender::mark_app_limited) if the application has no more
//!    data, and in any case [`validate_cwnd`](PathSender::validate_cwnd). Controllers do not raise a window that was
//!    not found full there.
//! 4. For each acknowledgement:
//!    1. [`prior_state`](PathSender::prior_state), before anything is counted.
//!    2. [`on_delivered`](PathSender::on_delivered) for each packet delivered, [`update_rtt`](PathSender::update_rtt)
//!       and [`update_min_rtt`](PathSender::update_min_rtt) with an RTT sample, and
//!       [`count_lost`](PathSender::count_lost) for packets found lost.
//!    3. [`report_progress`](PathSender::report_progress), if an episode is in progress or may begin.
//!    4. [`leave_reduction`](PathSender::leave_reduction) once all that was sent before the episode is acknowledged or
//!       lost, [`undo_reduction`](PathSender::undo_reduction) if its losses were spurious,
//!       [`enter_reduction`](PathSender::enter_reduction) for a loss or a mark that begins an episode.
//!    5. [`finish_ack`](PathSender::finish_ack), last.
//!    6. [`enter_reduction`](PathSender::enter_reduction) again, if the controller
//!       [asks for it](PathSender::is_asked_to_reduce).
//! 5. At a retransmission timeout: [`enter_loss`](PathSender::enter_loss), and [`leave_loss`](PathSender::leave_loss)
//!    once what was outstanding is acknowledged.
//!
//! A sender that numbers packets as QUIC does, in slow start, and after a loss:
//!
//! ```
//! use control::{CaState, Cause, PathInfo, registry};
//! use ropewalk_transport::path::{AckedPackets, ControllerHandle, Outstanding, PathSender};
//! use ropewalk_transport::recovery::SendSnapshot;
//! use std::collections::BTreeMap;
//! use units::{Instant, PathId, RngStream, Span};
//!
//! struct Sender {
//!     path: PathSender,
//!     controller: ControllerHandle,
//!     /// Packets in flight by number, each with its time of sending.
//!     packets: BTreeMap<u64, (Instant, SendSnapshot)>,
//!     next: u64,
//! }
//!
//! impl Sender {
//!     fn outstanding(&self) -> Outstanding {
//!         let in_flight = self.packets.len() as u32;
//!         let snd_una = self.packets.keys().next().copied().unwrap_or(self.next);
//!         Outstanding { in_flight, packets_out: in_flight, sacked: 0, snd_una, snd_nxt: self.next }
//!     }
//!
//!     fn send(&mut self, now: Instant) {
//!         while self.path.has_room(self.packets.len() as u32) && self.path.next_send_time() <= now {
//!             let in_flight = self.packets.len() as u32;
//!             self.path.before_send(now, in_flight, false, &mut self.controller);
//!             let snapshot = self.path.on_sent(now, in_flight > 0, in_flight + 1, 1);
//!             self.packets.insert(self.next, (now, snapshot));
//!             self.next += 1;
//!             if let Some(rate) = self.path.decision().pacing_rate {
//!                 self.path.pace(now, 1200, rate, 1200);
//!             }
//!         }
//!         self.path.validate_cwnd(now, &self.outstanding(), None, &mut self.controller);
//!     }
//!
//!     /// The peer has received all packets in flight but `lost`.
//!     fn acknowledge(&mut self, now: Instant, lost: Option<u64>) {
//!         let prior = self.path.prior_state(self.packets.len() as u32);
//!         let mut acked = AckedPackets { advanced: true, may_raise_cwnd: true, ..AckedPackets::default() };
//!         for (number, (sent, snapshot)) in std::mem::take(&mut self.packets) {
//!             if lost == Some(number) {
//!                 acked.newest_lost = Some(snapshot);
//!                 self.path.count_lost(1);
//!             } else {
//!                 self.path.on_delivered(&mut acked.rate_sample, number, sent, 1, &snapshot);
//!                 acked.pkts_acked += 1;
//!                 acked.rtt = Some(now.since(sent));
//!             }
//!         }
//!         let outstanding = self.outstanding();
//!         if let Some(rtt) = acked.rtt {
//!             self.path.update_rtt(rtt, outstanding.snd_una, outstanding.snd_nxt);
//!             self.path.update_min_rtt(now, rtt);
//!         }
//!         let (path, controller) = (&mut self.path, &mut self.controller);
//!         if lost.is_some() || path.ca_state() != CaState::Open {
//!             path.report_progress(now, &prior, &acked, &outstanding, controller);
//!         }
//!         if path.ca_state() != CaState::Open && outstanding.snd_una >= path.high_seq() {
//!             path.leave_reduction(now, true, controller);
//!         }
//!         if lost.is_some_and(|number| number >= path.high_seq()) {
//!             path.enter_reduction(now, Cause::Loss, false, CaState::Recovery, &outstanding, controller);
//!         }
//!         path.finish_ack(now, &prior, &acked, &outstanding, controller);
//!         if path.is_asked_to_reduce(controller) {
//!             path.enter_reduction(now, Cause::Requested, false, CaState::Cwr, &outstanding, controller);
//!         }
//!     }
//! }
//!
//! let reno = registry::find("reno").expect("built in").controller(&BTreeMap::new())?;
//! let mut sender = Sender {
//!     path: PathSender::new(PathId(0), 10, Span::from_secs(1)),
//!     controller: ControllerHandle { controller: Some(reno), rng: RngStream::named(1, "example") },
//!     packets: BTreeMap::new(),
//!     next: 0,
//! };
//! let mut now = Instant::ZERO;
//! sender.path.start(now, PathInfo { mss: 1200, ..PathInfo::DEFAULT }, &mut sender.controller);
//!
//! let mut windows = Vec::new();
//! for round in 0..8 {
//!     windows.push(sender.path.decision().cwnd);
//!     sender.send(now);
//!     now += Span::from_millis(20);
//!     let lost = (round == 3).then_some(sender.next - 1);
//!     sender.acknowledge(now, lost);
//! }
//! // Slow start doubles the window in each round trip. The loss halves it; from then on it grows by a packet.
//! assert_eq!(windows, [10, 20, 40, 80, 40, 41, 42, 43]);
//! # Ok::<(), control::ParamError>(())
//! ```

mod ack;
mod limited;
#[cfg(test)]
mod tests;

pub use ack::{AckedPackets, PriorState};
pub use limited::{Limit, LimitTimes, LimitedTimes};
pub(crate) use limited::{LimitTimer, SenderState};

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
#[derive(Clone, Debug)]
pub struct PathSender {
    id: PathId,
    pub(crate) decision: Decision,
    pub(crate) ca_state: CaState,
    /// `snd_nxt` when the current congestion state was entered; the state ends once it is acknowledged.
    pub(crate) high_seq: u64,
    pub(crate) rtt: RttEstimator,
    min_rtt: WindowedMin,
    pub(crate) rate: RateSampler,
    pub(crate) pacer: Pacer,
    cwnd_validation: CwndValidation,
    /// Packets sent since the last acknowledgement sample, or since the start of the reduction if that is later.
    pub(crate) sent_since_sample: u32,
    sent_since_validation: bool,
    last_sent: Instant,
    /// Whether the window restarts after an idle period, and shrinks while it is unused (RFC 2861).
    pub(crate) slow_start_after_idle: bool,
    /// The host's timer tick, the unit of idle times.
    pub(crate) tick: Span,
    pub(crate) lost: u64,
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
    pub fn update_min_rtt(&mut self, now: Instant, rtt: Span) {
        self.min_rtt.update(MIN_RTT_WINDOW, now, rtt);
    }

    /// Called before a packet is sent with `in_flight` packets in flight. If there are none, it notifies the
    /// controller. The path was idle unless packets are `outstanding`, all of them SACKed or lost (RFC 2861, Linux
    /// `tcp_cwnd_restart`, `tcp_event_data_sent`).
    pub fn before_send(&mut self, now: Instant, in_flight: u32, outstanding: bool, controller: &mut ControllerHandle) {
        if in_flight > 0 {
            return;
        }
        let idle = self.ticks_since(now, self.last_sent);
        let rto = if self.slow_start_after_idle && !outstanding { self.rto_in_ticks() } else { Span::MAX };
        if idle > rto {
            self.cwnd_validation.restart(now);
        }
        let app_limited = self.rate.is_app_limited();
        self.notify(now, &PathEvent::IdleRestart { idle, rto, app_limited }, controller);
    }

    /// The ticks of the host's timer between two times (Linux `tcp_jiffies32`).
    fn ticks_since(&self, now: Instant, then: Instant) -> Span {
        let tick = self.tick.0.max(1);
        Span((now.0 / tick - then.0 / tick) * tick)
    }

    /// The retransmission timeout in whole ticks, to which backoff applies (Linux `icsk_rto`).
    pub(crate) fn rto_in_ticks(&self) -> Span {
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
    pub(crate) fn burst_of_at_least(&self, packets: u32, rate: Rate, payload: u32) -> u32 {
        Pacer::burst(rate, self.min_rtt.get(), payload, packets)
    }

    /// Charges the pacer for a packet of `bytes`, sent at `send_time`. `payload` is the number of bytes per packet for
    /// the size of a burst.
    pub fn pace(&mut self, send_time: Instant, bytes: u32, rate: Rate, payload: u32) {
        let burst = self.burst(rate, payload);
        self.pace_burst_of(burst, send_time, bytes, rate);
    }

    /// As [`pace`](Self::pace), with a burst of `packets` if the packet begins one.
    pub(crate) fn pace_burst_of(&mut self, packets: u32, send_time: Instant, bytes: u32, rate: Rate) {
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
