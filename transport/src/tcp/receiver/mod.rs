//! The TCP receiver: reassembly, SACK, delayed acknowledgements, receive window.
//!
//! Files: `reassembly` (the out-of-order queue), `sack_blocks`, `acknowledging`, `ack_policy` (the timing of
//! acknowledgements), `ecn_echo`, `receive_window` (buffer autotuning), `tuning` (its differences between kernels),
//! `super_segment` (segments that arrive as one packet). Behaviour: Linux 6.1 `tcp_input.c`; RFC 2018, 2883, 3168, 5681, 7323, 8257, 9768.

mod ack_policy;
mod acknowledging;
mod ecn_echo;
pub(crate) mod reassembly;
pub(crate) mod receive_window;
mod sack_blocks;
mod super_segment;
mod tuning;

use crate::tcp::segment::INITIAL_ACE;
use crate::tcp::{Ack, Segment, SegmentKind, timestamp};
use ack_policy::{AckPolicy, MAX_QUICKACKS};
use control::{Ecn, LinuxRelease};
use reassembly::Reassembly;
use receive_window::ReceiveWindow;
use sack_blocks::RecentBlocks;
use units::{Instant, Span};

/// Configuration of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes of a segment that options of MPTCP take, which the MSS of the handshake does not know of.
    pub option_bytes: u32,
    /// Whether RFC 7323 timestamps and PAWS are used.
    pub timestamps: bool,
    /// Whether RFC 2018 selective acknowledgements are sent.
    pub sack: bool,
    /// Whether every segment is acknowledged at once.
    pub quick_ack: bool,
    /// Generic receive offload: number of in-order segments merged before TCP sees them; 1 is off.
    pub gro: u32,
    /// `tcp_rmem`: initial and maximum receive buffer, bytes.
    pub buffer: [u64; 2],
    /// The Linux release that the receiver follows: how the window follows from the buffer, and the buffer from the
    /// read data.
    pub release: LinuxRelease,
    /// The way in which CE marks are echoed.
    pub ecn: Ecn,
    /// The host's timer tick (Linux: 1/HZ).
    pub tick: Span,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Data segments received, including duplicates.
    pub received: u64,
    /// Data segments that had already been received.
    pub duplicates: u64,
    /// Data segments rejected by PAWS (RFC 7323 section 5).
    pub paws_rejected: u64,
    /// Acknowledgements sent.
    pub acks: u64,
}

/// Segments accepted beyond the next one: a memory limit, larger than any window (RFC 7323 section 2.3: 2^30 bytes).
pub(crate) const MAX_OUT_OF_ORDER: u64 = 1 << 20;

/// Acknowledgements after which the application's process preempts the process (such as a tunnel) that delivers packets
/// to it. It then reads a packet with PSH before the next one of the same instant arrives. In captures of Linux on one
/// core there are 300 to more than 4000 of them; a new process is behind others in virtual runtime.
/// [`Receiver::set_preemption`] sets another number.
const ACKS_BEFORE_PREEMPTION: u64 = 1500;

/// Least time between answers to probes of the window (`tcp_invalid_ratelimit`).
const PROBE_INTERVAL: Span = Span::from_millis(500);

/// Number of SACK blocks that compressed acknowledgements may change. The third is the last that fits in addition to
/// timestamps.
const UNCOMPRESSED_BLOCKS: usize = 2;

/// The effect of an arrived segment on its acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct DataArrival {
    /// Whether it is acknowledged at once: an old segment, one outside of the window, or one that fills the last hole.
    acknowledge_now: bool,
    /// Whether it carries data that is new.
    is_new: bool,
    /// The acknowledgement that must be sent first.
    first_ack: Option<Ack>,
}

