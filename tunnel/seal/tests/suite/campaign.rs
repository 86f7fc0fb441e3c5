//! Random networks between two ends that restart, lose their clocks and send at random: nothing is ever opened that the
//! other did not seal, and nothing twice; and once the network is well again, they understand each other.

use std::collections::BTreeSet;

use seal::{HandshakeMessage, PresharedKey, SealConfig};
use units::{Instant, RngStream, Span};

use crate::world::{End, WALL_CLOCK, entropy, key};

/// What is on its way to one end.
#[derive(Clone)]
enum Datagram {
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
    inbox: Vec<Datagram>,
    count: u64,
}

impl Side {
    fn new(seed: u64, name: &'static str, other: &'static str, lives: u64) -> Self {
        let setup = SealConfig { under_load_threshold: 5, ..SealConfig::new(key(seed, name)) };
        let mut peers = seal::Peers::new(setup, Box::new(entropy(seed, &format!("{name} {lives}"))));
        let preshared = PresharedKey::generate(&mut entropy(seed, "preshared"));
        let other = peers.add(key(seed, other).public(), Some(preshared)).unwrap();
        peers.start_initiating(Instant::ZERO, other);
        let end = End { peers, other, number: 0 };
        let (sealed, opened) = (BTreeSet::new(), BTreeSet::new());
        Self { name, end, clock: 0, lives, sealed, opened, inbox: Vec::new(), count: 0 }
    }

    fn restart(&mut self, seed: u64, other: &'static str) {
        let anew = Self::new(seed, self.name, other, self.lives + 1);
        (self.end, self.lives) = (anew.end, anew.lives);
    }

    fn initiation(&mut self, now: Instant) -> Option<HandshakeMessage> {
        let wall_clock = (WALL_CLOCK + now.0).wrapping_add(self.clock);
        let peer = self.end.peers.initiation_due(now, wall_clock)?;
        self.end.peers.initiation(now, peer, 0)
    }

    /// Something new, sealed; none without a session.
    fn speak(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.end.peers.status(self.end.other)?.since.filter(|since| now.since(*since) < seal::REJECT_AFTER)?;
        let body = format!("{} {} {}", self.name, self.lives, self.count).into_bytes();
        self.count += 1;
        self.sealed.insert(body.clone());
        Some(self.end.seal(now, &body))
    }

    /// Takes what came; an response goes back.
    fn take(&mut self, now: Instant, datagram: &Datagram, sealed: &BTreeSet<Vec<u8>>) -> Option<Datagram> {
        match datagram {
            Datagram::Handshake(bytes) => {
                let outcome = self.end.peers.receive(now, 0, self.name.as_bytes(), bytes).ok()?;
                self.begin(outcome.established);
                outcome.reply.map(|reply| Datagram::Handshake(reply.as_bytes().to_vec()))
            }
            Datagram::Data(bytes) => {
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
fn disturb(rng: &mut RngStream, datagram: Datagram, inbox: &mut Vec<Datagram>, recorded: &mut Vec<Datagram>) {
    recorded.push(datagram.clone());
    match rng.below(10) {
        0 | 1 => {}
        2 => inbox.extend([datagram.clone(), datagram]),
        3 => {
            let (Datagram::Handshake(mut bytes) | Datagram::Data(mut bytes)) = datagram.clone();
            let bit = rng.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            inbox.push(if matches!(datagram, Datagram::Data(_)) {
                Datagram::Data(bytes)
            } else {
                Datagram::Handshake(bytes)
            });
        }
        4 => inbox.extend([datagram, recorded[rng.below(recorded.len() as u64) as usize].clone()]),
        _ => inbox.push(datagram),
    }
}

/// One step: an end sends, initiates, receives, restarts or has its clock moved.
fn step(seed: u64, now: Instant, rng: &mut RngStream, me: &mut Side, you: &mut Side, recorded: &mut Vec<Datagram>) {
    if let Some(initiation) = me.initiation(now) {
        disturb(rng, Datagram::Handshake(initiation.as_bytes().to_vec()), &mut you.inbox, recorded);
    }
    match rng.below(100) {
        0 => me.restart(seed, you.name),
        1 => me.clock = rng.below(20_000_000_000),
        2 => me.end.peers.rekey(now, me.end.other),
        3..50 => {
            if let Some(datagram) = me.speak(now) {
                disturb(rng, Datagram::Data(datagram), &mut you.inbox, recorded);
            }
        }
        _ if me.inbox.is_empty() => {}
        _ => {
            let datagram = me.inbox.swap_remove(rng.below(me.inbox.len() as u64) as usize);
            if let Some(reply) = me.take(now, &datagram, &you.sealed) {
                disturb(rng, reply, &mut you.inbox, recorded);
            }
        }
    }
}

fn run(seed: u64) -> (u64, u64) {
    let mut rng = RngStream::named(seed, "network");
    let (mut a, mut b) = (Side::new(seed, "a", "b", 0), Side::new(seed, "b", "a", 0));
    let (mut now, mut recorded) = (Instant::ZERO, Vec::new());
    for _ in 0..600 {
        let most = if rng.chance(0.02) { 60_000 } else { 200 };
        now += Span::from_millis(rng.below(most));
        if rng.chance(0.5) {
            step(seed, now, &mut rng, &mut a, &mut b, &mut recorded);
        } else {
            step(seed, now, &mut rng, &mut b, &mut a, &mut recorded);
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
    let initiation = me.initiation(now).map(|message| Datagram::Handshake(message.as_bytes().to_vec()));
    let data = me.speak(now).map(Datagram::Data);
    for datagram in &std::mem::take(&mut me.inbox) {
        you.inbox.extend(me.take(now, datagram, &you.sealed));
    }
    you.inbox.extend(initiation.into_iter().chain(data));
}

#[test]
fn whatever_the_network_does_only_sealed_datagrams_are_opened_and_only_once() {
    let (mut opened, mut restarts) = (0, 0);
    for seed in 0..300 {
        let (some, lives) = run(seed);
        opened += some;
        restarts += lives;
    }
    assert!(opened > 10_000, "the campaign opens something: {opened}");
    assert!(restarts > 500, "the campaign restarts ends: {restarts}");
}
