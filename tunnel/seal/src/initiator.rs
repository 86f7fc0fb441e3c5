//! The initiator's part of [`SealDevice`]: initiations, and the responses and cookie replies to them.

use units::Instant;

use crate::device::{Established, HandshakeOutcome, PeerId, SealDevice};
use crate::drop_reason::DropReason;
use crate::entropy::random_bytes;
use crate::message::{
    HandshakeMessage, INDEX_BITS, InitiationPayload, MessageType, ParsedMessage, RESPONSE_PAYLOAD_LEN, ResponsePayload,
};
use crate::noise::{Noise, Split};
use crate::owner::PREFIX_SHIFT;
use crate::peer::Peer;
use crate::session::{Session, SessionKeys};
use crate::sessions::{Activation, SessionEntry};
use crate::source::Source;

impl SealDevice {
    /// When [`initiation_due`](Self::initiation_due) is to be called, if nothing happens before.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// A peer to which an [`initiation`](Self::initiation) is to be sent now; called until there is none. `wall_clock`
    /// is the time in nanoseconds since 1970, by which the peer distinguishes new initiations from replayed ones. If it
    /// is set back, the peer does not respond until it exceeds its old value.
    pub fn initiation_due(&mut self, now: Instant, wall_clock: u64) -> Option<PeerId> {
        if now < self.deadline {
            return None;
        }
        for index in 0..self.peers.len() {
            let Some(peer) = &mut self.peers[index] else { continue };
            peer.expire(now, &mut self.released_indices);
            if peer.take_due_initiation(now, &mut *self.entropy) {
                let id = PeerId(u32::try_from(index).expect("peers are counted in 32 bits"));
                self.create_initiation(now, wall_clock, id);
                return Some(id);
            }
        }
        self.release_indices();
        self.schedule(now);
        None
    }

    /// The latest initiation to a peer. The same one may be sent by each route (a pair of source and destination
    /// address, as the driver numbers them): the peer responds to the copy that arrives first.
    #[must_use]
    pub fn initiation(&self, now: Instant, id: PeerId, route: u8) -> Option<HandshakeMessage> {
        self.peer(id)?.initiation(now, route)
    }

    /// Creates an initiation to a peer.
    pub(crate) fn create_initiation(&mut self, now: Instant, wall_clock: u64, id: PeerId) {
        let index = self.reserve_index(id);
        let Some(peer) = self.peers[id.0 as usize].as_mut() else { return };
        peer.sent_timestamp = wall_clock.max(peer.sent_timestamp.saturating_add(1));
        let payload = InitiationPayload {
            timestamp: peer.sent_timestamp,
            boot_id: peer.boot_id,
            ciphers: self.config.ciphers.iter().fold(0, |set, cipher| set | cipher.bit()),
            capabilities: self.config.capabilities,
        };
        let mut message = HandshakeMessage::new(MessageType::Initiation, index);
        let (header, keys) = (message.header(), (&self.config.private_key, &peer.public_key, &peer.preshared_key));
        let noise = Noise::write_initiation(&mut *self.entropy, keys, &header, &payload.write(), message.body_mut());
        let noise = noise.expect("keys of low order are no peers");
        self.released_indices.extend(peer.add_pending(index, now, noise, message));
        self.release_indices();
    }