impl DataArrival {
    /// A segment without new data.
    const REFUSED: Self = Self { acknowledge_now: true, is_new: false, first_ack: None };
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    reassembly: Reassembly,
    blocks: RecentBlocks,
    ack_policy: AckPolicy,
    window: ReceiveWindow,
    /// The first segment that the application has not read; `None` if it reads at once.
    read: Option<u64>,
    /// Time at which the sleeping application runs; `None` if it runs at once.
    next_read: Option<Instant>,
    /// Acknowledgements after which the application preempts the process that delivers packets to it.
    preemption: u64,
    /// Time of the SYN; `None` if none has arrived or the handshake is over.
    syn: Option<Instant>,
    /// Whether the window is an MPTCP connection's.
    is_subflow: bool,
    /// Time of the latest probe of the window that was answered.
    last_probe: Option<Instant>,
    /// Timestamp to echo (RFC 7323 `TS.Recent`).
    ts_recent: u32,
    /// Cumulative acknowledgement last sent (`Last.ACK.sent`).
    last_ack_sent: u64,
    dsack: Option<(u64, u64)>,
    /// ECN echo to send; with accurate ECN, whether the latest segment was marked.
    ece: bool,
    /// CE-marked segments, modulo 8 (RFC 9768 `r.cep`), and those since the latest acknowledgement.
    ace: u8,
    marks_since_ack: u8,
    one_way_delay_ms: u32,
    counters: ReceiverCounters,
}

