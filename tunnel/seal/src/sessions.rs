//! The sessions with one peer: the current one seals, the next one is unconfirmed, and previous ones open what arrives late
//! (WireGuard white paper, section 6.3).
//!
//! Key confirmation: the responder must not seal with a session before it has opened a datagram of it, since the response
//! may have been lost, or the initiation may be a replay. Two peers that initiate at the same time get two sessions; both
//! seal with the one that the peer with the larger public key initiated, in whatever order the messages arrive.

use units::{Instant, Span};

use crate::session::{ExpectedPacketNumbers, Session};

/// Age at which a session is replaced (white paper, section 6.1: REKEY-AFTER-TIME).
pub const REKEY_AFTER: Span = Span::from_secs(120);
/// Age from which a session neither seals nor opens (REJECT-AFTER-TIME).
pub const REJECT_AFTER: Span = Span::from_secs(180);

/// Sessions that only open: one after a rekey, two when both peers initiated at the same time.
const MAX_PREVIOUS_SESSIONS: usize = 2;

/// A session with its handshake's data.
pub(crate) struct SessionEntry {
    pub(crate) session: Session,
    /// The local session index: the receiver index of what the peer sends.
    pub(crate) local: u32,
    /// The peer's session index.
    pub(crate) remote: u32,
    /// Whether this host was the initiator.
    pub(crate) initiated: bool,
    /// When the initiation was sent (by an initiator) or arrived.
    pub(crate) handshake_started: Instant,
    /// When the keys were derived.
    pub(crate) created: Instant,
    /// The peer's instance: random, and another one after it has lost its state.
    pub(crate) instance: u64,
    /// When the first datagram after the latest opened one was sealed; [`Instant::NEVER`] if none was.
    pub(crate) unanswered_since: Instant,
}

impl SessionEntry {
    pub(crate) fn expired(&self, now: Instant) -> bool {
        now.since(self.created) >= REJECT_AFTER
    }
}

/// The role of a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    /// The session seals, and replaces one with the same instance of the peer.
    Rekeyed,
    /// The session seals; the peer has lost its state.
    PeerRestarted,
    /// The session only opens: another one of a simultaneous handshake seals.
    ReceiveOnly,
}

/// The sessions with one peer.
pub(crate) struct Sessions {
    current: Option<SessionEntry>,
    next: Option<SessionEntry>,
    previous: [Option<SessionEntry>; MAX_PREVIOUS_SESSIONS],
    /// The peer's instance of `current` and `previous`.
    instance: Option<u64>,
    expected: ExpectedPacketNumbers,
}

impl Sessions {
    pub(crate) fn empty() -> Self {
        Self {
            current: None,
            next: None,
            previous: [const { None }; MAX_PREVIOUS_SESSIONS],
            instance: None,
            expected: ExpectedPacketNumbers::zero(),
        }
    }

    /// The session that seals.
    pub(crate) fn current(&self) -> Option<&SessionEntry> {
        self.current.as_ref()
    }

    pub(crate) fn current_mut(&mut self) -> Option<&mut SessionEntry> {
        self.current.as_mut()
    }

    /// The session with this local index.
    pub(crate) fn find(&mut self, local: u32) -> Option<&mut SessionEntry> {
        self.slots().find_map(|slot| slot.as_mut().filter(|entry| entry.local == local))
    }

    /// Whether the session with this local index is unconfirmed.
    pub(crate) fn is_unconfirmed(&self, local: u32) -> bool {
        self.next.as_ref().is_some_and(|entry| entry.local == local)
    }

    /// Adds the session of a responder. Returns the index of the unconfirmed one that it replaces.
    pub(crate) fn add_unconfirmed(&mut self, mut entry: SessionEntry) -> Option<u32> {
        self.continue_packet_numbers(&mut entry);
        self.next.replace(entry).map(|old| old.local)
    }

