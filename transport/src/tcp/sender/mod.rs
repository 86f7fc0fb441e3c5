//! The TCP sender. One input, then poll until [`Output::WaitUntil`].
//!
//! Files: `handshake`, `ack` (acknowledgements), `fast_retransmit` (the recovery state machine), `reno_sack` (recovery
//! without SACK), `undo`, `timers`, `transmit` (the next segment), `limit` (why none is sent), `tso` (super-segments),
//! `small_queue` (the host's own queue), `write_queue` (the data that the application has written). `subflow` has methods
//! for MPTCP. Behaviour: Linux 6.1 `tcp_input.c`, `tcp_output.c`, `tcp_recovery.c`; RFC 6675, 8985 (RACK-TLP), 6937 (PRR,
//! in the controllers' frame), 5682 (F-RTO), 2883/3708 (DSACK undo), 4015 (timestamp undo).

mod ack;
mod fast_retransmit;
mod handshake;
mod limit;
mod reno_sack;
mod small_queue;
mod subflow;
mod timers;
mod transmit;
mod tso;
mod undo;
mod write_queue;

use crate::path::{ControllerHandle, Outstanding, PathSender};
use crate::recovery::{Fack, Rack, Scoreboard};
use crate::tcp::segment::INITIAL_ACE;
use crate::tcp::{Ack, Segment};
use control::{CaState, Decision, LinuxRelease, RateSample};
use timers::Timers;
use undo::Undo;
use units::{Instant, PathId, Rate, Span};
pub use write_queue::SENT_OVERHEAD;
use write_queue::SHARED_INFO;

/// Configuration of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// The Linux release that the sender follows.
    pub release: LinuxRelease,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Size of a full segment with its headers, bytes.
    pub packet_bytes: u32,
    /// Memory for the headers of a packet, bytes (`MAX_TCP_HEADER`: 192 to 320, by the tunnels and wireless drivers for
    /// which a kernel is built).
    pub max_header: u32,
    /// Initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Whether RFC 7323 timestamps are used.
    pub timestamps: bool,
    /// Whether RFC 2018 selective acknowledgements are used. Without them, duplicate acknowledgements are counted
    /// (RFC 6582).
    pub sack: bool,
    /// Whether ECN echoes are answered (RFC 3168).
    pub ecn: bool,
    /// Whether marks are counted by the ACE field instead of echoes (RFC 9768).
    pub accurate_ecn: bool,
    /// Whether to pace even if the controller sets no rate, at Linux's 200 % (slow start) or 120 % of cwnd / SRTT.
    pub pacing: bool,
    /// Whether the application writes into buffers of several segments, so that new data leaves in super-segments, and
    /// less than one may wait (Linux `tcp_tso_should_defer`).
    pub tso: bool,
    /// Whether at most about a millisecond of the pacing rate waits in the host's own queue (Linux
    /// `tcp_small_queue_check`).
    pub small_queues: bool,
    /// Whether super-segments leave whole (TSO): the driver sends the segments joined by
    /// [`Sender::continues_super_segment`] as one packet.
    pub offload: bool,
    /// Maximum size of the send buffer, bytes (the third value of `tcp_wmem`).
    pub send_buffer: u64,
    /// Minimum size of the send buffer, bytes, as far as `send_buffer` allows (the second value of `tcp_wmem`).
    pub initial_send_buffer: u64,
    /// Bytes written and not sent at which the application waits, until half of them are sent (`tcp_notsent_lowat`);
    /// single path only.
    pub notsent_lowat: u64,
    /// Whether an idle path restarts from the initial window, and an unused window shrinks (RFC 2861;
    /// `tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Whether tail-loss probes are sent (RFC 8985 section 7; `tcp_early_retrans`).
    pub early_retrans: bool,
    /// Initial reordering degree, packets (`tcp_reordering`).
    pub reordering: u32,
    /// Maximum reordering degree, packets (`tcp_max_reordering`).
    pub max_reordering: u32,
    /// Loss detection and recovery.
    pub recovery: LossRecovery,
    /// Whether the connection is opened by a handshake. Without one, data is sent at once, as from ns-2's one-way
    /// agents.
    pub handshake: bool,
    /// Retransmission timeout before the first RTT sample (RFC 6298: 1 s).
    pub initial_rto: Span,
    /// Upper bound of the congestion window and of the outstanding packets, whatever the receiver offers, segments
    /// (Linux `snd_cwnd_clamp`, ns-2 `window_`).
    pub window_clamp: u32,
    /// The host's timer tick (Linux: 1/HZ).
    pub tick: Span,
}

