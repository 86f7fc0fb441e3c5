//! The TCP sender. One input, then poll until [`Output::Until`].
//!
//! Split by concern: `handshake`, `ack` (acknowledgements), `fast_retransmit` (the recovery state machine), `reno_sack`
//! (recovery without SACK), `undo`, `timers`, `transmit` (what is sent next), `subflow` (methods for MPTCP).
//! Behaviour: Linux 6.1 `tcp_input.c`, `tcp_output.c`, `tcp_recovery.c`; RFC 6675, 8985 (RACK-TLP), 6937 (PRR, in the
//! controllers' frame), 5682 (F-RTO), 2883/3708 (DSACK undo), 4015 (timestamp undo).

mod ack;
mod fast_retransmit;
mod handshake;
mod reno_sack;
mod subflow;
mod timers;
mod transmit;
mod undo;

use crate::recovery::{
    CwndValidation, Fack, Pacer, Rack, RateSampler, RttEstimator, Scoreboard, SendTotals, WindowedMin,
};
use crate::tcp::{Ack, Segment};
use control::{AckSample, CaState, Context, Controller, Decision, PathEvent, RateSample};
use timers::Timers;
use undo::Undo;
use units::{Instant, PathId, Span, Stream};

/// Configuration of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Size of a full segment with its headers, bytes.
    pub packet_bytes: u32,
    /// Initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// RFC 7323 timestamps are used.
    pub timestamps: bool,
    /// RFC 2018 selective acknowledgements; without them duplicate acknowledgements are counted (RFC 6582).
    pub sack: bool,
    /// ECN echoes are answered (RFC 3168).
    pub ecn: bool,
    /// Paces even if the controller gives no rate, at Linux's 200 % (slow start) or 120 % of cwnd / SRTT.
    pub pacing: bool,
    /// Size of the send buffer, segments.
    pub send_buffer: u64,
    /// Initial reordering degree, packets (`tcp_reordering`).
    pub reordering: u32,
    /// Greatest reordering degree, packets (`tcp_max_reordering`).
    pub max_reordering: u32,
    /// Loss detection and recovery.
    pub recovery: LossRecovery,
    /// The connection is opened by a handshake; without one, data leaves at once, as from ns-2's one-way agents.
    pub handshake: bool,
    /// Retransmission timeout before the first RTT sample (RFC 6298: 1 s).
    pub initial_rto: Span,
    /// Upper bound of the congestion window and of the packets outstanding, whatever the receiver offers, segments (Linux
    /// `snd_cwnd_clamp`, ns-2 `window_`).
    pub max_window: u32,
    /// The host's timer tick (Linux: 1/HZ).
    pub tick: Span,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// As Linux 6.1: RACK-TLP (RFC 8985), proportional rate reduction, F-RTO, and undo of spurious reductions.
    Rack,
    /// As Linux before 3.2, as far as ns-2's TCP-Linux agents follow it: forward acknowledgement and rate halving, without
    /// probes, F-RTO and undo.
    Fack,
}

/// An input of a sender.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The connection is to be opened.
    Connect,
    /// An acknowledgement arrived.
    Ack(&'a Ack),
    /// A deadline passed. An early call does nothing.
    Timeout,
    /// The host's own queue refused the segment just polled (Linux: `NET_XMIT_DROP`).
    Refused(Segment),
    /// The application has written more data.
    Write {
        /// Segments; the sum saturates, so that `u64::MAX` is an endless stream.
        segments: u64,
        /// The last of them carries less than one MSS.
        runt: bool,
    },
    /// The application ends: no new data is sent.
    Stop,
}

/// An output of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A segment to send.
    Transmit(Segment),
    /// Nothing to send before this instant or the next input.
    Until(Instant),
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Data segments retransmitted.
    pub retransmitted: u64,
    /// Segments marked lost.
    pub lost: u64,
    /// Segments whose acknowledgement echoed a CE mark.
    pub marked: u64,
    /// Episodes of fast recovery.
    pub recoveries: u64,
    /// Episodes undone.
    pub undone: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Timeouts that F-RTO found to be spurious.
    pub spurious_timeouts: u64,
    /// Tail-loss probes.
    pub probes: u64,
    /// Losses that a tail-loss probe repaired.
    pub probe_repairs: u64,
    /// Times that the receiver reneged on its SACKs.
    pub renegings: u64,
    /// Retransmissions found lost.
    pub lost_retransmissions: u64,
    /// Duplicates reported by the receiver.
    pub duplicates: u64,
    /// Time for which the receive window limited the sender.
    pub receive_window_limited: Span,
    /// Time for which the send buffer limited the sender.
    pub send_buffer_limited: Span,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    path: PathId,
    /// A subflow has it only while it acts: the connection lends it.
    steering: Option<Box<Steering>>,
    decision: Decision,
    scoreboard: Scoreboard,
    rtt: RttEstimator,
    min_rtt: WindowedMin,
    rate: RateSampler,
    rack: Rack,
    /// Used instead of `rack` with [`LossRecovery::Fack`].
    fack: Option<Fack>,
    pacer: Pacer,
    cwnd_validation: CwndValidation,
    ca_state: CaState,
    /// `snd_nxt` when the present congestion state was entered.
    high_seq: u64,
    undo: Undo,
    timers: Timers,
    handshake: handshake::Handshake,
    transmit: transmit::Transmit,
    /// Right edge of the receive window, bytes.
    receive_window_edge: u64,
    /// The first segment beyond the receive window.
    receive_window_end: u64,
    write_seq: u64,
    /// The end of the latest segment that carries less than one MSS (Linux `snd_sml`).
    runt_end: Option<u64>,
    /// The SACK blocks of the previous acknowledgement, which need not be walked again.
    recv_sack_cache: crate::tcp::SackBlocks,
    sent_since_sample: u32,
    last_sent: Instant,
    ts_recent: u32,
    last_rtt: Option<Span>,
    last_delivery: Option<RateSample>,
    counters: SenderCounters,
}

