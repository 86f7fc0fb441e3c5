//! The responder's part of [`Peers`], and what both do with data.

use units::Instant;

use crate::Cipher;
use crate::asking::establish;
use crate::cipher::TAG;
use crate::cookie;
use crate::entropy::draw;
use crate::load::Admission;
use crate::message::{ASK, Answer, Ask, Kind, Message, Parts};
use crate::noise::{Noise, Split};
use crate::peers::{DATA, HEADER, OVERHEAD, Opened, PeerId, Peers, Taken};
use crate::refusal::{Refusal, Unsealed};
use crate::session::{Session, SessionKeys};
use crate::sessions::Held;

impl Peers {
    /// Takes a handshake message that came by `route` from `source` (the address that the sender must be able to read at:
    /// octets of the IP address, then of the port).
    ///
    /// # Errors
    /// Why it was refused; it is counted and left without an answer.
    pub fn receive(&mut self, now: Instant, route: u8, source: &[u8], datagram: &[u8]) -> Result<Taken, Refusal> {
        let taken = Parts::of(datagram).and_then(|parts| match parts.kind {
            Kind::Initiation => self.take_initiation(now, source, &parts),
            Kind::Response => self.take_response(now, &parts),
            Kind::Cookie => self.take_cookie(now, route, &parts),
        });
        taken.inspect_err(|&reason| self.counters.add(reason))
    }

    fn take_initiation(&mut self, now: Instant, source: &[u8], parts: &Parts<'_>) -> Result<Taken, Refusal> {
        let (covered, mac1) = parts.mac1();
        if !self.mac1.verify(covered, mac1) {
            return Err(Refusal::BadMac);
        }
        match self.load.admit(now, &mut *self.entropy, source, parts.mac2()) {
            Admission::Serve => self.answer(now, parts),
            Admission::Drop => Err(Refusal::Overloaded),
            Admission::Demand(cookie) => {
                self.counters.add(Refusal::CookieDemanded);
                let mut reply = Message::new(Kind::Cookie, parts.index);
                let nonce = draw(&mut *self.entropy);
                cookie::seal(&self.cookie_key, mac1, nonce, &cookie, reply.body_mut());
                Ok(Taken { peer: None, reply: Some(reply), established: None })
            }
        }
    }

    fn answer(&mut self, now: Instant, parts: &Parts<'_>) -> Result<Taken, Refusal> {
        let mut payload = [0; ASK];
        let entropy = &mut *self.entropy;
        let noise = Noise::receive(entropy, &self.setup.private, parts.header, parts.body, &mut payload);
        let (noise, public) = noise.ok_or(Refusal::Forged)?;
        let id = *self.keys.get(&public).ok_or(Refusal::UnknownPeer)?;
        let ask = Ask::read(&payload);
        let peer = self.peers[id.0 as usize].as_mut().ok_or(Refusal::UnknownPeer)?;
        if ask.time <= peer.newest {
            return Err(Refusal::ReplayedInitiation);
        }
        peer.newest = ask.time;
        let cipher = self.setup.ciphers.iter().find(|cipher| ask.ciphers & cipher.bit() != 0);
        let cipher = *cipher.ok_or(Refusal::NoCommonCipher)?;
        let reply = self.respond(now, id, parts.index, noise, &ask, cipher).ok_or(Refusal::Forged)?;
        Ok(Taken { peer: Some(id), reply: Some(reply), established: None })
    }

    /// Makes the session that waits for its first datagram, and the response.
    fn respond(
        &mut self,
        now: Instant,
        id: PeerId,
        remote: u32,
        noise: Noise,
        ask: &Ask,
        cipher: Cipher,
    ) -> Option<Message> {
        let local = self.reserve(id);
        let peer = self.peers[id.0 as usize].as_mut()?;
        let mut reply = Message::new(Kind::Response, remote);
        let answer = Answer { instance: peer.instance, index: local, cipher, features: self.setup.features };
        let split = noise.respond(&peer.preshared, &answer.write(), reply.body_mut())?;
        reply.sign(&peer.mac1);
        let replaced = peer.sessions.wait(answered_session(now, local, remote, ask, cipher, &split));
        self.freed.extend(replaced);
        self.release();
        self.schedule(now);
        Some(reply)
    }

    /// Opens a sealed datagram where it lies. Nothing is told to who sent it if it is refused.
    ///
    /// # Errors
    /// Why it was refused; it is counted, and its bytes are worthless.
    pub fn open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Opened, Refusal> {
        self.try_open(now, datagram).inspect_err(|&reason| self.counters.add(reason))
    }

    fn try_open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Opened, Refusal> {
        let (header, sealed) = datagram.split_first_chunk_mut::<HEADER>().ok_or(Refusal::Malformed)?;
        let [f0, f1, p0, p1, i0, i1, i2, path, n0, n1, n2, n3] = *header;
        if [f0, f1, p0, p1] != DATA {
            return Err(Refusal::Malformed);
        }
        let index = u32::from_be_bytes([0, i0, i1, i2]);
        let id = *self.indices.get(&index).ok_or(Refusal::NoSession)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(Refusal::NoSession)?;
        let held = peer.sessions.find(index).ok_or(Refusal::NoSession)?;
        if held.expired(now) {
            return Err(Refusal::Expired);
        }
        let number = held.session.open(path, u32::from_be_bytes([n0, n1, n2, n3]), header, sealed)?;
        held.unanswered = Instant::NEVER;
        let established = if peer.sessions.waits(index) {
            peer.settle();
            let usage = peer.sessions.confirm(self.public > peer.public, &mut self.freed);
            let established = establish(usage, id, peer);
            self.release();
            self.schedule(now);
            established
        } else {
            None
        };
        Ok(Opened { peer: id, path, number, established })
    }

    /// Seals a datagram where it lies: 12 bytes that become the header, the body, 16 bytes that become the tag.
    ///
    /// # Errors
    /// If there is no session, or it must not seal that number; then nothing was touched.
    ///
    /// # Panics
    /// If the datagram has no room for header and tag.
    pub fn seal(
        &mut self,
        now: Instant,
        id: PeerId,
        path: u8,
        number: u64,
        datagram: &mut [u8],
    ) -> Result<(), Unsealed> {
        assert!(datagram.len() >= OVERHEAD, "a datagram has room for header and tag");
        let peer = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or(Unsealed::NoSession)?;
        let held = peer.sessions.current_mut().filter(|held| !held.expired(now)).ok_or(Unsealed::NoSession)?;
        let header = header(held.remote, path, number);
        let (place, rest) = datagram.split_first_chunk_mut::<HEADER>().expect("it was checked");
        let (body, tag) = rest.split_last_chunk_mut::<TAG>().expect("it was checked");
        held.session.seal(path, number, &header, body, tag)?;
        *place = header;
        held.unanswered = held.unanswered.min(now);
        Ok(())
    }
}

/// The clear bytes of a sealed datagram.
fn header(remote: u32, path: u8, number: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&DATA);
    header[4..8].copy_from_slice(&(remote << 8 | u32::from(path)).to_be_bytes());
    header[8..].copy_from_slice(&number.to_be_bytes()[4..]);
    header
}

fn answered_session(now: Instant, local: u32, remote: u32, ask: &Ask, cipher: Cipher, split: &Split) -> Held {
    let keys = SessionKeys { cipher, seal: split.1, open: split.0 };
    Held {
        session: Session::new(&keys),
        local,
        remote,
        asked: false,
        begun: now,
        born: now,
        instance: ask.instance,
        features: ask.features,
        unanswered: Instant::NEVER,
    }
}
