//! The sending half. One input, then poll until [`Output::Until`].
//!
//! Split by concern: `handshake`, `ack` (what an acknowledgement says), `alert` (the recovery state machine),
//! `undo`, `timers`, `transmit` (what leaves next), `subflow` (what an MPTCP connection asks of it). This file routes.
//! Behaviour: Linux 6.1 `tcp_input.c`, `tcp_output.c`, `tcp_recovery.c`; RFC 6675, 8985 (RACK-TLP), 6937 (PRR, in the
//! controllers' frame), 5682 (F-RTO), 2883/3708 (DSACK undo), 4015 (timestamp undo).

mod ack;
mod alert;
mod handshake;
mod repeated;
mod subflow;
mod timers;
mod transmit;
mod undo;

use crate::recovery::{Fack, Pacer, Rack, RateSampler, RoundTrip, Scoreboard, Totals, WindowUse, WindowedMin};
use crate::tcp::{Ack, Segment};
use control::{Context, Controller, Decision, Delivery, Event, Feedback, Phase};
use timers::Timers;
use undo::Undo;
use units::{Instant, PathId, Span, Stream};

/// How a sender is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes of a segment on the path with its headers.
    pub packet: u32,
    /// Initial window, segments.
    pub initial_window: u32,
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// RFC 2018 selective acknowledgements; without them duplicate acknowledgements are counted (RFC 6582).
    pub sack: bool,
    /// Answer ECN echoes.
    pub ecn: bool,
    /// Pace even if the controller names no rate, at Linux's 200 % (slow start) or 120 % of window / SRTT.
    pub pacing: bool,
    /// Segments that fit into the send buffer.
    pub send_buffer: u64,
    /// `tcp_reordering`.
    pub reordering: u32,
    /// `tcp_max_reordering`.
    pub max_reordering: u32,
    /// How losses are found and answered.
    pub recovery: Recovery,
    /// The connection is opened by a handshake; without one, data leaves at once, as from ns-2's one-way agents.
    pub handshake: bool,
    /// Retransmission timeout before the first RTT sample.
    pub initial_timeout: Span,
    /// The greatest window, and most packets outstanding, whatever the receiver offers.
    pub window: u32,
    /// The host's timer tick (Linux: 1/HZ).
    pub tick: Span,
}

/// How losses are found and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// As Linux 6.1: RACK-TLP (RFC 8985), proportional rate reduction, F-RTO, and undo of what proves spurious.
    Rack,
    /// As Linux before 3.2, as far as ns-2's TCP-Linux agents follow it: forward acknowledgement and rate halving, and
    /// nothing of the other.
    Fack,
}

/// What a sender is told.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Open the connection.
    Connect,
    /// An acknowledgement arrived.
    Ack(&'a Ack),
    /// A deadline passed. Early calls are harmless.
    Timeout,
    /// The host's own queue refused the segment just polled (Linux: `NET_XMIT_DROP`).
    Refused(Segment),
    /// The application has written so many segments more.
    Write {
        /// Segments; more than `u64` holds counts as endless.
        segments: u64,
        /// The last of them carries less than the MSS.
        runt: bool,
    },
    /// The application ends: nothing new is sent.
    Stop,
}

/// What a sender wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this.
    Transmit(Segment),
    /// Nothing more before this instant or the next input.
    Until(Instant),
}

