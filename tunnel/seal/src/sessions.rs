//! The sessions with one peer: the current one seals, the next one is unconfirmed, and previous ones open datagrams
//! that arrive late (WireGuard white paper, section 6.3).
//!
//! Key confirmation: the responder must not seal with a session before it has opened a datagram of it, since the
//! response may have been lost, or the initiation may be a replay. Two peers that initiate at the same time get two
//! sessions; both seal with the one that the peer with the larger public key initiated, in whatever order the messages
//! arrive.

use units::{Instant, Span};

use crate::session::{ExpectedPacketNumbers, Session};

/// Age at which a session is replaced (white paper, section 6.1: REKEY-AFTER-TIME).
pub const REKEY_AFTER: Span = Span::from_secs(120);
/// Age from which a session neither seals nor opens (REJECT-AFTER-TIME).
pub const REJECT_AFTER: Span = Span::from_secs(180);

/// Sessions that only open: one after a rekey, two when both peers initiated at the same time.
const MAX_PREVIOUS_SESSIONS: usize = 2;
/// Boot ids before the present one that are remembered.
const EARLIER_BOOT_IDS: usize = 4;

/// A session with its handshake's data.
pub(crate) struct SessionEntry {
    pub(crate) session: Session,
    /// The local session index: the receiver index of the peer's datagrams.
    pub(crate) local_index: u32,
    /// The peer's session index.
    pub(crate) remote_index: u32,
    /// Whether this host was the initiator.
    pub(crate) is_initiator: bool,
    /// When the initiation was sent (by an initiator) or arrived.
    pub(crate) handshake_start: Instant,
    /// When the keys were derived.
    pub(crate) created: Instant,
    /// The random id of the peer in its handshakes; a new one after it has lost its state.
    pub(crate) boot_id: u64,
    /// The peer's capabilities, one bit each.
    pub(crate) capabilities: u8,
    /// When the first datagram after the latest opened one that the peer answers was sealed; [`Instant::NEVER`] if none
    /// was.
    pub(crate) unanswered_since: Instant,
}

impl SessionEntry {
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        now.since(self.created) >= REJECT_AFTER
    }
}

/// The role of a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    /// The session seals, and replaces one with the same boot id of the peer.
    Rekeyed,
    /// The session seals; the peer has lost its state.
    PeerRestarted,
    /// The session only opens: another one of a simultaneous handshake seals.
    ReceiveOnly,
}

