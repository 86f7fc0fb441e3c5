//! One peer: its keys, sessions, pending handshakes and cookies.
//!
//! The state alone decides when to initiate: if there is no session and this host initiates, or if the session is old,
//! silent, or has half used up its key. An initiation is retried after about 1, 2, 3, 4 and then every 5 seconds; the
//! latest few handshakes stay pending, so that a response over a path with seconds of delay is still accepted.

use std::collections::{BTreeMap, VecDeque};

use units::{Instant, Span};

use crate::cookie;
use crate::entropy::{Entropy, random_below};
use crate::initiation_limiter::COOKIE_LIFETIME;
use crate::keys::{PresharedKey, PublicKey};
use crate::mac::{MAC_LEN, MAC1_KEY_LABEL, MacKey};
use crate::message::HandshakeMessage;
use crate::noise::Noise;
use crate::rate_limit::{Rate, TokenBucket};
use crate::sessions::{REKEY_AFTER, Sessions};
use crate::source::Source;

/// Delay of a responder's rekeying after the initiator's.
const RESPONDER_REKEY_DELAY: Span = Span::from_secs(10);
/// Time without a received datagram, although datagrams were sent that the peer answers, after which a new handshake
/// starts: the peer may have restarted.
pub const SILENCE_TIMEOUT: Span = Span::from_secs(3);
/// Maximum random delay of a retry (white paper, section 6.1).
const MAX_JITTER: Span = Span::from_millis(333);
/// Handshakes that may be pending at once.
const MAX_PENDING_HANDSHAKES: usize = 4;
/// Age at which a pending handshake and its ephemeral key are dropped.
const PENDING_HANDSHAKE_LIFETIME: Span = Span::from_secs(20);
/// [`Session::usage`](crate::Session) at which a session is rekeyed: half of the limit.
const REKEY_AFTER_USAGE: u64 = 128;

/// Responses by one route that may fail per second; also the burst. Each costs two Curve25519 operations.
const FAILED_RESPONSES: Rate = Rate::per_second(20);

/// Initiations of one peer that get a response per second; also the burst. A peer may be hostile.
const ACCEPTED_INITIATIONS: Rate = Rate::per_second(5);

/// An initiation without a response.
pub(crate) struct PendingHandshake {
    pub(crate) index: u32,
    pub(crate) sent: Instant,
    pub(crate) noise: Noise,
    /// Key of the mac1 of the response.
    pub(crate) response_mac1: MacKey,
    message: HandshakeMessage,
    mac1: [u8; MAC_LEN],
}

/// The state of one peer.
pub(crate) struct Peer {
    pub(crate) public_key: PublicKey,
    pub(crate) preshared_key: PresharedKey,
    /// Key of the mac1 of initiations to the peer.
    mac1: MacKey,
    cookie_key: MacKey,
    /// The random id that this host sends in handshakes with the peer; a new one after it has lost its state.
    pub(crate) boot_id: u64,
    /// Whether this host initiates handshakes, so that there is always a session.
    pub(crate) is_initiator: bool,
    pub(crate) rekey_requested: bool,
    pub(crate) sessions: Sessions,
    pub(crate) pending: VecDeque<PendingHandshake>,
    /// Maximum timestamp of the peer's initiations.
    pub(crate) received_timestamp: u64,
    /// Timestamp of the latest initiation to the peer.
    pub(crate) sent_timestamp: u64,
    retry_time: Instant,
    pub(crate) handshake_attempts: u32,
    /// By route: the latest cookie, and when it arrived.
    cookies: BTreeMap<u8, (Instant, [u8; MAC_LEN])>,
    /// By route: failed responses.
    failed_responses: BTreeMap<u8, TokenBucket>,
    /// Initiations that got a response.
    accepted_initiations: TokenBucket,
    /// The source of the latest accepted initiation. Once its session is confirmed, the peer is known to receive there.
    pub(crate) unconfirmed_source: Option<Source>,
}

