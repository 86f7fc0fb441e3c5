//! One end of the relay, for all connections with one peer.

use crate::connection::{Connection, Phase};
use crate::event::{Chunk, ConnectionId, ConnectionStatus, Event, Message, RelayConfig};
use crate::memory::Memory;
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::{Instant, Span};
use wire::relay::{Addresses, Body, Header, ResetReason};

/// Time for which a closed connection is remembered, to answer messages that the peer sends again.
const CLOSED_TIME: Span = Span::from_secs(60);
/// Maximum number of connections that the peer may open per second: each costs a socket. Further ones go through the
/// tunnel as packets.
const MAX_OPENS_PER_SECOND: u32 = 2000;
/// Maximum size of a data message, bytes: with its header it must be no longer than an IP packet.
const MAX_CHUNK_BYTES: u32 = 65_535 - Header::MAX_LEN as u32;

/// Maximum number of waiting messages without data. Further answers to the peer are dropped: the peer asks again.
const MAX_QUEUED_CONTROL: usize = 4096;

/// The remembered part of a closed connection: the answer to further messages.
#[derive(Clone, Copy, Debug)]
struct ClosedConnection {
    at: Instant,
    answer: Body,
}

/// One end of the relay.
#[derive(Debug)]
pub struct Relay<C> {
    config: RelayConfig,
    connections: BTreeMap<ConnectionId, Connection<C>>,
    /// The number of the next connection opened here.
    next_number: u32,
    /// Closed connections, and the order in which they were closed.
    closed: BTreeMap<ConnectionId, ClosedConnection>,
    closed_order: VecDeque<(Instant, ConnectionId)>,
    sent_memory: Memory,
    received_memory: Memory,
    /// Messages without data, and the connections that are to be acknowledged.
    control: VecDeque<Header>,
    acks: BTreeSet<ConnectionId>,
    /// Those whose gaps follow an acknowledgement.
    gaps: BTreeSet<ConnectionId>,
    schedule: Schedule,
    timers: BTreeSet<(Instant, ConnectionId)>,
    events: VecDeque<Event>,
    /// The current second, and the connections that the peer has opened in it.
    opens: (u64, u32),
}

impl<C: Chunk> Relay<C> {
    /// A relay without connections.
    #[must_use]
    pub fn new(config: RelayConfig) -> Self {
        Self {
            config,
            connections: BTreeMap::new(),
            next_number: 0,
            closed: BTreeMap::new(),
            closed_order: VecDeque::new(),
            sent_memory: Memory::new(config.memory_bytes),
            received_memory: Memory::new(config.memory_bytes),
            control: VecDeque::new(),
            acks: BTreeSet::new(),
            gaps: BTreeSet::new(),
            schedule: Schedule::default(),
            timers: BTreeSet::new(),
            events: VecDeque::new(),
            opens: (0, 0),
        }
    }

    /// Opens a connection for a client; [`Event::Accepted`] or [`Event::Closed`] follows. `None` if there are too many.
    pub fn open(&mut self, now: Instant, addresses: Addresses) -> Option<ConnectionId> {
        if self.connections.len() >= self.config.max_connections {
            return None;
        }
        let id = ConnectionId { is_local: true, number: self.next_number };
        self.next_number = self.next_number.wrapping_add(1);
        if self.connections.contains_key(&id) {
            return None; // 2^32 connections later
        }
        self.connections.insert(id, Connection::new(now, addresses, Phase::Opening(1, now)));
        self.push_control(id, Body::Open(addresses));
        self.update(id);
        Some(id)
    }

