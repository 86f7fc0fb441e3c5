//! Floods of initiations: peers must prove their address, and those that do get through.

use seal::{DropReason, HandshakeMessage, INITIATION_LEN, PeerId, Peers, SealConfig};
use units::{Instant, Span};

use crate::world::{at, entropy, key};

const UNDER_LOAD_THRESHOLD: u32 = 20;
const B: [u8; 6] = [203, 0, 113, 7, 0x12, 0x92];

struct World {
    responder: Peers,
    peer: Peers,
    responder_at_peer: PeerId,
    flood: HandshakeMessage,
}

impl World {
    fn new() -> Self {
        let mut responder = Peers::new(
            SealConfig { under_load_threshold: UNDER_LOAD_THRESHOLD, ..SealConfig::new(key(1, "r")) },
            Box::new(entropy(1, "r")),
        );
        let mut peer = Peers::new(SealConfig::new(key(1, "p")), Box::new(entropy(1, "p")));
        responder.add(*peer.public(), None).unwrap();
        let responder_at_peer = peer.add(*responder.public(), None).unwrap();
        let mut stranger = Peers::new(SealConfig::new(key(1, "s")), Box::new(entropy(1, "s")));
        let responder_at_stranger = stranger.add(*responder.public(), None).unwrap();
        stranger.start_initiating(Instant::ZERO, responder_at_stranger);
        stranger.initiation_due(Instant::ZERO, 1).unwrap();
        let flood = stranger.initiation(Instant::ZERO, responder_at_stranger, 0).unwrap();
        Self { responder, peer, responder_at_peer, flood }
    }

    /// `count` initiations with a valid mac1, each from another address.
    fn flood(&mut self, now: Instant, count: u32) {
        for number in 0..count {
            let _ = self.responder.receive(now, 0, &number.to_be_bytes(), self.flood.as_bytes());
        }
    }

    fn initiate(&mut self, now: Instant) -> HandshakeMessage {
        self.peer.rekey(now, self.responder_at_peer);
        self.peer.start_initiating(now, self.responder_at_peer);
        self.peer.initiation_due(now, 1 + now.0);
        self.peer.initiation(now, self.responder_at_peer, 0).unwrap()
    }
}

#[test]
fn a_flood_is_processed_up_to_the_threshold_and_a_peer_gets_through() {
    let mut world = World::new();
    world.flood(at(1), 10_000);
    assert_eq!(world.responder.counters().get(DropReason::UnknownPeer), UNDER_LOAD_THRESHOLD.into());
    assert_eq!(world.responder.counters().get(DropReason::CookieRequired), 10_000 - u64::from(UNDER_LOAD_THRESHOLD));
    let initiation = world.initiate(at(1));
    let cookie = world.responder.receive(at(1), 0, &B, initiation.as_bytes()).unwrap().reply.unwrap();
    assert!(cookie.as_bytes().len() < INITIATION_LEN, "no amplification");
    assert!(world.peer.receive(at(1), 0, &[9; 6], cookie.as_bytes()).unwrap().established.is_none());
    world.flood(at(3), 10_000);
    let initiation = world.initiate(at(3));
    let response = world.responder.receive(at(3), 0, &B, initiation.as_bytes()).unwrap().reply.unwrap();
    assert!(world.peer.receive(at(3), 0, &[9; 6], response.as_bytes()).unwrap().established.is_some());
}

/// An initiation with a mac2 for the address [`B`], and a responder under load.
fn with_cookie() -> (World, HandshakeMessage) {
    let mut world = World::new();
    world.flood(at(1), 100);
    let initiation = world.initiate(at(1));
    let cookie = world.responder.receive(at(1), 0, &B, initiation.as_bytes()).unwrap().reply.unwrap();
    world.peer.receive(at(1), 0, &[9; 6], cookie.as_bytes()).unwrap();
    let shown = world.initiate(at(3));
    world.flood(at(3), 100);
    (world, shown)
}

#[test]
fn a_cookie_is_invalid_at_another_address() {
    let (mut world, shown) = with_cookie();
    let mut elsewhere = B;
    elsewhere[5] ^= 1;
    let outcome = world.responder.receive(at(3), 0, &elsewhere, shown.as_bytes()).unwrap();
    assert!(outcome.peer.is_none(), "another port is another address");
    assert!(world.responder.receive(at(3), 0, &B, shown.as_bytes()).unwrap().peer.is_some());
}

#[test]
fn a_cookie_expires_with_the_secret_after_two_minutes() {
    let (mut world, shown) = with_cookie();
    let later = at(3) + Span::from_secs(120);
    world.flood(later, 100);
    assert!(world.responder.receive(later, 0, &B, shown.as_bytes()).unwrap().peer.is_none());
}

#[test]
fn an_invalid_mac2_gets_a_cookie_reply_only_under_load() {
    let (_, shown) = with_cookie();
    let mut wrong = shown.as_bytes().to_vec();
    wrong[INITIATION_LEN - 1] ^= 1;
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
    assert_eq!(world.responder.counters().get(DropReason::RateLimited), 90, "ten a second and network");
    assert_eq!(world.responder.counters().get(DropReason::ReplayedInitiation), 9);
}

#[test]
fn initiations_with_an_invalid_mac1_do_not_count_as_load() {
    let mut world = World::new();
    let mut bad = world.flood.as_bytes().to_vec();
    bad[INITIATION_LEN - 20] ^= 1;
    for _ in 0..10_000 {
        assert_eq!(world.responder.receive(at(1), 0, &B, &bad).unwrap_err(), DropReason::InvalidMac1);
    }
    let initiation = world.initiate(at(1));
    assert!(
        world.responder.receive(at(1), 0, &B, initiation.as_bytes()).unwrap().peer.is_some(),
        "served without a cookie"
    );
}

#[test]
fn cookies_belong_to_routes() {
    let (mut world, _) = with_cookie();
    let by = |world: &World, route| world.peer.initiation(at(3), world.responder_at_peer, route).unwrap();
    let (with, without) = (by(&world, 0), by(&world, 1));
    assert_eq!(with.as_bytes()[..INITIATION_LEN - 16], without.as_bytes()[..INITIATION_LEN - 16]);
    assert_eq!(without.as_bytes()[INITIATION_LEN - 16..], [0; 16]);
    assert!(world.responder.receive(at(3), 0, &B, with.as_bytes()).unwrap().peer.is_some());
}
