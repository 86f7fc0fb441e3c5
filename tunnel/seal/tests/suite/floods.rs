//! Floods of initiations: under load a peer must prove its address, and one that does gets a response.

use seal::{DropReason, HandshakeConfig, HandshakeMessage, INITIATION_LEN, PeerId, SealDevice};
use units::{Instant, Span};

use crate::test_peer::{entropy, key, secs};

const UNDER_LOAD_THRESHOLD: u32 = 20;
const INITIATOR_ADDRESS: [u8; 6] = [203, 0, 113, 7, 0x12, 0x92];

struct Fixture {
    responder: SealDevice,
    initiator: SealDevice,
    responder_id: PeerId,
    /// An initiation of a peer that the responder does not know.
    unknown_initiation: HandshakeMessage,
}

impl Fixture {
    fn new() -> Self {
        let mut responder = SealDevice::new(
            HandshakeConfig { under_load_threshold: UNDER_LOAD_THRESHOLD, ..HandshakeConfig::new(key(1, "r")) },
            Box::new(entropy(1, "r")),
        );
        let mut initiator = SealDevice::new(HandshakeConfig::new(key(1, "p")), Box::new(entropy(1, "p")));
        responder.add(*initiator.public_key(), None).unwrap();
        let responder_id = initiator.add(*responder.public_key(), None).unwrap();
        let mut unknown_peer = SealDevice::new(HandshakeConfig::new(key(1, "s")), Box::new(entropy(1, "s")));
        let responder_at_unknown_peer = unknown_peer.add(*responder.public_key(), None).unwrap();
        unknown_peer.start_initiating(Instant::ZERO, responder_at_unknown_peer);
        unknown_peer.initiation_due(Instant::ZERO, 1).unwrap();
        let unknown_initiation = unknown_peer.initiation(Instant::ZERO, responder_at_unknown_peer, 0).unwrap();
        Self { responder, initiator, responder_id, unknown_initiation }
    }

    /// `count` initiations with a valid mac1, each from another address.
    fn flood(&mut self, now: Instant, count: u32) {
        for number in 0..count {
            let _ = self.responder.receive(now, |_| 0, &number.to_be_bytes(), self.unknown_initiation.as_bytes());
        }
    }

    fn initiate(&mut self, now: Instant) -> HandshakeMessage {
        self.initiator.rekey(now, self.responder_id);
        self.initiator.start_initiating(now, self.responder_id);
        self.initiator.initiation_due(now, 1 + now.0);
        self.initiator.initiation(now, self.responder_id, 0).unwrap()
    }
}

#[test]
fn a_flood_is_processed_up_to_the_threshold_and_a_peer_gets_a_response() {
    let mut fixture = Fixture::new();
    fixture.flood(secs(1), 10_000);
    assert_eq!(fixture.responder.counters().get(DropReason::UnknownPeer), u64::from(UNDER_LOAD_THRESHOLD));
    assert_eq!(fixture.responder.counters().get(DropReason::CookieRequired), 10_000 - u64::from(UNDER_LOAD_THRESHOLD));
    let initiation = fixture.initiate(secs(1));
    let cookie =
        fixture.responder.receive(secs(1), |_| 0, &INITIATOR_ADDRESS, initiation.as_bytes()).unwrap().reply.unwrap();
    assert!(cookie.as_bytes().len() < INITIATION_LEN, "no amplification");
    assert!(fixture.initiator.receive(secs(1), |_| 0, &[9; 6], cookie.as_bytes()).unwrap().established.is_none());
    fixture.flood(secs(3), 10_000);
    let initiation = fixture.initiate(secs(3));
    let response =
        fixture.responder.receive(secs(3), |_| 0, &INITIATOR_ADDRESS, initiation.as_bytes()).unwrap().reply.unwrap();
    assert!(fixture.initiator.receive(secs(3), |_| 0, &[9; 6], response.as_bytes()).unwrap().established.is_some());
}

