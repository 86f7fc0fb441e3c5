//! The relay with one peer: the sans-IO machine, and its messages as inner packets of the tunnel.
//!
//! Both ends must relay. Each announces that when a session begins, by the reset of a connection that never exists (the
//! last number); a program without a relay drops the reset. Until the peer has announced it, nothing is relayed to the
//! peer.

use super::super::packet::{PacketSlice, Prefix};
use super::super::peer::Node;
use crate::data_plane::batch::{MAX_BYTES, MAX_SEGMENTS};
use crate::data_plane::buffer::BufferSlice;
use crate::data_plane::report::{RelayCounters, RelayReport};
use ::relay::{Body, Header, Message, Relay, RelayConfig, ResetReason};
use machine::{DATA_HEADER_BYTES, Endpoint, FIRST_REALTIME_STREAM, FIRST_UNORDERED_STREAM, SEAL_OVERHEAD};
use seal::PeerId;
use units::{Instant, Span};
use wire::Malformed;

/// Bytes in the tunnel's ingress queue above which data stays in the relay: more data in the queue would delay the
/// packets of other flows.
const RELAY_BACKLOG: u64 = 128 * 1024;
/// Minimum number of bytes that are read from a connection at once; smaller messages are cut from them.
const MIN_READ_BYTES: u32 = 16 * 1024;
/// Maximum number of bytes that are read from a connection at once.
pub(super) const MAX_READ_BYTES: u64 = 64 * 1024;
/// Minimum interval between announcements.
const ANNOUNCEMENT_INTERVAL: Span = Span::from_secs(1);
/// The announcement that this end relays.
const ANNOUNCEMENT: Header =
    Header { opened_by_sender: true, connection: u32::MAX, body: Body::Reset(ResetReason::NotRelayed) };

/// The relay with a peer.
#[derive(Debug)]
pub(in super::super) struct PeerRelay {
    pub(super) relay: Relay<BufferSlice>,
    /// Whether this end relays.
    is_enabled: bool,
    /// Whether the peer has announced that it relays, in this session.
    peer_relays: bool,
    /// When this end last announced that it relays.
    announced: Option<Instant>,
    has_announcement: bool,
    /// Current maximum size of the data of a message, bytes.
    message_bytes: u32,
    pub(super) counters: RelayCounters,
}

impl PeerRelay {
    /// `max_connections` is `None` at an end that does not relay.
    pub(in super::super) fn new(max_connections: Option<usize>) -> Self {
        let default = RelayConfig::default();
        let config = RelayConfig { max_connections: max_connections.unwrap_or(0), ..default };
        Self {
            relay: Relay::new(config),
            is_enabled: max_connections.is_some(),
            peer_relays: false,
            announced: None,
            has_announcement: false,
            message_bytes: 0,
            counters: RelayCounters::default(),
        }
    }

    /// Whether connections to the peer are relayed. If that is unknown, this end sends an announcement, which the peer
    /// answers.
    pub(super) fn is_usable(&mut self, now: Instant) -> bool {
        if !self.peer_relays {
            self.announce(now);
        }
        self.is_enabled && self.peer_relays
    }

    fn announce(&mut self, now: Instant) {
        if self.is_enabled && self.announced.is_none_or(|at| now.since(at) >= ANNOUNCEMENT_INTERVAL) {
            (self.announced, self.has_announcement) = (Some(now), true);
        }
    }

    /// A session was established. If the peer has lost its state, all connections are closed.
    pub(in super::super) fn on_established(&mut self, now: Instant, numbers_reset: bool) {
        if numbers_reset {
            self.on_closed();
        }
        self.announce(now);
    }

    /// The session is closed, and with it all connections.
    pub(in super::super) fn on_closed(&mut self) {
        self.relay.reset_all();
        (self.peer_relays, self.announced) = (false, None);
    }

