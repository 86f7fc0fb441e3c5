//! The MPTCP sender. One input, then poll until [`Output::WaitUntil`].
//!
//! Files: `subflow`, `scheduling` (assignment of data to subflows), `send_buffer` (the data that the application has
//! written), `reinjection` (data sent again on another subflow), `membership` (subflows that join and leave), `limit` (why
//! nothing more is sent).
//!
//! Behaviour: RFC 8684, and two Linux stacks where the RFC leaves a choice ([`MptcpStack`]).

mod limit;
mod membership;
mod reinjection;
mod scheduling;
mod send_buffer;
mod subflow;

use super::{Ack, Segment};
use crate::path::ControllerHandle;
use crate::send_queue::SendQueue;
use crate::tcp;
use control::Controller;
use schedule::{Choices, Fill, PathView, Scheduler};
use std::collections::VecDeque;
use subflow::Subflow;
pub use subflow::SubflowState;
use units::{Instant, RngStream, Span};

/// Maximum number of subflows, because sets of subflows are bit masks.
const MAX_SUBFLOWS: usize = 32;

/// Bit mask of the subflows that have failed since a segment was assigned to them, so that it needs a reinjection.
#[derive(Clone, Copy, Debug, Default)]
struct FailedSubflows(u32);

impl FailedSubflows {
    /// Adds a subflow. False if it was already in the set.
    fn insert(&mut self, index: usize) -> bool {
        let is_new = self.0 & (1 << index) == 0;
        self.0 |= 1 << index;
        is_new
    }

    fn remove(&mut self, index: usize) {
        self.0 &= !(1 << index);
    }
}

/// Configuration of an MPTCP sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// Configuration of every subflow's TCP; its send buffer is the connection's.
    pub tcp: tcp::sender::SenderConfig,
    /// The subflows, at most 32. The first opens the connection.
    pub subflows: Vec<SubflowConfig>,
    /// The Linux stack whose reinjection rules apply.
    pub stack: MptcpStack,
    /// The rule for the size of the send buffer, for the upstream stack.
    pub send_buffer: SendBufferRule,
    /// Whether the oldest data is sent again on a faster subflow while the receive window or the send buffer is full
    /// (Raiciu et al., NSDI 2012).
    pub opportunistic_retransmission: bool,
    /// Whether an opportunistic retransmission also halves the window of the subflow that carries that data (same
    /// paper).
    pub penalisation: bool,
}

/// Configuration of a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowConfig {
    /// Whether the subflow is used only while no regular subflow can be (RFC 8684: B flag).
    pub backup: bool,
    /// Time of its MP_JOIN, counted from [`Input::Connect`]; it waits until the connection is open.
    pub join: Span,
    /// Time of its removal, counted from [`Input::Connect`].
    pub leave: Option<Span>,
}

/// A Linux MPTCP stack. The two differ in when they reinject data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MptcpStack {
    /// Linux 6.1 (`net/mptcp/protocol.c`): when the connection's own timer expires, its oldest data is reinjected. A
    /// subflow without progress over four such intervals is stale, and all outstanding data is then sent again on the
    /// others.
    Upstream,
    /// The out-of-tree stack (v0.8x to v0.95): at a subflow's timeout, all its outstanding data is reinjected at once.
    /// The subflow gets no new data until some of its data is acknowledged.
    OutOfTree,
}

/// The rule by which upstream Linux sizes a connection's send buffer from those of its subflows. Each of these is twice
/// the largest window of its subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBufferRule {
    /// Their sum: Linux 6.7 and later (`__mptcp_sync_sndbuf`).
    Sum,
    /// The largest one: Linux before 6.7 (`mptcp_propagate_sndbuf`).
    Largest,
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
    /// The host's own queue has dropped the last polled segment.
    LocalDrop(Segment),
    /// The application has written this many more segments. The sum saturates, so that `u64::MAX` is an endless stream.
    Write(u64),
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

/// Counters of an MPTCP connection's sender, in addition to those of its subflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Segments that the scheduler sent on one subflow although another one carries them.
    pub copies: u64,
    /// Reinjected segments: sent again on another subflow because theirs failed, was removed, or blocked the window.
    pub reinjected: u64,
    /// Opportunistic retransmissions, when a slow subflow blocked the window.
    pub opportunistic_retransmissions: u64,
}

