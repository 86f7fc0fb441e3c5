//! The sender. One input, then poll until [`Output::WaitUntil`].
//!
//! Files: `send_queue` (the data of all streams), `sent_packets` (a path's packet-number space), `path` (a path with
//! its timers), `scheduling` (assignment of chunks to paths), `membership` (paths are opened and abandoned), `limit` (why
//! nothing more is sent).

mod limit;
mod membership;
mod path;
mod scheduling;
mod send_queue;
mod sent_packets;

use super::{Content, Packet, PathAck, Reply, ReplyContent};
use crate::path::{ControllerHandle, Limit};
use control::{CaState, Controller, Decision};
use path::Path;
pub use path::{PathCounters, PathState};
use schedule::{Choices, PathView, Scheduler};
use send_queue::SendQueue;
use sent_packets::PacketOutcomes;
use units::{Instant, RngStream, Span};

/// Maximum number of paths, because sets of paths are bit masks.
const MAX_PATHS: usize = 32;

/// Configuration of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// The paths, at most 32. The first opens the connection.
    pub paths: Vec<PathConfig>,
    /// Payload of a full packet, bytes.
    pub chunk_bytes: u32,
    /// A full packet with its headers, bytes.
    pub packet_bytes: u32,
    /// Initial window of a path, packets (RFC 9002, section 7.2: 10).
    pub initial_window: u32,
    /// Maximum window of a path, packets.
    pub cwnd_clamp: u32,
    /// Whether every algorithm is paced, not only those that set a rate.
    pub pacing: bool,
    /// Whether the connection is opened by a handshake. Without one, data is sent at once.
    pub handshake: bool,
    /// Tick of the host's clock, for algorithms that use it.
    pub tick: Span,
    /// Whether the thresholds of loss detection grow with the reordering on a path (RFC 9002, sections 6.1.1 and
    /// 6.1.2).
    pub adaptive_loss_thresholds: bool,
    /// Whether a reduction is undone once all the losses that caused it have arrived.
    pub undo: bool,
    /// The peer's `initial_max_data` (RFC 9000, section 18.2), chunks.
    pub initial_max_data: u64,
}

/// Configuration of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathConfig {
    /// Whether the path is used only while no other path can be (PATH_STATUS_BACKUP).
    pub backup: bool,
    /// Time of its PATH_CHALLENGE, counted from [`Input::Connect`]; it waits until the handshake is complete.
    pub join: Span,
    /// Time at which it is abandoned, counted from [`Input::Connect`].
    pub leave: Option<Span>,
}

/// An input of a sender.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Opens the connection.
    Connect,
    /// A packet of the receiver has arrived.
    Reply(&'a Reply),
    /// A deadline has passed. An early call does nothing.
    Timeout,
    /// The application has written this many more chunks. The sum saturates, so that `u64::MAX` is an endless transfer.
    Write(u64),
    /// The application ends, and no new data is sent.
    Stop,
}

/// An output of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet to send.
    Transmit(Packet),
    /// Nothing to send until this instant or the next input.
    WaitUntil(Instant),
}

/// Counters of a connection's sender, in addition to those of its paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Chunks that the scheduler sent on one path although another one carries them.
    pub copies: u64,
    /// Chunks sent on another path because theirs was lost, or their path was silent or abandoned.
    pub reinjected: u64,
}

/// A path's state for a driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStatus {
    /// State of the path.
    pub state: PathState,
    /// The controller's decision.
    pub decision: Decision,
    /// Smoothed RTT, or the initial RTT before the first sample.
    pub smoothed_rtt: Span,
    /// RTT sample of the latest acknowledgement, if it had one.
    pub latest_sample: Option<Span>,
    /// Packets in flight.
    pub in_flight: u32,
    /// The congestion state.
    pub ca_state: CaState,
    /// Why nothing more is sent on the path now.
    pub limit: Limit,
    /// The counters.
    pub counters: PathCounters,
}

/// A packet that the sender has declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredLost {
    /// Path ID of its packet-number space.
    pub path: u16,
    /// Its number.
    pub number: u64,
    /// Whether it was sent long enough before an acknowledged packet (RFC 9002, section 6.1.2), and not far enough before it
    /// in packets (section 6.1.1).
    pub by_time: bool,
}

