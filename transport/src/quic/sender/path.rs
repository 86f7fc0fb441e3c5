//! The sender's state of a path: validation, packet-number space, timers and counters.

use super::sent_packets::{PacketOutcomes, SentPackets};
use super::{ConnectionConfig, PathConfig};
use crate::path::{ControllerHandle, LimitTimer, PathSender, PriorState};
use crate::quic::{PathAck, RttEstimator};
use control::common::WindowedMax;
use control::{CaState, Cause, LinuxRelease, PathEvent, PathInfo, Reduction};
use schedule::PathView;
use std::collections::VecDeque;
use units::{Instant, PathId, Rate, Span};

/// RTTs over which the maximum delivery rate is taken, as in BBR's filter.
const DELIVERY_RATE_ROUNDS: u64 = 10;
/// Packets sent at a probe timeout (RFC 9002, section 6.2.4: up to two).
const PROBES: u32 = 2;

/// State of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathState {
    /// Not opened yet.
    #[default]
    Waiting,
    /// The handshake packet, or PATH_CHALLENGE, has been sent.
    Validating,
    /// The path carries data.
    Up,
    /// Abandoned (PATH_ABANDON).
    Removed,
}

/// Counters of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets with data sent.
    pub sent: u64,
    /// Of these, packets with data that had been sent before.
    pub retransmitted: u64,
    /// Packets found lost.
    pub lost: u64,
    /// Packets declared lost that arrived late.
    pub spurious_losses: u64,
    /// Recovery periods, including those begun by a mark.
    pub recoveries: u64,
    /// Recovery periods undone.
    pub undone: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// Persistent congestions.
    pub persistent_congestions: u64,
    /// Number of times that the scheduler left the path out after a probe timeout.
    pub failures: u64,
}

/// An Initial packet or PATH_CHALLENGE, repeated until it is answered.
#[derive(Clone, Debug, Default)]
struct Validation {
    /// The send time of each transmission, by its number.
    sent: Vec<Instant>,
    deadline: Instant,
}

/// A chunk that waits at a path, and whether it had been sent before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub chunk: u64,
    pub is_again: bool,
}

#[derive(Debug)]
pub(super) struct Path {
    pub config: PathConfig,
    pub state: PathState,
    pub sender: PathSender,
    pub sent: SentPackets,
    pub rtt: RttEstimator,
    /// Chunks that the scheduler has assigned and the pacer has not yet released.
    pub waiting: VecDeque<Waiting>,
    /// Consecutive probe timeouts.
    pto_count: u32,
    pub probes_due: u32,
    /// Set after a probe timeout while another path is active. Until a packet is acknowledged, the path gets no data,
    /// and the data in flight is sent on other paths.
    pub is_suspect: bool,
    validation: Validation,
    /// All chunks below were assigned to the path, or no longer need it.
    pub cursor: u64,
    /// RTT sample of the latest acknowledgement.
    pub latest_sample: Option<Span>,
    delivery_rate: WindowedMax,
    round: u64,
    round_end: u64,
    pub counters: PathCounters,
    pub limits: LimitTimer,
    full_packet_bytes: u32,
    chunk_bytes: u32,
    is_always_paced: bool,
    undoes: bool,
}

impl Path {
    pub(super) fn new(config: PathConfig, index: usize, connection: &ConnectionConfig) -> Self {
        let rtt = RttEstimator::default();
        Self {
            config,
            state: PathState::Waiting,
            sender: PathSender::new(PathId(index as u16), connection.initial_window, rtt.pto(0)),
            sent: SentPackets::new(connection.adaptive_loss_thresholds),
            rtt,
            waiting: VecDeque::new(),
            pto_count: 0,
            probes_due: 0,
            is_suspect: false,
            validation: Validation { sent: Vec::new(), deadline: Instant::NEVER },
            cursor: 0,
            latest_sample: None,
            delivery_rate: WindowedMax::default(),
            round: 0,
            round_end: 0,
            counters: PathCounters::default(),
            limits: LimitTimer::default(),
            full_packet_bytes: connection.packet_bytes,
            chunk_bytes: connection.chunk_bytes,
            is_always_paced: connection.pacing,
            undoes: connection.undo,
        }
    }

    /// True if data may be assigned.
    pub(super) fn is_active(&self) -> bool {
        self.state == PathState::Up && !self.is_suspect
    }

    /// Begins the handshake or the validation.
    pub(super) fn open(&mut self, now: Instant) {
        self.state = PathState::Validating;
        self.validation.deadline = now;
    }

    /// The number of the Initial packet or PATH_CHALLENGE to send now, if any.
    pub(super) fn next_validation(&mut self, now: Instant) -> Option<u64> {
        if self.state != PathState::Validating || self.validation.deadline > now {
            return None;
        }
        let count = self.validation.sent.len();
        self.validation.sent.push(now);
        self.validation.deadline = now + self.rtt.handshake_pto(count as u32);
        Some(count as u64)
    }