/// The sessions with one peer.
pub(crate) struct Sessions {
    current: Option<SessionEntry>,
    /// The unconfirmed session of a responder.
    unconfirmed: Option<SessionEntry>,
    previous: [Option<SessionEntry>; MAX_PREVIOUS_SESSIONS],
    /// The peer's boot id of `current` and `previous`.
    boot_id: Option<u64>,
    /// When the first session with it was established.
    boot_id_known: Instant,
    expected: ExpectedPacketNumbers,
    /// Boot ids before that, the latest first.
    earlier_boot_ids: [Option<u64>; EARLIER_BOOT_IDS],
    /// When a session was last established with a boot id that another one had replaced before. A host that restarts
    /// never returns to an old boot id, so two hosts have the peer's key, and each takes the session from the other.
    latest_takeover: Option<Instant>,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self {
            current: None,
            unconfirmed: None,
            previous: [const { None }; MAX_PREVIOUS_SESSIONS],
            boot_id: None,
            boot_id_known: Instant::ZERO,
            expected: ExpectedPacketNumbers::zero(),
            earlier_boot_ids: [None; EARLIER_BOOT_IDS],
            latest_takeover: None,
        }
    }

    /// When a host last took the session back from another one with the same key.
    pub(crate) fn latest_takeover(&self) -> Option<Instant> {
        self.latest_takeover
    }

    /// The session that seals.
    pub(crate) fn current(&self) -> Option<&SessionEntry> {
        self.current.as_ref()
    }

    pub(crate) fn current_mut(&mut self) -> Option<&mut SessionEntry> {
        self.current.as_mut()
    }

    /// The session with this local index.
    pub(crate) fn find(&mut self, local_index: u32) -> Option<&mut SessionEntry> {
        self.slots().find_map(|slot| slot.as_mut().filter(|entry| entry.local_index == local_index))
    }

    /// Whether the session with this local index is unconfirmed.
    pub(crate) fn is_unconfirmed(&self, local_index: u32) -> bool {
        self.unconfirmed.as_ref().is_some_and(|entry| entry.local_index == local_index)
    }

    /// Adds the session of a responder. Returns the index of the unconfirmed one that it replaces.
    pub(crate) fn add_unconfirmed(&mut self, mut entry: SessionEntry) -> Option<u32> {
        self.continue_packet_numbers(&mut entry);
        self.unconfirmed.replace(entry).map(|replaced| replaced.local_index)
    }

    /// Confirms the unconfirmed session, of which a datagram was opened. `has_larger_key`: whether this host's public
    /// key is the larger.
    pub(crate) fn confirm(&mut self, has_larger_key: bool, released_indices: &mut Vec<u32>) -> Activation {
        let entry = self.unconfirmed.take().expect("a session is unconfirmed");
        let is_simultaneous = |current: &SessionEntry| {
            current.is_initiator && current.handshake_start <= entry.created && entry.created <= current.created
        };
        let is_receive_only = has_larger_key && self.current.as_ref().is_some_and(is_simultaneous);
        self.establish(entry, is_receive_only, released_indices)
    }

    /// Whether a response to an initiation sent at `handshake_start` is from before the peer's latest restart: it has
    /// another boot id, and the current one became known later. The peer no longer has its session.
    pub(crate) fn is_outdated(&self, boot_id: u64, handshake_start: Instant) -> bool {
        self.boot_id.is_some_and(|known| known != boot_id) && handshake_start < self.boot_id_known
    }

    /// Adds the session of an initiator. `has_larger_key`: whether this host's public key is the larger.
    pub(crate) fn on_response(
        &mut self,
        mut entry: SessionEntry,
        has_larger_key: bool,
        released_indices: &mut Vec<u32>,
    ) -> Activation {
        self.continue_packet_numbers(&mut entry);
        let is_simultaneous =
            |current: &SessionEntry| !current.is_initiator && entry.handshake_start <= current.created;
        let is_receive_only = !has_larger_key && self.current.as_ref().is_some_and(is_simultaneous);
        self.establish(entry, is_receive_only, released_indices)
    }

    fn establish(&mut self, entry: SessionEntry, is_receive_only: bool, released_indices: &mut Vec<u32>) -> Activation {
        let has_peer_restarted = self.boot_id != Some(entry.boot_id);
        if has_peer_restarted {
            if self.earlier_boot_ids.contains(&Some(entry.boot_id)) {
                self.latest_takeover = Some(entry.created);
            }
            self.earlier_boot_ids.rotate_right(1);
            self.earlier_boot_ids[0] = self.boot_id;
            self.drop_old_boot_id(entry.boot_id, released_indices);
            self.boot_id_known = entry.created;
        }
        if is_receive_only && !has_peer_restarted {
            self.keep_previous(entry, released_indices);
            return Activation::ReceiveOnly;
        }
        if let Some(replaced) = self.current.replace(entry) {
            self.keep_previous(replaced, released_indices);
        }
        if has_peer_restarted { Activation::PeerRestarted } else { Activation::Rekeyed }
    }

    /// Drops the unconfirmed session.
    pub(crate) fn drop_unconfirmed(&mut self, released_indices: &mut Vec<u32>) {
        released_indices.extend(self.unconfirmed.take().map(|entry| entry.local_index));
    }

    /// Drops the sessions with the peer's old boot id.
    fn drop_old_boot_id(&mut self, boot_id: u64, released_indices: &mut Vec<u32>) {
        self.remove(released_indices, |entry| entry.boot_id != boot_id);
        self.boot_id = Some(boot_id);
        self.expected = ExpectedPacketNumbers::zero();
    }

    fn keep_previous(&mut self, entry: SessionEntry, released_indices: &mut Vec<u32>) {
        self.expected.update(&entry.session);
        self.previous.rotate_right(1);
        released_indices.extend(self.previous[0].replace(entry).map(|oldest| oldest.local_index));
    }

    /// Continues the packet numbers if the peer's boot id is the same.
    fn continue_packet_numbers(&mut self, entry: &mut SessionEntry) {
        if self.boot_id == Some(entry.boot_id) {
            if let Some(current) = &self.current {
                self.expected.update(&current.session);
            }
            entry.session.set_expected_packet_numbers(&self.expected);
        }
    }

    /// Drops expired sessions.
    pub(crate) fn expire(&mut self, now: Instant, released_indices: &mut Vec<u32>) {
        if let Some(current) = self.current.as_ref().filter(|entry| entry.is_expired(now)) {
            self.expected.update(&current.session);
        }
        self.remove(released_indices, |entry| entry.is_expired(now));
    }

    fn remove(&mut self, released_indices: &mut Vec<u32>, is_removed: impl Fn(&SessionEntry) -> bool) {
        for slot in self.slots() {
            released_indices.extend(slot.take_if(|entry| is_removed(entry)).map(|entry| entry.local_index));
        }
    }

    fn slots(&mut self) -> impl Iterator<Item = &mut Option<SessionEntry>> {
        [&mut self.current, &mut self.unconfirmed].into_iter().chain(&mut self.previous)
    }

    /// When the oldest session expires.
    pub(crate) fn next_expiry(&self) -> Instant {
        let sessions = [&self.current, &self.unconfirmed].into_iter().chain(&self.previous).flatten();
        sessions.map(|entry| entry.created + REJECT_AFTER).min().unwrap_or(Instant::NEVER)
    }
}

/// The sessions with one peer, for a search over their states.
#[cfg(test)]
pub(crate) struct Snapshot<'a> {
    /// The current session, the unconfirmed one, and the previous ones.
    pub(crate) slots: Vec<Option<&'a SessionEntry>>,
    pub(crate) boot_id: Option<u64>,
    /// The packet number that the peer continues with on path 0.
    pub(crate) expected: u64,
}

#[cfg(test)]
impl Sessions {
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        let slots = [&self.current, &self.unconfirmed].into_iter().chain(&self.previous).map(Option::as_ref);
        Snapshot { slots: slots.collect(), boot_id: self.boot_id, expected: self.expected.of_path_zero() }
    }

    pub(crate) fn unconfirmed(&self) -> Option<&SessionEntry> {
        self.unconfirmed.as_ref()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &SessionEntry> {
        [&self.current, &self.unconfirmed].into_iter().chain(&self.previous).flatten()
    }
}