impl SenderConfig {
    /// [`max_header`](Self::max_header) of a kernel with tunnels and without wireless drivers, as the 6.1 that was compared.
    pub const MAX_HEADER: u32 = 256;

    /// Average number of segments for which a send buffer of maximum size has room.
    #[must_use]
    pub fn send_buffer_segments(&self) -> u64 {
        (self.send_buffer / (u64::from(self.mss) + SENT_OVERHEAD)).max(2)
    }

    /// Memory of a buffer in addition to its payload, bytes: `sk_buff` and head (`SKB_TRUESIZE`). Since Linux 6.3 the
    /// head is from a cache of small heads, which have room for the headers of GRO (64 bytes more) and for
    /// `skb_shared_info`. The sent part of a buffer is a separate buffer.
    fn buffer_overhead(&self) -> u64 {
        let head = match self.release {
            LinuxRelease::V6_1 => 1024,
            LinuxRelease::V6_12 | LinuxRelease::V6_18 => u64::from(self.max_header) + 64 + SHARED_INFO,
        };
        256 + head
    }
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// As Linux 6.1: RACK-TLP (RFC 8985), proportional rate reduction, F-RTO, and undo of spurious reductions.
    Rack,
    /// As Linux before 3.2, as far as ns-2's TCP-Linux agents follow it: forward acknowledgement and rate halving,
    /// without probes, F-RTO and undo.
    Fack,
}

/// An input of a sender.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Opens the connection.
    Connect,
    /// An acknowledgement has arrived.
    Ack(&'a Ack),
    /// A deadline has passed. An early call does nothing.
    Timeout,
    /// The host's own queue has dropped the last polled segment (Linux: `NET_XMIT_DROP`).
    LocalDrop(Segment),
    /// The application writes data.
    Write {
        /// Number of segments. The sum saturates, so that `u64::MAX` is an endless stream.
        segments: u64,
        /// Bytes that the last of them lacks to one MSS.
        lacking: u32,
    },
    /// The application ends, and no new data is sent.
    Stop,
}

/// An output of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A segment to send.
    Transmit(Segment),
    /// Nothing to send until this instant or the next input.
    WaitUntil(Instant),
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data segments sent, including retransmissions.
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
    pub tlp_probes: u64,
    /// Losses that a tail-loss probe repaired.
    pub tlp_recoveries: u64,
    /// Number of times that the receiver reneged on its SACKs.
    pub renegings: u64,
    /// Retransmissions found lost.
    pub lost_retransmissions: u64,
    /// Duplicates reported by the receiver.
    pub duplicates: u64,
}

/// The sender of a TCP connection or of an MPTCP subflow. The controller is passed to the calls that may notify it of
/// events: [`SinglePathSender`](super::SinglePathSender) and an MPTCP connection own one.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    path: PathSender,
    scoreboard: Scoreboard,
    rack: Rack,
    /// Used instead of `rack` with [`LossRecovery::Fack`].
    fack: Option<Fack>,
    undo: Undo,
    timers: Timers,
    handshake: handshake::Handshake,
    transmit: transmit::Transmit,
    limits: limit::Limits,
    small_queue: small_queue::SmallQueue,
    /// Right edge of the receive window, bytes.
    snd_wnd_edge: u64,
    /// The receive window in the acknowledgement that last updated it, bytes.
    snd_wnd: u64,
    /// The receive window that header prediction expects, bytes.
    predicted_wnd: u64,
    /// Whether that is from the answer to the SYN, which the first acknowledgement updates.
    snd_wnd_is_syns: bool,
    /// The first segment beyond the receive window.
    snd_wnd_end: u64,
    write_seq: u64,
    write_queue: write_queue::WriteQueue,
    /// The end of the latest segment that carries less than one MSS (Linux `snd_sml`).
    snd_sml: Option<u64>,
    /// The SACK blocks of the previous acknowledgement, which need not be walked again.
    recv_sack_cache: crate::tcp::SackBlocks,
    ts_recent: u32,
    /// Time of the last answer to a discarded acknowledgement.
    answered_discarded: Option<Instant>,
    /// The ACE field of the latest acknowledgement (RFC 9768 `s.cep`, modulo 8).
    ace: u8,
    last_rtt: Option<Span>,
    last_delivery: Option<RateSample>,
    /// Linux's estimate of the rate, as of the latest acknowledgement.
    pacing_rate: Rate,
    /// Whether a burst without super-segments is one segment.
    paces_single_segments: bool,
    counters: SenderCounters,
}