/// The sender of a connection.
#[derive(Debug)]
pub struct Sender {
    config: ConnectionConfig,
    paths: Vec<Path>,
    controller: ControllerHandle,
    scheduler: Box<dyn Scheduler>,
    choices: Choices,
    queue: SendQueue,
    views: Vec<PathView>,
    /// Whether the scheduler has run since the latest input.
    has_scheduled: bool,
    /// Bit mask of the paths that have sent since their windows were validated.
    sent_on: u32,
    /// MAX_DATA, chunks.
    max_data: u64,
    limits: limit::Limits,
    connect_time: Option<Instant>,
    outcomes: PacketOutcomes,
    /// Packets declared lost since the latest input.
    declared_lost: Vec<DeclaredLost>,
    /// Delays of the chunks acknowledged since the last drain: from their first assignment, and the part of it beyond
    /// the maximum smoothed RTT.
    delays: Vec<(Span, Span)>,
    counters: ConnectionCounters,
}

impl Sender {
    /// A sender whose paths are controlled by `controller`, which draws from `rng`, and scheduled by `scheduler`. Data
    /// waits in the connection until a window has room, whatever the scheduler's [`schedule::Fill`], because QUIC has
    /// no send buffer per path. The sender has nothing to send yet.
    ///
    /// # Panics
    /// If there is no path, or more than 32.
    #[must_use]
    pub fn new(
        config: ConnectionConfig,
        controller: Box<dyn Controller>,
        rng: RngStream,
        scheduler: Box<dyn Scheduler>,
    ) -> Self {
        assert!((1..=MAX_PATHS).contains(&config.paths.len()), "1 to 32 paths");
        let paths: Vec<Path> =
            config.paths.iter().enumerate().map(|(index, path)| Path::new(*path, index, &config)).collect();
        Self {
            views: paths.iter().map(Path::view).collect(),
            paths,
            max_data: config.initial_max_data,
            config,
            controller: ControllerHandle { controller: Some(controller), rng },
            scheduler,
            choices: Choices::default(),
            queue: SendQueue::default(),
            has_scheduled: true,
            sent_on: 0,
            limits: limit::Limits::default(),
            connect_time: None,
            outcomes: PacketOutcomes::default(),
            declared_lost: Vec::new(),
            delays: Vec::new(),
            counters: ConnectionCounters::default(),
        }
    }

