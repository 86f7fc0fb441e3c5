//! Events of a path. They are plain data, so that a trace can be stored, replayed, fuzzed and compared with a kernel's.

use units::{Instant, Rate, Span};

/// An event that a sender reports for a path to its controller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PathEvent {
    /// The path can be used from now on.
    PathUp(PathInfo),
    /// The path is gone; its window no longer counts.
    PathDown,
    /// The progress of an acknowledgement, before the events that it may cause; reported only if it may cause one. The
    /// following [`AckSample`] repeats it.
    AckProgress(AckProgress),
    /// An acknowledgement, after all other events that it causes.
    Ack(AckSample),
    /// Congestion: one event per episode, before the [`AckSample`] of the same acknowledgement.
    Congestion {
        /// The sign of congestion.
        cause: Cause,
        /// False for a timeout within an episode in which the window has already been reduced.
        reduce_cwnd: bool,
        /// Packets in flight, without the lost ones.
        in_flight: u32,
        /// Whether a timer, and not an acknowledgement, detected it.
        by_timer: bool,
    },
    /// The latest reduction was spurious, because the packets were late and not lost (Linux `tcp_undo_cwnd_reduction`).
    /// It ends the episode.
    SpuriousLoss,
    /// An episode of [`CaState::Cwr`] or [`CaState::Recovery`] is over.
    Recovered {
        /// Whether the window is set to the slow-start threshold; false if the episode was undone.
        to_ssthresh: bool,
    },
    /// The application writes after the path was idle for longer than the retransmission timeout, so that the window
    /// restarts (RFC 2861, Linux `CA_EVENT_CWND_RESTART`). Paths that do not see writes report it before the first
    /// packet.
    WindowRestart {
        /// Time since the last packet was sent.
        idle: Span,
        /// The retransmission timeout at that time.
        rto: Span,
    },
    /// A packet is sent while nothing is in flight (Linux `CA_EVENT_TX_START`).
    IdleRestart {
        /// Time since the last packet was sent.
        idle: Span,
        /// The retransmission timeout at that time; the maximum span if other packets are outstanding, all of them SACKed
        /// or lost, or if an idle period does not restart the window (Linux `tcp_slow_start_after_idle=0`).
        rto: Span,
        /// Whether the application had nothing to send (Linux `tp->app_limited`), rather than the pacer or a window
        /// holding data back.
        app_limited: bool,
    },
    /// The application left the window unused for a whole retransmission timeout (RFC 2861).
    ApplicationLimited {
        /// Maximum number of packets in flight in that time (Linux `snd_cwnd_used`).
        cwnd_used: u32,
    },
    /// The path blocks the others of its connection: halve its window (penalisation of Raiciu et al., NSDI 2012). It is
    /// not a sign of congestion.
    Penalise,
    /// The payload of a full packet changed.
    MssChanged {
        /// The new payload, bytes.
        mss: u32,
    },
}

/// Properties of a path that comes up. Later versions may add some, so start from [`PathInfo::DEFAULT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// Initial window, packets (RFC 6928: 10).
    pub initial_window: u32,
    /// RTT of the handshake, if there is one.
    pub rtt: Option<Span>,
    /// The host's timer tick (Linux: 1/HZ), the resolution of the clock of some algorithms.
    pub tick: Span,
    /// Maximum window, packets (Linux `snd_cwnd_clamp`).
    pub cwnd_clamp: u32,
    /// How a window is reduced to the threshold.
    pub reduction: Reduction,
    /// The Linux release that the host follows.
    pub release: LinuxRelease,
}

impl PathInfo {
    /// An Ethernet path of 1500 bytes: 1448 bytes of payload, 10 packets at first, no handshake, a tick of 1 ms, and no
    /// maximum that matters.
    pub const DEFAULT: Self = Self {
        mss: 1448,
        initial_window: 10,
        rtt: None,
        tick: Span::from_millis(1),
        cwnd_clamp: u32::MAX / 2,
        reduction: Reduction::Proportional,
        release: LinuxRelease::V6_1,
    };
}

