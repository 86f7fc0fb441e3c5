//! The initiator's part of [`Peers`]: when to ask, what to ask, and what an answer means.

use units::Instant;

use crate::Cipher;
use crate::entropy::draw;
use crate::message::{ANSWER, Answer, Ask, INDEX_BITS, Kind, Message, Parts};
use crate::noise::{Noise, Split};
use crate::peer::Peer;
use crate::peers::{Established, PeerId, Peers, Taken};
use crate::refusal::Refusal;
use crate::session::{Session, SessionKeys};
use crate::sessions::{Held, Use};

impl Peers {
    /// When [`question_due`](Self::question_due) is to be called, if nothing happens before.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.due
    }

    /// A peer that is to be asked now: send it [`question`](Self::question). Call again until none is left. `wall` is the
    /// time in nanoseconds since 1970, by which the peer tells new questions from recorded ones; should it ever go back,
    /// the peer will not answer before it has passed its old value again.
    pub fn question_due(&mut self, now: Instant, wall: u64) -> Option<PeerId> {
        if now < self.due {
            return None;
        }
        for place in 0..self.peers.len() {
            let Some(peer) = &mut self.peers[place] else { continue };
            peer.expire(now, &mut self.freed);
            if peer.asks(now, &mut *self.entropy) {
                let id = PeerId(u32::try_from(place).expect("peers are counted in 32 bits"));
                self.ask(now, wall, id);
                return Some(id);
            }
        }
        self.release();
        self.schedule(now);
        None
    }

    /// The latest question to a peer. By each route (whatever tells the driver's source and destination addresses apart)
    /// the same one can be sent: the peer answers the copy that comes first.
    #[must_use]
    pub fn question(&self, now: Instant, id: PeerId, route: u8) -> Option<Message> {
        self.peer(id)?.question(now, route)
    }

    fn ask(&mut self, now: Instant, wall: u64, id: PeerId) {
        let index = self.reserve(id);
        let Some(peer) = self.peers[id.0 as usize].as_mut() else { return };
        peer.told = wall.max(peer.told.saturating_add(1));
        let ciphers = self.setup.ciphers.iter().fold(0, |set, cipher| set | cipher.bit());
        let ask = Ask { time: peer.told, instance: peer.instance, ciphers, features: self.setup.features };
        let mut message = Message::new(Kind::Initiation, index);
        let (header, keys) = (message.header(), (&self.setup.private, &peer.public, &peer.preshared));
        let noise = Noise::initiate(&mut *self.entropy, keys, &header, &ask.write(), message.body_mut());
        let noise = noise.expect("keys of low order are no peers");
        self.freed.extend(peer.keep(index, now, noise, message));
        self.release();
    }

    /// A response: the session can seal.
    pub(crate) fn take_response(&mut self, now: Instant, parts: &Parts<'_>) -> Result<Taken, Refusal> {
        let (covered, mac1) = parts.mac1();
        if !self.mac1.verify(covered, mac1) {
            return Err(Refusal::BadMac);
        }
        let id = *self.indices.get(&parts.index).ok_or(Refusal::NoHandshake)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(Refusal::NoHandshake)?;
        let (place, question) = peer.open_question(parts.index).ok_or(Refusal::NoHandshake)?;
        let mut payload = [0; ANSWER];
        let split = question.noise.finish(parts.body, &mut payload).ok_or(Refusal::Forged)?;
        let begun = question.sent;
        let answer = Answer::read(&payload).filter(|answer| self.setup.ciphers.contains(&answer.cipher));
        let answer = answer.ok_or(Refusal::Forged)?;
        let held = asked_session(now, begun, parts.index, &answer, &split);
        peer.close_questions(place, &mut self.freed);
        // The question's index goes on as the session's.
        self.freed.retain(|&index| index != parts.index);
        peer.settle();
        let usage = peer.sessions.answered(held, self.public > peer.public, &mut self.freed);
        let established = establish(usage, id, peer);
        self.release();
        self.schedule(now);
        Ok(Taken { peer: Some(id), reply: None, established })
    }

    /// A cookie: the next question by this route shows it.
    pub(crate) fn take_cookie(&mut self, now: Instant, route: u8, parts: &Parts<'_>) -> Result<Taken, Refusal> {
        let id = *self.indices.get(&parts.index).ok_or(Refusal::NoHandshake)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(Refusal::NoHandshake)?;
        if !peer.take_cookie(now, route, parts.index, parts.body) {
            return Err(Refusal::Forged);
        }
        Ok(Taken { peer: None, reply: None, established: None })
    }

    /// A session index that nobody can foresee.
    pub(crate) fn reserve(&mut self, id: PeerId) -> u32 {
        loop {
            let index = u32::from_be_bytes(draw(&mut *self.entropy)) >> (32 - INDEX_BITS);
            if let std::collections::btree_map::Entry::Vacant(entry) = self.indices.entry(index) {
                entry.insert(id);
                return index;
            }
        }
    }

    /// Gives indices back.
    pub(crate) fn release(&mut self) {
        for index in self.freed.drain(..) {
            self.indices.remove(&index);
        }
    }

    pub(crate) fn schedule(&mut self, now: Instant) {
        self.due = self.peers.iter().flatten().map(|peer| peer.due(now)).min().unwrap_or(Instant::NEVER);
    }
}

fn asked_session(now: Instant, begun: Instant, local: u32, answer: &Answer, split: &Split) -> Held {
    let keys = SessionKeys { cipher: answer.cipher, seal: split.0, open: split.1 };
    Held {
        session: Session::new(&keys),
        local,
        remote: answer.index,
        asked: true,
        begun,
        born: now,
        instance: answer.instance,
        features: answer.features,
        unanswered: Instant::NEVER,
    }
}

/// What the driver is told.
pub(crate) fn establish(usage: Use, id: PeerId, peer: &Peer) -> Option<Established> {
    let held = peer.sessions.current().filter(|_| usage != Use::Spare)?;
    let (cipher, features): (Cipher, u32) = (held.session.cipher(), held.features);
    Some(Established { peer: id, fresh: usage == Use::Fresh, cipher, features })
}
