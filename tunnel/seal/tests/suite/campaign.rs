//! Random networks between two ends that restart, lose their clocks and send at random: nothing is ever opened that the
//! other did not seal, and nothing twice; and once the network is well again, they understand each other.

use std::collections::BTreeSet;

use seal::{Message, PresharedKey, Setup};
use units::{Instant, Span, Stream};

use crate::world::{End, WALL, entropy, key};

/// What is on its way to one end.
#[derive(Clone)]
enum Way {
    Handshake(Vec<u8>),
    Data(Vec<u8>),
}

struct Side {
    name: &'static str,
    end: End,
    /// How far the wall clock is off, nanoseconds.
    clock: u64,
    lives: u64,
    /// Bodies that it has sealed, and opened.
    sealed: BTreeSet<Vec<u8>>,
    opened: BTreeSet<Vec<u8>>,
    inbox: Vec<Way>,
    count: u64,
}

impl Side {
    fn new(seed: u64, name: &'static str, other: &'static str, lives: u64) -> Self {
        let setup = Setup { unasked: 5, ..Setup::new(key(seed, name)) };
        let mut peers = seal::Peers::new(setup, Box::new(entropy(seed, &format!("{name} {lives}"))));
        let preshared = PresharedKey::generate(&mut entropy(seed, "preshared"));
        let other = peers.add(key(seed, other).public(), Some(preshared)).unwrap();
        peers.want(Instant::ZERO, other);
        let end = End { peers, other, number: 0 };
        let (sealed, opened) = (BTreeSet::new(), BTreeSet::new());
        Self { name, end, clock: 0, lives, sealed, opened, inbox: Vec::new(), count: 0 }
    }

    fn restart(&mut self, seed: u64, other: &'static str) {
        let anew = Self::new(seed, self.name, other, self.lives + 1);
        (self.end, self.lives) = (anew.end, anew.lives);
    }

    fn question(&mut self, now: Instant) -> Option<Message> {
        let wall = (WALL + now.0).wrapping_add(self.clock);
        let peer = self.end.peers.question_due(now, wall)?;
        self.end.peers.question(now, peer, 0)
    }

    /// Something new, sealed; none without a session.
    fn speak(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.end.peers.status(self.end.other)?.since.filter(|since| now.since(*since) < seal::REJECT_AFTER)?;
        let body = format!("{} {} {}", self.name, self.lives, self.count).into_bytes();
        self.count += 1;
        self.sealed.insert(body.clone());
        Some(self.end.seal(now, &body))
    }

    /// Takes what came; an answer goes back.
    fn take(&mut self, now: Instant, way: &Way, sealed: &BTreeSet<Vec<u8>>) -> Option<Way> {
        match way {
            Way::Handshake(bytes) => {
                let taken = self.end.peers.receive(now, 0, self.name.as_bytes(), bytes).ok()?;
                self.begin(taken.established);
                taken.reply.map(|reply| Way::Handshake(reply.as_bytes().to_vec()))
            }
            Way::Data(bytes) => {
                let (opened, body) = self.end.open(now, bytes).ok()?;
                self.begin(opened.established);
                assert!(sealed.contains(&body), "{} opened what nobody sealed", self.name);
                assert!(self.opened.insert(body), "{} opened something twice", self.name);
                None
            }
        }
    }

    /// A fresh session begins at number zero, as a driver does it.
    fn begin(&mut self, established: Option<seal::Established>) {
        if established.is_some_and(|established| established.fresh) {
            self.end.number = 0;
        }
    }
}

/// Something happens to what is on its way.
fn disturb(chance: &mut Stream, way: Way, inbox: &mut Vec<Way>, recorded: &mut Vec<Way>) {
    recorded.push(way.clone());
    match chance.below(10) {
        0 | 1 => {}
        2 => inbox.extend([way.clone(), way]),
        3 => {
            let (Way::Handshake(mut bytes) | Way::Data(mut bytes)) = way.clone();
            let bit = chance.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            inbox.push(if matches!(way, Way::Data(_)) { Way::Data(bytes) } else { Way::Handshake(bytes) });
        }
        4 => inbox.extend([way, recorded[chance.below(recorded.len() as u64) as usize].clone()]),
        _ => inbox.push(way),
    }
}

/// One step: somebody speaks, asks, hears, restarts or has its clock moved.
fn step(seed: u64, now: Instant, chance: &mut Stream, me: &mut Side, you: &mut Side, recorded: &mut Vec<Way>) {
    if let Some(question) = me.question(now) {
        disturb(chance, Way::Handshake(question.as_bytes().to_vec()), &mut you.inbox, recorded);
    }
    match chance.below(100) {
        0 => me.restart(seed, you.name),
        1 => me.clock = chance.below(20_000_000_000),
        2 => me.end.peers.renew(now, me.end.other),
        3..50 => {
            if let Some(datagram) = me.speak(now) {
                disturb(chance, Way::Data(datagram), &mut you.inbox, recorded);
            }
        }
        _ if me.inbox.is_empty() => {}
        _ => {
            let way = me.inbox.swap_remove(chance.below(me.inbox.len() as u64) as usize);
            if let Some(reply) = me.take(now, &way, &you.sealed) {
                disturb(chance, reply, &mut you.inbox, recorded);
            }
        }
    }
}

fn run(seed: u64) -> (u64, u64) {
    let mut chance = Stream::named(seed, "network");
    let (mut a, mut b) = (Side::new(seed, "a", "b", 0), Side::new(seed, "b", "a", 0));
    let (mut now, mut recorded) = (Instant::ZERO, Vec::new());
    for _ in 0..600 {
        let most = if chance.chance(0.02) { 60_000 } else { 200 };
        now += Span::from_millis(chance.below(most));
        if chance.chance(0.5) {
            step(seed, now, &mut chance, &mut a, &mut b, &mut recorded);
        } else {
            step(seed, now, &mut chance, &mut b, &mut a, &mut recorded);
        }
    }
    let opened = (a.opened.len() + b.opened.len()) as u64;
    recover(seed, now, &mut a, &mut b);
    (opened, a.lives + b.lives)
}

/// The network is well again: within 45 seconds (a clock was 20 s back, a cookie may be needed) both understand each other.
fn recover(seed: u64, mut now: Instant, a: &mut Side, b: &mut Side) {
    a.inbox.clear();
    b.inbox.clear();
    let (a_before, b_before) = (a.opened.len(), b.opened.len());
    for _ in 0..900 {
        now += Span::from_millis(50);
        exchange(now, a, b);
        exchange(now, b, a);
    }
    assert!(a.opened.len() > a_before + 100 && b.opened.len() > b_before + 100, "seed {seed}: they do not meet again");
}

fn exchange(now: Instant, me: &mut Side, you: &mut Side) {
    let question = me.question(now).map(|question| Way::Handshake(question.as_bytes().to_vec()));
    let data = me.speak(now).map(Way::Data);
    for way in &std::mem::take(&mut me.inbox) {
        you.inbox.extend(me.take(now, way, &you.sealed));
    }
    you.inbox.extend(question.into_iter().chain(data));
}

#[test]
fn whatever_the_network_does_only_what_was_sealed_is_opened_and_only_once() {
    let (mut opened, mut restarts) = (0, 0);
    for seed in 0..300 {
        let (some, lives) = run(seed);
        opened += some;
        restarts += lives;
    }
    assert!(opened > 10_000, "the campaign opens something: {opened}");
    assert!(restarts > 500, "the campaign restarts ends: {restarts}");
}