/// An initiation with a mac2 for the address [`INITIATOR_ADDRESS`], and a responder under load.
fn with_cookie() -> (Fixture, HandshakeMessage) {
    let mut fixture = Fixture::new();
    fixture.flood(secs(1), 100);
    let initiation = fixture.initiate(secs(1));
    let cookie =
        fixture.responder.receive(secs(1), |_| 0, &INITIATOR_ADDRESS, initiation.as_bytes()).unwrap().reply.unwrap();
    fixture.initiator.receive(secs(1), |_| 0, &[9; 6], cookie.as_bytes()).unwrap();
    let initiation = fixture.initiate(secs(3));
    fixture.flood(secs(3), 100);
    (fixture, initiation)
}

#[test]
fn a_cookie_is_invalid_at_another_address() {
    let (mut fixture, initiation) = with_cookie();
    let mut other_address = INITIATOR_ADDRESS;
    other_address[5] ^= 1;
    let outcome = fixture.responder.receive(secs(3), |_| 0, &other_address, initiation.as_bytes()).unwrap();
    assert!(outcome.peer.is_none(), "the cookie is bound to the port too");
    assert!(
        fixture.responder.receive(secs(3), |_| 0, &INITIATOR_ADDRESS, initiation.as_bytes()).unwrap().peer.is_some()
    );
}

#[test]
fn a_cookie_expires_with_the_secret_after_two_minutes() {
    let (mut fixture, initiation) = with_cookie();
    let expiry = secs(3) + Span::from_secs(120);
    fixture.flood(expiry, 100);
    assert!(
        fixture.responder.receive(expiry, |_| 0, &INITIATOR_ADDRESS, initiation.as_bytes()).unwrap().peer.is_none()
    );
}

#[test]
fn an_invalid_mac2_gets_a_cookie_reply_only_under_load() {
    let (_, initiation) = with_cookie();
    let mut changed = initiation.as_bytes().to_vec();
    changed[INITIATION_LEN - 1] ^= 1;
    let mut idle = Fixture::new();
    assert!(idle.responder.receive(secs(3), |_| 0, &INITIATOR_ADDRESS, &changed).unwrap().peer.is_some());
    let mut loaded = Fixture::new();
    loaded.flood(secs(3), 100);
    assert!(loaded.responder.receive(secs(3), |_| 0, &INITIATOR_ADDRESS, &changed).unwrap().peer.is_none());
}

#[test]
fn one_address_cannot_take_all_even_with_cookies() {
    let (mut fixture, initiation) = with_cookie();
    for _ in 0..100 {
        let _ = fixture.responder.receive(secs(3), |_| 0, &INITIATOR_ADDRESS, initiation.as_bytes());
    }
    assert_eq!(fixture.responder.counters().get(DropReason::RateLimited), 89, "ten failed ones a second and address");
    assert_eq!(fixture.responder.counters().get(DropReason::ReplayedInitiation), 10);
}

#[test]
fn initiations_with_an_invalid_mac1_do_not_count_as_load() {
    let mut fixture = Fixture::new();
    let mut changed = fixture.unknown_initiation.as_bytes().to_vec();
    changed[INITIATION_LEN - 20] ^= 1;
    for _ in 0..10_000 {
        assert_eq!(
            fixture.responder.receive(secs(1), |_| 0, &INITIATOR_ADDRESS, &changed).unwrap_err(),
            DropReason::InvalidMac1
        );
    }
    let initiation = fixture.initiate(secs(1));
    assert!(
        fixture.responder.receive(secs(1), |_| 0, &INITIATOR_ADDRESS, initiation.as_bytes()).unwrap().peer.is_some(),
        "served without a cookie"
    );
}

#[test]
fn cookies_belong_to_routes() {
    let (mut fixture, _) = with_cookie();
    let initiation =
        |fixture: &Fixture, route| fixture.initiator.initiation(secs(3), fixture.responder_id, route).unwrap();
    let (with_mac2, without_mac2) = (initiation(&fixture, 0), initiation(&fixture, 1));
    assert_eq!(with_mac2.as_bytes()[..INITIATION_LEN - 16], without_mac2.as_bytes()[..INITIATION_LEN - 16]);
    assert_eq!(without_mac2.as_bytes()[INITIATION_LEN - 16..], [0; 16]);
    assert!(
        fixture.responder.receive(secs(3), |_| 0, &INITIATOR_ADDRESS, with_mac2.as_bytes()).unwrap().peer.is_some()
    );
}