    /// Handles the peer's answer: data may be sent. Only the RTT of the handshake is an RTT sample. That of a
    /// validation is the initial RTT (RFC 9002, section 6.2.2). False if there was no request.
    pub(super) fn on_validated(
        &mut self,
        now: Instant,
        number: u64,
        is_handshake: bool,
        connection: &ConnectionConfig,
        controller: &mut ControllerHandle,
    ) -> bool {
        let sent = self.validation.sent.get(usize::try_from(number).unwrap_or(usize::MAX));
        let (PathState::Validating, Some(sent)) = (self.state, sent) else { return false };
        let delay = Span(now.since(*sent).0.max(1));
        self.rtt = RttEstimator::with_initial_rtt(delay);
        if is_handshake {
            self.rtt.update(now, delay, Span::ZERO);
            self.sender.update_min_rtt(now, delay);
            self.sender.update_rtt(delay, 0, 0);
        }
        self.start(now, Some(delay), connection, controller);
        true
    }

    /// Brings the path up.
    pub(super) fn start(
        &mut self,
        now: Instant,
        rtt: Option<Span>,
        connection: &ConnectionConfig,
        controller: &mut ControllerHandle,
    ) {
        self.state = PathState::Up;
        self.validation.deadline = Instant::NEVER;
        let info = PathInfo {
            mss: self.chunk_bytes,
            initial_window: connection.initial_window,
            rtt,
            tick: connection.tick,
            cwnd_clamp: connection.cwnd_clamp,
            reduction: Reduction::Proportional,
            release: LinuxRelease::V6_18,
        };
        self.sender.start(now, info, controller);
    }

    /// Abandons the path. Returns its chunks.
    pub(super) fn abandon(&mut self, now: Instant, controller: &mut ControllerHandle) -> Vec<u64> {
        if self.state == PathState::Up {
            self.sender.notify(now, &PathEvent::PathDown, controller);
        }
        self.state = PathState::Removed;
        (self.probes_due, self.validation.deadline) = (0, Instant::NEVER);
        let mut chunks = self.sent.abandon(&mut self.sender);
        chunks.extend(self.waiting.drain(..).map(|waiting| waiting.chunk));
        chunks
    }

    /// True if the window and the pacer allow a packet now.
    pub(super) fn may_send(&self, now: Instant) -> bool {
        self.sender.has_room(self.sent.in_flight()) && self.sender.next_send_time() <= now
    }

    /// Sends a packet; returns its number.
    pub(super) fn send(
        &mut self,
        now: Instant,
        chunk: Option<u64>,
        is_again: bool,
        controller: &mut ControllerHandle,
    ) -> u64 {
        // Lost data of another path does not end an idle time of this one.
        let repairs = is_again && self.sender.ca_state() >= CaState::Recovery;
        self.sender.before_send(now, self.sent.in_flight(), repairs, controller);
        let number = self.sent.push(now, chunk, self.is_suspect, &mut self.sender);
        self.counters.sent += u64::from(chunk.is_some());
        self.counters.retransmitted += u64::from(is_again);
        if self.is_paced() {
            let rate = self.pacing_rate();
            // A controller's rate is of payload; the estimate from the window is of whole packets.
            let has_rate = self.sender.decision().pacing_rate.is_some();
            let bytes = if has_rate { self.chunk_bytes } else { self.full_packet_bytes };
            self.sender.pace(now, bytes, rate, self.chunk_bytes);
        }
        number
    }

    fn is_paced(&self) -> bool {
        self.sender.decision().pacing_rate.is_some() || self.is_always_paced
    }

    fn pacing_rate(&self) -> Rate {
        self.sender.pacing_rate(self.full_packet_bytes, self.sent.in_flight())
    }