/// What a sender has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, first time or again.
    pub sent: u64,
    /// Data segments sent again.
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
    /// Times the receiver went back on its SACKs.
    pub renegings: u64,
    /// Retransmissions found lost.
    pub lost_retransmissions: u64,
    /// Duplicates reported by the receiver.
    pub duplicates: u64,
    /// Time held back by the receive window.
    pub receive_window_limited: Span,
    /// Time held back by the send buffer.
    pub send_buffer_limited: Span,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    path: PathId,
    /// A subflow has it only while it acts: the connection lends it.
    steering: Option<Box<Steering>>,
    decision: Decision,
    board: Scoreboard,
    round_trip: RoundTrip,
    min_rtt: WindowedMin,
    rate: RateSampler,
    rack: Rack,
    /// Instead of `rack`, which then learns nothing.
    fack: Option<Fack>,
    pacer: Pacer,
    usage: WindowUse,
    phase: Phase,
    /// `next` when the present phase was entered (Linux `high_seq`).
    high: u64,
    undo: Undo,
    timers: Timers,
    handshake: handshake::Handshake,
    transmit: transmit::Transmit,
    /// Right edge of the receive window, bytes.
    window_edge: u64,
    /// Segments that the receive window and the application allow.
    window_end: u64,
    available: u64,
    /// The end of the latest segment that carries less than the MSS.
    runt_end: Option<u64>,
    /// The blocks of the previous acknowledgement: what they covered is known.
    known_blocks: crate::tcp::Blocks,
    sent_since: u32,
    last_sent: Instant,
    echo: u32,
    last_rtt: Option<Span>,
    last_delivery: Option<Delivery>,
    counters: Counters,
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
    pub fn new(config: Config, controller: Box<dyn Controller>, random: Stream) -> Self {
        Self { steering: Some(Box::new(Steering { controller, random })), ..Self::subflow(config, PathId(0)) }
    }

    /// The sender of a subflow, controlled by its connection's controller: see [`Sender::lend`].
    pub(crate) fn subflow(config: Config, path: PathId) -> Self {
        Self {
            config,
            path,
            steering: None,
            decision: Decision { window: config.initial_window, threshold: control::NO_THRESHOLD, pacing: None },
            board: Scoreboard::default(),
            round_trip: RoundTrip::new(config.initial_timeout),
            min_rtt: WindowedMin::default(),
            rate: RateSampler::default(),
            rack: Rack::new(config.reordering, config.max_reordering),
            fack: (config.recovery == Recovery::Fack).then(|| Fack::new(config.reordering)),
            pacer: Pacer::default(),
            usage: WindowUse::default(),
            phase: Phase::Open,
            high: 0,
            undo: Undo::default(),
            timers: Timers::default(),
            handshake: handshake::Handshake::default(),
            transmit: transmit::Transmit::default(),
            window_edge: 0,
            window_end: 0,
            available: 0,
            runt_end: None,
            known_blocks: crate::tcp::Blocks::default(),
            sent_since: 0,
            last_sent: Instant::ZERO,
            echo: 0,
            last_rtt: None,
            last_delivery: None,
            counters: Counters::default(),
        }
    }

    /// Takes one input. Poll until [`Output::Until`] before the next one.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Ack(ack) if ack.handshake => self.on_handshake(now, ack),
            Input::Ack(ack) => self.on_ack(now, ack),
            Input::Timeout => self.on_timeout(now),
            Input::Refused(segment) => self.on_refused(now, segment),
            Input::Connect => self.connect(now),
            Input::Write { segments, runt } => self.on_write(segments, runt),
            Input::Stop => self.available = self.available.min(self.board.next()),
        }
    }

    /// What the controller allows now.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Where recovery stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Packets thought to be in the network.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.board.counts().in_flight()
    }

    /// What the pipe is made of.
    #[must_use]
    pub fn pipe(&self) -> crate::recovery::Counts {
        self.board.counts()
    }

    /// Smoothed RTT; zero before the first sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Span {
        self.round_trip.smoothed()
    }

    /// The RTT sample of the latest acknowledgement, if it gave one.
    #[must_use]
    pub fn last_rtt(&self) -> Option<Span> {
        self.last_rtt
    }

    /// The degree of reordering seen.
    #[must_use]
    pub fn reordering(&self) -> u32 {
        self.rack.reordering()
    }

    /// Segments cumulatively acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.board.una()
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn on_write(&mut self, segments: u64, runt: bool) {
        if self.board.next() >= self.available {
            self.note_starvation();
        }
        self.available = self.available.saturating_add(segments);
        if runt {
            self.runt_end = Some(self.available);
        }
    }

    fn notify(&mut self, now: Instant, event: &Event) {
        let Steering { controller, random } = self.steering.as_deref_mut().expect("a sender acts with its controller");
        controller.on_event(self.path, event, &mut Context { now, random });
        self.decision = controller.decision(self.path);
    }

    /// The counts that a packet remembers, with `more` about to be in flight.
    fn totals(&self, more: u32) -> Totals {
        let Counters { lost, marked, .. } = self.counters;
        Totals { in_flight: self.in_flight() + more, lost: lost as u32, marked: marked as u32 }
    }

    fn feedback(&self) -> Feedback {
        let slow_start = self.decision.window < self.decision.threshold;
        Feedback {
            in_flight: self.in_flight(),
            srtt: self.round_trip.smoothed(),
            min_rtt: self.min_rtt.get(),
            delivered: self.rate.delivered(),
            una: self.board.una(),
            next: self.board.next(),
            window_limited: self.usage.is_limited(self.decision.window, slow_start),
            phase: self.phase,
            ..Feedback::default()
        }
    }
}
