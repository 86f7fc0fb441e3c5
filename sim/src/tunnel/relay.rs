//! One end of a Ropewalk tunnel's relay (RFC 3135): the machine that the daemon runs, and the buffers of the sockets that
//! it reads.
//!
//! Flows send in one direction, so one end has the sockets to their senders (the near end), the other those to their
//! receivers. An end reads a socket when its machine has nothing of the connection left to send, and has send capacity for
//! it: the rest stays in the socket, is read in large pieces, and closes its receive window.

use crate::tunnel::payload::{ByteRange, TunnelPayload};
use machine::{Endpoint, FIRST_UNORDERED_STREAM};
use relay::{Addresses, Body, ConnectionId, Event, Header, Message, Relay, RelayConfig};
use std::collections::{BTreeMap, VecDeque};
use units::Instant;

/// Bytes in the ingress queue from which on no data is added to it, as in the daemon.
const MAX_BACKLOG: u64 = 128 * 1024;
/// Maximum number of bytes that one call reads from a socket, as in the daemon.
const MAX_READ: u64 = 64 * 1024;

/// What an end tells the hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SocketEvent {
    /// Something has happened to a connection.
    Connection(Event),
    /// The end has read the first `bytes` of what its socket has received.
    Read { id: ConnectionId, bytes: u64 },
}

/// The receive buffer of a socket.
#[derive(Clone, Copy, Debug, Default)]
struct Socket {
    /// Bytes received in order.
    received: u64,
    /// Bytes read.
    read: u64,
    /// Bytes that the machine has put into messages.
    sent: u64,
    /// Whether the last byte received is the last one of all.
    has_ended: bool,
}

/// One end of the relay.
#[derive(Debug)]
pub(crate) struct RelayEnd {
    machine: Relay<ByteRange>,
    sockets: BTreeMap<ConnectionId, Socket>,
    events: VecDeque<SocketEvent>,
    /// Maximum number of bytes that the machine has charged for what it sends, and for what it has received.
    max_memory: [u64; 2],
    memory_bytes: u64,
    /// Connections that this end has opened.
    pub connections: u64,
}

impl RelayEnd {
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let config = RelayConfig { memory_bytes, ..RelayConfig::default() };
        Self {
            machine: Relay::new(config),
            sockets: BTreeMap::new(),
            events: VecDeque::new(),
            max_memory: [0; 2],
            memory_bytes,
            connections: 0,
        }
    }

    /// A flow's sender wants to connect. `None` if there are too many connections.
    pub(crate) fn open(&mut self, now: Instant, addresses: Addresses) -> Option<ConnectionId> {
        let id = self.machine.open(now, addresses)?;
        self.connections += 1;
        self.sockets.insert(id, Socket::default());
        Some(id)
    }

    /// The socket to a flow's receiver is connected.
    pub(crate) fn accept(&mut self, now: Instant, id: ConnectionId) {
        self.machine.accept(now, id);
    }

    /// A socket has received all bytes before `received`; `has_ended` if no more will follow.
    pub(crate) fn on_received(&mut self, id: ConnectionId, received: u64, has_ended: bool) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        (socket.received, socket.has_ended) = (received, has_ended);
        self.read(id);
    }

    /// The end of the bytes that have arrived for a socket, in order.
    pub(crate) fn arrived(&self, id: ConnectionId, consumed: u64) -> u64 {
        self.machine.chunks(id).fold(consumed, |end, chunk| {
            assert!(chunk.start == end, "the relay delivers {chunk:?} after byte {end}");
            chunk.end
        })
    }

    /// A flow's receiver has acknowledged the next `bytes`.
    pub(crate) fn consume(&mut self, now: Instant, id: ConnectionId, bytes: u64) {
        self.machine.consume(now, id, bytes);
    }

    /// Whether the byte stream to a socket has ended, and everything is consumed.
    pub(crate) fn is_finished(&self, id: ConnectionId) -> bool {
        self.machine.is_finished(id)
    }

    /// The host at a socket sends nothing, or nothing more.
    pub(crate) fn finish(&mut self, id: ConnectionId) {
        self.machine.finish(id);
    }

    /// Forgets a socket.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        self.sockets.remove(&id);
    }

    /// A message from the other end.
    pub(crate) fn receive(&mut self, now: Instant, message: Message<ByteRange>) {
        self.machine.receive(now, message);
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.machine.deadline()
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.machine.deadline() <= now {
            self.machine.on_timeout(now);
        }
    }

    /// The next event for the hosts.
    pub(crate) fn poll_event(&mut self) -> Option<SocketEvent> {
        self.sort_events();
        self.events.pop_front()
    }

    /// Takes the machine's events: those of send capacity are handled here.
    fn sort_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Writable(id) => self.read(id),
                event => self.events.push_back(SocketEvent::Connection(event)),
            }
        }
    }

    /// Offers messages to the tunnel until its ingress queue is long enough or there are none.
    pub(crate) fn fill(&mut self, now: Instant, endpoint: &mut Endpoint<TunnelPayload>) {
        loop {
            self.sort_events();
            let has_room = endpoint.unsent_bytes() < MAX_BACKLOG;
            let max_bytes = if has_room { endpoint.packet_bytes().saturating_sub(data_header_bytes()) } else { 0 };
            let Some(message) = self.machine.poll_message(now, max_bytes) else { break };
            if let Body::Data { offset, length, .. } = message.header.body {
                let id = ConnectionId { is_local: message.header.opened_by_sender, number: message.header.connection };
                self.on_sent(id, offset + u64::from(length));
            }
            endpoint.offer(now, stream(&message), TunnelPayload::message(message));
        }
        let (sent, received) = self.machine.memory_used();
        self.max_memory = [self.max_memory[0].max(sent), self.max_memory[1].max(received)];
        assert!(self.max_memory.iter().all(|used| *used <= self.memory_bytes), "the relay holds {:?}", self.max_memory);
    }

    /// The machine has put a connection's bytes before `sent` into messages.
    fn on_sent(&mut self, id: ConnectionId, sent: u64) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.sent = socket.sent.max(sent);
            self.read(id);
        }
    }

    /// Reads a socket, if everything read before is sent. Without send capacity the machine tells when there is some.
    fn read(&mut self, id: ConnectionId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if socket.sent == socket.read && socket.read < socket.received {
            let start = socket.read;
            socket.read = socket.received.min(start + self.machine.send_capacity(id).min(MAX_READ));
            if socket.read > start {
                self.machine.write(id, ByteRange { start, end: socket.read });
                self.events.push_back(SocketEvent::Read { id, bytes: socket.read });
            }
        }
        if socket.has_ended && socket.read == socket.received {
            self.machine.finish(id);
        }
    }

    /// Maximum number of bytes held for what is sent and what was received.
    pub(crate) fn max_memory(&self) -> u64 {
        self.max_memory.into_iter().max().unwrap_or(0)
    }
}

/// The stream of the tunnel that carries a message: a connection's bytes keep their order. Counted from the last one, so
/// that they seldom wait with those of a flow that is not relayed, whose streams are counted from the first.
fn stream(message: &Message<ByteRange>) -> u8 {
    let number = message.header.connection;
    match message.header.body {
        Body::Data { .. } => FIRST_UNORDERED_STREAM - 1 - (number % u32::from(FIRST_UNORDERED_STREAM)) as u8,
        _ => FIRST_UNORDERED_STREAM + (number % 16) as u8,
    }
}

/// Bytes of a data message's header.
fn data_header_bytes() -> u32 {
    let body = Body::Data { offset: 0, length: 0, fin: false };
    Header { opened_by_sender: true, connection: 0, body }.len() as u32
}