/// A congestion controller and its luck.
#[derive(Debug)]
pub struct Steering {
    /// Of one path, or of all paths of an MPTCP connection.
    pub controller: Box<dyn Controller>,
    /// What it draws from.
    pub random: Stream,
}

impl Sender {
    /// A sender that is controlled by `controller` and draws its luck from `random`. It has nothing to send yet.
    #[must_use]
    pub fn new(config: SenderConfig, controller: Box<dyn Controller>, random: Stream) -> Self {
        Self { steering: Some(Box::new(Steering { controller, random })), ..Self::subflow(config, PathId(0)) }
    }

    /// The sender of a subflow, controlled by its connection's controller: see [`Sender::lend`].
    pub(crate) fn subflow(config: SenderConfig, path: PathId) -> Self {
        Self {
            config,
            path,
            steering: None,
            decision: Decision { cwnd: config.initial_window, ssthresh: units::INFINITE_SSTHRESH, pacing_rate: None },
            scoreboard: Scoreboard::default(),
            rtt: RttEstimator::new(config.initial_rto),
            min_rtt: WindowedMin::default(),
            rate: RateSampler::default(),
            rack: Rack::new(config.reordering, config.max_reordering),
            fack: (config.recovery == LossRecovery::Fack).then(|| Fack::new(config.reordering)),
            pacer: Pacer::default(),
            cwnd_validation: CwndValidation::default(),
            ca_state: CaState::Open,
            high_seq: 0,
            undo: Undo::default(),
            timers: Timers::default(),
            handshake: handshake::Handshake::default(),
            transmit: transmit::Transmit::default(),
            receive_window_edge: 0,
            receive_window_end: 0,
            write_seq: 0,
            runt_end: None,
            recv_sack_cache: crate::tcp::SackBlocks::default(),
            sent_since_sample: 0,
            last_sent: Instant::ZERO,
            ts_recent: 0,
            last_rtt: None,
            last_delivery: None,
            counters: SenderCounters::default(),
        }
    }

    /// Handles one input. Poll until [`Output::Until`] before the next one.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Ack(ack) if ack.syn => self.on_handshake(now, ack),
            Input::Ack(ack) => self.on_ack(now, ack),
            Input::Timeout => self.on_timeout(now),
            Input::Refused(segment) => self.on_refused(now, segment),
            Input::Connect => self.connect(now),
            Input::Write { segments, runt } => self.on_write(segments, runt),
            Input::Stop => self.write_seq = self.write_seq.min(self.scoreboard.snd_nxt()),
        }
    }

    /// The controller's latest decision.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Congestion state (Linux `icsk_ca_state`).
    #[must_use]
    pub fn ca_state(&self) -> CaState {
        self.ca_state
    }

    /// Packets in flight (RFC 6675's pipe).
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.scoreboard.counts().in_flight()
    }

    /// The scoreboard's packet counts.
    #[must_use]
    pub fn pipe(&self) -> crate::recovery::PacketCounts {
        self.scoreboard.counts()
    }

    /// Smoothed RTT; zero before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Span {
        self.rtt.srtt()
    }

    /// The RTT sample of the latest acknowledgement, if there was one.
    #[must_use]
    pub fn last_rtt(&self) -> Option<Span> {
        self.last_rtt
    }

    /// The greatest reordering degree seen, packets.
    #[must_use]
    pub fn reordering(&self) -> u32 {
        self.rack.reordering()
    }

    /// Segments cumulatively acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.scoreboard.snd_una()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    fn on_write(&mut self, segments: u64, runt: bool) {
        if self.scoreboard.snd_nxt() >= self.write_seq {
            self.check_app_limited();
        }
        self.write_seq = self.write_seq.saturating_add(segments);
        if runt {
            self.runt_end = Some(self.write_seq);
        }
    }

    fn notify(&mut self, now: Instant, event: &PathEvent) {
        let Steering { controller, random } = self.steering.as_deref_mut().expect("a sender acts with its controller");
        controller.on_event(self.path, event, &mut Context { now, rng: random });
        self.decision = controller.decision(self.path);
    }

    /// The totals of a packet's send snapshot, with `more` packets about to be in flight.
    fn totals(&self, more: u32) -> SendTotals {
        let SenderCounters { lost, marked, .. } = self.counters;
        SendTotals { in_flight: self.in_flight() + more, lost: lost as u32, marked: marked as u32 }
    }

    fn feedback(&self) -> AckSample {
        let slow_start = self.decision.cwnd < self.decision.ssthresh;
        AckSample {
            in_flight: self.in_flight(),
            srtt: self.rtt.srtt(),
            min_rtt: self.min_rtt.get(),
            delivered: self.rate.delivered(),
            snd_una: self.scoreboard.snd_una(),
            snd_nxt: self.scoreboard.snd_nxt(),
            cwnd_limited: self.cwnd_validation.is_cwnd_limited(self.decision.cwnd, slow_start),
            ca_state: self.ca_state,
            ..AckSample::default()
        }
    }
}