impl Sender {
    /// The sender for `path`. It has nothing to send yet.
    #[must_use]
    pub fn new(config: SenderConfig, path: PathId) -> Self {
        let mut path = PathSender::new(path, config.initial_window, config.initial_rto);
        (path.slow_start_after_idle, path.tick) = (config.slow_start_after_idle, config.tick);
        Self {
            config,
            path,
            scoreboard: Scoreboard::default(),
            rack: Rack::new(config.reordering, config.max_reordering),
            fack: (config.recovery == LossRecovery::Fack).then(|| Fack::new(config.reordering)),
            undo: Undo::default(),
            timers: Timers::default(),
            handshake: handshake::Handshake::default(),
            transmit: transmit::Transmit::default(),
            limits: limit::Limits::default(),
            small_queue: small_queue::SmallQueue::default(),
            snd_wnd_edge: 0,
            snd_wnd: u64::MAX,
            predicted_wnd: u64::MAX,
            snd_wnd_is_syns: false,
            snd_wnd_end: 0,
            write_seq: 0,
            write_queue: write_queue::WriteQueue::default(),
            snd_sml: None,
            recv_sack_cache: crate::tcp::SackBlocks::default(),
            ts_recent: 0,
            answered_discarded: None,
            ace: INITIAL_ACE,
            last_rtt: None,
            last_delivery: None,
            pacing_rate: Rate(0),
            paces_single_segments: false,
            counters: SenderCounters::default(),
        }
    }

    /// Handles one input. Poll until [`Output::WaitUntil`] before the next one.
    #[inline]
    pub fn handle(&mut self, now: Instant, input: Input<'_>, controller: &mut ControllerHandle) {
        self.transmit.holds_new_data = false;
        self.transmit.has_tried_retransmission = false;
        self.timers.expired = None;
        match input {
            Input::Ack(ack) if ack.syn => self.on_handshake(now, ack, controller),
            Input::Ack(ack) => self.on_ack(now, ack, controller),
            Input::Timeout => {
                self.write_queue.push = write_queue::Push::Pending;
                self.on_timeout(now, controller);
            }
            Input::LocalDrop(segment) => self.on_local_drop(now, segment, controller),
            Input::Connect => self.connect(now, controller),
            Input::Write { segments, lacking } => self.on_write(segments, lacking),
            Input::Stop => {
                self.write_seq = self.write_seq.min(self.scoreboard.snd_nxt());
                self.write_queue.stop(self.write_seq);
            }
        }
    }

    /// From now on a paced sender without super-segments sends one segment at a time, as Linux does on a device that takes
    /// one (`gso_max_segs 1`), instead of bursts of two or more.
    pub(crate) fn pace_single_segments(&mut self) {
        self.paces_single_segments = true;
    }

    /// The controller's latest decision.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.path.decision
    }

    /// Congestion state (Linux `icsk_ca_state`).
    #[must_use]
    pub fn ca_state(&self) -> CaState {
        self.path.ca_state
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
        self.path.rtt.srtt()
    }

    /// The RTT sample of the latest acknowledgement, if there was one.
    #[must_use]
    pub fn last_rtt(&self) -> Option<Span> {
        self.last_rtt
    }

    /// The maximum reordering degree so far, packets.
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
    pub fn counters(&self) -> SenderCounters {
        SenderCounters { lost: self.path.lost(), marked: self.path.marked(), ..self.counters }
    }

    fn on_write(&mut self, segments: u64, lacking: u32) {
        self.add_write(self.write_seq.saturating_add(segments));
        if lacking > 0 {
            self.snd_sml = Some(self.write_seq);
            self.write_queue.add_small(self.write_seq, lacking, self.scoreboard.snd_una());
        }
    }

    fn outstanding(&self) -> Outstanding {
        let counts = self.scoreboard.counts();
        Outstanding {
            in_flight: counts.in_flight(),
            packets_out: counts.packets_out,
            sacked: counts.sacked_out,
            snd_una: self.scoreboard.snd_una(),
            snd_nxt: self.scoreboard.snd_nxt(),
        }
    }
}