impl Peer {
    pub(crate) fn new(public_key: PublicKey, preshared_key: PresharedKey, boot_id: u64) -> Self {
        Self {
            public_key,
            preshared_key,
            mac1: MacKey::derive(MAC1_KEY_LABEL, public_key.bytes()),
            cookie_key: MacKey::derive(cookie::COOKIE_KEY_LABEL, public_key.bytes()),
            boot_id,
            is_initiator: false,
            rekey_requested: false,
            sessions: Sessions::new(),
            pending: VecDeque::new(),
            received_timestamp: 0,
            sent_timestamp: 0,
            retry_time: Instant::ZERO,
            handshake_attempts: 0,
            cookies: BTreeMap::new(),
            failed_responses: BTreeMap::new(),
            accepted_initiations: TokenBucket::default(),
            unconfirmed_source: None,
        }
    }

    /// Drops all sessions and pending handshakes, and sets another boot id.
    pub(crate) fn reset(&mut self, boot_id: u64) {
        self.boot_id = boot_id;
        self.sessions = Sessions::new();
        self.pending.clear();
        self.handshake_attempts = 0;
    }

    /// Sets the preshared key of new sessions. The current session stays in use until it is replaced.
    pub(crate) fn set_preshared(&mut self, preshared_key: PresharedKey, released_indices: &mut Vec<u32>) {
        self.preshared_key = preshared_key;
        released_indices.extend(self.pending.drain(..).map(|handshake| handshake.index));
        self.sessions.drop_unconfirmed(released_indices);
        (self.rekey_requested, self.handshake_attempts) = (true, 0);
    }

    /// Drops expired sessions and pending handshakes.
    pub(crate) fn expire(&mut self, now: Instant, released_indices: &mut Vec<u32>) {
        self.sessions.expire(now, released_indices);
        while self.pending.front().is_some_and(|handshake| now.since(handshake.sent) >= PENDING_HANDSHAKE_LIFETIME) {
            released_indices.extend(self.pending.pop_front().map(|handshake| handshake.index));
        }
    }

    /// Notes that a session was established.
    pub(crate) fn on_established(&mut self) {
        (self.rekey_requested, self.handshake_attempts) = (false, 0);
    }

    /// Whether a new session is needed now.
    pub(crate) fn needs_handshake(&self, now: Instant) -> bool {
        let Some(entry) = self.sessions.current() else { return self.is_initiator };
        entry.session.usage() >= REKEY_AFTER_USAGE
            || self.is_initiator && (self.rekey_requested || now >= self.rekey_time())
    }

    /// When the current session is to be replaced.
    fn rekey_time(&self) -> Instant {
        let Some(entry) = self.sessions.current() else { return Instant::NEVER };
        let delay = if entry.is_initiator { Span::ZERO } else { RESPONDER_REKEY_DELAY };
        let rekey_by_age = entry.created + REKEY_AFTER + delay;
        rekey_by_age.min(entry.unanswered_since + SILENCE_TIMEOUT)
    }

    /// Whether to send an initiation now; if so, the next one is scheduled.
    pub(crate) fn take_due_initiation(&mut self, now: Instant, entropy: &mut dyn Entropy) -> bool {
        if !self.needs_handshake(now) {
            self.handshake_attempts = 0;
            return false;
        }
        if self.handshake_attempts > 0 && now < self.retry_time {
            return false;
        }
        self.handshake_attempts = self.handshake_attempts.saturating_add(1);
        self.retry_time = now + self.retry_interval(now) + Span(random_below(entropy, MAX_JITTER.as_nanos()));
        true
    }

    /// Time until the next attempt. While the current session works it is long, so that a path with seconds of delay
    /// gets no second initiation.
    fn retry_interval(&self, now: Instant) -> Span {
        let is_alive = self.sessions.current().is_some_and(|entry| now < entry.unanswered_since + SILENCE_TIMEOUT);
        if is_alive { Span::from_secs(5) } else { Span::from_secs(u64::from(self.handshake_attempts.min(5))) }
    }