    /// The server has accepted a connection that the peer opened.
    pub fn accept(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.phase == Phase::Connecting)
        else {
            return;
        };
        connection.phase = Phase::Open;
        connection.on_heard(now);
        let window_end = connection.receive.send_window(&self.received_memory);
        self.push_control(id, Body::Accept { window_end });
        self.acks.insert(id);
        self.update(id);
    }

    /// Resets a connection, whose local TCP connection failed or was reset. The driver forgets it; no event follows.
    pub fn reset(&mut self, now: Instant, id: ConnectionId, reason: ResetReason) {
        if self.remove(now, id, Body::Reset(reason)) {
            self.push_control(id, Body::Reset(reason));
        }
    }

    /// Bytes that may be written now. If 0, [`Event::Writable`] follows.
    pub fn send_capacity(&mut self, id: ConnectionId) -> u64 {
        let Some(connection) = self.connections.get_mut(&id) else { return 0 };
        let capacity = connection.send.capacity(&self.sent_memory);
        connection.send.is_blocked = capacity == 0;
        self.update(id);
        capacity
    }

    /// Appends bytes to the byte stream that is sent: at most [`send_capacity`](Self::send_capacity).
    pub fn write(&mut self, id: ConnectionId, chunk: C) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.send.write(chunk, &mut self.sent_memory);
            self.update(id);
        }
    }

    /// Ends the byte stream that is sent.
    pub fn finish(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.send.finish();
            self.update(id);
        }
    }

    /// The received bytes that are not consumed yet.
    pub fn chunks(&self, id: ConnectionId) -> impl Iterator<Item = &C> {
        self.connections.get(&id).into_iter().flat_map(|connection| connection.receive.chunks())
    }

    /// The driver has taken the next `bytes`.
    pub fn consume(&mut self, now: Instant, id: ConnectionId, bytes: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.receive.consume(bytes, &mut self.received_memory);
        if connection.phase == Phase::Open && connection.receive.has_window_update(&self.received_memory) {
            self.acks.insert(id);
        }
        self.close_if_complete(now, id);
        self.update(id);
    }

    /// Whether the peer's byte stream has ended and all of it is consumed.
    #[must_use]
    pub fn is_finished(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_some_and(|connection| connection.receive.is_finished())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Readable(id) = event
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.is_readable = false;
        }
        Some(event)
    }

    /// The next message for the peer. A data message has at most `max_bytes` of data; if that is 0, none is returned, and no
    /// gaps after the first one of a connection.
    pub fn poll_message(&mut self, now: Instant, max_bytes: u32) -> Option<Message<C>> {
        if let Some(header) = self.control.pop_front() {
            return Some(Message { header, chunk: None });
        }
        if let Some(id) = self.acks.pop_first() {
            let Some(connection) = self.connections.get_mut(&id) else { return self.poll_message(now, max_bytes) };
            let body = connection.ack(now, &self.received_memory);
            self.gaps.insert(id);
            self.update(id);
            return Some(Message { header: header(id, body), chunk: None });
        }
        if max_bytes == 0 {
            return None;
        }
        self.poll_gaps(now).or_else(|| self.poll_data(now, max_bytes.min(MAX_CHUNK_BYTES)))
    }

    fn poll_gaps(&mut self, now: Instant) -> Option<Message<C>> {
        loop {
            let id = self.gaps.pop_first()?;
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let Some(gaps) = connection.receive.next_gaps(now) else { continue };
            self.gaps.insert(id);
            return Some(Message { header: header(id, Body::Gaps(gaps)), chunk: None });
        }
    }

    fn poll_data(&mut self, now: Instant, max_bytes: u32) -> Option<Message<C>> {
        loop {
            let id = self.schedule.next()?;
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            connection.is_scheduled = false;
            let Some(segment) = connection.send.poll(now, max_bytes) else { continue };
            if connection.send.is_sendable() {
                connection.is_scheduled = true;
                self.schedule.add_again(id);
            }
            self.signal_capacity(id);
            self.update(id);
            let length = segment.chunk.as_ref().map_or(0, |chunk| chunk.len() as u16);
            let body = Body::Data { offset: segment.offset, length, fin: segment.fin };
            return Some(Message { header: header(id, body), chunk: segment.chunk });
        }
    }

    /// A message from the peer.
    pub fn receive(&mut self, now: Instant, message: Message<C>) {
        let Message { header: Header { opened_by_sender, connection: number, body }, chunk } = message;
        let id = ConnectionId { is_local: !opened_by_sender, number };
        let Some(connection) = self.connections.get_mut(&id) else { return self.on_unknown(now, id, body) };
        connection.on_heard(now);
        match (body, connection.phase) {
            (Body::Open(_), Phase::Open) if !id.is_local => {
                let window_end = connection.receive.send_window(&self.received_memory);
                self.push_answer(id, Body::Accept { window_end });
            }
            (Body::Reset(reason), _) => {
                self.remove(now, id, Body::Reset(ResetReason::Reset));
                self.events.push_back(Event::Closed { id, reason: Some(reason) });
            }
            (Body::Open(_), _) | (_, Phase::Connecting) => {}
            (Body::Accept { window_end }, _) => {
                self.on_accepted(id);
                self.on_window(id, window_end);
            }
            (Body::Data { offset, fin, .. }, _) => {
                self.on_accepted(id);
                self.on_data(now, id, offset, chunk, fin);
            }
            (Body::Ack { offset, window_end, gap_end }, _) => {
                self.on_accepted(id);
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.send.on_ack(now, offset, gap_end, &mut self.sent_memory);
                }
                self.on_window(id, window_end);
                self.close_if_complete(now, id);
            }
            (Body::Gaps(gaps), _) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    gaps.iter().for_each(|gap| connection.send.on_gap(now, gap));
                }
            }
        }
        self.update(id);
    }

    /// Any other message of the peer on a connection shows that the server has accepted it.
    fn on_accepted(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if matches!(connection.phase, Phase::Opening(..)) {
            connection.phase = Phase::Open;
            self.events.push_back(Event::Accepted(id));
            // The peer learns its window by an acknowledgement.
            self.acks.insert(id);
        }
    }

    fn on_window(&mut self, id: ConnectionId, window_end: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.send.open_window(window_end);
            self.signal_capacity(id);
        }
    }

    fn on_data(&mut self, now: Instant, id: ConnectionId, offset: u64, chunk: Option<C>, fin: bool) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let has_progress = connection.receive.insert(offset, chunk, fin, &mut self.received_memory);
        // Data that is not new was sent again because its acknowledgement was lost.
        if connection.needs_ack(now, &self.received_memory) || !has_progress {
            self.acks.insert(id);
        }
        if has_progress && !connection.is_readable {
            connection.is_readable = true;
            self.events.push_back(Event::Readable(id));
        }
    }

    /// Handles a message of a connection that does not exist: the peer opens it, or it was closed.
    fn on_unknown(&mut self, now: Instant, id: ConnectionId, body: Body) {
        if let Some(closed) = self.closed.get(&id).filter(|closed| now.since(closed.at) < CLOSED_TIME) {
            let answer = closed.answer;
            let is_answered = match answer {
                Body::Reset(_) => !matches!(body, Body::Reset(_)),
                _ => matches!(body, Body::Data { .. } | Body::Open(_)),
            };
            if is_answered {
                self.push_answer(id, answer);
            }
            return;
        }
        match body {
            Body::Open(_) if id.is_local => {}
            Body::Open(_) if self.connections.len() >= self.config.max_connections || !self.admits_open(now) => {
                self.push_answer(id, Body::Reset(ResetReason::NotRelayed));
            }
            Body::Open(addresses) => {
                self.connections.insert(id, Connection::new(now, addresses, Phase::Connecting));
                self.events.push_back(Event::Opened { id, addresses });
            }
            Body::Reset(_) => {}
            _ => self.push_answer(id, Body::Reset(ResetReason::Reset)),
        }
    }

    /// Whether the peer may open another connection in this second; it is counted.
    fn admits_open(&mut self, now: Instant) -> bool {
        let second = now.0 / Span::from_secs(1).as_nanos();
        if self.opens.0 != second {
            self.opens = (second, 0);
        }
        self.opens.1 = self.opens.1.saturating_add(1);
        self.opens.1 <= MAX_OPENS_PER_SECOND
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.timers.first().map_or(Instant::NEVER, |(deadline, _)| *deadline)
    }

    /// Handles the timers that are due.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some((_, id)) = self.timers.first().copied().filter(|(deadline, _)| *deadline <= now) {
            self.on_connection_timeout(now, id);
            self.update(id);
        }
    }

    fn on_connection_timeout(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.reopen(now) {
            None => {
                self.reset(now, id, ResetReason::TimedOut);
                self.events.push_back(Event::Closed { id, reason: Some(ResetReason::TimedOut) });
            }
            Some(true) => {
                let addresses = connection.addresses;
                self.push_control(id, Body::Open(addresses));
            }
            Some(false) => {
                if connection.phase == Phase::Open && connection.on_timeout(now) {
                    connection.on_heard(now);
                    connection.clear_ack_deadline();
                    self.acks.insert(id);
                }
            }
        }
    }

    /// Closes all connections, because the session with the peer is lost.
    pub fn reset_all(&mut self) {
        let closed = std::mem::take(&mut self.connections);
        let events = closed.keys().map(|id| Event::Closed { id: *id, reason: Some(ResetReason::Reset) });
        let events: VecDeque<Event> = events.collect();
        *self = Self { next_number: self.next_number, opens: self.opens, events, ..Self::new(self.config) };
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, ConnectionStatus)> {
        self.connections.iter().map(|(id, connection)| (*id, connection.status()))
    }

    /// Bytes charged for data to be sent, and for received data.
    #[must_use]
    pub fn memory_used(&self) -> (u64, u64) {
        (self.sent_memory.used, self.received_memory.used)
    }

    /// Checks the charged memory by counting again.
    ///
    /// # Panics
    /// If the sum differs, or exceeds the configuration.
    #[doc(hidden)]
    pub fn check(&self) {
        let charged = |held: fn(&Connection<C>) -> u64| self.connections.values().map(held).sum::<u64>();
        assert_eq!(self.sent_memory.used, charged(|connection| connection.send.held));
        assert_eq!(self.received_memory.used, charged(|connection| connection.receive.held));
        assert!(self.sent_memory.used.max(self.received_memory.used) <= self.config.memory_bytes);
        assert!(self.connections.len() <= self.config.max_connections);
        assert!(self.closed.len() <= self.config.max_connections && self.timers.len() <= self.connections.len());
        self.connections.values().for_each(|connection| connection.receive.check());
    }

    /// Queues a message without data.
    fn push_control(&mut self, id: ConnectionId, body: Body) {
        self.control.push_back(header(id, body));
    }

    /// Queues a message without data that a message of the peer has caused, unless too many wait.
    fn push_answer(&mut self, id: ConnectionId, body: Body) {
        if self.control.len() < MAX_QUEUED_CONTROL {
            self.push_control(id, body);
        }
    }

    /// Signals capacity to a driver that waits for it.
    fn signal_capacity(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.send.is_blocked && connection.send.capacity(&self.sent_memory) > 0 {
            connection.send.is_blocked = false;
            self.events.push_back(Event::Writable(id));
        }
    }

    fn close_if_complete(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.is_complete()) else {
            return;
        };
        let answer = connection.ack(now, &self.received_memory);
        if self.acks.remove(&id) {
            self.push_answer(id, answer);
        }
        self.remove(now, id, answer);
        self.events.push_back(Event::Closed { id, reason: None });
    }

    /// Removes a connection; further messages of it get this answer. False if there is none.
    fn remove(&mut self, now: Instant, id: ConnectionId, answer: Body) -> bool {
        let Some(connection) = self.connections.remove(&id) else { return false };
        self.sent_memory.used -= connection.send.held;
        self.received_memory.used -= connection.receive.held;
        self.timers.remove(&(connection.timer, id));
        self.acks.remove(&id);
        self.gaps.remove(&id);
        while let Some((at, oldest)) = self.closed_order.front().copied()
            && (now.since(at) >= CLOSED_TIME || self.closed_order.len() >= self.config.max_connections)
        {
            self.closed_order.pop_front();
            self.closed.remove(&oldest);
        }
        self.closed.insert(id, ClosedConnection { at: now, answer });
        self.closed_order.push_back((now, id));
        true
    }

    /// Sets the timer and the turn of a connection after it has changed.
    fn update(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.is_scheduled && connection.phase == Phase::Open && connection.send.is_sendable() {
            connection.is_scheduled = true;
            self.schedule.add(id);
        }
        let deadline = connection.deadline();
        if deadline != connection.timer {
            self.timers.remove(&(connection.timer, id));
            connection.timer = deadline;
            if deadline != Instant::NEVER {
                self.timers.insert((deadline, id));
            }
        }
    }
}

fn header(id: ConnectionId, body: Body) -> Header {
    Header { opened_by_sender: id.is_local, connection: id.number, body }
}
