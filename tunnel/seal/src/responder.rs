//! The responder's part of [`SealDevice`].

use units::{Instant, Span};

use crate::Cipher;
use crate::cookie;
use crate::device::{HandshakeOutcome, PeerId, SealDevice};
use crate::drop_reason::DropReason;
use crate::entropy::random_bytes;
use crate::initiation_limiter::Admission;
use crate::message::{
    HandshakeMessage, INITIATION_PAYLOAD_LEN, InitiationPayload, MessageType, ParsedMessage, ResponsePayload,
};
use crate::noise::{Noise, Split};
use crate::session::{Session, SessionKeys};
use crate::sessions::SessionEntry;
use crate::source::Source;

/// Maximum time by which an initiation on a slower path may arrive after a newer one.
const MAX_TRANSIT: Span = Span::from_secs(10);

impl SealDevice {
    /// Handles a handshake message that arrived from `source`: the octets of the IP address and then of the port at
    /// which the sender must be able to receive. `route` gives the route to a peer by which it arrived; it is called for
    /// replies to a pending handshake with that peer only.
    ///
    /// # Errors
    /// Why it was dropped; it is counted, and not replied to.
    pub fn receive(
        &mut self,
        now: Instant,
        route: impl FnOnce(PeerId) -> u8,
        source: &[u8],
        datagram: &[u8],
    ) -> Result<HandshakeOutcome, DropReason> {
        let outcome = ParsedMessage::parse(datagram).and_then(|message| match message.message_type {
            MessageType::Initiation => self.on_initiation(now, source, &message),
            MessageType::Response => self.on_response(now, route, source, &message),
            MessageType::CookieReply => self.on_cookie_reply(now, route, &message),
        });
        outcome.inspect_err(|&reason| self.counters.add(reason))
    }

    /// As [`receive`](Self::receive), for an initiation that another device of this host has admitted and passed on.
    ///
    /// # Errors
    /// Why it was dropped; it is counted, and not replied to.
    pub fn receive_admitted(
        &mut self,
        now: Instant,
        source: &[u8],
        datagram: &[u8],
    ) -> Result<HandshakeOutcome, DropReason> {
        let outcome = ParsedMessage::parse(datagram).and_then(|message| match message.message_type {
            MessageType::Initiation => self.respond(now, source, &message),
            MessageType::Response | MessageType::CookieReply => Err(DropReason::Malformed),
        });
        outcome.inspect_err(|&reason| self.counters.add(reason))
    }

    fn on_initiation(
        &mut self,
        now: Instant,
        source: &[u8],
        message: &ParsedMessage<'_>,
    ) -> Result<HandshakeOutcome, DropReason> {
        let (authenticated, mac1) = message.mac1();
        if !self.mac1.verify(authenticated, mac1) {
            return Err(DropReason::InvalidMac1);
        }
        match self.initiation_limiter.admit(now, &mut *self.entropy, source, message.mac2()) {
            Admission::Accept(charge) => {
                let outcome = self.respond(now, source, message)?;
                self.initiation_limiter.refund(&charge);
                Ok(outcome)
            }
            Admission::Drop => Err(DropReason::RateLimited),
            Admission::CookieReply(cookie) => {
                self.counters.add(DropReason::CookieRequired);
                let mut reply = HandshakeMessage::new(MessageType::CookieReply, message.index);
                let nonce = random_bytes(&mut *self.entropy);
                cookie::seal(&self.cookie_key, mac1, nonce, &cookie, reply.body_mut());
                Ok(HandshakeOutcome { peer: None, reply: Some(reply), established: None, pass_to: None })
            }
        }
    }

    fn respond(
        &mut self,
        now: Instant,
        source: &[u8],
        message: &ParsedMessage<'_>,
    ) -> Result<HandshakeOutcome, DropReason> {
        let mut payload = [0; INITIATION_PAYLOAD_LEN];
        let entropy = &mut *self.entropy;
        let noise =
            Noise::read_initiation(entropy, &self.config.private_key, message.header, message.body, &mut payload);
        let (noise, public) = noise.ok_or(DropReason::AuthenticationFailed)?;
        let payload = InitiationPayload::read(&payload);
        if let Some(other) = self.other_peers.get_mut(&public) {
            self.outdated_initiations += u64::from(is_outdated(payload.timestamp, other.received_timestamp()));
            let device = other.pass(payload.timestamp).ok_or(DropReason::ReplayedInitiation)?;
            return Ok(HandshakeOutcome { peer: None, reply: None, established: None, pass_to: Some(device) });
        }
        let id = *self.by_public_key.get(&public).ok_or(DropReason::UnknownPeer)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(DropReason::UnknownPeer)?;
        if payload.timestamp <= peer.received_timestamp {
            self.outdated_initiations += u64::from(is_outdated(payload.timestamp, peer.received_timestamp));
            return Err(DropReason::ReplayedInitiation);
        }
        peer.received_timestamp = payload.timestamp;
        if !peer.take_initiation(now) {
            return Err(DropReason::RateLimited);
        }
        let cipher = self.config.ciphers.iter().find(|cipher| payload.ciphers & cipher.bit() != 0);
        let cipher = *cipher.ok_or(DropReason::NoCommonCipher)?;
        let reply = self.create_response(now, id, message, noise, &payload, cipher);
        let reply = reply.ok_or(DropReason::AuthenticationFailed)?;
        if let Some(peer) = self.peers[id.0 as usize].as_mut() {
            peer.unconfirmed_source = Some(Source::new(source));
        }
        Ok(HandshakeOutcome { peer: Some(id), reply: Some(reply), established: None, pass_to: None })
    }

    /// Creates the session, which is unconfirmed until its first datagram arrives, and the response.
    fn create_response(
        &mut self,
        now: Instant,
        id: PeerId,
        message: &ParsedMessage<'_>,
        noise: Noise,
        initiation: &InitiationPayload,
        cipher: Cipher,
    ) -> Option<HandshakeMessage> {
        let local_index = self.reserve_index(id);
        let peer = self.peers[id.0 as usize].as_mut()?;
        let mut reply = HandshakeMessage::new(MessageType::Response, message.index);
        let payload = ResponsePayload {
            boot_id: peer.boot_id,
            index: local_index,
            cipher,
            capabilities: self.config.capabilities,
        };
        let split = noise.write_response(&peer.preshared_key, &payload.write(), reply.body_mut())?;
        reply.write_mac1(&message.response_mac1_key());
        let session = responded_session(now, local_index, message.index, initiation, cipher, &split);
        self.released_indices.extend(peer.sessions.add_unconfirmed(session));
        self.release_indices();
        self.schedule(now);
        Some(reply)
    }
}

/// Whether an initiation is older than any that may be in transit in addition to the peer's latest one.
fn is_outdated(timestamp: u64, latest: u64) -> bool {
    timestamp.saturating_add(MAX_TRANSIT.as_nanos()) < latest
}

fn responded_session(
    now: Instant,
    local_index: u32,
    remote_index: u32,
    initiation: &InitiationPayload,
    cipher: Cipher,
    split: &Split,
) -> SessionEntry {
    let keys = SessionKeys { cipher, seal: split.1, open: split.0 };
    SessionEntry {
        session: Session::new(&keys),
        local_index,
        remote_index,
        is_initiator: false,
        handshake_start: now,
        created: now,
        boot_id: initiation.boot_id,
        capabilities: initiation.capabilities,
        unanswered_since: Instant::NEVER,
    }
}