    /// The controller of all paths, for a driver that steers it from outside or replaces it before the connection
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
        self.declared_lost.clear();
        match input {
            Input::Connect => self.connect(now),
            Input::Reply(reply) => self.on_reply(now, reply),
            Input::Timeout => self.on_timeout(now),
            Input::Write(chunks) => self.queue.data.write(chunks),
            Input::Stop => self.queue.data.stop(),
        }
        self.has_scheduled = false;
    }

    /// Returns the next packet, or the deadline of the next poll if there is nothing to send now.
    pub fn poll(&mut self, now: Instant) -> Output {
        if let Some(packet) = self.next_validation(now).or_else(|| self.next_probe(now)) {
            return Output::Transmit(packet);
        }
        if !std::mem::replace(&mut self.has_scheduled, true) {
            self.fill(now);
        }
        match self.next_data(now) {
            Some(packet) => Output::Transmit(packet),
            None => Output::WaitUntil(self.finish_transmit(now)),
        }
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &ConnectionCounters {
        &self.counters
    }

    /// The packets declared lost by the latest input.
    #[must_use]
    pub fn declared_lost(&self) -> &[DeclaredLost] {
        &self.declared_lost
    }

    /// The paths by their numbers.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = PathStatus> + '_ {
        self.paths.iter().map(|path| PathStatus {
            state: path.state,
            decision: path.sender.decision(),
            smoothed_rtt: path.rtt.smoothed_rtt(),
            latest_sample: path.latest_sample,
            in_flight: path.sent.in_flight(),
            ca_state: path.sender.ca_state(),
            limit: path.limits.limit(),
            counters: path.counters,
        })
    }

    /// Chunks acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.queue.acknowledged()
    }

    /// Drains the delays of each chunk acknowledged since the last call: the time from its first assignment to a path,
    /// and the part of it beyond the paths' maximum smoothed RTT at that time.
    pub fn drain_delays(&mut self, mut record: impl FnMut(Span, Span)) {
        self.delays.drain(..).for_each(|(delay, excess)| record(delay, excess));
    }

    fn on_reply(&mut self, now: Instant, reply: &Reply) {
        let (number, is_handshake) = match reply.content {
            ReplyContent::Ack(ref ack) => return self.on_ack(now, ack),
            ReplyContent::Handshake { number } => (number, true),
            ReplyContent::PathResponse { number } => (number, false),
        };
        let Some(path) = self.paths.get_mut(usize::from(reply.path)) else { return };
        if path.on_validated(now, number, is_handshake, &self.config, &mut self.controller) {
            self.update_membership(now);
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &PathAck) {
        let Some(path) = self.paths.get_mut(usize::from(ack.path)) else { return };
        let is_handled = path.state == PathState::Up && path.on_ack(now, ack, &mut self.outcomes, &mut self.controller);
        if is_handled {
            self.max_data = self.max_data.max(ack.max_data);
            self.apply_outcomes(now, usize::from(ack.path));
        }
    }

    /// Applies the outcomes of a path's packets to the data.
    fn apply_outcomes(&mut self, now: Instant, index: usize) {
        let lost = self.outcomes.lost_numbers.drain(..);
        self.declared_lost.extend(lost.map(|(number, by_time)| DeclaredLost { path: index as u16, number, by_time }));
        let up = self.paths.iter().filter(|path| path.state == PathState::Up);
        let max_srtt = up.map(|path| path.rtt.smoothed_rtt()).max().unwrap_or(Span::ZERO);
        for chunk in self.outcomes.acked_chunks.drain(..) {
            if let Some(first_sent) = self.queue.on_acked(chunk) {
                let delay = now.since(first_sent);
                self.delays.push((delay, delay.saturating_sub(max_srtt)));
            }
        }
        self.outcomes.lost_chunks.drain(..).for_each(|chunk| self.queue.on_lost(chunk));
    }

    fn on_timeout(&mut self, now: Instant) {
        self.update_membership(now);
        for index in 0..self.paths.len() {
            if self.paths[index].deadline() <= now && self.paths[index].state == PathState::Up {
                let is_probe_timeout = self.paths[index].on_timeout(now, &mut self.outcomes, &mut self.controller);
                self.apply_outcomes(now, index);
                if is_probe_timeout {
                    self.on_probe_timeout(index);
                }
            }
        }
    }

    /// Handles a silent path: the data that it carries may also be sent on other paths, and it gets no more data while
    /// there is another path.
    fn on_probe_timeout(&mut self, index: usize) {
        let has_other = self.paths.iter().enumerate().any(|(other, path)| other != index && path.is_active());
        if !has_other || self.paths[index].is_suspect {
            return;
        }
        let path = &mut self.paths[index];
        path.is_suspect = true;
        path.counters.failures += 1;
        path.waiting.drain(..).for_each(|waiting| self.queue.on_lost(waiting.chunk));
        path.sent.give_up().into_iter().for_each(|chunk| self.queue.on_lost(chunk));
    }

    fn packet(&self, now: Instant, index: usize, number: u64, content: Content) -> Packet {
        Packet { path: index as u16, number, sent: now, content }
    }

    fn deadline(&self, now: Instant) -> Instant {
        let path_deadline = |path: &Path| {
            let pacer = if path.waiting.is_empty() || !path.sender.has_room(path.sent.in_flight()) {
                Instant::NEVER
            } else {
                path.sender.next_send_time().max(now)
            };
            path.deadline().min(pacer)
        };
        let deadline = self.paths.iter().map(path_deadline).min().unwrap_or(Instant::NEVER);
        deadline.min(self.next_membership_change())
    }
}

#[cfg(test)]
mod tests;