impl Receiver {
    /// A receiver that has received nothing.
    #[must_use]
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            config,
            reassembly: Reassembly::default(),
            blocks: RecentBlocks::default(),
            ack_policy: AckPolicy::new(&config),
            window: ReceiveWindow::new(&config),
            read: None,
            next_read: None,
            preemption: ACKS_BEFORE_PREEMPTION,
            syn: None,
            is_subflow: false,
            last_probe: None,
            ts_recent: 0,
            last_ack_sent: 0,
            dsack: None,
            ece: false,
            ace: INITIAL_ACE,
            marks_since_ack: 0,
            one_way_delay_ms: 0,
            counters: ReceiverCounters::default(),
        }
    }

    /// A receiver whose application reads when it calls [`read`](Self::read), instead of at once.
    #[must_use]
    pub fn with_reader(config: ReceiverConfig) -> Self {
        Self { read: Some(0), ..Self::new(config) }
    }

    /// A receiver of a subflow, whose window is an MPTCP connection's.
    pub(crate) fn of_subflow(config: ReceiverConfig) -> Self {
        Self { is_subflow: true, ..Self::new(config) }
    }

    /// Sets the time at which the sleeping application runs. It must be called before an arriving packet is handled. A
    /// packet with PSH is then acknowledged together with all that arrives until the application reads. The window is
    /// as if it read at once.
    pub fn set_next_read(&mut self, at: Instant) {
        self.next_read = Some(at);
    }

    /// Sets the number of acknowledgements after which the application preempts the process that delivers packets to
    /// it.
    pub fn set_preemption(&mut self, acks: u64) {
        self.preemption = acks;
    }

    /// Records that the application has read the segments below `read`, which have been delivered. Returns the
    /// acknowledgement to send at once: of segments, or of a window that has opened.
    pub fn read(&mut self, now: Instant, read: u64) -> Option<Ack> {
        let prior = self.read.replace(read).unwrap_or(0);
        // Linux measures after each packet; if the first does not end a measurement, the others do not either.
        if read > prior {
            self.window.on_read(now, prior + 1);
        }
        self.is_acknowledged_by_reading(read > prior).then(|| self.acknowledge(now))
    }

    /// Segments delivered in order that the application has not read.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.read.map_or(0, |read| self.reassembly.next() - read)
    }

    /// Handles an arriving segment; `ece` if it carries a CE mark. Returns the acknowledgement that must be sent at
    /// once. If two must, the second is [due](Self::deadline) now.
    pub fn handle(&mut self, now: Instant, segment: &Segment, ece: bool) -> Option<Ack> {
        match segment.kind {
            SegmentKind::Syn => {
                self.ts_recent = self.ts_recent.max(segment.tsval);
                // The RTT of a repeated SYN is not known (RFC 6298 section 3).
                self.syn = if self.counters.acks == 0 { Some(now) } else { None };
                // The window of a SYN is not scaled (RFC 7323 section 2.2).
                let window = self.window.offered(0).min(u64::from(u16::MAX));
                Some(Ack { syn: true, ..self.acknowledge_with(now, window) })
            }
            SegmentKind::HandshakeAck => {
                self.ts_recent = self.ts_recent.max(segment.tsval);
                self.establish(now);
                // Overtaken by acknowledged data, it is before the window (RFC 9293 section 3.10.7.4).
                (self.last_ack_sent > 0).then(|| self.acknowledge(now))
            }
            SegmentKind::Data => self.on_data(now, segment, ece),
            SegmentKind::WindowProbe => self.on_probe(now),
        }
    }

    /// Data arrives: the application has read what came before.
    fn begin_arrival(&mut self, now: Instant) {
        self.establish(now);
        self.window.finish_reading(now);
    }

    /// Answers a probe of the window, unless one was answered just before (Linux `tcp_oow_rate_limited`).
    fn on_probe(&mut self, now: Instant) -> Option<Ack> {
        let ticks = |at: Instant| at.0 / self.config.tick.0;
        let interval = PROBE_INTERVAL.0 / self.config.tick.0;
        if self.last_probe.is_some_and(|last| ticks(now) - ticks(last) < interval) {
            return None;
        }
        self.last_probe = Some(now);
        Some(self.acknowledge(now))
    }

    /// The third packet of the handshake arrives, or the first data.
    fn establish(&mut self, now: Instant) {
        if let Some(syn) = self.syn.take() {
            self.ack_policy.set_handshake_rtt(now.since(syn));
        }
        self.window.establish(now);
    }

    /// Time at which [`Receiver::on_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.ack_policy.deadline()
    }

    /// Handles an expired deadline: the delayed or compressed acknowledgement is sent. Early calls are harmless.
    pub fn on_timeout(&mut self, now: Instant) -> Option<Ack> {
        if self.ack_policy.deadline() > now {
            return None;
        }
        self.ack_policy.on_timeout(now);
        Some(self.acknowledge(now))
    }

    /// The acknowledgement that a data packet to the sender carries.
    pub fn piggyback(&mut self, now: Instant) -> Ack {
        self.acknowledge(now)
    }

    /// Segments delivered in order to the application.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.reassembly.next()
    }

    /// Segments out of order.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.reassembly.out_of_order()
    }

    /// The receive window, for an MPTCP connection.
    pub(crate) fn window_mut(&mut self) -> &mut ReceiveWindow {
        &mut self.window
    }

    /// The receiver's RTT estimate; zero before the first sample.
    pub(crate) fn rtt(&self) -> Span {
        self.window.rtt()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    #[inline(always)]
    fn on_data(&mut self, now: Instant, segment: &Segment, ece: bool) -> Option<Ack> {
        self.counters.received += 1;
        self.one_way_delay_ms = timestamp(now).saturating_sub(segment.tsval);
        self.begin_arrival(now);
        let prior_ack = self.update_ecn_echo(now, segment, ece);
        let arrival = self.insert(now, segment, false);
        self.acknowledge_arrival(now, prior_ack, arrival)
    }

    fn enter_quickack_mode(&mut self, acks: u32) {
        self.ack_policy.enter_quickack_mode(acks, self.offered_segments());
    }

    /// The window of the latest acknowledgement, segments.
    fn offered_segments(&self) -> u64 {
        self.window.offered(self.last_ack_sent) / u64::from(self.config.mss)
    }

    /// Adds a segment to the reassembly; `continues` if it arrived in one packet with the previous one.
    #[inline(always)]
    fn insert(&mut self, now: Instant, segment: &Segment, continues: bool) -> DataArrival {
        let next = self.reassembly.next();
        if self.paws_reject(segment) {
            self.counters.paws_rejected += 1;
            if segment.seq < next {
                self.set_dsack(segment.seq);
                self.enter_quickack_mode(MAX_QUICKACKS);
            }
            return DataArrival::REFUSED;
        }
        if segment.seq >= next + MAX_OUT_OF_ORDER || self.is_beyond_window(segment.seq) {
            return DataArrival::REFUSED;
        }
        if segment.seq + 1 >= self.last_ack_sent {
            self.window.measure_rtt(now, segment.tsecr);
            self.dsack = self.dsack.filter(|_| continues);
        }
        if self.is_at_edge(segment.seq) {
            self.enter_quickack_mode(MAX_QUICKACKS);
            return self.old_data(segment.seq);
        }
        if self.spans_left_edge(segment.seq) {
            self.ts_recent = self.ts_recent.max(segment.tsval);
        }
        if segment.seq < next {
            self.counters.duplicates += 1;
            self.set_dsack(segment.seq);
            self.enter_quickack_mode(MAX_QUICKACKS);
            return self.old_data(segment.seq + 1);
        }
        self.ack_policy.schedule();
        let is_new = self.reassembly.insert(segment.seq);
        if !is_new {
            self.counters.duplicates += 1;
            self.set_dsack(segment.seq);
        }
        let advanced = self.reassembly.next() > next;
        let mut first_ack = None;
        if advanced {
            self.blocks.remove_below(self.reassembly.next());
            if self.read.is_none() {
                self.window.enqueue(now, next..self.reassembly.next(), continues);
            }
            self.window.on_data(now, next + 1, self.last_ack_sent);
            let window = &self.window;
            let offered = || window.offered(self.last_ack_sent) / u64::from(self.config.mss);
            self.ack_policy.on_segment_in_order(now, segment.psh, offered);
        } else {
            // The new block would push an unreported one out of the option, so the compressed acknowledgement is sent
            // first (Linux since 5.8).
            if self.ack_policy.is_compressing() && self.blocks.position(segment.seq) >= UNCOMPRESSED_BLOCKS {
                first_ack = Some(self.acknowledge(now));
            }
            self.blocks.add(segment.seq);
        }
        // An out-of-order segment is charged only after the window has grown.
        let waiting = self.reassembly.out_of_order() + self.unread() - u64::from(is_new && !advanced);
        if is_new && (advanced || self.config.sack) && self.window.grow(now, waiting) {
            self.ack_policy.add_quickack();
        }
        if advanced && segment.seq + 1 < self.reassembly.next() && self.reassembly.is_empty() {
            self.ack_policy.hurry(); // the last hole is filled (RFC 5681 section 4.2)
        }
        DataArrival { acknowledge_now: false, is_new, first_ack }
    }

    /// The arrival of data that ends with `end` and is dropped. Within the window it is acknowledged as new data is, before
    /// it at once (RFC 9293 section 3.10.7.4).
    fn old_data(&mut self, end: u64) -> DataArrival {
        if end < self.last_ack_sent {
            return DataArrival::REFUSED;
        }
        self.ack_policy.schedule();
        DataArrival::default()
    }

    /// Whether a segment begins beyond the end of the offered window, so that it is refused (RFC 9293 section 3.10.7.4).
    fn is_beyond_window(&self, seq: u64) -> bool {
        !self.is_subflow && seq > self.reassembly.next() && self.start(seq) > self.window.edge()
    }

    /// Whether a segment begins where the offered window ends, so that it is dropped.
    fn is_at_edge(&self, seq: u64) -> bool {
        let (next, start, edge) = (self.reassembly.next(), self.start(seq), self.window.edge());
        !self.is_subflow && seq >= next && start >= edge && (seq == next || start == edge)
    }

    /// The first byte of a segment.
    fn start(&self, seq: u64) -> u64 {
        seq * u64::from(self.config.mss)
    }

    /// Reports a duplicate in the next acknowledgement (DSACK).
    fn set_dsack(&mut self, seq: u64) {
        self.dsack = Some((seq, seq + 1));
    }

    /// True if a segment spans `Last.ACK.sent` (RFC 7323 section 4.3). A completely older segment is outside of the
    /// window (RFC 9293 section 3.10.7.4) and does not update `TS.Recent`.
    fn spans_left_edge(&self, seq: u64) -> bool {
        seq <= self.last_ack_sent && self.last_ack_sent <= seq + 1
    }

    /// PAWS (RFC 7323 section 5): true if the timestamp is older than `TS.Recent` by more than the clock's granularity
    /// of 1 ms.
    fn paws_reject(&self, segment: &Segment) -> bool {
        self.config.timestamps && self.ts_recent > segment.tsval.saturating_add(1)
    }
}
