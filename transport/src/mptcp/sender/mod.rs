//! The sending half. One input, then poll until [`Output::Until`].
//!
//! Split by concern: `send_queue` (the data), `subflow` (one subflow), `scheduling` (the scheduler's work: which subflow is given
//! what), `reinjection` (data sent again on another subflow), `membership` (subflows join and leave). This file routes.
//!
//! Behaviour: RFC 8684, and that of two Linux stacks where it leaves a choice ([`MptcpStack`]).

mod membership;
mod reinjection;
mod scheduling;
mod send_queue;
mod subflow;

use super::{Ack, Segment};
use crate::tcp;
use crate::tcp::sender::Steering;
use control::Controller;
use schedule::{Fill, PathView, Scheduler};
use send_queue::SendQueue;
use std::collections::VecDeque;
use subflow::Subflow;
pub use subflow::SubflowState;
use units::{Instant, Span, Stream};

/// The window that a subflow's sender is shown: what it may send is the connection's to say.
const UNLIMITED_WINDOW: u64 = 1 << 40;
/// Most subflows: who carries a segment is remembered in a bit each.
const MAX_SUBFLOWS: usize = 32;

/// How a sender is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// Every subflow's TCP. Its send buffer is the connection's.
    pub tcp: tcp::sender::SenderConfig,
    /// The subflows, 32 at most. The first opens the connection.
    pub subflows: Vec<SubflowConfig>,
    /// When data is sent again on another subflow.
    pub stack: MptcpStack,
    /// While the receive window or the send buffer is full: send the oldest data again on a faster subflow.
    pub opportunistic_retransmission: bool,
    /// And halve the window of the subflow that holds it.
    pub penalisation: bool,
}

/// How a subflow is set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowConfig {
    /// Used only while no other subflow can be.
    pub backup: bool,
    /// It joins this much after the connection was asked to open, and not before it is open.
    pub join: Span,
    /// It is removed this much after the connection was asked to open.
    pub leave: Option<Span>,
}

/// When data that one subflow carries is sent again on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MptcpStack {
    /// Linux 6.1 (`net/mptcp/protocol.c`): when the connection's own timer runs out, its oldest data; a subflow without
    /// progress over four such intervals is stale, and all outstanding data is sent again on the others.
    Upstream,
    /// The out-of-tree stack (v0.8x to v0.95): whatever a subflow had outstanding at its timeout, at once; that subflow is
    /// left out until something of it is acknowledged.
    OutOfTree,
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
    /// The host's own queue refused the segment just polled.
    Refused(Segment),
    /// The application has written so many segments more; more than `u64` holds counts as endless.
    Write(u64),
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

/// What a sender has counted, beside its subflows' own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Segments that the scheduler sent on one subflow although another carries them.
    pub copies: u64,
    /// Segments sent again on another subflow because theirs failed, went, or held up the window.
    pub reinjected: u64,
    /// Times that a slow subflow held up the window and something was done about it.
    pub blocked: u64,
    /// Time held back by the receive window.
    pub receive_window_limited: Span,
    /// Time held back by the send buffer.
    pub send_buffer_limited: Span,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    config: ConnectionConfig,
    subflows: Vec<Subflow>,
    steering: Option<Box<Steering>>,
    scheduler: Box<dyn Scheduler>,
    fill: Fill,
    queue: SendQueue,
    /// What the scheduler sees; right for all subflows that are not in `touched`.
    views: Vec<PathView>,
    /// Subflows of which something may have changed, and those that may have something to send: a bit each.
    touched: u32,
    restless: u32,
    /// The scheduler has had its say since the latest input.
    filled: bool,
    /// Data to be sent again.
    again: VecDeque<u64>,
    /// When the connection's own retransmission timer runs out.
    retransmission: Instant,
    /// When the window is to be asked after: nothing is outstanding whose acknowledgement would tell, and it is shut.
    persist: Instant,
    /// Times it was asked after.
    probes: u32,
    /// Right edge of the receive window, segments.
    window_end: u64,
    held: Option<(scheduling::Hold, Instant)>,
    connected: Option<Instant>,
    /// Of the data acknowledged since the last drain: from the send buffer to DATA_ACK, and what of it is beyond the
    /// greatest smoothed RTT.
    delays: Vec<(Span, Span)>,
    counters: ConnectionCounters,
}

impl Sender {
    /// A sender whose subflows are controlled by `controller` and given data by `scheduler`, whose packets wait as `fill`
    /// says. It has nothing to send yet.
    ///
    /// # Panics
    /// Without a subflow, or with more than 32.
    #[must_use]
    pub fn new(
        config: ConnectionConfig,
        controller: Box<dyn Controller>,
        random: Stream,
        scheduler: Box<dyn Scheduler>,
        fill: Fill,
    ) -> Self {
        assert!((1..=MAX_SUBFLOWS).contains(&config.subflows.len()), "1 to 32 subflows");
        let subflows = config.subflows.iter().enumerate();
        let subflows: Vec<Subflow> = subflows.map(|(index, it)| Subflow::new(*it, index, &config)).collect();
        Self {
            views: vec![PathView { open: false, active: false, ..PathView::unmeasured() }; subflows.len()],
            subflows,
            config,
            steering: Some(Box::new(Steering { controller, random })),
            scheduler,
            fill,
            queue: SendQueue::default(),
            touched: 0,
            restless: 0,
            filled: true,
            again: VecDeque::new(),
            retransmission: Instant::NEVER,
            persist: Instant::NEVER,
            probes: 0,
            window_end: 0,
            held: None,
            connected: None,
            delays: Vec::new(),
            counters: ConnectionCounters::default(),
        }
    }