/// Stable series of Linux in which senders or controllers behave differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinuxRelease {
    /// 6.1.
    #[default]
    V6_1,
    /// 6.12.
    V6_12,
    /// 6.18.
    V6_18,
}

/// How a window is reduced to the threshold in [`CaState::Cwr`] and [`CaState::Recovery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduction {
    /// Proportional rate reduction (RFC 9937; Linux since 3.2): ends at the threshold.
    #[default]
    Proportional,
    /// Rate halving (Mathis, Semke, Mahdavi and Lahey 1999; earlier Linux, and ns-2): one packet is sent for two
    /// delivered, even below the threshold; slow start then returns to it.
    Halving,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Packets were found lost from acknowledgements.
    Loss,
    /// The retransmission timer expired.
    Timeout,
    /// An ECN mark was echoed.
    EcnMark,
    /// The sender's own interface dropped a packet.
    LocalDrop,
    /// A tail-loss probe repaired a loss.
    TlpRecovery,
    /// The controller requested it ([`Controller::requests_reduction`](crate::Controller::requests_reduction)).
    Requested,
}

/// Congestion state of a sender, in the order of Linux `enum tcp_ca_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate or selective acknowledgements, nothing lost yet.
    Disorder,
    /// The window is being reduced without loss (ECN, local drop).
    Cwr,
    /// Fast retransmission.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The progress of an acknowledgement, as seen by Linux's `in_ack_event` and `pkts_acked`: after the RTT was measured,
/// before the congestion state changes. Counts are packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AckProgress {
    /// Newly delivered, cumulatively or selectively.
    pub acked: u32,
    /// Removed from the head of the send queue or newly SACKed: the argument of Linux's `pkts_acked`.
    pub pkts_acked: u32,
    /// Newly reported as CE-marked.
    pub marked: u32,
    /// In flight, before any packet is found lost.
    pub in_flight: u32,
    /// Delivered out of order and not cumulatively acknowledged (Linux `sacked_out`); zero on paths that count packets.
    pub sacked: u32,
    /// RTT of the newest packet that was acknowledged and never retransmitted.
    pub rtt: Option<Span>,
    /// Delay from sender to receiver of the newest packet delivered; `None` if the two do not share a clock.
    pub one_way_delay: Option<Span>,
    /// Cumulative acknowledgement number, packets.
    pub snd_una: u64,
    /// Number of the next new packet.
    pub snd_nxt: u64,
    /// Whether header prediction accepts it: it has the same window as the previous one, no SACK blocks, no echo, and
    /// no timestamp that another one has overtaken (Linux: without `CA_ACK_SLOWPATH`).
    pub is_predicted: bool,
}

