//! The TCP receiver: reassembly, SACK, delayed acknowledgements, receive window.
//!
//! Split by concern: `reassembly` (what has arrived), `sack_blocks` (what to report), `ack_policy` (when to
//! acknowledge), `receive_window` (buffer autotuning). Behaviour: Linux 6.1 `tcp_input.c`; RFC 2018, 2883, 3168, 5681,
//! 7323, 8257.

mod ack_policy;
pub(crate) mod reassembly;
pub(crate) mod receive_window;
mod sack_blocks;

use crate::tcp::{Ack, SackBlocks, Segment, SegmentKind, timestamp};
use ack_policy::{AT_ONCE, MARK_QUICK, Policy, QUICK, Urgency};
use control::Ecn;
use reassembly::Reassembly;
use receive_window::ReceiveWindow;
use sack_blocks::RecentBlocks;
use units::Instant;

/// Configuration of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// RFC 7323 timestamps and PAWS are used.
    pub timestamps: bool,
    /// RFC 2018 selective acknowledgements are sent.
    pub sack: bool,
    /// Every segment is acknowledged at once.
    pub quick_ack: bool,
    /// Generic receive offload: in-order segments merged before TCP sees them; 1 is off.
    pub gro: u32,
    /// `tcp_rmem`: initial and greatest receive buffer, bytes.
    pub buffer: [u64; 2],
    /// How CE marks are echoed.
    pub ecn: Ecn,
    /// The host's timer tick (Linux: 1/HZ).
    pub tick: units::Span,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Data segments received, duplicates included.
    pub received: u64,
    /// Data segments that had already been received.
    pub duplicates: u64,
    /// Data segments discarded as older than what had been seen (PAWS).
    pub outdated: u64,
    /// Acknowledgements sent.
    pub acks: u64,
}

/// Segments accepted ahead of the next one. More is in no window (RFC 7323 section 2.3: 2^30 bytes at most), and to
/// remember it would cost memory without bound.
pub(crate) const MAX_AHEAD: u64 = 1 << 20;