    /// Takes one input. Poll until [`Output::Until`] before the next one.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Connect => self.connect(now),
            Input::Ack(ack) => self.on_ack(now, ack),
            Input::Timeout => self.on_timeout(now),
            Input::Refused(segment) => self.on_refused(now, &segment),
            Input::Write(segments) => self.queue.write(segments),
            Input::Stop => self.queue.stop(),
        }
        self.filled = false;
    }

    /// The next segment, or until when there is none.
    pub fn poll(&mut self, now: Instant) -> Output {
        if !std::mem::replace(&mut self.filled, true) {
            self.fill(now);
        }
        while self.restless != 0 {
            let index = self.restless.trailing_zeros() as usize;
            match self.act(index, |sender| sender.poll(now)) {
                tcp::Output::Transmit(tcp) => {
                    let (data, copy) = self.subflows[index].carried(&tcp);
                    return Output::Transmit(Segment { subflow: index as u16, tcp, data, copy });
                }
                tcp::Output::Until(deadline) => {
                    self.subflows[index].deadline = deadline;
                    self.restless &= !(1 << index);
                    self.note_open(now, index);
                }
            }
        }
        Output::Until(self.deadline())
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &ConnectionCounters {
        &self.counters
    }

    /// Subflows, by their numbers: their senders and where they stand.
    pub fn subflows(&self) -> impl ExactSizeIterator<Item = (&tcp::Sender, SubflowState)> {
        self.subflows.iter().map(|subflow| (&subflow.sender, subflow.state))
    }

    /// Times a subflow failed or went stale.
    #[must_use]
    pub fn failures(&self, subflow: usize) -> u64 {
        self.subflows[subflow].failures
    }

    /// Segments of data acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.queue.una()
    }

    /// Of each segment of data acknowledged since the last call: the time from the send buffer to its DATA_ACK, and what of
    /// it was beyond the greatest smoothed RTT of the subflows then.
    pub fn drain_delays(&mut self, mut to: impl FnMut(Span, Span)) {
        self.delays.drain(..).for_each(|(delay, beyond)| to(delay, beyond));
    }

    /// Lets a subflow act.
    #[inline]
    fn act<R>(&mut self, index: usize, act: impl FnOnce(&mut tcp::Sender) -> R) -> R {
        self.touched |= 1 << index;
        self.restless |= 1 << index;
        self.subflows[index].with(&mut self.steering, act)
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let index = usize::from(ack.subflow);
        let known = self.subflows.get(index).is_some_and(|subflow| subflow.state != SubflowState::Gone);
        if !known || ack.data > self.queue.next() {
            return; // from nowhere, or acknowledges what was never sent
        }
        let mss = u64::from(self.config.tcp.mss);
        self.window_end =
            self.window_end.max(ack.data.saturating_mul(mss).saturating_add(ack.tcp.receive_window) / mss);
        let tcp = tcp::Ack { receive_window: UNLIMITED_WINDOW, ..ack.tcp };
        self.act(index, |sender| sender.handle(now, tcp::Input::Ack(&tcp)));
        let subflow = &mut self.subflows[index];
        if subflow.note_ack() {
            subflow.failed = false;
        }
        if ack.data > self.queue.una() {
            self.on_data_ack(now, ack.data);
        }
    }

    fn on_data_ack(&mut self, now: Instant, data: u64) {
        let slowest = self.subflows.iter().filter(|subflow| subflow.state == SubflowState::Up);
        let slowest = slowest.map(|subflow| subflow.sender.srtt()).max().unwrap_or(Span::ZERO);
        let delays = &mut self.delays;
        self.queue.acknowledge(data, |record| {
            let delay = now.since(record.first);
            delays.push((delay, delay.saturating_sub(slowest)));
        });
        self.restart_timer(now);
    }

    fn on_timeout(&mut self, now: Instant) {
        self.on_life(now);
        for index in 0..self.subflows.len() {
            if self.subflows[index].deadline <= now {
                self.act(index, |sender| sender.handle(now, tcp::Input::Timeout));
                self.note_timeouts(index);
            }
        }
        if self.retransmission <= now {
            self.on_retransmission_timeout(now);
        }
        if self.persist <= now {
            self.probe_window(now);
        }
    }

    fn on_refused(&mut self, now: Instant, segment: &Segment) {
        let index = usize::from(segment.subflow);
        self.act(index, |sender| sender.handle(now, tcp::Input::Refused(segment.tcp)));
    }

    fn deadline(&self) -> Instant {
        let subflows = self.subflows.iter().map(|subflow| subflow.deadline).min().unwrap_or(Instant::NEVER);
        subflows.min(self.retransmission).min(self.persist).min(self.next_life())
    }
}