    /// Handles a response: the new session may seal at once. A message that responds to no pending handshake is dropped
    /// before any Curve25519 operation, and failed responses are limited per route. So forged responses, which only an
    /// eavesdropper on a path can make, cost little and do not block the response by another path.
    pub(crate) fn on_response(
        &mut self,
        now: Instant,
        route: impl FnOnce(PeerId) -> u8,
        source: &[u8],
        message: &ParsedMessage<'_>,
    ) -> Result<HandshakeOutcome, DropReason> {
        let id = *self.session_indices.get(&message.index).ok_or(DropReason::NoHandshake)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(DropReason::NoHandshake)?;
        let (_, handshake) = peer.pending_handshake(message.index).ok_or(DropReason::NoHandshake)?;
        let (authenticated, mac1) = message.mac1();
        if !handshake.response_mac1.verify(authenticated, mac1) {
            return Err(DropReason::InvalidMac1);
        }
        let route = route(id);
        if !peer.charge_response(now, route) {
            return Err(DropReason::RateLimited);
        }
        let (position, handshake) = peer.pending_handshake(message.index).ok_or(DropReason::NoHandshake)?;
        let mut payload = [0; RESPONSE_PAYLOAD_LEN];
        let split = handshake.noise.read_response(message.body, &mut payload);
        let split = split.ok_or(DropReason::AuthenticationFailed)?;
        let handshake_start = handshake.sent;
        let payload = ResponsePayload::read(&payload).filter(|payload| self.config.ciphers.contains(&payload.cipher));
        let payload = payload.ok_or(DropReason::AuthenticationFailed)?;
        if peer.sessions.is_outdated(payload.boot_id, handshake_start) {
            return Err(DropReason::NoHandshake);
        }
        let session = initiated_session(now, handshake_start, message.index, &payload, &split);
        peer.refund_response(route);
        peer.finish_handshakes(position, &mut self.released_indices);
        // The handshake's index stays in use as the session's.
        self.released_indices.retain(|&index| index != message.index);
        peer.on_established();
        let activation =
            peer.sessions.on_response(session, self.public_key > peer.public_key, &mut self.released_indices);
        let established = established(activation, id, peer);
        self.initiation_limiter.remember(id, Source::new(source));
        self.release_indices();
        self.schedule(now);
        Ok(HandshakeOutcome { peer: Some(id), reply: None, established, pass_to: None })
    }

    /// Handles a cookie reply: the next initiation by this route has a mac2.
    pub(crate) fn on_cookie_reply(
        &mut self,
        now: Instant,
        route: impl FnOnce(PeerId) -> u8,
        message: &ParsedMessage<'_>,
    ) -> Result<HandshakeOutcome, DropReason> {
        let id = *self.session_indices.get(&message.index).ok_or(DropReason::NoHandshake)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(DropReason::NoHandshake)?;
        peer.pending_handshake(message.index).ok_or(DropReason::NoHandshake)?;
        if !peer.on_cookie_reply(now, || route(id), message.index, message.body) {
            return Err(DropReason::AuthenticationFailed);
        }
        Ok(HandshakeOutcome { peer: None, reply: None, established: None, pass_to: None })
    }

    /// Reserves an unpredictable session index.
    pub(crate) fn reserve_index(&mut self, id: PeerId) -> u32 {
        loop {
            let random = u32::from_be_bytes(random_bytes(&mut *self.entropy)) >> (32 - INDEX_BITS);
            let index = match self.config.index_prefix {
                Some(prefix) => u32::from(prefix) << PREFIX_SHIFT | random & ((1 << PREFIX_SHIFT) - 1),
                None => random,
            };
            if let std::collections::btree_map::Entry::Vacant(entry) = self.session_indices.entry(index) {
                entry.insert(id);
                return index;
            }
        }
    }

    /// Releases the session indices that are no longer in use.
    pub(crate) fn release_indices(&mut self) {
        for index in self.released_indices.drain(..) {
            self.session_indices.remove(&index);
        }
    }

    pub(crate) fn schedule(&mut self, now: Instant) {
        self.deadline = self.peers.iter().flatten().map(|peer| peer.deadline(now)).min().unwrap_or(Instant::NEVER);
    }
}

fn initiated_session(
    now: Instant,
    handshake_start: Instant,
    local_index: u32,
    payload: &ResponsePayload,
    split: &Split,
) -> SessionEntry {
    let keys = SessionKeys { cipher: payload.cipher, seal: split.0, open: split.1 };
    SessionEntry {
        session: Session::new(&keys),
        local_index,
        remote_index: payload.index,
        is_initiator: true,
        handshake_start,
        created: now,
        boot_id: payload.boot_id,
        capabilities: payload.capabilities,
        unanswered_since: Instant::NEVER,
    }
}

/// The driver's notice of an activated session; none if it is receive-only.
pub(crate) fn established(activation: Activation, id: PeerId, peer: &Peer) -> Option<Established> {
    let entry = peer.sessions.current().filter(|_| activation != Activation::ReceiveOnly)?;
    Some(Established {
        peer: id,
        numbers_reset: activation == Activation::PeerRestarted,
        cipher: entry.session.cipher(),
        capabilities: entry.capabilities,
    })
}