    /// When the next initiation or expiry is due.
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        let initiation = if self.needs_handshake(now) {
            if self.handshake_attempts == 0 { now } else { self.retry_time }
        } else {
            self.next_check(now)
        };
        initiation.min(self.sessions.next_expiry())
    }

    /// When to check again whether a session is needed: silence and key usage have no timers of their own.
    fn next_check(&self, now: Instant) -> Instant {
        match self.sessions.current() {
            Some(_) if self.is_initiator => self.rekey_time().min(now + SILENCE_TIMEOUT),
            Some(_) => now + SILENCE_TIMEOUT,
            None => Instant::NEVER,
        }
    }

    /// Adds a pending handshake. Returns the index of the oldest one if that is dropped to make room.
    pub(crate) fn add_pending(
        &mut self,
        index: u32,
        sent: Instant,
        noise: Noise,
        mut message: HandshakeMessage,
    ) -> Option<u32> {
        let mac1 = message.write_mac1(&self.mac1);
        let response_mac1 = message.response_mac1_key();
        self.pending.push_back(PendingHandshake { index, sent, noise, response_mac1, message, mac1 });
        let oldest = (self.pending.len() > MAX_PENDING_HANDSHAKES).then(|| self.pending.pop_front());
        oldest.flatten().map(|handshake| handshake.index)
    }

    /// The latest initiation, with the mac2 of `route`.
    pub(crate) fn initiation(&self, now: Instant, route: u8) -> Option<HandshakeMessage> {
        let mut message = self.pending.back()?.message.clone();
        let is_valid = |(arrival, _): &&(Instant, _)| now.since(*arrival) < COOKIE_LIFETIME;
        if let Some((_, cookie)) = self.cookies.get(&route).filter(is_valid) {
            message.write_mac2(cookie);
        }
        Some(message)
    }

    /// The pending handshake with this index, and its position.
    pub(crate) fn pending_handshake(&mut self, index: u32) -> Option<(usize, &mut PendingHandshake)> {
        self.pending.iter_mut().enumerate().find(|(_, handshake)| handshake.index == index)
    }

    /// Whether another initiation of the peer may get a response.
    pub(crate) fn take_initiation(&mut self, now: Instant) -> bool {
        self.accepted_initiations.take(now, ACCEPTED_INITIATIONS)
    }

    /// Charges a response by `route` as failed. False if too many have failed: then the response is to be dropped.
    pub(crate) fn charge_response(&mut self, now: Instant, route: u8) -> bool {
        self.failed_responses.entry(route).or_default().take(now, FAILED_RESPONSES)
    }

    /// Takes back the charge of a response that is authentic.
    pub(crate) fn refund_response(&mut self, route: u8) {
        self.failed_responses.entry(route).or_default().refund(FAILED_RESPONSES);
    }

    /// Removes the handshake at `position`, to which a response arrived, and older ones.
    pub(crate) fn finish_handshakes(&mut self, position: usize, released_indices: &mut Vec<u32>) {
        released_indices.extend(self.pending.drain(..=position).map(|handshake| handshake.index));
    }

    /// Stores the cookie of a cookie reply by `route` to the initiation with this index. False if it is not authentic,
    /// or not the first one of that initiation and route.
    pub(crate) fn on_cookie_reply(
        &mut self,
        now: Instant,
        route: impl FnOnce() -> u8,
        index: u32,
        body: &[u8],
    ) -> bool {
        let Some((_, handshake)) = self.pending_handshake(index) else { return false };
        let (mac1, sent) = (handshake.mac1, handshake.sent);
        let route = route();
        if self.cookies.get(&route).is_some_and(|(arrival, _)| *arrival >= sent) {
            return false;
        }
        let Some(cookie) = cookie::open(&self.cookie_key, &mac1, body) else { return false };
        self.cookies.insert(route, (now, cookie));
        true
    }
}