/// The sender of an MPTCP connection.
#[derive(Debug)]
pub struct Sender {
    config: ConnectionConfig,
    subflows: Vec<Subflow>,
    controller: ControllerHandle,
    scheduler: Box<dyn Scheduler>,
    choices: Choices,
    fill: Fill,
    queue: SendQueue<FailedSubflows>,
    /// The scheduler's views; up to date except for the subflows in the next three bit masks.
    views: Vec<PathView>,
    /// Bit masks of subflows: those that may have changed, those that were only polled, those that accept nothing more
    /// until the next input, and those that may have something to send.
    changed_subflows: u32,
    polled_subflows: u32,
    closed_subflows: u32,
    subflows_to_poll: u32,
    /// Bit mask of the subflows that have received an acknowledgement and have not yet sent what it allows.
    acked_subflows: u32,
    /// Whether the scheduler has run since the latest input.
    has_scheduled: bool,
    /// Data that waits for reinjection.
    reinjections: VecDeque<u64>,
    /// Expiry of the connection's retransmission timer.
    retransmit_timer: Instant,
    /// Expiry of the persist timer: the receive window is shut and nothing is outstanding (RFC 9293 section 3.8.6.1).
    persist_timer: Instant,
    /// Zero-window probes since the window was shut.
    window_probes: u32,
    /// Right edge of the receive window, segments.
    snd_wnd_end: u64,
    send_buffer: send_buffer::SendBuffer,
    limits: limit::Limits,
    connect_time: Option<Instant>,
    /// Time at which the next subflow joins or leaves.
    membership_deadline: Instant,
    /// Delays of the data acknowledged since the last drain: from its first assignment to DATA_ACK, and the part of it
    /// beyond the maximum smoothed RTT.
    delays: Vec<(Span, Span)>,
    counters: ConnectionCounters,
}

impl Sender {
    /// A sender whose subflows are controlled by `controller`, which draws from `rng`, and scheduled by `scheduler`.
    /// `fill` determines where packets wait. The sender has nothing to send yet.
    ///
    /// # Panics
    /// Without a subflow, or with more than 32.
    #[must_use]
    pub fn new(
        config: ConnectionConfig,
        controller: Box<dyn Controller>,
        rng: RngStream,
        scheduler: Box<dyn Scheduler>,
        fill: Fill,
    ) -> Self {
        assert!((1..=MAX_SUBFLOWS).contains(&config.subflows.len()), "1 to 32 subflows");
        let subflows = config.subflows.iter().enumerate();
        let subflows: Vec<Subflow> = subflows.map(|(index, subflow)| Subflow::new(*subflow, index, &config)).collect();
        Self {
            views: vec![
                PathView { has_room: false, active: false, ..PathView::without_measurements() };
                subflows.len()
            ],
            subflows,
            config,
            controller: ControllerHandle { controller: Some(controller), rng },
            scheduler,
            choices: Choices::default(),
            fill,
            queue: SendQueue::default(),
            changed_subflows: 0,
            polled_subflows: 0,
            closed_subflows: 0,
            subflows_to_poll: 0,
            acked_subflows: 0,
            has_scheduled: true,
            reinjections: VecDeque::new(),
            retransmit_timer: Instant::NEVER,
            persist_timer: Instant::NEVER,
            window_probes: 0,
            snd_wnd_end: 0,
            send_buffer: send_buffer::SendBuffer::default(),
            limits: limit::Limits::default(),
            connect_time: None,
            membership_deadline: Instant::NEVER,
            delays: Vec::new(),
            counters: ConnectionCounters::default(),
        }
    }