    /// A message of the peer.
    ///
    /// # Errors
    /// It is malformed.
    pub(in super::super) fn receive(&mut self, now: Instant, bytes: Vec<u8>) -> Result<(), Malformed> {
        let (header, data) = Header::parse(&bytes)?;
        let range = (header.len() as u32, (header.len() + data.len()) as u32);
        if header == ANNOUNCEMENT {
            self.peer_relays = true;
            self.announce(now);
            return Ok(());
        }
        let is_padded = bytes.len() > range.1 as usize + Header::MAX_LEN;
        let chunk = (range.0 < range.1).then(|| BufferSlice::from(bytes).slice(range.0, range.1));
        let chunk = chunk.map(|mut chunk| {
            if is_padded {
                chunk.detach();
            }
            chunk
        });
        self.relay.receive(now, Message { header, chunk });
        Ok(())
    }

    /// Bytes to read from a connection at once: one message, but at least [`MIN_READ_BYTES`].
    pub(super) fn read_bytes(&self) -> u64 {
        if self.message_bytes < MIN_READ_BYTES { MAX_READ_BYTES } else { u64::from(self.message_bytes) }
    }

    /// Counters; `None` at an end that does not relay.
    pub(in super::super) fn report(&self, kernel_translation: bool) -> Option<RelayReport> {
        let (sent, received) = self.relay.memory_used();
        self.is_enabled.then(|| RelayReport {
            peer_relays: self.peer_relays,
            kernel_translation,
            connections: self.relay.connections().count() as u64,
            held_bytes: sent + received,
            counters: self.counters,
        })
    }

    /// When [`Self::on_timeout`] is due.
    pub(in super::super) fn deadline(&self) -> Instant {
        self.relay.deadline()
    }

    /// Handles the timers that are due.
    pub(in super::super) fn on_timeout(&mut self, now: Instant) {
        self.relay.on_timeout(now);
    }

    /// Offers messages to the peer's endpoint: data only while few bytes wait there.
    pub(in super::super) fn offer_messages(&mut self, now: Instant, id: PeerId, node: &mut Node) {
        if !node.has_session(id) {
            return;
        }
        if std::mem::take(&mut self.has_announcement) {
            node.offer(now, id, stream(&ANNOUNCEMENT), packet(Message { header: ANNOUNCEMENT, chunk: None }));
        }
        while let Some(endpoint) = node.endpoint(id) {
            let has_room = endpoint.unsent_bytes() < RELAY_BACKLOG;
            self.message_bytes = message_bytes(endpoint);
            let max_bytes = if has_room { self.message_bytes } else { 0 };
            let Some(message) = self.relay.poll_message(now, max_bytes) else { break };
            node.offer(now, id, stream(&message.header), packet(message));
        }
    }
}

/// The size of a message's data, bytes: the amount that all paths deliver in a millisecond, in whole fragments whose
/// datagrams one system call sends.
fn message_bytes(endpoint: &Endpoint<PacketSlice>) -> u32 {
    let Some(fragment) = endpoint.fragment_size() else { return 0 };
    let max_fragments = (MAX_BYTES as u32 / (fragment + DATA_HEADER_BYTES + SEAL_OVERHEAD)).min(MAX_SEGMENTS as u32);
    let fragments = (endpoint.packet_bytes() / fragment).clamp(1, max_fragments.max(1));
    (fragments * fragment).saturating_sub(Prefix::MAX_LEN as u32)
}

/// The inner packet of a message. The data is not copied.
fn packet(message: Message<BufferSlice>) -> PacketSlice {
    let mut header = Vec::with_capacity(Header::MAX_LEN);
    message.header.write(&mut header);
    match message.chunk {
        Some(chunk) => PacketSlice { prefix: Prefix::new(&header), ..PacketSlice::message(chunk) },
        None => PacketSlice::message(BufferSlice::from(header)),
    }
}

/// The stream of a message: the data of a connection is in order, other messages do not have to be.
fn stream(header: &Header) -> u8 {
    let number = u64::from(header.connection) << 1 | u64::from(header.opened_by_sender);
    match header.body {
        Body::Data { .. } => (number % u64::from(FIRST_REALTIME_STREAM)) as u8,
        _ => FIRST_UNORDERED_STREAM + (number % (256 - u64::from(FIRST_UNORDERED_STREAM))) as u8,
    }
}
