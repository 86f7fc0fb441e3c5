//! Two ends with seeded chance and one clock, and messages between them that a test can lose, keep or change.

use seal::{Established, Message, OVERHEAD, Opened, PeerId, Peers, PrivateKey, Refusal, Setup};
use units::{Instant, Span, Stream};

/// 2026-01-01 in nanoseconds since 1970.
pub(crate) const WALL: u64 = 1_767_225_600_000_000_000;

/// Chance from a seed.
pub(crate) fn chance(seed: u64, name: &str) -> Stream {
    Stream::named(seed, name)
}

pub(crate) fn entropy(seed: u64, name: &str) -> impl FnMut(&mut [u8]) + Send + 'static {
    let mut stream = chance(seed, name);
    move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = stream.bits() as u8)
}

pub(crate) fn key(seed: u64, name: &str) -> PrivateKey {
    PrivateKey::generate(&mut entropy(seed, name))
}

/// One end that knows one other.
pub(crate) struct End {
    pub(crate) peers: Peers,
    pub(crate) other: PeerId,
    /// Number of the next datagram on path 0.
    pub(crate) number: u64,
}

impl End {
    pub(crate) fn receive(&mut self, now: Instant, message: &Message) -> Result<seal::Taken, Refusal> {
        self.peers.receive(now, 0, &[192, 0, 2, 1, 0, 80], message.as_bytes())
    }

    /// A question, if one is due.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Message> {
        let due = self.peers.question_due(now, WALL + now.0);
        due.map(|peer| self.peers.question(now, peer, 0).expect("a question that is due is there"))
    }

    /// `body`, sealed with the next number.
    pub(crate) fn seal(&mut self, now: Instant, body: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0; body.len() + OVERHEAD];
        datagram[seal::HEADER..][..body.len()].copy_from_slice(body);
        self.peers.seal(now, self.other, 0, self.number, &mut datagram).expect("there is a session");
        self.number += 1;
        datagram
    }

    /// What `datagram` says, or why it says nothing.
    pub(crate) fn open(&mut self, now: Instant, datagram: &[u8]) -> Result<(Opened, Vec<u8>), Refusal> {
        let mut copy = datagram.to_vec();
        let opened = self.peers.open(now, &mut copy)?;
        Ok((opened, copy[seal::HEADER..copy.len() - seal::TAG].to_vec()))
    }
}

/// Two ends, `a` and `b`, that know each other and have not met.
pub(crate) fn pair() -> (End, End) {
    pair_of(Setup::new(key(1, "a")), Setup::new(key(1, "b")))
}

pub(crate) fn pair_of(a: Setup, b: Setup) -> (End, End) {
    let (a_public, b_public) = (a.private.public(), b.private.public());
    let mut a = Peers::new(a, Box::new(entropy(1, "chance of a")));
    let mut b = Peers::new(b, Box::new(entropy(1, "chance of b")));
    let (b_at_a, a_at_b) = (a.add(b_public, None).unwrap(), b.add(a_public, None).unwrap());
    (End { peers: a, other: b_at_a, number: 0 }, End { peers: b, other: a_at_b, number: 0 })
}

/// `asker` asks, `answerer` answers, and a first datagram proves it.
pub(crate) fn meet(now: Instant, asker: &mut End, answerer: &mut End) -> (Established, Established) {
    asker.peers.want(now, asker.other);
    let question = asker.ask(now).expect("it is wanted");
    let answer = answerer.receive(now, &question).unwrap().reply.expect("a peer gets an answer");
    let first = asker.receive(now, &answer).unwrap().established.expect("it was answered");
    let datagram = asker.seal(now, b"hello");
    let (opened, body) = answerer.open(now, &datagram).unwrap();
    assert_eq!(body, b"hello");
    (first, opened.established.expect("the first datagram proves the session"))
}

pub(crate) fn at(seconds: u64) -> Instant {
    Instant::ZERO + Span::from_secs(seconds)
}
