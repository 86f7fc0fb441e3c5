//! One peer: what we ask it, when, and what it told us.
//!
//! Asking follows from the state alone: it is needed if there is no session though one is wanted, or if the session grows
//! old, is worn, or has fallen silent. A question is repeated after about 1, 2, 3, 4 and then every 5 seconds; the last
//! few stay open, so that an answer over a path with seconds of delay is still understood.

use std::collections::{BTreeMap, VecDeque};

use units::{Instant, Span};

use crate::cookie;
use crate::entropy::{Entropy, below};
use crate::keys::{PresharedKey, PublicKey};
use crate::load::COOKIE_LIFE;
use crate::mac::{MAC, MAC1, MacKey};
use crate::message::Message;
use crate::noise::Noise;
use crate::sessions::{REKEY_AFTER, Sessions};

/// Who answered leaves the other so much more time to ask again before it asks itself.
const ANSWERER_WAITS: Span = Span::from_secs(10);
/// Nothing came back for so long although we sent: perhaps the peer has begun anew and knows our session no more.
pub const SILENCE: Span = Span::from_secs(3);
/// Questions are spread by so much (white paper, section 6.1).
const JITTER: Span = Span::from_millis(333);
/// Questions that may still be answered.
const OPEN_QUESTIONS: usize = 4;
/// An answer after so long is of no use; the key that it would need is dropped.
const QUESTION_LIFE: Span = Span::from_secs(20);
/// Part of [`Session::wear`] from which a new session is wanted: half.
const WORN: u64 = 128;

/// An initiation that may be answered.
pub(crate) struct Question {
    pub(crate) index: u32,
    pub(crate) sent: Instant,
    pub(crate) noise: Noise,
    message: Message,
    mac1: [u8; MAC],
}

/// What is known of one peer.
pub(crate) struct Peer {
    pub(crate) public: PublicKey,
    pub(crate) preshared: PresharedKey,
    /// For the mac1 of what we send it.
    pub(crate) mac1: MacKey,
    cookie_key: MacKey,
    /// What we call our memory of it.
    pub(crate) instance: u64,
    /// A session shall be there always.
    pub(crate) wanted: bool,
    pub(crate) renew: bool,
    pub(crate) sessions: Sessions,
    pub(crate) questions: VecDeque<Question>,
    /// The time in its latest initiation, and in ours.
    pub(crate) newest: u64,
    pub(crate) told: u64,
    retry_at: Instant,
    pub(crate) attempts: u32,
    /// By route: the cookie that shows our address there, and when it came.
    cookies: BTreeMap<u8, (Instant, [u8; MAC])>,
}

impl Peer {
    pub(crate) fn new(public: PublicKey, preshared: PresharedKey, instance: u64) -> Self {
        Self {
            public,
            preshared,
            mac1: MacKey::of_public(MAC1, &public),
            cookie_key: MacKey::of_public(cookie::LABEL, &public),
            instance,
            wanted: false,
            renew: false,
            sessions: Sessions::none(),
            questions: VecDeque::new(),
            newest: 0,
            told: 0,
            retry_at: Instant::ZERO,
            attempts: 0,
            cookies: BTreeMap::new(),
        }
    }

    /// Gives up every session and question, and calls what it will remember otherwise.
    pub(crate) fn forget(&mut self, instance: u64) {
        self.instance = instance;
        self.sessions = Sessions::none();
        self.questions.clear();
        self.attempts = 0;
    }

    /// Another secret, for every session from now on. The present one goes on until it is replaced.
    pub(crate) fn set_preshared(&mut self, preshared: PresharedKey, freed: &mut Vec<u32>) {
        self.preshared = preshared;
        freed.extend(self.questions.drain(..).map(|question| question.index));
        self.sessions.drop_waiting(freed);
        (self.renew, self.attempts) = (true, 0);
    }

    /// Drops sessions and questions that are too old.
    pub(crate) fn expire(&mut self, now: Instant, freed: &mut Vec<u32>) {
        self.sessions.expire(now, freed);
        while self.questions.front().is_some_and(|question| now.since(question.sent) >= QUESTION_LIFE) {
            freed.extend(self.questions.pop_front().map(|question| question.index));
        }
    }