    /// The controller of all subflows, for a driver that steers it from outside or replaces it before the connection
    /// opens.
    pub fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
        self.controller.controller.as_mut()
    }

    /// The scheduler, for a driver that steers it from outside.
    pub fn scheduler_mut(&mut self) -> &mut Box<dyn Scheduler> {
        &mut self.scheduler
    }

    /// The choices of the scheduler, for a driver that keeps them.
    pub fn choices_mut(&mut self) -> &mut Choices {
        &mut self.choices
    }

    /// Handles one input. Poll until [`Output::WaitUntil`] before the next one.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Connect => self.connect(now),
            Input::Ack(ack) => self.on_ack(now, ack),
            Input::Timeout => self.on_timeout(now),
            Input::LocalDrop(segment) => self.on_local_drop(now, &segment),
            Input::Write(segments) => self.queue.write(segments),
            Input::Stop => self.queue.stop(),
        }
        self.has_scheduled = false;
    }

    /// Returns the next segment, or the deadline of the next poll if there is nothing to send now.
    pub fn poll(&mut self, now: Instant) -> Output {
        if !std::mem::replace(&mut self.has_scheduled, true) {
            self.fill(now);
        }
        while self.subflows_to_poll != 0 {
            let index = self.subflows_to_poll.trailing_zeros() as usize;
            let sender = &mut self.subflows[index].sender;
            sender.set_connection_full(self.send_buffer.is_full());
            self.polled_subflows |= 1 << index;
            match sender.poll(now, &mut self.controller) {
                tcp::Output::Transmit(tcp) => {
                    let (data, copy) = self.subflows[index].mapping(&tcp);
                    return Output::Transmit(Segment { subflow: index as u16, tcp, data_seq: data, copy });
                }
                tcp::Output::WaitUntil(deadline) => {
                    self.subflows[index].deadline = deadline;
                    self.subflows_to_poll &= !(1 << index);
                    self.check_established(now, index);
                    if self.acked_subflows & (1 << index) != 0 {
                        self.acked_subflows &= !(1 << index);
                        self.check_space(now, index);
                    }
                }
            }
        }
        self.account_limits(now);
        Output::WaitUntil(self.deadline())
    }

    /// Reports that the last polled segment of this subflow waits in the queue of the sending host until `departure`.
    pub fn wait_in_host_queue(&mut self, subflow: u16, departure: Instant) {
        self.subflows[usize::from(subflow)].sender.wait_in_host_queue(departure);
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &ConnectionCounters {
        &self.counters
    }

    /// The subflows by their numbers: senders and states.
    pub fn subflows(&self) -> impl ExactSizeIterator<Item = (&tcp::Sender, SubflowState)> {
        self.subflows.iter().map(|subflow| (&subflow.sender, subflow.state))
    }

    /// Number of times that a subflow failed or went stale.
    #[must_use]
    pub fn failures(&self, subflow: usize) -> u64 {
        self.subflows[subflow].failures
    }

    /// Segments of data acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.queue.snd_una()
    }

    /// Drains the delays of each segment acknowledged since the last call: the time from its first assignment to its
    /// DATA_ACK, and the part of it beyond the subflows' maximum smoothed RTT at that time.
    pub fn drain_delays(&mut self, mut record: impl FnMut(Span, Span)) {
        self.delays.drain(..).for_each(|(delay, excess)| record(delay, excess));
    }

    /// Calls a subflow's sender with the controller, and records that the subflow may have changed.
    #[inline]
    fn with_subflow<R>(
        &mut self,
        index: usize,
        operation: impl FnOnce(&mut tcp::Sender, &mut ControllerHandle) -> R,
    ) -> R {
        self.changed_subflows |= 1 << index;
        self.subflows_to_poll |= 1 << index;
        operation(&mut self.subflows[index].sender, &mut self.controller)
    }

    #[inline]
    fn handle_subflow(&mut self, now: Instant, index: usize, input: tcp::Input<'_>) {
        self.with_subflow(index, |sender, controller| sender.handle(now, input, controller));
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let index = usize::from(ack.subflow);
        let is_known = self.subflows.get(index).is_some_and(|subflow| subflow.state != SubflowState::Removed);
        if !is_known || ack.data_ack > self.queue.snd_nxt() {
            return; // of an unknown subflow, or of data that was never sent
        }
        let mss = u64::from(self.config.tcp.mss);
        let is_join = ack.tcp.syn && index > 0; // without DATA_ACK, to which a window would be relative
        if !is_join {
            let wnd_end = ack.data_ack.saturating_mul(mss).saturating_add(ack.tcp.receive_window) / mss;
            self.snd_wnd_end = self.snd_wnd_end.max(wnd_end);
        }
        self.handle_subflow(now, index, tcp::Input::Ack(&ack.tcp));
        self.acked_subflows |= 1 << index;
        if index > 0 && !ack.tcp.syn && self.subflows[index].state == SubflowState::Joining {
            self.on_join_answered(now, index);
        }
        let subflow = &mut self.subflows[index];
        if subflow.on_ack_handled() {
            subflow.failed = false;
        }
        if ack.data_ack > self.queue.snd_una() {
            self.on_data_ack(now, ack.data_ack);
        }
    }

    fn on_data_ack(&mut self, now: Instant, data: u64) {
        let up_subflows = self.subflows.iter().filter(|subflow| subflow.state == SubflowState::Up);
        let max_srtt = up_subflows.map(|subflow| subflow.sender.srtt()).max().unwrap_or(Span::ZERO);
        let delays = &mut self.delays;
        while self.queue.snd_una() < data
            && let Some(sent) = self.queue.pop_first_if(|_| true)
        {
            let delay = now.since(sent.first_sent);
            delays.push((delay, delay.saturating_sub(max_srtt)));
        }
        self.restart_timer(now);
    }

    fn on_timeout(&mut self, now: Instant) {
        self.update_membership(now);
        for index in 0..self.subflows.len() {
            if self.subflows[index].deadline <= now {
                self.handle_subflow(now, index, tcp::Input::Timeout);
                self.check_subflow_timeout(index);
            }
        }
        if self.retransmit_timer <= now {
            self.on_retransmission_timeout(now);
        }
        if self.persist_timer <= now {
            self.send_window_probe(now);
        }
    }

    fn on_local_drop(&mut self, now: Instant, segment: &Segment) {
        let index = usize::from(segment.subflow);
        self.handle_subflow(now, index, tcp::Input::LocalDrop(segment.tcp));
    }

    fn deadline(&self) -> Instant {
        let subflow_deadline = self.subflows.iter().map(|subflow| subflow.deadline).min().unwrap_or(Instant::NEVER);
        let timers = self.retransmit_timer.min(self.persist_timer).min(self.membership_deadline);
        subflow_deadline.min(timers).min(self.send_buffer.deadline())
    }
}