/// Information from one acknowledgement (Linux `rate_sample` and `ack_sample`). Counts are packets. Later versions may
/// add fields, so start from the default.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct AckSample {
    /// Newly delivered, cumulatively or selectively.
    pub acked: u32,
    /// Removed from the head of the send queue or newly SACKed: the argument of Linux's `pkts_acked`.
    pub pkts_acked: u32,
    /// Newly marked lost.
    pub lost: u32,
    /// Newly reported as CE-marked: with ECN echoes, all packets that an acknowledgement with the echo delivers.
    pub marked: u32,
    /// Sent (first time or again) since the last acknowledgement, or since the episode began if that is later.
    pub sent: u32,
    /// In flight before this acknowledgement.
    pub prior_in_flight: u32,
    /// In flight now.
    pub in_flight: u32,
    /// As in [`AckProgress::sacked`].
    pub sacked: u32,
    /// Time at which the latest packet was sent.
    pub last_sent: Instant,
    /// The retransmission timeout (RFC 6298).
    pub rto: Span,
    /// Time until the pacer allows the next packet (Linux `tcp_wstamp_ns`, the earliest departure time); zero if it may
    /// leave now.
    pub until_departure: Span,
    /// RTT of the newest packet that was acknowledged and never retransmitted.
    pub rtt: Option<Span>,
    /// Smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Span,
    /// Minimum RTT in the connection's filter (5 minutes in Linux); [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// Delay from sender to receiver of the newest packet delivered; `None` if the two do not share a clock.
    pub one_way_delay: Option<Span>,
    /// The part of `rtt` that the acknowledgement spent in queues on the reverse path: its delay beyond that of the
    /// fastest one in the last 10 s. Zero if the receiver's clock is not known, as in TCP.
    pub return_queueing: Span,
    /// Delivery-rate sample, if this acknowledgement made a valid one.
    pub rate_sample: Option<RateSample>,
    /// Send state of the newest packet delivered; `None` if nothing was delivered or the sender does not record it.
    pub newest_delivered: Option<SendState>,
    /// Send state of the newest packet marked lost since the last acknowledgement, also by a timer.
    pub newest_lost: Option<SendState>,
    /// Packets ever delivered on this path, including these.
    pub delivered: u64,
    /// Cumulative acknowledgement number, packets.
    pub snd_una: u64,
    /// Number of the next new packet, before this acknowledgement releases any. A round trip ends when `snd_una` passes
    /// the `snd_nxt` of its start.
    pub snd_nxt: u64,
    /// Whether `snd_una` moved.
    pub una_advanced: bool,
    /// As in [`AckProgress::is_predicted`].
    pub is_predicted: bool,
    /// Whether the congestion window, not the application or the receiver, limited the last window of data (Linux
    /// `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether this acknowledgement may raise the window (Linux `tcp_may_raise_cwnd`: forward progress, or SACK
    /// progress once reordering was seen).
    pub may_raise_cwnd: bool,
    /// The state before this acknowledgement, as in Linux's `pkts_acked`.
    pub prior_ca_state: CaState,
    /// The state after this acknowledgement. Changes between Open and Disorder, and the end of Loss, have no event of
    /// their own: `set_state` follows from this field, after `pkts_acked`, as in Linux.
    pub ca_state: CaState,
}

impl AckSample {
    /// The progress of the acknowledgement.
    #[must_use]
    #[inline]
    pub fn progress(&self) -> AckProgress {
        let Self { acked, pkts_acked, marked, in_flight, sacked, rtt, one_way_delay, .. } = *self;
        let Self { snd_una, snd_nxt, is_predicted, .. } = *self;
        AckProgress { acked, pkts_acked, marked, in_flight, sacked, rtt, one_way_delay, snd_una, snd_nxt, is_predicted }
    }
}

/// State of a path when a packet was last sent, and counts since then (draft-ietf-ccwg-bbr: P.tx_in_flight, RS.lost).
/// Counts are packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SendState {
    /// In flight at that time, including this packet.
    pub tx_in_flight: u32,
    /// Marked lost since then, including by this acknowledgement.
    pub lost: u32,
    /// Reported as CE-marked since then, including by this acknowledgement.
    pub marked: u32,
    /// Whether the path was application-limited at that time.
    pub app_limited: bool,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation; Linux `rate_sample`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered over `interval`.
    pub delivered: u32,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Span,
    /// Packets delivered when the newest packet of this acknowledgement was sent.
    pub prior_delivered: u64,
    /// Whether the sample may be low because the path was application-limited.
    pub app_limited: bool,
    /// Whether the sample probably includes the wait for a delayed acknowledgement.
    pub ack_delayed: bool,
}

impl RateSample {
    /// The rate, with `mss` bytes per packet.
    #[must_use]
    #[inline]
    pub fn rate(&self, mss: u32) -> Rate {
        Rate::of(u64::from(self.delivered) * u64::from(mss), self.interval)
    }
}