    /// Confirms the next session: a datagram of it was opened. `has_larger_key`: whether this host's public key is the
    /// larger.
    pub(crate) fn confirm(&mut self, has_larger_key: bool, freed_indices: &mut Vec<u32>) -> Activation {
        let entry = self.next.take().expect("a session is unconfirmed");
        let simultaneous = |ours: &SessionEntry| {
            ours.initiated && ours.handshake_started <= entry.created && entry.created <= ours.created
        };
        let receive_only = has_larger_key && self.current.as_ref().is_some_and(simultaneous);
        self.establish(entry, receive_only, freed_indices)
    }

    /// Adds the session of an initiator. `has_larger_key`: whether this host's public key is the larger.
    pub(crate) fn on_response(
        &mut self,
        mut entry: SessionEntry,
        has_larger_key: bool,
        freed_indices: &mut Vec<u32>,
    ) -> Activation {
        self.continue_packet_numbers(&mut entry);
        let simultaneous = |theirs: &SessionEntry| !theirs.initiated && entry.handshake_started <= theirs.created;
        let receive_only = !has_larger_key && self.current.as_ref().is_some_and(simultaneous);
        self.establish(entry, receive_only, freed_indices)
    }

    fn establish(&mut self, entry: SessionEntry, receive_only: bool, freed_indices: &mut Vec<u32>) -> Activation {
        let fresh = self.instance != Some(entry.instance);
        if fresh {
            self.drop_old_instance(entry.instance, freed_indices);
        }
        if receive_only && !fresh {
            self.keep_previous(entry, freed_indices);
            return Activation::ReceiveOnly;
        }
        if let Some(old) = self.current.replace(entry) {
            self.keep_previous(old, freed_indices);
        }
        if fresh { Activation::PeerRestarted } else { Activation::Rekeyed }
    }

    /// Drops the unconfirmed session.
    pub(crate) fn drop_unconfirmed(&mut self, freed_indices: &mut Vec<u32>) {
        freed_indices.extend(self.next.take().map(|entry| entry.local));
    }

    /// The peer has another instance: sessions of the old one neither seal nor open any more.
    fn drop_old_instance(&mut self, instance: u64, freed_indices: &mut Vec<u32>) {
        self.remove(freed_indices, |entry| entry.instance != instance);
        self.instance = Some(instance);
        self.expected = ExpectedPacketNumbers::zero();
    }

    fn keep_previous(&mut self, entry: SessionEntry, freed_indices: &mut Vec<u32>) {
        self.expected.update(&entry.session);
        self.previous.rotate_right(1);
        freed_indices.extend(self.previous[0].replace(entry).map(|oldest| oldest.local));
    }

    /// Continues the packet numbers of the same instance of the peer.
    fn continue_packet_numbers(&mut self, entry: &mut SessionEntry) {
        if self.instance == Some(entry.instance) {
            if let Some(current) = &self.current {
                self.expected.update(&current.session);
            }
            entry.session.set_expected_packet_numbers(&self.expected);
        }
    }

    /// Drops expired sessions.
    pub(crate) fn expire(&mut self, now: Instant, freed_indices: &mut Vec<u32>) {
        if let Some(current) = self.current.as_ref().filter(|entry| entry.expired(now)) {
            self.expected.update(&current.session);
        }
        self.remove(freed_indices, |entry| entry.expired(now));
    }

    fn remove(&mut self, freed_indices: &mut Vec<u32>, unwanted: impl Fn(&SessionEntry) -> bool) {
        for slot in self.slots() {
            freed_indices.extend(slot.take_if(|entry| unwanted(entry)).map(|entry| entry.local));
        }
    }

    fn slots(&mut self) -> impl Iterator<Item = &mut Option<SessionEntry>> {
        [&mut self.current, &mut self.next].into_iter().chain(&mut self.previous)
    }

    /// When the oldest session expires.
    pub(crate) fn next_expiry(&self) -> Instant {
        let all = [&self.current, &self.next].into_iter().chain(&self.previous).flatten();
        all.map(|entry| entry.created + REJECT_AFTER).min().unwrap_or(Instant::NEVER)
    }
}