    /// Handles an acknowledgement of the path's packets. False if it changes nothing.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: &PathAck,
        outcomes: &mut PacketOutcomes,
        controller: &mut ControllerHandle,
    ) -> bool {
        let prior = self.sender.prior_state(self.sent.in_flight());
        if !self.sent.on_ack(now, ack, &mut self.rtt, &mut self.sender, outcomes) {
            return false;
        }
        self.latest_sample = outcomes.acked.rtt;
        self.counters.spurious_losses += u64::from(outcomes.spurious_losses);
        if outcomes.acked_packets > 0 {
            (self.pto_count, self.probes_due, self.is_suspect) = (0, 0, false);
        }
        if outcomes.acked_packets > 0 || outcomes.lost_packets > 0 || outcomes.spurious_losses > 0 {
            self.finish_ack(now, &prior, outcomes, controller);
        }
        true
    }

    /// Notifies the controller: progress, the undo or the end of a recovery period, congestion, persistent congestion,
    /// the sample.
    fn finish_ack(
        &mut self,
        now: Instant,
        prior: &PriorState,
        outcomes: &mut PacketOutcomes,
        controller: &mut ControllerHandle,
    ) {
        self.counters.lost += u64::from(outcomes.lost_packets);
        outcomes.acked.pkts_acked = self.sender.delivered_since(prior);
        let outstanding = self.sent.outstanding();
        if outcomes.lost_packets > 0 || outcomes.acked.marked > 0 || self.sender.ca_state() != CaState::Open {
            self.sender.report_progress(now, prior, &outcomes.acked, &outstanding, controller);
        }
        let is_marked = outcomes.acked.marked > 0;
        if is_marked {
            self.sent.period.keep();
        }
        if let Some(first) = self.sent.period.take_spurious() {
            self.counters.undone += 1;
            self.sender.undo_reduction(now, first, controller);
        }
        let recovery_end = self.sender.high_seq();
        // RFC 9002, section 7.3.2: the period ends when a packet that was sent in it is acknowledged.
        if outcomes.largest_acked >= Some(recovery_end) {
            match self.sender.ca_state() {
                CaState::Cwr | CaState::Recovery => self.sender.leave_reduction(now, true, controller),
                CaState::Loss => self.sender.leave_loss(),
                CaState::Open | CaState::Disorder => {}
            }
        }
        // Appendix B.6: no reaction to packets that were sent before the latest period.
        let has_new_loss = outcomes.largest_lost.is_some_and(|lost| lost >= recovery_end);
        if has_new_loss {
            let by_timer = self.sender.delivered_since(prior) == 0;
            self.enter(now, Cause::Loss, by_timer, CaState::Recovery, controller);
            // A mark in the same acknowledgement is another sign of congestion.
            if is_marked {
                self.sent.period.keep();
            }
        } else if is_marked && outcomes.largest_acked >= Some(recovery_end) {
            self.enter(now, Cause::EcnMark, false, CaState::Cwr, controller);
        }
        if outcomes.is_persistent {
            self.counters.persistent_congestions += 1;
            self.sender.enter_loss(now, !has_new_loss, &outstanding, controller);
            self.sent.period.begin(self.sender.high_seq(), false);
        }
        let acked = &mut outcomes.acked;
        acked.may_raise_cwnd = acked.pkts_acked > 0;
        let delivery = self.sender.finish_ack(now, prior, acked, &outstanding, controller);
        if self.sender.is_asked_to_reduce(controller) {
            self.enter(now, Cause::Requested, false, CaState::Cwr, controller);
        }
        if outstanding.snd_una > self.round_end {
            self.round += 1;
            self.round_end = outstanding.snd_nxt;
        }
        if let Some(delivery) = delivery {
            let rate = delivery.rate(self.chunk_bytes).as_bits();
            if !delivery.app_limited || rate >= self.delivery_rate.get() {
                self.delivery_rate.update(DELIVERY_RATE_ROUNDS, self.round, rate);
            }
        }
    }

    fn enter(&mut self, now: Instant, cause: Cause, by_timer: bool, state: CaState, controller: &mut ControllerHandle) {
        self.counters.recoveries += 1;
        self.sender.enter_reduction(now, cause, by_timer, state, &self.sent.outstanding(), controller);
        self.sent.period.begin(self.sender.high_seq(), self.undoes && cause == Cause::Loss);
    }

    /// Expiry of the probe timer (RFC 9002, section 6.2.1): not while the loss timer runs.
    fn pto_deadline(&self) -> Instant {
        if self.sent.in_flight() == 0 || self.sent.loss_time() < Instant::NEVER || self.state != PathState::Up {
            return Instant::NEVER;
        }
        self.sent.latest_activity() + self.rtt.pto(self.pto_count)
    }

    /// Time at which [`on_timeout`](Self::on_timeout) is due, or a validation must be repeated.
    pub(super) fn deadline(&self) -> Instant {
        self.sent.loss_time().min(self.pto_deadline()).min(self.validation.deadline)
    }

    /// Handles expired timers. Returns whether the probe timer was among them.
    pub(super) fn on_timeout(
        &mut self,
        now: Instant,
        outcomes: &mut PacketOutcomes,
        controller: &mut ControllerHandle,
    ) -> bool {
        if self.sent.loss_time() <= now {
            let prior = self.sender.prior_state(self.sent.in_flight());
            self.sent.on_loss_timer(now, &self.rtt, &mut self.sender, outcomes);
            self.finish_ack(now, &prior, outcomes, controller);
            return false;
        }
        if self.pto_deadline() > now {
            return false;
        }
        self.pto_count += 1;
        self.probes_due = PROBES;
        self.counters.probe_timeouts += 1;
        true
    }

    /// The scheduler's view of the path.
    pub(super) fn view(&self) -> PathView {
        let decision = self.sender.decision();
        let mut view = PathView {
            has_room: false,
            active: self.is_active(),
            backup: self.config.backup,
            srtt: self.rtt.smoothed_rtt(),
            rttvar: self.rtt.rttvar(),
            cwnd: decision.cwnd,
            ssthresh: decision.ssthresh,
            in_flight: self.sent.in_flight(),
            queued: self.waiting.len() as u32,
            pacing_rate: self.pacing_rate(),
            delivery_rate: Rate(self.delivery_rate.get()),
            phantom_queue_delay: None,
            buffered_memory: None,
        };
        view.has_room = view.active && view.cwnd_space() > 0;
        view
    }
}