/// SACK blocks that compressed acknowledgements may safely change: a third one is the last that fits beside timestamps.
const REPORTED_AT_ONCE: usize = 2;

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    reassembly: Reassembly,
    blocks: RecentBlocks,
    policy: Policy,
    window: ReceiveWindow,
    /// Timestamp to echo (RFC 7323 `TS.Recent`).
    recent: u32,
    /// Cumulative acknowledgement last sent (`Last.ACK.sent`).
    acked: u64,
    duplicate: Option<(u64, u64)>,
    /// ECN echo to send.
    marked: bool,
    one_way_ms: u32,
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
            policy: Policy::new(&config),
            window: ReceiveWindow::new(config.mss, config.buffer),
            recent: 0,
            acked: 0,
            duplicate: None,
            marked: false,
            one_way_ms: 0,
            counters: ReceiverCounters::default(),
        }
    }

    /// A segment arrived; `marked` if it carries a CE mark. Returns the acknowledgement that must leave at once. If two
    /// must, the second is [due](Self::deadline) now.
    pub fn handle(&mut self, now: Instant, segment: &Segment, marked: bool) -> Option<Ack> {
        match segment.kind {
            SegmentKind::Syn => {
                self.recent = self.recent.max(segment.tsval);
                Some(Ack { syn: true, ..self.acknowledge(now) })
            }
            SegmentKind::HandshakeAck => {
                self.recent = self.recent.max(segment.tsval);
                None
            }
            SegmentKind::Data => self.on_data(now, segment, marked),
        }
    }

    /// When [`Receiver::on_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.policy.deadline()
    }

    /// A deadline passed: the delayed or compressed acknowledgement leaves. Early calls are harmless.
    pub fn on_timeout(&mut self, now: Instant) -> Option<Ack> {
        (self.policy.deadline() <= now).then(|| self.acknowledge(now))
    }

    /// The acknowledgement that a data packet to the sender carries along.
    pub fn piggyback(&mut self, now: Instant) -> Ack {
        self.acknowledge(now)
    }

    /// Segments delivered in order to the application.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.reassembly.next()
    }

    /// Segments out of order: they wait for an earlier one.
    pub(crate) fn waiting(&self) -> u64 {
        self.reassembly.waiting()
    }

    /// The receiver's RTT estimate; zero before the first sample.
    pub(crate) fn rtt(&self) -> units::Span {
        self.window.rtt()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    fn on_data(&mut self, now: Instant, segment: &Segment, marked: bool) -> Option<Ack> {
        self.counters.received += 1;
        self.one_way_ms = timestamp(now).saturating_sub(segment.tsval);
        let before = self.echo(now, segment.cwr, marked);
        match (before, self.insert(now, segment)) {
            (None, (Urgency::Now, _)) => Some(self.acknowledge(now)),
            (Some(before), (Urgency::Now, _)) => {
                self.policy.expire(now);
                Some(before)
            }
            (before, (Urgency::Later, ahead)) => before.or(ahead),
        }
    }

    /// Updates the ECN echo: per packet (RFC 8257 section 3.2), where a change is acknowledged at once and a delayed
    /// acknowledgement leaves first with the old state; or until CWR arrives (RFC 3168 section 6.1.3).
    fn echo(&mut self, now: Instant, reduced: bool, marked: bool) -> Option<Ack> {
        if reduced {
            self.policy.quicken(AT_ONCE);
        }
        match self.config.ecn {
            Ecn::PerPacket if marked != self.marked => {
                let before = self.policy.is_waiting().then(|| self.acknowledge(now));
                self.marked = marked;
                self.policy.quicken(AT_ONCE);
                return before;
            }
            Ecn::PerPacket => {}
            Ecn::Classic => {
                self.marked &= !reduced;
                if marked && !self.marked {
                    self.marked = true;
                    self.policy.quicken(MARK_QUICK);
                }
            }
        }
        None
    }

    /// Puts a segment into the reassembly. Returns when to acknowledge it, and the acknowledgement that must leave
    /// before.
    fn insert(&mut self, now: Instant, segment: &Segment) -> (Urgency, Option<Ack>) {
        let next = self.reassembly.next();
        if self.is_outdated(segment) {
            self.counters.outdated += 1;
            if segment.seq < next {
                self.report(segment.seq);
                self.policy.quicken(QUICK);
            }
            return (Urgency::Now, None);
        }
        if segment.seq >= next + MAX_AHEAD {
            return (Urgency::Now, None);
        }
        if self.spans_left_edge(segment.seq) {
            self.recent = self.recent.max(segment.tsval);
        }
        if segment.seq < next {
            self.counters.duplicates += 1;
            self.report(segment.seq);
            self.policy.quicken(QUICK);
            return (Urgency::Now, None);
        }
        if !self.reassembly.insert(segment.seq) {
            self.counters.duplicates += 1;
            self.report(segment.seq);
        }
        let advanced = self.reassembly.next() > next;
        let mut ahead = None;
        if advanced {
            self.blocks.forget_below(self.reassembly.next());
            self.window.on_data(now, self.reassembly.next(), segment.tsecr);
        } else {
            // The new block would push an unreported one out of the option: that one is reported first (Linux since
            // 5.8).
            if self.policy.is_merging() && self.blocks.position(segment.seq) >= REPORTED_AT_ONCE {
                ahead = Some(self.acknowledge(now));
            }
            self.blocks.add(segment.seq);
        }
        let filled = advanced && segment.seq + 1 < self.reassembly.next() && self.reassembly.is_empty();
        let unacked = self.reassembly.next() - self.acked;
        let order = !self.reassembly.is_empty();
        let urgency = self.policy.on_data(now, unacked, order, filled, self.reassembly.next(), self.window.rtt());
        (urgency, ahead)
    }

    /// Reports a duplicate in the next acknowledgement (DSACK).
    fn report(&mut self, seq: u64) {
        self.duplicate = Some((seq, seq + 1));
    }

    /// True if a segment spans `Last.ACK.sent` (RFC 7323 section 4.3); a wholly older one is outside of the window (RFC
    /// 9293 section 3.10.7.4) and does not update `TS.Recent`.
    fn spans_left_edge(&self, seq: u64) -> bool {
        seq <= self.acked && self.acked <= seq + 1
    }

    /// PAWS (RFC 7323 section 5): the timestamp is older than `TS.Recent` by more than the clock's granularity of 1 ms.
    fn is_outdated(&self, segment: &Segment) -> bool {
        self.config.timestamps && self.recent > segment.tsval.saturating_add(1)
    }

    fn acknowledge(&mut self, now: Instant) -> Ack {
        let next = self.reassembly.next();
        self.acked = next;
        self.counters.acks += 1;
        self.policy.on_ack();
        let mut blocks = SackBlocks::default();
        if self.config.sack {
            if let Some(duplicate) = self.duplicate.take() {
                blocks.push(duplicate);
            }
            self.blocks.iter().for_each(|block| blocks.push(block));
        }
        Ack {
            syn: false,
            ack: next,
            receive_window: self.window.offer(next, self.reassembly.waiting()),
            tsval: timestamp(now),
            tsecr: self.recent,
            sack_blocks: blocks,
            ece: self.marked,
            one_way_ms: self.one_way_ms,
        }
    }
}
