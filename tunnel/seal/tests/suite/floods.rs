//! Many ask at once: they must show their address, and who does gets through.

use seal::{INITIATION, Message, PeerId, Peers, Refusal, Setup};
use units::{Instant, Span};

use crate::world::{at, entropy, key};

const UNASKED: u32 = 20;
const B: [u8; 6] = [203, 0, 113, 7, 0x12, 0x92];

struct World {
    responder: Peers,
    peer: Peers,
    responder_at_peer: PeerId,
    flood: Message,
}

impl World {
    fn new() -> Self {
        let mut responder =
            Peers::new(Setup { unasked: UNASKED, ..Setup::new(key(1, "r")) }, Box::new(entropy(1, "r")));
        let mut peer = Peers::new(Setup::new(key(1, "p")), Box::new(entropy(1, "p")));
        responder.add(*peer.public(), None).unwrap();
        let responder_at_peer = peer.add(*responder.public(), None).unwrap();
        let mut stranger = Peers::new(Setup::new(key(1, "s")), Box::new(entropy(1, "s")));
        let responder_at_stranger = stranger.add(*responder.public(), None).unwrap();
        stranger.want(Instant::ZERO, responder_at_stranger);
        stranger.question_due(Instant::ZERO, 1).unwrap();
        let flood = stranger.question(Instant::ZERO, responder_at_stranger, 0).unwrap();
        Self { responder, peer, responder_at_peer, flood }
    }

    /// `count` initiations with a right mac1, each from another address.
    fn flood(&mut self, now: Instant, count: u32) {
        for number in 0..count {
            let _ = self.responder.receive(now, 0, &number.to_be_bytes(), self.flood.as_bytes());
        }
    }

    fn ask(&mut self, now: Instant) -> Message {
        self.peer.renew(now, self.responder_at_peer);
        self.peer.want(now, self.responder_at_peer);
        self.peer.question_due(now, 1 + now.0);
        self.peer.question(now, self.responder_at_peer, 0).unwrap()
    }
}

#[test]
fn a_flood_costs_curve_operations_only_up_to_the_limit_and_a_peer_gets_through() {
    let mut world = World::new();
    world.flood(at(1), 10_000);
    assert_eq!(world.responder.counters().get(Refusal::UnknownPeer), UNASKED.into());
    assert_eq!(world.responder.counters().get(Refusal::CookieDemanded), 10_000 - u64::from(UNASKED));
    let question = world.ask(at(1));
    let cookie = world.responder.receive(at(1), 0, &B, question.as_bytes()).unwrap().reply.unwrap();
    assert!(cookie.as_bytes().len() < INITIATION, "no amplification");
    assert!(world.peer.receive(at(1), 0, &[9; 6], cookie.as_bytes()).unwrap().established.is_none());
    world.flood(at(3), 10_000);
    let question = world.ask(at(3));
    let response = world.responder.receive(at(3), 0, &B, question.as_bytes()).unwrap().reply.unwrap();
    assert!(world.peer.receive(at(3), 0, &[9; 6], response.as_bytes()).unwrap().established.is_some());
}

/// A question that shows the cookie for [`B`], and the world in which it does so while many ask.
fn with_cookie() -> (World, Message) {
    let mut world = World::new();
    world.flood(at(1), 100);
    let question = world.ask(at(1));
    let cookie = world.responder.receive(at(1), 0, &B, question.as_bytes()).unwrap().reply.unwrap();
    world.peer.receive(at(1), 0, &[9; 6], cookie.as_bytes()).unwrap();
    let shown = world.ask(at(3));
    world.flood(at(3), 100);
    (world, shown)
}

#[test]
fn a_cookie_is_worth_nothing_at_another_address() {
    let (mut world, shown) = with_cookie();
    let mut elsewhere = B;
    elsewhere[5] ^= 1;
    let taken = world.responder.receive(at(3), 0, &elsewhere, shown.as_bytes()).unwrap();
    assert!(taken.peer.is_none(), "another port is another address");
    assert!(world.responder.receive(at(3), 0, &B, shown.as_bytes()).unwrap().peer.is_some());
}

#[test]
fn a_cookie_ends_with_the_secret_after_two_minutes() {
    let (mut world, shown) = with_cookie();
    let later = at(3) + Span::from_secs(120);
    world.flood(later, 100);
    assert!(world.responder.receive(later, 0, &B, shown.as_bytes()).unwrap().peer.is_none());
}

#[test]
fn a_wrong_mac2_is_answered_with_a_cookie_only_when_many_ask() {
    let (_, shown) = with_cookie();
    let mut wrong = shown.as_bytes().to_vec();
    wrong[INITIATION - 1] ^= 1;
    let mut calm = World::new();
    assert!(calm.responder.receive(at(3), 0, &B, &wrong).unwrap().peer.is_some());
    let mut busy = World::new();
    busy.flood(at(3), 100);
    assert!(busy.responder.receive(at(3), 0, &B, &wrong).unwrap().peer.is_none());
}

#[test]
fn one_address_cannot_take_all_even_with_cookies() {
    let (mut world, shown) = with_cookie();
    for _ in 0..100 {
        let _ = world.responder.receive(at(3), 0, &B, shown.as_bytes());
    }
    assert_eq!(world.responder.counters().get(Refusal::Overloaded), 90, "ten a second and network");
    assert_eq!(world.responder.counters().get(Refusal::ReplayedInitiation), 9);
}

#[test]
fn who_does_not_know_the_public_key_is_not_even_counted_as_load() {
    let mut world = World::new();
    let mut bad = world.flood.as_bytes().to_vec();
    bad[INITIATION - 20] ^= 1;
    for _ in 0..10_000 {
        assert_eq!(world.responder.receive(at(1), 0, &B, &bad).unwrap_err(), Refusal::BadMac);
    }
    let question = world.ask(at(1));
    assert!(world.responder.receive(at(1), 0, &B, question.as_bytes()).unwrap().peer.is_some(), "served unasked");
}

#[test]
fn cookies_belong_to_routes() {
    let (mut world, _) = with_cookie();
    let by = |world: &World, route| world.peer.question(at(3), world.responder_at_peer, route).unwrap();
    let (with, without) = (by(&world, 0), by(&world, 1));
    assert_eq!(with.as_bytes()[..INITIATION - 16], without.as_bytes()[..INITIATION - 16]);
    assert_eq!(without.as_bytes()[INITIATION - 16..], [0; 16]);
    assert!(world.responder.receive(at(3), 0, &B, with.as_bytes()).unwrap().peer.is_some());
}
