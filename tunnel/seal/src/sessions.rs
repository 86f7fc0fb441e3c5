//! The sessions with one peer: the one that seals, the one that waits for its first datagram, and those that only still
//! open what is late (WireGuard white paper, section 6.3).
//!
//! Who answered a handshake must not seal with its session before something arrived that was sealed with it: the answer
//! may have been lost, or the question may be a recording. Two ends that ask at the same time get two sessions; both
//! settle on the one that the larger public key asked for, whatever order the messages arrive in.

use units::{Instant, Span};

use crate::session::{Expected, Session};

/// A session is replaced when it is so old (white paper, section 6.1: REKEY-AFTER-TIME).
pub const REKEY_AFTER: Span = Span::from_secs(120);
/// A session this old neither seals nor opens (REJECT-AFTER-TIME).
pub const REJECT_AFTER: Span = Span::from_secs(180);

/// Sessions that only open: one is the rule, a second remains when both ends asked at the same time.
const PREVIOUS: usize = 2;

/// A session and its story.
pub(crate) struct Held {
    pub(crate) session: Session,
    /// Our index, which the peer addresses it by.
    pub(crate) local: u32,
    /// The peer's index.
    pub(crate) remote: u32,
    /// Whether we asked.
    pub(crate) asked: bool,
    /// When the initiation that led to it was sent (if we asked) or arrived.
    pub(crate) begun: Instant,
    /// When its keys were made.
    pub(crate) born: Instant,
    /// What the peer calls its memory of us.
    pub(crate) instance: u64,
    pub(crate) features: u32,
    /// When the first datagram was sealed after the last one that was opened; [`Instant::NEVER`] if none was.
    pub(crate) unanswered: Instant,
}

impl Held {
    pub(crate) fn expired(&self, now: Instant) -> bool {
        now.since(self.born) >= REJECT_AFTER
    }
}

/// What became of a session that could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It seals from now on, after another one with the same peer.
    Continued,
    /// It seals from now on, and the peer has forgotten whatever was before.
    Fresh,
    /// It only opens: the other one of two that were made at the same time seals.
    Spare,
}

/// The sessions with one peer.
pub(crate) struct Sessions {
    current: Option<Held>,
    next: Option<Held>,
    previous: [Option<Held>; PREVIOUS],
    /// The peer's memory that `current` and `previous` belong to.
    instance: Option<u64>,
    expected: Expected,
}

impl Sessions {
    pub(crate) fn none() -> Self {
        Self {
            current: None,
            next: None,
            previous: [const { None }; PREVIOUS],
            instance: None,
            expected: Expected::none(),
        }
    }

    /// The one that seals.
    pub(crate) fn current(&self) -> Option<&Held> {
        self.current.as_ref()
    }

    pub(crate) fn current_mut(&mut self) -> Option<&mut Held> {
        self.current.as_mut()
    }

    /// The one that the peer addresses so.
    pub(crate) fn find(&mut self, local: u32) -> Option<&mut Held> {
        self.slots().find_map(|slot| slot.as_mut().filter(|held| held.local == local))
    }

    /// Whether `local` is the one that waits for its first datagram.
    pub(crate) fn waits(&self, local: u32) -> bool {
        self.next.as_ref().is_some_and(|held| held.local == local)
    }

    /// We answered: `held` waits. Returns the index of the one that waited before.
    pub(crate) fn wait(&mut self, mut held: Held) -> Option<u32> {
        self.prepare(&mut held);
        self.next.replace(held).map(|old| old.local)
    }

    /// The waiting session has proved true: something sealed with it arrived. `larger`: our public key is.
    pub(crate) fn confirm(&mut self, larger: bool, freed: &mut Vec<u32>) -> Use {
        let held = self.next.take().expect("a session waits");
        let crossed = |ours: &Held| ours.asked && ours.begun <= held.born && held.born <= ours.born;
        let spare = larger && self.current.as_ref().is_some_and(crossed);
        self.establish(held, spare, freed)
    }

    /// Our question was answered. `larger`: our public key is.
    pub(crate) fn answered(&mut self, mut held: Held, larger: bool, freed: &mut Vec<u32>) -> Use {
        self.prepare(&mut held);
        let crossed = |theirs: &Held| !theirs.asked && held.begun <= theirs.born;
        let spare = !larger && self.current.as_ref().is_some_and(crossed);
        self.establish(held, spare, freed)
    }

    fn establish(&mut self, held: Held, spare: bool, freed: &mut Vec<u32>) -> Use {
        let fresh = self.instance != Some(held.instance);
        if fresh {
            self.forget(held.instance, freed);
        }
        if spare && !fresh {
            self.retire(held, freed);
            return Use::Spare;
        }
        if let Some(old) = self.current.replace(held) {
            self.retire(old, freed);
        }
        if fresh { Use::Fresh } else { Use::Continued }
    }

    /// The one that waits for its first datagram is not to be used.
    pub(crate) fn drop_waiting(&mut self, freed: &mut Vec<u32>) {
        freed.extend(self.next.take().map(|held| held.local));
    }

    /// The peer has another memory now: nothing of the old one may seal or open any more.
    fn forget(&mut self, instance: u64, freed: &mut Vec<u32>) {
        self.remove(freed, |held| held.instance != instance);
        // What has this memory and is established cannot be, so only `next` can remain.
        self.instance = Some(instance);
        self.expected = Expected::none();
    }

    fn retire(&mut self, held: Held, freed: &mut Vec<u32>) {
        self.expected.learn(&held.session);
        self.previous.rotate_right(1);
        freed.extend(self.previous[0].replace(held).map(|oldest| oldest.local));
    }

    /// Packet numbers go on where they are, if it is with the same memory.
    fn prepare(&mut self, held: &mut Held) {
        if self.instance == Some(held.instance) {
            if let Some(current) = &self.current {
                self.expected.learn(&current.session);
            }
            held.session.expect_as(&self.expected);
        }
    }

    /// Drops what is too old.
    pub(crate) fn expire(&mut self, now: Instant, freed: &mut Vec<u32>) {
        if let Some(current) = self.current.as_ref().filter(|held| held.expired(now)) {
            self.expected.learn(&current.session);
        }
        self.remove(freed, |held| held.expired(now));
    }

    fn remove(&mut self, freed: &mut Vec<u32>, unwanted: impl Fn(&Held) -> bool) {
        for slot in self.slots() {
            freed.extend(slot.take_if(|held| unwanted(held)).map(|held| held.local));
        }
    }

    fn slots(&mut self) -> impl Iterator<Item = &mut Option<Held>> {
        [&mut self.current, &mut self.next].into_iter().chain(&mut self.previous)
    }

    /// When the oldest one ends.
    pub(crate) fn next_end(&self) -> Instant {
        let all = [&self.current, &self.next].into_iter().chain(&self.previous).flatten();
        all.map(|held| held.born + REJECT_AFTER).min().unwrap_or(Instant::NEVER)
    }
}
