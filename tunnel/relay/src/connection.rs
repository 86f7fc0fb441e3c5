//! One relayed connection: its phase, its two byte streams, and its timers.

use crate::event::{Chunk, ConnectionStatus};
use crate::memory::Memory;
use crate::receive_stream::ReceiveStream;
use crate::send_stream::SendStream;
use units::{Instant, Span};
use wire::relay::{Addresses, Body};

/// Time without an answer after which an open message is sent again; it doubles each time.
const OPEN_TIMEOUT: Span = Span::from_secs(1);
/// Maximum number of open messages: a client gives up earlier (tcp_syn_retries).
const MAX_OPENS: u32 = 7;
/// Maximum delay of an acknowledgement.
const ACK_DELAY: Span = Span::from_millis(20);
/// Bytes after which an acknowledgement is not delayed.
const ACK_BYTES: u64 = 256 * 1024;
/// Silence after which an acknowledgement is sent as a probe: a peer that has lost the connection answers with a reset.
const PROBE_INTERVAL: Span = Span::from_secs(300);

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// This end has sent this many open messages, the latest one at that time.
    Opening(u32, Instant),
    /// The peer has opened it, and the driver connects to the server.
    Connecting,
    /// The server has accepted.
    Open,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection<C> {
    pub(crate) addresses: Addresses,
    pub(crate) phase: Phase,
    pub(crate) send: SendStream<C>,
    pub(crate) receive: ReceiveStream<C>,
    /// When the acknowledgement that is due will be sent; `NEVER` if none is due.
    ack_deadline: Instant,
    /// The offset acknowledged last.
    acknowledged: u64,
    /// When the last message of the peer arrived or the last acknowledgement was sent, whichever is later.
    last_heard: Instant,
    /// Whether a readable event is pending.
    pub(crate) is_readable: bool,
    /// Whether it is listed in the schedule.
    pub(crate) is_scheduled: bool,
    /// The timer that is set.
    pub(crate) timer: Instant,
}

impl<C: Chunk> Connection<C> {
    pub(crate) fn new(now: Instant, addresses: Addresses, phase: Phase) -> Self {
        Self {
            addresses,
            phase,
            send: SendStream::new(),
            receive: ReceiveStream::new(),
            ack_deadline: Instant::NEVER,
            acknowledged: 0,
            last_heard: now,
            is_readable: false,
            is_scheduled: false,
            timer: Instant::NEVER,
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(crate) fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Opening(opens, sent) => sent + OPEN_TIMEOUT * (1 << (opens - 1)),
            Phase::Connecting => Instant::NEVER,
            Phase::Open => self.send.deadline().min(self.ack_deadline).min(self.last_heard + PROBE_INTERVAL),
        }
    }

    /// Whether to send an open message again; `None` if an answer can no longer be expected.
    pub(crate) fn reopen(&mut self, now: Instant) -> Option<bool> {
        let Phase::Opening(opens, _) = self.phase else { return Some(false) };
        if now < self.deadline() {
            return Some(false);
        }
        self.phase = Phase::Opening(opens + 1, now);
        (opens < MAX_OPENS).then_some(true)
    }

    /// Handles the timers of an open connection. True if an acknowledgement is to be sent now.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        self.send.on_timeout(now);
        now >= self.ack_deadline.min(self.last_heard + PROBE_INTERVAL)
    }

    pub(crate) fn clear_ack_deadline(&mut self) {
        self.ack_deadline = Instant::NEVER;
    }

    pub(crate) fn on_heard(&mut self, now: Instant) {
        self.last_heard = now;
    }

    /// A segment arrived. True if it must be acknowledged now.
    pub(crate) fn needs_ack(&mut self, now: Instant, memory: &Memory) -> bool {
        let unacknowledged = self.receive.acknowledgement() - self.acknowledged;
        let gap = self.receive.gap_end() > self.receive.acknowledgement();
        if gap || unacknowledged >= ACK_BYTES || self.receive.is_complete() || self.receive.has_window_update(memory) {
            return true;
        }
        self.ack_deadline = self.ack_deadline.min(now + ACK_DELAY);
        false
    }

    /// The acknowledgement, which is sent now.
    pub(crate) fn ack(&mut self, now: Instant, memory: &Memory) -> Body {
        (self.ack_deadline, self.last_heard) = (Instant::NEVER, now);
        self.acknowledged = self.receive.acknowledgement();
        let window_end = self.receive.send_window(memory);
        Body::Ack { offset: self.acknowledged, window_end, gap_end: self.receive.gap_end() }
    }

    /// Whether both byte streams have ended, everything is acknowledged by the peer and consumed by the driver.
    pub(crate) fn is_complete(&self) -> bool {
        self.send.is_complete() && self.receive.is_finished()
    }

    pub(crate) fn status(&self) -> ConnectionStatus {
        ConnectionStatus {
            addresses: self.addresses,
            is_accepted: self.phase == Phase::Open,
            sent_bytes: self.send.acknowledged,
            received_bytes: self.receive.consumed,
            unacknowledged_bytes: self.send.end - self.send.acknowledged,
            unread_bytes: self.receive.unread(),
        }
    }
}