    /// A session was established: whatever was asked for is there.
    pub(crate) fn settle(&mut self) {
        (self.renew, self.attempts) = (false, 0);
    }

    /// Whether a new session is needed now.
    pub(crate) fn needs(&self, now: Instant) -> bool {
        let Some(held) = self.sessions.current() else { return self.wanted };
        held.session.wear() >= WORN || self.wanted && (self.renew || now >= self.renewal())
    }

    /// When the present session is to be replaced if nothing changes.
    fn renewal(&self) -> Instant {
        let Some(held) = self.sessions.current() else { return Instant::NEVER };
        let patience = if held.asked { Span::ZERO } else { ANSWERER_WAITS };
        let old = held.born + REKEY_AFTER + patience;
        old.min(held.unanswered + SILENCE)
    }

    /// Whether to ask now; then the next question is due later.
    pub(crate) fn asks(&mut self, now: Instant, entropy: &mut dyn Entropy) -> bool {
        if !self.needs(now) {
            self.attempts = 0;
            return false;
        }
        if self.attempts > 0 && now < self.retry_at {
            return false;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.retry_at = now + self.patience(now) + Span(below(entropy, JITTER.as_nanos()));
        true
    }

    /// How long to wait for an answer. While the present session works there is no hurry, and a path with seconds of delay
    /// is not asked twice.
    fn patience(&self, now: Instant) -> Span {
        let works = self.sessions.current().is_some_and(|held| now < held.unanswered + SILENCE);
        if works { Span::from_secs(5) } else { Span::from_secs(u64::from(self.attempts.min(5))) }
    }

    /// When something is to be done.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let ask = if self.needs(now) { if self.attempts == 0 { now } else { self.retry_at } } else { self.look(now) };
        ask.min(self.sessions.next_end())
    }

    /// When to look whether a session is needed: data alone does not tell.
    fn look(&self, now: Instant) -> Instant {
        match self.sessions.current() {
            Some(_) if self.wanted => self.renewal().min(now + SILENCE),
            Some(_) => now + SILENCE,
            None => Instant::NEVER,
        }
    }

    /// Keeps a question open. Returns the index of one that is given up for it.
    pub(crate) fn keep(&mut self, index: u32, sent: Instant, noise: Noise, mut message: Message) -> Option<u32> {
        let mac1 = message.sign(&self.mac1);
        self.questions.push_back(Question { index, sent, noise, message, mac1 });
        let oldest = (self.questions.len() > OPEN_QUESTIONS).then(|| self.questions.pop_front());
        oldest.flatten().map(|question| question.index)
    }

    /// The latest question, as it is to be sent by `route`.
    pub(crate) fn question(&self, now: Instant, route: u8) -> Option<Message> {
        let mut message = self.questions.back()?.message.clone();
        let fresh = |(came, _): &&(Instant, _)| now.since(*came) < COOKIE_LIFE;
        if let Some((_, cookie)) = self.cookies.get(&route).filter(fresh) {
            message.show_cookie(cookie);
        }
        Some(message)
    }

    /// The open question with this index, and its place.
    pub(crate) fn open_question(&mut self, index: u32) -> Option<(usize, &mut Question)> {
        self.questions.iter_mut().enumerate().find(|(_, question)| question.index == index)
    }

    /// An answer came to the question at `place`: it and older ones are done with.
    pub(crate) fn close_questions(&mut self, place: usize, freed: &mut Vec<u32>) {
        freed.extend(self.questions.drain(..=place).map(|question| question.index));
    }

    /// A cookie that came by `route` in answer to question `index`: kept if it proves true. One a question and route: more
    /// would only be made by someone who listens.
    pub(crate) fn take_cookie(&mut self, now: Instant, route: u8, index: u32, body: &[u8]) -> bool {
        let Some((_, question)) = self.open_question(index) else { return false };
        let (mac1, sent) = (question.mac1, question.sent);
        if self.cookies.get(&route).is_some_and(|(came, _)| *came >= sent) {
            return false;
        }
        let Some(cookie) = cookie::open(&self.cookie_key, &mac1, body) else { return false };
        self.cookies.insert(route, (now, cookie));
        true
    }
}
